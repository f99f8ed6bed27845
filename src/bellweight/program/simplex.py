"""The simplex method with twice the digits, for programs that the solver does not get right.

    max moments' coef   s.t.   rows coef <= cost

is solved in its dual form, min cost' dual s.t. rows' dual = moments, dual >= 0, over a pool of
rows; rows that the answer violates are added until none is left, as in `alp`. The difference is the
arithmetic (`doubled`): bases whose condition number is far beyond 1 / rounding error are still
distinguished from singular ones, so a point mass, a discount near one or nearly dependent functions
do no harm. It is slower than the solver by orders of magnitude, so it is used only where the solver
has failed, and starts from the rows where that stopped.

The rows of the pool stand in a `tableau`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.doubled import Doubled, doubled, matrix_product
from bellweight.common.status import SolverError, Status
from bellweight.program.row_source import RowSource
from bellweight.program.tableau import STALLED, Tableau, power_of_two

MAX_STEPS = 5_000
_MOST_FUNCTIONS = 120


@dataclass(frozen=True, eq=False)
class Vertex:
    """An optimal basis over the functions `columns` (c,), and what it says.

    `coef` (K,) are the coefficients. `rows` are the keys of the basis's Bellman rows and `dual`
    their multipliers; `bounds` are the numbers of its coefficient bounds and `push` theirs.
    `inverse` (c, c) writes rows as shares of the basis's rows, whose multipliers, those of unit
    rows that stand in for missing ones included, are `inner` (c,); `is_row` and `is_unit` tell the
    kinds apart. `pool` are the keys of all rows looked at; `steps` and `passes` count the work.
    """

    coef: Doubled
    rows: IntArray
    dual: FloatArray
    bounds: IntArray
    push: FloatArray
    is_row: BoolArray
    is_unit: BoolArray
    columns: IntArray
    inverse: Doubled
    inner: FloatArray
    pool: IntArray
    steps: int
    passes: int

    def shares(self, rows: Doubled) -> FloatArray:
        """Return rows (n, K) as shares (n, c) of the basis's rows."""
        return matrix_product(rows.at((slice(None), self.columns)), self.inverse).high


