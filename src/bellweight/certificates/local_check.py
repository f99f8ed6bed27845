"""What `verify` knows about value functions that are sums of tables of a few coordinates.

A certificate of a model with local structure records its value function as plain tables v_j over
grids of a few coordinates each. Along a coordinate without a largest value the last two grid values
m and m + 1 give the slope, and beyond m

    v(x) = v(c) + sum over i with x_i > m_i of (x_i - m_i) (v(c + e_i) - v(c)),   c = min(x, m),

by definition. Then the violation V(x) - discount E[V(next)] - cost(x, a) of a row is affine beyond
m plus the largest fall of a step, so it is enough to look at the grid up to there and at its slopes
at the end.

Nothing here uses row sources, linear programs or the elimination of `program`: every action has a
search of its own for the largest violation, which takes the variable with the fewest neighbours
first and rounds all sums up. The tables themselves are made point by point with `math.fsum`, right
to the last digit, and come with how far their entries may be from the true ones. Shared with
`certify` is the model's own local structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, inf, prod

import numpy as np

from bellweight.certificates.record import Record
from bellweight.common.checks import FloatArray
from bellweight.common.status import FileError
from bellweight.models.local import MOST_ENTRIES, LocalStructure, Outcomes, Point, Table

_UNIT = 2.0**-53
_ROUNDINGS = 32  # of a term: its products and differences
_MOST_PARTS = 10_000


@dataclass(frozen=True, eq=False)
class Part:
    """One table of the value function."""

    scope: tuple[int, ...]
    values: FloatArray

    def value(self, point: Point, ends: dict[int, int]) -> tuple[float, float]:
        """Return the value at a point, beyond the ends as defined, and the size of its terms."""
        place = [min(point[i], ends[i]) if i in ends else point[i] for i in self.scope]
        here = float(self.values[tuple(place)])
        terms, size = [here], abs(here)
        for axis, i in enumerate(self.scope):
            if i in ends and point[i] > ends[i]:
                next_place = list(place)
                next_place[axis] += 1
                there, steps = float(self.values[tuple(next_place)]), point[i] - ends[i]
                terms.append(steps * (there - here))
                size += steps * (abs(there) + abs(here))
        return fsum(terms), size


@dataclass(frozen=True, eq=False)
class _Enclosed:
    """A table of a few coordinates, and how far each entry may be from the true one."""

    scope: tuple[int, ...]
    values: FloatArray
    spread: FloatArray

    @property
    def above(self) -> Table:
        """Numbers that the true ones do not exceed."""
        return Table(self.scope, self.values + (self.spread + 2.0 * _UNIT * np.abs(self.values)))

    def slope(self, coordinate: int) -> Table:
        """Return what the slope at the end of a coordinate does not exceed."""
        axis = self.scope.index(coordinate)
        last, spread = np.moveaxis(self.values, axis, 0), np.moveaxis(self.spread, axis, 0)
        error = spread[-1] + spread[-2] + 2.0 * _UNIT * (np.abs(last[-1]) + np.abs(last[-2]))
        rest = tuple(v for v in self.scope if v != coordinate)
        return Table(rest, (last[-1] - last[-2]) + (1.0 + 8.0 * _UNIT) * error)


@dataclass(frozen=True, eq=False)
class Proof:
    """What tables prove: no policy costs less than `value`; `violation` is the largest found."""

    value: float
    violation: float


def proof_of(structure: LocalStructure, record: Record) -> Proof:
    """Judge every row of all states, and lower the value function where one does not hold."""
    parts = _parts(structure, record)
    check = _Check(structure, parts)
    violation = -inf
    for choices in product(*(range(n) for n in structure.choices)):
        violation = max(violation, check.largest(choices))
    shift = max(0.0, violation) / (1.0 - structure.discount) * (1.0 + 8.0 * _UNIT)
    initial = _initial(structure, parts, check.ends)
    return Proof(initial - shift - 4.0 * _UNIT * (abs(initial) + shift), violation)


def _parts(structure: LocalStructure, record: Record) -> list[Part]:
    given = record.entries.get("tables")
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_PARTS:
        raise FileError("record.tables is not a list of tables")
    parts = []
    for k, entry in enumerate(given):
        own = Record(entry if isinstance(entry, dict) else {}, f"record.tables[{k}]")
        scope = own.whole("scope", None, structure.dimension).tolist()
        sizes = own.whole("sizes", len(scope), 1 << 20).tolist()
        values = own.numbers("values", prod(sizes)).reshape(sizes)
        if scope != sorted(set(scope)):
            raise FileError(f"record.tables[{k}].scope is not increasing")
        parts.append(Part(tuple(scope), values))
    return parts


class _Check:
    """The rows of one value function, and the largest violation for each action."""

    def __init__(self, structure: LocalStructure, parts: list[Part]) -> None:
        self.structure = structure
        self.parts = parts
        lengths: dict[int, int] = {}
        for part in parts:
            for i, n in zip(part.scope, part.values.shape, strict=True):
                limit = int(structure.limits[i])
                if lengths.setdefault(i, n) != n or (limit >= 0 and n != limit + 1) or n < 1:
                    raise FileError(f"record.tables disagree about the values of coordinate {i}")
        self.ends, self.sizes = {}, []
        for i in range(structure.dimension):
            limit = int(structure.limits[i])
            n = lengths.get(i, limit + 1 if limit >= 0 else 2)
            if limit < 0:
                if n < 2:
                    raise FileError(f"record.tables have no slope along coordinate {i}")
                self.ends[i] = n - 2
                last = max(n - 2 + int(structure.falls[i]), int(structure.tails[i]))
                n = last + 2
            self.sizes.append(n)
        self.all_sizes = [*self.sizes, *structure.choices]
        self.costs = structure.costs(self.all_sizes)
        self.rules = structure.admissible(self.all_sizes)
        self.reach = sum(float(np.abs(table.values).max()) for table in self.costs)

    def largest(self, choices: Sequence[int]) -> float:
        """Return a number that no violation of this action's rows exceeds; slopes must not rise."""
        tables = [*self._rows(choices), *self._fixed_costs(choices)]
        forbidden = [self._forbidden(table, choices) for table in self.rules]
        for i in self.ends:
            slopes = [table.slope(i) for table in tables if i in table.scope]
            at_end = [_at_last(table, i) for table in forbidden]
            if _highest([*slopes, *at_end], self.sizes) > 0.0:
                raise FileError(f"the violation of rows grows along coordinate {i}")
        return _highest([*(table.above for table in tables), *forbidden], self.sizes)

    def _rows(self, choices: Sequence[int]) -> list[_Enclosed]:
        """Return the tables of V - discount E[V(next)] for an action."""
        structure, discount = self.structure, self.structure.discount
        tables = []
        for part in self.parts:

            def here(point: Point, part: Part = part) -> tuple[float, float]:
                value, size = part.value(point, self.ends)
                return (1.0 - discount) * value, _ROUNDINGS * _UNIT * size

            tables.append(self._table(part.scope, here))
            for outcomes in structure.outcomes(part.scope):
                tables.append(self._change(part, outcomes, choices))
        return tables

    def _change(self, part: Part, outcomes: Outcomes, choices: Sequence[int]) -> _Enclosed:
        """Return the table of discount E[v(x) - v(next)] for what can happen to a part."""
        dimension, discount = self.structure.dimension, self.structure.discount
        options = {dimension + k: choice for k, choice in enumerate(choices)}
        looks = {v for v in outcomes.scope if v < dimension}
        scope = tuple(sorted({*part.scope, *looks}))

        def change(point: Point) -> tuple[float, float]:
            here, size = part.value(point, self.ends)
            terms, sizes = [], []
            for chance, moved in outcomes.at({**point, **options}):
                there, more = part.value({**point, **moved}, self.ends)
                terms.append(discount * chance * (here - there))
                sizes.append(chance * (size + more))
            # A chance is a product with a factor for each coordinate of the part at the most.
            return fsum(terms), (_ROUNDINGS + len(part.scope)) * _UNIT * fsum(sizes)

        return self._table(scope, change)

    def _fixed_costs(self, choices: Sequence[int]) -> list[_Enclosed]:
        """Return minus the cost's tables for an action."""
        n = len(self.costs)
        error = (2 * n + 2) * _ROUNDINGS * _UNIT * self.reach / max(n, 1)
        fixed = [self._at(table, choices) for table in self.costs]
        return [_Enclosed(t.scope, -t.values, np.full(t.values.shape, error)) for t in fixed]

    def _forbidden(self, table: Table, choices: Sequence[int]) -> Table:
        fixed = self._at(table, choices)
        return Table(fixed.scope, np.where(fixed.values > 0.0, 0.0, -inf))

    def _at(self, table: Table, choices: Sequence[int]) -> Table:
        """Return a table with the action put in."""
        dimension = self.structure.dimension
        index = tuple(slice(None) if v < dimension else choices[v - dimension] for v in table.scope)
        return Table(tuple(v for v in table.scope if v < dimension), table.values[index])

    def _table(
        self, scope: tuple[int, ...], function: Callable[[Point], tuple[float, float]]
    ) -> _Enclosed:
        shape = tuple(self.sizes[v] for v in scope)
        if prod(shape) > MOST_ENTRIES:
            raise FileError(f"a table over the coordinates {scope} is too large to check")
        values, spread = np.empty(shape), np.empty(shape)
        for place in np.ndindex(*shape):
            values[place], spread[place] = function(dict(zip(scope, place, strict=True)))
        return _Enclosed(scope, values, spread)


