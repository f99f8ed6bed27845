"""The master linear program, solved by HiGHS; the only file that imports the solver.

The master is kept in its dual form, with one column per Bellman row and one equation per basis
function:

    min cost' lambda   s.t.   rows' lambda = moments,   lambda >= 0.

The multipliers of the equations are the coefficients. In this form a new Bellman row is a new
column (primal simplex goes on from the last basis), new moments are a new right-hand side (dual
simplex goes on), and the basis has as many rows as there are basis functions. Columns are scaled to
largest entry one, costs to a unit the caller gives.

A right-hand side that no combination of the columns reaches means that the coefficients are not
bounded by the rows at hand. `direction` then solves the phase-one problem, whose multipliers are a
direction in which the objective grows without limit.

`IntegerProgram` is the other kind of program: the most violated row of a linear model, or a greedy
action. Its matrix stays, prices and limits change. It is solved as a linear program where that is
enough, and comes with a bound that does not rest on the solver's word where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import highspy
import numpy as np
from scipy import sparse

from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.common.status import SolverError, Status

_TOLERANCE = 1e-10  # the tightest that HiGHS accepts
_MAX_STEPS = 2_000  # of the simplex method, and this many more for each basis function:
_MAX_STEPS_EACH = 50  # some ill-conditioned programs keep it going round without end
_LOOSE = 1e-8
_MISSED = 1.0  # moments are of size one: an answer that misses them by more has reached nothing
_SMALLEST_ENTRY = 1e-12  # entries below this are dropped by HiGHS
_DUAL_SIMPLEX = 1
_PRIMAL_SIMPLEX = 4
_INFINITY = highspy.kHighsInf
_FEASIBLE = 2  # HiGHS's number for a solution that is feasible
_MIP_TOLERANCE = 1e-9
_WHOLE = 1e-6  # a relaxed answer this close to whole numbers is rounded and checked


@dataclass(frozen=True, eq=False)
class LpAnswer:
    """What the solver returned: nothing here is trusted before the audit.

    `status` is OPTIMAL, UNBOUNDED (of the coefficients), INFEASIBLE or FAILED.
    """

    status: Status
    coef: FloatArray
    basic: IntArray


class MasterLp:
    """A growing linear program over K coefficients that stays warm between solves."""

    def __init__(self, n_basis: int, cost_unit: float = 1.0) -> None:
        self.n_basis = n_basis
        self.cost_unit = cost_unit
        self.cost = np.zeros(0)
        self._scale = np.zeros(0)
        self._pending = _PRIMAL_SIMPLEX
        self._solver = self._empty_solver()

    @property
    def n_rows(self) -> int:
        """Number of Bellman rows in the program."""
        return len(self.cost)

    def add(self, rows: Matrix, cost: FloatArray) -> None:
        """Add Bellman rows (n, K) with their costs (n,)."""
        if len(cost) == 0:
            return
        matrix = sparse.csr_array(rows)
        largest = np.maximum.reduceat(np.abs(matrix.data), matrix.indptr[:-1])
        scaled = matrix.data / np.repeat(largest, np.diff(matrix.indptr))
        n = len(cost)
        _call(
            self._solver.addCols(
                n,
                cost / (largest * self.cost_unit),
                np.zeros(n),
                np.full(n, _INFINITY),
                matrix.nnz,
                matrix.indptr[:-1].astype(np.int32),
                matrix.indices.astype(np.int32),
                scaled,
            )
        )
        self.cost = np.append(self.cost, cost)
        self._scale = np.append(self._scale, largest)
        self._pending = _PRIMAL_SIMPLEX

    def keep(self, wanted: IntArray) -> None:
        """Remove every row but the wanted ones."""
        dropped = np.setdiff1d(np.arange(self.n_rows), wanted) + self._first
        _call(self._solver.deleteCols(len(dropped), dropped.astype(np.int32)))
        self.cost, self._scale = self.cost[wanted], self._scale[wanted]
        self._pending = _PRIMAL_SIMPLEX

    def set_moments(self, moments: FloatArray) -> None:
        """Change the right-hand side; the basis is kept."""
        index = np.arange(self.n_basis, dtype=np.int32)
        _call(self._solver.changeRowsBounds(self.n_basis, index, moments, moments))
        self._pending = _DUAL_SIMPLEX

    def solve(self, *, loose: bool = False) -> LpAnswer:
        """Solve from the last basis; on failure again from scratch, by either simplex method.

        `loose` is for moments that are reached only up to rounding, where the finest tolerance
        finds no feasible point: the answer is then that of the nearest moments, or whatever the
        solver has.
        """
        self._set_tolerance(_LOOSE if loose else _TOLERANCE)
        status = self._run(self._pending, loose=loose)
        self._set_tolerance(_TOLERANCE)
        return LpAnswer(
            status=status,
            coef=np.array(self._solver.getSolution().row_dual) * self.cost_unit,
            basic=self._basic() if status is Status.OPTIMAL else np.zeros(0, dtype=np.int64),
        )

    def direction(self) -> tuple[float, FloatArray]:
        """Return how far the moments are from reach, and the direction (K,) that shows it.

        The direction d has |d| <= 1 and moments' d > 0 while rows d <= 0 for every row present.
        """
        self._set_phase(one=True)
        status = self._run(_PRIMAL_SIMPLEX)
        distance = float(self._solver.getObjectiveValue())
        direction = np.array(self._solver.getSolution().row_dual)
        self._set_phase(one=False)
        self._pending = _PRIMAL_SIMPLEX
        if status is not Status.OPTIMAL:
            raise SolverError(Status.FAILED, "the phase-one problem was not solved")
        return distance, direction

    @property
    def _first(self) -> int:
        """Index of the first Bellman row: the artificial columns stand before it."""
        return 2 * self.n_basis

    def _empty_solver(self) -> highspy.Highs:
        solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("threads", 1),
            ("primal_feasibility_tolerance", _TOLERANCE),
            ("dual_feasibility_tolerance", _TOLERANCE),
            ("small_matrix_value", _SMALLEST_ENTRY),
            ("simplex_iteration_limit", _MAX_STEPS + _MAX_STEPS_EACH * self.n_basis),
        ):
            _call(solver.setOptionValue(option, value))
        k = self.n_basis
        empty = np.zeros(0, dtype=np.int32)
        _call(
            solver.addRows(
                k, np.zeros(k), np.zeros(k), 0, np.zeros(k, np.int32), empty, np.zeros(0)
            )
        )
        # One artificial column in each direction of each equation, closed except in phase one.
        index = np.repeat(np.arange(k), 2).astype(np.int32)
        signs = np.tile([1.0, -1.0], k)
        closed = np.zeros(2 * k)
        starts = np.arange(2 * k, dtype=np.int32)
        _call(solver.addCols(2 * k, closed, closed, closed, 2 * k, starts, index, signs))
        return solver

    def _set_tolerance(self, tolerance: float) -> None:
        _call(self._solver.setOptionValue("primal_feasibility_tolerance", tolerance))

    def _set_phase(self, *, one: bool) -> None:
        artificial = np.arange(self._first, dtype=np.int32)
        total = self._first + self.n_rows
        cost = np.zeros(total)
        if one:
            cost[: self._first] = 1.0
        else:
            cost[self._first :] = self.cost / (self._scale * self.cost_unit)
        upper = np.full(self._first, _INFINITY if one else 0.0)
        zero = np.zeros(self._first)
        _call(self._solver.changeColsCost(total, np.arange(total, dtype=np.int32), cost))
        _call(self._solver.changeColsBounds(self._first, artificial, zero, upper))

    def _run(self, strategy: int, *, loose: bool = False) -> Status:
        """Run from the last basis; on failure again from scratch, by either simplex method."""
        status = self._run_once(strategy, loose=loose)
        for fallback in (_DUAL_SIMPLEX, _PRIMAL_SIMPLEX):
            if status is Status.FAILED:
                self._solver.clearSolver()
                status = self._run_once(fallback, loose=loose)
        return status

    def _run_once(self, strategy: int, *, loose: bool) -> Status:
        _call(self._solver.setOptionValue("simplex_strategy", strategy))
        self._solver.run()
        status = self._solver.getModelStatus()
        kinds = highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Status.UNBOUNDED
        if status == kinds.kUnbounded:
            return Status.INFEASIBLE
        # An answer of doubtful status is kept when there is one: the audit decides. Far from the
        # moments there is none, and going on from there would add rows without end.
        missed = self._solver.getInfo().max_primal_infeasibility > _MISSED
        if status == kinds.kOptimal or (status == kinds.kUnknown and (loose or not missed)):
            return Status.OPTIMAL
        return Status.FAILED

    def _basic(self) -> IntArray:
        """Return the Bellman rows in the basis."""
        status = self._solver.getBasis().col_status[self._first :]
        basic = highspy.HighsBasisStatus.kBasic
        return np.array([i for i, s in enumerate(status) if s == basic], dtype=np.int64)


class CappedLp(MasterLp):
    """The master of a program whose rows may be violated for a price.

    Rows come in groups, each with a share of one capacity kappa that is bought at a price:

        min cost' lambda + price kappa   s.t.   rows' lambda = moments,
            sum of lambda over group g <= share_g kappa,   lambda, kappa >= 0.

    The multipliers of the K equations are the coefficients; those of the groups, which come after
    them in an answer's `coef`, are minus the violations. Column 0 is kappa.
    """

    def __init__(self, n_basis: int, price: float, cost_unit: float = 1.0) -> None:
        super().__init__(n_basis, cost_unit)
        none = np.zeros(0, dtype=np.int32)
        scaled, zero, free = np.array([price / cost_unit]), np.zeros(1), np.array([_INFINITY])
        _call(self._solver.addCols(1, scaled, zero, free, 0, none, none, np.zeros(0)))
        self.cost, self._scale = np.array([price]), np.ones(1)
        self.shares = np.zeros(0)

    def add_groups(self, shares: FloatArray) -> None:
        """Add groups without rows; a group's number is its place."""
        n = len(shares)
        if n:
            low, places = np.full(n, -_INFINITY), np.arange(n, dtype=np.int32)
            kappa = np.full(n, self._first, dtype=np.int32)
            _call(self._solver.addRows(n, low, np.zeros(n), n, places, kappa, -shares))
            self.shares = np.append(self.shares, shares)
            self._pending = _PRIMAL_SIMPLEX

    def add_grouped(self, rows: FloatArray, cost: FloatArray, groups: IntArray) -> None:
        """Add Bellman rows (n, K) with their costs (n,) and the numbers of their groups (n,)."""
        n = len(cost)
        member = sparse.csr_array(
            (np.ones(n), groups, np.arange(n + 1)), shape=(n, len(self.shares))
        )
        self.add(sparse.hstack([sparse.csr_array(rows), member], format="csr"), cost)

    def capped(self) -> IntArray:
        """Return the groups whose cap is active in the last basis."""
        status = self._solver.getBasis().row_status[self.n_basis :]
        basic = highspy.HighsBasisStatus.kBasic
        return np.array([g for g, s in enumerate(status) if s != basic], dtype=np.int64)


