"""The regularised program with twice the digits, by an active-set method.

    min cost' dual + delta/2 ||dual||^2   s.t.   rows' dual = moments, dual >= 0

begins at the optimal vertex of the linear program (`simplex`) and keeps a dual that is feasible.
Rows are free or fixed at zero. Each step goes towards the optimum over the free rows; the first
row whose dual would turn negative is fixed, and where none does, rows that are violated are freed,
several at a time while steps have a length. The objective falls with every such step, so no set of
free rows returns, and the method ends: whatever the scales, the discount or the conditioning of the
functions are.

Rows are written as shares of the basis's rows, and z is by how much each of those is violated:

    excess = shares z - reduced cost,   dual = excess / delta on the free rows,

so z solves  (shares' shares) z = delta (the basis's dual) + shares' (reduced cost)  over them. The
basis is made of free rows, and of the largest among them: no share is large, and the system is well
conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.doubled import (
    Doubled,
    add,
    divide,
    doubled,
    multiply,
    product,
    solve_definite,
    stacked,
    subtract,
    total,
)
from bellweight.common.status import SolverError, Status
from bellweight.program.listed_rows import ListedRows
from bellweight.program.row_source import RowSource
from bellweight.program.simplex import VertexSearch, check_time
from bellweight.program.tableau import STALLED, Tableau, power_of_two

_CHUNK = 20_000  # rows looked at with twice the digits at a time
_MOST_ADDED = 500  # rows added after a look at all
_MAX_STEPS = 5_000
_MOST_GUESSES = 50  # Newton steps before rows are freed and fixed a few at a time
_LARGE = 4.0  # share of a row of the basis beyond which a free row takes its place


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimum: coefficients (K,), and the dual, all positive, on the rows `keys`.

    `excess` (N,) is by how much each row is violated, negative where it holds.
    """

    coef: Doubled
    keys: IntArray
    dual: FloatArray
    excess: FloatArray
    steps: int
    passes: int


def optimum(
    source: ListedRows,
    columns: IntArray,
    delta: float,
    moments: Doubled,
    pool: IntArray,
    basic: IntArray,
    until: float | None = None,
) -> Optimum:
    """Return the optimum over all rows of a source and some of the basis functions.

    The linear program is solved first, from a pool of rows, some of which make the first basis and
    are the first guess of the rows that are violated. `until` is when to give up.
    """
    search = VertexSearch(source, columns, until=until)
    table, steps, passes = search.optimal_table(moments, pool, basic)
    found = _FreeRows(table, delta, until)
    guess = np.isin(table.keys, basic)
    while True:
        found.grow()
        steps, passes = steps + found.run(guess), passes + 1
        coef = search.over_all(table, found.prices())
        excess, fresh = _outside(source, coef, table.keys)
        if len(fresh) == 0:
            break
        search.append(table, fresh)
        guess = np.append(found.free, np.ones(len(fresh), dtype=np.bool_))
    is_used = found.dual.high > 0.0
    order = np.argsort(table.keys[is_used], kind="stable")
    excess[table.keys[table.n_columns :]] = (found.excess * table.size)[table.n_columns :]
    return Optimum(
        coef=coef,
        keys=table.keys[is_used][order],
        dual=(found.dual.high / table.size)[is_used][order],
        excess=excess,
        steps=steps,
        passes=passes,
    )


def shortest_dual(
    source: RowSource,
    columns: IntArray,
    moments: Doubled,
    tight: IntArray,
    basic: IntArray,
    until: float | None = None,
) -> FloatArray:
    """Return the shortest optimal dual (t,) on the tight rows: the optimum with costs of zero.

    `basic` are keys to begin with, those on which an optimal dual is positive for example.
    """
    vertex = VertexSearch(source, columns, until=until).run(moments, tight, basic)
    used = vertex.rows[vertex.dual > 0.0]
    # Other rows may carry what rounding left over; without them no dual is feasible.
    keys = np.union1d(tight, used)
    rows = source.exact_rows(keys).at((slice(None), columns))
    table = Tableau(moments.at(columns), power_of_two(np.abs(rows.high).max(axis=0)))
    table.append(keys, rows, np.zeros(len(keys)))
    for candidates in (used, keys):
        table.take(np.flatnonzero(np.isin(table.keys, candidates)))
    unused = ~np.isin(table.keys[table.basis], used)  # their dual is zero up to rounding
    table.dual.high[unused] = table.dual.low[unused] = 0.0
    found = _FreeRows(table, 1.0, until)
    found.grow()
    found.run(np.isin(table.keys, keys))
    dual = np.asarray((found.dual.high / table.size)[table.n_columns :])
    outside = dual[~np.isin(keys, tight)]
    if np.any(outside > tolerances.ROUNDING * dual.max()):
        raise SolverError(Status.FAILED, "the optimal dual is positive on rows that are not tight")
    return dual[np.searchsorted(keys, tight)]


