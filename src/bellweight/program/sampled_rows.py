"""The rows of chosen states of a model that is given by functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.short import Short
from bellweight.common.status import ModelError
from bellweight.models.function_model import FunctionModel
from bellweight.models.kernels.tables import n_distinct
from bellweight.program import conditioning
from bellweight.program.listed_rows import ListedRows, is_kept


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
        return EventRows(model, basis, model.check_states(self.states), self.origin)


_PLAIN_NUMBERS = 4_000_000  # features of successors at a time, where nothing is compiled


class EventRows(ListedRows):
    """Rows of sampled states of an event or step model.

    The matrix of all rows is kept while it takes at most 256 MB; beyond that slacks are computed
    from the model in every pass and need memory only for the states, the costs and one block.
    """

    def __init__(self, model: FunctionModel, basis: Basis, states: Any, origin: str = "") -> None:
        repeated = len(states) - n_distinct(states)
        if repeated:
            raise ModelError(
                f"states has {repeated} repetitions among {len(states)}, "
                "expected distinct states: use np.unique(states, axis=0)"
            )
        super().__init__(basis, states, model.discount)
        self.model = model
        self.states = states
        self.origin = origin
        mask = model.admissible_mask(states)
        self._mask = mask
        # Millions of pairs: the state follows from the place, and the action fits a small number.
        small = np.min_scalar_type(model.n_actions)
        actions = np.broadcast_to(np.arange(model.n_actions, dtype=small), mask.shape)
        self._pair_action = actions[mask]
        self.pair_start = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
        self._compiled = CompiledBasis.of(self.basis, model.dimension, model.value_counts)
        self._loops = model.loops_with(written=self._compiled.written)
        n_pairs = len(self._pair_action)
        self.pair_cost = np.zeros(n_pairs)
        self._matrix: FloatArray | None = None
        if is_kept(n_pairs * self._n_basis):
            self._matrix = np.zeros((n_pairs, self._n_basis))
        for block in self.state_blocks():
            pairs = np.arange(self.pair_start[block.start], self.pair_start[block.stop])
            rows, cost = self._computed(pairs, want_rows=self._matrix is not None)
            self.pair_cost[pairs] = cost
            if self._matrix is not None:
                self._matrix[pairs] = rows

    @property
    def n_bytes(self) -> int:
        """Memory held by the states, the costs and, where kept, features and rows."""
        kept = [self.states, self.pair_start, self.pair_cost, self._pair_action, self._mask]
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
        numbers = np.searchsorted(self.pair_start, keys, side="right") - 1
        return self.states[numbers], self._pair_action[keys].astype(np.int64)

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
        for block in self.state_blocks():
            pairs = np.arange(self.pair_start[block.start], self.pair_start[block.stop])
            yield np.asarray(self.rows(pairs)[0]) / np.sqrt(self.n_pairs)

    def _computed(self, keys: IntArray, *, want_rows: bool) -> tuple[FloatArray, FloatArray]:
        lists_successors = self.model.value_counts is None
        if want_rows and lists_successors and not self.model.compiled:
            return self._plain(*self.support_of(keys))
        functions = self._compiled.functions if want_rows else None
        rows, cost = self._loops.bellman_rows(*self.support_of(keys), functions)
        return self._compiled.of_basis(rows) if want_rows else rows, cost

    def _plain(self, states: Any, actions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return rows and costs of a model in plain Python, its basis in whole arrays.

        Features of all successors together take a small part of the time that loops would.
        """
        rows, cost = np.zeros((len(states), self._n_basis)), np.zeros(len(states))
        size = max(1, _PLAIN_NUMBERS // (self._loops.n_events * self._n_basis))
        for first in range(0, len(states), size):
            part = slice(first, first + size)
            here = states[part]
            cost[part], chances, following = self._loops.expand(here, actions[part])
            points = following.reshape(-1, self.model.dimension).astype(np.float64)
            after = np.asarray(self.basis(points)).reshape(*chances.shape, self._n_basis)
            ahead = np.einsum("ne,nek->nk", chances, after)
            idle = 1.0 - chances.sum(axis=1, keepdims=True)
            now = np.asarray(self.basis(here.astype(np.float64)))
            rows[part] = now - self.discount * (ahead + idle * now)
        return rows, cost