def _at_last(table: Table, coordinate: int) -> Table:
    if coordinate not in table.scope:
        return table
    axis = table.scope.index(coordinate)
    rest = tuple(v for v in table.scope if v != coordinate)
    return Table(rest, np.moveaxis(table.values, axis, 0)[-1])


def _highest(tables: list[Table], sizes: Sequence[int]) -> float:
    """Return a number that the largest sum of tables does not exceed, variable by variable."""
    left = list(tables)
    while any(table.scope for table in left):
        near: dict[int, set[int]] = {}
        for table in left:
            for v in table.scope:
                near.setdefault(v, set()).update(table.scope)
        v = min(near, key=lambda u: (len(near[u]), -u))
        scope = tuple(sorted(near[v]))
        if prod(sizes[u] for u in scope) > MOST_ENTRIES:
            raise FileError(f"a table over the coordinates {scope} is too large to check")
        found = _sum_above([table for table in left if v in table.scope], scope)
        rest = tuple(u for u in scope if u != v)
        left = [table for table in left if v not in table.scope]
        left.append(Table(rest, found.values.max(axis=scope.index(v))))
    return float(_sum_above(left, ()).values)


def _sum_above(tables: list[Table], scope: tuple[int, ...]) -> Table:
    """Return the sum of tables over a larger scope, rounded up; minus infinity stays."""
    parts = [table.over(scope) for table in tables]
    size = sum(np.abs(np.where(np.isneginf(part), 0.0, part)) for part in parts)
    return Table(scope, sum(parts, np.zeros(())) + 2.0 * len(parts) * _UNIT * size)


