"""The paper's network of eight endless queues: nobody can list its states, so nothing is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellweight.basis import PiecewiseLinear, Polynomial
from bellweight.display import Table
from bellweight.evaluation.evaluate import Comparison, compare
from bellweight.models import EventModel
from bellweight.policies import Policy, Uniform
from bellweight.problems import QueueNetwork
from bellweight.program import LocalRows, SampledRows
from bellweight.report.document import plain
from bellweight.reproduce.artefact import Tell
from bellweight.reproduce.demo.rows import Row, table_of
from bellweight.reproduce.network.runs import OTHER_TIE_ORDER
from bellweight.simulation import sample_states
from bellweight.solve import Result, solve
from bellweight.weights.methods import Fixed

KINKS = (1, 2, 3, 5, 8, 12, 18)
"""Where the functions of the proof bend, the same for every queue."""

REGULARISATION = 3.0
"""Chosen on other samples of states, in the study beyond the paper."""

RANDOM = "Acting at random"
LONGEST = "Longest queue first"
LAST_BUFFER = "Last buffer first"
OURS = "Bellweight, no rule"
BEST_RULE = "Best of 72 priorities"

_STATES = 5_000
_EPISODES = 4_096
_SEED = 1


@dataclass(frozen=True)
class NetworkPart:
    """The network, the program that proves the bound, the one that acts, and the simulation."""

    model: EventModel
    proof: Result
    ours: Result
    comparison: Comparison

    @property
    def lower_bound(self) -> float:
        """What no policy can undercut, proven over all states."""
        assert self.proof.lower_bound is not None
        return self.proof.lower_bound

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row for each policy, the dearest first."""
        return tuple(
            Row(
                name,
                found.mean,
                self.lower_bound,
                self._lesson(name),
                found.half_width,
                found.tail_bound or 0.0,
            )
            for name, found in self.comparison.evaluations.items()
        )

    @property
    def best(self) -> Row:
        """The row of the cheapest policy."""
        return min(self.rows, key=lambda row: row.cost)

    def document(self) -> dict[str, Any]:
        """Return what was found, for programs."""
        one = self.comparison.evaluations[BEST_RULE]
        return {
            "problem": "queue_network",
            "lower_bound": self.lower_bound,
            "episodes": one.episodes,
            "horizon": one.horizon,
            "seed": one.seed,
            "rows": [
                {
                    **plain(row),
                    "savings_percent": row.savings,
                    "minus_ours": plain(self.comparison.differences.get(row.policy)),
                }
                for row in self.rows
            ],
        }

    def table(self, between: str = "+-") -> Table:
        """Return the table to show."""
        title = "2. Eight queues without end: nobody can list the states"
        return table_of(title, self.rows, 0, between)

    def sentences(self) -> tuple[str, ...]:
        """Return what was done and what it shows, for a newcomer."""
        ahead, behind = (self.comparison.differences[name] for name in (LAST_BUFFER, BEST_RULE))
        share = -100.0 * behind.mean / self.comparison.evaluations[BEST_RULE].mean
        one = self.comparison.evaluations[BEST_RULE]
        return (
            "Three servers, eight queues; which queue does each server work on? Bellweight proves "
            f"that no policy costs less than {self.lower_bound:,.0f}, over all of the infinitely "
            f"many states, in {self.proof.seconds:.0f} s. Savings left are what that proof allows "
            "at most, with 95 % confidence in the simulated cost "
            f"({one.episodes:,} episodes of {one.horizon:,} steps).",
            f"Its own policy, from one program on {_STATES:,} sampled states and no rule of thumb, "
            f"costs {ahead.mean:,.0f} +- {ahead.half_width:,.0f} less than last buffer first and "
            f"{-behind.mean:,.0f} +- {behind.half_width:,.0f} ({share:.1f} %) more than the best "
            "of all 72 static priorities, which takes 72 simulations to find. Whoever goes on "
            f"searching knows what there is to win: at most {self.best.savings:.1f} %.",
        )

    def _lesson(self, name: str) -> str:
        found = self.comparison.evaluations
        best = min(found, key=lambda policy: found[policy].mean)
        if name == best:
            return "the cheapest here"
        return f"{100.0 * (found[name].mean / found[best].mean - 1.0):.1f} % above the best"


def run(tell: Tell) -> NetworkPart:
    """Prove the bound, find a policy, and simulate it beside rules of thumb."""
    network = QueueNetwork()
    model = network.model()
    tell("network: a lower bound over all states", 0.0)
    proof = solve(model, PiecewiseLinear(KINKS), Fixed(), rows=LocalRows(), judge=False)
    tell("network: a policy", 0.35)
    states = sample_states(model, _STATES, seed=_SEED)
    ours = solve(
        model, Polynomial(2), Fixed(), rows=SampledRows(states), regularisation=REGULARISATION,
        seed=_SEED, judge=False,
    )  # fmt: skip
    best = network.static_priority(OTHER_TIE_ORDER)
    policies: dict[str, Policy] = {
        RANDOM: Uniform(),
        LONGEST: network.longest_queue(),
        LAST_BUFFER: network.last_buffer_first(),
        OURS: ours.policy,
        BEST_RULE: best,
    }
    tell("network: simulating five policies", 0.45)
    found = compare(model, policies, _EPISODES, baseline=OURS, seed=_SEED)
    return NetworkPart(model, proof, ours, found)
