"""One attempt at the linear program: the cutting-plane loop in fixed coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix, dense
from bellweight.common.doubled import Doubled, add, dot, doubled, product, subtract
from bellweight.common.status import SolverError, Status
from bellweight.program.auditing import CORRECTIONS, Auditor, placed
from bellweight.program.basis_equations import Factored, leaving_row, sharpen
from bellweight.program.cutting_planes import CuttingPlanes, UnfitCoordinatesError
from bellweight.program.master import LpAnswer
from bellweight.program.precise_optimum import precise_moments
from bellweight.program.row_source import Separation
from bellweight.program.simplex import ray_text
from bellweight.program.solution import Audit, OptimalFace
from bellweight.program.working_set import WorkingSet

_MAX_EXCHANGES = 50
_LEAST_TERMS = 1e-60  # of the largest: rows divided by less would overflow when they are squared


@dataclass(frozen=True, eq=False)
class _Basis:
    """A basis of the master: coefficients in its coordinates, positions of rows, multipliers.

    `cost` is that of the rows, which are `factored` where they are dense, and `found` the look at
    all rows at these coefficients.
    """

    inner: FloatArray
    positions: IntArray
    multipliers: FloatArray
    cost: FloatArray
    factored: Factored | None
    found: Separation


class Attempt(CuttingPlanes[_Basis]):
    """One run of the loop for the plain program.

    Of the solver's answer only the rows in its basis are used: their equations are solved again to
    full precision.
    """

    def __init__(
        self,
        working: WorkingSet,
        auditor: Auditor,
        moments: FloatArray,
        reference: FloatArray | None,
        most_rounds: int,
        *,
        unexplored: bool,
    ) -> None:
        inner_moments = working.coordinates.moments(moments)
        super().__init__(working.lp, inner_moments, most_rounds, unexplored=unexplored)
        self.working = working
        self.auditor = auditor
        self.moments = moments
        self.reference = reference
        self.basic_keys = np.zeros(0, dtype=np.int64)
        self._basic_coef = np.zeros(working.rows.n_basis)

    def optimum(self, columns: IntArray) -> OptimalFace:
        """Return the optimum over the functions `columns`, audited."""
        basis = self.run()
        working = self.working
        # The next weights are likely to need the nearest other rows.
        self.add(basis.found.close[~working.contains(basis.found.close)])
        face = self._face(basis, columns)
        working.trim(basis.positions - working.n_bounds)
        return face

    def basis_factor(self) -> FloatArray:
        """Return the rows (m, K) of the last basis, each divided by the size of its terms."""
        rows = dense(self.working.rows.rows(self.basic_keys)[0])
        terms = np.abs(rows) @ np.abs(self._basic_coef)
        size = np.maximum(terms, _LEAST_TERMS * terms.max(initial=0.0))
        return np.asarray(rows / np.where(size > 0.0, size, 1.0)[:, None])

    def look(self, answer: LpAnswer) -> tuple[_Basis, IntArray]:
        basis = self._sharpened(answer.coef, answer.basic)
        violated = self._violated(basis.inner, basis.found.close)
        fresh = violated[~self.working.contains(violated)]
        if len(fresh) == 0 and len(violated) > 0:
            # The solver stopped short: its tolerance is wider than the rounding error.
            basis = self._exchanged(basis)
            violated = self._violated(basis.inner, basis.found.close)
            fresh = violated[~self.working.contains(violated)]
        return basis, fresh

    def limiting(self, direction: FloatArray, distance: float) -> IntArray:
        working = self.working
        coef = working.coordinates.coef(direction)
        # The growth is the scale of a direction: rows that are zero up to rounding must not crowd
        # out those that limit it.
        unit = (1.0 - working.rows.discount) * distance
        found = working.rows.separate(coef, unit, homogeneous=True)
        self.passes += 1
        violated = self._violated(direction, found.close, homogeneous=True)
        fresh = violated[~working.contains(violated)]
        if len(fresh) == 0:
            if distance <= tolerances.CLEAR_GROWTH * np.abs(self.inner_moments).sum():
                raise UnfitCoordinatesError
            raise SolverError(Status.UNBOUNDED, ray_text(working.rows.names, coef))
        return fresh

    def add(self, keys: IntArray) -> None:
        self.working.add(keys)

    def _sharpened(self, inner: FloatArray, positions: IntArray) -> _Basis:
        """Solve the equations of a basis to full precision, and look at all rows there."""
        rows, cost = self.working.rows_at(positions)
        factored = None if sparse.issparse(rows) else Factored(rows)
        inner, multipliers = sharpen(rows, cost, self.inner_moments, inner, factored)
        self.passes += 1
        found = self.auditor.scan(self.moments, self.working.coordinates.coef(inner))
        return _Basis(inner, positions, multipliers, cost, factored, found)

    def _exchanged(self, basis: _Basis) -> _Basis:
        """Swap violated rows of the master into the basis, one by one, until none is left."""
        working = self.working
        for _ in range(_MAX_EXCHANGES):
            violated = self._violated(basis.inner, basis.found.close)
            inside = violated[working.contains(violated)]
            if len(inside) == 0:
                break
            entering = working.n_bounds + int(np.flatnonzero(working.keys == inside[0])[0])
            leaving = leaving_row(
                working.rows_at(basis.positions)[0],
                basis.multipliers,
                working.rows_at(np.array([entering]))[0],
            )
            if leaving is None:
                break
            swapped = np.sort(np.append(np.delete(basis.positions, leaving), entering))
            basis = self._sharpened(basis.inner, swapped)
        return basis

    def _face(self, basis: _Basis, columns: IntArray) -> OptimalFace:
        working, inner = self.working, basis.inner
        in_bounds = basis.positions < working.n_bounds
        self.basic_keys = working.keys[basis.positions[~in_bounds] - working.n_bounds]
        seen = working.coordinates.coef(inner)
        coef = self._corrected(seen, basis)
        found = basis.found
        if (np.abs(coef.high - seen) > tolerances.TIGHT * np.abs(seen)).any():
            # The look before was at other coefficients.
            found = self.auditor.scan(self.moments, coef.high)
            self.passes += 1
        tight, tight_rows = self._tight(inner, coef, found.near)
        multipliers = self._corrected_dual(basis)
        self._basic_coef = coef.high
        bound_slack = _relative_slack(working.bound_rows, working.bound_cost, inner)
        active = np.flatnonzero(bound_slack <= tolerances.TIGHT)
        dual = placed(tight, self.basic_keys, multipliers[~in_bounds])
        at_bound = np.zeros(working.n_bounds)
        at_bound[basis.positions[in_bounds]] = np.maximum(multipliers[in_bounds], 0.0)
        is_basic = np.isin(active, basis.positions[in_bounds])
        noise = self._noise(tight, dual)

        def audited(moments: Doubled) -> Audit:
            return self.auditor.audit(moments, coef, tight, dual, at_bound, found, columns, noise)

        moments = doubled(self.moments)
        audit = audited(moments)
        # The rounding of moments times large coefficients looks like a gap, or hides one.
        rounding = np.finfo(float).eps * float(np.abs(self.moments) @ np.abs(coef.high))
        if not audit.passed or rounding > tolerances.OPTIMALITY * abs(dot(moments, coef)):
            moments = precise_moments(working.rows, self.moments, self.reference)
            audit = audited(moments)
        return OptimalFace(
            coef=coef.high,
            objective=dot(moments, coef),
            moments=self.moments,
            tight=tight,
            tight_rows=tight_rows,
            tight_cost=working.rows.rows(tight)[1],
            bound_rows=dense(working.bound_rows[active]),
            bound_cost=working.bound_cost[active],
            inner_moments=self.inner_moments,
            moment_terms=working.coordinates.moment_terms(self.moments),
            dual=dual,
            unique=bool(np.isin(tight, self.basic_keys).all() and is_basic.all()),
            columns=columns,
            audit=audit,
            passes=self.passes,
            rounds=self.rounds,
            n_rows=len(working.keys),
            cost_unit=working.cost_unit,
            proven=found.proven,
        )

    def _corrected(self, coef: FloatArray, basis: _Basis) -> Doubled:
        """Return the coefficients (K,) that solve the basis's equations, to twice the digits.

        They are the same on every machine, whatever the rounding errors on the way to the basis.
        """
        working, factored, positions = self.working, basis.factored, basis.positions
        found = doubled(coef)
        if working.coordinates.transform is None or factored is None:
            return found
        exact = working.exact_rows_at(positions)
        for _ in range(CORRECTIONS):
            error = subtract(doubled(basis.cost), product(exact, found)).high
            step = factored.solved(error / factored.size)
            found = add(found, doubled(working.coordinates.coef(step)))
        return self._at_bounds(found, positions[positions < working.n_bounds])

    def _at_bounds(self, coef: Doubled, positions: IntArray) -> Doubled:
        """Return coefficients (K,) with those that are at a bound exactly there.

        Rounding could leave them on the wrong side of the bound.
        """
        bounds = self.working.raw_bounds[positions]
        k = np.abs(bounds).argmax(axis=1)
        high, low = coef.high.copy(), coef.low.copy()
        high[k] = bounds[np.arange(len(k)), k] * self.working.bound_cost[positions]
        low[k] = 0.0
        return Doubled(high, low)

    def _corrected_dual(self, basis: _Basis) -> FloatArray:
        """Return the multipliers of a basis, with twice the digits where rounding moves them."""
        working, coordinates = self.working, self.working.coordinates
        multipliers, positions, factored = basis.multipliers, basis.positions, basis.factored
        if coordinates.transform is None or factored is None or len(positions) == 0:
            return multipliers
        rounding = np.finfo(float).eps * coordinates.moment_terms(self.moments)
        moved = np.abs(factored.pseudoinverse.T) @ rounding / factored.size
        if (moved <= tolerances.MOVED * np.abs(multipliers).max()).all():
            return multipliers
        exact = precise_moments(working.rows, self.moments, self.reference)
        rows, found = working.exact_rows_at(positions).transposed, doubled(multipliers)
        for _ in range(CORRECTIONS):
            error = coordinates.moments(subtract(exact, product(rows, found)).high)
            step = factored.solved_transposed(error) / factored.size
            found = add(found, doubled(step))
        return found.high

    def _violated(
        self, inner: FloatArray, candidates: IntArray, *, homogeneous: bool = False
    ) -> IntArray:
        """Return which candidates are violated beyond rounding."""
        raw, cost = self.working.rows.rows(candidates)
        cost = np.zeros(len(candidates)) if homogeneous else cost
        unit = 0.0 if homogeneous else self.working.cost_unit
        slack = _relative_slack(self.working.coordinates.rows(raw), cost, inner, unit)
        return candidates[slack < -tolerances.TIGHT]

    def _tight(
        self, inner: FloatArray, coef: Doubled, candidates: IntArray
    ) -> tuple[IntArray, Matrix]:
        """Return which rows are tight, of the basis and of the candidates, with their entries."""
        working = self.working
        keys = np.union1d(candidates, self.basic_keys)
        raw, cost = working.rows.rows(keys)
        rows = working.coordinates.rows(raw)
        slack = cost - rows @ inner
        if working.coordinates.transform is not None:
            slack = subtract(doubled(cost), product(working.rows.exact_rows(keys), coef)).high
        size = _terms(rows, cost, inner, working.cost_unit)
        is_basic = np.isin(keys, self.basic_keys)
        tight = np.flatnonzero((slack <= tolerances.TIGHT * size) | is_basic)
        return keys[tight], rows[tight]

    def _noise(self, keys: IntArray, dual: FloatArray) -> FloatArray:
        """Return the scale (K,) below which an error of the equations is rounding.

        The equations are solved in the program's coordinates, so an equation whose own terms are
        zero or nearly so still carries the rounding error of the others.
        """
        coordinates = self.working.coordinates
        raw = self.working.rows.rows(keys)[0]
        terms = abs(coordinates.rows(raw)).T @ dual + np.abs(self.inner_moments)
        share = tolerances.ROUNDING / tolerances.OPTIMALITY
        return share * float(terms.max()) * coordinates.spread


def _relative_slack(
    rows: Matrix, cost: FloatArray, inner: FloatArray, unit: float = 0.0
) -> FloatArray:
    """Return the slacks of rows, relative to the size of the terms they are made of."""
    return np.asarray((cost - rows @ inner) / _terms(rows, cost, inner, unit))


def _terms(rows: Matrix, cost: FloatArray, inner: FloatArray, unit: float) -> FloatArray:
    """Return the size of the terms that the slacks of rows are made of; one for zero."""
    # Terms that cancel, or are all zero, still carry the rounding error of the coefficients, which
    # is at least that of a typical cost.
    reach = abs(rows) @ np.full(len(inner), np.abs(inner).max())
    if sparse.issparse(rows):  # where a state follows itself, entries have cancelled already
        reach = np.full(len(cost), reach.max(initial=0.0))
    rounding = np.finfo(float).eps / tolerances.TIGHT * (reach + unit)
    terms = np.abs(cost) + abs(rows) @ np.abs(inner) + rounding
    return np.asarray(np.where(terms > 0.0, terms, 1.0))
