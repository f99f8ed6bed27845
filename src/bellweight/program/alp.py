"""The approximate linear program, solved by cutting planes and audited in original units.

    max moments' coef   s.t.   rows coef <= cost,   lower <= coef <= upper      (pALP)

An `AlpProgram` holds a small master program that grows by the rows its row source finds violated.
It stays warm: between solves with other moments, rows, basis and coordinates are kept. Every answer
is audited on unscaled data. When the audit fails the program is rebuilt in coordinates in which the
basis just found is orthonormal, which puts the answer's own scale in place of the reference's. When
that fails too, or functions that were dropped as dependent turn out to matter, the program is
solved with twice the digits (`simplex`); what is still wrong then, the status says.

The largest violation is measured row by row against

    unit + |cost| + (1 - discount) |value|,   unit = (1 - discount) |objective|,

all costs per step, so the test does not depend on the units of the costs.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.common.doubled import Doubled, add, dot, doubled, product, stacked, subtract
from bellweight.common.status import SolverError, Status
from bellweight.program import open_coefficients
from bellweight.program.basis_equations import leaving_row, sharpen
from bellweight.program.coordinates import CLEAR_GROWTH, Frame
from bellweight.program.master import MasterLp
from bellweight.program.row_source import RowSource, Separation
from bellweight.program.simplex import Vertex, VertexSearch, ray_text
from bellweight.program.solution import AlpSolution, Audit, cost_unit

_MAX_ROUNDS = 500
_FEW_ROUNDS = 20  # and two for each basis function: more is a sign of bad coordinates
_MAX_REBUILDS = 4  # where there is no other road
_FEW_REBUILDS = 2
_MAX_EXCHANGES = 50
_MAX_POOL = 20_000
_FAR_MOMENTS = 1e3  # moments this long do not belong to the reference of the coordinates
_REACHED = 1e-9  # distance below which the phase-one problem counts as solved
MOST_REFINED = 120  # basis functions up to which a program is solved with twice the digits
_REFINED_POOL = 4_000  # rows that it starts with at the most
_COEFFICIENT = 1e-15  # relative error of a coefficient, a few times that of rounding it
SPOILT = 0.01  # share of the objective that rounding of the coefficients may take
_CORRECTIONS = 3  # of a basis's equations: each gains some ten digits
_MOVED = 1e-10  # share of the largest multiplier by which rounding of the moments may move one
_MATTERS = 2e-15  # share of a dropped function's moment by which it misses its equation


def solve_alp(
    rows: RowSource, moments: FloatArray, reference: FloatArray | None = None
) -> AlpSolution:
    """Solve the program once: `reference` (S,) are weights that tell where the answer matters."""
    return AlpProgram(rows, reference).solve(moments)


class AlpProgram:
    """The program of one row source, warm from one solve to the next."""

    def __init__(self, rows: RowSource, reference: FloatArray | None = None) -> None:
        self.rows = rows
        self.frame = Frame(rows)
        self._keys = self._basic = np.zeros(0, dtype=np.int64)
        self._columns = self.frame.kept
        self._refines = False  # whether an earlier solve needed twice the digits
        self._start(rows.seeds(reference), self.frame.factor(reference))
        self.unexplored = len(self._keys) < rows.n_pairs

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return tuple(np.delete(np.array(self.rows.names, dtype=object), self._columns))

    def solve(self, moments: FloatArray, reference: FloatArray | None = None) -> AlpSolution:
        """Return the audited optimum for these moments (K,).

        `reference` (S,) are the weights behind the moments: new coordinates are built around them
        when the old ones do not fit any more.
        """
        began = time.perf_counter()
        if not self._is_bounded(reference):
            self.frame.check_reachable(moments)
        solution = self._found(moments, reference)
        solution = self._with_all_that_matter(solution, moments, reference)
        solution = self._with_nothing_open(solution)
        spoilt = self._noise(solution) > SPOILT * max(abs(solution.objective), self.lp.cost_unit)
        right = solution.audit.passed and not spoilt
        status = Status.OPTIMAL if right else Status.INACCURATE
        status = status if solution.proven else Status.TIME_LIMIT
        return replace(solution, status=status, seconds=time.perf_counter() - began)

    def _found(self, moments: FloatArray, reference: FloatArray | None) -> AlpSolution:
        """Return the best answer of the roads there are; the one that led there before is first."""
        if self._refines:
            try:
                return self._refined(moments, reference, None)
            except SolverError as problem:
                if problem.status is not Status.FAILED:
                    raise
                self._refines = False
        solution = self._solved(moments, reference)
        if solution is None or (solution.proven and not solution.audit.passed):
            solution = self._refined(moments, reference, solution)
        return solution

    def _solved(self, moments: FloatArray, reference: FloatArray | None) -> AlpSolution | None:
        """Return the best that the solver finds in several coordinates, if it finds anything."""
        passes = rounds = 0
        solution: AlpSolution | None = None
        if np.linalg.norm(self.coordinates.moments(moments)) > _FAR_MOMENTS:
            self._start(self._keys, self.frame.factor(reference))
        for _ in range(_FEW_REBUILDS if self._can_refine else _MAX_REBUILDS):
            attempt = _Attempt(self, moments, reference)
            try:
                candidate = attempt.run()
            except _UnfitError:
                self._start(self._keys, self.frame.factor(reference))
                continue
            except SolverError as problem:
                if self._can_refine:
                    return solution
                if problem.status is Status.UNBOUNDED and self._is_bounded(reference):
                    raise SolverError(Status.FAILED, problem.detail) from problem
                raise
            finally:
                passes, rounds = passes + attempt.passes, rounds + attempt.rounds
            if solution is None or _worse(solution.audit, candidate.audit):
                solution = candidate
            if solution.audit.passed or not solution.proven:
                break
            self._start(self._keys, attempt.basis_factor())
        if solution is None and not self._can_refine:
            raise SolverError(Status.FAILED, "no coordinates were found that suit the moments")
        return None if solution is None else replace(solution, passes=passes, rounds=rounds)

    @property
    def most_rounds(self) -> int:
        """Rounds of row generation before another road is taken, where there is one."""
        return _FEW_ROUNDS + 2 * self.rows.n_basis if self._can_refine else _MAX_ROUNDS

    @property
    def _can_refine(self) -> bool:
        return self.rows.n_basis <= MOST_REFINED

    def _is_bounded(self, weights: FloatArray | None) -> bool:
        """Return whether the program of some weights (S,) cannot be unbounded.

        With all states listed, the occupancy of any policy from the weights on is a dual.
        """
        return weights is not None and self.rows.is_complete and bool(weights.min() >= 0.0)

    def _refined(
        self, moments: FloatArray, reference: FloatArray | None, before: AlpSolution | None
    ) -> AlpSolution:
        """Return the optimum found with twice the digits, or what was found before if better."""
        if not self._can_refine:
            assert before is not None
            return before
        search = VertexSearch(self.rows, self._columns, (doubled(self.raw_bounds), self.bound_cost))
        exact = exactly(self.rows, moments, reference)
        none = np.zeros(0, dtype=np.int64)
        starts = [
            (np.union1d(self._keys[-_REFINED_POOL:], self._basic), self._basic),
            (self.rows.seeds(reference)[:_REFINED_POOL], none),
        ]
        if before is None and not self._refines:
            starts.reverse()  # the rows of a search that found nothing lead nowhere
        try:
            is_bounded = self._is_bounded(reference)
            vertex = _first_found(search, exact, starts, is_bounded=is_bounded)
        except SolverError as problem:
            if before is None or problem.status is not Status.FAILED:
                raise
            return before
        self.add(vertex.pool[~self.contains(vertex.pool)])
        solution = _of_vertex(self, vertex, moments, exact)
        if before is not None and not _worse(before.audit, solution.audit):
            return before
        self._refines, self._basic = True, vertex.rows
        return solution

    def _with_all_that_matter(
        self, solution: AlpSolution, moments: FloatArray, reference: FloatArray | None
    ) -> AlpSolution:
        """Bring back functions that were dropped as dependent although they change the answer.

        Where the dual satisfies the equation of a dropped function, too, no coefficient of that
        function makes the objective larger.
        """
        exact = None if reference is None else self.rows.exact_moments(reference)
        if exact is None:  # rows or moments are rounded, and rounding is no reason
            return solution
        while solution.proven and self._can_refine:
            dropped = np.setdiff1d(np.arange(self.rows.n_basis), self._columns)
            missed = dropped[self._missed(solution, exact)[dropped]] if len(dropped) else dropped
            if len(missed) == 0:
                break
            self.frame.check_unbounded(missed)
            before = self._columns, self._basic, self._refines
            self._columns = np.union1d(self._columns, missed)
            try:
                fuller = self._refined(moments, reference, None)
                gain = fuller.objective - solution.objective
                better = gain > self._noise(fuller) - self._noise(solution)
            except SolverError:
                gain, better = np.inf, False
            if not better:
                self._columns, self._basic, self._refines = before
                return replace(solution, given_up=gain)
            solution = fuller
        return solution

    def _with_nothing_open(self, solution: AlpSolution) -> AlpSolution:
        """Decide the coefficients that the weights leave open: the dual stays as it is."""
        if not (self._can_refine and solution.proven and solution.audit.passed):
            return solution
        bounds = self.raw_bounds, self.bound_cost
        coef = open_coefficients.decided(self.rows, self._columns, bounds, solution)
        if coef is None:
            return solution
        found = self.scan(solution.moments, coef.high)
        violation, relative = self._violation(coef.high, found)
        audit = replace(solution.audit, violation=violation, relative_violation=relative)
        objective = dot(doubled(solution.moments), coef)
        size = abs(solution.objective) + float(solution.dual.sum()) * self.lp.cost_unit
        if not audit.passed or abs(objective - solution.objective) > tolerances.OPTIMALITY * size:
            return solution
        return replace(solution, coef=coef.high, audit=audit, passes=solution.passes + 1)

    def _noise(self, solution: AlpSolution) -> float:
        """Return what rounding can take from an objective: what the dual pays for the rows' own."""
        used = solution.dual > 0.0
        raw = self.rows.rows(solution.tight[used])[0]
        terms = np.asarray(abs(raw) @ np.abs(solution.coef))
        return _COEFFICIENT * float(solution.dual[used] @ terms)

    def _missed(self, solution: AlpSolution, moments: Doubled) -> BoolArray:
        """Return which equations (K,) of the dual do not hold by more than rounding."""
        used = solution.dual > 0.0
        bounds = self.raw_bounds[self.raw_bounds @ solution.coef >= self.bound_cost]
        rows = stacked(self.rows.exact_rows(solution.tight[used]), doubled(bounds)).transposed
        dual = doubled(np.append(solution.dual[used], np.zeros(len(bounds))))
        scale = np.abs(rows.high).max(axis=1, initial=0.0)
        scale = np.where(scale > 0.0, scale, 1.0)
        own, scaled = self._columns, rows.high / scale[:, None]
        for _ in range(_CORRECTIONS):
            error = subtract(moments, product(rows, dual)).high / scale
            step = np.linalg.lstsq(scaled[own], error[own])[0]
            dual = add(dual, doubled(np.asarray(step, dtype=np.float64)))
        size = np.abs(rows.high) @ np.abs(dual.high) + np.abs(moments.high)
        error = np.abs(subtract(moments, product(rows, dual)).high)
        relative = error / np.where(size > 0.0, size, 1.0)
        return np.asarray(relative > _MATTERS + 10.0 * float(relative[own].max(initial=0.0)))

    def contains(self, keys: IntArray) -> BoolArray:
        """Return which keys are rows of the master program already."""
        return np.isin(keys, self._keys)

    def add(self, keys: IntArray) -> None:
        """Add rows to the master program."""
        raw, cost = self.rows.rows(keys)
        self.lp.add(self.coordinates.rows(raw), cost)
        self._keys = np.append(self._keys, keys)

    def trim(self, needed: IntArray) -> None:
        """Forget rows when there are too many, keeping the needed positions and the newest."""
        if len(self._keys) > _MAX_POOL:
            newest = np.arange(len(self._keys) - _MAX_POOL // 2, len(self._keys))
            wanted = np.union1d(needed[needed >= 0], newest)
            n = self.n_bounds
            self.lp.keep(np.concatenate([np.arange(n), wanted + n]))
            self._keys = self._keys[wanted]

    def remember(self, basic: IntArray) -> None:
        """Keep the keys of the last basis: where a solve with twice the digits would begin."""
        self._basic = basic

    def exact_rows(self, positions: IntArray) -> Doubled:
        """Return rows (n, K) of the master, bounds first, to twice the digits."""
        n = self.n_bounds
        keys = self._keys[positions[positions >= n] - n]
        return stacked(
            doubled(self.raw_bounds[positions[positions < n]]), self.rows.exact_rows(keys)
        )

    def scan(self, moments: FloatArray, coef: FloatArray) -> Separation:
        """Look at all rows for those that coefficients violate most."""
        unit = (1.0 - self.rows.discount) * abs(float(moments @ coef))
        # Where an objective of zero leaves no scale, the costs give one.
        rounding = tolerances.ROUNDING / tolerances.FEASIBILITY * self.lp.cost_unit
        return self.rows.separate(coef, unit + rounding)

    def audit(
        self,
        moments: Doubled,
        coef: Doubled,
        keys: IntArray,
        dual: FloatArray,
        at_bound: FloatArray,
        found: Separation,
        noise: FloatArray,
    ) -> Audit:
        """Return how far an answer is from feasible and optimal, on unscaled data.

        `found` is the last look at all rows, and `noise` (K,) the scale below which an error of the
        dual's equations is rounding.
        """
        used = dual > 0.0
        raw, cost = self.rows.rows(keys[used])
        size = abs(raw).T @ dual[used] + np.abs(moments.high) + noise
        error = np.abs(raw.T @ dual[used] + self.raw_bounds.T @ at_bound - moments.high)
        objective = dot(moments, coef)
        dual_terms = np.append(cost * dual[used], self.bound_cost * at_bound)
        rounding = tolerances.ROUNDING / tolerances.OPTIMALITY * self.lp.cost_unit
        scale = max(abs(objective), float(np.abs(dual_terms).sum()))
        scale += max(rounding * float(dual.sum()), np.finfo(float).tiny)
        relative = error / np.where(size > 0.0, size, 1.0)
        violation, relative_violation = self._violation(coef.high, found)
        return Audit(
            violation=violation,
            relative_violation=relative_violation,
            dual_residual=float(np.max(relative[self._columns])),
            gap=abs(objective - float(dual_terms.sum())) / scale,
        )

    def _violation(self, coef: FloatArray, found: Separation) -> tuple[float, float]:
        """Return the largest violation, in units of cost and relative to the rows' scales."""
        close, cost = self.rows.rows(found.close)
        slack = cost - close @ coef
        if (slack < -tolerances.FEASIBILITY * found.close_size).any():
            # Rounding is no violation: neither that of the sum nor that of the coefficients.
            slack = subtract(
                doubled(cost), product(self.rows.exact_rows(found.close), doubled(coef))
            ).high
        rounding = tolerances.ROUNDING / tolerances.FEASIBILITY * (abs(close) @ np.abs(coef))
        relative = slack / (found.close_size + rounding)
        largest = -float(slack.min())
        if found.proven:
            return max(largest, 0.0), max(0.0, -float(relative.min()))
        return max(found.violation, largest), max(0.0, -float(relative.min()))

    @property
    def columns(self) -> IntArray:
        """The basis functions that take part: none that depends on earlier ones."""
        return self._columns

    @property
    def keys(self) -> IntArray:
        """Keys of the Bellman rows in the master program; the bound rows stand before them."""
        return self._keys

    def _start(self, keys: IntArray, factor: FloatArray | None) -> None:
        """Set up coordinates and an empty master, then load the bounds and the rows of `keys`."""
        self.coordinates = self.frame.coordinates(factor)
        raw, cost = self.rows.rows(keys)
        self.lp = MasterLp(self.coordinates.rank, cost_unit(cost))
        self.bound_rows, self.bound_cost = self.frame.bounds(self.coordinates)
        self.n_bounds = len(self.bound_cost)
        self.raw_bounds = self.frame.raw_bounds
        self.lp.add(self.bound_rows, self.bound_cost)
        self.lp.add(self.coordinates.rows(raw), cost)
        self._keys = keys


class _UnfitError(Exception):
    """The coordinates are too far from the answer's scale to decide anything."""


class _Attempt:
    """One run of the cutting-plane loop in fixed coordinates."""

    def __init__(
        self, program: AlpProgram, moments: FloatArray, reference: FloatArray | None
    ) -> None:
        self.program = program
        self.moments = moments
        self.reference = reference
        self.inner_moments = program.coordinates.moments(moments)
        self.passes = 0
        self.rounds = 0
        self._basis: tuple[Matrix, FloatArray] = (np.zeros((0, program.rows.n_basis)), np.zeros(0))

    def basis_factor(self) -> FloatArray:
        """Return the rows (m, K) of the last basis, each divided by the size of its terms."""
        rows, coef = self._basis
        dense = _dense(rows)
        terms = np.abs(dense) @ np.abs(coef)
        return np.asarray(dense / np.where(terms > 0.0, terms, 1.0)[:, None])

    def run(self) -> AlpSolution:
        program, lp = self.program, self.program.lp
        lp.set_moments(self.inner_moments)
        if program.unexplored:
            # A few rows may not bound the program at all. Phase one says so at once, where the
            # solver may search for long, or stop without an answer.
            self._reach()
            program.unexplored = False
        for self.rounds in range(1, program.most_rounds + 1):
            answer = lp.solve()
            if answer.status in (Status.UNBOUNDED, Status.FAILED):
                # Without bounds, and with rows that do not tell the basis functions apart, the
                # solver may also stop without an answer: phase one tells what is missing.
                if self._reach():
                    continue
                answer = lp.solve(loose=True)
            if answer.status is Status.FAILED:
                raise _UnfitError  # with the rows found so far a fresh start often succeeds
            if answer.status is not Status.OPTIMAL:
                raise SolverError(answer.status)
            inner, basic, multipliers = self._sharpened(answer.coef, answer.basic)
            found = self._scan(program.coordinates.coef(inner))
            violated = self._violated(inner, found.close)
            fresh = violated[~program.contains(violated)]
            if len(fresh) == 0 and len(violated) > 0:
                # The solver stopped short: its tolerance is wider than the rounding error.
                inner, basic, multipliers, found = self._exchanged(inner, basic, multipliers, found)
                violated = self._violated(inner, found.close)
                fresh = violated[~program.contains(violated)]
            program.add(fresh)
            if len(fresh) == 0:
                # The nearest other rows are what the next weights are likely to need.
                program.add(found.close[~program.contains(found.close)])
                break
        else:
            raise SolverError(
                Status.FAILED, f"no answer after {self.rounds} rounds of row generation"
            )
        solution = self._solution(inner, basic, multipliers, found)
        program.trim(basic - program.n_bounds)
        return solution

    def _reach(self) -> bool:
        """Add rows until the moments can be reached, or show that no rows ever will.

        Return whether any were added.
        """
        program = self.program
        for turn in range(program.most_rounds):
            distance, direction = program.lp.direction()
            if distance <= _REACHED:
                return turn > 0
            coef = program.coordinates.coef(direction)
            # The growth is the scale of a direction: rows that are zero up to rounding must not
            # crowd out those that limit it.
            unit = (1.0 - program.rows.discount) * distance
            found = program.rows.separate(coef, unit, homogeneous=True)
            self.passes += 1
            fresh = self._violated(direction, found.close, homogeneous=True)
            fresh = fresh[~program.contains(fresh)]
            if len(fresh) == 0:
                if distance <= CLEAR_GROWTH * np.abs(self.inner_moments).sum():
                    raise _UnfitError
                raise SolverError(Status.UNBOUNDED, ray_text(program.rows.names, coef))
            program.add(fresh)
        raise SolverError(Status.FAILED, "the rows that bound the program were not found")

    def _sharpened(
        self, inner: FloatArray, basic: IntArray
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        rows, cost = self._master_rows(basic)
        inner, multipliers = sharpen(rows, cost, self.inner_moments, inner)
        return inner, basic, multipliers

    def _exchanged(
        self, inner: FloatArray, basic: IntArray, multipliers: FloatArray, found: Separation
    ) -> tuple[FloatArray, IntArray, FloatArray, Separation]:
        """Swap violated rows of the master into the basis, one by one, until none is left."""
        program = self.program
        for _ in range(_MAX_EXCHANGES):
            violated = self._violated(inner, found.close)
            inside = violated[program.contains(violated)]
            if len(inside) == 0:
                break
            entering = program.n_bounds + int(np.flatnonzero(program.keys == inside[0])[0])
            leaving = leaving_row(
                self._master_rows(basic)[0], multipliers, self._master_rows(np.array([entering]))[0]
            )
            if leaving is None:
                break
            swapped = np.sort(np.append(np.delete(basic, leaving), entering))
            inner, basic, multipliers = self._sharpened(inner, swapped)
            found = self._scan(program.coordinates.coef(inner))
        return inner, basic, multipliers, found

    def _master_rows(self, positions: IntArray) -> tuple[Matrix, FloatArray]:
        """Return rows of the master, bounds first, in its coordinates."""
        program = self.program
        bounds = positions[positions < program.n_bounds]
        keys = program.keys[positions[positions >= program.n_bounds] - program.n_bounds]
        raw, cost = program.rows.rows(keys)
        rows = program.coordinates.rows(raw)
        if len(bounds) == 0:
            return rows, cost
        stack = sparse.vstack if sparse.issparse(rows) else np.vstack
        return stack([program.bound_rows[bounds], rows]), np.append(
            program.bound_cost[bounds], cost
        )

    def _scan(self, coef: FloatArray) -> Separation:
        self.passes += 1
        return self.program.scan(self.moments, coef)

    def _solution(
        self, inner: FloatArray, basic: IntArray, multipliers: FloatArray, found: Separation
    ) -> AlpSolution:
        program = self.program
        n_bounds = program.n_bounds
        in_bounds = basic < n_bounds
        basic_keys = program.keys[basic[~in_bounds] - n_bounds]
        tight, tight_rows = self._tight(inner, found.near, basic_keys)
        coef = self._corrected(program.coordinates.coef(inner), basic)
        multipliers = self._corrected_dual(multipliers, basic)
        self._basis = (program.rows.rows(basic_keys)[0], coef.high)
        program.remember(basic_keys)
        bound_slack = _relative_slack(program.bound_rows, program.bound_cost, inner)
        active = np.flatnonzero(bound_slack <= tolerances.TIGHT)
        dual = _placed(tight, basic_keys, multipliers[~in_bounds])
        at_bound = np.zeros(n_bounds)
        at_bound[basic[in_bounds]] = np.maximum(multipliers[in_bounds], 0.0)
        free = np.isin(tight, basic_keys).all() and np.isin(active, basic[in_bounds]).all()
        return AlpSolution(
            status=Status.OPTIMAL,
            coef=coef.high,
            objective=dot(doubled(self.moments), coef),
            moments=self.moments,
            tight=tight,
            tight_rows=tight_rows,
            tight_cost=program.rows.rows(tight)[1],
            bound_rows=_dense(program.bound_rows[active]),
            bound_cost=program.bound_cost[active],
            inner_moments=self.inner_moments,
            moment_terms=program.coordinates.moment_terms(self.moments),
            dual=dual,
            unique=bool(free),
            columns=program.columns,
            audit=program.audit(
                doubled(self.moments), coef, tight, dual, at_bound, found, self._noise(tight, dual)
            ),
            passes=self.passes,
            rounds=self.rounds,
            n_rows=len(program.keys),
            cost_unit=program.lp.cost_unit,
            proven=found.proven,
            seconds=0.0,
        )

    def _corrected(self, coef: FloatArray, basic: IntArray) -> Doubled:
        """Return the coefficients (K,) that solve the basis's equations, to twice the digits.

        They are the same on every machine, whatever the rounding errors on the way to the basis.
        """
        program = self.program
        found = doubled(coef)
        if program.coordinates.transform is None:
            return found
        inner, cost = self._master_rows(basic)
        size = np.abs(inner).max(axis=1)
        exact = program.exact_rows(basic)
        for _ in range(_CORRECTIONS):
            error = subtract(doubled(cost), product(exact, found)).high
            step = np.linalg.lstsq(inner / size[:, None], error / size, rcond=1e-15)[0]
            found = add(found, doubled(program.coordinates.coef(step)))
        return found

    def _corrected_dual(self, multipliers: FloatArray, basic: IntArray) -> FloatArray:
        """Return the multipliers of a basis, with twice the digits where rounding moves them."""
        coordinates = self.program.coordinates
        if coordinates.transform is None or len(basic) == 0:
            return multipliers
        inner = self._master_rows(basic)[0]
        size = np.abs(inner).max(axis=1)
        equations = (inner / size[:, None]).T
        rounding = np.finfo(float).eps * coordinates.moment_terms(self.moments)
        moved = np.abs(np.linalg.pinv(equations)) @ rounding / size
        if (moved <= _MOVED * np.abs(multipliers).max()).all():
            return multipliers
        exact = exactly(self.program.rows, self.moments, self.reference)
        rows, found = self.program.exact_rows(basic).transposed, doubled(multipliers)
        for _ in range(_CORRECTIONS):
            error = coordinates.moments(subtract(exact, product(rows, found)).high)
            step = np.linalg.lstsq(equations, error, rcond=1e-15)[0] / size
            found = add(found, doubled(step))
        return found.high

    def _violated(
        self, inner: FloatArray, candidates: IntArray, *, homogeneous: bool = False
    ) -> IntArray:
        """Return which candidates are violated beyond rounding."""
        _, slack = self._slacks(inner, candidates, homogeneous=homogeneous)
        return candidates[slack < -tolerances.TIGHT]

    def _tight(
        self, inner: FloatArray, candidates: IntArray, basic: IntArray
    ) -> tuple[IntArray, Matrix]:
        """Return which rows are tight: those of the basis, and what candidates are; their rows."""
        keys = np.union1d(candidates, basic)
        rows, slack = self._slacks(inner, keys)
        tight = np.flatnonzero((slack <= tolerances.TIGHT) | np.isin(keys, basic))
        return keys[tight], rows[tight]

    def _slacks(
        self, inner: FloatArray, keys: IntArray, *, homogeneous: bool = False
    ) -> tuple[Matrix, FloatArray]:
        """Return rows and their slacks, relative to the size of the terms, to full precision."""
        raw, cost = self.program.rows.rows(keys)
        cost = np.zeros(len(keys)) if homogeneous else cost
        rows = self.program.coordinates.rows(raw)
        unit = 0.0 if homogeneous else self.program.lp.cost_unit
        return rows, _relative_slack(rows, cost, inner, unit)

    def _noise(self, keys: IntArray, dual: FloatArray) -> FloatArray:
        """Return the scale (K,) below which an error of the equations is rounding.

        The equations are solved in the program's coordinates, so an equation whose own terms are
        zero or nearly so still carries the rounding error of the others.
        """
        coordinates = self.program.coordinates
        raw = self.program.rows.rows(keys)[0]
        terms = abs(coordinates.rows(raw)).T @ dual + np.abs(self.inner_moments)
        share = tolerances.ROUNDING / tolerances.OPTIMALITY
        return share * float(terms.max()) * coordinates.spread


def _first_found(
    search: VertexSearch,
    moments: Doubled,
    starts: list[tuple[IntArray, IntArray]],
    *,
    is_bounded: bool,
) -> Vertex:
    """Return the optimal vertex from the first pool and basis that lead to it."""
    lost = {Status.FAILED, Status.UNBOUNDED} if is_bounded else {Status.FAILED}
    problem: SolverError | None = None
    for pool, basic in starts:
        try:
            return search.run(moments, pool, basic)
        except SolverError as failure:
            if failure.status not in lost:
                raise
            problem = failure
    assert problem is not None
    raise SolverError(Status.FAILED, problem.detail) from problem


def exactly(rows: RowSource, moments: FloatArray, weights: FloatArray | None) -> Doubled:
    """Return the moments (K,) of weights to twice the digits, where the weights are known."""
    exact = None if weights is None else rows.exact_moments(weights)
    if exact is None:
        return doubled(moments)
    rounding = 1e-12 * np.abs(exact.high).max()
    same = np.allclose(exact.high, moments, rtol=1e-9, atol=rounding)
    return exact if same else doubled(moments)


def _of_vertex(
    program: AlpProgram, vertex: Vertex, moments: FloatArray, exact: Doubled
) -> AlpSolution:
    """Return what a vertex found with twice the digits says; coordinates are its basis's rows."""
    rows, coef = program.rows, vertex.coef
    found = program.scan(moments, coef.high)
    keys = np.union1d(found.near, vertex.rows)
    shares, cost = vertex.shares(rows.exact_rows(keys)), rows.rows(keys)[1]
    slack = subtract(doubled(cost), product(rows.exact_rows(keys), coef)).high
    basic_cost = np.zeros(len(vertex.inner))
    basic_cost[vertex.is_row] = rows.rows(vertex.rows)[1]
    basic_cost[~vertex.is_row & ~vertex.is_unit] = program.bound_cost[vertex.bounds]
    size = np.abs(cost) + np.abs(shares) @ np.abs(basic_cost)
    size += tolerances.ROUNDING * program.lp.cost_unit
    is_tight = (slack <= tolerances.TIGHT * size) | np.isin(keys, vertex.rows)
    tight = keys[is_tight]
    dual = _placed(tight, vertex.rows, vertex.dual)
    at_bound = np.zeros(program.n_bounds)
    at_bound[vertex.bounds] = vertex.push
    bounds = program.raw_bounds
    bound_slack = program.bound_cost - bounds @ coef.high
    active = np.flatnonzero(
        bound_slack
        <= tolerances.TIGHT * (np.abs(program.bound_cost) + np.abs(bounds) @ np.abs(coef.high))
    )
    free = np.isin(tight, vertex.rows).all() and np.isin(active, vertex.bounds).all()
    return AlpSolution(
        status=Status.OPTIMAL,
        coef=coef.high,
        objective=dot(exact, coef),
        moments=moments,
        tight=tight,
        tight_rows=shares[is_tight],
        tight_cost=cost[is_tight],
        bound_rows=vertex.shares(doubled(bounds[active])),
        bound_cost=program.bound_cost[active],
        inner_moments=vertex.inner,
        moment_terms=np.abs(vertex.inner),
        dual=dual,
        unique=bool(free),
        columns=vertex.columns,
        audit=program.audit(exact, coef, tight, dual, at_bound, found, np.zeros(rows.n_basis)),
        passes=vertex.passes,
        rounds=vertex.steps,
        n_rows=len(vertex.pool),
        cost_unit=program.lp.cost_unit,
        proven=found.proven,
        seconds=0.0,
    )


def _placed(keys: IntArray, basic: IntArray, multipliers: FloatArray) -> FloatArray:
    """Return the dual (n,) of rows with sorted keys from the multipliers of a basis."""
    dual = np.zeros(len(keys))
    dual[np.searchsorted(keys, basic)] = np.maximum(multipliers, 0.0)
    return dual


def _relative_slack(
    rows: Matrix, cost: FloatArray, inner: FloatArray, unit: float = 0.0
) -> FloatArray:
    """Return the slacks of rows, relative to the size of the terms they are made of."""
    # Terms that cancel, or are all zero, still carry the rounding error of the coefficients, which
    # is at least that of a typical cost.
    reach = abs(rows) @ np.full(len(inner), np.abs(inner).max())
    rounding = np.finfo(float).eps / tolerances.TIGHT * (reach + unit)
    terms = np.abs(cost) + abs(rows) @ np.abs(inner) + rounding
    return np.asarray((cost - rows @ inner) / np.where(terms > 0.0, terms, 1.0))


def _dense(rows: Matrix) -> FloatArray:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _worse(first: Audit, second: Audit) -> bool:
    """Return whether the first audit is worse than the second."""

    def size(audit: Audit) -> float:
        return max(
            audit.relative_violation / tolerances.FEASIBILITY,
            audit.dual_residual / tolerances.OPTIMALITY,
            audit.gap / tolerances.OPTIMALITY,
        )

    return size(first) > size(second)
