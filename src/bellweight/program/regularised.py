"""The regularised program: a dual that is unique and spreads out, by a semismooth Newton method.

    min cost' lambda + delta/2 ||lambda||^2   s.t.   rows' lambda = moments, lambda >= 0.

Its dual in the coefficients is an exterior penalty problem with K unknowns,

    min_r  -moments' r + ||(rows r - cost)_+||^2 / (2 delta),   lambda = (rows r - cost)_+ / delta,

smooth and piecewise quadratic. Below a finite delta, lambda is the minimum-norm optimal dual of the
linear program itself: the paper's method is the limit of this family. Rows may be violated by up to
delta max lambda, which the audit reports and bounds repair.

Each Newton step takes the rows that are violated now; along its direction the exact minimum is
found from numbers (N,) that one pass over the rows gives. Where no warm start is at hand, a larger
delta comes first. Where the rounding of rows and coefficients decides the dual, or the steps do not
end at the minimum, an active-set method with twice the digits does (`active_set`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import Doubled, dot, doubled
from bellweight.common.status import ArgumentError, SolverError, Status
from bellweight.common.threads import one_thread
from bellweight.program import open_coefficients
from bellweight.program.active_set import optimum
from bellweight.program.doubts import doubts_of, rounded_coefficients, rounded_rows
from bellweight.program.listed_rows import ListedRows
from bellweight.program.precise_optimum import cannot_be_unbounded, precise_moments
from bellweight.program.simplex import is_affordable, ray_text
from bellweight.program.solution import Audit, Solution, cost_unit

_MAX_STEPS = 200
_RIDGE = 1e-13  # share of the Hessian's size added where active rows leave directions free
_FARTHEST = 1e6  # limit of a step, times the largest value
_STAGE = 0.1  # from one delta to the next
_FULL = 1e-3  # a step this close to a full one may have found the minimum
_SEARCHES = 80
_REFRESH = 20  # steps after which violations are computed afresh
_CHUNK = 20_000  # active rows taken at a time
_FAR_MOMENTS = 1e3  # moments this long do not belong to the reference of the coordinates


class PenaltyProgram:
    """The regularised program of one row source, warm from one solve to the next."""

    def __init__(
        self, rows: ListedRows, regularisation: float, reference: FloatArray | None = None
    ) -> None:
        if rows.is_sparse:
            raise ArgumentError(
                "regularisation does not go with an Indicator basis: its dual is unique already"
            )
        if np.isfinite(rows.lower).any() or np.isfinite(rows.upper).any():
            raise ArgumentError(
                "regularisation does not go with bounds on coefficients: leave out one of the two"
            )
        unit = cost_unit(rows.pair_cost) * (1.0 - rows.discount)
        if regularisation < tolerances.LEAST_REGULARISATION * unit:
            raise ArgumentError(
                f"regularisation is {regularisation:g}, which is nothing beside the costs: use 0, "
                f"or at least {tolerances.LEAST_REGULARISATION * unit:.1g}"
            )
        self.rows = rows
        self.regularisation = regularisation
        self.functions = rows.functions
        self._set(reference)
        self._unit = cost_unit(rows.pair_cost)
        self.largest_cost = float(np.abs(rows.pair_cost).max())
        self.largest_value = (self.largest_cost or 1.0) / (1.0 - rows.discount)
        self._warm: FloatArray | None = None
        self._used: IntArray | None = None  # rows of the last answer that took twice the digits

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return self.functions.dropped

    def solve(
        self,
        moments: FloatArray,
        reference: FloatArray | None = None,
        until: float | None = None,
    ) -> Solution:
        """Return the audited optimum for these moments (K,); `until` as in `AlpProgram.solve`."""
        with one_thread():
            return self._solved(moments, reference, until)

    def _solved(
        self, moments: FloatArray, reference: FloatArray | None, until: float | None
    ) -> Solution:
        began = time.perf_counter()
        self.functions.check_reachable(moments)
        solution = self._by_steps(moments, reference)
        if solution is None or solution.status is not Status.OPTIMAL:
            solution = self._precise(moments, reference, solution, until) or solution
        if solution is None:
            raise SolverError(
                Status.FAILED, "neither Newton steps nor an active set came to an end"
            )
        solution = self._with_nothing_open(solution, reference)
        return replace(solution, seconds=time.perf_counter() - began)

    @property
    def _can_be_precise(self) -> bool:
        return is_affordable(self.rows.n_basis)

    def _by_steps(self, moments: FloatArray, reference: FloatArray | None) -> Solution | None:
        """Return what Newton steps find; None where they fail and twice the digits may not."""
        if np.linalg.norm(self.coordinates.moments(moments)) > _FAR_MOMENTS:
            self._set(reference)
            self._warm = None
        run = _Run(self, moments)
        try:
            found = None if self._warm is None else run.minimise(self._warm, self.regularisation)
            if found is None or not found.settled:
                found = self._from_larger(run)
        except SolverError:
            if self._can_be_precise:
                return None
            raise
        self._warm = found.inner
        return run.solution(found)

    def _precise(
        self,
        moments: FloatArray,
        reference: FloatArray | None,
        before: Solution | None,
        until: float | None,
    ) -> Solution | None:
        """Return the optimum found with twice the digits, if it is found."""
        if not self._can_be_precise:
            return None
        rows = self.rows
        exact = precise_moments(rows, moments, reference)
        used = self._used
        if used is None and before is not None:
            used = before.keys
        used = rows.seeds(reference) if used is None else used
        try:
            found = optimum(
                rows, self.functions.kept, self.regularisation, exact, used, used, until
            )
        except SolverError as problem:
            lost = {Status.FAILED}
            if cannot_be_unbounded(rows, reference):
                lost.add(Status.UNBOUNDED)
            if before is not None:
                lost.add(Status.TIME_LIMIT)
            if problem.status not in lost:
                raise
            self._used = None
            return None
        self._used = found.keys
        answer = _Answer(found.coef, found.keys, found.dual, found.excess)
        solution = self.audited(answer, exact, found.passes, found.steps)
        return replace(solution, moments=moments)

    def _with_nothing_open(self, found: Solution, reference: FloatArray | None) -> Solution:
        """Choose the coefficients that the dual does not determine; the dual does not change."""
        rows = self.rows
        if found.status is not Status.OPTIMAL:
            return found
        if len(found.keys) >= len(self.functions.kept) or not self._can_be_precise:
            return found
        cost = np.array(rows.pair_cost)
        cost[found.keys] += self.regularisation * found.dual
        paid = rows.with_cost(cost)
        if paid is None:
            return found
        coef = open_coefficients.decided(
            paid, self.functions.kept, _no_bounds(rows), found.coef, found.keys,
            found.dual,
        )  # fmt: skip
        if coef is None:
            return found
        answer = _Answer(coef, found.keys, found.dual, -rows.slacks_and_terms(coef.high)[0])
        exact = precise_moments(rows, found.moments, reference)
        again = self.audited(answer, exact, found.passes + 1, found.rounds)
        return replace(again, moments=found.moments) if again.status is Status.OPTIMAL else found

    def audited(self, answer: _Answer, moments: Doubled, passes: int, steps: int) -> Solution:
        """Return an answer with its audit, on unscaled data.

        The objective is that of the coefficients, moments' coef; the violation that the
        regularisation allows is in the audit.
        """
        rows, delta = self.rows, self.regularisation
        coef, keys, dual = answer.coef.high, answer.keys, answer.dual
        reached, size, paid = np.zeros(rows.n_basis), np.abs(moments.high), np.zeros(2)
        spoilt = 0.0
        for chunk in _chunks(len(keys)):
            raw, cost = rows.rows(keys[chunk])
            dense = np.asarray(raw)
            reached = reached + dense.T @ dual[chunk]
            size = size + np.abs(dense).T @ dual[chunk]
            paid = paid + np.array([cost, np.abs(cost)]) @ dual[chunk]
            spoilt += tolerances.ROUNDING * float(dual[chunk] @ (np.abs(dense) @ np.abs(coef)))
        # An equation whose terms are nearly zero still carries the rounding error of the others.
        size = size + tolerances.ROUNDING / tolerances.OPTIMALITY * float(size.max())
        error = np.abs(reached - moments.high) / np.where(size > 0.0, size, 1.0)
        objective, penalty = dot(moments, answer.coef), delta * float(dual @ dual)
        scale = max(abs(objective), float(paid[1]), penalty, np.finfo(float).tiny)
        beyond = answer.worst - delta * float(dual.max(initial=0.0))
        audit = Audit(
            violation=answer.worst,
            # Violations that the regularisation allows are no fault; only those beyond it are.
            relative_violation=max(0.0, beyond) / (abs(objective) + self.largest_cost),
            dual_residual=float(error[self.functions.kept].max()),
            gap=abs(objective - float(paid[0]) - penalty) / scale,
        )
        doubts = doubts_of(audit)
        if spoilt > tolerances.SPOILT * max(abs(objective), self._unit):
            doubts += (rounded_coefficients(spoilt, objective),)
        return Solution(
            status=Status.INACCURATE if doubts else Status.OPTIMAL,
            doubts=doubts,
            coef=coef,
            objective=objective,
            moments=moments.high,
            audit=audit,
            passes=passes,
            rounds=steps,
            n_rows=len(keys),
            keys=keys,
            dual=dual,
            dual_residual=audit.dual_residual,
            seconds=0.0,
            allows_violations=True,
        )

    def is_lost_to_rounding(self, answer: _Answer) -> bool:
        """Return whether the rounding of rows moves the dual or the objective too far.

        An error of a row moves the objective by the row's dual times that error. Where no more rows
        are violated than there are functions, it does not move the dual, whatever the costs are;
        among more rows, it does by the error / delta.
        """
        rows, coef = self.rows, answer.coef.high
        terms = rows.all_terms(coef)
        rounding = np.finfo(float).eps * (terms + np.abs(rows.pair_cost))
        paid = np.abs(rows.pair_cost[answer.keys]) + self.regularisation * answer.dual
        moved = float(answer.dual @ rounding[answer.keys])
        if moved > tolerances.OPTIMALITY * float(answer.dual @ paid):
            return True
        close = answer.excess > -rounding
        shift = float(rounding[close].max(initial=0.0)) / self.regularisation
        many = np.count_nonzero(close) > self.coordinates.rank
        return bool(many and shift * (1.0 - rows.discount) > tolerances.DUAL)

    def _from_larger(self, run: _Run) -> _Minimum:
        """Solve with larger regularisations first, each from the answer before."""
        # At this one the penalty of a violated row is of the size of a cost.
        easy = self._unit * (1.0 - self.rows.discount) * self.coordinates.rank
        steps = max(0, int(np.ceil(np.log(self.regularisation / easy) / np.log(_STAGE))))
        inner = self._start()
        for k in range(steps, 0, -1):
            delta = self.regularisation / _STAGE**k
            inner = run.minimise(inner, delta, tolerances.NEWTON_ROUGH).inner
        return run.minimise(inner, self.regularisation)

    def _set(self, reference: FloatArray | None) -> None:
        self.coordinates = self.rows.coordinates(reference)

    def _start(self) -> FloatArray:
        """Return a constant below all values."""
        rows, transform = self.rows, self.coordinates.transform
        assert transform is not None
        low = float(rows.pair_cost.min()) / (1.0 - rows.discount)
        flat, *_ = np.linalg.lstsq(transform, rows.constant(), rcond=None)
        return np.asarray(low * flat)


@dataclass(frozen=True, eq=False)
class _Minimum:
    """A minimum in the program's coordinates, and the dual on the rows violated there."""

    inner: FloatArray
    keys: IntArray
    dual: FloatArray
    settled: bool = True


