"""Row sources: given coefficients, which Bellman rows are violated?

A Bellman row of the pair (x, a) is phi(x) - discount E[phi(next)] with the pair's cost on the
right. A row source is a settings object (`AllRows()`, `SampledRows(states)`); `on(model, basis)`
binds it. The bound source answers one question in one streamed pass (`separate`) and hands out rows
on demand; the matrix of all rows is stored only where it is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import null_space

from bellweight.basis import Basis, Indicator
from bellweight.basis.compiled import CompiledBasis
from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
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
from bellweight.common.status import BasisError, ModelError, SolverError, Status
from bellweight.models import TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.program import conditioning

_BLOCK_PAIRS = 1 << 16
_BLOCK_STATES = 1 << 15
_CACHED_ENTRIES = 1 << 25  # features are kept when they take at most 256 MB
_WHOLE_PAIRS = 4_000  # programs up to this size are loaded whole
_WHOLE_PER_FUNCTION = 100  # and so are programs with up to this many rows to a basis function
_MOST_ADDITIONS = 50  # rounds of adding states to the first ones; two are the rule
MOST_CLOSE = 8  # times the number taken per block
NEAR = 1e-9  # rows this close to tight are looked at again with full precision


@dataclass(frozen=True, eq=False)
class Separation:
    """The answer of one pass over the rows at given coefficients.

    `close` holds the keys of the rows with the smallest relative slack, violated ones first, and
    `close_size` the scale that each is relative to; `near` the keys of all rows that may be tight;
    `violation` is the largest violation in original units, or a bound on it when the search for it
    was cut short (`proven` is off).
    """

    close: IntArray
    close_size: FloatArray
    near: IntArray
    violation: float
    proven: bool = True


class RowSource(ABC):
    """What a program needs to know about its rows."""

    discount: float
    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray

    @property
    @abstractmethod
    def n_basis(self) -> int:
        """Number of basis functions, K."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of rows there are, or that were found so far."""

    @property
    @abstractmethod
    def is_sparse(self) -> bool:
        """Whether the features are sparse, in which case they are used as they are."""

    @abstractmethod
    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        """Return the rows (n, K) and costs (n,) of some pairs."""

    def exact_rows(self, keys: IntArray) -> Doubled:
        """Return the rows (n, K) of some pairs to twice the digits, where that is known."""
        rows = self.rows(keys)[0]
        return doubled(rows.toarray() if sparse.issparse(rows) else np.asarray(rows))

    def exact_moments(self, weights: FloatArray) -> Doubled | None:
        """Return Phi' weights (K,) to twice the digits, or None where weights are no vector."""
        return None

    @property
    def even_moments(self) -> Doubled | None:
        """The moments (K,) of even weights on all states, or None where states are not listed."""
        return None

    def violated(self, coef: Doubled, unit: float, *, homogeneous: bool = False) -> IntArray:
        """Return the keys of rows that coefficients with twice the digits violate most, or may."""
        return self.separate(coef.high, unit, homogeneous=homogeneous).close

    @abstractmethod
    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        """Find the rows that coefficients violate most; with `homogeneous`, against zero costs."""

    @abstractmethod
    def seeds(self, weights: FloatArray | None) -> IntArray:
        """Return keys to start the program with."""

    @abstractmethod
    def triangle(self, weights: FloatArray | None) -> FloatArray:
        """Return the triangular factor of the features under weights, even ones by default."""

    def span(self) -> FloatArray:
        """Return the triangular factor that decides which functions depend on earlier ones."""
        return self.triangle(None)

    @abstractmethod
    def constant(self) -> FloatArray:
        """Return coefficients (K,) of the constant function one."""

    @abstractmethod
    def support_of(self, keys: IntArray) -> tuple[Any, Any]:
        """Return the states, indices or vectors, and the actions of some pairs."""

    def are_pairs(self, keys: IntArray) -> BoolArray:
        """Return which rows are those of pairs: all, where none of another kind stand beside."""
        return np.ones(len(keys), dtype=np.bool_)


