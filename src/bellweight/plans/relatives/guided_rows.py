"""Bellman rows with guiding rows beside them: no state's value may fall below a given one.

Behind the rows of the pairs, keys from `n_pairs` on, stands one for each state x,

    -(1 - discount) phi(x) coef <= -(1 - discount) floor(x),

in cost per step like the others, so that one tolerance serves both.
"""

from __future__ import annotations

import numpy as np

from bellweight.basis import Basis
from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.models import TabularModel
from bellweight.program import RowSource, Separation, TabularRows
from bellweight.program.row_source import MOST_CLOSE


class GuidedRows(TabularRows):
    """All rows of a tabular model, and one for each state that keeps its value above `floor` (S,).

    The guiding rows take part in the program, and in the norm of the minimum-norm dual, but their
    mass belongs to no pair, so a dual's support leaves them out.
    """

    def __init__(self, model: TabularModel, basis: Basis, floor: FloatArray) -> None:
        super().__init__(model, basis)
        self.floor = floor
        self._left = 1.0 - model.discount

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        pairs = self.are_pairs(keys)
        own, own_cost = super().rows(keys[pairs])
        states = keys[~pairs] - self.n_pairs
        rows, cost = np.zeros((len(keys), self.n_basis)), np.zeros(len(keys))
        rows[pairs], cost[pairs] = own, own_cost
        rows[~pairs] = -self._left * np.asarray(self.features(states))
        cost[~pairs] = -self._left * self.floor[states]
        return rows, cost

    # The methods of tabular rows handle pairs only; these use `rows`, which has the floor's too.
    exact_rows = RowSource.exact_rows
    violated = RowSource.violated

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        found = super().separate(coef, unit, homogeneous=homogeneous)
        floor = np.zeros_like(self.floor) if homogeneous else self.floor
        values = self.values(coef)
        slack = self._left * (values - floor)
        size = self._left * (np.abs(values) + np.abs(floor)) + unit
        size = np.where(size > 0.0, size, 1.0)
        # Where terms cancel, a violation of the size of their rounding error is none.
        share = tolerances.ROUNDING / tolerances.FEASIBILITY
        size += share * self._left * self.value_terms(coef)
        lowest = np.argsort(slack / size, kind="stable")[: MOST_CLOSE * (8 + self.n_basis)]
        near = np.flatnonzero(slack <= tolerances.NEAR * (size + np.abs(values)))
        return Separation(
            close=np.append(found.close, self.n_pairs + lowest),
            close_size=np.append(found.close_size, size[lowest]),
            near=np.append(found.near, self.n_pairs + near),
            violation=found.violation,
        )

    def seeds(self, weights: FloatArray | None) -> IntArray:
        seeds = super().seeds(weights)
        if len(seeds) < self.n_pairs:
            return seeds
        return np.arange(self.n_pairs + len(self.floor))

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        return super().support_of(keys[self.are_pairs(keys)])

    def are_pairs(self, keys: IntArray) -> BoolArray:
        return np.asarray(keys < self.n_pairs)
