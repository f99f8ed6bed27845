"""Constraint states re-drawn from where a good policy goes, round after round.

The sample of constraint states moves the cost more than the weights do. A state that no good policy
visits tells little; one that it visits often is worth a row. Each round therefore adds as many
states drawn from the occupancy of the best policy so far, and the states where the last dual has
mass, whose rows limit the value function. The first sample stays: without it nothing limits the
value function where the policy never goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bellweight.backends import Estimate, Setup, backend_of
from bellweight.common import checks, files
from bellweight.common.checks import IntArray
from bellweight.common.status import ArgumentError, Status
from bellweight.common.streams import derived_seed
from bellweight.display import Column, Table, interval_text
from bellweight.display.charts import Chart, Line, Picture
from bellweight.display.presentable import Pictures
from bellweight.evaluation.evaluate import Difference, Evaluation, compare, evaluate
from bellweight.models import Model
from bellweight.policies import Policy, Support
from bellweight.program import SampledRows
from bellweight.results.base import ChosenResult
from bellweight.results.judgement import notes_of
from bellweight.simulation import distinct_states
from bellweight.solve import Result, solved
from bellweight.weights.loop import Method, check_method
from bellweight.weights.methods import Fixed
from bellweight.weights.plan import Plan, SolveSettings

_EPISODES, _SLOW_EPISODES = 10_000, 100
_SAMPLING, _JUDGING, _FRESH = 0, 1, 2  # purposes of random numbers
_MOST_USEFUL = 0.25  # states kept for their dual mass, as a share of the first sample


@files.storable("Round")
@dataclass(frozen=True, eq=False)
class ResampledRound(files.Changed):
    """One round: its result, where its states came from, and what its policy costs.

    `useful` and `fresh` count the states kept for their dual mass and drawn from a policy. `change`
    is the paired difference to the round before, None in the first.
    """

    result: Result
    useful: int
    fresh: int
    cost: Estimate
    change: Difference | None

    @classmethod
    def from_format_1(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """Put mean and half-width together."""
        cost = Estimate(stored.pop("mean"), stored.pop("half_width"))
        return {**stored, "cost": cost}


@files.storable("Resampling")
@dataclass(frozen=True, eq=False, repr=False)
class ResampledResult(ChosenResult):
    """The rounds, on common random numbers, and the best of them judged on fresh ones.

    `best` is the place of the round of least cost; `evaluation` is its cost on random numbers that
    had no part in choosing it, and so is `cost`.
    """

    rounds: tuple[ResampledRound, ...]
    best: int
    evaluation: Evaluation

    @property
    def result(self) -> Result:
        """The result of the best round."""
        return self.rounds[self.best].result

    @property
    def cost(self) -> Estimate:
        """The cost of that policy, on random numbers that had no part in choosing it."""
        return self.evaluation.estimate

    def on(self, model: Model) -> Self:
        rounds = tuple(replace(found, result=found.result.on(model)) for found in self.rounds)
        return replace(self, rounds=rounds)

    def stored_fault(self) -> str:
        return "" if 0 <= self.best < len(self.rounds) else f"round {self.best} does not exist"

    @property
    def settled(self) -> bool:
        """Whether the last round changed the cost by no more than its interval."""
        change = self.rounds[-1].change
        return change is not None and not change.is_clear

    def table(self) -> Table:
        """Return one row for each round."""
        rows = tuple(
            {
                "round": place,
                "useful": found.useful,
                "fresh": found.fresh,
                "mean": found.cost.mean,
                "half_width": found.cost.half_width,
                "cost": interval_text(found.cost.mean, found.cost.half_width),
                "change": "" if found.change is None else str(found.change),
            }
            for place, found in enumerate(self.rounds)
        )
        settled = "settled" if self.settled else "not settled: more rounds may help"
        notes = (
            f"Best: round {self.best}, {self.evaluation} on fresh random numbers.",
            f"The cost has {settled}.",
            *notes_of(self.judgement),
        )
        return Table("Constraint states re-drawn", _COLUMNS, rows, notes)

    def pictures(self) -> Pictures:
        """Return how the cost settles."""
        return {"rounds": self._settling}

    def _settling(self) -> tuple[Picture, ...]:
        means = np.array([found.cost.mean for found in self.rounds])
        widths = np.array([found.cost.half_width for found in self.rounds])
        line = Line(
            "cost, with 95 % interval", np.arange(len(means)) * 1.0, means, "points", widths
        )
        alt = " ".join(f"Round {k}: {mean:,.2f}." for k, mean in enumerate(means))
        title = "Cost of each round's policy, on the same random numbers"
        return (Chart("rounds", title, "round", "expected discounted cost", (line,), alt),)


_COLUMNS = (
    Column("round", "round"),
    Column("useful", "states kept", "{:,}".format),
    Column("fresh", "fresh", "{:,}".format),
    Column("mean", "", None),
    Column("half_width", "", None),
    Column("cost", "cost, 95 % interval"),
    Column("change", "minus round before"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Resampled(Plan[ResampledResult]):
    """Solve, draw constraint states from the occupancy of the best policy so far, solve again.

    The first round has the caller's rows only. The best round's cost is found again on fresh random
    numbers. Ctrl-C ends the rounds and keeps those that are finished. For models whose states
    are sampled; `stop` holds for each round.

    Args:
        method: chooses the weights in every round.
        rounds: how often states are drawn again.
        episodes: from which the cost of each round comes, on the same random numbers: by default
            10,000, and 100 where a model runs as plain Python.

    Examples:
        >>> bw.Resampled(bw.PIA(), rounds=2)
        Resampled(method=PIA(), rounds=2)
    """

    method: Method = field(default_factory=Fixed)
    rounds: int = 3
    episodes: int | None = None

    def __post_init__(self) -> None:
        check_method(self.method, "method")
        checks.count(self.rounds, "rounds")
        if self.episodes is not None:
            checks.count(self.episodes, "episodes", least=2)

    def run(self, settings: SolveSettings) -> ResampledResult:
        """Carry out the rounds."""
        first = _sampled_states(settings)
        rounds: list[ResampledRound] = []
        states, useful, fresh = first, 0, len(first)
        for number in range(self.rounds + 1):
            if rounds:
                leader = rounds[_best(rounds)].result
                seed = derived_seed(settings.seed, _SAMPLING, number)
                states, useful, fresh = redrawn(
                    settings.model, first, leader.policy, leader.support, seed, settings.jobs
                )
            step = replace(settings, rows=SampledRows(states), progress=False, judge=False)
            found = solved(self.method, step)
            if found.status is Status.INTERRUPTED:
                if not rounds:
                    raise KeyboardInterrupt
                break
            rounds.append(self._judged(settings, rounds, found, useful, fresh))
            settings.say(f"round {number}: cost {rounds[-1].cost.mean:,.2f}")
        best = _best(rounds)
        policy = rounds[best].result.policy
        evaluation = evaluate(
            settings.model, policy, self._episodes(settings), horizon=settings.horizon,
            seed=derived_seed(settings.seed, _FRESH), jobs=settings.jobs,
        )  # fmt: skip
        return ResampledResult(tuple(rounds), best, evaluation)

    def _episodes(self, settings: SolveSettings) -> int:
        usual = _SLOW_EPISODES if backend_of(settings.model).is_slow else _EPISODES
        return usual if self.episodes is None else self.episodes

    def target(self, setup: Setup) -> Policy | None:
        return self.method.prepare(setup).target_policy

    def _judged(
        self,
        settings: SolveSettings,
        rounds: list[ResampledRound],
        found: Result,
        useful: int,
        fresh: int,
    ) -> ResampledRound:
        """Return a round with its cost, and its paired difference to the one before."""
        policies = {"now": found.policy}
        if rounds:
            policies["before"] = rounds[-1].result.policy
        told = compare(
            settings.model, policies, self._episodes(settings), baseline=list(policies)[-1],
            horizon=settings.horizon, seed=derived_seed(settings.seed, _JUDGING),
            jobs=settings.jobs,
        )  # fmt: skip
        cost = told.evaluations["now"]
        change = told.differences["now"] if rounds else None
        return ResampledRound(found, useful, fresh, cost.estimate, change)


def _sampled_states(settings: SolveSettings) -> Any:
    """Return the constraint states (n, d) of the first round, or say that there are none."""
    states = settings.setup().sampled_states
    if states is None:
        raise ArgumentError(
            "constraint states are re-drawn where they are a sample, and here the rows of all "
            "states are used: solve with the method itself, or pass "
            "rows=SampledRows(sample_states(model, 5000)) where states cannot be listed"
        )
    return states


def redrawn(
    model: Any,
    states: IntArray,
    policy: Policy,
    dual: Support | None,
    seed: int,
    jobs: int | None = None,
) -> tuple[IntArray, int, int]:
    """Return states (n, d): those given, up to as many that the policy visits, those of the dual.

    With them, how many were kept for their dual mass, the heaviest first, and how many are fresh.
    """
    useful = np.zeros((0, model.dimension), dtype=np.int64)
    if dual is not None and np.ndim(dual.states) == 2:
        distinct, masses = dual.over_actions(model.n_actions)
        heaviest = np.argsort(-masses.sum(axis=1), kind="stable")
        useful = distinct[heaviest[: int(_MOST_USEFUL * len(states))]]
    # A policy may visit fewer states than were sampled: then all that it visits are taken.
    fresh, _ = distinct_states(model, len(states), policy, seed=seed, jobs=jobs)
    stacked = np.concatenate([states, useful, fresh])
    places = np.sort(np.unique(stacked, axis=0, return_index=True)[1])
    n_known = len(states) + len(useful)
    kept = int(((places >= len(states)) & (places < n_known)).sum())
    return stacked[places], kept, int((places >= n_known).sum())


def _best(rounds: list[ResampledRound]) -> int:
    return int(np.argmin([found.cost.mean for found in rounds]))
