"""The largest value of a sum of tables, each of a few variables, by eliminating the variables.

    max over x of  sum_j t_j(x on S_j)

is found by taking one variable after the other: the tables that it stands in are added up, and
their sum is replaced by its maximum over the variable, a table of the others (max-sum, or
non-serial dynamic programming: Bertele and Brioschi 1972). The work grows with the largest table on
the way, whose number of variables depends on the order. Orders are chosen by least fill: the
variable whose elimination connects the fewest other variables goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.models.local import Table


@dataclass(frozen=True)
class Order:
    """In which order variables are eliminated, and the variables of the largest table on the way.

    `width` is the largest number of variables in a table, `entries` the largest number of entries.
    """

    variables: tuple[int, ...]
    width: int
    entries: int
    largest: tuple[int, ...]


def least_fill(scopes: Sequence[tuple[int, ...]], sizes: Sequence[int], keep: set[int]) -> Order:
    """Return a good order for tables with these scopes; the variables in `keep` stay."""
    near: dict[int, set[int]] = {v: set() for scope in scopes for v in scope}
    for scope in scopes:
        for v in scope:
            near[v] |= set(scope) - {v}
    order: list[int] = []
    largest: tuple[int, ...] = ()
    width, entries = 0, 1
    left = set(near) - keep
    while left:
        v = min(left, key=lambda u: (_fill(near, u), prod(sizes[w] for w in near[u]), u))
        table = tuple(sorted({v, *near[v]}))
        width, size = max(width, len(table)), prod(sizes[w] for w in table)
        if size > entries:
            entries, largest = size, table
        for u in near[v]:
            near[u] |= near[v] - {u}
            near[u].discard(v)
        del near[v]
        left.discard(v)
        order.append(v)
    return Order(tuple(order), width, entries, largest)


def _fill(near: dict[int, set[int]], v: int) -> int:
    """Return how many pairs of a variable's neighbours are not neighbours yet."""
    return sum(b not in near[a] for a, b in combinations(near[v], 2))


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest sums, one for each combination of the variables that were kept.

    `values` has an axis for each variable of `scope`; `choices` holds for each eliminated variable
    the best value as a table of those that were left, in the order of elimination.
    """

    scope: tuple[int, ...]
    values: FloatArray
    choices: tuple[tuple[int, Table], ...]

    def points(self, cells: IntArray, n_variables: int) -> IntArray:
        """Return the points (n, n_variables) at which flat cells of the values are attained."""
        found = np.zeros((len(cells), n_variables), dtype=np.int64)
        if self.scope:
            places = np.unravel_index(cells, self.values.shape)
            for v, place in zip(self.scope, places, strict=True):
                found[:, v] = place
        for v, best in reversed(self.choices):
            found[:, v] = best.at(found)
        return found


def eliminated(tables: Sequence[Table], order: Order) -> Largest:
    """Return the largest sums of tables after eliminating the variables of an order."""
    left, choices = list(tables), []
    for v in order.variables:
        own = [table for table in left if v in table.scope]
        left = [table for table in left if v not in table.scope]
        total = added(own)
        axis = total.scope.index(v)
        rest = tuple(u for u in total.scope if u != v)
        choices.append((v, Table(rest, total.values.argmax(axis=axis))))
        left.append(Table(rest, total.values.max(axis=axis)))
    total = added(left)
    return Largest(total.scope, total.values, tuple(choices))


def added(tables: Sequence[Table]) -> Table:
    """Return the sum of tables, the smallest added first."""
    scope = tuple(sorted({v for table in tables for v in table.scope}))
    total: FloatArray | float = 0.0
    for table in sorted(tables, key=lambda t: t.values.size):
        total = total + table.over(scope)
    return Table(scope, np.asarray(total, dtype=np.float64))