class VertexSearch:
    """The simplex method for the rows of a source, over some of the basis functions.

    `bounds` (b, K) are rows that stand beside those of the source, coefficient bounds for example,
    with their costs (b,). `until` is the time (of `time.perf_counter`) at which it gives up.
    """

    def __init__(
        self,
        source: RowSource,
        columns: IntArray,
        bounds: tuple[Doubled, FloatArray] | None = None,
        most_steps: int = MAX_STEPS,
        until: float | None = None,
    ) -> None:
        self.source = source
        self.columns = columns
        self._bounds = bounds or (doubled(np.zeros((0, source.n_basis))), np.zeros(0))
        self._most_steps = most_steps
        self._until = until

    def run(self, moments: Doubled, pool: IntArray, basic: IntArray) -> Vertex:
        """Return the optimal vertex, from a pool of keys, some of which make the first basis."""
        return self._vertex(*self.optimal_table(moments, pool, basic))

    def optimal_table(
        self, moments: Doubled, pool: IntArray, basic: IntArray
    ) -> tuple[Tableau, int, int]:
        """Return the table of the optimal vertex, and how many steps and passes it took."""
        try:
            with np.errstate(over="raise", invalid="raise"):
                return self._optimal_table(moments, pool, basic)
        except FloatingPointError as problem:
            raise SolverError(Status.FAILED, "numbers grew beyond what a double holds") from problem

    def _optimal_table(
        self, moments: Doubled, pool: IntArray, basic: IntArray
    ) -> tuple[Tableau, int, int]:
        table = self._start(moments, pool, basic)
        steps = passes = stalled = 0
        while steps < self._most_steps:
            check_time(self._until)
            table.refresh_if_old()
            entering = table.entering(table.excess(), first=stalled > STALLED)
            if entering is None and table.age > 0:
                table.refresh()
                continue
            if entering is None:
                passes += 1
                if self._extend(table):
                    continue
                if not table.is_short:
                    return table, steps, passes
                self._check_reached(table)
                table.take_as_zero()
                continue
            leaving = table.leaving(entering, first=stalled > STALLED)
            stalled = stalled + 1 if table.dual.high[leaving] == 0.0 else 0
            table.pivot(entering, leaving)
            steps += 1
        raise SolverError(Status.FAILED, f"no answer after {steps} steps of the simplex method")

    def _start(self, moments: Doubled, pool: IntArray, basic: IntArray) -> Tableau:
        rows, cost = self._rows(pool)
        largest = np.abs(rows.high).max(axis=0, initial=0.0)
        unit = power_of_two(largest)
        table = Tableau(moments.at(self.columns), unit)
        limits, limit_cost = self._bounds
        own = limits.at((slice(None), self.columns))
        table.append(-1 - np.arange(len(limit_cost)), own, limit_cost)
        table.append(pool, rows, cost)
        table.take(np.flatnonzero(np.isin(table.keys, basic)))
        table.age = 0
        return table

    def _rows(self, keys: IntArray) -> tuple[Doubled, FloatArray]:
        exact = self.source.exact_rows(keys).at((slice(None), self.columns))
        return exact, self.source.rows(keys)[1]

    def _extend(self, table: Tableau) -> bool:
        """Add rows that are violated outside the pool; return whether there were any."""
        prices = table.prices()
        unit = (1.0 - self.source.discount) * abs(float(table.moments.high @ prices.high))
        coef = self.over_all(table, prices)
        found = self.source.violated(coef, unit, homogeneous=table.is_short)
        self.append(table, np.setdiff1d(found, table.keys))
        return table.entering(table.excess(), first=False) is not None

    def append(self, table: Tableau, keys: IntArray) -> None:
        """Add the rows of some keys to a table."""
        table.append(keys, *self._rows(keys))

    def _check_reached(self, table: Tableau) -> None:
        """Refuse moments that the rows do not reach, beyond rounding."""
        if table.unreached() > tolerances.REACHED:
            direction = self.over_all(table, table.prices()).high
            raise SolverError(Status.UNBOUNDED, ray_text(self.source.names, direction))

    def over_all(self, table: Tableau, prices: Doubled) -> Doubled:
        """Return prices of the table's columns as coefficients (K,) of all functions."""
        coef = doubled(np.zeros(self.source.n_basis))
        own = prices.scaled(1.0 / table.unit)
        coef.high[self.columns], coef.low[self.columns] = own
        return coef

    def _vertex(self, table: Tableau, steps: int, passes: int) -> Vertex:
        keys, size = table.keys[table.basis], table.size[table.basis]
        inner = table.dual.high / size
        is_row, is_bound = keys >= 0, (keys < 0) & ~table.is_unit
        return Vertex(
            coef=self.over_all(table, table.prices()),
            rows=keys[is_row],
            dual=inner[is_row],
            bounds=-1 - keys[is_bound],
            push=inner[is_bound],
            is_row=is_row,
            is_unit=table.is_unit,
            columns=self.columns,
            inverse=table.inverse.scaled(1.0 / (size * table.unit[:, None])),
            inner=inner,
            pool=table.keys[table.keys >= 0],
            steps=steps,
            passes=passes,
        )


def check_time(until: float | None) -> None:
    """Stop a search whose time, one of `time.perf_counter`, is over."""
    if until is not None and time.perf_counter() >= until:
        raise SolverError(
            Status.TIME_LIMIT, "it ended a linear program that takes twice the digits"
        )


def is_affordable(n_basis: int) -> bool:
    """Return whether a program with this many basis functions can be solved with twice the digits.

    The time grows with their third power.
    """
    return n_basis <= _MOST_FUNCTIONS


def ray_text(names: tuple[str, ...], direction: FloatArray) -> str:
    """Say along which functions an objective grows without limit."""
    leading = np.argsort(-np.abs(direction))[:3]
    terms = ", ".join(f"{names[k]} ({direction[k]:+.2g})" for k in leading if direction[k] != 0.0)
    return f"the objective grows without limit along {terms}"
