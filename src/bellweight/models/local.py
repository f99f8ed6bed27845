"""Local structure: which coordinates each cost, event and rule of a model looks at.

Variables are numbered: the coordinates of the state first, then the choices an action is made of
(one choice with all actions as options, or one for each server). A `Table` is a function of a few
variables on their grid. `LocalStructure` is what a model made of such parts offers:

    cost(x, a)                the sum of a few tables
    E[f(next)] - f(x)         the sum of a few tables too, for every function f of few coordinates

so that a Bellman row of a sum of such functions is a sum of tables.

A coordinate without a largest value has a tail: from `tails[i]` on costs are affine in it, chances
and admissible actions stay the same, and events move it by fixed jumps, down by at most `falls[i]`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models.initial import Geometric, PointMass, clipped_law

MOST_ENTRIES = 1 << 24
"""The most entries of a table: 128 MB, and a few times that while it is made."""

Features = Callable[[FloatArray], FloatArray]
"""Functions of a few coordinates: points (n, m) to values (n, c)."""

Point = dict[int, int]
"""The values of some variables."""

LocalFunction = tuple[tuple[int, ...], Callable[[IntArray], FloatArray]]
"""A scope, and a function from its points (n, m) to numbers (n,)."""


@dataclass(frozen=True, eq=False)
class Table:
    """A function of the variables in `scope`, in increasing order: one axis of values for each."""

    scope: tuple[int, ...]
    values: FloatArray

    def over(self, scope: Sequence[int]) -> FloatArray:
        """Return the values with an axis for each variable of a larger scope."""
        sizes = dict(zip(self.scope, self.values.shape, strict=False))
        rest = self.values.shape[len(self.scope) :]
        return self.values.reshape((*(sizes.get(v, 1) for v in scope), *rest))

    def at(self, points: IntArray) -> FloatArray:
        """Return the values at points (n, number of all variables)."""
        if not self.scope:
            return np.broadcast_to(self.values, (len(points), *self.values.shape))
        return np.asarray(self.values[tuple(points[:, v] for v in self.scope)])

    def at_end(self, variable: int, place: int = -1) -> Table:
        """Return the table at one of the last values of a variable, if it looks at that one."""
        if variable not in self.scope:
            return self
        values = np.asarray(self.values.take(place, axis=self.scope.index(variable)))
        return Table(tuple(v for v in self.scope if v != variable), values)

    def slope(self, variable: int) -> Table:
        """Return the difference of the last two values along a variable."""
        last = self.at_end(variable)
        return Table(last.scope, np.asarray(last.values - self.at_end(variable, -2).values))


@dataclass(frozen=True, eq=False)
class Drift:
    """The term chance(x, a) times features(x, a) of E[f(next)] - f(x) for functions f.

    `features` has a last axis for the functions; `chance` is None where it is one.
    """

    chance: Table | None
    features: Table


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What can happen to some coordinates in a step, at one point; it looks at `scope`.

    `at` maps the values of these variables to chances and the coordinates' next values. What is
    missing to chance one leaves the coordinates as they are.
    """

    scope: tuple[int, ...]
    at: Callable[[Point], list[tuple[float, Point]]]


class LocalStructure(ABC):
    """A model made of local parts, see the module.

    `limits` (d,) has the largest value of each coordinate, -1 where there is none; `choices` the
    number of options of each choice; `rules` are functions of points with their scopes.
    """

    discount: float
    limits: IntArray
    tails: IntArray
    falls: IntArray
    choices: tuple[int, ...]
    rules: Sequence[LocalFunction]

    @property
    def dimension(self) -> int:
        """Number of coordinates of the state."""
        return len(self.limits)

    @property
    def structure(self) -> LocalStructure:
        """The structure itself, so that rows can be bound to it as to a model."""
        return self

    @property
    def endless(self) -> list[int]:
        """The coordinates without a largest value."""
        return [int(i) for i in np.flatnonzero(self.limits < 0)]

    @property
    def choice_variables(self) -> tuple[int, ...]:
        """The variables that are choices."""
        return tuple(range(self.dimension, self.dimension + len(self.choices)))

    def actions(self, choices: IntArray) -> IntArray:
        """Return the actions (n,) made of choices (n, m)."""
        return np.ravel_multi_index(tuple(choices.T), self.choices).astype(np.int64)

    @abstractmethod
    def costs(self, sizes: Sequence[int]) -> list[Table]:
        """Return tables whose sum is the cost, on a grid with these sizes, one per variable."""

    def admissible(self, sizes: Sequence[int]) -> list[Table]:
        """Return tables of 0 and 1; an action is admissible where all are 1."""
        return [tabulated(scope, sizes, rule(grid(scope, sizes))) for scope, rule in self.rules]

    @abstractmethod
    def drifts(
        self, scope: tuple[int, ...], features: Features, sizes: Sequence[int], *, size: bool
    ) -> list[Drift]:
        """Return the terms of E[f(next)] - f(x) for functions f of the coordinates in a scope.

        With `size`, return what rounding is relative to instead: the same sum with |f| for f and
        no minus.
        """

    @abstractmethod
    def outcomes(self, scope: tuple[int, ...]) -> list[Outcomes]:
        """Return what can happen to the coordinates in a scope, one law or one event each.

        The same as `drifts`, point by point: the verifier checks tables with it.
        """

    @abstractmethod
    def initial_law(self, coordinate: int, size: int) -> tuple[FloatArray, float] | None:
        """Return the chances of the values 0, 1, ..., the last one standing for all beyond it.

        Also how far beyond the last value the coordinate is on average. None where the law is not
        known, or coordinates are not independent.
        """


