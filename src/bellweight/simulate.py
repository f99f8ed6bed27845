"""Compiled rollouts, random streams, parallel execution.

Every episode has its own random streams, derived from (seed, episode) by a counter-based generator:
the initial state, the actions and the events draw from separate streams, and step t always uses the
t-th number. Results are therefore the same for any number of workers, and two policies simulated
with the same seed meet the same luck (common random numbers).

Episodes run in blocks. A block is one compiled call that releases the interpreter lock; joblib
spreads blocks over threads, or over whatever backend `joblib.parallel_config` names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from bellweight import checks
from bellweight.checks import FloatArray, IntArray
from bellweight.models import TabularModel
from bellweight.policy import Policy, checked_probabilities

BLOCK = 2_048
"""Episodes per block: a block is the unit of parallel work."""

Keys = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 1.0 / (1 << 53)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with Numba: cached on disk, without the interpreter lock, no fast-math."""
    wrapped: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    return wrapped


@compiled
def mix(z: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@compiled
def episode_key(base: np.uint64, episode: np.int64) -> np.uint64:
    """Return the key of one episode's stream."""
    return mix(base ^ mix(np.uint64(episode + 1) * _GOLDEN))


@compiled
def draw(key: np.uint64, step: np.int64) -> float:
    """Return the step-th uniform number in [0, 1) of a stream."""
    return (mix(key + np.uint64(step + 1) * _GOLDEN) >> np.uint64(11)) * _TO_UNIT


def stream_keys(seed: int) -> Keys:
    """Return the base keys of the initial, action and event streams."""
    sequence = np.random.SeedSequence(checks.count(seed, "seed", least=0))
    return sequence.generate_state(3, np.uint64).astype(np.uint64)


@dataclass(frozen=True, eq=False)
class TabularRollout:
    """A tabular model and a policy, laid out for the compiled loop."""

    initial: FloatArray
    policy: FloatArray
    certain: IntArray
    pair_start: IntArray
    start: IntArray
    successor: IntArray
    chance: FloatArray
    cost: FloatArray
    discount: float

    @classmethod
    def of(cls, model: TabularModel, policy: Policy) -> TabularRollout:
        """Lay out a model and a policy; `certain` holds the pair where there is no choice."""
        chances = checked_probabilities(model, policy)
        sure = np.flatnonzero(chances >= 1.0)
        certain = np.full(model.n_states, -1, dtype=np.int64)
        certain[model.pair_state[sure]] = sure
        return cls(
            initial=np.cumsum(model.initial),
            policy=_running_sums(chances, model.pair_start),
            certain=certain,
            pair_start=model.pair_start,
            start=model.transition.indptr.astype(np.int64),
            successor=model.transition.indices.astype(np.int64),
            chance=_running_sums(model.transition.data, model.transition.indptr),
            cost=model.cost,
            discount=model.discount,
        )

    def block(self, first: int, last: int, horizon: int, keys: Keys) -> FloatArray:
        """Return the discounted costs of episodes first, ..., last - 1."""
        costs: FloatArray = _tabular_block(
            first, last, horizon, keys, self.discount, self.initial, self.policy, self.certain,
            self.pair_start, self.start, self.successor, self.chance, self.cost,
        )  # fmt: skip
        return costs


def episode_costs(
    rollout: TabularRollout, first: int, last: int, horizon: int, seed: int, jobs: int | None = None
) -> FloatArray:
    """Return the discounted cost of each episode first, ..., last - 1, in order."""
    keys = stream_keys(seed)
    edges = [*range(first, last, BLOCK), last]
    work = Parallel(n_jobs=worker_count(jobs), prefer="threads")
    blocks = work(
        delayed(rollout.block)(begin, end, horizon, keys) for begin, end in pairwise(edges)
    )
    return np.concatenate(blocks)


def worker_count(jobs: int | None) -> int:
    """Return the number of workers: all available cores by default."""
    if jobs is not None:
        return checks.count(jobs, "jobs")
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@compiled
def _pick(u: float, sums: FloatArray, first: int, last: int) -> int:
    """Return the first position in [first, last) whose running sum exceeds u, at most last - 1."""
    if last - first > 16:
        low, high = first, last - 1
        while low < high:
            middle = (low + high) // 2
            if sums[middle] > u:
                high = middle
            else:
                low = middle + 1
        return low
    place = first
    while place < last - 1 and sums[place] <= u:
        place += 1
    return place


@compiled
def _tabular_block(
    first: int,
    last: int,
    horizon: int,
    keys: Keys,
    discount: float,
    initial: FloatArray,
    policy: FloatArray,
    certain: IntArray,
    pair_start: IntArray,
    start: IntArray,
    successor: IntArray,
    chance: FloatArray,
    cost: FloatArray,
) -> FloatArray:
    costs = np.empty(last - first)
    for episode in range(first, last):
        action_key = episode_key(keys[1], episode)
        event_key = episode_key(keys[2], episode)
        state = _pick(draw(episode_key(keys[0], episode), 0), initial, 0, len(initial))
        total = 0.0
        factor = 1.0
        for step in range(horizon):
            pair = certain[state]
            if pair < 0:
                u = draw(action_key, step)
                pair = _pick(u, policy, pair_start[state], pair_start[state + 1])
            total += factor * cost[pair]
            factor *= discount
            state = successor[_pick(draw(event_key, step), chance, start[pair], start[pair + 1])]
        costs[episode - first] = total
    return costs


def _running_sums(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return sums running within each segment, the last of each segment set to infinity.

    The last entry of a segment takes whatever rounding leaves over, so a draw always lands.
    """
    sums = np.cumsum(values)
    before = np.concatenate([[0.0], sums])[starts[:-1]]
    running = sums - np.repeat(before, np.diff(starts))
    running[np.asarray(starts[1:]) - 1] = np.inf
    return running
