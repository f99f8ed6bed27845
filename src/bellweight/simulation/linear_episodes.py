"""Episodes of linear models: all episodes of a block take each step together.

In each step a chooser picks the actions of all episodes at once, and compiled code moves all states
on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.compiled import compiled
from bellweight.common.streams import Keys
from bellweight.models import Independent, LinearModel
from bellweight.models.kernels.noise_draws import episode_keys, fill_finite
from bellweight.models.laws import Sampled
from bellweight.policies.linear_actions import Chooser
from bellweight.simulation.episodes import FeatureRollout

Sparse = tuple[IntArray, IntArray, FloatArray]
See = Callable[[FloatArray], None]


@dataclass(frozen=True, eq=False)
class LinearRollout(FeatureRollout):
    """A linear model and a policy, ready to be simulated."""

    model: LinearModel
    chooser: Chooser

    def states(self, first: int, last: int, horizon: int, keys: Keys) -> FloatArray:
        """Return the states (steps, episodes, n) that the episodes visit."""
        seen: list[FloatArray] = []
        self._run(first, last, horizon, keys, lambda states: seen.append(states.copy()))
        return np.array(seen)

    def watched(self, first: int, last: int, horizon: int, keys: Keys, see: See) -> FloatArray:
        """Return the costs of episodes; `see` is shown the states (n, d) of every step."""
        return self._run(first, last, horizon, keys, see)[0]

    def _run(
        self,
        first: int,
        last: int,
        horizon: int,
        keys: Keys,
        see: See | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        model, n = self.model, last - first
        action_keys, event_keys = (episode_keys(key, first, n) for key in keys[1:])
        choose = self.chooser.worker()
        state_part, action_part, noise_part = _transition(model)
        costs, hits, sums = np.zeros(n), np.zeros(n), np.zeros((n, 1 + model.dimension))
        states = initial_states(model, first, last, keys[0])
        noise = np.zeros((n, model.noise_matrix.shape[1]))
        factor = 1.0
        for step in range(horizon):
            if see is not None:
                see(states)
            actions, in_dual = choose(states, action_keys, step)
            if in_dual is not None:
                hits += factor * in_dual
            self._draw_noise(noise, states, actions, event_keys, first, step)
            _advance(
                states, actions, noise, factor, costs, sums, model.state_cost, model.action_cost,
                model.constant_cost, state_part, action_part, noise_part,
            )  # fmt: skip
            factor *= model.discount
        return costs, sums, hits

    def _draw_noise(
        self,
        noise: FloatArray,
        states: FloatArray,
        actions: FloatArray,
        keys: Keys,
        first: int,
        step: int,
    ) -> None:
        law = self.model.noise
        if isinstance(law, Independent):
            fill_finite(noise, keys, step, *law.tables)
        else:
            # One generator per block and step, so that all policies meet the same events.
            rng = np.random.default_rng([int(keys[0]), step, first])
            noise[:] = law.drawn(len(states), rng, states.copy(), actions.copy())


def initial_states(model: LinearModel, first: int, last: int, key: np.uint64) -> FloatArray:
    """Return the first states of some episodes."""
    if isinstance(model.initial, Sampled):
        rng = np.random.default_rng([int(key), first])
        return np.array(model.initial.drawn(last - first, rng, last - first))
    return model.initial.sample(first, last, key)


def _transition(model: LinearModel) -> tuple[Sparse, Sparse, Sparse]:
    """Return the three matrices by column: most actions are zero and need no work."""
    parts = []
    for matrix in (model.next_state, model.next_action, model.noise_matrix):
        columns = sparse.csc_array(matrix)
        parts.append(
            (columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data)
        )
    return parts[0], parts[1], parts[2]


@compiled
def _advance(
    states: FloatArray,
    actions: FloatArray,
    noise: FloatArray,
    factor: float,
    costs: FloatArray,
    sums: FloatArray,
    state_cost: FloatArray,
    action_cost: FloatArray,
    constant_cost: float,
    state_part: Sparse,
    action_part: Sparse,
    noise_part: Sparse,
) -> None:
    """Add up costs and features, then replace each state by the next one."""
    state_start, state_row, state_value = state_part
    action_start, action_row, action_value = action_part
    noise_start, noise_row, noise_value = noise_part
    n, m = states.shape[1], actions.shape[1]
    following = np.zeros(n)
    for row in range(states.shape[0]):
        cost = constant_cost
        sums[row, 0] += factor
        for k in range(n):
            amount = states[row, k]
            if amount != 0.0:
                cost += state_cost[k] * amount
                sums[row, 1 + k] += factor * amount
                for place in range(state_start[k], state_start[k + 1]):
                    following[state_row[place]] += state_value[place] * amount
        for k in range(m):
            amount = actions[row, k]
            if amount != 0.0:
                cost += action_cost[k] * amount
                for place in range(action_start[k], action_start[k + 1]):
                    following[action_row[place]] += action_value[place] * amount
        for k in range(noise.shape[1]):
            amount = noise[row, k]
            if amount != 0.0:
                for place in range(noise_start[k], noise_start[k + 1]):
                    following[noise_row[place]] += noise_value[place] * amount
        costs[row] += factor * cost
        for k in range(n):
            states[row, k] = following[k]
            following[k] = 0.0