def _call(status: highspy.HighsStatus) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(Status.FAILED, "the solver rejected the data")


def sharpen(
    rows: Matrix, cost: FloatArray, moments: FloatArray, coef: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and multipliers of a basis (m, K) to full precision.

    The solver's answer is exact only to its own tolerance. Solving the basis's own equations,
    rows coef = cost and rows' multipliers = moments, leaves rounding errors only. A basis with
    fewer rows than basis functions fixes only part of the coefficients; the rest keeps its value.
    """
    if rows.shape[0] == 0:
        return coef, np.zeros(0)
    if sparse.issparse(rows):
        return _sharpen_sparse(sparse.csr_array(rows), cost, moments, coef)
    size = np.abs(rows).max(axis=1)
    scaled, target = rows / size[:, None], cost / size
    multipliers = np.zeros(len(cost))
    for _ in range(2):
        coef = coef + np.linalg.lstsq(scaled, target - scaled @ coef, rcond=1e-15)[0]
        rest = moments - scaled.T @ multipliers
        multipliers = multipliers + np.linalg.lstsq(scaled.T, rest, rcond=1e-15)[0]
    return coef, multipliers / size


def leaving_row(rows: Matrix, multipliers: FloatArray, entering: Matrix) -> int | None:
    """Return which row of a basis (K, K) an entering row (1, K) replaces; None if it cannot.

    The ratio test of the simplex method: the multipliers stay non-negative.
    """
    if sparse.issparse(rows) or rows.shape[0] != rows.shape[1]:
        return None
    size = np.abs(rows).max(axis=1)
    share = np.linalg.lstsq((rows / size[:, None]).T, entering[0], rcond=None)[0] / size
    falling = share > 1e-12 * np.abs(share).max()
    if not falling.any():
        return None
    ratio = np.where(falling, np.maximum(multipliers, 0.0) / np.where(falling, share, 1.0), np.inf)
    return int(np.argmin(ratio))


def _sharpen_sparse(
    rows: sparse.csr_array, cost: FloatArray, moments: FloatArray, coef: FloatArray
) -> tuple[FloatArray, FloatArray]:
    if rows.shape[0] != rows.shape[1]:
        dense, multipliers = sharpen(rows.toarray(), cost, moments, coef)
        return dense, multipliers
    factor = sparse.linalg.splu(sparse.csc_matrix(rows))
    multipliers = np.zeros(len(cost))
    for _ in range(2):
        coef = coef + factor.solve(cost - rows @ coef)
        multipliers = multipliers + factor.solve(moments - rows.T @ multipliers, trans="T")
    return coef, multipliers


@dataclass(frozen=True, eq=False)
class Minimum:
    """The best point found (k,), None if there is none, and a lower bound on every point's value.

    `status` is OPTIMAL, INFEASIBLE, UNBOUNDED, TIME_LIMIT or FAILED. `multipliers` are those of the
    relaxation's rows: with them anybody can bound the minimum from below.
    """

    status: Status
    point: FloatArray | None
    bound: float
    multipliers: FloatArray | None = None


class IntegerProgram:
    """min price' z  s.t.  row_lower <= rows z <= row_upper,  lower <= z <= upper, z integer."""

    def __init__(
        self,
        rows: Matrix,
        row_lower: FloatArray,
        row_upper: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        integer: BoolArray,
    ) -> None:
        self.rows = sparse.csr_array(rows)
        self.row_lower, self.row_upper = np.array(row_lower), np.array(row_upper)
        self.lower, self.upper = np.array(lower), np.array(upper)
        self.integer = np.array(integer)
        self.is_network = is_network(self.rows)
        self._relaxed = self._solver(integer=False)
        self._exact: highspy.Highs | None = None

    def limit(
        self,
        *,
        row_lower: FloatArray | None = None,
        row_upper: FloatArray | None = None,
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
    ) -> None:
        """Change limits of rows or variables."""
        self.row_lower = self.row_lower if row_lower is None else row_lower
        self.row_upper = self.row_upper if row_upper is None else row_upper
        self.lower = self.lower if lower is None else lower
        self.upper = self.upper if upper is None else upper
        self._set_limits(self._relaxed)

    def minimise(self, price: FloatArray, time_limit: float | None = None) -> Minimum:
        """Return the minimum; the relaxation is tried first and often is enough."""
        unit = max(float(np.abs(price).max()), np.finfo(float).tiny)
        self._set_price(self._relaxed, price / unit)
        status = self._run(self._relaxed, None)
        if status is not Status.OPTIMAL:
            # From a warm start the solver now and then takes a feasible program for another.
            self._relaxed.clearSolver()
            status = self._run(self._relaxed, None)
        if status is not Status.OPTIMAL:
            return Minimum(status, None, -np.inf)
        solution = self._relaxed.getSolution()
        point = np.array(solution.col_value)
        nearest = np.where(self.integer, np.round(point), point) + 0.0  # no -0.0
        whole = float(np.abs(point - nearest).max(initial=0.0)) <= _WHOLE
        multipliers = np.array(solution.row_dual) * unit
        if whole and self._contains(nearest):
            bound = self._bound(price, multipliers)
            return Minimum(Status.OPTIMAL, nearest, bound, multipliers)
        return replace(self._integer(price, unit, time_limit), multipliers=multipliers)

    def _integer(self, price: FloatArray, unit: float, time_limit: float | None) -> Minimum:
        if self._exact is None:
            self._exact = self._solver(integer=True)
        solver = self._exact
        self._set_limits(solver)
        self._set_price(solver, price / unit)
        status = self._run(solver, time_limit)
        info = solver.getInfo()
        bound = float(info.mip_dual_bound) * unit
        if status not in (Status.OPTIMAL, Status.TIME_LIMIT):
            return Minimum(status, None, -np.inf)
        point = np.array(solver.getSolution().col_value)
        point = np.where(self.integer, np.round(point), point) + 0.0
        found = solver.getInfo().primal_solution_status == _FEASIBLE and self._contains(point)
        if status is Status.OPTIMAL and not found:
            return Minimum(Status.FAILED, None, bound)
        if status is Status.OPTIMAL:
            bound = min(bound, float(price @ point))
        return Minimum(status, point if found else None, bound)

    def _contains(self, point: FloatArray) -> bool:
        values = self.rows @ point
        margin = 1e-9 * (1.0 + abs(self.rows) @ np.abs(point))
        inside = (values >= self.row_lower - margin) & (values <= self.row_upper + margin)
        near = 1e-9 * (1.0 + np.abs(point))
        return bool(
            inside.all()
            and (point >= self.lower - near).all()
            and (point <= self.upper + near).all()
        )

    def _bound(self, price: FloatArray, multipliers: FloatArray) -> float:
        """Return the Lagrangian bound, which holds for any multipliers of the rows."""
        multipliers = np.where(
            (multipliers > 0.0) & np.isfinite(self.row_lower)
            | (multipliers < 0.0) & np.isfinite(self.row_upper),
            multipliers,
            0.0,
        )
        reduced = price - self.rows.T @ multipliers
        terms = abs(self.rows).T @ np.abs(multipliers) + np.abs(price)
        reduced = np.where(np.abs(reduced) <= 1e-14 * terms, 0.0, reduced)
        side = np.where(multipliers > 0.0, self.row_lower, self.row_upper)
        edge = np.where(reduced > 0.0, self.lower, self.upper)
        return float(
            multipliers @ np.where(multipliers != 0.0, side, 0.0)
            + reduced @ np.where(reduced != 0.0, edge, 0.0)
        )

    def _solver(self, *, integer: bool) -> highspy.Highs:
        solver = highspy.Highs()
        tolerance = _MIP_TOLERANCE if integer else _TOLERANCE
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "on" if integer else "off"),
            ("primal_feasibility_tolerance", tolerance),
            ("dual_feasibility_tolerance", tolerance),
            ("mip_feasibility_tolerance", _MIP_TOLERANCE),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", _MIP_TOLERANCE),
        ):
            _call(solver.setOptionValue(option, value))
        n, by_column = self.rows.shape[1], sparse.csc_array(self.rows)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, self.rows.shape[0]
        lp.col_cost_ = np.zeros(n)
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_, lp.row_upper_ = self.row_lower, self.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = by_column.indptr.astype(np.int32)
        lp.a_matrix_.index_ = by_column.indices.astype(np.int32)
        lp.a_matrix_.value_ = by_column.data
        if integer:
            kinds = highspy.HighsVarType
            lp.integrality_ = [kinds.kInteger if i else kinds.kContinuous for i in self.integer]
        _call(solver.passModel(lp))
        return solver

    def _set_limits(self, solver: highspy.Highs) -> None:
        m, n = self.rows.shape
        rows, columns = np.arange(m, dtype=np.int32), np.arange(n, dtype=np.int32)
        _call(solver.changeRowsBounds(m, rows, self.row_lower, self.row_upper))
        _call(solver.changeColsBounds(n, columns, self.lower, self.upper))

    def _set_price(self, solver: highspy.Highs, price: FloatArray) -> None:
        index = np.arange(len(price), dtype=np.int32)
        _call(solver.changeColsCost(len(price), index, price))

    @staticmethod
    def _run(solver: highspy.Highs, time_limit: float | None) -> Status:
        seconds = _INFINITY if time_limit is None else solver.getRunTime() + time_limit
        _call(solver.setOptionValue("time_limit", seconds))
        solver.run()
        kinds = highspy.HighsModelStatus
        return {
            kinds.kOptimal: Status.OPTIMAL,
            kinds.kInfeasible: Status.INFEASIBLE,
            kinds.kUnbounded: Status.UNBOUNDED,
            kinds.kUnboundedOrInfeasible: Status.UNBOUNDED,
            kinds.kTimeLimit: Status.TIME_LIMIT,
        }.get(solver.getModelStatus(), Status.FAILED)


def is_network(rows: Matrix) -> bool:
    """Return whether a matrix is that of a network, so that its vertices are whole numbers.

    At most two entries, each 1 or -1, per column, and the rows in two parts such that two entries
    of the same sign lie in different parts and two of opposite signs in the same part.
    """
    columns = sparse.csc_array(rows)
    columns.eliminate_zeros()
    if (np.diff(columns.indptr) > 2).any() or (np.abs(columns.data) != 1.0).any():
        return False
    parent = list(range(columns.shape[0]))
    parity = [0] * columns.shape[0]

    def root(row: int) -> tuple[int, int]:
        part = 0
        while parent[row] != row:
            part ^= parity[row]
            row = parent[row]
        return row, part

    for start, end in pairwise(columns.indptr):
        if end - start == 2:
            apart = int(columns.data[start] == columns.data[start + 1])
            (first, one), (second, two) = (root(int(r)) for r in columns.indices[start:end])
            if first != second:
                parent[first], parity[first] = second, one ^ two ^ apart
            elif one ^ two != apart:
                return False
    return True
