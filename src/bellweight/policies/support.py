"""Where a dual has mass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common import files
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.short import Short
from bellweight.common.status import PolicyError
from bellweight.models import TabularModel


@files.storable("Support")
@dataclass(frozen=True, eq=False, repr=False)
class Support(Short):
    """Where a dual has mass: states, action indices (n,) and positive values (n,).

    `states` are indices (n,) of a tabular model, or state vectors (n, d) of other models; `actions`
    are indices, or vectors (n, m) of a linear model.
    """

    states: Any
    actions: Any
    values: FloatArray

    def __post_init__(self) -> None:
        shapes = [getattr(part, "shape", ()) for part in (self.states, self.actions, self.values)]
        lengths = {shape[:1] for shape in shapes}
        if len(lengths) > 1 or not all(1 <= len(shape) <= 2 for shape in shapes):
            raise PolicyError(
                "a dual has states, actions and values, one entry or row for each pair: "
                f"expected arrays of one length, not of the shapes {', '.join(map(str, shapes))}"
            )

    def over_pairs(self, model: TabularModel) -> FloatArray:
        """Return the dual as an array (N,) over the pairs of a tabular model."""
        states = self.indices(model)
        key = model.pair_state * np.int64(model.n_actions) + model.pair_action
        place = np.searchsorted(key, states * np.int64(model.n_actions) + self.actions)
        place = np.minimum(place, model.n_pairs - 1)
        known = model.pair_state[place] == states, model.pair_action[place] == self.actions
        if not np.all(known):
            raise _of_another_model()
        dual = np.zeros(model.n_pairs)
        dual[place] = self.values
        return dual

    def indices(self, model: TabularModel) -> IntArray:
        """Return the states as indices of a tabular model, looked up when they are vectors."""
        if self.states.ndim == 1:
            found = np.asarray(self.states)
        else:
            both = np.concatenate([model.states, self.states])
            place = np.unique(both, axis=0, return_inverse=True)[1].ravel()
            number = np.full(len(both), -1, dtype=np.int64)
            number[place[: model.n_states]] = np.arange(model.n_states)
            found = number[place[model.n_states :]]
        if ((found < 0) | (found >= model.n_states)).any():
            raise _of_another_model()
        return found

    def by_state(self) -> tuple[Any, IntArray, IntArray]:
        """Return the distinct states (m, ...), the pairs (n,) sorted by state, and the starts.

        The pairs of state k are order[starts[k]:starts[k + 1]].
        """
        distinct, place = np.unique(self.states, axis=0, return_inverse=True)
        order = np.argsort(place.ravel(), kind="stable")
        starts = np.searchsorted(place.ravel()[order], np.arange(len(distinct) + 1))
        return distinct, order, starts

    def over_actions(self, n_actions: int) -> tuple[Any, FloatArray]:
        """Return the distinct states (m, ...) and the dual of every action there (m, A)."""
        distinct, order, starts = self.by_state()
        duals = np.zeros((len(distinct), n_actions))
        place = np.repeat(np.arange(len(distinct)), np.diff(starts))
        np.add.at(duals, (place, self.actions[order]), self.values[order])
        return np.ascontiguousarray(distinct), duals

    def over_vectors(self, n_actions: int) -> tuple[IntArray, FloatArray]:
        """Return `over_actions` for a model whose states are vectors, (m, d) and (m, A)."""
        if self.states.ndim == 1:
            raise PolicyError(
                "the dual belongs to a tabular model: solve the event model itself, or take "
                "Greedy(basis=..., coef=...) without a dual"
            )
        return self.over_actions(n_actions)


def _of_another_model() -> PolicyError:
    return PolicyError("the dual has mass on pairs that the model lacks: use its own model")
