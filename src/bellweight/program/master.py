"""The master linear program, solved by HiGHS.

The master is kept in its dual form, with one column per Bellman row and one equation per basis
function:

    min cost' lambda   s.t.   rows' lambda = moments,   lambda >= 0.

The multipliers of the equations are the coefficients. In this form a new Bellman row is a new
column (primal simplex goes on from the last basis), new moments are a new right-hand side (dual
simplex goes on), and the basis has as many rows as there are basis functions. Columns are scaled to
largest entry one, costs and moments to units the caller gives.

A right-hand side that no combination of the columns reaches means that the coefficients are not
bounded by the rows at hand. `direction` then solves the phase-one problem, whose multipliers are a
direction in which the objective grows without limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.status import SolverError, Status

_MAX_STEPS = 2_000  # of the simplex method, and this many more for each basis function:
_MAX_STEPS_EACH = 50  # some ill-conditioned programs keep it going round without end
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

    def __init__(self, n_basis: int, cost_unit: float = 1.0, moment_unit: float = 1.0) -> None:
        self.n_basis = n_basis
        self.cost_unit, self.moment_unit = cost_unit, moment_unit
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
        checked(
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
        checked(self._solver.deleteCols(len(dropped), dropped.astype(np.int32)))
        self.cost, self._scale = self.cost[wanted], self._scale[wanted]
        self._pending = _PRIMAL_SIMPLEX

    def set_moments(self, moments: FloatArray) -> None:
        """Change the right-hand side; the basis is kept."""
        index = np.arange(self.n_basis, dtype=np.int32)
        right = moments / self.moment_unit
        checked(self._solver.changeRowsBounds(self.n_basis, index, right, right))
        self._pending = _DUAL_SIMPLEX

    def solve(self, *, loose: bool = False) -> LpAnswer:
        """Solve from the last basis; on failure again from scratch, by either simplex method.

        `loose` is for moments that are reached only up to rounding, where the finest tolerance
        finds no feasible point: the answer is then that of the nearest moments, or whatever the
        solver has.
        """
        self._set_tolerance(tolerances.SOLVER_LOOSE if loose else tolerances.SOLVER)
        status = self._run(self._pending, loose=loose)
        self._set_tolerance(tolerances.SOLVER)
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
        distance = float(self._solver.getObjectiveValue()) * self.moment_unit
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
            ("primal_feasibility_tolerance", tolerances.SOLVER),
            ("dual_feasibility_tolerance", tolerances.SOLVER),
            ("small_matrix_value", tolerances.SOLVER_ENTRY),
            ("simplex_iteration_limit", _MAX_STEPS + _MAX_STEPS_EACH * self.n_basis),
        ):
            checked(solver.setOptionValue(option, value))
        k = self.n_basis
        empty = np.zeros(0, dtype=np.int32)
        checked(
            solver.addRows(
                k, np.zeros(k), np.zeros(k), 0, np.zeros(k, np.int32), empty, np.zeros(0)
            )
        )
        # One artificial column in each direction of each equation, closed except in phase one.
        index = np.repeat(np.arange(k), 2).astype(np.int32)
        signs = np.tile([1.0, -1.0], k)
        closed = np.zeros(2 * k)
        starts = np.arange(2 * k, dtype=np.int32)
        checked(solver.addCols(2 * k, closed, closed, closed, 2 * k, starts, index, signs))
        return solver

    def _set_tolerance(self, tolerance: float) -> None:
        checked(self._solver.setOptionValue("primal_feasibility_tolerance", tolerance))

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
        checked(self._solver.changeColsCost(total, np.arange(total, dtype=np.int32), cost))
        checked(self._solver.changeColsBounds(self._first, artificial, zero, upper))

    def _run(self, strategy: int, *, loose: bool = False) -> Status:
        """Run from the last basis; on failure again from scratch, by either simplex method."""
        status = self._run_once(strategy, loose=loose)
        for fallback in (_DUAL_SIMPLEX, _PRIMAL_SIMPLEX):
            if status is Status.FAILED:
                self._solver.clearSolver()
                status = self._run_once(fallback, loose=loose)
        return status

    def _run_once(self, strategy: int, *, loose: bool) -> Status:
        checked(self._solver.setOptionValue("simplex_strategy", strategy))
        self._solver.run()
        status = self._solver.getModelStatus()
        kinds = highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Status.UNBOUNDED
        if status == kinds.kUnbounded:
            return Status.INFEASIBLE
        # An answer of doubtful status is kept: the audit decides. Not if it is far from the
        # moments: going on from there would add rows without end.
        missed = self._solver.getInfo().max_primal_infeasibility > tolerances.SOLVER_MISSED
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
        checked(self._solver.addCols(1, scaled, zero, free, 0, none, none, np.zeros(0)))
        self.cost, self._scale = np.array([price]), np.ones(1)
        self.shares = np.zeros(0)

    def add_groups(self, shares: FloatArray) -> None:
        """Add groups without rows; a group's number is its place."""
        n = len(shares)
        if n:
            low, places = np.full(n, -_INFINITY), np.arange(n, dtype=np.int32)
            kappa = np.full(n, self._first, dtype=np.int32)
            checked(self._solver.addRows(n, low, np.zeros(n), n, places, kappa, -shares))
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


def checked(status: highspy.HighsStatus) -> None:
    """Raise where HiGHS refuses what it was told."""
    if status == highspy.HighsStatus.kError:
        raise SolverError(Status.FAILED, "the solver rejected the data")