@dataclass(frozen=True, eq=False)
class _Answer:
    """Coefficients (K,), the dual on the rows `keys`, and all rows' violations (N,)."""

    coef: Doubled
    keys: IntArray
    dual: FloatArray
    excess: FloatArray

    @property
    def worst(self) -> float:
        return max(float(self.excess.max(initial=0.0)), 0.0)


class _Run:
    """One solve: the moments, and what has been looked at."""

    def __init__(self, program: PenaltyProgram, moments: FloatArray) -> None:
        self.program = program
        self.moments = moments
        self.inner_moments = program.coordinates.moments(moments)
        self.passes = 0
        self.steps = 0

    def minimise(self, inner: FloatArray, delta: float, tol: float = tolerances.NEWTON) -> _Minimum:
        """Return the minimum of the penalty problem by damped Newton steps.

        The problem is piecewise quadratic: a full step that leaves the violated rows as they are
        has found the minimum exactly.
        """
        excess = self._excess(inner)
        size = float(np.abs(self.inner_moments).max())
        active = np.flatnonzero(excess > 0.0)
        for _ in range(_MAX_STEPS):
            gradient, curvature = self._derivatives(active, excess, delta)
            residual = float(np.abs(gradient).max()) / size
            if residual <= tol:
                break
            self.steps += 1
            step = self._step(inner, gradient, curvature)
            change = self._along(step)
            length = self._length(excess, change, step, delta)
            if np.array_equal(inner + length * step, inner):
                break  # the gradient is rounding, and so is the step
            inner, before = inner + length * step, active
            excess = excess + length * change
            active = np.flatnonzero(excess > 0.0)
            if abs(length - 1.0) <= _FULL and tol == tolerances.NEWTON:
                exactly = self._exactly(inner, before, delta)
                if exactly is not None and self._holds(exactly, before):
                    return exactly
            if self.steps % _REFRESH == 0 or residual <= tolerances.NEWTON_ROUGH:
                excess = self._excess(inner)  # sums of many steps carry their rounding errors
                active = np.flatnonzero(excess > 0.0)
        exactly = self._exactly(inner, active, delta) if tol == tolerances.NEWTON else None
        if exactly is not None and self._holds(exactly, active):
            return exactly
        if residual > tol:
            self._refuse(inner)
        return _Minimum(inner, active, excess[active] / delta, settled=residual <= tol)

    def _holds(self, found: _Minimum, active: IntArray) -> bool:
        """Return whether no other rows are violated there, but for rounding."""
        excess = self._excess(found.inner)
        excess[active] = 0.0
        level = abs(float(self.inner_moments @ found.inner)) + self.program.largest_cost
        return bool(excess.max(initial=0.0) <= tolerances.TIGHT * level)

    def _exactly(self, inner: FloatArray, active: IntArray, delta: float) -> _Minimum | None:
        """Solve the optimality conditions on the violated rows A, to full precision.

        With s0 the least-squares solution of A s = cost and A'A y = moments, the minimum is
        s0 + delta y with dual A y + (A s0 - cost) / delta, in which nothing cancels. Directions
        that A leaves free stay as they are. None: these are not the rows of the minimum.
        """
        program, moments = self.program, self.inner_moments
        if not 0 < len(active) <= _CHUNK:
            return None
        raw, cost = program.rows.rows(active)
        rows = np.asarray(program.coordinates.rows(raw))
        left, size, right = np.linalg.svd(rows, full_matrices=False)
        known = size > tolerances.NEWTON_RANK * size[0]
        left, size, right = left[:, known], size[known], right[known]
        seen = right @ moments
        if np.abs(moments - right.T @ seen).max() > tolerances.NEWTON * np.abs(moments).max():
            return None
        rest = cost - left @ (left.T @ cost)
        rest -= left @ (left.T @ rest)  # divided by a small delta, a rounding error would show
        rest[np.abs(rest) <= tolerances.TIGHT * np.abs(cost).max()] = 0.0
        dual = left @ (seen / size) - rest / delta
        if float(dual.min()) < -tolerances.DUAL * float(dual.max()):
            return None
        place = right.T @ (left.T @ cost / size + delta * seen / size**2)
        used = dual > 0.0
        return _Minimum(place + inner - right.T @ (right @ inner), active[used], dual[used])

    def solution(self, found: _Minimum) -> Solution:
        """Return the answer with its audit."""
        coef = doubled(self.program.coordinates.coef(found.inner))
        answer = _Answer(coef, found.keys, found.dual, self._excess(found.inner))
        solution = self.program.audited(answer, doubled(self.moments), self.passes, self.steps)
        if not self.program.is_lost_to_rounding(answer):
            return solution
        return replace(
            solution, status=Status.INACCURATE, doubts=(*solution.doubts, rounded_rows())
        )

    def _excess(self, inner: FloatArray) -> FloatArray:
        """Return by how much each row (N,) is violated; negative where it holds."""
        return self._look(self.program.coordinates.coef(inner), homogeneous=False)

    def _along(self, step: FloatArray) -> FloatArray:
        """Return how fast each row's violation (N,) grows along a step."""
        return self._look(self.program.coordinates.coef(step), homogeneous=True)

    def _look(self, coef: FloatArray, *, homogeneous: bool) -> FloatArray:
        rows = self.program.rows
        self.passes += 1
        found = np.empty(rows.n_pairs)
        for pairs, slack in rows.all_slacks(coef):
            found[pairs] = -slack
        return found + rows.pair_cost if homogeneous else found

    def _derivatives(
        self, keys: IntArray, excess: FloatArray, delta: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the generalised Hessian from the violated rows."""
        program = self.program
        found = program.rows.weighed(keys, excess[keys] / delta, program.coordinates)
        return found[:, -1] - self.inner_moments, found[:, :-1] / delta

    def _step(self, inner: FloatArray, gradient: FloatArray, curvature: FloatArray) -> FloatArray:
        """Return the Newton step."""
        # Where rows leave a direction free, the ridge limits the length of the step.
        farthest = _FARTHEST * (self.program.largest_value + float(np.abs(inner).max()))
        ridge = _RIDGE * float(np.trace(curvature)) / len(gradient)
        ridge = max(ridge, float(np.linalg.norm(gradient)) / farthest)
        stiff = curvature + ridge * np.eye(len(gradient))
        return np.asarray(-np.linalg.solve(stiff, gradient))

    def _length(
        self, excess: FloatArray, change: FloatArray, step: FloatArray, delta: float
    ) -> float:
        """Return where the penalty problem is smallest along a step: a zero of its slope."""
        gain = float(self.inner_moments @ step)
        low, high, length = 0.0, np.inf, 1.0
        scale = abs(gain) + abs(float(np.maximum(excess, 0.0) @ change)) / delta
        squares = change * change
        for _ in range(_SEARCHES):
            now = np.maximum(excess + length * change, 0.0)
            slope = float(now @ change) / delta - gain
            bend = float(squares @ (now > 0.0).astype(np.float64)) / delta
            if abs(slope) <= tolerances.FLAT * scale:
                break
            low, high = (low, length) if slope > 0.0 else (length, high)
            newton = length - slope / bend if bend > 0.0 else np.inf
            if not low < newton < high:
                newton = 0.5 * (low + high) if np.isfinite(high) else 4.0 * length
            if newton == length:
                break
            length = newton
        return length

    def _refuse(self, inner: FloatArray) -> None:
        """Raise where coefficients are so large that the objective must grow without limit."""
        program = self.program
        if float(np.abs(inner).max()) > _FARTHEST * program.largest_value:
            coef = program.coordinates.coef(inner / np.linalg.norm(inner))
            raise SolverError(Status.UNBOUNDED, ray_text(program.rows.names, coef))


def _no_bounds(rows: ListedRows) -> tuple[FloatArray, FloatArray]:
    return np.zeros((0, rows.n_basis)), np.zeros(0)


def _chunks(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
