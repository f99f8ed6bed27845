"""One row of Table 2: a policy, found on one sample of constraint states, and what it costs.

Every sample has seeds of its own, one for each purpose. States, occupancies and evaluation never
share random numbers, so no policy is judged on the random numbers by which it was found, and the
samples are independent. Within a sample all policies meet the same random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import numpy as np

from bellweight.basis import Polynomial
from bellweight.common import checks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError
from bellweight.common.streams import derived_seed
from bellweight.evaluation.evaluate import evaluate, rollout_of
from bellweight.policies import Greedy, Rule, Uniform
from bellweight.problems import QueueNetwork
from bellweight.program import SampledRows
from bellweight.reproduce.artefact import Settings
from bellweight.reproduce.paper import TABLE2, TABLE2_HORIZON
from bellweight.reproduce.runs import solved
from bellweight.simulation import Simulation, episode_costs, mean_and_half_width, sample_states
from bellweight.solve import Result
from bellweight.weights.loop import HistoryEntry, Method, Stop
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy

METHODS = tuple(TABLE2)
LAST_BUFFER = "Last buffer first"
BEST_STATIC = "Best static priority"
OTHER_TIE = "Last buffer, 3 before 8"
BASELINES = (LAST_BUFFER, OTHER_TIE, "Longest queue", "Max-pressure", BEST_STATIC)
BASIS = Polynomial(2)

Watch = Callable[[HistoryEntry], None]

OTHER_TIE_ORDER = (2, 7, 0, 1, 5, 6, 4, 3)
"""Last buffer first with its tie the other way: the best of the 72 static priorities."""

_NEVER = 1e-300  # a tolerance that only moments that stand still to the last bit meet
_WARM_STATES = 300
_WARM_METHODS = ("Random", "PIA", "DIA (0.9)")  # every kind of policy, and every loop
_USUAL_ITERATIONS = {"Fixed 0.9": 0, "Random": 1, "DIA (Random)": 2, "DIA (0.9)": 3}


@dataclass(frozen=True)
class Table2Settings(Settings):
    """How much to do.

    `episodes` are those of the evaluation, for each sample and policy; `occupancy_episodes` those
    of an occupancy estimate; `choice_episodes` those by which the best static priority is chosen.
    `max_iterations` limits PIA, which oscillates.
    """

    episodes: int = 80_000
    states: tuple[int, ...] = (5_000, 60_000)
    samples: int = 5
    occupancy_episodes: int = 4_000
    choice_episodes: int = 4_000
    max_iterations: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.states or len(set(self.states)) < len(self.states):
            raise ArgumentError(f"states is {self.states}, expected different numbers of states")
        for n in self.states:
            checks.count(n, "states")
        for name in ("samples", "max_iterations"):
            checks.count(getattr(self, name), name)
        for name in ("occupancy_episodes", "choice_episodes"):
            checks.count(getattr(self, name), name, least=2)


@dataclass(frozen=True)
class Task:
    """A row to compute: the sample's number, its number of states, and the policy.

    Baselines need no constraint states: theirs is None.
    """

    sample: int
    states: int | None
    policy: str

    def __str__(self) -> str:
        sized = "" if self.states is None else f"{self.states:,} states, "
        return f"sample {self.sample}, {sized}{self.policy}"


@dataclass(frozen=True)
class Choice:
    """The best static priority: its order of queues (from 1), group by group, and its cost then.

    `is_last_buffer` says whether it is last-buffer-first by another name.
    """

    order: tuple[int, ...]
    cost: float
    episodes: int
    candidates: int
    is_last_buffer: bool


@dataclass(frozen=True)
class Run:
    """A finished row: cost and paired difference to last-buffer-first, with 95 % half-widths.

    What follows them is None for baselines, which no method chose.
    """

    sample: int
    states: int | None
    policy: str
    cost: float
    half_width: float
    difference: float
    difference_half_width: float
    status: str | None = None
    iterations: int | None = None
    seconds: float | None = None
    dual_share: float | None = None
    largest_total: int | None = None
    largest_queue: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def task(self) -> Task:
        """The task that this row finishes."""
        return Task(self.sample, self.states, self.policy)


class _Purpose(IntEnum):
    """What random numbers are for."""

    STATES = 0
    OCCUPANCY = 1
    EVALUATION = 2


def tasks(settings: Table2Settings) -> list[Task]:
    """Return every row of the table in the order of the work: sample by sample."""
    found = []
    for sample in range(1, settings.samples + 1):
        found += [Task(sample, None, name) for name in BASELINES]
        found += [Task(sample, n, name) for n in settings.states for name in METHODS]
    return found


def work(task: Task, settings: Table2Settings) -> float:
    """Return how long a row takes, in episodes."""
    usual = _USUAL_ITERATIONS.get(task.policy, settings.max_iterations)
    solving = 0 if task.states is None else usual * settings.occupancy_episodes + task.states / 2
    return float(settings.episodes + solving)


def methods() -> dict[str, Method]:
    """Return the methods of the table by the name of their row; the initial decay is 0.9."""
    return {
        "Fixed 0.9": Fixed("initial"),
        "Random": FromPolicy(Uniform()),
        "PIA": PIA(),
        "DIA (Random)": DIA(target=Uniform()),
        "DIA (0.9)": DIA(target=Fixed("initial")),
    }


class Runner:
    """Computes rows of Table 2: the network, and everything that rows have in common."""

    def __init__(self, settings: Table2Settings) -> None:
        began = time.perf_counter()
        self.settings = settings
        self.network = QueueNetwork()
        self.model = self.network.model()
        self._solve = partial(solved, self.model, BASIS, jobs=settings.jobs)
        self._known: dict[tuple[int, bytes], FloatArray] = {}
        self._opened = time.perf_counter() - began

    def warm_up(self) -> tuple[float, float]:
        """Run every loop once, small; return the seconds it took and the tail bound.

        The time is that of compiling, or of loading what was compiled before, so that the times of
        the rows are those of the methods alone.
        """
        began = time.perf_counter()
        states = sample_states(self.model, _WARM_STATES, seed=self._seed(0, _Purpose.STATES))
        for name in _WARM_METHODS:
            found = self._solve(
                methods()[name], rows=SampledRows(states), simulation=Simulation(2),
                stop=Stop(max_iterations=2),
            )  # fmt: skip
            self._costs(found.policy, 0, 2)
        rule = self.network.last_buffer_first()
        tail = evaluate(self.model, rule, 2, horizon=TABLE2_HORIZON).tail_bound
        assert tail is not None
        return self._opened + time.perf_counter() - began, tail

    def choose_static(self) -> Choice:
        """Return the static priority of least cost on random numbers kept for this purpose."""
        n = self.settings.choice_episodes
        rules = self.network.static_priorities()
        costs = {order: self._costs(rule, 0, n).mean() for order, rule in rules.items()}
        best = min(costs, key=lambda order: costs[order])
        first = self.network.last_buffer_first()
        return Choice(
            order=tuple(i + 1 for i in best),
            cost=float(costs[best]),
            episodes=n,
            candidates=len(rules),
            is_last_buffer=bool((self._costs(first, 0, n) == self._costs(rules[best], 0, n)).all()),
        )

    def run(self, task: Task, choice: Choice, watch: Watch) -> Run:
        """Compute a row."""
        if task.states is None:
            return self._judged(task, self._baseline(task.policy, choice), {})
        found = self.solve(task.sample, task.states, methods()[task.policy], watch)
        states = self.states(task.sample, task.states)
        facts = {
            "status": found.status.name,
            "iterations": len(found.history),
            "seconds": found.seconds,
            "dual_share": found.reported.dual_share,
            "largest_total": int(states.sum(axis=1).max()),
            "largest_queue": int(states.max()),
            "warnings": found.warnings,
        }
        return self._judged(task, found.policy, facts)

    def solve(
        self, sample: int, n: int, method: Method, watch: Watch, *, to_the_end: bool = False
    ) -> Result:
        """Run a method on a sample of n states, until it settles or, if need be, to the end."""
        settings = self.settings
        simulation = Simulation(settings.occupancy_episodes, TABLE2_HORIZON)
        stop = Stop(_NEVER if to_the_end else None, max_iterations=settings.max_iterations)
        return self._solve(
            method, rows=SampledRows(self.states(sample, n)), simulation=simulation, stop=stop,
            seed=self._seed(sample, _Purpose.OCCUPANCY), progress=watch,
        )  # fmt: skip

    def states(self, sample: int, n: int) -> IntArray:
        """Return the constraint states of a sample; a larger one begins with a smaller one."""
        return sample_states(self.model, n, seed=self._seed(sample, _Purpose.STATES))

    def _baseline(self, name: str, choice: Choice) -> Rule:
        fixed = {BEST_STATIC: [i - 1 for i in choice.order], OTHER_TIE: OTHER_TIE_ORDER}
        if name in fixed:
            return self.network.static_priority(fixed[name])
        return {
            LAST_BUFFER: self.network.last_buffer_first,
            "Longest queue": self.network.longest_queue,
            "Max-pressure": self.network.max_pressure,
        }[name]()

    def _judged(self, task: Task, policy: Greedy | Rule, facts: dict[str, object]) -> Run:
        """Simulate a policy beside last-buffer-first."""
        reference = self._evaluated(self.network.last_buffer_first(), task.sample)
        costs = self._evaluated(policy, task.sample)
        mean, width = mean_and_half_width(costs)
        gap, gap_width = mean_and_half_width(costs - reference)
        place = (task.sample, task.states, task.policy)
        return Run(*place, mean, width, gap, gap_width, **facts)  # type: ignore[arg-type]

    def _evaluated(self, policy: Greedy | Rule, sample: int) -> FloatArray:
        """Return the costs of a policy's episodes, simulated once for all rows that share it."""
        key = sample, _fingerprint(policy)
        # Rows come sample by sample.
        self._known = {known: costs for known, costs in self._known.items() if known[0] == sample}
        if key not in self._known:
            self._known[key] = self._costs(policy, sample, self.settings.episodes)
        return self._known[key]

    def _costs(self, policy: Greedy | Rule, sample: int, episodes: int) -> FloatArray:
        rollout = rollout_of(self.model, policy)
        seed = self._seed(sample, _Purpose.EVALUATION)
        return episode_costs(rollout, 0, episodes, TABLE2_HORIZON, seed, self.settings.jobs)

    def _seed(self, sample: int, purpose: _Purpose) -> int:
        """Return a seed for one sample (0: for what samples share) and one purpose."""
        return derived_seed(self.settings.seed, sample, int(purpose))


def _fingerprint(policy: Greedy | Rule) -> bytes:
    """Return what decides a policy's actions: policies that share it act alike.

    Coefficients that two methods reach on different ways differ by rounding: nine digits count.
    """
    if isinstance(policy, Rule):
        return b"rule" + np.asarray(policy.parameters).tobytes()
    ties = policy.dual
    parts = () if ties is None else (ties.states, ties.actions)
    support = b"".join(np.asarray(part).tobytes() for part in parts)
    return " ".join(f"{entry:.8e}" for entry in policy.coef).encode() + support
