"""What a policy meets: the states it spends its time in, and value, residual and action there.

On a tabular model these are all states with their exact occupancy. Elsewhere they are states drawn
from the policy's discounted occupancy, each counted as often as it was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.core import variable_names
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.streams import stream_keys
from bellweight.evaluation.exact import policy_value, residuals
from bellweight.evaluation.occupancy import default_horizon, exact_occupancy
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.policies.policy import Model, Policy
from bellweight.program.repair import repaired
from bellweight.program.rows import EventRows, TabularRows
from bellweight.simulation.episodes import EventRollout
from bellweight.simulation.linear_episodes import LinearRollout

_DRAWN = 2_000
_EPISODES = 200
_VIEWING = 3  # a branch of the streams: pictures do not share luck with estimates


@dataclass(frozen=True, eq=False)
class Sight:
    """States (n, d) with their share of discounted time (n,), and what holds there.

    `value` (n,) is the approximate value, on tabular models repaired so that it is a lower bound,
    `residual` (n,) the Bellman residual of the greedy action,
    and `cost_to_go` (n,) the exact value of the policy, where it can be computed. `is_sample` says
    that the states were drawn. `values_at` and `action_at` answer for other states.
    """

    model: Model
    states: FloatArray
    share: FloatArray
    value: FloatArray
    residual: FloatArray
    cost_to_go: FloatArray | None
    policy: Policy
    values_at: Callable[[FloatArray], FloatArray]

    @property
    def is_sample(self) -> bool:
        """Whether the states were drawn; otherwise they are all that exist."""
        return not isinstance(self.model, TabularModel)

    @property
    def dimension(self) -> int:
        """Number of state variables."""
        return int(self.states.shape[1])

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names of the state variables."""
        if isinstance(self.model, LinearModel):
            return self.model.state_names
        if isinstance(self.model, TabularModel) and self.model.state_vectors is None:
            return ("state",)
        return tuple(variable_names(self.dimension))

    def state_text(self, place: int) -> str:
        """Return the name of a state, or its variables."""
        model = self.model
        if isinstance(model, TabularModel) and (model.state_labels or self.dimension == 1):
            return model.state_labels[place] if model.state_labels else f"{self.states[place, 0]:g}"
        if isinstance(model, LinearModel):
            return model.state_text(self.states[place])
        numbers = ", ".join(f"{number:g}" for number in self.states[place])
        return f"({numbers})"

    def actions_at(self, states: Any) -> Any:
        """Return the policy's actions in states: indices (n,), or vectors (n, m)."""
        model, policy = self.model, self.policy.on(self.model)
        if isinstance(model, TabularModel):
            # Greedy policies are tables here; a state is its place in the list.
            return policy.actions(states.ravel().astype(np.int64))
        if isinstance(model, LinearModel):
            chooser = policy.chooser(model).worker()
            return chooser(np.ascontiguousarray(states), np.zeros(len(states), np.uint64), 0)[0]
        return policy.actions(states.astype(np.int64), np.random.default_rng(0))

    def labels(self) -> tuple[str, ...]:
        """Return the names of all actions of a tabular or event model."""
        assert not isinstance(self.model, LinearModel)
        return tuple(self.model.label(action) for action in range(self.model.n_actions))


def sight(
    model: Model,
    basis: Basis,
    coef: FloatArray,
    moments: FloatArray,
    policy: Policy,
    seed: int = 0,
) -> Sight:
    """Look at a greedy policy: where it is, and what the coefficients say there."""
    if isinstance(model, TabularModel):
        return _tabular(model, basis, coef, moments, policy)
    if isinstance(model, LinearModel):
        return _linear(model, basis, coef, policy, seed)
    return _events(model, basis, coef, policy, seed)


def _tabular(
    model: TabularModel, basis: Basis, coef: FloatArray, moments: FloatArray, policy: Policy
) -> Sight:
    rows = TabularRows(model, basis)
    # Repaired where rows are violated, so that values are what they are shown as: bounds.
    value = rows.values(repaired(rows, coef, moments).coef)
    occupancy = exact_occupancy(model, policy).weights
    assert occupancy is not None
    return Sight(
        model=model,
        states=model.states,
        share=occupancy,
        value=value,
        residual=np.minimum.reduceat(residuals(model, value), model.pair_start[:-1]),
        cost_to_go=policy_value(model, policy),
        policy=policy,
        values_at=_values(rows.basis, coef),
    )


def _events(model: EventModel, basis: Basis, coef: FloatArray, policy: Policy, seed: int) -> Sight:
    rollout = EventRollout.of(model, policy.program(model))
    drawn = rollout.state_block(0, _DRAWN, 0, stream_keys(seed, _VIEWING))
    states, share = _counted(drawn)
    rows = EventRows(model, basis, states.astype(np.int64))
    slack, value = rows.slacks(coef, slice(0, len(states)))
    return Sight(
        model=model,
        states=states,
        share=share,
        value=value,
        residual=np.minimum.reduceat(slack, rows.pair_start[:-1]),
        cost_to_go=None,
        policy=policy,
        values_at=_values(rows.basis, coef),
    )


def _linear(model: LinearModel, basis: Basis, coef: FloatArray, policy: Policy, seed: int) -> Sight:
    chooser = policy.chooser(model)
    horizon = default_horizon(model.discount)
    visited = LinearRollout(model, chooser).states(
        0, _EPISODES, horizon, stream_keys(seed, _VIEWING)
    )
    rng = np.random.default_rng([seed, _VIEWING])
    chance = model.discount ** np.arange(horizon)
    steps = rng.choice(horizon, size=_DRAWN, p=chance / chance.sum())
    states, share = _counted(visited[steps, rng.integers(_EPISODES, size=_DRAWN)])
    values = _values(basis, coef)
    actions = chooser.worker()(states, np.zeros(len(states), np.uint64), 0)[0]
    following = values(model.expected_next(states, actions))
    value = values(states)
    return Sight(
        model=model,
        states=states,
        share=share,
        value=value,
        residual=model.cost(states, actions) + model.discount * following - value,
        cost_to_go=None,
        policy=policy,
        values_at=values,
    )


def _values(basis: Basis, coef: FloatArray) -> Callable[[FloatArray], FloatArray]:
    return lambda states: np.asarray(basis(np.asarray(states, dtype=np.float64)) @ coef)


def _counted(drawn: FloatArray | IntArray) -> tuple[FloatArray, FloatArray]:
    states, counts = np.unique(drawn, axis=0, return_counts=True)
    return states.astype(np.float64), counts / counts.sum()