def _initial(structure: LocalStructure, parts: list[Part], ends: dict[int, int]) -> float:
    """Return a number that the expected value under the initial law is not below."""
    terms: list[float] = []
    sizes: list[float] = []
    off: list[float] = []
    for part in parts:
        laws = []
        for i, n in zip(part.scope, part.values.shape, strict=True):
            law = structure.initial_law(i, n - 1 if i in ends else n)
            if law is None:
                raise FileError("the initial law of the model is not known by its chances")
            laws.append(law)
        # Chances may miss a sum of one by more than rounding: no constant is gained from that.
        missed, first = abs(prod(fsum(law[0]) for law in laws) - 1.0), len(sizes)
        for place in np.ndindex(*(len(law[0]) for law in laws)):
            chances = [float(law[0][x]) for law, x in zip(laws, place, strict=True)]
            here = float(part.values[place])
            terms.append(prod(chances) * here)
            sizes.append(prod(chances) * abs(here))
            for axis, i in enumerate(part.scope):
                if i in ends and place[axis] == ends[i] and laws[axis][1] > 0.0:
                    others = prod(p for k, p in enumerate(chances) if k != axis)
                    further = list(place)
                    further[axis] += 1
                    there = float(part.values[tuple(further)])
                    terms.append(others * laws[axis][1] * (there - here))
                    sizes.append(others * laws[axis][1] * (abs(there) + abs(here)))
        off.append(missed * fsum(sizes[first:]))
    longest = max(max(part.values.shape, default=1) for part in parts)
    return fsum(terms) - (longest + 2 * _ROUNDINGS) * _UNIT * fsum(sizes) - 2.0 * fsum(off)
