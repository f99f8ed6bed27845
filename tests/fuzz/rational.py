"""Linear programs in exact arithmetic: every float is a fraction, and pivots keep integers.

    min cost' lambda   s.t.   columns' lambda = moments,   lambda >= 0

with one column (K,) for each Bellman row. The basis inverse is kept as integers: `adjugate` and
`determinant` with B^-1 = adjugate / determinant; a pivot divides without remainder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.object_]
Floats = NDArray[np.float64]

_MAX_PIVOTS = 2_000
_MAX_GROWTH = 60
_BITS = 240
_STALLED = 30  # pivots without progress after which the lowest index is taken, which cannot cycle


class UndecidedError(Exception):
    """The reference did not come to an end."""


class UnreachableError(UndecidedError):
    """No dual has these moments: the program is unbounded."""


def fractions(numbers: Any) -> list[Fraction]:
    """Return floats as the fractions that they are."""
    return [Fraction(float(number)) for number in np.ravel(numbers)]


def integers(numbers: Any) -> tuple[Integers, int]:
    """Return an array of floats as integers and the power of two that they were multiplied by."""
    array = np.asarray(numbers, dtype=np.float64)
    ratios = [float(number).as_integer_ratio() for number in array.ravel()]
    scale = max((down for _, down in ratios), default=1)
    whole = np.empty(len(ratios), dtype=object)
    whole[:] = [up * (scale // down) for up, down in ratios]
    return whole.reshape(array.shape), scale


@dataclass(frozen=True, eq=False)
class Rows:
    """Bellman rows as integers: `columns` (N, K), each function multiplied by its `scales` (K,)."""

    columns: Integers
    scales: tuple[Fraction, ...]
    cost: Integers
    cost_scale: int


def bellman_rows(model: Any, features: Floats) -> Rows:
    """Return the rows features(state) - discount E[features(next)] and costs of every pair."""
    n_basis = features.shape[1]
    scaled = [integers(features[:, k]) for k in range(n_basis)]
    table = np.column_stack([column for column, _ in scaled])
    discount, below = integers([model.discount])
    chances, shared = integers(model.transition.data)
    start, reached = model.transition.indptr, model.transition.indices
    columns = table[model.pair_state] * (below * shared)
    for pair in range(model.n_pairs):
        span = slice(start[pair], start[pair + 1])
        if start[pair] < start[pair + 1]:
            columns[pair] -= discount[0] * (chances[span] @ table[reached[span]])
    cost, cost_scale = integers(model.cost)
    scales = tuple(Fraction(scale * below * shared) for _, scale in scaled)
    return Rows(columns, scales, cost, cost_scale)


def moments_of(features: Floats, weights: Floats) -> list[Fraction]:
    """Return the moments (K,) of weights (S,), without rounding."""
    mass, shared = integers(weights)
    found = []
    for k in range(features.shape[1]):
        column, scale = integers(features[:, k])
        found.append(Fraction(int(mass @ column), shared * scale))
    return found


@dataclass(frozen=True, eq=False)
class Exact:
    """The optimum: `objective`, coefficients (K,), the dual on its basis, the rows tight there.

    `basis` lists K positions; -1 stands for an equation that others imply. `level` and `spread`
    are integers over one `determinant`: basic values + spread (K, t) values of the other tight rows
    = level, which is multiplied by `shared` too.
    """

    objective: Fraction
    coef: list[Fraction]
    basis: list[int]
    level: Integers
    others: list[int]
    spread: Integers
    determinant: int
    shared: int
    size: Fraction


class _Simplex:
    """A basis and its inverse in integers."""

    def __init__(self, columns: Integers, moments: Integers) -> None:
        n, k = columns.shape
        signs = np.array([1 if moment >= 0 else -1 for moment in moments], dtype=object)
        eye = np.zeros((k, k), dtype=object)
        eye[np.arange(k), np.arange(k)] = signs
        self.n_rows = n
        self.columns = np.vstack([columns, eye])
        self.moments = moments
        self.basis = list(range(n, n + k))
        self.adjugate = eye.copy()
        self.determinant = 1

    @property
    def level(self) -> Integers:
        """The basic variables, times the determinant."""
        return self.adjugate @ self.moments

    def direction(self, entering: int) -> Integers:
        return self.adjugate @ self.columns[entering]

    def pivot(self, place: int, entering: int, direction: Integers) -> None:
        pivot, row = direction[place], self.adjugate[place].copy()
        table = (self.adjugate * pivot - np.outer(direction, row)) // self.determinant
        table[place] = row
        sign = 1 if pivot > 0 else -1
        self.adjugate, self.determinant = table * sign, pivot * sign
        self.basis[place] = entering

    def crash(self, wanted: list[int]) -> bool:
        """Bring columns into the basis in place of artificial ones; say whether it is feasible."""
        for entering in wanted:
            direction = self.direction(entering)
            places = [p for p, b in enumerate(self.basis) if b >= self.n_rows and direction[p] != 0]
            if places:
                place = max(places, key=lambda p: abs(direction[p]))
                self.pivot(place, entering, direction)
        level = self.level
        artificial = [level[p] for p, b in enumerate(self.basis) if b >= self.n_rows]
        return bool(min(level) >= 0) and not any(artificial)

    def minimise(self, cost: Integers) -> None:
        """Pivot until no column lowers the cost (N + K,)."""
        stalled = 0
        for _ in range(_MAX_PIVOTS):
            prices = cost[self.basis] @ self.adjugate
            reduced = cost[: self.n_rows] * self.determinant - self.columns[: self.n_rows] @ prices
            if min(reduced) >= 0:
                return
            if stalled < _STALLED:
                entering = int(np.argmin(reduced))
            else:
                entering = next(j for j, value in enumerate(reduced) if value < 0)
            direction, level = self.direction(entering), self.level
            place = self._leaving(direction, level)
            stalled = stalled + 1 if level[place] == 0 else 0
            self.pivot(place, entering, direction)
        raise UndecidedError("exact simplex: too many pivots")

    def _leaving(self, direction: Integers, level: Integers) -> int:
        # An artificial variable at zero must stay there: it leaves at once.
        for place, basic in enumerate(self.basis):
            if basic >= self.n_rows and direction[place] != 0 and level[place] == 0:
                return place
        places = [p for p, d in enumerate(direction) if d > 0]
        if not places:
            raise UndecidedError("exact simplex: unbounded, which cannot be")
        return min(places, key=lambda p: (Fraction(level[p], direction[p]), self.basis[p]))

    def drive_out(self) -> None:
        """Replace artificial variables at zero; those that stay belong to implied equations."""
        for place, basic in enumerate(self.basis):
            if basic < self.n_rows:
                continue
            across = self.columns[: self.n_rows] @ self.adjugate[place]
            entering = next((j for j, value in enumerate(across) if value != 0), None)
            if entering is not None:
                self.pivot(place, entering, self.direction(entering))


def solve(rows: Rows, moments: list[Fraction], likely: list[int] | None = None) -> Exact:
    """Return the exact optimum; `likely` lists rows, those likely to be in its basis first.

    With it the program is solved on some rows, and grows by others that turn out to be violated.
    """
    if not likely:
        return _solve(rows, moments, None)
    n_basis = rows.columns.shape[1]
    chosen = likely[: max(20 * n_basis, 200)]
    wanted = list(range(min(3 * n_basis, len(chosen))))
    for _ in range(_MAX_GROWTH):
        part = Rows(rows.columns[chosen], rows.scales, rows.cost[chosen], rows.cost_scale)
        try:
            found = _solve(part, moments, wanted)
        except UndecidedError:
            return _solve(rows, moments, None)
        reduced = _reduced(rows, found)
        inside = set(chosen)
        order = sorted((j for j, v in enumerate(reduced) if v <= 0 and j not in inside),
                       key=lambda j: reduced[j])  # fmt: skip
        if not order:
            return replace(
                found,
                basis=[b if b < 0 else chosen[b] for b in found.basis],
                others=[chosen[j] for j in found.others],
            )
        wanted = [b for b in found.basis if b >= 0]
        chosen = chosen + order[:500]
    raise UndecidedError("exact simplex: the program did not stop growing")


def _reduced(rows: Rows, found: Exact) -> Integers:
    """Return the slack of every row at coefficients, times a positive number."""
    inner = [c / scale * rows.cost_scale for c, scale in zip(found.coef, rows.scales, strict=True)]
    shared = lcm(*(price.denominator for price in inner))
    prices = np.array([int(price * shared) for price in inner], dtype=object)
    return rows.cost * shared - rows.columns @ prices


def _solve(rows: Rows, moments: list[Fraction], wanted: list[int] | None) -> Exact:
    scaled = [moment * scale for moment, scale in zip(moments, rows.scales, strict=True)]
    shared = max(value.denominator for value in scaled)
    right = np.array([int(value * shared) for value in scaled], dtype=object)
    n, k = rows.columns.shape
    none = np.zeros(n + k, dtype=object)
    simplex = _Simplex(rows.columns, right)
    if wanted is None or not simplex.crash(wanted):
        simplex = _Simplex(rows.columns, right)
        first = none.copy()
        first[n:] = 1
        simplex.minimise(first)
        left = [v for v, b in zip(simplex.level, simplex.basis, strict=True) if b >= n]
        if any(left):
            raise UnreachableError("exact simplex: the moments cannot be reached")
    simplex.drive_out()
    cost = none.copy()
    cost[:n] = rows.cost
    simplex.minimise(cost)
    return _told(simplex, rows, cost, shared)


def _told(simplex: _Simplex, rows: Rows, cost: Integers, shared: int) -> Exact:
    n, determinant = simplex.n_rows, simplex.determinant
    prices = cost[simplex.basis] @ simplex.adjugate
    reduced = rows.cost * determinant - rows.columns @ prices
    inside = set(simplex.basis)
    others = [j for j, value in enumerate(reduced) if value == 0 and j not in inside]
    level = [Fraction(value, determinant * shared) for value in simplex.level]
    costs = [Fraction(cost[b], rows.cost_scale) for b in simplex.basis]
    across = simplex.adjugate @ rows.columns[others].T
    return Exact(
        objective=sum((c * v for c, v in zip(costs, level, strict=True)), Fraction(0)),
        coef=[
            Fraction(price, determinant * rows.cost_scale) * scale
            for price, scale in zip(prices, rows.scales, strict=True)
        ],
        basis=[b if b < n else -1 for b in simplex.basis],
        level=simplex.level,
        others=others,
        spread=across,
        determinant=determinant,
        shared=shared,
        size=sum((abs(c) * v for c, v in zip(costs, level, strict=True)), Fraction(0)),
    )


def least_norm(found: Exact, limit: int = 40) -> dict[int, Fraction]:
    """Return the optimal dual of smallest Euclidean norm, by an active-set method.

    Which rows are tight is known exactly; their equations are then rounded to `_BITS` bits, or
    numbers would grow without need. The working set holds variables that are fixed at zero; the
    others satisfy the equations with independent columns, because the first ones are a basis.
    """
    kept = [place for place, basic in enumerate(found.basis) if basic >= 0]
    keys = [found.basis[place] for place in kept] + found.others
    if len(found.others) > limit:
        raise UndecidedError(f"minimum norm: {len(found.others)} rows to choose from")
    one, small = 1 << _BITS, Fraction(1, 1 << (_BITS // 2))
    eye = np.zeros((len(kept), len(kept)), dtype=object)
    eye[np.arange(len(kept)), np.arange(len(kept))] = one
    table = np.hstack([eye, found.spread[kept] * one // found.determinant])
    right = found.level[kept] * one // (found.determinant * found.shared)
    values = [Fraction(int(value), one) for value in right]
    values += [Fraction(0)] * len(found.others)
    free = list(range(len(kept)))
    for _ in range(50 * len(keys) + 50):
        prices, below = _solved(table[:, free] @ table[:, free].T, right)
        pulls = prices @ table
        wanted = [Fraction(0)] * len(keys)
        for j in free:
            wanted[j] = Fraction(int(pulls[j]), below)
        blocking = [
            (values[j] / (values[j] - wanted[j]), j)
            for j in free
            if wanted[j] < -small and values[j] > wanted[j]
        ]
        if blocking:
            share, leaving = min(blocking)
            values = [v + share * (w - v) for v, w in zip(values, wanted, strict=True)]
            values[leaving] = Fraction(0)
            free.remove(leaving)
            continue
        values = wanted
        pulled = (j for j, p in enumerate(pulls) if p > small * below and j not in free)
        entering = next(pulled, None)
        if entering is None:
            return {key: value for key, value in zip(keys, values, strict=True) if value > 0}
        free = sorted([*free, entering])
    raise UndecidedError("minimum norm: too many steps")


def _solved(matrix: Integers, right: Integers) -> tuple[Integers, int]:
    """Return numerators and the positive denominator of a system's solution, in integers."""
    n = len(right)
    work = np.hstack([matrix, right[:, None]])
    before = 1
    for k in range(n):
        place = next((i for i in range(k, n) if work[i, k] != 0), None)
        if place is None:
            raise UndecidedError("minimum norm: a singular system")
        if place != k:
            work[[k, place]] = work[[place, k]]
        row, column, pivot = work[k].copy(), work[:, k].copy(), work[k, k]
        # Every division is without remainder.
        work = (work * pivot - np.outer(column, row)) // before
        work[k] = row
        before = pivot
    sign = 1 if before > 0 else -1
    return work[:, n] * sign, before * sign
