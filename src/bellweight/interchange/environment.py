"""A tabular model as an environment of Gymnasium; imported only where Gymnasium is installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray
from bellweight.models import TabularModel
from bellweight.policies.tables import by_state


class Table(Mapping[int, dict[int, list[tuple[float, int, float, bool]]]]):
    """The table P, computed as it is read: lists would take many times the model's memory.

    P[state][action] is a list of (probability, next, reward, terminated), of admissible actions.
    """

    def __init__(self, model: TabularModel, final: BoolArray) -> None:
        self._model, self._final = model, final

    def __len__(self) -> int:
        return self._model.n_states

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __getitem__(self, state: int) -> dict[int, list[tuple[float, int, float, bool]]]:
        if state not in range(len(self)):
            raise KeyError(state)
        model, found = self._model, {}
        for pair in range(*model.pair_start[state : state + 2].tolist()):
            part = slice(*model.transition.indptr[pair : pair + 2].tolist())
            after, reward = model.transition.indices[part], -float(model.cost[pair])
            chances, ends = model.transition.data[part].tolist(), self._final[after].tolist()
            moves = zip(chances, after.tolist(), ends, strict=True)
            found[int(model.pair_action[pair])] = [(p, y, reward, end) for p, y, end in moves]
        return found


class TabularEnv(gymnasium.Env[Any, Any]):
    """Episodes of a model: see `to_gymnasium`. The model itself is `model`, with its discount.

    `P` and `initial_state_distrib` are what Gymnasium's own environments with listed states have.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own declaration

    def __init__(self, model: TabularModel) -> None:
        self.model = model
        self.observation_space = gymnasium.spaces.Discrete(model.n_states)
        self.action_space = gymnasium.spaces.Discrete(model.n_actions)
        self._final = _final_states(model)
        self.P, self.initial_state_distrib = Table(model, self._final), model.initial
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
    at_rest = (np.asarray(stays).ravel() >= 1.0 - tolerances.CHANCES) & (model.cost == 0.0)
    return by_state(model, at_rest.astype(np.float64)) == np.diff(model.pair_start)
