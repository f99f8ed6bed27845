"""A tabular model as an environment of Gymnasium; imported only where Gymnasium is installed."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from bellweight.common.checks import BoolArray
from bellweight.models import TabularModel
from bellweight.policies.tables import by_state


class TabularEnv(gymnasium.Env[Any, Any]):
    """Episodes of a model: see `to_gymnasium`. The model itself is `model`, with its discount."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own declaration

    def __init__(self, model: TabularModel) -> None:
        self.model = model
        self.observation_space = gymnasium.spaces.Discrete(model.n_states)
        self.action_space = gymnasium.spaces.Discrete(model.n_actions)
        self._final = _final_states(model)
        self._dearest = float(model.cost.max())
        self._state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Draw an initial state."""
        super().reset(seed=seed)
        self._state = int(self.np_random.choice(self.model.n_states, p=_exact(self.model.initial)))
        return self._state, self._info()

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action and draw the next state."""
        model = self.model
        first = int(model.pair_start[self._state])
        place = np.flatnonzero(model.admissible_actions(self._state) == int(action))
        if len(place) == 0:
            return self._state, -self._dearest, bool(self._final[self._state]), False, self._info()
        pair = first + int(place[0])
        part = slice(model.transition.indptr[pair], model.transition.indptr[pair + 1])
        chances = _exact(model.transition.data[part])
        self._state = int(self.np_random.choice(model.transition.indices[part], p=chances))
        ended = bool(self._final[self._state])
        return self._state, -float(model.cost[pair]), ended, False, self._info()

    def _info(self) -> dict[str, Any]:
        mask = np.zeros(self.model.n_actions, dtype=np.int8)
        mask[self.model.admissible_actions(self._state)] = 1
        return {"action_mask": mask}


def _exact(chances: Any) -> Any:
    """Return probabilities that sum to one as closely as NumPy wants them."""
    return chances / chances.sum()


def _final_states(model: TabularModel) -> BoolArray:
    """Return which states (S,) cannot be left and cost nothing, whatever is done."""
    stays = model.transition[np.arange(model.n_pairs), model.pair_state]
    at_rest = (np.asarray(stays).ravel() >= 1.0 - 1e-12) & (model.cost == 0.0)
    return by_state(model, at_rest.astype(np.float64)) == np.diff(model.pair_start)
