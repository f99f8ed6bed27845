"""What row sources with listed states share: features, first rows, passes over all rows.

The pairs of all states are searched block by block, so memory is needed for the states, the costs
and one block only. Features are kept where they take little.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import null_space

from bellweight.basis import Basis, Indicator
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.doubled import Doubled, doubled
from bellweight.common.status import BasisError
from bellweight.common.workers import Pieces, Ranges
from bellweight.models.kernels.layouts import Scale
from bellweight.program import conditioning
from bellweight.program.features import Features, alone, moments_of, terms_of, values_of
from bellweight.program.row_blocks import ListedBlock, RowPieces, closest_in, joined, weighed
from bellweight.program.row_source import RowSource, Separation

_BLOCK_PAIRS = 1 << 16
_PIECE_PAIRS = 1 << 18  # at most, that are judged together, and sent together to far workers
_FEW_PAIRS = 1 << 15  # fewer than these are not worth a piece of their own
_MANY_PIECES = 8  # enough to keep a few workers busy to the end
_CACHED_ENTRIES = 1 << 25  # features are kept when they take at most 256 MB
_WHOLE_PAIRS = 4_000  # programs up to this size are loaded whole
_WHOLE_PER_FUNCTION = 100  # and so are programs with up to this many rows to a basis function
_MOST_ADDITIONS = 50  # rounds of adding states to the first ones; two are the rule


class ListedRows(RowSource):
    """Rows of a list of states; a row's key is its place in the list of pairs.

    Pairs are sorted by state: those of state number x are `pair_start[x]:pair_start[x + 1]`. A
    subclass says what the slacks and the rows of some pairs are.
    """

    def __init__(self, basis: Basis, states: Any, discount: float) -> None:
        self.basis = basis.on(np.asarray(states, dtype=np.float64))
        self.discount = discount
        self._points = states  # whole numbers stay such: bases see them block by block
        first = self.basis(np.asarray(states[:1], dtype=np.float64))
        self._sparse = sparse.issparse(first)
        self._n_basis = int(first.shape[1])
        self._cache: Matrix | None = None
        if self._sparse:
            self._cache = self._features.at(slice(None))
        elif self._is_small:
            self._cache = self._kept_features()
        if self._sparse and not isinstance(self.basis, Indicator) and self._is_small:
            # Only of an Indicator is it known that its functions are independent and add up to one.
            self._cache, self._sparse = self.features(slice(None)).toarray(), False
        self.names = self.basis.function_names(states.shape[1])
        self.lower, self.upper = self.basis.bounds(self._n_basis)

    pair_start: IntArray
    pair_cost: FloatArray
    jobs: int | None = None  # workers of a pass over the rows, all by default
    _finds_violations = True  # whether the pass before did
    _piece_times = 1  # pieces are so many times as large as others'

    @abstractmethod
    def block(self, states: slice) -> ListedBlock:
        """Return the rows of a range of states by themselves."""

    @property
    @abstractmethod
    def _row_maker(self) -> Any:
        """What blocks need to make rows."""

    @cached_property
    def _shared_maker(self) -> Pieces:
        return Pieces([self._row_maker])  # sent to a cluster once

    def weighed(
        self, keys: IntArray, weights: FloatArray, coordinates: conditioning.Coordinates
    ) -> FloatArray:
        """Return A'A (r, r) and A' weights beside it, for the rows A of some rising keys (n,).

        The rows are those in coordinates.
        """
        pieces = self._pieces
        edges = np.searchsorted(keys, pieces.first_keys[1:])
        own, each = np.split(keys, edges), np.split(weights, edges)
        given = [
            (part - first, some)
            for part, first, some in zip(own, pieces.first_keys, each, strict=True)
        ]
        asked = Pieces(given, once=True), self._shared_maker, coordinates
        return np.asarray(pieces.total(weighed, *asked, jobs=self.jobs))

    @abstractmethod
    def asked(self, coef: FloatArray, *, sizes: bool) -> Any:
        """Prepare what blocks need to judge coefficients; with `sizes`, those of terms as well."""

    def with_cost(self, cost: FloatArray) -> ListedRows | None:
        """Return the same rows with other costs (N,) on the right, None where that is not known."""
        return None

    def slacks(self, coef: FloatArray, states: slice) -> tuple[FloatArray, FloatArray]:
        """Return slacks (n,) of all pairs of a range of states, and the states' values."""
        block, every = self.block(states), slice(0, states.stop - states.start)
        slack, _, values = block.slacks(self.asked(coef, sizes=False), every)
        return slack, values

    def all_terms(self, coef: FloatArray) -> FloatArray:
        """Return the size (N,) of the terms of each row times coefficients.

        That is |phi(x)|' |coef| + discount E|phi(next)|' |coef|: what rounding is relative to.
        """
        asked = self.asked(coef, sizes=True)
        return np.concatenate(self._pieces.map(_terms_of, asked, jobs=self.jobs))

    def slacks_and_terms(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slacks (N,) of all rows, and the size (N,) of their terms but the costs."""
        asked = self.asked(coef, sizes=True)
        slacks, terms = (
            np.concatenate(self._pieces.map(work, asked, jobs=self.jobs))
            for work in (_slacks_of, _terms_of)
        )
        return slacks, terms

    @property
    def n_basis(self) -> int:
        return self._n_basis

    @property
    def n_pairs(self) -> int:
        """Number of rows."""
        return len(self.pair_cost)

    @property
    def is_sparse(self) -> bool:
        return self._sparse

    @property
    def _is_small(self) -> bool:
        return is_kept(len(self._points) * self._n_basis)

    @property
    def _features(self) -> Features:
        return Features(self.basis, self._points, self._cache)

    @cached_property
    def _feature_pieces(self) -> Ranges | None:
        """Ranges of states with their features, where they are many; they live with the workers."""
        n_entries = len(self._points) * (1 if self._sparse else self._n_basis)
        pieces = self._features.pieces(n_entries)
        return pieces if len(pieces) > 1 else None

    def features(self, states: IntArray | slice) -> Matrix:
        """Return the features (n, K) of some states."""
        return self._features.at(states) if self._cache is None else self._cache[states]

    def values(self, coef: FloatArray) -> FloatArray:
        """Return the approximate value of every state."""
        if (pieces := self._feature_pieces) is None:
            return values_of(self._features, coef)
        return np.concatenate(pieces.map(alone, values_of, coef, jobs=self.jobs))

    @property
    def n_terms(self) -> int:
        """The most functions that are not zero in a state."""
        if not self._sparse:
            return self._n_basis
        return max(int(np.diff(block.indptr).max()) for _, block in self._feature_blocks())

    def value_terms(self, coef: FloatArray) -> FloatArray:
        """Return the size (S,) of the terms that the value of each state is made of."""
        return self.values_and_terms(coef)[1]

    def values_and_terms(self, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both for every state, from one look at its features."""
        if (pieces := self._feature_pieces) is None:
            return terms_of(self._features, coef)
        parts = pieces.map(alone, terms_of, coef, jobs=self.jobs)
        values, terms = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(terms)

    def moments(self, weights: FloatArray) -> FloatArray:
        """Return Phi' weights, shape (K,)."""
        if (pieces := self._feature_pieces) is None:
            return moments_of(self._features, weights)
        own = pieces.split(weights, once=True)
        return np.asarray(pieces.total(alone, moments_of, own, jobs=self.jobs))

    @cached_property
    def _largest(self) -> FloatArray:
        """The largest size of each function (K,) over the states."""
        sizes = np.zeros(self._n_basis)
        for _, block in self._feature_blocks():
            largest = abs(block).max(axis=0)
            dense = largest.toarray() if sparse.issparse(largest) else largest
            sizes = np.maximum(sizes, np.asarray(dense).ravel())
        return sizes

    @cached_property
    def even_moments(self) -> Doubled:
        weights = np.full(len(self._points), 1.0 / len(self._points))
        exact = self.exact_moments(weights)
        return doubled(self.moments(weights)) if exact is None else exact

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        rounded = 2.0 * tolerances.ROUNDING * float(self._largest @ np.abs(coef))
        scale = Scale(self.discount, unit, rounded, homogeneous)
        n_close, pieces = 8 + self._n_basis, self._pieces
        asked = self.asked(coef, sizes=self._finds_violations)
        found = pieces.map(closest_in, asked, scale, n_close, jobs=self.jobs)
        unsure = [k for k, part in enumerate(found) if part is None]
        if unsure:
            asked = self.asked(coef, sizes=True)
            again = pieces.map(closest_in, asked, scale, n_close, jobs=self.jobs, only=unsure)
            for k, part in zip(unsure, again, strict=True):
                found[k] = part
        answer = joined(found, n_close)
        self._finds_violations = answer.violation > 0.0
        return answer

    def all_slacks(self, coef: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Go through all pairs once: ranges of pairs, and their slacks."""
        asked, start = self.asked(coef, sizes=False), 0
        for slack in self._pieces.map(_slacks_of, asked, jobs=self.jobs):
            yield slice(start, start + len(slack)), slack
            start += len(slack)

    @cached_property
    def _pieces(self) -> RowPieces:
        """The blocks that a pass is cut into; they live where they are worked on."""
        n = min(_MANY_PIECES, self.n_pairs // (self._piece_times * _FEW_PAIRS))
        n = max(n, -(-self.n_pairs // (self._piece_times * _PIECE_PAIRS)))
        states = list(self.state_blocks(-(-self.n_pairs // n)))
        return RowPieces([self.block(some) for some in states], [some.start for some in states])

    def seeds(self, weights: FloatArray | None) -> IntArray:
        whole = max(_WHOLE_PAIRS, _WHOLE_PER_FUNCTION * self._n_basis)
        if self.n_pairs <= whole or self._sparse:
            return np.arange(self.n_pairs)
        n, share = len(self._points), min(64, 2 * self._n_basis + 16)
        chosen = [np.linspace(0, n - 1, share).astype(np.int64)]
        if weights is not None:
            quantiles = np.linspace(0.0, 1.0, share, endpoint=False) + 0.5 / share
            chosen.append(np.minimum(np.searchsorted(np.cumsum(weights), quantiles), n - 1))
        states = self._telling(np.unique(np.concatenate(chosen)))
        starts, counts = self.pair_start[states], np.diff(self.pair_start)[states]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.asarray(np.repeat(starts, counts) + offsets, dtype=np.int64)

    def _telling(self, states: IntArray) -> IntArray:
        """Add states until the functions are as independent on them as on all states.

        Evenly spaced states of a grid may all lie in a few of its hyperplanes.
        """
        seen = np.asarray(self.features(states))
        if len(conditioning.independent_columns(seen)) == self._n_basis:
            return states
        factor = self.triangle(None)
        inner = conditioning.orthonormal(factor, conditioning.independent_columns(factor))
        for _ in range(_MOST_ADDITIONS):
            seen = inner.rows(np.asarray(self.features(states)))
            unseen = null_space(seen, rcond=tolerances.SPAN)
            if unseen.shape[1] == 0:
                break
            states = np.union1d(states, self._farthest(inner.coef(unseen)))
        return states

    def _farthest(self, directions: FloatArray) -> IntArray:
        """Return for each column of coefficients (K, m) the state where its value is largest."""
        best, place = np.full(directions.shape[1], -1.0), np.zeros(directions.shape[1], np.int64)
        for states, block in self._feature_blocks():
            size = np.abs(np.asarray(block @ directions))
            higher = size.max(axis=0) > best
            place[higher] = states.start + size.argmax(axis=0)[higher]
            best = np.maximum(best, size.max(axis=0))
        return place

    def triangle(self, weights: FloatArray | None) -> FloatArray:
        return self._even_triangle if weights is None else self._triangle(weights)

    @cached_property
    def _even_triangle(self) -> FloatArray:
        return self._triangle(None)

    def _triangle(self, weights: FloatArray | None) -> FloatArray:
        def weighted() -> Iterator[FloatArray]:
            for states, block in self._feature_blocks():
                if weights is None:
                    yield np.asarray(block) / np.sqrt(len(self._points))
                else:
                    mass = np.sqrt(weights[states])
                    used = mass > 0.0
                    if used.any():
                        yield np.asarray(block)[used] * mass[used, None]

        return conditioning.triangle(weighted(), self._n_basis)

    def constant(self) -> FloatArray:
        return self._constant

    @cached_property
    def _constant(self) -> FloatArray:
        if self._sparse:
            ones = np.ones(self._n_basis)
            if np.allclose(self.values(ones), 1.0, rtol=0.0, atol=tolerances.ADDS_UP):
                return ones
            raise BasisError(_NO_CONSTANT)
        extended = conditioning.triangle(
            (
                np.column_stack([np.asarray(block), np.ones(len(block))])
                for _, block in self._feature_blocks()
            ),
            self._n_basis + 1,
        )
        factor, target = extended[:, :-1], extended[:, -1]
        kept = conditioning.independent_columns(factor)
        coef = conditioning.combination(factor, kept, target)
        if coef is None:
            raise BasisError(_NO_CONSTANT)
        return coef

    def _feature_blocks(self) -> Iterator[tuple[slice, Matrix]]:
        return self._features.blocks()

    def _kept_features(self) -> FloatArray:
        """Return the features of all states, computed block by block: bases take memory, too."""
        kept = np.empty((len(self._points), self._n_basis))
        for states, block in self._feature_blocks():
            kept[states] = block
        return kept

    def state_blocks(self, n_pairs: int | None = None) -> Iterator[slice]:
        """Cut the states into ranges with about this number of pairs each."""
        per_state = max(1, self.n_pairs // len(self._points))
        size = max(1, (n_pairs or _BLOCK_PAIRS) // per_state)
        for start in range(0, len(self._points), size):
            yield slice(start, min(start + size, len(self._points)))


_NO_CONSTANT = (
    "the constant function is not in the span of the basis, and without it the program may have no "
    "solution: add a column of ones"
)


def is_kept(n_entries: int) -> bool:
    """Return whether a matrix with this many entries is kept, not computed in every pass."""
    return n_entries <= _CACHED_ENTRIES


def _slacks_of(block: ListedBlock, asked: Any) -> FloatArray:
    return block.all_slacks(asked)


def _terms_of(block: ListedBlock, asked: Any) -> FloatArray:
    starts = block.pair_starts()
    terms = block.terms(asked, slice(0, len(starts) - 1))
    assert terms is not None
    return terms if len(terms) == starts[-1] else np.repeat(terms, np.diff(starts))
