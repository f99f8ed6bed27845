"""Races: which of several policies costs least; undecided policies get more episodes.

All policies meet the same random numbers. After each look, policies that are clearly worse than
the leader are dropped, and the others go on with twice the episodes. Each paired comparison is made
at a level divided by the number of comparisons there can be (Bonferroni, Student's t). So over the
whole race the best policy is dropped with a chance of at most 1 - confidence, if means of a
thousand episodes or more are normally distributed; they are not where a cost is huge once in ten
thousand episodes. Policies whose episodes all cost the same in the first look count as one from
then on. On tabular models costs are exact, so the policies are ranked without a race.

The costs of a race are those by which its winner was chosen, hence biased in its favour: judge it
on fresh random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bellweight.backends import backend_of
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.evaluation.evaluate import Difference, by_name, rollout_of, steps_of
from bellweight.models import Model
from bellweight.policies import HasPolicy, Policy
from bellweight.simulation import (
    BLOCK,
    Episodes,
    episode_costs,
    mean_and_half_width,
    one_sided,
)

Tell = Callable[[str], None]


@files.storable("Standing")
@dataclass(frozen=True)
class RankedPolicy:
    """What a race says of one policy; `alike` names others that cost the same.

    Where costs are simulated, they cost the same in every episode of the first look. `mean` and
    `half_width` are over its own `episodes`, `behind` is its paired difference to the winner over
    the episodes that both ran. Where costs are exact, `episodes` is 0.
    """

    name: str
    mean: float
    half_width: float
    episodes: int
    behind: Difference
    dropped: bool = False
    alike: tuple[str, ...] = ()


@files.storable("Race")
@dataclass(frozen=True)
class Race:
    """The standings: the winner first, then the others, those that were dropped last.

    `confidence` is that of never having dropped the best; `looks` counts the looks taken.
    """

    standings: tuple[RankedPolicy, ...]
    confidence: float
    episodes: int
    looks: int

    @property
    def winner(self) -> str:
        """The name of the policy of least cost among those left."""
        return self.standings[0].name

    @property
    def undecided(self) -> tuple[str, ...]:
        """Names of the policies that could not be told from the winner."""
        return tuple(s.name for s in self.standings[1:] if not s.dropped)


def race(
    model: Model,
    policies: Mapping[str, Policy | HasPolicy],
    budget: int,
    *,
    confidence: float = 0.95,
    horizon: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    deadline: float | None = None,
    tell: Tell | None = None,
) -> Race:
    """Race policies for at most `budget` episodes in all, or until `deadline` (`perf_counter`)."""
    acting = by_name(policies)
    backend = backend_of(model)
    sure = checks.positive(confidence, "confidence", below=1.0)
    costs = {name: backend.exact_cost(policy) for name, policy in acting.items()}
    known = {name: cost for name, cost in costs.items() if cost is not None}
    if known:
        return _ranked(known, sure)
    n, look = checks.count(budget, "budget"), backend.first_look
    if n < look * len(acting):
        raise ArgumentError(
            f"budget is {n:,} episodes, too few for a first look at {len(acting)} policies: "
            f"expected at least {look * len(acting):,}"
        )
    steps = steps_of(model, horizon)
    rollouts = {name: rollout_of(model, policy) for name, policy in acting.items()}
    running = SimulatedRace(rollouts, steps, seed, jobs, look)
    return running.run(n, sure, deadline, tell or (lambda _: None))


def _ranked(costs: Mapping[str, float], confidence: float) -> Race:
    """Rank by exact cost; policies of the same cost up to rounding count as alike."""
    order = sorted(costs, key=lambda name: costs[name])
    best = costs[order[0]]
    standings: list[RankedPolicy] = []
    for name in order:
        behind = Difference(costs[name] - best, 0.0)
        last = standings[-1] if standings else None
        if last is not None and costs[name] - last.mean <= tolerances.SAME_EXACT_COST * abs(
            last.mean
        ):
            standings[-1] = replace(last, alike=(*last.alike, name))
        else:
            standings.append(
                RankedPolicy(name, costs[name], 0.0, 0, behind, dropped=bool(standings))
            )
    return Race(tuple(standings), confidence, 0, 0)


class SimulatedRace:
    """The state of a race by simulation."""

    def __init__(
        self,
        rollouts: Mapping[str, Episodes],
        steps: int,
        seed: int,
        jobs: int | None = None,
        look: int = BLOCK,
    ) -> None:
        self._rollouts, self._look = dict(rollouts), look
        self._steps, self._seed, self._jobs = steps, seed, jobs
        self._costs: dict[str, FloatArray] = {name: np.zeros(0) for name in rollouts}
        self._alike: dict[str, list[str]] = {}
        self._running = list(rollouts)
        self._spent = 0

    def run(self, budget: int, confidence: float, deadline: float | None, tell: Tell) -> Race:
        """Race until one is left, or episodes or time are used up."""
        began = time.perf_counter()
        planned = _most_looks(budget, self._look)
        tests = planned * max(1, len(self._running) - 1)
        level = 1.0 - (1.0 - confidence) / tests
        looks, goal = 0, self._look
        while True:
            self._simulate(goal)
            looks += 1
            if looks == 1:
                self._merge()
            self._drop(level)
            tell(f"race: {goal:,} episodes each, {len(self._running)} policies left")
            left = budget - self._spent
            if deadline is not None:
                # As many as there is time for, at the pace so far.
                now = time.perf_counter()
                left = min(left, int(self._spent * (deadline - now) / (now - began)))
            each = left // len(self._running)
            if len(self._running) == 1 or looks == planned or each < self._look:
                return Race(self._standings(), confidence, self._spent, looks)
            goal += min(goal, each)

    def _simulate(self, goal: int) -> None:
        for name in self._running:
            known = self._costs[name]
            more = episode_costs(
                self._rollouts[name], len(known), goal, self._steps, self._seed, self._jobs
            )
            self._costs[name] = np.concatenate([known, more])
            self._spent += len(more)

    def _merge(self) -> None:
        """Count policies whose episodes all cost the same as one: the first of them runs on."""
        first: dict[bytes, str] = {}
        for name in self._running:
            kept = first.setdefault(self._costs[name].tobytes(), name)
            if kept != name:
                self._alike.setdefault(kept, []).append(name)
        self._running = list(first.values())

    def _drop(self, level: float) -> None:
        leader = self._leader()
        self._running = [
            name
            for name in self._running
            if name == leader or not self._is_worse(name, leader, level)
        ]

    def _is_worse(self, name: str, leader: str, level: float) -> bool:
        gap = self._gap(name, leader)
        margin = one_sided(gap.half_width, len(self._costs[leader]), level)
        # A difference that has not varied so far gives no estimate of its variance.
        varies = gap.half_width > tolerances.SAME_COST * abs(gap.mean)
        return varies and gap.mean > margin

    def _leader(self) -> str:
        return min(self._running, key=lambda name: float(self._costs[name].mean()))

    def _gap(self, name: str, leader: str) -> Difference:
        n = min(len(self._costs[name]), len(self._costs[leader]))
        return Difference(*mean_and_half_width(self._costs[name][:n] - self._costs[leader][:n]))

    def _standings(self) -> tuple[RankedPolicy, ...]:
        leader = self._leader()
        others = {name for names in self._alike.values() for name in names}
        found = [
            RankedPolicy(
                name,
                *mean_and_half_width(self._costs[name]),
                len(self._costs[name]),
                self._gap(name, leader),
                dropped=name not in self._running,
                alike=tuple(self._alike.get(name, ())),
            )
            for name in self._costs
            if name not in others
        ]
        return tuple(sorted(found, key=lambda s: (s.dropped, -s.episodes, s.behind.mean)))


def _most_looks(budget: int, look: int) -> int:
    """Return the most looks there can be: with two policies, whose episodes double each time."""
    looks, goal = 1, look
    while 2 * goal < budget:
        goal, looks = 2 * goal, looks + 1
    return looks
