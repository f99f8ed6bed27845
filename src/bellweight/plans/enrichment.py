"""Let the basis grow where the program needs it: dual-guided enrichment.

A round solves the program with the method, ranks the states by weight times residual where the dual
has no mass, proposes hinges and indicators there, adds those with the highest dual price
(`candidate_functions`), and solves again. On tabular models the cost of the policy and the lower
bound are exact, so the best round is chosen without bias and the gap between the lowest cost and
the best bound is a proof that only improves. The rounds end when the gap is closed, when the
functions are used up, when neither cost nor gap improves, or when there is nothing to add.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from bellweight.backends import Estimate, Setup, listed
from bellweight.basis import Basis, Function
from bellweight.basis.located import extended
from bellweight.common import checks, files
from bellweight.common.status import ArgumentError, SolverError, Status
from bellweight.display import Column, Table, number_text
from bellweight.display.charts import Chart, Line, Picture
from bellweight.display.presentable import Pictures
from bellweight.models import Model, TabularModel
from bellweight.plans.candidate_functions import (
    Blind,
    Choice,
    blind,
    candidates_at,
    proposed_states,
)
from bellweight.policies import Policy
from bellweight.results.base import ChosenResult
from bellweight.results.judgement import notes_of
from bellweight.results.result import Result
from bellweight.solve import solve
from bellweight.weights.loop import Method, Stop
from bellweight.weights.methods import DIA
from bellweight.weights.plan import Plan, SolveSettings

_SAME_COST = 1e-12  # costs closer than this, relative to them, are the same


@files.storable("EnrichedRound")
@dataclass(frozen=True)
class EnrichedRound:
    """One round: the functions it added, by name, and what the program with them says.

    `total` counts the functions added so far. `cost` is that of this round's policy; `lower_bound`
    and `gap` are the best so far: of all bounds, and from the lowest cost to it. `left` is weight
    times residual, summed over the states where the dual has no mass.
    """

    added: tuple[str, ...]
    total: int
    lower_bound: float
    cost: Estimate
    gap: float
    left: float
    status: Status
    seconds: float


@files.storable("EnrichedResult")
@dataclass(frozen=True, eq=False, repr=False)
class EnrichedResult(ChosenResult):
    """What enrichment found: the `result` of the lowest cost, every round, and why it stopped.

    Of results with the same cost the one with the highest bound is taken. `lower_bound` is the best
    of all rounds: what one of them has proven holds for all.
    """

    result: Result
    rounds: tuple[EnrichedRound, ...]
    added: tuple[Function, ...]
    stopped: str

    @property
    def cost(self) -> Estimate:
        """The exact cost of the policy from the initial distribution."""
        assert self.result.cost is not None
        return self.result.cost

    def on(self, model: Model) -> Self:
        return replace(self, result=self.result.on(model))

    def stored_fault(self) -> str:
        exact = self.rounds and self.result.cost is not None
        return "" if exact else "there is no round, or its result has no cost"

    @property
    def lower_bound(self) -> float:
        """What no policy can cost less than."""
        return self.rounds[-1].lower_bound

    @property
    def gap(self) -> float:
        """What the policy can cost more than the best one, at most."""
        return self.cost.mean - self.lower_bound

    def table(self) -> Table:
        """Return one row for each round."""
        rows = tuple(
            {**vars(one), "cost": one.cost.mean, "round": k, "names": ", ".join(one.added) or "-"}
            for k, one in enumerate(self.rounds)
        )
        notes = (
            f"Stopped: {self.stopped}.",
            f"Taken: {len(self.added)} added functions, cost {self.cost}, at most "
            f"{self.gap:.3g} above the optimum. Left: weight times residual where the dual has no "
            "mass.",
            *notes_of(self.judgement),
        )
        return Table(f"Enrichment on {self.result.model_name}", _COLUMNS, rows, notes)

    def pictures(self) -> Pictures:
        """Return cost and bound, and what is left, by the number of functions added."""
        return {"growth": self._growth, "left": self._left}

    def _growth(self) -> tuple[Picture, ...]:
        total = self._totals
        cost = np.array([one.cost.mean for one in self.rounds])
        bound = np.array([one.lower_bound for one in self.rounds])
        lines = (Line("cost of the policy", total, cost), Line("proven lower bound", total, bound))
        alt = (
            f"With {int(total[-1])} functions added the cost went from {cost[0]:,.6g} to "
            f"{cost[-1]:,.6g} and the bound from {bound[0]:,.6g} to {bound[-1]:,.6g}."
        )
        title, down = "Cost and bound as the basis grows", "expected discounted cost"
        return (Chart("growth", title, "functions added", down, lines, alt),)

    def _left(self) -> tuple[Picture, ...]:
        left = np.array([one.left for one in self.rounds])
        seen = left > 0.0  # zero has no place on a log axis
        if not seen.any():
            return ()
        line = Line("weight times residual", self._totals[seen], left[seen])
        alt = f"What is left went from {left[0]:.3g} to {left[-1]:.3g}."
        title = "Residual where the dual has no mass"
        names = ("functions added", "weight times residual")
        return (Chart("left", title, *names, (line,), alt, log_y=True),)

    @property
    def _totals(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([one.total for one in self.rounds], dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Enriched(Plan[EnrichedResult]):
    """A plan that lets the basis grow: `solve(model, Polynomial(1), Enriched())`.

    For tabular models, where cost and bound are exact. The seconds of `stop` are for all rounds
    together.

    Args:
        method: chooses the weights in every round.
        functions: how many are added at most.
        per_round: how many are added at a time.
        tol: the rounds stop when the gap is within this share of the cost.
        patience: they also stop after so many rounds in which neither cost nor gap improved by that
            much.

    Examples:
        >>> bw.Enriched(functions=10, patience=2)
        Enriched(functions=10, patience=2)
    """

    method: Method = field(default_factory=DIA)
    functions: int = 40
    per_round: int = 2
    tol: float = 1e-6
    patience: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method):
            raise ArgumentError(f"method is {self.method!r}, expected a method such as DIA()")
        if self.method.mode == "certified":
            raise ArgumentError(
                "the method's settings are certified for one basis, and here the basis grows: use "
                "DIA(...) with the same temperature and smoothing_mass"
            )
        checks.count(self.functions, "functions")
        checks.count(self.per_round, "per_round")
        checks.positive(self.tol, "tol")
        checks.count(self.patience, "patience")

    def run(self, settings: SolveSettings) -> EnrichedResult:
        """Solve, add functions where the dual has mass, and solve again while that helps."""
        model = listed(
            settings.model,
            f"Enriched got a {type(settings.model).__name__}, expected a TabularModel: its new "
            "functions need states that are listed, enumerate the model with to_tabular()",
        )
        return _Run(self, settings, model).until_stopped()

    def target(self, setup: Setup) -> Policy | None:
        return self.method.prepare(setup).target_policy


class _Run:
    """The state of one run."""

    def __init__(self, plan: Enriched, settings: SolveSettings, model: TabularModel) -> None:
        self.plan = plan
        self.settings = settings
        self.model = model
        self.rounds: list[EnrichedRound] = []
        self.added: tuple[Function, ...] = ()
        self.best: tuple[Result, tuple[Function, ...]] | None = None
        self._basis: Basis = settings.basis
        self._began = time.perf_counter()

    def until_stopped(self) -> EnrichedResult:
        try:
            stopped = self._go_on()
        except (KeyboardInterrupt, SolverError) as problem:
            # What the rounds before have found is worth keeping.
            if self.best is None:
                raise
            failed = isinstance(problem, SolverError)
            stopped = f"the next program failed: {problem}" if failed else "interrupted"
        assert self.best is not None
        result, added = self.best
        return EnrichedResult(result, tuple(self.rounds), added, stopped)

    def _go_on(self) -> str:
        """Make rounds until there is a reason to stop, and return it."""
        new: tuple[Function, ...] = ()
        while True:
            result = self._solved(new)
            found = blind(self.model, result)
            self._record(new, result, found)
            reason = self._reason(result)
            if reason is not None:
                return reason
            new, reason = self._chosen(result, found)
            if not new:
                return reason

    def _solved(self, new: tuple[Function, ...]) -> Result:
        settings = self.settings
        basis = extended(self._basis, (*self.added, *new), self.model.states.shape[1])
        result = solve(
            self.model, basis, self.plan.method, rows=settings.rows, simulation=settings.simulation,
            stop=self._stop(), regularisation=settings.regularisation, seed=settings.seed,
            jobs=settings.jobs, progress=settings.progress, judge=False,
        )  # fmt: skip
        if result.weights is None:
            raise ArgumentError(
                f"{result.method_name} gives moments only, expected weights over the states: the "
                "moments of functions yet to be added are not known; use Fixed(weights)"
            )
        if self.best is None:
            # From here on as it was fitted, so that what is drawn at random is drawn once.
            self._basis = result.basis
        self.added = (*self.added, *new)
        return result

    def _stop(self) -> Stop | None:
        stop = self.settings.stop
        if stop is None or stop.max_seconds is None:
            return stop
        spent = time.perf_counter() - self._began
        return replace(stop, max_seconds=max(stop.max_seconds - spent, np.finfo(float).tiny))

    def _record(self, new: tuple[Function, ...], result: Result, found: Blind) -> None:
        bound, cost = _bounds(result)
        if self.best is None or _is_better(result, self.best[0]):
            self.best = (result, self.added)
        highest = max([bound, *(one.lower_bound for one in self.rounds)])
        lowest = min([cost, *(one.cost.mean for one in self.rounds)])
        dimension = self.model.states.shape[1]
        record = EnrichedRound(
            added=tuple(function.name(dimension) for function in new),
            total=len(self.added),
            lower_bound=highest,
            cost=Estimate(cost),
            gap=max(0.0, lowest - highest),
            left=found.left,
            status=result.status,
            seconds=time.perf_counter() - self._began,
        )
        self.rounds.append(record)
        if self.settings.progress is True:
            print(
                f"round {len(self.rounds) - 1:3d}  functions {record.total:3d}  cost {cost:.8g}  "
                f"gap {record.gap:.3g}  {record.seconds:.2f} s",
                flush=True,
            )

    def _reason(self, result: Result) -> str | None:
        """Return why to stop after this round, None to go on."""
        plan, last = self.plan, self.rounds[-1]
        if result.status is Status.INTERRUPTED:
            return "interrupted"
        if last.gap <= self._margin:
            return f"the gap is closed: it is within {plan.tol:g} of the cost"
        if last.total >= plan.functions:
            return f"all {plan.functions} functions are used"
        limit = None if self.settings.stop is None else self.settings.stop.max_seconds
        if limit is not None and time.perf_counter() - self._began >= limit:
            return "the time is up"
        if self._is_stuck():
            rounds = "round" if plan.patience == 1 else f"{plan.patience} rounds"
            return f"neither cost nor gap improved by {plan.tol:g} of the cost in the last {rounds}"
        return None

    @property
    def _margin(self) -> float:
        """The tolerance in units of the cost."""
        return self.plan.tol * abs(min(one.cost.mean for one in self.rounds))

    def _is_stuck(self) -> bool:
        patience = self.plan.patience
        if len(self.rounds) <= patience:
            return False
        before, last = self.rounds[-1 - patience], self.rounds[-1]
        # The gap is that of the lowest cost, so it shrinks whenever a cost improves.
        return before.gap - last.gap <= self._margin

    def _chosen(self, result: Result, found: Blind) -> tuple[tuple[Function, ...], str]:
        """Return the functions to add, or none and why."""
        states = proposed_states(self.model, result, found)
        if len(states) == 0:
            return (), "nothing to add: no residual is left where the weights or the policy go"
        n = min(self.plan.per_round, self.plan.functions - len(self.added))
        choice = Choice(self.model, self._basis, self.added, found)
        every, touching = self.model.states, np.unique(result.support.states)
        new = choice.best(candidates_at(every[states], every[touching]), n)
        return new, (
            "nothing to add: every function proposed depends on the basis, or the dual balances it "
            "already; try another basis, or weights that reach more states"
        )


def _bounds(result: Result) -> tuple[float, float]:
    assert result.lower_bound is not None
    assert result.cost is not None
    return result.lower_bound, result.cost.mean


def _is_better(result: Result, best: Result) -> bool:
    """Return whether a result costs less, or as much with a higher bound."""
    (bound, cost), (highest, lowest) = _bounds(result), _bounds(best)
    margin = _SAME_COST * abs(lowest)
    return cost < lowest - margin or (cost <= lowest + margin and bound > highest)


_COLUMNS = (
    Column("round", "round"),
    Column("total", "functions"),
    Column("lower_bound", "lower bound", number_text),
    Column("cost", "cost", number_text),
    Column("gap", "gap", "{:.3g}".format),
    Column("left", "left", "{:.3g}".format),
    Column("status", "status", lambda status: str(status.name), right=False),
    Column("names", "added", right=False),
    Column("seconds", "", None),
)
