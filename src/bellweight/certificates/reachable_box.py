"""Which states of a linear model can be reached: a box, by interval arithmetic."""

from __future__ import annotations

import numpy as np

from bellweight.common.checks import FloatArray, Matrix
from bellweight.models import Independent, LinearModel
from bellweight.program import implied_upper


def reachable_box(model: LinearModel) -> tuple[FloatArray, FloatArray]:
    """Return a box that no simulated state leaves; a side may be infinite.

    It starts as the model's own box and grows by what one more step can add, constraint by
    constraint, until no step leads out of it: then, by induction, no episode does. A side that
    still grows after as many steps as there are variables is set to infinity, which is always
    valid; each later round sets another side to infinity or is the last, so there are at most 2
    dimension of them.
    """
    lower, upper = np.array(model.state_lower), np.array(model.state_upper)
    step = _Step(model)
    patience = model.dimension + 2
    while True:
        low, high = step.following(lower, upper)
        grown_low, grown_high = low < lower, high > upper
        if not grown_low.any() and not grown_high.any():
            return lower, upper
        endless = patience <= 0
        lower = np.where(grown_low, -np.inf if endless else low, lower)
        upper = np.where(grown_high, np.inf if endless else high, upper)
        patience -= 1


class _Step:
    """Bounds on the next state from any state of a box under any admissible action.

    Each side of each variable is a linear program over the pair, relaxed to one constraint at a
    time being used to bound the actions, except that a constraint that bounds the very combination
    of state and actions that makes up the next state bounds it directly.
    """

    def __init__(self, model: LinearModel) -> None:
        self.model = model
        self.noise_low, self.noise_high = _noise(model)
        self.rows = np.hstack([model.state_rows.toarray(), model.action_rows.toarray()])
        self.made = np.hstack([model.next_state.toarray(), model.next_action.toarray()])
        self.least = np.full(model.dimension, -np.inf)
        self.most = np.full(model.dimension, np.inf)
        for k, combination in enumerate(self.made):
            if combination.any():
                self._bound_directly(k, combination)

    def _bound_directly(self, k: int, combination: FloatArray) -> None:
        model = self.model
        for row, bottom, top in zip(self.rows, model.row_lower, model.row_upper, strict=True):
            share = _multiple(combination, row)
            if share != 0.0:
                ends = sorted((share * bottom, share * top))
                self.least[k] = max(self.least[k], ends[0])
                self.most[k] = min(self.most[k], ends[1])

    def following(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest next state (n,) from a box."""
        model = self.model
        low = np.concatenate([lower, model.action_lower])
        high = implied_upper(
            self.rows, model.row_lower, model.row_upper, low,
            np.concatenate([upper, model.action_upper]),
        )  # fmt: skip
        least, most = _interval(self.made, low, high)
        return (
            np.maximum(least, self.least) + self.noise_low,
            np.minimum(most, self.most) + self.noise_high,
        )


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
