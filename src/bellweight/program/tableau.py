"""The tableau of the simplex method with twice the digits (`simplex`).

It writes every row as shares of the rows of the basis. A difference that is rounding beside the
numbers it is the difference of is zero, entry by entry, so what is zero stays zero: the entries of
a dual may differ by fifty orders of magnitude. Where the dual of a basis is not feasible the sum of
what is missing is brought down first.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    stacked,
    subtract,
)
from bellweight.common.status import SolverError, Status

STALLED = 30
"""Steps that change nothing before the first candidates are taken, not the best."""

_REFRESH = 100  # steps after which the tableau is computed afresh: its errors add up


class Tableau:
    """Rows as shares (n, c) of the basis's rows, the basis's dual (c,), and reduced costs (n,).

    The first c rows are unit rows, one for each column; they make the first basis. Columns are
    scaled by `unit` (c,) and rows by `size` (n,), powers of two.
    """

    def __init__(self, moments: Doubled, unit: FloatArray) -> None:
        n = len(unit)
        self.unit = unit
        self.n_columns = n
        self.moments = moments.scaled(1.0 / unit)
        self.keys = np.full(n, np.iinfo(np.int64).min)
        self.size = np.ones(n)
        self.rows = doubled(np.eye(n))
        self.cost = np.zeros(n)
        self._reset()

    def _reset(self) -> None:
        """Take the unit rows as basis."""
        n = self.n_columns
        self.basis = np.arange(n)
        self.shares = Doubled(self.rows.high.copy(), self.rows.low.copy())
        self.reduced = doubled(self.cost.copy())
        self.dual = Doubled(self.moments.high.copy(), self.moments.low.copy())
        self._as_zero = np.zeros(n, dtype=np.bool_)
        self.age = 0  # steps since the tableau was computed from the rows

    def refresh(self) -> None:
        """Compute the tableau of the basis again from the rows."""
        basis, units = self.basis[~self.is_unit], self.basis[self.is_unit]
        as_zero = self.basis[self._as_zero]
        zero = self.basis[self.dual.high == 0.0]
        self._reset()
        self.take(basis, units)
        self._as_zero = np.isin(self.basis, as_zero)
        still = np.isin(self.basis, zero)  # what steps of length zero have left there is zero
        # So is what seems to be missing, but is rounding: otherwise the search goes in circles.
        terms = np.abs(self.moments.high) @ np.abs(self.inverse.high)
        still |= self.short & (np.abs(self.dual.high) <= tolerances.DOUBLED_SUM * terms)
        self.dual.high[still] = self.dual.low[still] = 0.0
        self.age = 0

    def refresh_if_old(self) -> None:
        """Compute the tableau afresh after many steps."""
        if self.age >= _REFRESH:
            self.refresh()

    def append(self, keys: IntArray, rows: Doubled, cost: FloatArray) -> None:
        """Add rows (n, c) with their costs (n,)."""
        if len(keys) == 0:
            return
        rows = rows.scaled(1.0 / self.unit)
        size = power_of_two(np.abs(rows.high).max(axis=1))
        rows, cost = rows.scaled(1.0 / size[:, None]), cost / size
        shares, terms = doubled(np.zeros(rows.shape)), np.zeros(rows.shape)
        for k in range(self.n_columns):
            part = multiply(rows.at((slice(None), k, None)), self.shares.at((k, None)))
            shares, terms = add(shares, part), terms + np.abs(part.high)
        shares = _cleaned(shares, terms)
        paid = product(shares, doubled(self.cost[self.basis]))
        sizes = np.abs(shares.high) @ np.abs(self.cost[self.basis]) + np.abs(cost)
        self.shares = stacked(self.shares, shares)
        self.reduced = stacked(self.reduced, _cleaned(subtract(doubled(cost), paid), sizes))
        self.rows = stacked(self.rows, rows)
        self.keys, self.size = np.append(self.keys, keys), np.append(self.size, size)
        self.cost = np.append(self.cost, cost)

    def take(self, candidates: IntArray, staying: Sequence[int] | IntArray = ()) -> None:
        """Bring independent rows into the basis, in place of unit rows other than those staying."""
        unused = np.zeros(len(self.keys), dtype=np.bool_)
        unused[candidates] = True
        while True:
            open_places = self.is_unit & ~np.isin(self.basis, staying)
            size = np.abs(self.shares.high) * unused[:, None] * open_places
            found = self.largest(size)
            if found is None:
                return
            self.pivot(*found)
            unused[found[0]] = False

    def largest(self, sizes: FloatArray) -> tuple[int, int] | None:
        """Return the row and the place of the largest share, by sizes (n, c) that are zero or more.

        None where no share is left but those that are rounding beside their terms: a row that seems
        independent by rounding would make the basis singular.
        """
        row, place = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
        terms = np.abs(self.rows.high[row]) @ np.abs(self.inverse.high[:, place])
        if np.abs(self.shares.high[row, place]) <= tolerances.DOUBLED_ROUNDING * terms:
            terms = np.abs(self.rows.high) @ np.abs(self.inverse.high)
            is_real = np.abs(self.shares.high) > tolerances.DOUBLED_ROUNDING * terms
            sizes = np.where(is_real, sizes, 0.0)
            row, place = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
        return (int(row), int(place)) if sizes[row, place] > 0.0 else None

    @property
    def inverse(self) -> Doubled:
        """The unit rows as shares of the basis: the inverse (c, c) of its matrix."""
        return self.shares.at(slice(self.n_columns))

    @property
    def is_unit(self) -> BoolArray:
        """Which rows of the basis are unit rows, whose dual must be zero."""
        return np.asarray(self.basis < self.n_columns)

    @property
    def short(self) -> BoolArray:
        """Which entries of the dual are not feasible."""
        wrong = np.where(self.is_unit, self.dual.high != 0.0, self.dual.high < 0.0)
        return wrong & ~self._as_zero

    @property
    def is_short(self) -> bool:
        return bool(self.short.any())

    def _missing_cost(self) -> FloatArray:
        """Return the cost (c,) of which the dual's is the sum of what is missing."""
        return np.where(self.short, np.where(self.is_unit, np.sign(self.dual.high), -1.0), 0.0)

    def prices(self) -> Doubled:
        """Return the prices (c,) of the columns: the coefficients, or where the dual is not
        feasible a direction in which the objective grows without limit if no row opposes it.
        """
        cost = self._missing_cost() if self.is_short else self.cost[self.basis]
        found = product(self.inverse, doubled(cost))
        error = subtract(doubled(cost), product(self.rows.at(self.basis), found))
        return add(found, product(self.inverse, error))

    def excess(self) -> FloatArray:
        """Return by how much each row is violated at the prices, zero where it is not clear."""
        if self.is_short:
            cost = self._missing_cost()
            excess = product(self.shares, doubled(cost)).high
            # An entry that is rounding, relative to its terms, does not reduce what is missing.
            terms = np.abs(self.rows.high) @ (np.abs(self.inverse.high) @ np.abs(cost))
        else:
            excess = -self.reduced.high
            terms = np.abs(self.cost) + np.abs(self.shares.high) @ np.abs(self.cost[self.basis])
        excess = np.where(excess > tolerances.DOUBLED_VIOLATION * terms, excess, 0.0)
        excess[: self.n_columns] = 0.0
        excess[self.basis] = 0.0
        return excess

    def entering(self, excess: FloatArray, *, first: bool) -> int | None:
        """Return the row that is violated most for its length in the basis, or the first."""
        some = np.flatnonzero(excess)
        if len(some) == 0:
            return None
        if first:
            return int(some[0])
        largest = np.maximum(1.0, np.abs(self.shares.high[some]).max(axis=1))
        inside = self.shares.high[some] / largest[:, None]  # squares of shares may be too large
        length = largest * np.sqrt(largest**-2.0 + (inside**2).sum(axis=1))
        return int(some[np.argmax(excess[some] / length)])

    def leaving(self, entering: int, *, first: bool) -> int:
        """Return the place of the basis that an entering row takes over: the ratio test."""
        share, value = self.shares.high[entering], self.dual.high
        value = np.where(self._as_zero, 0.0, value)
        falling = np.where(self.short, share * np.sign(value) > 0.0, share > 0.0)
        terms = np.abs(self.rows.high[entering]) @ np.abs(self.inverse.high)
        is_real = np.abs(share) > tolerances.DOUBLED_ROUNDING * terms
        falling |= self.is_unit & (value == 0.0) & is_real
        limited = np.flatnonzero(falling)
        if len(limited) == 0:
            has_bounds = bool((self.keys[self.n_columns :] < 0).any())
            status = Status.INFEASIBLE if has_bounds else Status.FAILED
            raise SolverError(status, "no coefficients were found that satisfy every row")
        with np.errstate(over="ignore"):  # a ratio beyond all numbers is not the smallest
            ratio = np.abs(value[limited] / share[limited])
        least = limited[ratio <= ratio.min() * (1.0 + tolerances.RATIO)]
        if first:
            return int(least[np.argmin(self.basis[least])])
        return int(least[np.argmax(np.abs(share[least]))])

    def pivot(self, entering: int, leaving: int) -> None:
        """Put a row into the basis, at the place of another."""
        share = self.shares.at(entering)
        factor = divide(self.shares.at((slice(None), leaving)), share.at(leaving))
        step = divide(self.dual.at(leaving), share.at(leaving))
        self.reduced = _difference(self.reduced, multiply(factor, self.reduced.at(entering)))
        self.shares = _difference(
            self.shares, multiply(factor.at((slice(None), None)), share.at((None,)))
        )
        self.shares.high[:, leaving], self.shares.low[:, leaving] = factor
        self.dual = _difference(self.dual, multiply(step, share))
        self.dual.high[leaving], self.dual.low[leaving] = step
        self.basis[leaving] = entering
        self._as_zero[leaving] = False
        self.age += 1

    def unreached(self) -> float:
        """Return the largest share of a moment that the feasible part of the dual leaves out."""
        matrix, size = np.abs(self.rows.high[self.basis]), np.abs(self.dual.high)
        terms = matrix.T @ size + np.abs(self.moments.high)
        missing = matrix.T @ (size * self.short)
        return float((missing / np.where(terms > 0.0, terms, 1.0)).max())

    def take_as_zero(self) -> None:
        """Treat what is missing as rounding, that is as zero."""
        short = self.short
        self._as_zero |= short
        self.dual.high[short] = self.dual.low[short] = 0.0


def _difference(x: Doubled, y: Doubled) -> Doubled:
    return _cleaned(subtract(x, y), np.abs(x.high) + np.abs(y.high))


def _cleaned(values: Doubled, terms: FloatArray) -> Doubled:
    """Return values with zeros where rounding of their terms is all there is."""
    real = np.abs(values.high) > tolerances.DOUBLED_ROUNDING * terms
    return Doubled(np.where(real, values.high, 0.0), np.where(real, values.low, 0.0))


def power_of_two(sizes: FloatArray) -> FloatArray:
    """Return the powers of two next to some sizes; one for zero."""
    return np.asarray(np.exp2(np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0)))))
