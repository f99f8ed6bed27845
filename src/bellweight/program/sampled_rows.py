"""The rows of chosen states of a model that is given by functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.common.short import Short
from bellweight.common.status import ModelError
from bellweight.models.function_model import FunctionModel
from bellweight.models.kernels.layouts import Scale
from bellweight.models.kernels.tables import n_distinct
from bellweight.models.loops import Closest, Loops, Value
from bellweight.program import conditioning
from bellweight.program.listed_rows import ListedRows, is_kept
from bellweight.program.row_blocks import ListedBlock, states_scanned


@dataclass(frozen=True, eq=False, repr=False)
class SampledRows(Short):
    """The rows of chosen states of an event or step model, wherever the states come from.

    Args:
        states: distinct vectors (n, d); `sample_states` draws them.
        origin: where they come from, in words for people.

    Examples:
        >>> bw.SampledRows(np.array([[0, 0], [1, 0], [0, 1]]))
        SampledRows(states=[0, 0, 1, 0, 0, 1])
    """

    states: Any
    origin: str = ""

    def on(self, model: FunctionModel, basis: Basis) -> EventRows:
        """Bind to a model and a basis."""
        states = model.check_states(self.states)
        repeated = len(states) - n_distinct(states)
        if repeated:
            raise ModelError(
                f"states has {repeated} repetitions among {len(states)}, "
                "expected distinct states: use np.unique(states, axis=0)"
            )
        return EventRows(model, basis, states, self.origin)


_PLAIN_NUMBERS = 4_000_000  # features of successors at a time, where nothing is compiled


class Question(NamedTuple):
    """Coefficients (K,) of the basis, and their value function as compiled loops take it."""

    coef: FloatArray
    value: Value

    def sizes(self, states: Any, features: Callable[[], FloatArray]) -> FloatArray:
        """Return |phi(x)|' |coef| (n,) of states (n, d); features are needed unless quadratic."""
        known = self.value.quadratic
        if known is None:
            return np.asarray(np.abs(features()) @ np.abs(self.coef))
        x = np.abs(states.astype(np.float64))
        slope = x @ np.abs(known.square)
        slope += np.abs(known.linear)
        return np.asarray(abs(known.constant) + np.einsum("ni,ni->n", slope, x))


def closest_of(
    loops: Loops, states: Any, first: int, starts: IntArray, asked: Question, scale: Scale,
    n_close: int,
) -> list[Closest]:  # fmt: skip
    """Return what the scans of some states find; their rows begin at first + starts (n + 1,)."""
    span = states_scanned(starts)
    return [loops.closest(states, first + starts, asked.value, scale, n_close, span)]


