"""Gymnasium: models from environments with a table, environments and policies from models."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from bellweight.common import optional
from bellweight.common.status import ArgumentError
from bellweight.interchange.assembly import Transitions, assembled, initial_law, tabular
from bellweight.models import TabularModel
from bellweight.policies import Policy


def from_gymnasium(env: Any, discount: float, initial: Any = None) -> TabularModel:
    """Return the model of an environment whose `env.unwrapped.P` lists its transitions.

    P[state][action] is a list of (probability, next, reward, terminated). States are the
    observations. Where transitions end an episode, one state is added at the end: all of them lead
    to it, and it is absorbing and costs nothing. Duplicate successors are merged, their rewards
    averaged. `initial` is `initial_state_distrib` of the environment by default, uniform if it has
    none. A time limit is no part of the model; its name says so.
    """
    bare = getattr(env, "unwrapped", env)
    if not hasattr(bare, "P"):
        raise ArgumentError(
            f"{type(bare).__name__} has no table P of its transitions, expected an environment "
            "such as FrozenLake, CliffWalking or Taxi"
        )
    rows, n_states, ends = _listed(bare.P)
    law = getattr(bare, "initial_state_distrib", None) if initial is None else initial
    start = np.zeros(n_states + ends)
    start[:n_states] = initial_law(law, n_states)
    labels = [*map(str, range(n_states)), "terminated"] if ends else None
    return assembled(
        rows,
        n_states + ends,
        discount,
        start,
        lambda row: f"transition {row} of P",
        sense="max",
        state_labels=labels,
        name=_name(env, bare),
    )


def to_gymnasium(model: TabularModel) -> Any:
    """Return an environment with the states as observations and minus the costs as rewards.

    An episode ends in a state that cannot be left and costs nothing. `info["action_mask"]` tells
    the admissible actions; another one changes nothing and costs as much as the dearest step.
    """
    optional.package("gymnasium")
    from bellweight.interchange.environment import TabularEnv

    return TabularEnv(tabular(model))


def policy_for_gymnasium(policy: Policy, seed: int | None = None) -> Callable[[Any], Any]:
    """Return a function from observations to actions; `seed` is for randomised policies.

    The policy is bound to its model (`policy.on(model)`), as those of results are.
    """
    rng = None if seed is None else np.random.default_rng(seed)

    def act(observation: Any) -> Any:
        array_of = np.asarray(observation)
        return policy.action(array_of.item() if array_of.ndim == 0 else array_of, rng)

    return act


def _listed(table: Any) -> tuple[Transitions, int, int]:
    """Return the transitions, the number of states, and 1 if there is a last one for endings."""
    state, action, successor = array("i"), array("i"), array("i")
    probability, reward = array("d"), array("d")
    n_states = len(table)
    ends = 0
    for x in range(n_states):
        actions = table[x].items() if hasattr(table[x], "items") else enumerate(table[x])
        for a, moves in actions:
            for chance, following, gain, terminated in moves:
                ends = max(ends, int(terminated))
                state.append(x)
                action.append(int(a))
                successor.append(n_states if terminated else int(following))
                probability.append(float(chance))
                reward.append(float(gain))
    if ends:
        for column, value in zip((state, action, successor), (n_states, 0, n_states), strict=True):
            column.append(value)
        probability.append(1.0)
        reward.append(0.0)
    x_column, a_column, y_column = (
        np.frombuffer(column, dtype=np.int32) for column in (state, action, successor)
    )
    chances, gains = np.frombuffer(probability), np.frombuffer(reward)
    return Transitions(x_column, a_column, y_column, chances, gains), n_states, ends


def _name(env: Any, bare: Any) -> str:
    spec = getattr(env, "spec", None)
    if spec is None:
        return type(bare).__name__
    limit = spec.max_episode_steps
    return spec.id if limit is None else f"{spec.id} without its limit of {limit} steps"
