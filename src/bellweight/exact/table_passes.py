"""Passes over tables and chains: large ones in blocks, by threads, or on a cluster (`workers`).

A cluster takes some hundredths of a second for a pass of any size, so only those over the largest
tables go there. The chain of one policy, which is a part of the table, is made anew for each policy
and stays here, but for those of value iteration, which are made where the table is.

The blocks depend on the table alone, and sums over blocks are added in an order that their number
decides: a pass gives the same bits on any number of workers. What is small is one block, and goes
to the compiled pass at once.

Of the transpose each block makes a vector of what flows out of its states, as far as it flows; the
vectors are added up. Nothing of the size of the table is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.workers import Pieces, Ranges
from bellweight.exact.passes import follow, follow_pairs, improve, spread_pairs, steps_to
from bellweight.models import TabularModel
from bellweight.program.row_blocks import RowPieces
from bellweight.program.table_blocks import TableBlock, cut, n_blocks, row_block, table_pieces

_FAR_TRANSITIONS = 1 << 26  # of a table that is worth the way to a cluster

Steps = tuple[float, float, float, float]  # the least, the largest, their size, the sum of x after


class TablePasses:
    """Passes over all pairs of a table, and over those of a policy."""

    def __init__(self, model: TabularModel) -> None:
        matrix, self._model = model.transition, model
        self._blocks = _blocks_of(model)
        self._entries = (
            matrix.indptr, matrix.indices, matrix.data, model.cost, model.pair_start,
            model.discount,
        )  # fmt: skip

    def improve(
        self, values: FloatArray, following: FloatArray, pairs: IntArray
    ) -> tuple[float, float]:
        """Write the least quality (S,) of each state and its first pair; return extreme steps."""
        if self._blocks is None:
            low, high = improve(*self._entries, values, values, following, pairs)
            return low, high
        found = self._blocks.map(_improved, values)
        best, chosen, lows, highs = zip(*found, strict=True)
        np.concatenate(best, out=following)
        np.concatenate(chosen, out=pairs)
        return min(lows), max(highs)

    def chain(self, pairs: IntArray) -> ChainPasses:
        """Return passes over the rows of a policy that takes these pairs (S,)."""
        model, blocks = self._model, self._blocks
        if blocks is None or n_blocks(model.transition.nnz * model.n_states // model.n_pairs) == 1:
            return ChainPasses(model.transition[pairs])
        own = blocks.split(pairs, once=True)
        return ChainPasses(blocks.each(_own_rows, own))  # made where the table is


class ChainPasses:
    """Passes over a chain: its matrix (S, S), or its rows in blocks."""

    def __init__(self, chain: sparse.csr_array | Ranges) -> None:
        if not isinstance(chain, Ranges) and n_blocks(chain.nnz) > 1:
            states = cut(chain.indptr)
            parts = [ChainBlock(some.start, row_block(chain, some)) for some in states]
            chain = Ranges(parts, [some.start for some in states]).staying()
        self._blocks = chain if isinstance(chain, Ranges) else None
        self._constant = _Split(self._blocks)
        if not isinstance(chain, Ranges):
            self._entries = chain.indptr, chain.indices, chain.data

    def follow(
        self, constant: FloatArray, discount: float, x: FloatArray, following: FloatArray
    ) -> Steps:
        """Write constant + discount P x (S,), and return the steps from x."""
        if self._blocks is None:
            found: Steps = follow(*self._entries, constant, discount, x, x, following)
            return found
        return _joined(
            self._blocks.map(_followed, self._constant.of(constant), discount, x), following
        )


class MixedPasses:
    """Passes over the pairs of a table, as a policy takes them with some chances (N,)."""

    def __init__(self, model: TabularModel, chances: FloatArray) -> None:
        self._model, self._chances = model, chances
        self._blocks = _blocks_of(model)
        self._constant = _Split(self._blocks)
        if self._blocks is not None:
            self._own_chances = self._blocks.split_pairs(chances)

    def follow(
        self, constant: FloatArray, discount: float, x: FloatArray, following: FloatArray
    ) -> Steps:
        """Write constant + discount P x (S,), and return the steps from x."""
        if self._blocks is None:
            model, matrix = self._model, self._model.transition
            found: Steps = follow_pairs(
                matrix.indptr, matrix.indices, matrix.data, model.pair_start, self._chances,
                constant, discount, x, x, following,
            )  # fmt: skip
            return found
        own = self._own_chances, self._constant.of(constant)
        return _joined(self._blocks.map(_followed_pairs, *own, discount, x), following)

    def spread(
        self, constant: FloatArray, discount: float, x: FloatArray, following: FloatArray
    ) -> Steps:
        """Write constant + discount P' x (S,), and return the steps from x."""
        following[:] = constant
        if self._blocks is None:
            model, matrix = self._model, self._model.transition
            spread_pairs(
                matrix.indptr, matrix.indices, matrix.data, model.pair_start, self._chances,
                discount, x, 0, following,
            )  # fmt: skip
        else:
            own = self._own_chances, self._blocks.split(x, once=True)
            flow = self._blocks.total(_spread, *own, discount)
            following[flow.first : flow.first + len(flow.numbers)] += flow.numbers
        found: Steps = steps_to(following, x)
        return found


