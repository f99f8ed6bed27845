"""Let the basis grow where the program needs it: dual-guided enrichment.

A round solves the program with the method, ranks the states by weight times residual where the dual
has no mass, proposes hinges and indicators there, adds those with the highest dual price
(`candidate_functions`), and solves again. On tabular models the cost of the policy and the lower
bound are exact, so the best round is chosen without bias and the gap between the lowest cost and
the best bound is a proof that only improves. On event and step models costs are simulated on the
same random numbers in every round, and there is a bound only where the program proves one. The
rounds end when the gap is closed, when the functions are used up, when neither cost nor gap
improves, or when there is nothing to add.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bellweight.backends import Estimate, Setup, backend_of
from bellweight.basis import Basis, Function
from bellweight.basis.located import extended
from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, SolverError, Status
from bellweight.common.streams import derived_seed
from bellweight.evaluation.evaluate import evaluate
from bellweight.plans.candidate_functions import (
    Imbalance,
    PricedChoice,
    candidates_at,
    listed_imbalance,
    proposed_points,
)
from bellweight.plans.enriched_result import EnrichedResult, EnrichedRound
from bellweight.plans.sampled_imbalance import sampled_imbalance
from bellweight.policies import Policy
from bellweight.program import RowSource, SampledRows
from bellweight.results.result import Result
from bellweight.simulation import Simulation
from bellweight.solve import solved
from bellweight.weights.loop import Method, Stop, check_method
from bellweight.weights.methods import DIA
from bellweight.weights.plan import Plan, SolveSettings

_COSTING = 73  # the branch of a seed that costs are simulated with


@dataclass(frozen=True, eq=False, repr=False)
class Enriched(Plan[EnrichedResult]):
    """A plan that lets the basis grow: `solve(model, Polynomial(1), Enriched())`.

    On tabular models cost and bound are exact; on event and step models with sampled rows costs are
    simulated. The seconds of `stop` are for all rounds together.

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
        check_method(self.method, "method")
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
        """Solve, add functions where the dual has no mass, and solve again while that helps."""
        rows, backend = settings.setup().listed_rows, backend_of(settings.model)
        if rows is None or not backend.lists_successors:
            raise ArgumentError(
                f"Enriched got {settings.model!r}, whose rows are not listed or whose successors "
                "are not, expected a tabular model, or an event or step model with rows="
                "SampledRows(sample_states(model, 2000)): plans.RaisedBound() lets the basis grow "
                "where LocalRows() apply, and to_tabular() lists small models"
            )
        if backend.samples_states:  # the same ones in every round
            settings = replace(settings, rows=SampledRows(rows.states, rows.origin))  # type: ignore[attr-defined]
        return _Run(self, settings).until_stopped()

    def target(self, setup: Setup) -> Policy | None:
        return self.method.prepare(setup).target_policy