def grid(scope: Sequence[int], sizes: Sequence[int]) -> IntArray:
    """Return all points (n, len(scope)) of the variables in a scope, the last changing fastest."""
    shape = tuple(sizes[v] for v in scope)
    if not shape:
        return np.zeros((1, 0), dtype=np.int64)
    check_entries(scope, prod(shape), [f"x{v + 1}" for v in range(len(sizes))])
    return np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)


def check_entries(scope: Sequence[int], entries: int, names: Sequence[str]) -> None:
    """Refuse a table that does not fit into memory, and name its variables."""
    if entries > MOST_ENTRIES:
        group = ", ".join(names[v] for v in scope)
        raise ModelError(
            f"the search for violated rows needs a table of {entries:.2g} entries over {group}, "
            f"expected at most {MOST_ENTRIES:.2g}: use functions of fewer coordinates, kinks at "
            "smaller values, or upper bounds on these coordinates"
        )


def tabulated(scope: Sequence[int], sizes: Sequence[int], values: FloatArray) -> Table:
    """Return values (n,) or (n, c) on the grid of a scope as a table."""
    shape = tuple(sizes[v] for v in scope)
    return Table(tuple(scope), np.asarray(values).reshape(*shape, *np.shape(values)[1:]))


def compressed(table: Table) -> Table:
    """Return a table without the variables that it does not depend on."""
    scope, values = list(table.scope), table.values
    for axis in reversed(range(len(scope))):
        first = values.take([0], axis=axis)
        if (values == first).all():
            values, _ = first.squeeze(axis), scope.pop(axis)
    return Table(tuple(scope), values)


@dataclass(frozen=True, eq=False)
class LocalEvent:
    """An event: its chance looks at some variables, and so does what it does to `moved`.

    `chance` maps points of `chance_scope` to probabilities (n,), and `move` points of `move_scope`
    to the next values (n, len(moved)) of the coordinates that it may change.
    """

    chance_scope: tuple[int, ...]
    chance: Callable[[IntArray], FloatArray]
    move_scope: tuple[int, ...]
    moved: tuple[int, ...]
    move: Callable[[IntArray], IntArray]

    def outcomes(self) -> Outcomes:
        """Return what the event does, point by point."""

        def at(point: Point) -> list[tuple[float, Point]]:
            chance = float(self.chance(np.array([[point[v] for v in self.chance_scope]]))[0])
            if chance == 0.0:
                return []
            moved = self.move(np.array([[point[v] for v in self.move_scope]]))[0]
            return [(chance, {v: int(x) for v, x in zip(self.moved, moved, strict=True)})]

        return Outcomes(tuple(sorted({*self.chance_scope, *self.move_scope})), at)


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalEvents(LocalStructure):
    """At most one event per step; `cost_terms` makes the tables of `costs` for a grid."""

    discount: float
    limits: IntArray
    tails: IntArray
    falls: IntArray
    choices: tuple[int, ...]
    cost_terms: Callable[[Sequence[int]], list[Table]]
    events: Sequence[LocalEvent]
    rules: Sequence[LocalFunction] = ()
    initial: PointMass | Geometric | None = None

    def costs(self, sizes: Sequence[int]) -> list[Table]:
        return self.cost_terms(sizes)

    def drifts(
        self, scope: tuple[int, ...], features: Features, sizes: Sequence[int], *, size: bool
    ) -> list[Drift]:
        touching = self._touching(scope)
        return [self._drift(event, scope, features, sizes, size=size) for event in touching]

    def outcomes(self, scope: tuple[int, ...]) -> list[Outcomes]:
        return [event.outcomes() for event in self._touching(scope)]

    def _touching(self, scope: tuple[int, ...]) -> list[LocalEvent]:
        return [event for event in self.events if set(event.moved) & set(scope)]

    def _drift(
        self,
        event: LocalEvent,
        scope: tuple[int, ...],
        features: Features,
        sizes: Sequence[int],
        *,
        size: bool,
    ) -> Drift:
        seen = tuple(sorted({*scope, *event.move_scope}))
        points = grid(seen, sizes)
        column = {v: j for j, v in enumerate(seen)}
        here = points[:, [column[v] for v in scope]]
        moved = event.move(points[:, [column[v] for v in event.move_scope]])
        there = here.copy()
        for j, v in enumerate(event.moved):
            if v in scope:
                there[:, scope.index(v)] = moved[:, j]
        after, before = features(there.astype(np.float64)), features(here.astype(np.float64))
        change = np.abs(after) + np.abs(before) if size else after - before
        chances = event.chance(grid(event.chance_scope, sizes))
        return Drift(
            compressed(tabulated(event.chance_scope, sizes, chances)),
            tabulated(seen, sizes, change),
        )

    def initial_law(self, coordinate: int, size: int) -> tuple[FloatArray, float] | None:
        if self.initial is None:
            return None
        return clipped_law(self.initial, coordinate, int(self.limits[coordinate]), size)


