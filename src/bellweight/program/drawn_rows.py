"""Rows of states that are drawn anew in every pass and never stored.

State number k is the first state of episode k of a random stream, so every pass meets the same
states, on any number of workers, and memory is needed for one block only. The states at the head of
the stream tell which functions are independent, and give the coordinates and the first rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.short import Short
from bellweight.common.status import ArgumentError
from bellweight.common.streams import stream_keys
from bellweight.common.workers import Pieces
from bellweight.models.function_model import FunctionModel
from bellweight.models.kernels.layouts import Scale
from bellweight.models.loops import Loops
from bellweight.program.row_blocks import RowBlock, closest_in, joined
from bellweight.program.row_source import RowSource, Separation
from bellweight.program.sampled_rows import EventRows, Question, closest_of

_HEAD = 1 << 14  # states that the functions are looked at on
_PIECE_STATES = 1 << 16
_DRAWING = 2  # the branch of a seed that these states are drawn from


@dataclass(frozen=True, repr=False)
class DrawnRows(Short):
    """The rows of `states` states from the initial distribution, too many to be stored.

    They are drawn anew in every pass from the same random stream, so some may come twice. With
    `kept_in`, a file, the rows that passes have found are kept there, and a run that was cut short
    goes on with them.
    """

    states: int
    seed: int = 0
    kept_in: str | Path | None = None

    def on(self, model: FunctionModel, basis: Basis) -> StreamedRows:
        """Bind to a model and a basis."""
        n_states = checks.count(self.states, "states")
        kept_in = None if self.kept_in is None else Path(self.kept_in)
        return StreamedRows(model, basis, n_states, self.seed, kept_in)


@dataclass(frozen=True, eq=False)
class DrawnBlock(RowBlock):
    """Rows of the states number `start` to `stop`; each has a row for every action."""

    start: int
    stop: int
    stream: Any
    loops: Loops
    basis: Basis

    @property
    def first(self) -> int:  # type: ignore[override]
        return self.start * self.loops.n_actions

    def pair_starts(self) -> IntArray:
        n_actions = self.loops.n_actions
        return np.arange(0, (self.stop - self.start) * n_actions + 1, n_actions)

    def slacks(self, asked: Question, states: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        slack, cost, value = self.loops.slacks(self._states(states), asked.value)
        return slack.ravel(), cost.ravel(), value

    def closest(self, asked: Question, scale: Scale, n_close: int) -> Any:
        states, starts = self._states(slice(0, self.stop - self.start)), self.pair_starts()
        return closest_of(self.loops, states, self.first, starts, asked, scale, n_close)

    def terms(self, asked: Question, states: slice) -> FloatArray:
        drawn = self._states(states)
        sizes = asked.sizes(drawn, lambda: np.asarray(self.basis(drawn.astype(np.float64))))
        return (1.0 + self.loops.discount) * sizes

    def _states(self, states: slice) -> Any:
        first = self.start
        return self.loops.initial_states(first + states.start, first + states.stop, self.stream)


class StreamedRows(RowSource):
    """Rows of drawn states of a model given by functions; a key is state number * A + action."""

    jobs: int | None = None
    is_sparse = False

    def __init__(
        self,
        model: FunctionModel,
        basis: Basis,
        n_states: int,
        seed: int = 0,
        kept_in: Path | None = None,
    ) -> None:
        self.model = model
        self.n_states = n_states
        self.discount = model.discount
        self._stream = stream_keys(seed, _DRAWING)[0]
        head = model.sample_initial(0, min(n_states, _HEAD), self._stream)
        self._head = EventRows(model, basis, head)
        self.basis = self._head.basis
        self.names = self._head.names
        self.lower, self.upper = self._head.lower, self._head.upper
        self.passes = 0
        self._kept_in = kept_in
        self._label = f"{model.digest}, {n_states} states, seed {seed}, {', '.join(self.names)}"
        self._kept = self._read()

    @property
    def n_basis(self) -> int:
        return self._head.n_basis

    @property
    def n_pairs(self) -> int:
        return self.n_states * self.model.n_actions

    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        return self._head.rows_at(*self.support_of(keys))

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        # Rounding is bounded by the head of the stream, doubled: farther out it may be larger.
        largest = float(self._head.value_terms(coef).max())
        scale = Scale(self.discount, unit, 4.0 * tolerances.ROUNDING * largest, homogeneous)
        n_close, asked = 8 + self.n_basis, self._head.asked(coef, sizes=True)
        found = self._pieces.map(closest_in, asked, scale, n_close, jobs=self.jobs)
        answer = joined(found, n_close)
        self.passes += 1
        self._keep(answer.close)
        return answer

    def _read(self) -> IntArray:
        """Return the keys that an earlier run has left in the file."""
        if self._kept_in is None or not self._kept_in.exists():
            return np.zeros(0, dtype=np.int64)
        try:
            found = json.loads(self._kept_in.read_text(encoding="utf-8"))
            label, keys, self.passes = found["of"], found["keys"], int(found["passes"])
            known = np.array(keys, dtype=np.int64).reshape(len(keys))
        except (OSError, *files.DAMAGE) as problem:
            raise ArgumentError(
                f"{self._kept_in} holds no rows that a run has kept ({problem}): name another file"
            ) from None
        if label != self._label:
            raise ArgumentError(
                f"{self._kept_in} holds rows of another model, basis, seed or number of states: "
                "name another file"
            )
        if len(known) and not 0 <= known.min() <= known.max() < self.n_pairs:
            raise ArgumentError(f"{self._kept_in} holds a row that is none of this run: delete it")
        return known

    def _keep(self, keys: IntArray) -> None:
        if self._kept_in is not None:
            self._kept = np.union1d(self._kept, keys)
            found = {"of": self._label, "passes": self.passes, "keys": self._kept.tolist()}
            files.write_text(self._kept_in, json.dumps(found))

    @cached_property
    def _pieces(self) -> Pieces:
        edges = [*range(0, self.n_states, _PIECE_STATES), self.n_states]
        loops = self._head.block(slice(0, 1)).loops
        return Pieces(
            [
                DrawnBlock(start, stop, self._stream, loops, self.basis)
                for start, stop in pairwise(edges)
            ]
        )

    def seeds(self, weights: FloatArray | None) -> IntArray:
        # The head lists admissible pairs only, so its keys are others.
        keys = self._head.seeds(None)
        numbers = np.searchsorted(self._head.pair_start, keys, side="right") - 1
        first = numbers * self.model.n_actions + self._head.support_of(keys)[1]
        return np.union1d(first, self._kept)

    def triangle(self, weights: FloatArray | None) -> FloatArray:
        return self._head.triangle(None)

    def span(self) -> FloatArray:
        return self._head.span()

    def constant(self) -> FloatArray:
        return self._head.constant()

    def support_of(self, keys: IntArray) -> tuple[Any, IntArray]:
        numbers, actions = np.divmod(np.asarray(keys, dtype=np.int64), self.model.n_actions)
        wanted, place = np.unique(numbers, return_inverse=True)
        drawn = [self.model.sample_initial(k, k + 1, self._stream) for k in wanted.tolist()]
        states = np.concatenate(drawn) if drawn else self._head.states[:0].astype(np.int64)
        return states[place], actions