def _blocks_of(model: TabularModel) -> RowPieces | None:
    n_transitions = model.transition.nnz
    if n_blocks(n_transitions) == 1:
        return None
    pieces = table_pieces(model)
    return pieces if n_transitions >= _FAR_TRANSITIONS else pieces.staying()


class ChainBlock(NamedTuple):
    """Consecutive rows of a chain (s, S), from a state on."""

    first: int
    matrix: sparse.csr_array


@dataclass(frozen=True, eq=False)
class Flow:
    """What flows to the states from `first` on; numbers (n,)."""

    first: int
    numbers: FloatArray

    def __add__(self, other: Flow) -> Flow:
        ends = [one.first + len(one.numbers) for one in (self, other)]
        first = min(self.first, other.first)
        numbers = np.zeros(max(ends) - first)
        for one, end in zip((self, other), ends, strict=True):
            numbers[one.first - first : end - first] += one.numbers
        return Flow(first, numbers)


class _Split:
    """The parts of a vector that belong to blocks: a cluster keeps those of the last one."""

    def __init__(self, ranges: Ranges | None) -> None:
        self._ranges = ranges
        self._last: tuple[FloatArray, Pieces] | None = None

    def of(self, vector: FloatArray) -> Pieces:
        assert self._ranges is not None
        if self._last is None or self._last[0] is not vector:
            self._last = vector, self._ranges.split(vector)
        return self._last[1]


def _joined(found: Iterable[tuple[FloatArray, Steps]], following: FloatArray) -> Steps:
    parts, steps = zip(*found, strict=True)
    np.concatenate(parts, out=following)
    low, high, size, mass = zip(*steps, strict=True)
    return min(low), max(high), sum(size), sum(mass)


def _improved(block: TableBlock, values: FloatArray) -> tuple[FloatArray, IntArray, float, float]:
    here = block.here(values)
    following, pairs = np.empty(len(here)), np.empty(len(here), dtype=np.int64)
    low, high = improve(
        *_entries(block.transition), *_still(block.cost, block.starts), block.discount,
        *_still(values, here), following, pairs,
    )  # fmt: skip
    return following, block.first + pairs, low, high


def _own_rows(block: TableBlock, pairs: IntArray) -> ChainBlock:
    return ChainBlock(block.first_state, block.transition[pairs - block.first])


def _followed(
    block: ChainBlock, constant: FloatArray, discount: float, x: FloatArray
) -> tuple[FloatArray, Steps]:
    here, following = x[block.first : block.first + len(constant)], np.empty(len(constant))
    steps = follow(
        *_entries(block.matrix), *_still(constant), discount, *_still(x, here), following
    )
    return following, steps


def _followed_pairs(
    block: TableBlock, chances: FloatArray, constant: FloatArray, discount: float, x: FloatArray
) -> tuple[FloatArray, Steps]:
    following = np.empty(len(constant))
    steps = follow_pairs(
        *_entries(block.transition), *_still(block.starts, chances, constant), discount,
        *_still(x, block.here(x)), following,
    )  # fmt: skip
    return following, steps


def _spread(block: TableBlock, chances: FloatArray, here: FloatArray, discount: float) -> Flow:
    first, end = block.reach
    numbers = np.zeros(end - first)
    spread_pairs(
        *_entries(block.transition), *_still(block.starts, chances), discount, *_still(here),
        first, numbers,
    )  # fmt: skip
    return Flow(first, numbers)


def _entries(matrix: sparse.csr_array) -> tuple[Any, ...]:
    return _still(matrix.indptr, matrix.indices, matrix.data)


def _still(*arrays: Any) -> tuple[Any, ...]:
    """Return views that cannot be written to: of others compiled code is compiled anew."""
    found = tuple(array.view() for array in arrays)
    for view in found:
        view.flags.writeable = False
    return found
