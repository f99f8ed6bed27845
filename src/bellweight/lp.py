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
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

from bellweight.checks import FloatArray, IntArray, Matrix
from bellweight.status import SolverError, Status

_TOLERANCE = 1e-10  # the tightest that HiGHS accepts
_LOOSE = 1e-8
_SMALLEST_ENTRY = 1e-12  # entries below this are dropped by HiGHS
_DUAL_SIMPLEX = 1
_PRIMAL_SIMPLEX = 4
_INFINITY = highspy.kHighsInf


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
        self._call(
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
        self._call(self._solver.deleteCols(len(dropped), dropped.astype(np.int32)))
        self.cost, self._scale = self.cost[wanted], self._scale[wanted]
        self._pending = _PRIMAL_SIMPLEX

    def set_moments(self, moments: FloatArray) -> None:
        """Change the right-hand side; the basis is kept."""
        index = np.arange(self.n_basis, dtype=np.int32)
        self._call(self._solver.changeRowsBounds(self.n_basis, index, moments, moments))
        self._pending = _DUAL_SIMPLEX

    def solve(self, *, loose: bool = False) -> LpAnswer:
        """Solve from the last basis; on failure again from scratch, by either simplex method.

        `loose` is for moments that are reached only up to rounding, where the finest tolerance
        finds no feasible point: the answer is then that of the nearest moments.
        """
        self._set_tolerance(_LOOSE if loose else _TOLERANCE)
        status = self._run(self._pending)
        for strategy in (_DUAL_SIMPLEX, _PRIMAL_SIMPLEX):
            if status is Status.FAILED:
                self._solver.clearSolver()
                status = self._run(strategy)
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
        ):
            self._call(solver.setOptionValue(option, value))
        k = self.n_basis
        empty = np.zeros(0, dtype=np.int32)
        self._call(
            solver.addRows(
                k, np.zeros(k), np.zeros(k), 0, np.zeros(k, np.int32), empty, np.zeros(0)
            )
        )
        # One artificial column in each direction of each equation, closed except in phase one.
        index = np.repeat(np.arange(k), 2).astype(np.int32)
        signs = np.tile([1.0, -1.0], k)
        closed = np.zeros(2 * k)
        starts = np.arange(2 * k, dtype=np.int32)
        self._call(solver.addCols(2 * k, closed, closed, closed, 2 * k, starts, index, signs))
        return solver

    def _set_tolerance(self, tolerance: float) -> None:
        self._call(self._solver.setOptionValue("primal_feasibility_tolerance", tolerance))

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
        self._call(self._solver.changeColsCost(total, np.arange(total, dtype=np.int32), cost))
        self._call(self._solver.changeColsBounds(self._first, artificial, zero, upper))

    def _run(self, strategy: int) -> Status:
        self._call(self._solver.setOptionValue("simplex_strategy", strategy))
        self._solver.run()
        status = self._solver.getModelStatus()
        kinds = highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Status.UNBOUNDED
        if status == kinds.kUnbounded:
            return Status.INFEASIBLE
        # An answer of doubtful status is kept when there is one: the audit decides.
        if status in (kinds.kOptimal, kinds.kUnknown):
            return Status.OPTIMAL
        return Status.FAILED

    def _basic(self) -> IntArray:
        """Return the Bellman rows in the basis."""
        status = self._solver.getBasis().col_status[self._first :]
        basic = highspy.HighsBasisStatus.kBasic
        return np.array([i for i, s in enumerate(status) if s == basic], dtype=np.int64)

    @staticmethod
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
