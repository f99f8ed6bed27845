"""Tables and chains in blocks of states: what threads or the workers of a cluster work on.

The blocks depend on the table alone. Rows and exact passes share them, so that a cluster holds a
table once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.models import TabularModel
from bellweight.models.kernels.layouts import writable
from bellweight.program.features import Features
from bellweight.program.row_blocks import ListedBlock, RowPieces

_FEW_TRANSITIONS = 1 << 19  # a pass over fewer ends before a second thread has begun
_MOST_TRANSITIONS = 1 << 23  # of a block, which is sent in one message
_MANY_BLOCKS = 8  # enough to keep a few workers busy to the end

_known: WeakKeyDictionary[TabularModel, RowPieces] = WeakKeyDictionary()


def n_blocks(n_transitions: int) -> int:
    """Return into how many blocks so many transitions are cut: one where they are few."""
    n = max(min(_MANY_BLOCKS, n_transitions // _FEW_TRANSITIONS), 1)
    return max(n, -(-n_transitions // _MOST_TRANSITIONS))


def cut(ends: IntArray) -> list[slice]:
    """Cut states into ranges with about as many transitions each; ends (S + 1,) count them."""
    n_all, n_states = int(ends[-1]), len(ends) - 1
    n = min(n_blocks(n_all), n_states)
    inner = np.searchsorted(ends, [k * n_all // n for k in range(1, n)])
    edges = np.unique([0, *np.clip(inner, 1, n_states - 1), n_states]).tolist()
    return [slice(first, last) for first, last in pairwise(edges)]


def table_pieces(model: TabularModel, cost: FloatArray | None = None) -> RowPieces:
    """Return a table in blocks, the same ones whenever it is asked for; or one of other costs."""
    if cost is not None and cost is not model.cost:
        return _pieces(model, cost)
    if model not in _known:
        _known[model] = _pieces(model, model.cost)
    return _known[model]


def _pieces(model: TabularModel, cost: FloatArray) -> RowPieces:
    states = cut(model.transition.indptr[model.pair_start])
    row_blocks = [table_block(model, some, cost) for some in states]
    return RowPieces(row_blocks, [some.start for some in states], by_threads=True)


def table_block(model: TabularModel, states: slice, cost: FloatArray) -> TableBlock:
    """Return consecutive states of a table, with these costs (N,)."""
    pairs = slice(int(model.pair_start[states.start]), int(model.pair_start[states.stop]))
    starts = model.pair_start[states.start : states.stop + 1] - pairs.start
    transition = row_block(model.transition, pairs)
    return TableBlock(pairs.start, starts, model.discount, states.start, transition, cost[pairs])


class Values(NamedTuple):
    """The values (S,) of all states, and the sizes (S,) of the terms that they are made of."""

    values: FloatArray
    sizes: FloatArray | None


@dataclass(frozen=True, eq=False)
class TableBlock(ListedBlock):
    """Rows of a table, from one state on: their transitions (n, S) and costs (n,)."""

    first: int
    starts: IntArray
    discount: float
    first_state: int
    transition: sparse.csr_array
    cost: FloatArray

    def pair_starts(self) -> IntArray:
        return self.starts

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The first state that the transitions lead to, and the one after the last."""
        indices = self.transition.indices
        return int(indices.min()), int(indices.max()) + 1

    def here(self, values: FloatArray) -> FloatArray:
        """Return the numbers (s,) of these states among those of all states (S,)."""
        return values[self.first_state : self.first_state + len(self.starts) - 1]

    def slacks(self, asked: Values, states: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        cost = writable(self.cost[int(self.starts[states.start]) : int(self.starts[states.stop])])
        here = self.here(asked.values)[states]
        return self._ahead(asked.values, states, cost, here), cost, here

    def terms(self, asked: Values, states: slice) -> FloatArray | None:
        if asked.sizes is None:
            return None
        none = np.zeros(int(self.starts[states.stop] - self.starts[states.start]))
        return self._ahead(asked.sizes, states, none, -self.here(asked.sizes)[states])

    def _ahead(
        self, values: FloatArray, states: slice, cost: FloatArray, here: FloatArray
    ) -> FloatArray:
        """Return cost + discount E[values next] - here of the pairs of some states.

        `values` are those of all states, `here` (s,) belongs to these, and `cost` (n,) to pairs.
        """
        from bellweight.program.compiled_scan import table_slacks  # loads the compiler

        matrix, slack = self.transition, np.empty(len(cost))
        starts = self.starts[states.start : states.stop + 1]
        table_slacks(
            starts, matrix.indptr, matrix.indices, matrix.data, values, self.discount, cost, here,
            slack,
        )  # fmt: skip
        return slack

    def rows(self, keys: IntArray, maker: Features) -> FloatArray:
        states = self.first_state + np.searchsorted(self.starts, keys, side="right") - 1
        return np.asarray(table_rows_of(self.transition, keys, states, maker, self.discount))


def table_rows_of(
    transition: sparse.csr_array, keys: IntArray, states: IntArray, features: Features,
    discount: float,
) -> Matrix:  # fmt: skip
    """Return rows (n, K) of the pairs `keys` of some transitions, which belong to states (n,)."""
    kept = features.kept
    if kept is not None and not sparse.issparse(kept):
        from bellweight.program.compiled_scan import table_rows  # loads the compiler

        rows = np.zeros((len(keys), kept.shape[1]))
        matrix = transition
        table_rows(keys, matrix.indptr, matrix.indices, matrix.data, states, kept, discount, rows)
        return rows
    following = transition[keys]
    needed, position = np.unique(following.indices, return_inverse=True)
    compact = sparse.csr_array(
        (following.data, position, following.indptr), shape=(len(keys), len(needed))
    )
    found = features.at(states) - discount * (compact @ features.at(needed))
    return sparse.csr_array(found) if sparse.issparse(found) else np.asarray(found)


def row_block(matrix: sparse.csr_array, rows: slice) -> sparse.csr_array:
    """Return consecutive rows of a CSR matrix as a view on its data."""
    pointer = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(pointer[0], pointer[-1])
    block = sparse.csr_array((rows.stop - rows.start, matrix.shape[1]), dtype=matrix.dtype)
    # Put in afterwards: the constructor would copy a view that is less than half of its array.
    block.data, block.indices = matrix.data[entries], matrix.indices[entries]
    block.indptr = pointer - pointer[0]
    return block
