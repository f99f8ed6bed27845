"""States to take rows from, drawn from a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.status import ArgumentError
from bellweight.common.streams import stream_keys
from bellweight.models.function_model import FunctionModel
from bellweight.models.kernels.tables import add_distinct, empty_slots
from bellweight.policies import Policy
from bellweight.simulation.blocks import Task, run_blocks
from bellweight.simulation.event_episodes import EventRollout

_SAMPLING = 1  # the branch of a seed that constraint states are drawn from
_MOST_REPEATS = 5  # times the wanted number of draws without a new state: sampling gives up
_MOST_DRAWN = 1 << 20  # states drawn at a time


def sample_states(
    model: FunctionModel,
    n: int,
    policy: Policy | None = None,
    *,
    how: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> Any:
    """Return distinct states for the rows of a program.

    `how` says where they come from:

        "initial"      the initial distribution, the default
        "occupancy"    where `policy` spends its discounted time, the default with a policy
        "grid"         the finest even grid over the box with at most n points
        "sequence"     a scrambled Sobol sequence over the box, its corners first

    Along sides of a step model's box that have no bound, a grid and a sequence reach ten times as
    far as first states do; an event model needs upper bounds for them. States come from streams of
    their own: episodes simulated with the same seed do not begin in them.

    Args:
        model: an event, step or factored model.
        n: how many; a grid and a sequence give fewer where whole coordinates have fewer values.
        policy: whose states they are, for `"occupancy"`.
        how: one of the words above.
        seed: decides the random numbers.
        jobs: how many workers simulate; all cores by default.

    Returns:
        The states (n, d).

    Examples:
        >>> network = bw.problems.queue_network(compiled=False)
        >>> bw.sample_states(network, 5, seed=1).shape
        (5, 8)
    """
    wanted = checks.count(n, "n")
    way = how or ("initial" if policy is None else "occupancy")
    checks.one_of(way, "how", ("initial", "occupancy", "grid", "sequence"))
    if (way == "occupancy") != (policy is not None):
        missing = "a policy" if policy is None else "no policy"
        raise ArgumentError(f"how is {way!r}, expected {missing} with it")
    if way in ("grid", "sequence"):
        box = model.box()
        points = box.grid(wanted) if way == "grid" else box.sequence(wanted, seed)
        return model.check_states(points)
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
    found = np.zeros((wanted, model.dimension), dtype=model.loops.state_type)
    slots = empty_slots(wanted)
    n_found, drawn, repeats = 0, 0, 0
    size = min(max(wanted, 1_024), _MOST_DRAWN)
    while n_found < wanted and repeats < _MOST_REPEATS * max(1, wanted // size):
        if rollout is None:
            fresh = model.sample_initial(drawn, drawn + size, keys[0])
        else:
            task = Task(rollout.state_block, 0, keys)
            fresh = np.concatenate(run_blocks(task, drawn, drawn + size, jobs))
        drawn += size
        before, n_found = n_found, add_distinct(slots, found, n_found, fresh)
        repeats = repeats + 1 if n_found == before else 0
    return found[:n_found], drawn
