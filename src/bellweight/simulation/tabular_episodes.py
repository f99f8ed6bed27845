"""Episodes of tabular models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.compiled import compiled, draw, episode_key, pick, running_sums
from bellweight.common.streams import Keys
from bellweight.models import TabularModel
from bellweight.policies import Policy, checked_probabilities


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
        start = model.transition.indptr.astype(np.int64)
        sure = np.flatnonzero(chances >= 1.0)
        certain = np.full(model.n_states, -1, dtype=np.int64)
        certain[model.pair_state[sure]] = sure
        return cls(
            initial=np.cumsum(model.initial),
            policy=running_sums(chances, model.pair_start),
            certain=certain,
            pair_start=model.pair_start,
            start=start,
            successor=model.transition.indices.astype(np.int64),
            chance=running_sums(model.transition.data, start),
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
