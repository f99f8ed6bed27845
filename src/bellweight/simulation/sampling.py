"""States to take rows from, drawn from a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import IntArray
from bellweight.common.status import ArgumentError
from bellweight.common.streams import stream_keys
from bellweight.models.function_model import FunctionModel
from bellweight.policies import Policy
from bellweight.simulation.blocks import Task, run_blocks
from bellweight.simulation.event_episodes import EventRollout

_SAMPLING = 1  # the branch of a seed that constraint states are drawn from
_MOST_REPEATS = 5  # batches of draws without a new state before sampling gives up


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
    found, drawn = distinct_states(model, wanted, policy, seed=seed, jobs=jobs)
    if len(found) < wanted:
        raise ArgumentError(
            f"only {len(found):,} distinct states in {drawn:,} draws, expected {wanted:,}: ask for "
            "fewer, or sample from a wider distribution, such as that of a policy: "
            "sample_states(model, n, Uniform())"
        )
    return found


def distinct_states(
    model: FunctionModel,
    wanted: int,
    policy: Policy | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
) -> tuple[Any, int]:
    """Return up to n distinct states, fewer where no more turn up, and how many were drawn."""
    keys = stream_keys(seed, _SAMPLING)
    rollout = None if policy is None else EventRollout.of(model, policy.compiled(model))
    found = np.zeros((0, model.dimension), dtype=model.loops.state_type)
    drawn, size, repeats = 0, max(wanted, 1_024), 0
    while len(found) < wanted:
        if rollout is None:
            fresh = model.sample_initial(drawn, drawn + size, keys[0])
        else:
            task = Task(rollout.state_block, 0, keys)
            fresh = np.concatenate(run_blocks(task, drawn, drawn + size, jobs))
        drawn += size
        stacked = np.concatenate([found, fresh])
        _, places = np.unique(stacked, axis=0, return_index=True)
        repeats = repeats + 1 if len(places) == len(found) else 0
        found = stacked[np.sort(places)]
        if repeats == _MOST_REPEATS:
            break
    return found[:wanted], drawn
