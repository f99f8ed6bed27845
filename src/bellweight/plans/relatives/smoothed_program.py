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
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import SolverError, Status
from bellweight.program import Audit, DecidedSolution, ListedRows, cost_unit
from bellweight.program.basis_equations import sharpen
from bellweight.program.coordinates import Frame
from bellweight.program.master import CappedLp
from bellweight.program.simplex import ray_text

_LEAST_SHARE = 1e-12  # of the largest share; the solver takes less for nothing
_MAX_ROUNDS = 500
_REACHED = 1e-9  # distance below which the phase-one problem counts as solved
_MOST_ROWS = 2_000  # added in a round


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedSolution(DecidedSolution):
    """The answer of a smoothed program: what was `spent` of the budget, and its price.

    `price` is kappa, the rise of the objective per unit of budget; the dual is a basic one.
    """

    spent: float
    price: float


class SmoothedProgram:
    """The smoothed program of one row source, warm from one solve to the next.

    `shares` (S,) are those of the states that the rows come from, in their order.
    """

    def __init__(self, rows: ListedRows, budget: float, shares: FloatArray) -> None:
        self.rows = rows
        self.budget = budget
        self.frame = Frame(rows)
        self.pair_state = np.repeat(np.arange(len(shares)), np.diff(rows.pair_start))
        self.shares = np.where(shares > _LEAST_SHARE * shares.max(), shares, 0.0)
        self.coordinates = self.frame.coordinates(self.frame.factor(shares))
        self.unit = cost_unit(rows.pair_cost)
        self.lp = CappedLp(self.coordinates.rank, budget, self.unit)
        self.bound_rows, self.bound_cost = self.frame.bounds(self.coordinates)
        # Bounds on coefficients are rows without a group: nothing buys their violation.
        self.lp.add(self.bound_rows, self.bound_cost)
        self.keys = np.zeros(0, dtype=np.int64)
        self.group = np.full(len(shares), -1, dtype=np.int64)
        seeds = rows.seeds(shares)
        self.add(seeds[self.shares[self.pair_state[seeds]] > 0.0])

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return self.frame.dropped

    @property
    def n_before(self) -> int:
        """Number of columns of the master that stand before the rows: kappa and the bounds."""
        return 1 + len(self.bound_cost)

    def solve(self, moments: FloatArray, reference: FloatArray | None = None) -> SmoothedSolution:
        """Return the audited optimum for these moments (K,)."""
        began = time.perf_counter()
        self.frame.check_reachable(moments)
        run = _Run(self, moments)
        run.reach()
        return run.solution(run.optimum(), time.perf_counter() - began)

    def add(self, keys: IntArray) -> None:
        """Add rows to the master, and their states' groups where they are new."""
        if len(keys) == 0:
            return
        states = np.unique(self.pair_state[keys])
        new = states[self.group[states] < 0]
        self.group[new] = len(self.lp.shares) + np.arange(len(new))
        self.lp.add_groups(self.shares[new])
        raw, cost = self.rows.rows(keys)
        groups = self.group[self.pair_state[keys]]
        self.lp.add_grouped(self.coordinates.rows(raw), cost, groups)
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


