"""The smoothed program: rows may be violated, within a budget (Desai, Farias and Moallemi 2012).

    max moments' coef   s.t.   (row of (x, a)) coef <= cost + s(x),   s >= 0,
                               sum_x share(x) s(x) <= budget,   lower <= coef <= upper.

Its dual caps the mass of each state at its share of kappa, the price of the budget:

    min cost' lambda + budget kappa   s.t.   rows' lambda = moments,   lambda(x) <= kappa share(x).

The master grows by the rows that are violated beyond their state's s(x); a state's s(x) comes with
its first row. A state without a share has no price for its violations, so its rows are left out;
with a budget of zero the program is the plain one, with all its rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.status import SolverError, Status
from bellweight.program import Audit, ListedRows, Solution, cost_unit
from bellweight.program.basis_equations import sharpen
from bellweight.program.cutting_planes import CuttingPlanes
from bellweight.program.doubts import doubts_of
from bellweight.program.master import CappedLp, LpAnswer
from bellweight.program.simplex import ray_text
from bellweight.program.working_set import WorkingSet

_MAX_ROUNDS = 500
_MOST_ROWS = 2_000  # added in a round


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedSolution(Solution):
    """The answer of a smoothed program, with the `price` kappa of the budget.

    That is the rise of the objective per unit of budget. The dual is a basic one.
    """

    price: float


class SmoothedProgram:
    """The smoothed program of one row source, warm from one solve to the next.

    `shares` (S,) are those of the states that the rows come from, in their order.
    """

    def __init__(self, rows: ListedRows, budget: float, shares: FloatArray) -> None:
        self._working = _CappedRows(rows, budget, shares)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return self._working.rows.functions.dropped

    def solve(
        self,
        moments: FloatArray,
        reference: FloatArray | None = None,
        until: float | None = None,
    ) -> SmoothedSolution:
        """Return the audited optimum for these moments (K,)."""
        began = time.perf_counter()
        self._working.rows.functions.check_reachable(moments)
        loop = _SmoothedLoop(self._working, moments)
        return loop.solution(loop.run(), began)


class _CappedRows(WorkingSet):
    """The rows of the master; each state has a cap on its dual mass, from its first row on."""

    rows: ListedRows
    lp: CappedLp

    def __init__(self, rows: ListedRows, budget: float, shares: FloatArray) -> None:
        self.budget = budget
        self.pair_state = np.repeat(np.arange(len(shares)), np.diff(rows.pair_start))
        self.shares = np.where(shares > tolerances.LEAST_SHARE * shares.max(), shares, 0.0)
        self.group = np.full(len(shares), -1, dtype=np.int64)
        coordinates, seeds = rows.coordinates(shares), rows.seeds(shares)
        lp = CappedLp(coordinates.rank, budget, cost_unit(rows.pair_cost))
        # Bounds on coefficients are rows without a group: nothing buys their violation.
        super().__init__(rows, coordinates, seeds[self.shares[self.pair_state[seeds]] > 0.0], lp)

    @property
    def n_before(self) -> int:
        """Number of columns of the master that stand before the rows: kappa and the bounds."""
        return 1 + self.n_bounds

    def _load(self, keys: IntArray, rows: Matrix, cost: FloatArray) -> None:
        if len(keys) == 0:
            return
        states = np.unique(self.pair_state[keys])
        new = states[self.group[states] < 0]
        self.group[new] = len(self.lp.shares) + np.arange(len(new))
        self.lp.add_groups(self.shares[new])
        self.lp.add_grouped(rows, cost, self.group[self.pair_state[keys]])
        self.keys = np.append(self.keys, keys)


@dataclass(frozen=True, eq=False)
class _Vertex:
    """A vertex of the master: coefficients in its coordinates, rows with dual mass, kappa."""

    inner: FloatArray
    violation: FloatArray
    keys: IntArray
    dual: FloatArray
    at_bound: FloatArray
    price: float


class _SmoothedLoop(CuttingPlanes[_Vertex]):
    """One run of the cutting-plane loop for the smoothed program."""

    def __init__(self, working: _CappedRows, moments: FloatArray) -> None:
        inner_moments = working.coordinates.moments(moments)
        super().__init__(working.lp, inner_moments, _MAX_ROUNDS, unexplored=True)
        self.working = working
        self.moments = moments

    def look(self, answer: LpAnswer) -> tuple[_Vertex, IntArray]:
        working, rows = self.working, self.working.rows
        vertex = self._vertex(answer)
        coef = working.coordinates.coef(vertex.inner)
        allowed = vertex.violation[working.pair_state]
        excess = -self._slacks(coef) - allowed
        level = (1.0 - rows.discount) * abs(float(self.moments @ coef))
        return vertex, self._worst(
            excess, np.abs(rows.pair_cost) + allowed + level + working.cost_unit
        )

    def limiting(self, direction: FloatArray, distance: float) -> IntArray:
        working = self.working
        coef = working.coordinates.coef(direction[: working.coordinates.rank])
        growth = working.rows.pair_cost - self._slacks(coef)
        fresh = self._worst(growth, np.full(len(growth), distance))
        if len(fresh) == 0:
            raise SolverError(
                Status.UNBOUNDED,
                f"{ray_text(working.rows.names, coef)}: the rows of states with weight do not "
                "limit it, expected weights that cover where they lead, such as DIA() or "
                "FromPolicy(Uniform())",
            )
        return fresh

    def add(self, keys: IntArray) -> None:
        self.working.add(keys)

    def _worst(self, excess: FloatArray, size: FloatArray) -> IntArray:
        """Return the worst row of each state, of those states that are violated most."""
        working = self.working
        priced = working.shares[working.pair_state] > 0.0
        relative = np.where(priced, excess / size, -np.inf)
        relative[working.keys] = -np.inf
        violated = np.flatnonzero(relative > 0.1 * tolerances.FEASIBILITY)
        order = violated[np.argsort(-relative[violated], kind="stable")]
        # With a state's worst row in the master, its others are seldom violated.
        _, first = np.unique(working.pair_state[order], return_index=True)
        return order[np.sort(first)[:_MOST_ROWS]]

    def _slacks(self, coef: FloatArray) -> FloatArray:
        self.passes += 1
        return np.concatenate([slack for _, slack in self.working.rows.all_slacks(coef)])

    def _vertex(self, answer: LpAnswer) -> _Vertex:
        """Solve the equations of an answer's basis again, to full precision."""
        working, lp = self.working, self.working.lp
        rank, n_before = working.coordinates.rank, working.n_before
        capped = lp.capped()
        columns = np.append(np.arange(rank), rank + capped)
        solution, multipliers = _sharpened(
            self._basis(answer.basic, capped),
            lp.cost[answer.basic],
            np.append(self.inner_moments, np.zeros(len(capped))),
            answer.coef[columns],
        )
        paid = np.zeros(len(lp.shares))
        paid[capped] = np.maximum(-solution[rank:], 0.0)
        known = working.group >= 0
        violation = np.zeros(len(working.shares))
        violation[known] = paid[working.group[known]]
        all_columns = np.zeros(lp.n_rows)
        all_columns[answer.basic] = np.maximum(multipliers, 0.0)
        dual = all_columns[n_before:]
        used = np.flatnonzero(dual > 0.0)
        order = used[np.argsort(working.keys[used])]
        return _Vertex(
            inner=solution[:rank],
            violation=violation,
            keys=working.keys[order],
            dual=dual[order],
            at_bound=all_columns[1:n_before],
            price=float(all_columns[0]),
        )

    def _basis(self, basic: IntArray, capped: IntArray) -> sparse.csr_array:
        """Return the columns of a basis as rows, over the coefficients and the active caps."""
        working = self.working
        n_before, rank = working.n_before, working.coordinates.rank
        bounds = basic[(basic > 0) & (basic < n_before)] - 1
        keys = working.keys[basic[basic >= n_before] - n_before]
        inner = working.coordinates.rows(working.rows.rows(keys)[0])
        place = np.full(len(working.lp.shares), -1)
        place[capped] = np.arange(len(capped))
        column = place[working.group[working.pair_state[keys]]]
        held = np.flatnonzero(column >= 0)
        entries = (np.ones(len(held)), (held, column[held]))
        member = sparse.csr_array(entries, shape=(len(keys), len(capped)))
        free = sparse.csr_array((len(bounds), len(capped)))
        kappa = np.append(np.zeros(rank), -working.lp.shares[capped])
        parts = [
            sparse.csr_array(kappa[None, :])[: int(0 in basic)],
            sparse.hstack([sparse.csr_array(working.bound_rows[bounds]), free]),
            sparse.hstack([sparse.csr_array(inner), member]),
        ]
        return sparse.vstack(parts, format="csr")

    def solution(self, found: _Vertex, began: float) -> SmoothedSolution:
        """Return the answer with its audit, on unscaled data; `began` is when the solve did."""
        working, rows = self.working, self.working.rows
        coef = working.coordinates.coef(found.inner)
        excess = np.maximum(-self._slacks(coef), 0.0)
        needed = np.maximum.reduceat(excess, rows.pair_start[:-1])
        spent = float(working.shares @ needed)
        objective = float(self.moments @ coef)
        audit = Audit(
            violation=float(excess.max(initial=0.0)),
            # What the budget allows is no fault; only what goes beyond it is.
            relative_violation=max(0.0, spent - working.budget)
            / (working.budget + working.cost_unit + (1.0 - rows.discount) * abs(objective)),
            dual_residual=self._dual_residual(found),
            gap=self._gap(found, objective),
        )
        return SmoothedSolution(
            status=Status.OPTIMAL if audit.passed else Status.INACCURATE,
            doubts=doubts_of(audit),
            coef=coef,
            objective=objective,
            moments=self.moments,
            audit=audit,
            passes=self.passes,
            rounds=self.rounds,
            n_rows=len(working.keys),
            keys=found.keys,
            dual=found.dual,
            dual_residual=audit.dual_residual,
            seconds=time.perf_counter() - began,
            allows_violations=True,
            price=found.price,
        )

    def _dual_residual(self, found: _Vertex) -> float:
        """Return the largest relative error of rows' dual = moments and of the caps."""
        working = self.working
        inner = working.coordinates.rows(working.rows.rows(found.keys)[0])
        bounds = working.bound_rows
        error = inner.T @ found.dual + bounds.T @ found.at_bound - self.inner_moments
        size = abs(inner).T @ found.dual + abs(bounds).T @ found.at_bound
        size = size + np.abs(self.inner_moments).max()
        states = working.pair_state[found.keys]
        mass = np.bincount(states, found.dual, minlength=len(working.shares))
        over = (mass - found.price * working.shares) / mass.sum()
        return float(max((np.abs(error) / size).max(), over.max(initial=0.0)))

    def _gap(self, found: _Vertex, objective: float) -> float:
        working = self.working
        cost = working.rows.rows(found.keys)[1]
        paid = np.concatenate(
            [
                cost * found.dual,
                working.bound_cost * found.at_bound,
                [found.price * working.budget],
            ]
        )
        rounding = tolerances.ROUNDING / tolerances.OPTIMALITY * working.cost_unit
        scale = max(abs(objective), float(np.abs(paid).sum())) + rounding * float(found.dual.sum())
        return abs(objective - float(paid.sum())) / max(scale, np.finfo(float).tiny)


def _sharpened(
    rows: sparse.csr_array, cost: FloatArray, moments: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    try:
        return sharpen(rows, cost, moments, start)
    except RuntimeError:
        # A basis that is singular up to rounding: least squares picks one of its solutions.
        return sharpen(rows.toarray(), cost, moments, start)
