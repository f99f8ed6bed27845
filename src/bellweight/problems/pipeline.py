"""Exact values of inventories in which orders only move up and one coordinate is random.

    (x_1, x_2, ..., x_d), order a    ->    (f(x_1, x_2, noise), x_3, ..., x_d, a)

with a cost of x_1, x_2, a and the noise. The expectation is a small matrix from (x_1, x_2) to x_1,
applied to the values of all orders at once. So value iteration on 50,000 states of a lost-sales
system with lead time 4 takes a second, and so does the value of a policy. Where x_1 is a real
number, values between levels are interpolated linearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models import StepModel

_LEVELS = 201
_PROBED = 200


@dataclass(frozen=True, eq=False)
class PipelineValues:
    """Values and actions on a grid: axes are x_1 at `levels`, then x_2, ..., x_d at `orders`."""

    levels: FloatArray
    orders: FloatArray
    values: FloatArray
    actions: IntArray

    def at(self, state: Any) -> float:
        """Return the value of a state whose x_2, ..., x_d are possible orders."""
        first, *rest = np.asarray(state, dtype=np.float64)
        places = [int(np.argmin(np.abs(self.orders - x))) for x in rest]
        if not np.allclose(self.orders[places], rest):
            raise ModelError(f"state {state!r} has orders {rest}, expected some of {self.orders}")
        along = self.values.reshape(len(self.levels), -1)
        column = np.ravel_multi_index(tuple(places), self.values.shape[1:])
        return float(np.interp(first, self.levels, along[:, column]))


def pipeline_optimum(model: StepModel, levels: Any = None, tol: float = 1e-6) -> PipelineValues:
    """Return the optimal values of a model of this form, within `tol` on the grid.

    `levels` (n,) are those of x_1: by default all whole numbers, or 201 numbers between its bounds.
    """
    return _Pipeline(model, levels).iterated(tol, None)


def pipeline_value(
    model: StepModel, policy: Any, levels: Any = None, tol: float = 1e-6
) -> PipelineValues:
    """Return the values of a policy, by the same iteration."""
    form = _Pipeline(model, levels)
    chosen = np.asarray(policy.on(model).actions(form.states()), dtype=np.int64)
    return form.iterated(tol, chosen.reshape(form.shape))


class _Pipeline:
    def __init__(self, model: StepModel, levels: Any) -> None:
        if model.dimension < 2:
            raise ModelError("a pipeline has at least two coordinates, this model has one")
        self.model = model
        self.levels = self._levels() if levels is None else np.asarray(levels, dtype=np.float64)
        every = np.arange(model.n_actions)
        start = np.repeat(np.zeros((1, model.dimension)) + model.lower, len(every), axis=0)
        _, _, after = model.expand(self._typed(start), every)
        self.orders = after[:, 0, -1].astype(np.float64)
        self._check()
        n, m = len(self.levels), len(self.orders)
        self.shape = (n, *([m] * (model.dimension - 1)))
        first, second = (
            grid.ravel() for grid in np.meshgrid(self.levels, self.orders, indexing="ij")
        )
        pairs = np.zeros((n * m, model.dimension))
        pairs[:, 0], pairs[:, 1] = first, second
        costs = [self._expanded(pairs, np.full(n * m, a))[0] for a in every]
        self.cost = np.stack(costs, axis=1).reshape(n, m, *([1] * (model.dimension - 2)), m)
        self.expectation = self._interpolated(self._expanded(pairs, np.zeros(n * m, int))[1])
        self.allowed = self._allowed()

    def iterated(self, tol: float, chosen: IntArray | None) -> PipelineValues:
        """Iterate until the bounds of MacQueen, which hold for all states, are within tol."""
        values = np.zeros(self.shape)
        far = self.model.discount / (1.0 - self.model.discount)
        while True:
            ahead = self.expectation @ values.reshape(len(self.levels), -1)
            total = self.cost + self.model.discount * ahead.reshape(*self.shape, -1)
            if chosen is None:
                total = np.where(self.allowed, total, np.inf)
                actions = total.argmin(axis=-1)
            else:
                actions = chosen
            new = np.take_along_axis(total, actions[..., None], axis=-1)[..., 0]
            change = new - values
            values = new
            low, high = far * float(change.min()), far * float(change.max())
            if high - low < tol:
                return PipelineValues(
                    self.levels, self.orders, values + 0.5 * (low + high), actions
                )

    def states(self) -> Any:
        """Return all states of the grid."""
        axes = np.meshgrid(self.levels, *([self.orders] * (len(self.shape) - 1)), indexing="ij")
        return self._typed(np.stack([axis.ravel() for axis in axes], axis=1))

    def _levels(self) -> FloatArray:
        low, high = float(self.model.lower[0]), float(self.model.upper[0])
        if not np.isfinite([low, high]).all():
            raise ModelError(f"x_1 lies in [{low:g}, {high:g}], expected finite bounds, or levels=")
        n = round(high - low) + 1 if self.model.integer[0] else _LEVELS
        return np.linspace(low, high, n)

    def _allowed(self) -> BoolArray:
        return self.model.admissible_mask(self.states()).reshape(*self.shape, -1)

    def _expanded(self, states: FloatArray, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return cost (n,) and next x_1 (n, E)."""
        cost, _, after = self.model.expand(self._typed(states), actions)
        return np.asarray(cost), np.asarray(after[:, :, 0], dtype=np.float64)

    def _interpolated(self, after: FloatArray) -> sparse.csr_array:
        """Return the matrix that takes values at levels to their expectations at x_1 after."""
        below = np.clip(np.searchsorted(self.levels, after, "right") - 1, 0, len(self.levels) - 2)
        share = (after - self.levels[below]) / (self.levels[below + 1] - self.levels[below])
        rows = np.broadcast_to(np.arange(len(after))[:, None], after.shape)
        weights = np.broadcast_to(self.model.weights, after.shape)
        entries = np.concatenate([(weights * (1.0 - share)).ravel(), (weights * share).ravel()])
        places = np.concatenate([below.ravel(), below.ravel() + 1])
        twice = np.concatenate([rows.ravel(), rows.ravel()])
        return sparse.csr_array((entries, (twice, places)), shape=(len(after), len(self.levels)))

    def _check(self) -> None:
        """Check at random states of the grid that the model has the form above."""
        model, rng = self.model, np.random.default_rng(0)
        states = rng.choice(self.orders, (_PROBED, model.dimension))
        states[:, 0] = rng.choice(self.levels, _PROBED)
        actions = rng.integers(model.n_actions, size=_PROBED)
        cost, _, after = model.expand(self._typed(states), actions)
        plain = states.copy()
        plain[:, 2:] = 0.0
        other_cost, other = self._expanded(plain, actions)
        moved = np.column_stack([states[:, 2:], self.orders[actions]])
        fits = (
            np.allclose(cost, other_cost)
            and np.allclose(after[:, :, 0], other)
            and np.allclose(after[:, :, 1:], moved[:, None, :])
        )
        if not fits:
            raise ModelError(
                "the model is no pipeline: expected a step (x_1, ..., x_d) -> (f(x_1, x_2, noise), "
                "x_3, ..., x_d, order) and a cost of x_1, x_2, the order and the noise; for few "
                "states use to_tabular()"
            )

    def _typed(self, states: FloatArray) -> Any:
        return self.model.check_states(states)
