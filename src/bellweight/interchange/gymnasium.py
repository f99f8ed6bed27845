"""Gymnasium: models from environments, environments and policies from models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bellweight.common import checks, optional
from bellweight.common.status import ArgumentError, ModelError
from bellweight.interchange.assembly import Transitions, assembled, initial_law, tabular
from bellweight.interchange.environment_model import EnvironmentModel, step_model
from bellweight.interchange.trials import Moves, first_action, tried
from bellweight.models import TabularModel
from bellweight.policies import HasPolicy, Policy, policy_of


def from_gymnasium(
    env: Any,
    discount: float,
    initial: Any = None,
    *,
    kind: str = "table",
    draws: int | None = None,
    **options: Any,
) -> Any:
    """Return the model of an environment: a table of its states, or a step model.

    **`kind="table"`**, a `TabularModel`. `env.unwrapped.P` lists the transitions: P[state][action]
    is a list of (probability, next, reward, terminated). States are the observations. Where
    transitions end an episode, one state is added at the end: all of them lead to it, and it is
    absorbing and costs nothing. Duplicate successors are merged, their rewards averaged.
    `initial` is `initial_state_distrib` of the environment by default, uniform if it has none.

    Without P every action is tried in every state. That needs observations and actions that are
    `Discrete`, and an environment that can be set to a state: the state is its attribute `s` or
    `state` (or what `set_state` takes), is the observation, and is all that decides a step. Where a
    step draws random numbers from `env.np_random`, give `draws`: chances are then the frequencies
    of so many steps. The initial law is that of 1,000 resets.

    **`kind="step"`**, a `StepModel` of an environment whose state is a vector that can be set
    (classic control). It has one more coordinate, which is 1 once the episode has ended; then
    nothing changes and nothing costs. Costs are minus the rewards. `initial` is a state; drawn by
    the environment's reset by default. `lower` and `upper` bound the state, by default as the
    observations are bounded; these and other `options` are those of `StepModel`, and `draws` is the
    number of draws in an expectation where steps are random.

    A time limit is no part of the model; its name says so.
    """
    checks.one_of(kind, "kind", ("table", "step"))
    bare = getattr(env, "unwrapped", env)
    if not hasattr(bare, "step") or not hasattr(bare, "action_space"):
        raise ArgumentError(f"env is {env!r}, expected an environment of Gymnasium")
    if kind == "step":
        more = options if draws is None else {**options, "draws": draws}
        return step_model(env, discount, initial, _name(env, bare), **more)
    if options:
        raise ArgumentError(f'{next(iter(options))} is an option of kind="step" only')
    if hasattr(bare, "P"):
        rows, n_states, ends = _listed(bare.P)
        law = getattr(bare, "initial_state_distrib", None) if initial is None else initial
    else:
        rows, n_states, ends, law = tried(env, draws, initial)
    start = np.zeros(n_states + ends)
    start[:n_states] = initial_law(law, n_states)
    labels = [*map(str, range(n_states)), "terminated"] if ends else None
    return assembled(
        rows,
        n_states + ends,
        discount,
        start,
        lambda row: f"transition {row} of the environment",
        sense="max",
        state_labels=labels,
        name=_name(env, bare),
    )


def to_gymnasium(model: TabularModel) -> Any:
    """Return an environment with the states as observations and minus the costs as rewards.

    An episode ends in a state that cannot be left and costs nothing. `info["action_mask"]` tells
    the admissible actions; another one changes nothing and costs as much as the dearest step. `P`
    lists the transitions, as those of Gymnasium's own environments with listed states do.
    """
    optional.package("gymnasium")
    from bellweight.interchange.environment import TabularEnv

    return TabularEnv(tabular(model))


def policy_for_gymnasium(
    policy: Policy | HasPolicy, seed: int | None = None, *, env: Any = None
) -> Callable[[Any], Any]:
    """Return a function from observations to actions; `seed` is for randomised policies.

    The policy is bound to its model (`policy.on(model)`), as those of results are. Where
    observations are not the state (Acrobot), pass `env`: its state is read in place of them. Pass
    it, too, where a table was found by trying and actions are not numbered from 0.
    """
    rng = None if seed is None else np.random.default_rng(seed)
    acting = policy_of(policy)
    model = acting.model
    played = model.trials.env if isinstance(model, EnvironmentModel) else env
    bare = getattr(played, "unwrapped", played)
    # A table P numbers its actions itself.
    first = 0 if bare is None or hasattr(bare, "P") else first_action(bare)

    def act(observation: Any) -> Any:
        if isinstance(model, EnvironmentModel):
            return first + acting.action(model.state_of(observation, env), rng)
        array_of = np.asarray(observation)
        action = acting.action(array_of.item() if array_of.ndim == 0 else array_of, rng)
        return first + action if first else action

    return act


def _listed(table: Any) -> tuple[Transitions, int, int]:
    """Return the transitions, the number of states, and 1 if there is a last one for endings."""
    moves = Moves(len(table), _count(table))
    for entry in _entries(table):
        moves.add(*entry)
    return moves.transitions(), len(table), moves.ends


def _count(table: Any) -> int:
    """Return the number of entries of a table P, up to the first that is wrong."""
    found = 0
    try:
        for x in range(len(table)):
            own = table[x]
            for moves in own.values() if hasattr(own, "values") else own:
                found += len(moves)
    except (KeyError, TypeError):
        pass  # `_entries` says what is wrong
    return found


def _entries(table: Any) -> Iterator[tuple[int, int, int, float, float, bool]]:
    """Yield state, action, next state, probability, reward and end of each entry of a table P."""
    for x in range(len(table)):
        try:
            own = table[x]
            for a, found in own.items() if hasattr(own, "items") else enumerate(own):
                for chance, following, gain, ended in found:
                    yield x, int(a), int(following), float(chance), float(gain), bool(ended)
        except (KeyError, TypeError, ValueError) as problem:
            raise ModelError(
                f"P[{x}] of the environment is wrong ({type(problem).__name__}: {problem}), "
                "expected for each action a list of (probability, next, reward, terminated)"
            ) from None


def _name(env: Any, bare: Any) -> str:
    spec = getattr(env, "spec", None)
    if spec is None:
        return type(bare).__name__
    limit = spec.max_episode_steps
    return spec.id if limit is None else f"{spec.id} without its limit of {limit} steps"
