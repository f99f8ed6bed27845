"""Compiled rollouts and their parallel execution.

Every episode has its own random streams (`streams.py`): the initial state, the actions and the
events draw from separate streams, and step t always uses the t-th number. Results are therefore the
same for any number of workers, and two policies simulated with the same seed meet the same luck
(common random numbers).

Episodes run in blocks. A block is one compiled call that releases the interpreter lock; joblib
spreads blocks over threads, or over whatever backend `joblib.parallel_config` names: local
processes, a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as joblib_hash
from scipy.special import stdtrit

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common import checks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError, WorkerError
from bellweight.common.streams import Keys, compiled, draw, episode_key, pick, stream_keys
from bellweight.models import TabularModel
from bellweight.models.function_model import FunctionModel, joined_written
from bellweight.models.kernels.layouts import Acting
from bellweight.models.loops import Loops
from bellweight.policies.compiled import Program
from bellweight.policies.policy import Policy, checked_probabilities
from bellweight.simulation.linear_episodes import FeatureRollout

BLOCK = 1_024
"""Episodes per block: a block is the unit of parallel work."""

CONFIDENCE = 0.95

_SAMPLING = 1  # the branch of a seed that constraint states are drawn from
_MOST_BARREN = 5  # batches of draws without a new state before sampling gives up


class Finished(dict[tuple[int, int], Any]):
    """Finished blocks of episodes, by their range; the label tells which run they belong to."""

    def __init__(self, blocks: Mapping[tuple[int, int], Any], label: str) -> None:
        super().__init__(blocks)
        self.label = label


class Rollout(Protocol):
    """What can be simulated in blocks of episodes."""

    def block(self, first: int, last: int, horizon: int, keys: Keys) -> FloatArray:
        """Return the discounted costs of episodes first, ..., last - 1."""
        ...


def episode_costs(
    rollout: Rollout,
    first: int,
    last: int,
    horizon: int,
    seed: int,
    jobs: int | None = None,
    finished: Finished | None = None,
) -> FloatArray:
    """Return the discounted cost of each episode first, ..., last - 1, in order."""
    keys = stream_keys(seed)
    task = Task(rollout.block, horizon, keys)
    return np.concatenate(run_blocks(task, first, last, jobs, finished))


def mean_and_half_width(sample: FloatArray) -> tuple[float, float]:
    """Return the mean of a sample and its 95 % half-width (Student's t)."""
    quantile = float(stdtrit(len(sample) - 1, 0.5 + CONFIDENCE / 2.0))
    return float(sample.mean()), quantile * float(sample.std(ddof=1)) / len(sample) ** 0.5


def one_sided(half_width: float, n: int, confidence: float) -> float:
    """Return how far the one-sided limit of a mean lies from it, from the 95 % half-width."""
    share = stdtrit(n - 1, confidence) / stdtrit(n - 1, 0.5 + CONFIDENCE / 2.0)
    return half_width * float(share)


def run_blocks(
    task: Callable[[int, int], Any],
    first: int,
    last: int,
    jobs: int | None = None,
    finished: Finished | None = None,
) -> list[Any]:
    """Run a task over blocks of episodes in parallel; return its answers in order.

    When a worker dies the error carries the finished blocks; pass them back as `finished` and only
    the missing ones are run.
    """
    edges = [*range(first, last, BLOCK), last]
    if finished is not None and getattr(finished, "label", "") != joblib_hash(task):
        raise ArgumentError(
            "the finished blocks belong to another run: resume with the same model, policy, seed "
            "and horizon"
        )
    done: dict[tuple[int, int], Any] = {} if finished is None else dict(finished)
    todo = [edge for edge in pairwise(edges) if edge not in done]
    workers = -1 if jobs is None else checks.count(jobs, "jobs")
    work = Parallel(n_jobs=workers, prefer="threads", return_as="generator")
    try:
        for edge, answer in zip(todo, work(delayed(task)(*edge) for edge in todo), strict=True):
            done[edge] = answer
    except BrokenExecutor as problem:
        raise WorkerError(
            f"a worker process died after {len(done)} of {len(edges) - 1} blocks "
            f"({type(problem).__name__}): resume with the error's finished blocks, use fewer jobs "
            "if memory ran out, or run on Dask, which retries",
            Finished(done, joblib_hash(task)),
        ) from problem
    return [done[edge] for edge in pairwise(edges)]


@dataclass(frozen=True, eq=False)
class Task:
    """A block function with its settings, in a form that can be sent to another process."""

    block: Callable[..., Any]
    horizon: int
    keys: Keys

    def __call__(self, first: int, last: int) -> Any:
        return self.block(first, last, self.horizon, self.keys)


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


@dataclass(frozen=True, eq=False)
class EventRollout(FeatureRollout):
    """An event model and a policy, laid out for the compiled loops.

    It holds the model's text, not its functions, which may not be fit to be sent to a worker.
    """

    loops: Loops
    acting: Acting
    basis: CompiledBasis | None = None

    @classmethod
    def of(cls, model: FunctionModel, program: Program, basis: Basis | None = None) -> EventRollout:
        """Lay out a model and a policy; with a basis, discounted features are added up too."""
        if basis is None:
            return cls(program.loops, program.acting)
        compiled = CompiledBasis.of(basis, model.dimension)
        loops = program.loops
        if compiled.written and not program.written:
            written = joined_written(compiled.written, program.written)
            loops = model.loops_with(written=written)
        return cls(loops, program.acting, compiled)

    def state_block(self, first: int, last: int, _: int, keys: Keys) -> Any:
        """Return one state per episode, drawn from the discounted occupancy."""
        return self.loops.occupied_states(first, last, keys, self.acting)

    def _run(self, first: int, last: int, horizon: int, keys: Keys) -> tuple[Any, Any, Any]:
        if self.basis is None:
            return self.loops.rollout(first, last, horizon, keys, self.acting)
        costs, sums, hits = self.loops.rollout(
            first, last, horizon, keys, self.acting, self.basis.functions
        )
        return costs, self.basis.of_basis(sums), hits


def sample_states(
    model: FunctionModel,
    n: int,
    policy: Policy | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
) -> IntArray:
    """Return n distinct states (n, d) from the initial distribution or a policy's occupancy.

    They come from streams of their own: episodes simulated with the same seed do not begin in them.
    """
    wanted = checks.count(n, "n")
    keys = stream_keys(seed, _SAMPLING)
    rollout = None if policy is None else EventRollout.of(model, policy.program(model))
    found = np.zeros((0, model.dimension), dtype=model.loops.state_type)
    drawn, size, barren = 0, max(wanted, 1_024), 0
    while len(found) < wanted:
        if rollout is None:
            fresh = model.sample_initial(drawn, drawn + size, keys[0])
        else:
            task = Task(rollout.state_block, 0, keys)
            fresh = np.concatenate(run_blocks(task, drawn, drawn + size, jobs))
        drawn += size
        stacked = np.concatenate([found, fresh])
        _, places = np.unique(stacked, axis=0, return_index=True)
        barren = barren + 1 if len(places) == len(found) else 0
        found = stacked[np.sort(places)]
        if barren == _MOST_BARREN:
            raise ArgumentError(
                f"only {len(found):,} distinct states in {drawn:,} draws, expected {wanted:,}: ask "
                "for fewer, or sample from a wider distribution, such as that of a policy: "
                "sample_states(model, n, Uniform())"
            )
    return found[:wanted]


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
        state = pick(draw(episode_key(keys[0], episode), 0), initial, 0, len(initial))
        total = 0.0
        factor = 1.0
        for step in range(horizon):
            pair = certain[state]
            if pair < 0:
                u = draw(action_key, step)
                pair = pick(u, policy, pair_start[state], pair_start[state + 1])
            total += factor * cost[pair]
            factor *= discount
            state = successor[pick(draw(event_key, step), chance, start[pair], start[pair + 1])]
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
