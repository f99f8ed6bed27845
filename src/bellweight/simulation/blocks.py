"""Blocks of episodes and their parallel execution.

Every episode has its own random streams (`common/streams.py`): the initial state, the actions and
the events draw from separate streams, and step t always uses the t-th number. Results are therefore
the same for any number of workers, and two policies simulated with the same seed meet the same
events (common random numbers).

A block is one compiled call that releases the interpreter lock; blocks are spread over threads, or
over whatever backend `joblib.parallel_config` names: local processes, a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import hash as joblib_hash

from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, WorkerError
from bellweight.common.streams import Keys, stream_keys
from bellweight.common.workers import dask_client, in_order
from bellweight.simulation.episodes import Episodes
from bellweight.simulation.kept_blocks import KeptBlocks

BLOCK = 1_024
"""Episodes per block: a block is the unit of parallel work."""


class Finished(dict[tuple[int, int], Any]):
    """Finished blocks of episodes, by their range; the label tells which run they belong to."""

    def __init__(self, blocks: Mapping[tuple[int, int], Any], label: str) -> None:
        super().__init__(blocks)
        self.label = label


@dataclass(frozen=True, eq=False)
class Task:
    """A block function with its settings, in a form that can be sent to another process."""

    block: Callable[..., Any]
    horizon: int
    keys: Keys

    def __call__(self, first: int, last: int) -> Any:
        return self.block(first, last, self.horizon, self.keys)


def run_blocks(
    task: Callable[[int, int], Any],
    first: int,
    last: int,
    jobs: int | None = None,
    finished: Finished | None = None,
    size: int = BLOCK,
    kept: KeptBlocks | None = None,
) -> list[Any]:
    """Run a task over blocks of episodes, `size` in each, in parallel; return answers in order.

    When a worker dies the error carries the finished blocks; pass them back as `finished` and only
    the missing ones are run. Blocks of `kept` are not run, and others are added to it as they
    finish.
    """
    edges = [*range(first, last, size), last]
    if finished is not None and getattr(finished, "label", "") != joblib_hash(task):
        raise ArgumentError(
            "the finished blocks belong to another run: resume with the same model, policy, seed "
            "and horizon"
        )
    done: dict[tuple[int, int], Any] = {**(kept or {}), **(finished or {})}
    todo = [edge for edge in pairwise(edges) if edge not in done]
    dask_client()  # says what is wrong with the workers of a cluster
    try:
        for edge, answer in zip(todo, in_order(task, todo, jobs), strict=True):
            done[edge] = answer
            if kept is not None:
                kept.keep(edge, answer)
    except BrokenExecutor as problem:
        raise WorkerError(
            f"a worker process died after {len(done)} of {len(edges) - 1} blocks "
            f"({type(problem).__name__}): resume with the error's finished blocks, use fewer jobs "
            "if memory ran out, or run on Dask, which retries",
            Finished(done, joblib_hash(task)),
        ) from problem
    return [done[edge] for edge in pairwise(edges)]


def episode_costs(
    rollout: Episodes,
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
