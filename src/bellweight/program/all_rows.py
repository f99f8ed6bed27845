"""All rows of a model whose states are listed, one for each pair."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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
from bellweight.models.kernels.layouts import Scale
from bellweight.program.listed_rows import ListedRows
from bellweight.program.row_blocks import RowBlock, found_in, joined

_EXACT_PAIRS = 20_000  # at a time with twice the digits
_KEPT_SHARE = 0.5  # features for each transition that are kept: a third of the memory of the table


@dataclass(frozen=True)
class AllRows:
    """Every row of a model whose states can be enumerated."""

    def on(self, model: TabularModel, basis: Basis) -> TabularRows:
        """Bind to a model and a basis."""
        return TabularRows(model, basis)


class _Values(NamedTuple):
    """The values (S,) of all states, and the sizes (S,) of the terms that they are made of."""

    values: FloatArray
    sizes: FloatArray | None


@dataclass(frozen=True, eq=False)
class TableBlock(RowBlock):
    """Rows of a table, from one state on: their transitions (n, S) and costs (n,)."""

    first: int
    starts: IntArray
    discount: float
    first_state: int
    transition: sparse.csr_array
    cost: FloatArray

    def pair_starts(self) -> IntArray:
        return self.starts

    def slacks(self, asked: _Values, states: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        pairs, here = self._places(states)
        values = asked.values[here]
        cost = self.cost[pairs]
        ahead = self.discount * self._expected(asked.values, pairs)
        return cost + ahead - self._by_pair(values, states), cost, values

    def terms(self, asked: _Values, states: slice) -> FloatArray | None:
        if asked.sizes is None:
            return None
        pairs, here = self._places(states)
        ahead = self.discount * self._expected(asked.sizes, pairs)
        return np.asarray(self._by_pair(asked.sizes[here], states) + ahead)

    def _expected(self, values: FloatArray, pairs: slice) -> FloatArray:
        """Return the expected values (n,) of next states, given those of all states (S,)."""
        from bellweight.program.compiled_scan import expected_next  # loads the compiler

        matrix, expected = self.transition, np.empty(pairs.stop - pairs.start)
        pointer = matrix.indptr[pairs.start : pairs.stop + 1]
        expected_next(pointer, matrix.indices, matrix.data, values, expected)
        return expected

    def _places(self, states: slice) -> tuple[slice, slice]:
        pairs = slice(int(self.starts[states.start]), int(self.starts[states.stop]))
        return pairs, slice(self.first_state + states.start, self.first_state + states.stop)

    def _by_pair(self, numbers: FloatArray, states: slice) -> FloatArray:
        return np.repeat(numbers, np.diff(self.starts[states.start : states.stop + 1]))


class TabularRows(ListedRows):
    """All rows of a tabular model; a row's key is its pair."""

    is_complete = True

    def __init__(self, model: TabularModel, basis: Basis) -> None:
        self.model = model
        super().__init__(basis, model.states, model.discount)
        self.pair_start = model.pair_start
        self.pair_cost = model.cost

    @property
    def _is_small(self) -> bool:
        # Or small beside the table itself.
        n_entries = len(self._points) * self._n_basis
        return super()._is_small or n_entries <= _KEPT_SHARE * self.model.transition.nnz

    def block(self, states: slice) -> TableBlock:
        pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
        starts = self.pair_start[states.start : states.stop + 1] - pairs.start
        transition = _row_block(self.model.transition, pairs)
        first = int(pairs.start)
        return TableBlock(
            first, starts, self.discount, states.start, transition, self.pair_cost[pairs]
        )

    def asked(self, coef: FloatArray, *, sizes: bool) -> _Values:
        # Successors lie anywhere, so the values of all states are computed once per pass.
        return _Values(*self.values_and_terms(coef)) if sizes else _Values(self.values(coef), None)

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
        other.pair_cost = cost
        other.__dict__.pop("_pieces", None)  # blocks hold the costs
        return other

    def exact_rows(self, keys: IntArray) -> Doubled:
        model = self.model
        following = model.transition[keys]
        chances = multiply(doubled(following.data), doubled(np.full(1, self.discount)))
        features = self._dense_features(following.indices)
        terms = multiply(chances.at((slice(None), None)), doubled(features))
        ahead = total_by_group(terms, following.indptr)
        return subtract(doubled(self._dense_features(model.pair_state[keys])), ahead)

    @property
    def largest_cost(self) -> float:
        """The largest cost of a pair, without its sign."""
        return float(np.abs(self.pair_cost).max())

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

    def exact_values(self, coef: Doubled) -> Doubled:
        """Return the value (S,) of every state to twice the digits."""
        parts = [
            product(doubled(self._dense_features(states)), coef)
            for states, _ in self._feature_blocks()
        ]
        return Doubled(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def exact_slacks(self, coef: Doubled, pairs: IntArray) -> FloatArray:
        """Return the slacks (n,) of some pairs at coefficients, computed with twice the digits."""
        found = np.empty(len(pairs))
        for start in range(0, len(pairs), _EXACT_PAIRS):
            some = pairs[start : start + _EXACT_PAIRS]
            following, own = self.model.transition[some], self.model.pair_state[some]
            states, place = np.unique(np.concatenate([following.indices, own]), return_inverse=True)
            values = product(doubled(self._dense_features(states)), coef)
            chances = multiply(doubled(following.data), doubled(np.full(1, self.discount)))
            expected = multiply(chances, values.at(place[: following.nnz]))
            ahead = total_by_group(expected, following.indptr)
            gained = subtract(ahead, values.at(place[following.nnz :]))
            found[start : start + _EXACT_PAIRS] = add(doubled(self.pair_cost[some]), gained).high
        return found

    def violated(self, coef: Doubled, unit: float, *, homogeneous: bool = False) -> IntArray:
        model, values = self.model, self.exact_values(coef)
        n_close, found = 8 + self._n_basis, []
        # With twice the digits no slack needs a margin for rounding.
        scale = Scale(self.discount, unit, 0.0, homogeneous=False)
        for states in self.state_blocks():
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            block = _row_block(model.transition, pairs)
            chances = multiply(doubled(block.data), doubled(np.full(1, self.discount)))
            ahead = total_by_group(multiply(chances, values.at(block.indices)), block.indptr)
            gained = subtract(ahead, values.at(model.pair_state[pairs]))
            cost = np.zeros(len(gained.high)) if homogeneous else self.pair_cost[pairs]
            slack = add(doubled(cost), gained).high
            starts = self.pair_start[states.start : states.stop + 1] - pairs.start
            terms = np.zeros(len(slack))
            here = values.high[states]
            found.append(found_in(pairs.start, slack, cost, here, starts, scale, n_close, terms))
        return joined(found, n_close).close

    def _dense_features(self, states: IntArray | slice) -> FloatArray:
        features = self.features(states)
        return np.asarray(features.toarray() if sparse.issparse(features) else features)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        return self.model.pair_state[keys], self.model.pair_action[keys]


def _row_block(matrix: sparse.csr_array, rows: slice) -> sparse.csr_array:
    """Return consecutive rows of a CSR matrix as a view on its data."""
    pointer = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(pointer[0], pointer[-1])
    block = sparse.csr_array((rows.stop - rows.start, matrix.shape[1]), dtype=matrix.dtype)
    # Put in afterwards: the constructor would copy a view that is less than half of its array.
    block.data, block.indices = matrix.data[entries], matrix.indices[entries]
    block.indptr = pointer - pointer[0]
    return block