def _outside(source: ListedRows, coef: Doubled, inside: IntArray) -> tuple[FloatArray, IntArray]:
    """Return by how much all rows (N,) are violated, and the keys of those outside that are."""
    slacks, sizes = source.slacks_and_terms(coef.high)
    excess = -slacks
    sizes += np.abs(source.pair_cost)
    doubtful = excess > -tolerances.ROUNDING * sizes
    doubtful[inside[inside >= 0]] = False
    keys = np.flatnonzero(doubtful)
    for start in range(0, len(keys), _CHUNK):
        some = keys[start : start + _CHUNK]
        reached = product(source.exact_rows(some), coef)
        excess[some] = subtract(reached, doubled(source.pair_cost[some])).high
    violated = keys[excess[keys] > tolerances.DOUBLED_VIOLATION * sizes[keys]]
    return excess, violated[np.argsort(-excess[violated], kind="stable")[:_MOST_ADDED]]


class NotReachedError(SolverError):
    """No dual on the free rows satisfies the equations of the moments."""


class _FreeRows:
    """Which rows (n,) of a table are free, and a feasible dual (n,), zero on the others.

    The table's rows are divided by their sizes, so the square of a row's size goes with it.
    """

    def __init__(self, table: Tableau, delta: float, until: float | None) -> None:
        self.table, self.delta = table, delta
        self._until = until
        self.dual = doubled(np.zeros(len(table.keys)))
        self.dual.high[table.basis], self.dual.low[table.basis] = table.dual
        self.free = np.zeros(len(table.keys), dtype=np.bool_)
        self.free[table.basis] = ~table.is_unit

    def grow(self) -> None:
        """Take in the rows that the table has got."""
        table = self.table
        n = len(table.keys) - len(self.free)
        self.free = np.append(self.free, np.zeros(n, dtype=np.bool_))
        self.dual = stacked(self.dual, doubled(np.zeros(n)))
        # Rows with a dual of zero replace unit rows, so that the basis spans what all rows span.
        units = table.is_unit
        table.take(np.arange(len(table.keys)))
        self.free[table.basis[units & ~table.is_unit]] = True
        self._weights = doubled(table.size**2)
        self._fresh = np.zeros(len(self.free), dtype=np.bool_)

    def run(self, guess: BoolArray) -> int:
        """Free and fix rows until the dual is optimal; return the number of steps.

        `guess` (n,) are the rows that are violated at the optimum, as far as is known.
        """
        return self._guessed(guess) or self._one_by_one()

    def _guessed(self, guess: BoolArray) -> int:
        """Free all violated rows at once, again and again; return the steps, or 0 if it fails.

        These are Newton steps: there are few of them where the guess is good, but they need not
        come to an end.
        """
        kept = self.free
        self.free = guess & (np.arange(len(guess)) >= self.table.n_columns)
        for step in range(1, _MOST_GUESSES + 1):
            try:
                self._rebase()
            except NotReachedError:
                break
            self._look()
            violated = self.excess > 0.0
            violated[: self.table.n_columns] = False
            if np.array_equal(violated, self.free):
                self.dual = self._wanted()
                return step
            self.free = violated
        self.free = kept
        return 0

    def _one_by_one(self) -> int:
        """Keep the dual feasible, and free or fix a few rows at a time."""
        stalled = 0
        for step in range(_MAX_STEPS):
            self._rebase()
            self._look()
            wanted = self._wanted()
            falling = np.flatnonzero(self.free & (wanted.high < 0.0))
            if len(falling):
                stalled = 0 if self._fix(falling, wanted, first=stalled > STALLED) else stalled + 1
                continue
            self.dual = wanted
            entering = self._entering(stalled)
            if len(entering) == 0:
                return step
            self.free[entering] = True
            self._fresh[:] = False
            self._fresh[entering] = True
        raise SolverError(Status.FAILED, f"no answer after {_MAX_STEPS} steps of the active set")

    def prices(self) -> Doubled:
        """Return the prices (c,) of the table's columns: the coefficients."""
        table = self.table
        cost = doubled(table.cost[table.basis])
        cost = add(cost, self._over_basis(self.violations))
        found = product(table.inverse, cost)
        error = subtract(cost, product(table.rows.at(table.basis), found))
        return add(found, product(table.inverse, error))

    def _rebase(self) -> None:
        """Make the basis of free rows, such that no free row is large as shares of it."""
        table = self.table
        check_time(self._until)
        while True:
            table.refresh_if_old()
            is_fixed = ~self.free[table.basis] & ~table.is_unit
            size = np.abs(table.shares.high) * table.size[:, None] / table.size[table.basis]
            size[~self.free] = size[:, table.is_unit] = size[table.basis] = 0.0
            if is_fixed.any():
                size[:, ~is_fixed] = 0.0
            found = table.largest(size)
            if found is None or (size[found] <= _LARGE and not is_fixed.any()):
                break
            table.pivot(*found)
        if is_fixed.any():
            raise NotReachedError(Status.FAILED, "the free rows do not reach the moments")
        # Unit rows that stay in the basis are shares of nothing.
        self._places = np.flatnonzero(~table.is_unit)
        self._shares = table.shares.at((slice(None), self._places))

    def _look(self) -> None:
        """Find the optimum over the free rows: by how much every row (n,) is violated there."""
        shares, reduced = self._shares.at(self.free), self.table.reduced.at(self.free)
        weighted = multiply(shares, self._weights.at((self.free, None)))
        lines = [
            total(multiply(weighted.at((slice(None), k, None)), shares))
            for k in range(len(self._places))
        ]
        matrix = Doubled(*(np.array(parts) for parts in zip(*lines, strict=True)))
        pull = total(multiply(weighted, reduced.at((slice(None), None))))
        push = multiply(self.table.dual.at(self._places), doubled(np.full(1, self.delta)))
        self.violations = solve_definite(matrix, add(push, pull))
        excess = subtract(product(self._shares, self.violations), self.table.reduced)
        terms = np.abs(self._shares.high) @ np.abs(self.violations.high) + np.abs(
            self.table.reduced.high
        )
        is_real = np.abs(excess.high) > tolerances.DOUBLED_VIOLATION * terms
        self._excess = Doubled(
            np.where(is_real, excess.high, 0.0), np.where(is_real, excess.low, 0.0)
        )

    @property
    def excess(self) -> FloatArray:
        """By how much each row (n,) is violated at the prices, in the table's units."""
        return self._excess.high

    def _wanted(self) -> Doubled:
        """Return the dual (n,) of the optimum over the free rows."""
        found = divide(multiply(self._excess, self._weights), doubled(np.full(1, self.delta)))
        return Doubled(np.where(self.free, found.high, 0.0), np.where(self.free, found.low, 0.0))

    def _fix(self, falling: IntArray, wanted: Doubled, *, first: bool) -> bool:
        """Go towards the wanted dual until a falling row is at zero; return whether it went."""
        early = falling[self._fresh[falling] & (self.dual.high[falling] == 0.0)]
        if len(early):
            self.free[early] = False  # others that were freed with them have taken their part
            return False
        before, after = self.dual.at(falling), wanted.at(falling)
        share = divide(before, subtract(before, after))
        if first:
            leaving = int(np.argmax(share.high == share.high.min()))
        else:
            leaving = int(np.lexsort((after.high, share.high))[0])
        length = share.at(leaving)
        self.dual = add(self.dual, multiply(length, subtract(wanted, self.dual)))
        fixed = ~self.free | (self.dual.high < 0.0)
        fixed[falling[leaving]] = True
        self.dual.high[fixed] = self.dual.low[fixed] = 0.0
        self.free[falling[leaving]] = False
        return bool(length.high > 0.0)

    def _entering(self, stalled: int) -> IntArray:
        """Return the fixed rows that are violated most; after steps without length only one."""
        excess = np.where(self.free, 0.0, self.excess * self.table.size)
        excess[: self.table.n_columns] = 0.0
        some = np.flatnonzero(excess > 0.0)
        if stalled > STALLED:
            return some[:1]
        most = 1 if stalled else len(self._places)
        return some[np.argsort(-excess[some], kind="stable")[:most]]

    def _over_basis(self, values: Doubled) -> Doubled:
        """Return values of the places that are no unit rows over the whole basis (c,)."""
        all_places = doubled(np.zeros(self.table.n_columns))
        all_places.high[self._places], all_places.low[self._places] = values
        return all_places
