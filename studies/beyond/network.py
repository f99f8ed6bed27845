"""Beyond the paper on the eight-dimensional network: many samples of constraint states, paired.

Every sample has seeds of its own for its states, for occupancies and for the judgement, and further
samples, numbered from -1 down, are there only to choose the regularisation. Within a sample all
policies meet the same luck.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.streams import derived_seed
from bellweight.evaluation.evaluate import rollout_of
from bellweight.plans.auto import Auto
from bellweight.plans.race_result import RaceResult
from bellweight.plans.relatives import PointwiseMaximum, SmoothedALP
from bellweight.plans.resampling import Resampled, redrawn
from bellweight.policies import Policy, Uniform
from bellweight.problems import QueueNetwork
from bellweight.program import SampledRows
from bellweight.reproduce.network.runs import BASIS, BEST_STATIC, LAST_BUFFER, OTHER_TIE_ORDER
from bellweight.reproduce.paper import TABLE2_HORIZON
from bellweight.reproduce.runs import without_warnings
from bellweight.simulation import Simulation, episode_costs, mean_and_half_width, sample_states
from bellweight.solve import Result, solve
from bellweight.weights.loop import Method, Stop
from bellweight.weights.methods import DIA, Fixed, FromPolicy

PLAIN = "Plain ALP"
REGULARISED = "Regularised ALP"
GOOD = "Regularised, a good policy's states"
AUTO = "Auto, no baselines"
AUTO_BASELINES = "Auto with baselines"
WITH_BASELINES = "auto with baselines"
RADII = (10.0, 40.0)
_A_FEW = Stop(max_iterations=5)
BUDGET = 5e-4  # of the smoothed program: larger ones cost more here, and take minutes


@dataclass(frozen=True)
class Entry:
    """One number-carrying row: the part it belongs to, its sample if it has one, its numbers."""

    part: str
    sample: int | None
    name: str
    numbers: dict[str, Any]


class Purpose(IntEnum):
    """What random numbers are for."""

    STATES = 0
    OCCUPANCY = 1
    CHOICE = 2
    EVALUATION = 3
    REDRAWN = 4


class Arena:
    """The network, its baselines, and how policies are found and judged in a sample."""

    def __init__(
        self, seed: int, states: int, episodes: int, occupancy_episodes: int, jobs: int | None
    ) -> None:
        self.network = QueueNetwork()
        self.model = self.network.model()
        self.last_buffer = self.network.last_buffer_first()
        self.best_static = self.network.static_priority(OTHER_TIE_ORDER)
        self.simulation = Simulation(occupancy_episodes, TABLE2_HORIZON)
        self._seed, self._n, self._episodes, self._jobs = seed, states, episodes, jobs
        self._known: dict[tuple[int, str], FloatArray] = {}

    def seed(self, sample: int, purpose: Purpose) -> int:
        """Return the seed of a sample, one for each purpose; choice samples are negative."""
        return derived_seed(self._seed, abs(sample), int(sample < 0), int(purpose))

    def states(self, sample: int) -> IntArray:
        """Return the constraint states of a sample, from the initial distribution."""
        return sample_states(self.model, self._n, seed=self.seed(sample, Purpose.STATES))

    def states_of(self, sample: int, policy: Policy) -> IntArray:
        """Return the same and as many from a policy's occupancy."""
        seed = self.seed(sample, Purpose.REDRAWN)
        return redrawn(self.model, self.states(sample), policy, None, seed, self._jobs)[0]

    def solve(
        self,
        sample: int,
        states: IntArray,
        method: Any,
        delta: float = 0.0,
        stop: Stop | None = None,
    ) -> Any:
        """Run a method or plan on some states."""
        with without_warnings():
            return solve(
                self.model, BASIS, method, rows=SampledRows(states), simulation=self.simulation,
                stop=stop, regularisation=delta, seed=self.seed(sample, Purpose.OCCUPANCY),
                jobs=self._jobs, judge=False,
            )  # fmt: skip

    def judged(self, part: str, sample: int, name: str, policy: Policy, **more: Any) -> Entry:
        """Return a policy's cost in a sample, paired with both baselines."""
        costs = self._costs(sample, policy, Purpose.EVALUATION)
        mean, width = mean_and_half_width(costs)
        numbers: dict[str, Any] = {"cost": mean, "half_width": width}
        for key, rule in (("last_buffer", self.last_buffer), ("static", self.best_static)):
            gap, gap_width = mean_and_half_width(costs - self._baseline(sample, key, rule))
            numbers |= {f"to_{key}": gap, f"to_{key}_half_width": gap_width}
        return Entry(part, sample, name, {**numbers, **more})

    def choice_gap(self, sample: int, policy: Policy, episodes: int) -> float:
        """Return a difference to last-buffer-first by which something is chosen, and only that."""
        costs, reference = (
            self._costs(sample, each, Purpose.CHOICE, episodes)
            for each in (policy, self.last_buffer)
        )
        return float((costs - reference).mean())

    def _baseline(self, sample: int, key: str, rule: Policy) -> FloatArray:
        # Samples come one after the other.
        self._known = {known: c for known, c in self._known.items() if known[0] == sample}
        if (sample, key) not in self._known:
            self._known[sample, key] = self._costs(sample, rule, Purpose.EVALUATION)
        return self._known[sample, key]

    def _costs(
        self, sample: int, policy: Policy, purpose: Purpose, episodes: int | None = None
    ) -> FloatArray:
        n = self._episodes if episodes is None else episodes
        seed = self.seed(sample, purpose)
        rollout = rollout_of(self.model, policy)
        return episode_costs(rollout, 0, n, TABLE2_HORIZON, seed, self._jobs)


