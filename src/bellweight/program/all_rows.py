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
from bellweight.models.kernels.layouts import Scale
from bellweight.models.loops import Closest
from bellweight.program.features import Features
from bellweight.program.listed_rows import ListedRows
from bellweight.program.row_blocks import RowPieces, found_in, joined
from bellweight.program.table_blocks import (
    TableBlock,
    Values,
    row_block,
    table_block,
    table_pieces,
    table_rows_of,
)

_EXACT_PAIRS = 20_000  # at a time with twice the digits
_KEPT_SHARE = 0.5  # features for each transition that are kept: a third of the memory of the table


@dataclass(frozen=True)
class AllRows:
    """Every row of a model whose states can be enumerated."""

    def on(self, model: TabularModel, basis: Basis) -> TabularRows:
        """Bind to a model and a basis."""
        return TabularRows(model, basis)


class TabularRows(ListedRows):
    """All rows of a tabular model; a row's key is its pair."""

    is_complete = True
    _exact_moments: tuple[FloatArray, Doubled] | None = None  # the last weights and their moments

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
        return table_block(self.model, states, self.pair_cost)

    @cached_property
    def _pieces(self) -> RowPieces:
        return table_pieces(self.model, self.pair_cost)

    @property
    def _row_maker(self) -> Features:
        return self._features

    def asked(self, coef: FloatArray, *, sizes: bool) -> Values:
        # Successors lie anywhere, so the values of all states are computed once per pass.
        return Values(*self.values_and_terms(coef)) if sizes else Values(self.values(coef), None)

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        model = self.model
        rows = table_rows_of(
            model.transition, keys, model.pair_state[keys], self._features, self.discount
        )
        return rows, self.pair_cost[keys]

    def with_cost(self, cost: FloatArray) -> TabularRows:
        """Return the same rows with other costs (N,) on the right."""
        other = copy(self)
        other.pair_cost = cost
        other.__dict__.pop("_pieces", None)  # blocks hold the costs
        return other

    def exact_rows(self, keys: IntArray) -> Doubled:
        from bellweight.program.compiled_doubled import exact_table_rows  # loads the compiler

        matrix = self.model.transition
        first, ends = matrix.indptr[keys], matrix.indptr[np.asarray(keys) + 1]
        counts = ends - first
        entries = np.arange(counts.sum()) + np.repeat(ends - np.cumsum(counts), counts)
        here = self._dense_features(self.model.pair_state[keys])
        features = self._dense_features(matrix.indices[entries])
        rows = Doubled(np.empty(here.shape), np.empty(here.shape))
        scratch = np.empty((2, max(1, counts.max(initial=0))))
        exact_table_rows(
            counts, matrix.data[entries], features, here, self.discount, scratch, *rows
        )
        return rows

    @property
    def largest_cost(self) -> float:
        """The largest cost of a pair, without its sign."""
        return float(np.abs(self.pair_cost).max())

    def exact_moments(self, weights: FloatArray) -> Doubled:
        known = self._exact_moments
        if known is None or not np.array_equal(known[0], weights):  # a solve asks several times
            known = self._exact_moments = weights.copy(), self._exactly(weights)
        return known[1]

    def _exactly(self, weights: FloatArray) -> Doubled:
        """Return Phi' weights (K,) to twice the digits."""
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
        n_close, found = 8 + self._n_basis, list[Closest]()
        # With twice the digits no slack needs a margin for rounding.
        scale = Scale(self.discount, unit, 0.0, homogeneous=False)
        for states in self.state_blocks():
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            block = row_block(model.transition, pairs)
            chances = multiply(doubled(block.data), doubled(np.full(1, self.discount)))
            ahead = total_by_group(multiply(chances, values.at(block.indices)), block.indptr)
            gained = subtract(ahead, values.at(model.pair_state[pairs]))
            cost = np.zeros(len(gained.high)) if homogeneous else self.pair_cost[pairs]
            slack = add(doubled(cost), gained).high
            starts = self.pair_start[states.start : states.stop + 1] - pairs.start
            terms = np.zeros(len(slack))
            here = values.high[states]
            part = found_in(pairs.start, slack, cost, here, starts, scale, n_close, terms)
            assert part is not None
            found.append(part)
        return joined(found, n_close).close

    def _dense_features(self, states: IntArray | slice) -> FloatArray:
        features = self.features(states)
        return np.asarray(features.toarray() if sparse.issparse(features) else features)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        return self.model.pair_state[keys], self.model.pair_action[keys]
