"""Row sources: given coefficients, which Bellman rows are violated?

A Bellman row of the pair (x, a) is phi(x) - discount E[phi(next)] with the pair's cost on the
right. A row source is a settings object (`AllRows()`); `on(model, basis)` binds it. The bound
source answers one question in one streamed pass (`separate`) and hands out rows on demand; the
matrix of all rows is never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from bellweight import conditioning
from bellweight.basis import Basis
from bellweight.checks import FloatArray, IntArray, Matrix
from bellweight.models import TabularModel
from bellweight.status import BasisError

_BLOCK_PAIRS = 1 << 16
_BLOCK_STATES = 1 << 15
_CACHED_ENTRIES = 1 << 25  # features are kept when they take at most 256 MB
_WHOLE_PAIRS = 4_000  # programs up to this size are loaded whole
_MOST_CLOSE = 8  # times the number taken per block
_NEAR = 1e-9  # rows this close to tight are looked at again with full precision


@dataclass(frozen=True, eq=False)
class Separation:
    """The answer of one pass over the rows at given coefficients.

    `close` holds the keys of the rows with the smallest relative slack, violated ones first; `near`
    those of all rows that may be tight; `violation` the largest violation in original units, and
    `relative_violation` the largest in units of each row's own scale.
    """

    close: IntArray
    near: IntArray
    violation: float
    relative_violation: float


class BellmanRows(Protocol):
    """What the solver loop needs of a bound row source, whose rows are known by keys."""

    basis: Basis
    names: tuple[str, ...]
    discount: float

    @property
    def n_basis(self) -> int: ...

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        """Scan all rows: with `homogeneous`, against zero costs."""
        ...

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        """Return the rows (n, K) and costs (n,) of some keys."""
        ...

    def seeds(self, weights: FloatArray | None) -> IntArray:
        """Return keys to start the program with."""
        ...

    def triangle(self, weights: FloatArray | None) -> FloatArray:
        """Return the triangular factor of the features under weights, uniform by default."""
        ...


@dataclass(frozen=True)
class AllRows:
    """Every row of a model whose states can be enumerated."""

    def on(self, model: TabularModel, basis: Basis) -> TabularRows:
        """Bind to a model and a basis."""
        return TabularRows(model, basis)


class TabularRows:
    """All rows of a tabular model; a row's key is its pair."""

    def __init__(self, model: TabularModel, basis: Basis) -> None:
        self.model = model
        self.basis = basis.on(model.states)
        self.discount = model.discount
        first = self.basis(model.states[:1])
        self._sparse = sparse.issparse(first)
        self._n_basis = int(first.shape[1])
        self._cache: Matrix | None = None
        if model.n_states * self._n_basis <= _CACHED_ENTRIES or self._sparse:
            self._cache = self._checked_features(model.states)
        self.names = self.basis.names(model.states.shape[1])
        self.lower, self.upper = self.basis.bounds(self._n_basis)

    @property
    def n_basis(self) -> int:
        return self._n_basis

    def features(self, states: IntArray | slice) -> Matrix:
        """Return the features (n, K) of some states."""
        if self._cache is not None:
            return self._cache[states]
        return self._checked_features(self.model.states[states])

    def values(self, coef: FloatArray) -> FloatArray:
        """Return the approximate value (S,) of every state."""
        return np.concatenate([np.asarray(block @ coef) for _, block in self._feature_blocks()])

    def moments(self, weights: FloatArray) -> FloatArray:
        """Return Phi' weights, shape (K,)."""
        total = np.zeros(self._n_basis)
        for states, block in self._feature_blocks():
            total += np.asarray(block.T @ weights[states])
        return total

    def slacks(self, values: FloatArray, pairs: slice) -> FloatArray:
        """Return the Bellman residuals cost + discount P v - v of a range of pairs."""
        model = self.model
        following = _row_block(model.transition, pairs) @ values
        return model.cost[pairs] + model.discount * following - values[model.pair_state[pairs]]

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        model, values = self.model, self.values(coef)
        picks = _Picks(self._n_basis)
        for start in range(0, model.n_pairs, _BLOCK_PAIRS):
            pairs = slice(start, min(start + _BLOCK_PAIRS, model.n_pairs))
            cost = np.zeros(pairs.stop - start) if homogeneous else model.cost[pairs]
            slack = self.slacks(values, pairs) + (cost - model.cost[pairs])
            level = (1.0 - model.discount) * np.abs(values[model.pair_state[pairs]])
            size = np.abs(cost) + level + unit
            picks.add(start, slack, size, _NEAR * (size + level / (1.0 - model.discount)))
        return picks.answer()

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
            return sparse.csr_array(rows), model.cost[keys]
        return np.asarray(rows), model.cost[keys]

    def seeds(self, weights: FloatArray | None) -> IntArray:
        model = self.model
        if model.n_pairs <= _WHOLE_PAIRS or self._sparse:
            return np.arange(model.n_pairs)
        n, share = model.n_states, min(64, 2 * self._n_basis + 16)
        chosen = [np.linspace(0, n - 1, share).astype(np.int64)]
        if weights is not None:
            quantiles = np.linspace(0.0, 1.0, share, endpoint=False) + 0.5 / share
            chosen.append(np.minimum(np.searchsorted(np.cumsum(weights), quantiles), n - 1))
        return pairs_of(model, np.unique(np.concatenate(chosen)))

    def triangle(self, weights: FloatArray | None) -> FloatArray:
        def weighted() -> Iterator[FloatArray]:
            for states, block in self._feature_blocks():
                if weights is None:
                    yield np.asarray(block) / np.sqrt(self.model.n_states)
                else:
                    mass = np.sqrt(weights[states])
                    used = mass > 0.0
                    if used.any():
                        yield np.asarray(block)[used] * mass[used, None]

        return conditioning.triangle(weighted(), self._n_basis)

    def constant(self) -> FloatArray:
        """Return coefficients (K,) of the constant function one."""
        if self._sparse:
            ones = np.ones(self._n_basis)
            if np.allclose(self.values(ones), 1.0, rtol=0.0, atol=1e-12):
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

    @property
    def is_sparse(self) -> bool:
        """Whether the features are sparse, in which case they are used as they are."""
        return self._sparse

    def _feature_blocks(self) -> Iterator[tuple[slice, Matrix]]:
        for start in range(0, self.model.n_states, _BLOCK_STATES):
            states = slice(start, min(start + _BLOCK_STATES, self.model.n_states))
            yield states, self.features(states)

    def _checked_features(self, states: FloatArray) -> Matrix:
        features = self.basis(states)
        data = features.data if sparse.issparse(features) else features
        if not np.isfinite(data).all():
            bad = np.argwhere(~np.isfinite(features.toarray() if self._sparse else features))[0]
            raise BasisError(
                f"basis function {bad[1]} is not finite at state {states[bad[0]].tolist()}: "
                "change the function there"
            )
        return features


