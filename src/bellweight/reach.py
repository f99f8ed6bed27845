"""Which states of a linear model can be reached: a box, by interval arithmetic."""

from __future__ import annotations

import numpy as np

from bellweight.checks import FloatArray, Matrix
from bellweight.models import Independent, LinearModel
from bellweight.pricing import implied_upper

_ROUNDS = 200
_MANY = 1e7  # bounds that have grown beyond this are taken as infinite


def reachable_box(model: LinearModel) -> tuple[FloatArray, FloatArray]:
    """Return a box that no simulated state leaves; a side may be infinite.

    It starts as the model's own box and grows by what one more step can add, constraint by
    constraint, until it holds. A side that goes on growing is set to infinity.
    """
    lower, upper = np.array(model.state_lower), np.array(model.state_upper)
    for number in range(_ROUNDS):
        low, high = _following(model, lower, upper)
        grown_low, grown_high = low < lower, high > upper
        if not grown_low.any() and not grown_high.any():
            break
        lower, upper = np.minimum(lower, low), np.maximum(upper, high)
        if number >= model.dimension + 2:
            # A side that still grows after as many steps as there are variables never stops.
            lower = np.where(grown_low, -np.inf, lower)
            upper = np.where(grown_high, np.inf, upper)
    return lower, upper


def _following(
    model: LinearModel, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the next state from any state of the box under any admissible action.

    Each side of each variable is a linear program over the pair, relaxed to one constraint at a
    time being used to bound the actions, except that a constraint that bounds the very combination
    of state and actions that makes up the next state bounds it directly.
    """
    noise_low, noise_high = _noise(model)
    rows = np.hstack([model.state_rows.toarray(), model.action_rows.toarray()])
    low = np.concatenate([lower, model.action_lower])
    high = implied_upper(
        rows, model.row_lower, model.row_upper, low, np.concatenate([upper, model.action_upper])
    )
    made = np.hstack([model.next_state.toarray(), model.next_action.toarray()])
    least, most = _interval(made, low, high)
    for k, combination in enumerate(made):
        if not combination.any():
            continue
        for row, bottom, top in zip(rows, model.row_lower, model.row_upper, strict=True):
            share = _multiple(combination, row)
            if share > 0.0:
                least[k] = max(least[k], share * bottom)
                most[k] = min(most[k], share * top)
            elif share < 0.0:
                least[k] = max(least[k], share * top)
                most[k] = min(most[k], share * bottom)
    return least + noise_low, most + noise_high


def _multiple(combination: FloatArray, row: FloatArray) -> float:
    """Return the factor that makes a constraint's row the combination, or zero."""
    if not np.array_equal(combination != 0.0, row != 0.0):
        return 0.0
    used = row != 0.0
    ratio = combination[used] / row[used]
    return float(ratio[0]) if np.all(ratio == ratio[0]) else 0.0


def _noise(model: LinearModel) -> tuple[FloatArray, FloatArray]:
    law = model.noise
    if not isinstance(law, Independent):
        endless = np.full(model.dimension, np.inf)
        return -endless, endless
    least = np.array([part.values.min() for part in law.laws])
    most = np.array([part.values.max() for part in law.laws])
    return _interval(model.noise_matrix.toarray(), least, most)


def _interval(rows: Matrix, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    used = rows != 0.0
    least = np.where(used, rows * np.where(used, np.where(rows > 0.0, low, high), 0.0), 0.0)
    most = np.where(used, rows * np.where(used, np.where(rows > 0.0, high, low), 0.0), 0.0)
    return least.sum(axis=1), most.sum(axis=1)
