"""Enumerating a linear model: every state of its box, every admissible action."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models.initial import joint_law
from bellweight.models.laws import Independent
from bellweight.models.tabular import TabularModel

if TYPE_CHECKING:
    from bellweight.models.linear import LinearModel

_MOST_VALUES = 10_000  # of one action variable


def to_tabular(model: LinearModel, *, clip: bool, max_pairs: int) -> TabularModel:
    """Return the model with every pair of the box listed."""
    noise = model.noise
    if not isinstance(noise, Independent) or not isinstance(model.initial, Independent):
        raise ModelError("noise and initial must be Independent laws to be enumerated")
    states = all_states(model, max_pairs)
    pair_state, actions = all_pairs(model, states, max_pairs)
    vectors, pair_action = np.unique(actions, axis=0, return_inverse=True)
    order = np.lexsort((pair_action.ravel(), pair_state))
    pair_state, pair_action, actions = pair_state[order], pair_action.ravel()[order], actions[order]
    return TabularModel.from_pairs(
        cost=model.cost(states[pair_state], actions),
        transition=_transition(model, noise, states[pair_state], actions, clip=clip),
        pair_state=pair_state,
        pair_action=pair_action,
        discount=model.discount,
        initial=joint_law(_initial_laws(model, model.initial)),
        state_vectors=states,
        action_labels=[str(tuple(int(v) for v in vector)) for vector in vectors],
        name=model.name,
    )


def all_states(model: LinearModel, limit: int) -> FloatArray:
    """Return every whole-number vector (S, n) of the box, the last variable running fastest."""
    if not model.is_integral:
        raise ModelError("a model with continuous variables cannot be enumerated")
    counts = model.state_upper - model.state_lower + 1.0  # as floats: integers overflow
    if np.prod(counts) > limit:
        raise ModelError(
            f"the box has {np.prod(counts):.3g} states, expected at most {limit:,}: solve the "
            "model as it is, or raise max_pairs"
        )
    grids = [np.arange(low, low + n) for low, n in zip(model.state_lower, counts, strict=True)]
    return np.array(list(product(*grids)), dtype=np.float64)


def all_pairs(model: LinearModel, states: FloatArray, limit: int) -> tuple[IntArray, FloatArray]:
    """Return every admissible pair: indices of states (N,) and action vectors (N, m)."""
    upper, lower = np.isfinite(model.row_upper), np.isfinite(model.row_lower)
    by_state = (model.state_rows @ states.T).T
    rows = np.vstack([model.action_rows.toarray()[upper], -model.action_rows.toarray()[lower]])
    limits = np.hstack(
        [(model.row_upper - by_state)[:, upper], (by_state - model.row_lower)[:, lower]]
    )
    number: list[int] = []
    actions: list[FloatArray] = []
    for x in range(len(states)):
        before = len(actions)
        actions.extend(_actions(model, rows, limits[x]))
        if len(actions) == before:
            raise ModelError(f"no action is admissible in the state {model.state_text(states[x])}")
        if len(actions) > limit:
            raise ModelError(f"more than {limit:,} pairs: solve the model as it is")
        number.extend([x] * (len(actions) - before))
    return np.array(number, dtype=np.int64), np.array(actions)


def _actions(model: LinearModel, rows: FloatArray, limit: FloatArray) -> Iterator[FloatArray]:
    """Yield the actions with rows a <= limit, in lexicographic order."""
    m = model.n_action_variables
    low, high = model.action_lower, model.action_upper
    # The least that the variables after k can add to each row.
    used = rows != 0.0
    ends = np.where(rows > 0.0, low, high)
    least = np.where(used, rows * np.where(used, ends, 0.0), 0.0)
    after = np.column_stack(
        [np.cumsum(least[:, ::-1], axis=1)[:, ::-1][:, 1:], np.zeros(len(rows))]
    )

    def extended(action: FloatArray, k: int, left: FloatArray) -> Iterator[FloatArray]:
        if k == m:
            yield action.copy()
            return
        for value in np.arange(low[k], min(high[k], _MOST_VALUES) + 1.0):
            missing = left - rows[:, k] * value - after[:, k] < -tolerances.CONSTRAINT
            if (missing & (rows[:, k] >= 0.0)).any():
                return
            if not missing.any():
                action[k] = value
                yield from extended(action, k + 1, left - rows[:, k] * value)
        if high[k] > _MOST_VALUES:
            raise ModelError(f"{model.action_names[k]} has no bound: give action_upper")

    yield from extended(np.zeros(m), 0, limit)


def _transition(
    model: LinearModel,
    noise: Independent,
    states: FloatArray,
    actions: FloatArray,
    *,
    clip: bool,
) -> sparse.coo_array:
    vectors, chances = noise.outcomes()
    certain = model.expected_next(states, actions) - model.drift
    counts = (model.state_upper - model.state_lower + 1.0).astype(np.int64)
    stride = np.append(np.cumprod(counts[::-1])[::-1][1:], 1)
    rows, columns, data = [], [], []
    for vector, chance in zip(vectors, chances, strict=True):
        following = certain + np.asarray(model.noise_matrix @ vector).ravel()
        inside = np.clip(following, model.state_lower, model.state_upper)
        if not clip and (inside != following).any():
            bad = int(np.argmax((inside != following).any(axis=1)))
            raise ModelError(
                f"from the state {model.state_text(states[bad])} the next one leaves the box: "
                "widen it, or use to_tabular(clip=True), which is another model"
            )
        rows.append(np.arange(len(states)))
        columns.append(np.round((inside - model.state_lower) @ stride).astype(np.int64))
        data.append(np.full(len(states), chance))
    shape = (len(states), int(np.prod(counts)))
    return sparse.coo_array(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=shape
    )


def _initial_laws(model: LinearModel, initial: Independent) -> Iterator[FloatArray]:
    """Yield the chances of each variable's values in the box."""
    for k, law in enumerate(initial.laws):
        size = int(model.state_upper[k] - model.state_lower[k]) + 1
        place = np.round(law.values - model.state_lower[k]).astype(np.int64)
        yield np.asarray(np.bincount(place, law.chances, size), dtype=np.float64)