class _Run:
    """One solve: the moments, and what has been looked at."""

    def __init__(self, program: SmoothedProgram, moments: FloatArray) -> None:
        self.program = program
        self.moments = moments
        self.inner_moments = program.coordinates.moments(moments)
        self.passes = 0
        self.rounds = 0
        program.lp.set_moments(self.inner_moments)

    def reach(self) -> None:
        """Add rows until the moments can be reached, or show that no rows with a price do it."""
        program = self.program
        for _ in range(_MAX_ROUNDS):
            distance, direction = program.lp.direction()
            if distance <= _REACHED:
                return
            coef = program.coordinates.coef(direction[: program.coordinates.rank])
            growth = program.rows.pair_cost - self._slacks(coef)
            fresh = self._worst(growth, np.full(len(growth), distance))
            if len(fresh) == 0:
                raise SolverError(
                    Status.UNBOUNDED,
                    f"{ray_text(program.rows.names, coef)}: the rows of states with weight do not "
                    "limit it, expected weights that cover where they lead, such as DIA() or "
                    "FromPolicy(Uniform())",
                )
            program.add(fresh)
        raise SolverError(Status.FAILED, "the rows that bound the program were not found")

    def optimum(self) -> _Vertex:
        """Add violated rows until there are none."""
        program = self.program
        for self.rounds in range(1, _MAX_ROUNDS + 1):
            vertex = self._vertex()
            coef = program.coordinates.coef(vertex.inner)
            slack = self._slacks(coef)
            excess = -slack - vertex.violation[program.pair_state]
            size = np.abs(program.rows.pair_cost) + vertex.violation[program.pair_state]
            level = (1.0 - program.rows.discount) * abs(float(self.moments @ coef))
            fresh = self._worst(excess, size + level + program.unit)
            if len(fresh) == 0:
                return vertex
            program.add(fresh)
        raise SolverError(Status.FAILED, f"no answer after {_MAX_ROUNDS} rounds of row generation")

    def _worst(self, excess: FloatArray, size: FloatArray) -> IntArray:
        """Return the worst row of each state, of those states that are violated most."""
        program = self.program
        priced = program.shares[program.pair_state] > 0.0
        relative = np.where(priced, excess / size, -np.inf)
        relative[program.keys] = -np.inf
        violated = np.flatnonzero(relative > 0.1 * tolerances.FEASIBILITY)
        order = violated[np.argsort(-relative[violated], kind="stable")]
        # A state's worst row says most of what its others do.
        _, first = np.unique(program.pair_state[order], return_index=True)
        return order[np.sort(first)[:_MOST_ROWS]]

    def _slacks(self, coef: FloatArray) -> FloatArray:
        self.passes += 1
        return np.concatenate([slack for _, slack in self.program.rows.all_slacks(coef)])

    def _vertex(self) -> _Vertex:
        """Solve the master; the equations of its basis are solved again to full precision."""
        program, lp = self.program, self.program.lp
        rank, n_before = program.coordinates.rank, program.n_before
        answer = lp.solve()
        if answer.status in (Status.UNBOUNDED, Status.FAILED):
            answer = lp.solve(loose=True)
        if answer.status is not Status.OPTIMAL:
            raise SolverError(answer.status)
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
        known = program.group >= 0
        violation = np.zeros(len(program.shares))
        violation[known] = paid[program.group[known]]
        all_columns = np.zeros(lp.n_rows)
        all_columns[answer.basic] = np.maximum(multipliers, 0.0)
        dual = all_columns[n_before:]
        used = np.flatnonzero(dual > 0.0)
        order = used[np.argsort(program.keys[used])]
        return _Vertex(
            inner=solution[:rank],
            violation=violation,
            keys=program.keys[order],
            dual=dual[order],
            at_bound=all_columns[1:n_before],
            price=float(all_columns[0]),
        )

    def _basis(self, basic: IntArray, capped: IntArray) -> sparse.csr_array:
        """Return the columns of a basis as rows, over the coefficients and the active caps."""
        program = self.program
        n_before, rank = program.n_before, program.coordinates.rank
        bounds = basic[(basic > 0) & (basic < n_before)] - 1
        keys = program.keys[basic[basic >= n_before] - n_before]
        inner = program.coordinates.rows(program.rows.rows(keys)[0])
        place = np.full(len(program.lp.shares), -1)
        place[capped] = np.arange(len(capped))
        column = place[program.group[program.pair_state[keys]]]
        held = np.flatnonzero(column >= 0)
        entries = (np.ones(len(held)), (held, column[held]))
        member = sparse.csr_array(entries, shape=(len(keys), len(capped)))
        free = sparse.csr_array((len(bounds), len(capped)))
        kappa = np.append(np.zeros(rank), -program.lp.shares[capped])
        parts = [
            sparse.csr_array(kappa[None, :])[: int(0 in basic)],
            sparse.hstack([sparse.csr_array(program.bound_rows[bounds]), free]),
            sparse.hstack([sparse.csr_array(inner), member]),
        ]
        return sparse.vstack(parts, format="csr")

    def solution(self, found: _Vertex, seconds: float) -> SmoothedSolution:
        """Return the answer with its audit, on unscaled data."""
        program, rows = self.program, self.program.rows
        coef = program.coordinates.coef(found.inner)
        excess = np.maximum(-self._slacks(coef), 0.0)
        needed = np.maximum.reduceat(excess, rows.pair_start[:-1])
        spent = float(program.shares @ needed)
        objective = float(self.moments @ coef)
        audit = Audit(
            violation=float(excess.max(initial=0.0)),
            # What the budget allows is no fault; only what goes beyond it is.
            relative_violation=max(0.0, spent - program.budget)
            / (program.budget + program.unit + (1.0 - rows.discount) * abs(objective)),
            dual_residual=self._dual_residual(found),
            gap=self._gap(found, objective),
        )
        return SmoothedSolution(
            status=Status.OPTIMAL if audit.passed else Status.INACCURATE,
            coef=coef,
            objective=objective,
            moments=self.moments,
            audit=audit,
            passes=self.passes,
            rounds=self.rounds,
            n_rows=len(program.keys),
            proven=True,
            seconds=seconds,
            keys=found.keys,
            dual=found.dual,
            spent=spent,
            price=found.price,
        )

    def _dual_residual(self, found: _Vertex) -> float:
        """Return the largest relative error of rows' dual = moments and of the caps."""
        program = self.program
        inner = program.coordinates.rows(program.rows.rows(found.keys)[0])
        bounds = program.bound_rows
        error = inner.T @ found.dual + bounds.T @ found.at_bound - self.inner_moments
        size = abs(inner).T @ found.dual + abs(bounds).T @ found.at_bound
        size = size + np.abs(self.inner_moments).max()
        states = program.pair_state[found.keys]
        mass = np.bincount(states, found.dual, minlength=len(program.shares))
        over = (mass - found.price * program.shares) / mass.sum()
        return float(max((np.abs(error) / size).max(), over.max(initial=0.0)))

    def _gap(self, found: _Vertex, objective: float) -> float:
        program = self.program
        cost = program.rows.rows(found.keys)[1]
        paid = np.concatenate(
            [
                cost * found.dual,
                program.bound_cost * found.at_bound,
                [found.price * program.budget],
            ]
        )
        rounding = tolerances.ROUNDING / tolerances.OPTIMALITY * program.unit
        scale = max(abs(objective), float(np.abs(paid).sum())) + rounding * float(found.dual.sum())
        return abs(objective - float(paid.sum())) / max(scale, np.finfo(float).tiny)


def _sharpened(
    rows: sparse.csr_array, cost: FloatArray, moments: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    try:
        return sharpen(rows, cost, moments, start)
    except RuntimeError:
        # A basis that is singular up to rounding: least squares decides what it leaves open.
        return sharpen(rows.toarray(), cost, moments, start)