_NO_CONSTANT = (
    "the constant function is not in the span of the basis, and without it the program may have no "
    "solution: add a column of ones"
)


class _Picks:
    """Collects, over the blocks of a pass, the rows worth adding to the program."""

    def __init__(self, n_basis: int) -> None:
        self._per_block = 8 + n_basis
        self._near: list[IntArray] = []
        self._close: list[tuple[IntArray, FloatArray]] = []
        self._violation = 0.0
        self._relative = 0.0

    def add(self, start: int, slack: FloatArray, size: FloatArray, near: FloatArray) -> None:
        """Take in a block of consecutive rows: their slacks, tolerance scales, nearness bounds."""
        relative = slack / size
        self._violation = max(self._violation, -float(slack.min()))
        self._relative = max(self._relative, -float(relative.min()))
        self._near.append(start + np.flatnonzero(slack <= near))
        lowest = _smallest(relative, self._per_block)
        self._close.append((start + lowest, relative[lowest]))

    def answer(self) -> Separation:
        return Separation(
            close=_merged(self._close)[: _MOST_CLOSE * self._per_block],
            near=np.concatenate(self._near),
            violation=self._violation,
            relative_violation=self._relative,
        )


def pairs_of(model: TabularModel, states: IntArray) -> IntArray:
    """Return all pairs of some states, in order."""
    starts, counts = model.pair_start[states], np.diff(model.pair_start)[states]
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(np.repeat(starts, counts) + offsets, dtype=np.int64)


def _row_block(matrix: sparse.csr_array, rows: slice) -> sparse.csr_array:
    """Return consecutive rows of a CSR matrix as a view on its data."""
    pointer = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(pointer[0], pointer[-1])
    shape = (rows.stop - rows.start, matrix.shape[1])
    parts = (matrix.data[entries], matrix.indices[entries], pointer - pointer[0])
    return sparse.csr_array(parts, shape=shape)


def _smallest(values: FloatArray, n: int) -> IntArray:
    if len(values) <= n:
        return np.arange(len(values))
    return np.argpartition(values, n)[:n]


def _merged(parts: list[tuple[IntArray, FloatArray]]) -> IntArray:
    """Return the keys of all parts, smallest measure first."""
    keys = np.concatenate([keys for keys, _ in parts])
    order = np.argsort(np.concatenate([measure for _, measure in parts]), kind="stable")
    return np.asarray(keys[order], dtype=np.int64)
