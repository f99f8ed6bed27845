"""Blocks of rows, and the search for rows worth adding, which other machines may do.

A block holds consecutive states of a list and all that is needed to judge coefficients there, so it
can live where it is worked on. One compiled scan of its slacks finds the rows of least slack and
those that may be tight; nothing of the size of the rows is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.threads import one_thread
from bellweight.common.workers import Pieces, Ranges
from bellweight.models.kernels.layouts import Scale, writable
from bellweight.models.loops import Closest
from bellweight.program.conditioning import Coordinates
from bellweight.program.row_source import MOST_CLOSE, Separation

_WEIGHED_ROWS = 20_000  # at a time
_SCANNED_PAIRS = 1 << 15  # rows at a time: their slacks stay in the processor's cache


class RowBlock(ABC):
    """The rows of consecutive states; `first` is the key of the first row.

    What is asked of a block is prepared by its row source.
    """

    first: int

    @abstractmethod
    def pair_starts(self) -> IntArray:
        """Return where the pairs of each state begin (n + 1,), from 0 on."""

    @abstractmethod
    def slacks(self, asked: Any, states: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return slacks and costs (n,) of all pairs of some states, and the states' values."""

    @abstractmethod
    def terms(self, asked: Any, states: slice) -> FloatArray | None:
        """Return the size (n,) of the terms of the rows of some states; None if not prepared.

        Or those of the states, where all rows of a state have the same.
        """

    def all_slacks(self, asked: Any) -> FloatArray:
        """Return the slacks (n,) of all its pairs."""
        scanned = self._scanned(self.pair_starts())
        return np.concatenate([self.slacks(asked, states)[0] for states in scanned])

    def closest(self, asked: Any, scale: Scale, n_close: int) -> list[Closest] | None:
        """Return what scans find; None where sizes of terms are needed and not prepared."""
        found: list[Closest] = []
        every = self.pair_starts()
        for states in self._scanned(every):
            starts = every[states.start : states.stop + 1]
            slack, cost, value = self.slacks(asked, states)
            first, starts = self.first + int(starts[0]), starts - starts[0]
            part = found_in(first, slack, cost, value, starts, scale, n_close)
            if part is None:  # it needs the sizes of terms
                terms = self.terms(asked, states)
                if terms is None:
                    return None
                part = found_in(first, slack, cost, value, starts, scale, n_close, terms)
                assert part is not None
            found.append(part)
        return found

    @staticmethod
    def _scanned(starts: IntArray) -> Iterator[slice]:
        n, size = len(starts) - 1, states_scanned(starts)
        for start in range(0, n, size):
            yield slice(start, min(start + size, n))


class ListedBlock(RowBlock):
    """Rows of states that are listed: any of them can be asked for."""

    @abstractmethod
    def rows(self, keys: IntArray, maker: Any) -> FloatArray:
        """Return rows (n, K), counted from the block's first; its row source gives the maker."""


class RowPieces(Ranges):
    """Blocks of rows; each begins with a state (`starts`), and so with a row (`first_keys`)."""

    def __init__(
        self, row_blocks: Sequence[RowBlock], starts: Sequence[int], *, by_threads: bool = False
    ) -> None:
        super().__init__(row_blocks, starts, by_threads=by_threads)
        self.first_keys = [block.first for block in row_blocks]

    def split_pairs(self, vector: FloatArray) -> Pieces:
        """Return what belongs to each block of an array over all pairs."""
        return Pieces(np.split(vector, self.first_keys[1:]))


def weighed(
    block: ListedBlock, asked: tuple[IntArray, FloatArray], maker: Any, coordinates: Coordinates
) -> FloatArray:
    """Return A'A and A' weights (r, r + 1) of the rows A asked for, in coordinates."""
    keys, weights = asked
    total = np.zeros((coordinates.rank, coordinates.rank + 1))
    with one_thread():
        for some in blocks(len(keys), _WEIGHED_ROWS):
            rows = np.asarray(coordinates.rows(block.rows(keys[some], maker)))
            total[:, :-1] += rows.T @ rows
            total[:, -1] += rows.T @ weights[some]
    return total


def states_scanned(starts: IntArray) -> int:
    """Return how many states are scanned at a time; their pairs begin at `starts` (n + 1,)."""
    n_scans = max(1, round(int(starts[-1]) / _SCANNED_PAIRS))  # of equal size: no rest by itself
    return max(1, -(-(len(starts) - 1) // n_scans))


def found_in(
    first: int,
    slack: FloatArray,
    cost: FloatArray,
    value: FloatArray,
    starts: IntArray,
    scale: Scale,
    n_close: int,
    terms: FloatArray | None = None,
) -> Closest | None:
    """Scan slacks (n,); None where the sizes of terms are needed and not given."""
    from bellweight.program.compiled_scan import scan  # loads the compiler

    n = min(n_close, len(slack))
    place, near = np.empty(n, dtype=np.int64), np.empty(len(slack), dtype=np.int64)
    relative, size, counts = np.empty(n), np.empty(n), np.zeros(4, dtype=np.int64)
    given = np.zeros(0) if terms is None else terms
    known, violation = scan(
        slack, writable(cost), value, starts, scale, given, place, relative, size, near, counts
    )
    if not known:
        return None
    n_found, _, n_near, _ = counts
    return Closest(
        first + place[:n_found], relative[:n_found], size[:n_found], first + near[:n_near],
        violation,
    )  # fmt: skip


def closest_in(block: RowBlock, asked: Any, scale: Scale, n_close: int) -> Closest | None:
    """Return the closest rows of a block, the part of a pass that is done where the block is."""
    found = block.closest(asked, scale, n_close)
    return None if found is None else _best(found, n_close)


def joined(parts: Iterable[Closest], n_close: int) -> Separation:
    """Return the answer of a pass from those of its blocks, in order."""
    keys, _, size, near, violation = _best(parts, n_close)
    return Separation(close=keys, close_size=size, near=near, violation=max(0.0, violation))


def _best(parts: Iterable[Closest], n_close: int) -> Closest:
    """Return the closest of the rows of some parts, and all near ones."""
    keys, relative, size, near, violations = zip(*parts, strict=True)
    slack = np.concatenate(relative)
    order = np.argsort(slack, kind="stable")[: MOST_CLOSE * n_close]
    return Closest(
        np.concatenate(keys)[order], slack[order], np.concatenate(size)[order],
        np.concatenate(near), max(violations),
    )  # fmt: skip