@dataclass(frozen=True, eq=False)
class RowMaker:
    """What computes rows of a model: its loops and the basis as they take it.

    With `by_arrays` nothing is compiled, and the basis is computed in whole arrays.
    """

    loops: Loops
    basis: Basis
    compiled: CompiledBasis
    by_arrays: bool

    def __call__(self, states: Any, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows (n, K) and costs (n,) of some pairs."""
        if self.by_arrays:
            return self._by_arrays(states, actions)
        rows, cost = self.loops.bellman_rows(states, actions, self.compiled.functions)
        return self.compiled.of_basis(rows), cost

    def _by_arrays(self, states: Any, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same; features of all successors together take a small part of the time."""
        loops, n_basis = self.loops, len(self.compiled.columns)
        rows, cost = np.zeros((len(states), n_basis)), np.zeros(len(states))
        size = max(1, _PLAIN_NUMBERS // (loops.n_events * n_basis))
        for first in range(0, len(states), size):
            part = slice(first, first + size)
            here = states[part]
            cost[part], chances, following = loops.expand(here, actions[part])
            points = following.reshape(-1, loops.dimension).astype(np.float64)
            after = np.asarray(self.basis(points)).reshape(*chances.shape, n_basis)
            ahead = np.einsum("ne,nek->nk", chances, after)
            idle = 1.0 - chances.sum(axis=1, keepdims=True)
            now = np.asarray(self.basis(here.astype(np.float64)))
            rows[part] = now - loops.discount * (ahead + idle * now)
        return rows, cost


def places_of(
    keys: IntArray, starts: IntArray, mask: BoolArray | None, n_actions: int
) -> tuple[IntArray, IntArray]:
    """Return the places of the states of some rows and their actions (n,); `mask` as below."""
    keys = np.asarray(keys, dtype=np.int64)
    if mask is None:
        numbers, actions = np.divmod(keys, n_actions)
        return numbers, actions
    numbers = np.searchsorted(starts, keys, side="right") - 1
    # The action is the one that is admissible for the k-th time.
    rank = keys - starts[numbers]
    return numbers, np.argmax(np.cumsum(mask[numbers], axis=1) > rank[:, None], axis=1)


@dataclass(frozen=True, eq=False)
class SampledBlock(ListedBlock):
    """Rows of sampled states (n, d), and what of their features, rows and costs is kept.

    `mask` (n, A) says which actions are admissible, None where all are.
    """

    first: int
    starts: IntArray
    discount: float
    states: Any
    mask: BoolArray | None
    loops: Loops
    basis: Basis
    features: FloatArray | None
    matrix: FloatArray | None
    cost: FloatArray | None

    def pair_starts(self) -> IntArray:
        return self.starts

    def slacks(self, asked: Question, states: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        if self.matrix is not None and self.cost is not None:
            pairs = slice(int(self.starts[states.start]), int(self.starts[states.stop]))
            slack = self.cost[pairs] - self.matrix[pairs] @ asked.coef
            return slack, self.cost[pairs], self._features(states) @ asked.coef
        slack, cost, value = self.loops.slacks(
            self.states[states].astype(self.loops.state_type), asked.value
        )
        if self.mask is None:
            return slack.ravel(), cost.ravel(), value
        return slack[self.mask[states]], cost[self.mask[states]], value

    def closest(self, asked: Question, scale: Scale, n_close: int) -> Any:
        if self.matrix is not None:
            return super().closest(asked, scale, n_close)
        return closest_of(self.loops, self.states, self.first, self.starts, asked, scale, n_close)

    def terms(self, asked: Question, states: slice) -> FloatArray:
        # Where a state leads is not stored; one step from a state its terms are of the same size.
        sizes = asked.sizes(self.states[states], partial(self._features, states))
        return (1.0 + self.discount) * sizes

    def rows(self, keys: IntArray, maker: RowMaker) -> FloatArray:
        if self.matrix is not None:
            return self.matrix[keys]
        numbers, actions = places_of(keys, self.starts, self.mask, self.loops.n_actions)
        return maker(self.states[numbers].astype(self.loops.state_type), actions)[0]

    def _features(self, states: slice) -> FloatArray:
        if self.features is not None:
            return self.features[states]
        return np.asarray(self.basis(self.states[states].astype(np.float64)))


class EventRows(ListedRows):
    """Rows of sampled states of an event or step model.

    The matrix of all rows is kept while it takes at most 256 MB; beyond that slacks are computed
    from the model in every pass and need memory only for the states, in the smallest numbers that
    hold them, and one block.
    """

    _piece_times = 4  # compiled code goes through a piece in one call, which costs Python something

    def __init__(self, model: FunctionModel, basis: Basis, states: Any, origin: str = "") -> None:
        self.states = _smallest(states)
        super().__init__(basis, self.states, model.discount)
        self.model = model
        self.origin = origin
        mask = model.admissible_mask(states)
        counts = mask.sum(axis=1)
        self.pair_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._mask = None if counts.min() == model.n_actions else mask
        self._compiled = CompiledBasis.of(self.basis, model.dimension, model.value_counts)
        self._loops = model.loops_with(written=self._compiled.written)
        self._matrix: FloatArray | None = None
        if is_kept(self.n_pairs * self._n_basis):
            self._matrix = np.empty((self.n_pairs, self._n_basis))
            self.pair_cost = np.empty(self.n_pairs)
            for pairs in self._pair_blocks():
                self._matrix[pairs], self.pair_cost[pairs] = self._computed(pairs, want_rows=True)

    @property
    def n_pairs(self) -> int:
        return int(self.pair_start[-1])

    @cached_property
    def pair_cost(self) -> FloatArray:  # type: ignore[override]
        """The costs (N,) of all pairs; passes do without."""
        parts = [self._computed(pairs, want_rows=False)[1] for pairs in self._pair_blocks()]
        return np.concatenate(parts)

    @property
    def n_bytes(self) -> int:
        """Memory held by the states and, where kept, features, rows and costs."""
        kept = [self.states, self.pair_start, self._mask, self._cache, self._matrix]
        kept.append(self.__dict__.get("pair_cost"))
        return int(sum(array.nbytes for array in kept if array is not None))

    def block(self, states: slice) -> SampledBlock:
        pairs = slice(self.pair_start[states.start], self.pair_start[states.stop])
        starts = self.pair_start[states.start : states.stop + 1] - pairs.start
        return SampledBlock(
            int(pairs.start), starts, self.discount, self.states[states],
            None if self._mask is None else self._mask[states], self._loops, self.basis,
            None if self._cache is None else np.asarray(self._cache[states]),
            None if self._matrix is None else self._matrix[pairs],
            None if self._matrix is None else self.pair_cost[pairs],
        )  # fmt: skip

    def asked(self, coef: FloatArray, *, sizes: bool) -> Question:
        return Question(coef, self._compiled.value(coef, self.model.jumps))

    @property
    def _row_maker(self) -> RowMaker:
        by_arrays = self.model.value_counts is None and not self.model.compiled
        return RowMaker(self._loops, self.basis, self._compiled, by_arrays)

    def rows_at(self, states: Any, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows (n, K) and costs (n,) of any pairs, in the sample or not."""
        rows, cost = self._loops.bellman_rows(states, actions, self._compiled.functions)
        return self._compiled.of_basis(rows), cost

    def slacks_at(self, states: Any, coef: FloatArray) -> FloatArray:
        """Return the slacks (n, A) of any states, infinite where an action is inadmissible."""
        mask = self.model.admissible_mask(states)
        number, action = np.nonzero(mask)
        matrix, cost = self.rows_at(states[number], action)
        slack = np.full(mask.shape, np.inf)
        slack[mask] = cost - matrix @ coef
        return slack

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        if self._matrix is not None:
            return self._matrix[keys], self.pair_cost[keys]
        return self._computed(keys, want_rows=True)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        numbers, actions = places_of(keys, self.pair_start, self._mask, self.model.n_actions)
        return self.states[numbers].astype(self._loops.state_type), actions

    def span(self) -> FloatArray:
        factor = self.triangle(None)
        alike = np.ones(self._n_basis, dtype=np.bool_)
        alike[conditioning.independent_columns(factor)] = False
        if not alike.any():
            return factor
        # Functions that are alike in a few states need not be alike where these states lead to.
        wider = conditioning.triangle(chain([factor], self._row_blocks()), self._n_basis)
        told = [k for k in conditioning.independent_columns(wider) if alike[k]]
        if told:
            self.untold = (
                f"{len(self.states)} sampled states do not tell the {self._n_basis} basis "
                f"functions apart, the first that looks like earlier ones is {told[0]} "
                f"({self.names[told[0]]})"
            )
        return wider

    def _row_blocks(self) -> Iterator[FloatArray]:
        for pairs in self._pair_blocks():
            yield np.asarray(self.rows(pairs)[0]) / np.sqrt(self.n_pairs)

    def _pair_blocks(self) -> Iterator[IntArray]:
        for block in self.state_blocks():
            yield np.arange(self.pair_start[block.start], self.pair_start[block.stop])

    def _computed(self, keys: IntArray, *, want_rows: bool) -> tuple[FloatArray, FloatArray]:
        states, actions = self.support_of(keys)
        if want_rows:
            return self._row_maker(states, actions)
        return self._loops.bellman_rows(states, actions, None)


def _smallest(states: Any) -> Any:
    """Return whole numbers in the smallest type that holds them, others as they are."""
    if states.dtype.kind not in "iu":
        return states
    least, largest = int(states.min()), int(states.max())
    # Where there are negative ones, the type needs a sign, and room for the largest beside it.
    end = largest if least >= 0 else min(least, -1 - largest)
    return states.astype(np.min_scalar_type(end))
