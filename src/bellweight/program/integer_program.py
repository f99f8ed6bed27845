"""Linear programs over whole numbers: the most violated row of a linear model, a greedy action.

The matrix of an `IntegerProgram` stays, prices and limits change. It is solved as a linear program
where that is enough; its multipliers then prove a bound that can be checked without the solver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import highspy
import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, Matrix
from bellweight.common.status import Status
from bellweight.program.master import checked

_FEASIBLE = 2  # HiGHS's number for a solution that is feasible


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
        # Made once: for a small program they would take longer than to solve it.
        self._by_column = sparse.csr_array(self.rows.T)
        self._sizes, self._column_sizes = abs(self.rows), abs(self._by_column)
        self._row_index = np.arange(self.rows.shape[0], dtype=np.int32)
        self._column_index = np.arange(self.rows.shape[1], dtype=np.int32)
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
            # From a warm start the solver sometimes takes a feasible program for an infeasible one.
            self._relaxed.clearSolver()
            status = self._run(self._relaxed, None)
        if status is not Status.OPTIMAL:
            return Minimum(status, None, -np.inf)
        solution = self._relaxed.getSolution()
        point = np.array(solution.col_value)
        nearest = np.where(self.integer, np.round(point), point) + 0.0  # no -0.0
        whole = float(np.abs(point - nearest).max(initial=0.0)) <= tolerances.WHOLE
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
        margin = tolerances.INTEGER * (1.0 + self._sizes @ np.abs(point))
        inside = (values >= self.row_lower - margin) & (values <= self.row_upper + margin)
        near = tolerances.INTEGER * (1.0 + np.abs(point))
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
        reduced = price - self._by_column @ multipliers
        terms = self._column_sizes @ np.abs(multipliers) + np.abs(price)
        reduced = np.where(np.abs(reduced) <= tolerances.ROUNDING * terms, 0.0, reduced)
        side = np.where(multipliers > 0.0, self.row_lower, self.row_upper)
        edge = np.where(reduced > 0.0, self.lower, self.upper)
        return float(
            multipliers @ np.where(multipliers != 0.0, side, 0.0)
            + reduced @ np.where(reduced != 0.0, edge, 0.0)
        )

    def _solver(self, *, integer: bool) -> highspy.Highs:
        solver = highspy.Highs()
        tolerance = tolerances.INTEGER if integer else tolerances.SOLVER
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "on" if integer else "off"),
            ("primal_feasibility_tolerance", tolerance),
            ("dual_feasibility_tolerance", tolerance),
            ("mip_feasibility_tolerance", tolerances.INTEGER),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", tolerances.INTEGER),
        ):
            checked(solver.setOptionValue(option, value))
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
        checked(solver.passModel(lp))
        return solver

    def _set_limits(self, solver: highspy.Highs) -> None:
        m, n = self.rows.shape
        checked(solver.changeRowsBounds(m, self._row_index, self.row_lower, self.row_upper))
        checked(solver.changeColsBounds(n, self._column_index, self.lower, self.upper))

    def _set_price(self, solver: highspy.Highs, price: FloatArray) -> None:
        checked(solver.changeColsCost(len(price), self._column_index, price))

    @staticmethod
    def _run(solver: highspy.Highs, time_limit: float | None) -> Status:
        seconds = highspy.kHighsInf if time_limit is None else solver.getRunTime() + time_limit
        checked(solver.setOptionValue("time_limit", seconds))
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
