"""Parts of a factored model, which look at few coordinates each, laid out as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError

_MOST_ENTRIES = 1 << 22  # of the table of one law


@dataclass(frozen=True, eq=False)
class Local:
    """A part of a factored model that looks at the coordinates in `scope` and at the action.

    `of` is a function of their values and the action, `of(x_i, x_j, action)`, or the array of all
    its answers, with an axis for each coordinate of the scope and one for the action. For a law the
    answer is the list of chances of the next values, for a cost a number, for a rule True or False.
    """

    scope: Sequence[int]
    of: Callable[..., Any] | Any


@dataclass(frozen=True, eq=False)
class PartTable:
    """A part laid out: its scope in increasing order, values (sizes of the scope, A, width)."""

    scope: tuple[int, ...]
    values: FloatArray

    def at(self, states: Any, actions: IntArray) -> FloatArray:
        """Return the entries (n, width) of pairs."""
        return np.asarray(self.values[(*(states[:, i] for i in self.scope), actions)])

    def at_points(self, points: IntArray) -> FloatArray:
        """Return the entries (n, width) at points (n, scope and action)."""
        return np.asarray(self.values[tuple(points.T)])

    def first_at(self, points: IntArray) -> FloatArray:
        """Return the first entries (n,) at points."""
        return self.at_points(points)[:, 0]


@dataclass(frozen=True, eq=False)
class PartReader:
    """Lays out parts over coordinates with these sizes (d,) and actions with these labels (A,)."""

    sizes: tuple[int, ...]
    labels: tuple[str, ...]

    def law(self, law: Local, i: int) -> PartTable:
        """Lay out the law of coordinate i, checked to be one."""
        table = self.table(law, self.sizes[i], f"laws[{i}]", f"{self.sizes[i]} chances")
        total = table.values.sum(axis=-1)
        bad = (table.values < 0.0).any(axis=-1) | (np.abs(total - 1.0) > tolerances.PROBABILITY)
        wrong = checks.first_index(bad)
        if wrong is not None:
            raise ModelError(
                f"laws[{i}] gives {table.values[wrong].tolist()} for {self._place(table, wrong)}, "
                f"with the sum {total[wrong]:.12g}, expected chances that sum to 1"
            )
        return table

    def tables(self, parts: Sequence[Any], name: str, wanted: str) -> tuple[PartTable, ...]:
        """Lay out parts with one number in each entry."""
        return tuple(self.table(part, 1, f"{name}[{j}]", wanted) for j, part in enumerate(parts))

    def table(self, part: Any, width: int, name: str, wanted: str) -> PartTable:
        """Lay out a part; `width` numbers are expected of each answer."""
        if not isinstance(part, Local):
            raise ModelError(f"{name} is {part!r}, expected Local(scope, function)")
        scope = tuple(int(i) for i in part.scope)
        if len(set(scope)) < len(scope) or any(i not in range(len(self.sizes)) for i in scope):
            raise ModelError(
                f"{name} has the scope {list(part.scope)}, expected coordinates from 0 to "
                f"{len(self.sizes) - 1}, each once"
            )
        shape = (*(self.sizes[i] for i in scope), len(self.labels))
        if prod(shape) * width > _MOST_ENTRIES:
            raise ModelError(
                f"{name} has {prod(shape) * width:.2g} entries, expected at most "
                f"{_MOST_ENTRIES:,}: let it look at fewer coordinates"
            )
        values = self._answers(part, shape, width, name, wanted)
        wrong = checks.first_index(np.asarray(~np.isfinite(values).all(axis=-1)))
        order = np.argsort(scope)
        table = PartTable(
            tuple(sorted(scope)), np.transpose(values, (*order, len(scope), len(scope) + 1)).copy()
        )
        if wrong is not None:
            place = (*(wrong[k] for k in order), wrong[-1])
            raise ModelError(
                f"{name} gives {values[wrong].tolist()} for {self._place(table, place)}, expected "
                "finite numbers"
            )
        return table

    def _answers(
        self, part: Local, shape: tuple[int, ...], width: int, name: str, wanted: str
    ) -> FloatArray:
        if not callable(part.of):
            full = shape if width == 1 and np.ndim(part.of) == len(shape) else (*shape, width)
            given = checks.float_array(part.of, name, full, finite=False)
            return given.reshape(*shape, width)
        values = np.zeros((*shape, width))
        for place in np.ndindex(*shape):
            try:
                answer = np.ravel(np.asarray(part.of(*place), dtype=np.float64))
            except (TypeError, ValueError, ArithmeticError, LookupError) as problem:
                raise ModelError(
                    f"{name} fails for the values {list(place[:-1])} of coordinates "
                    f"{list(part.scope)} and action {place[-1]} ({type(problem).__name__}: "
                    f"{problem}): it is called with these values and the action, and returns "
                    f"{wanted}"
                ) from None
            if answer.shape != (width,):
                raise ModelError(
                    f"{name} gives {answer.tolist()} for the values {list(place[:-1])} of "
                    f"coordinates {list(part.scope)} and action {place[-1]}, expected {wanted}"
                )
            values[place] = answer
        return values

    def _place(self, table: PartTable, place: tuple[int, ...]) -> str:
        """Return which values and which action an entry belongs to."""
        values = [f"x{i + 1} = {v}" for i, v in zip(table.scope, place, strict=False)]
        return ", ".join([*values, f"action {place[-1]} ({self.labels[place[-1]]})"])
