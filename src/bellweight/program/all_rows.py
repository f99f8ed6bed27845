"""All rows of a model whose states are listed, one for each pair."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bellweight.basis import Basis
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.doubled import (
    Doubled,
    add,
    doubled,
    multiply,
    product,
    subtract,
    total,
    total_by_group,
)
from bellweight.models import TabularModel
from bellweight.program.listed_rows import ClosestRows, ListedRows


@dataclass(frozen=True)
class AllRows:
    """Every row of a model whose states can be enumerated."""

    def on(self, model: TabularModel, basis: Basis) -> TabularRows:
        """Bind to a model and a basis."""
        return TabularRows(model, basis)


class TabularRows(ListedRows):
    """All rows of a tabular model; a row's key is its pair."""

    is_complete = True

    def __init__(self, model: TabularModel, basis: Basis) -> None:
        super().__init__(basis, model.states, model.discount)
        self.model = model
        self.pair_start = model.pair_start
        self.pair_cost = model.cost
        self._latest: tuple[FloatArray, FloatArray] | None = None
        self._sizes: tuple[FloatArray, FloatArray] | None = None

    def slacks(self, coef: FloatArray, states: slice) -> tuple[FloatArray, FloatArray]:
        model = self.model
        # Successors lie anywhere, so the values of all states are computed once per pass.
        if self._latest is None or self._latest[0] is not coef:
            self._latest = (coef, self.values(coef))
        values = self._latest[1]
        pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
        following = _row_block(model.transition, pairs) @ values
        slack = self.pair_cost[pairs] + model.discount * following - values[model.pair_state[pairs]]
        return slack, values[states]

    def terms(self, coef: FloatArray, states: slice) -> FloatArray:
        pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
        if self._sizes is None or self._sizes[0] is not coef:
            self._sizes = (coef, self.value_terms(coef))
        sizes = self._sizes[1]
        ahead = _row_block(self.model.transition, pairs) @ sizes
        return np.asarray(sizes[self.model.pair_state[pairs]] + self.discount * ahead)

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        model = self.model
        following = model.transition[keys]
        needed, position = np.unique(following.indices, return_inverse=True)
        compact = sparse.csr_array(
            (following.data, position, following.indptr), shape=(len(keys), len(needed))
        )
        features = self.features(model.pair_state[keys])
        rows = features - self.discount * (compact @ self.features(needed))
        if self._sparse:
            return sparse.csr_array(rows), self.pair_cost[keys]
        return np.asarray(rows), self.pair_cost[keys]

    def with_cost(self, cost: FloatArray) -> TabularRows:
        """Return the same rows with other costs (N,) on the right."""
        other = copy(self)
        other.pair_cost, other._latest = cost, None
        return other

    def exact_rows(self, keys: IntArray) -> Doubled:
        model = self.model
        following = model.transition[keys]
        chances = multiply(doubled(following.data), doubled(np.full(1, self.discount)))
        features = self._dense_features(following.indices)
        terms = multiply(chances.at((slice(None), None)), doubled(features))
        ahead = total_by_group(terms, following.indptr)
        return subtract(doubled(self._dense_features(model.pair_state[keys])), ahead)

    def exact_moments(self, weights: FloatArray) -> Doubled:
        found = doubled(np.zeros(self._n_basis))
        for states, block in self._feature_blocks():
            used = np.flatnonzero(weights[states])
            if len(used) == 0:
                continue
            mass = weights[states][used]
            if sparse.issparse(block):
                entries = sparse.csc_array(block[used])
                terms = multiply(doubled(entries.data), doubled(mass[entries.indices]))
                part = total_by_group(terms, entries.indptr)
            else:
                part = total(multiply(doubled(mass[:, None]), doubled(np.asarray(block)[used])))
            found = add(found, part)
        return found

    @cached_property
    def initial_moments(self) -> Doubled:
        """Phi' initial (K,), to twice the digits."""
        return self.exact_moments(self.model.initial)

    def violated(self, coef: Doubled, unit: float, *, homogeneous: bool = False) -> IntArray:
        model = self.model
        parts = [
            product(doubled(self._dense_features(states)), coef)
            for states, _ in self._feature_blocks()
        ]
        values = Doubled(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        closest = ClosestRows(self._n_basis)
        for states in self.state_blocks():
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            block = _row_block(model.transition, pairs)
            chances = multiply(doubled(block.data), doubled(np.full(1, self.discount)))
            ahead = total_by_group(multiply(chances, values.at(block.indices)), block.indptr)
            gained = subtract(ahead, values.at(model.pair_state[pairs]))
            cost = np.zeros(len(gained.high)) if homogeneous else self.pair_cost[pairs]
            slack = add(doubled(cost), gained).high
            level = (1.0 - self.discount) * np.abs(values.high[model.pair_state[pairs]])
            closest.add(pairs.start, slack, np.abs(cost) + level + unit, np.zeros(len(slack)))
        return closest.answer().close

    def _dense_features(self, states: IntArray | slice) -> FloatArray:
        features = self.features(states)
        return np.asarray(features.toarray() if sparse.issparse(features) else features)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        return self.model.pair_state[keys], self.model.pair_action[keys]


def _row_block(matrix: sparse.csr_array, rows: slice) -> sparse.csr_array:
    """Return consecutive rows of a CSR matrix as a view on its data."""
    pointer = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(pointer[0], pointer[-1])
    shape = (rows.stop - rows.start, matrix.shape[1])
    parts = (matrix.data[entries], matrix.indices[entries], pointer - pointer[0])
    return sparse.csr_array(parts, shape=shape)