class _Run:
    """The state of one run."""

    def __init__(self, plan: Enriched, settings: SolveSettings) -> None:
        self.plan = plan
        self.settings = settings
        self.model: Any = settings.model
        self.backend = backend_of(settings.model)
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
            found = self._imbalance(result)
            self._record(new, result, found)
            reason = self._reason(result)
            if reason is not None:
                return reason
            new, reason = self._chosen(result, found)
            if not new:
                return reason

    def _solved(self, new: tuple[Function, ...]) -> Result:
        settings = self.settings
        basis = extended(self._basis, (*self.added, *new), self.dimension)
        step = replace(settings, basis=basis, stop=self._stop(), judge=False)
        result = solved(self.plan.method, step)
        if self.backend.lists_states and result.weights is None:
            raise ArgumentError(
                f"{result.method_name} gives moments only, expected weights over the states: the "
                "moments of functions yet to be added are not known; use Fixed(weights)"
            )
        if result.cost is None:
            result = replace(result, cost=self._simulated_cost(result.policy))
        if self.best is None:
            # Keep the fitted basis, so that its random parts are drawn only once.
            self._basis = result.basis
        self.added = (*self.added, *new)
        return result

    @property
    def dimension(self) -> int:
        """Number of state variables."""
        return len(self.backend.variables)

    def _simulated_cost(self, policy: Policy) -> Estimate:
        """Return what a policy costs, on the same random numbers in every round."""
        simulation = self.settings.simulation or Simulation()
        seed = derived_seed(self.settings.seed, _COSTING)
        return evaluate(
            self.model, policy, simulation.episodes, horizon=simulation.horizon, seed=seed,
            jobs=self.settings.jobs,
        ).estimate  # fmt: skip

    def _imbalance(self, result: Result) -> Imbalance:
        if self.backend.lists_states:
            return listed_imbalance(self.model, result)
        return sampled_imbalance(self.model, result)

    def _stop(self) -> Stop | None:
        stop = self.settings.stop
        if stop is None or stop.max_seconds is None:
            return stop
        spent = time.perf_counter() - self._began
        return replace(stop, max_seconds=max(stop.max_seconds - spent, np.finfo(float).tiny))

    def _record(self, new: tuple[Function, ...], result: Result, found: Imbalance) -> None:
        assert result.cost is not None
        if self.best is None or _is_better(result, self.best[0]):
            self.best = (result, self.added)
        bounds = [result.lower_bound, *(one.lower_bound for one in self.rounds)]
        highest = max((bound for bound in bounds if bound is not None), default=None)
        lowest = min([result.cost.mean, *(one.cost.mean for one in self.rounds)])
        record = EnrichedRound(
            added=tuple(function.name(self.dimension) for function in new),
            total=len(self.added),
            lower_bound=highest,
            cost=result.cost,
            gap=None if highest is None else max(0.0, lowest - highest),
            left=found.left,
            status=result.status,
            seconds=time.perf_counter() - self._began,
        )
        self.rounds.append(record)
        self.settings.say(
            f"round {len(self.rounds) - 1:3d}  functions {record.total:3d}  cost "
            f"{result.cost.mean:.8g}  {record.seconds:.2f} s"
        )

    def _reason(self, result: Result) -> str | None:
        """Return why to stop after this round, None to go on."""
        plan, last = self.plan, self.rounds[-1]
        if result.status is Status.INTERRUPTED:
            return "interrupted"
        if last.gap is not None and last.gap <= self._margin:
            return f"the gap is closed: it is within {plan.tol:g} of the cost"
        if last.total >= plan.functions:
            return f"all {plan.functions} functions are used"
        if self.settings.is_over(self._began):
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
        before, last = self.rounds[-1 - patience].gap, self.rounds[-1].gap
        if before is None or last is None:
            costs = [one.cost.mean for one in self.rounds]
            return min(costs[:-patience]) - min(costs) <= self._margin
        # The gap is that of the lowest cost, so it shrinks whenever a cost improves.
        return before - last <= self._margin

    def _chosen(self, result: Result, found: Imbalance) -> tuple[tuple[Function, ...], str]:
        """Return the functions to add, or none and why."""
        assert result.cost is not None
        places = proposed_points(found, (1.0 - self.model.discount) * abs(result.cost.mean))
        if len(places) == 0:
            return (), "nothing to add: no residual is left where the weights or the policy go"
        n = min(self.plan.per_round, self.plan.functions - len(self.added))
        choice = PricedChoice(self._rows_of, self._basis, self.added, found)
        offered = candidates_at(
            found.points[places],
            self._touching(result),
            # Where coordinates are real no state is met twice, so its indicator is of no use.
            indicators=self.backend.lists_states or bool((found.points % 1.0 == 0.0).all()),
        )
        new = choice.best(offered, n)
        return new, (
            "nothing to add: every function proposed depends on the basis, or the dual balances it "
            "already; try another basis, or weights that reach more states"
        )

    def _touching(self, result: Result) -> FloatArray:
        """Return the states (n, d) in which the dual has mass."""
        states = np.unique(result.support.states, axis=0)
        return np.asarray(self.model.states[states] if self.backend.lists_states else states)

    def _rows_of(self, basis: Basis) -> RowSource:
        rows = self.settings.rows
        return self.backend.some_rows(basis, np.zeros(0) if rows is None else rows.states)


def _is_better(result: Result, best: Result) -> bool:
    """Return whether a result costs less, or as much with a higher bound."""
    assert result.cost is not None
    assert best.cost is not None
    cost, lowest = result.cost.mean, best.cost.mean
    bound, highest = (
        -np.inf if one.lower_bound is None else one.lower_bound for one in (result, best)
    )
    margin = tolerances.SAME_EXACT_COST * abs(lowest)
    return cost < lowest - margin or (cost <= lowest + margin and bound > highest)