@dataclass(frozen=True, eq=False)
class LocalCoordinate:
    """The law of a coordinate's next value, given the variables in `scope`.

    `law` maps points (n, len(scope)) to probabilities (n, number of values).
    """

    scope: tuple[int, ...]
    law: Callable[[IntArray], FloatArray]


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalCoordinates(LocalStructure):
    """Coordinates that move independently in each step, given the variables they look at.

    `cost_terms` and `rules` are functions of points with their scopes; an action is admissible
    where all rules give 1. `initial` has the chances of each coordinate's values at the start, None
    where they are not independent.
    """

    discount: float
    limits: IntArray
    choices: tuple[int, ...]
    cost_terms: Sequence[LocalFunction]
    coordinates: Sequence[LocalCoordinate]
    rules: Sequence[LocalFunction] = ()
    initial: Sequence[FloatArray] | None = None

    @property
    def tails(self) -> IntArray:  # type: ignore[override]
        return np.zeros(self.dimension, dtype=np.int64)

    @property
    def falls(self) -> IntArray:  # type: ignore[override]
        return np.zeros(self.dimension, dtype=np.int64)

    def costs(self, sizes: Sequence[int]) -> list[Table]:
        return [
            compressed(tabulated(scope, sizes, cost(grid(scope, sizes))))
            for scope, cost in self.cost_terms
        ]

    def drifts(
        self, scope: tuple[int, ...], features: Features, sizes: Sequence[int], *, size: bool
    ) -> list[Drift]:
        if not scope:
            return []
        laws = [self.coordinates[i] for i in scope]
        seen = tuple(sorted({*scope, *(v for law in laws for v in law.scope)}))
        points = grid(seen, sizes)
        column = {v: j for j, v in enumerate(seen)}
        chances = np.ones((len(points), 1))
        for law in laws:
            own = law.law(points[:, [column[v] for v in law.scope]])
            chances = (chances[:, :, None] * own[:, None, :]).reshape(len(points), -1)
        values = features(grid(scope, sizes).astype(np.float64))
        here = features(points[:, [column[v] for v in scope]].astype(np.float64))
        # Rounded chances add up to one only nearly, but the drift of a constant is exactly zero.
        stayed = chances.sum(axis=1)[:, None] * here
        change = chances @ np.abs(values) + np.abs(here) if size else chances @ values - stayed
        return [Drift(None, tabulated(seen, sizes, change))]

    def outcomes(self, scope: tuple[int, ...]) -> list[Outcomes]:
        if not scope:
            return []
        laws = [self.coordinates[i] for i in scope]

        def at(point: Point) -> list[tuple[float, Point]]:
            found: list[tuple[float, Point]] = [(1.0, {})]
            for i, law in zip(scope, laws, strict=True):
                chances = law.law(np.array([[point[v] for v in law.scope]]))[0]
                found = [
                    (chance * float(chances[x]), {**before, i: int(x)})
                    for chance, before in found
                    for x in np.flatnonzero(chances)
                ]
            return found

        return [Outcomes(tuple(sorted({v for law in laws for v in law.scope})), at)]

    def initial_law(self, coordinate: int, size: int) -> tuple[FloatArray, float] | None:
        return None if self.initial is None else (self.initial[coordinate], 0.0)