def choice(arena: Arena, sample: int, deltas: Sequence[float], episodes: int) -> list[Entry]:
    """Return what regularisations cost on a sample kept for choosing one."""
    states = arena.states(sample)
    found = []
    for delta in deltas:
        policy = arena.solve(sample, states, Fixed("initial"), delta).policy
        gap = arena.choice_gap(sample, policy, episodes)
        found.append(Entry("choice", sample, f"delta {delta:g}", {"delta": delta, "gap": gap}))
    return found


def sampled(arena: Arena, sample: int, delta: float) -> list[Entry]:
    """Return the plain and the regularised program on a sample, and the baselines."""
    states = arena.states(sample)
    found = [
        arena.judged("samples", sample, LAST_BUFFER, arena.last_buffer),
        arena.judged("samples", sample, BEST_STATIC, arena.best_static),
    ]
    rows: list[tuple[str, Method, float]] = [
        (PLAIN, Fixed("initial"), 0.0),
        (REGULARISED, Fixed("initial"), delta),
        ("Plain DIA (Random)", DIA(target=Uniform()), 0.0),
        ("Regularised DIA (Random)", DIA(target=Uniform()), delta),
    ]
    for name, method, amount in rows:
        result = arena.solve(sample, states, method, amount)
        more = {"seconds": result.seconds, "dual_share": result.reported.dual_share}
        found.append(arena.judged("samples", sample, name, result.policy, **more))
    return found


def good(arena: Arena, sample: int, deltas: Sequence[float], episodes: int) -> list[Entry]:
    """Return the best of a few regularised programs on states of the best static priority.

    Weights are those of the initial distribution or of that policy's occupancy. The best is chosen
    on random numbers of its own.
    """
    leader = arena.best_static
    states = arena.states_of(sample, leader)
    weightings = {"initial weights": Fixed("initial"), "occupancy weights": FromPolicy(leader)}
    found: dict[str, Result] = {}
    for words, method in weightings.items():
        for delta in deltas:
            found[f"{words}, delta {delta:g}"] = arena.solve(sample, states, method, delta)
    gaps = {n: arena.choice_gap(sample, r.policy, episodes) for n, r in found.items()}
    best = min(gaps, key=lambda name: gaps[name])
    own = min((n for n in gaps if n.startswith("occ")), key=lambda name: gaps[name])
    return [
        arena.judged("good", sample, GOOD, found[best].policy, chosen=best),
        arena.judged(
            "good", sample, "the same, occupancy weights only", found[own].policy, chosen=own
        ),
    ]


def auto(arena: Arena, sample: int, plan: Auto, *, baselines: bool) -> list[Entry]:
    """Return what Auto finds, with or without baselines among its candidates."""
    if baselines:
        network = arena.network
        rules: dict[str, Any] = {
            LAST_BUFFER: arena.last_buffer,
            BEST_STATIC: arena.best_static,
            "Longest queue": network.longest_queue(),
            "Max-pressure": network.max_pressure(),
        }
        methods = {"Fixed": Fixed("initial"), "Random": FromPolicy(Uniform()), "DIA": DIA()}
        plan = replace(plan, candidates={**rules, **methods})
    began = time.perf_counter()
    race: RaceResult = arena.solve(sample, arena.states(sample), plan)
    seconds = time.perf_counter() - began
    name = AUTO_BASELINES if baselines else AUTO
    more = {"chosen": race.winner, "seconds": seconds, "reported": race.cost.mean}
    return [arena.judged("auto", sample, name, race.policy, **more)]


def dual(arena: Arena, sample: int, deltas: Sequence[float]) -> list[Entry]:
    """Return how far the dual speaks: states with mass, and the share of visits that meet it."""
    states = arena.states(sample)
    found = []
    for delta in (0.0, *deltas):
        for radius in (None, *RADII) if delta in (0.0, deltas[-1]) else (None,):
            began = time.perf_counter()
            method = DIA(target=Uniform(), extend=radius)
            result = arena.solve(sample, states, method, delta, _A_FEW)
            massive = len(np.unique(result.support.states, axis=0))
            reach = "" if radius is None else f", radius {radius:g}"
            numbers = {
                "delta": delta,
                "radius": radius,
                "states": massive,
                "share": result.reported.dual_share,
                "seconds": time.perf_counter() - began,
            }
            found.append(Entry("dual", sample, f"delta {delta:g}{reach}", numbers))
    return found


def relatives(arena: Arena, sample: int, delta: float) -> list[Entry]:
    """Return relatives of the program on the network: the same rows, other uses of them."""
    states = arena.states(sample)
    plans: dict[str, Any] = {
        f"Smoothed ALP, budget {BUDGET:g}": SmoothedALP(budget=BUDGET, weights=DIA()),
        "Pointwise maximum of three": PointwiseMaximum(
            methods=[Fixed("initial"), FromPolicy(Uniform()), FromPolicy(arena.last_buffer)]
        ),
        f"Resampled, delta {delta:g}": Resampled(rounds=2),
    }
    found = []
    for name, plan in plans.items():
        amount = delta if name.startswith("Resampled") else 0.0
        policy = arena.solve(sample, states, plan, amount).policy
        found.append(arena.judged("relatives", sample, name, policy))
    return found