class BellmanRows(RowSource):
    """Rows of a list of states; a row's key is its place in the list of pairs.

    Pairs are sorted by state: those of state number x are `pair_start[x]:pair_start[x + 1]`. A
    subclass says what the slacks and the rows of some pairs are.
    """

    def __init__(self, basis: Basis, states: FloatArray, discount: float) -> None:
        self.basis = basis.on(states)
        self.discount = discount
        self._points = states
        first = self.basis(states[:1])
        self._sparse = sparse.issparse(first)
        self._n_basis = int(first.shape[1])
        self._cache: Matrix | None = None
        if self._is_small or self._sparse:
            self._cache = self._checked_features(states)
        if self._sparse and not isinstance(self.basis, Indicator) and self._is_small:
            # Only of an Indicator is it known that its functions are independent and add up to one.
            self._cache, self._sparse = self.features(slice(None)).toarray(), False
        self.names = self.basis.names(states.shape[1])
        self.lower, self.upper = self.basis.bounds(self._n_basis)

    pair_start: IntArray
    pair_cost: FloatArray

    @abstractmethod
    def slacks(self, coef: FloatArray, states: slice) -> tuple[FloatArray, FloatArray]:
        """Return slacks (n,) of all pairs of a range of states, and the states' values."""

    @abstractmethod
    def terms(self, coef: FloatArray, states: slice) -> FloatArray:
        """Return the size (n,) of the terms of rows coef, for all pairs of a range of states.

        That is |phi(x)|' |coef| + discount E|phi(next)|' |coef|: what rounding is relative to.
        """

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
        return len(self._points) * self._n_basis <= _CACHED_ENTRIES

    def features(self, states: IntArray | slice) -> Matrix:
        """Return the features (n, K) of some states."""
        if self._cache is not None:
            return self._cache[states]
        return self._checked_features(self._points[states])

    def values(self, coef: FloatArray) -> FloatArray:
        """Return the approximate value of every state."""
        return np.concatenate([np.asarray(block @ coef) for _, block in self._feature_blocks()])

    @property
    def n_terms(self) -> int:
        """The most functions that are not zero in a state."""
        if not self._sparse:
            return self._n_basis
        return max(int(np.diff(block.indptr).max()) for _, block in self._feature_blocks())

    def value_terms(self, coef: FloatArray) -> FloatArray:
        """Return the size (S,) of the terms that the value of each state is made of."""
        size = np.abs(coef)
        return np.concatenate(
            [np.asarray(abs(block) @ size) for _, block in self._feature_blocks()]
        )

    def moments(self, weights: FloatArray) -> FloatArray:
        """Return Phi' weights, shape (K,)."""
        total = np.zeros(self._n_basis)
        for states, block in self._feature_blocks():
            total += np.asarray(block.T @ weights[states])
        return total

    @cached_property
    def even_moments(self) -> Doubled:
        weights = np.full(len(self._points), 1.0 / len(self._points))
        exact = self.exact_moments(weights)
        return doubled(self.moments(weights)) if exact is None else exact

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        picks = _Picks(self._n_basis)
        for states in self.state_blocks():
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            counts = np.diff(self.pair_start[states.start : states.stop + 1])
            slack, values = self.slacks(coef, states)
            cost = self.pair_cost[pairs]
            if homogeneous:
                slack, cost = slack - cost, np.zeros(len(cost))
            level = np.repeat((1.0 - self.discount) * np.abs(values), counts)
            size = np.abs(cost) + level + unit
            violated = slack < -tolerances.FEASIBILITY * size
            if violated.any():
                # Where terms cancel, a violation of the size of their rounding error is none.
                share = tolerances.ROUNDING / tolerances.FEASIBILITY
                size[violated] += share * self.terms(coef, states)[violated]
            picks.add(pairs.start, slack, size, NEAR * (size + level / (1.0 - self.discount)))
        return picks.answer()

    def all_slacks(self, coef: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Go through all pairs once: ranges of pairs, and their slacks."""
        for states in self.state_blocks():
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            yield pairs, self.slacks(coef, states)[0]

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
        """Add states until they tell apart all functions that any states tell apart.

        Evenly spaced states of a grid may all lie in a few of its hyperplanes.
        """
        seen = np.asarray(self.features(states))
        if len(conditioning.independent_columns(seen)) == self._n_basis:
            return states
        factor = self.triangle(None)
        frame = conditioning.orthonormal(factor, conditioning.independent_columns(factor))
        for _ in range(_MOST_ADDITIONS):
            unseen = null_space(frame.rows(np.asarray(self.features(states))), rcond=1e-9)
            if unseen.shape[1] == 0:
                break
            states = np.union1d(states, self._farthest(frame.coef(unseen)))
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

    def _feature_blocks(self) -> Iterator[tuple[slice, Matrix]]:
        for start in range(0, len(self._points), _BLOCK_STATES):
            states = slice(start, min(start + _BLOCK_STATES, len(self._points)))
            yield states, self.features(states)

    def state_blocks(self) -> Iterator[slice]:
        """Cut the states into ranges with about the same number of pairs each."""
        per_state = max(1, self.n_pairs // len(self._points))
        size = max(1, _BLOCK_PAIRS // per_state)
        for start in range(0, len(self._points), size):
            yield slice(start, min(start + size, len(self._points)))

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


@dataclass(frozen=True)
class AllRows:
    """Every row of a model whose states can be enumerated."""

    def on(self, model: TabularModel, basis: Basis) -> TabularRows:
        """Bind to a model and a basis."""
        return TabularRows(model, basis)


class TabularRows(BellmanRows):
    """All rows of a tabular model; a row's key is its pair."""

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
        picks = _Picks(self._n_basis)
        for states in self.state_blocks():
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            block = _row_block(model.transition, pairs)
            chances = multiply(doubled(block.data), doubled(np.full(1, self.discount)))
            ahead = total_by_group(multiply(chances, values.at(block.indices)), block.indptr)
            gained = subtract(ahead, values.at(model.pair_state[pairs]))
            cost = np.zeros(len(gained.high)) if homogeneous else self.pair_cost[pairs]
            slack = add(doubled(cost), gained).high
            level = (1.0 - self.discount) * np.abs(values.high[model.pair_state[pairs]])
            picks.add(pairs.start, slack, np.abs(cost) + level + unit, np.zeros(len(slack)))
        return picks.answer().close

    def _dense_features(self, states: IntArray | slice) -> FloatArray:
        features = self.features(states)
        return np.asarray(features.toarray() if sparse.issparse(features) else features)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        return self.model.pair_state[keys], self.model.pair_action[keys]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The rows of chosen states of an event model, wherever the states come from.

    `states` (n, d) are distinct whole-number vectors; `sample_states` draws them.
    """

    states: Any

    def on(self, model: FunctionModel, basis: Basis) -> EventRows:
        """Bind to a model and a basis."""
        return EventRows(model, basis, model.check_states(self.states))


class EventRows(BellmanRows):
    """Rows of sampled states of an event model.

    The matrix of all rows is kept while it takes at most 256 MB; beyond that slacks are computed
    from the model in every pass and need memory only for the states, the costs and one block.
    """

    def __init__(self, model: FunctionModel, basis: Basis, states: IntArray) -> None:
        distinct = np.unique(states, axis=0)
        if len(distinct) < len(states):
            raise ModelError(
                f"states has {len(states) - len(distinct)} repetitions among {len(states)}, "
                "expected distinct states: use np.unique(states, axis=0)"
            )
        super().__init__(basis, states.astype(np.float64), model.discount)
        self.model = model
        self.states = states
        mask = model.admissible_mask(states)
        self._mask = mask
        self._pair_state, self._pair_action = np.nonzero(mask)
        self.pair_start = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
        self._compiled = CompiledBasis.of(self.basis, model.dimension)
        self._loops = model.loops_with(written=self._compiled.written)
        self.pair_cost = np.zeros(len(self._pair_state))
        self._matrix: FloatArray | None = None
        if len(self._pair_state) * self._n_basis <= _CACHED_ENTRIES:
            self._matrix = np.zeros((len(self._pair_state), self._n_basis))
        for block in self.state_blocks():
            pairs = np.arange(self.pair_start[block.start], self.pair_start[block.stop])
            rows, cost = self._computed(pairs, want_rows=self._matrix is not None)
            self.pair_cost[pairs] = cost
            if self._matrix is not None:
                self._matrix[pairs] = rows

    @property
    def n_bytes(self) -> int:
        """Memory held by the states, the costs and, where kept, features and rows."""
        kept = [self._points, self.states, self.pair_cost, self._pair_state, self._pair_action]
        kept += [array for array in (self._cache, self._matrix) if array is not None]
        return int(sum(array.nbytes for array in kept))

    def slacks(self, coef: FloatArray, states: slice) -> tuple[FloatArray, FloatArray]:
        values = np.asarray(self.features(states) @ coef)
        if self._matrix is not None:
            pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
            return self.pair_cost[pairs] - self._matrix[pairs] @ coef, values
        block = self.states[states]
        slack = self._loops.slacks(block, self._compiled.value(coef, self.model.jumps))
        return slack[self._mask[states]], values

    def terms(self, coef: FloatArray, states: slice) -> FloatArray:
        # Where a state leads is not stored; one step from a state its terms are of the same size.
        sizes = abs(self.features(states)) @ np.abs(coef)
        counts = np.diff(self.pair_start[states.start : states.stop + 1])
        return np.repeat((1.0 + self.discount) * np.asarray(sizes), counts)

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        if self._matrix is not None:
            return self._matrix[keys], self.pair_cost[keys]
        return self._computed(keys, want_rows=True)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        return self.states[self._pair_state[keys]], self._pair_action[keys]

    def span(self) -> FloatArray:
        factor = self.triangle(None)
        alike = np.ones(self._n_basis, dtype=np.bool_)
        alike[conditioning.independent_columns(factor)] = False
        if not alike.any():
            return factor
        # Functions that are alike in a few states need not be alike where these states lead to.
        wider = conditioning.triangle(chain([factor], self._row_blocks()), self._n_basis)
        free = np.isinf(self.lower) | np.isinf(self.upper)
        told = [k for k in conditioning.independent_columns(wider) if alike[k] and free[k]]
        if told:
            raise SolverError(
                Status.UNBOUNDED,
                f"{len(self.states)} sampled states do not tell the {self._n_basis} basis "
                f"functions apart, the first that looks like earlier ones is {told[0]} "
                f"({self.names[told[0]]})",
            )
        return wider

    def _row_blocks(self) -> Iterator[FloatArray]:
        for block in self.state_blocks():
            pairs = np.arange(self.pair_start[block.start], self.pair_start[block.stop])
            yield np.asarray(self.rows(pairs)[0]) / np.sqrt(self.n_pairs)

    def _computed(self, keys: IntArray, *, want_rows: bool) -> tuple[FloatArray, FloatArray]:
        functions = self._compiled.functions if want_rows else None
        rows, cost = self._loops.bellman_rows(*self.support_of(keys), functions)
        return self._compiled.of_basis(rows) if want_rows else rows, cost


_NO_CONSTANT = (
    "the constant function is not in the span of the basis, and without it the program may have no "
    "solution: add a column of ones"
)


class _Picks:
    """Collects, over the blocks of a pass, the rows worth adding to the program."""

    def __init__(self, n_basis: int) -> None:
        self._per_block = 8 + n_basis
        self._near: list[IntArray] = []
        self._close: list[IntArray] = []
        self._relative: list[FloatArray] = []
        self._size: list[FloatArray] = []
        self._violation = 0.0

    def add(self, start: int, slack: FloatArray, size: FloatArray, near: FloatArray) -> None:
        """Take in a block of consecutive rows: their slacks, tolerance scales, nearness bounds."""
        # A row without cost or value has no scale of its own: 0 / 0 must not hide other rows.
        size = np.where(size > 0.0, size, 1.0)
        relative = slack / size
        self._violation = max(self._violation, -float(slack.min()))
        self._near.append(start + np.flatnonzero(slack <= near))
        lowest = _smallest(relative, self._per_block)
        self._close.append(start + lowest)
        self._relative.append(relative[lowest])
        self._size.append(size[lowest])

    def answer(self) -> Separation:
        order = np.argsort(np.concatenate(self._relative), kind="stable")
        chosen = order[: MOST_CLOSE * self._per_block]
        return Separation(
            close=np.concatenate(self._close)[chosen].astype(np.int64),
            close_size=np.concatenate(self._size)[chosen],
            near=np.concatenate(self._near),
            violation=self._violation,
        )


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
