"""Coefficients at which every Bellman row holds, proven with the rounding errors counted.

A computed slack differs from the true one by at most gamma times the size of the row's terms,
|cost| + |phi(x)|'|coef| + discount E|phi(next)|'|coef|, whatever the order of the sums and on every
machine (Higham, Accuracy and Stability of Numerical Algorithms, ch. 3). So a row is proven to hold
when

    slack >= gamma * size.

Where plain arithmetic is not enough, slacks are computed with twice the digits. The optimum of a
program, rounded to doubles, does not pass even so: where coefficients are large, rounding them
violates rows by far more than anything is worth. Lowering the constant repairs every row, and is
the answer where it costs nothing. Where it does, the program is solved again with twice the digits,
from the rows that are tight, and its coefficients keep all of them: then next to nothing is left to
repair. Moments are computed from the weights with twice the digits, too. Their rounding, times
large coefficients, makes another program, whose optimum is that of no weights and depends on the
machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import Doubled, add, dot, doubled, multiply
from bellweight.common.status import SolverError
from bellweight.program.all_rows import TabularRows
from bellweight.program.independent_functions import coefficient_bounds
from bellweight.program.precise_optimum import precise_moments
from bellweight.program.simplex import VertexSearch, is_affordable

_UNIT = 2.0**-53
_TWICE = _UNIT**1.7  # a generous bound on rounding with twice the digits
_SPARE = 4.0  # so that the rows also hold when they are evaluated in another way
_MARGIN = 2.0  # on upper bounds of slacks, for the same reason
_SUM = 2.0**-99  # the rounding of one of its terms with twice the digits, more than `verify` allows
_ROUNDINGS = 32  # of a value, besides those of its sums
_OPERATIONS = 8  # in a slack, besides those of its sums
_DOUBLINGS = 60  # of a shift of the constant
_ATTEMPTS = 3  # at solving with a margin
_WIDER = 4.0  # a margin than what was missing
_POOL = 20  # rows for each basis function to begin with


@dataclass(frozen=True, eq=False)
class Repaired:
    """Coefficients (K,) that are proven feasible, and what that took.

    They are `coef`, plus `rest` where that is needed: what rounding to doubles takes from them.
    `value` is their value under the initial distribution, a lower bound on the optimal cost;
    `violation` the largest violation of the coefficients before, and `loss` what the repair took
    from their value; it is negative where coefficients that are far from optimal have gained.
    """

    coef: FloatArray
    value: float
    violation: float
    loss: float
    rest: FloatArray | None = None

    @property
    def precise(self) -> Doubled:
        """The coefficients to twice the digits."""
        return doubled(self.coef) if self.rest is None else Doubled(self.coef, self.rest)


def repaired(
    rows: TabularRows, coef: FloatArray, moments: FloatArray, weights: FloatArray | None = None
) -> Repaired:
    """Return coefficients close to the optimum `coef` for `moments` that are proven feasible.

    `weights` (S,) are those behind the moments, where they are known.
    """
    given = doubled(coef)
    before = _value(rows, given)
    slack, size = _slacks(rows, given)
    if (slack >= _gamma(rows) * size).all():
        found = given
    else:
        found = _mended(rows, given, precise_moments(rows, moments, weights), slack, size)
    value = _value(rows, found)
    return Repaired(
        coef=found.high,
        value=value - _error(rows, found, value),
        violation=max(0.0, -float(slack.min())),
        loss=before - value,
        rest=found.low if found.low.any() else None,
    )


def repaired_values(rows: TabularRows, found: Repaired) -> FloatArray:
    """Return the values (S,) of repaired coefficients, rounded."""
    if found.rest is None:
        return rows.values(found.coef)
    return rows.exact_values(found.precise).high


def largest_value(rows: TabularRows, found: Sequence[Repaired]) -> float:
    """Return a lower bound on the value of the largest of several feasible value functions.

    The values of states are rounded down. Where large terms cancel that takes more than the other
    functions bring, and the best one alone is better.
    """
    sized, share = [rows.values_and_terms(one.coef) for one in found], _gamma(rows)
    together = np.max([values - share * terms for values, terms in sized], axis=0)
    rounding = _UNIT * (len(together) + _OPERATIONS) * float(rows.model.initial @ np.abs(together))
    return max(float(rows.model.initial @ together) - rounding, *(one.value for one in found))


def largest_slacks(rows: TabularRows, coef: Doubled, pairs: IntArray, enough: float) -> FloatArray:
    """Return upper bounds on the slacks of some pairs (n,) at coefficients: rounding is included.

    Where that adds more than `enough`, the slack is computed with twice the digits.
    """
    slack, size = _slacks(rows, coef)
    slack, error = slack[pairs], _MARGIN * _gamma(rows) * size[pairs]
    found = slack + error
    coarse = np.flatnonzero(error > enough)
    exact = rows.exact_slacks(coef, pairs[coarse])
    precise = exact + _UNIT * np.abs(exact) + _MARGIN * _TWICE * size[pairs[coarse]]
    found[coarse] = np.minimum(found[coarse], precise)
    return np.maximum(found, 0.0)


def _mended(
    rows: TabularRows, coef: Doubled, moments: Doubled, slack: FloatArray, size: FloatArray
) -> Doubled:
    """Return the best of two repairs: a shift of the constant, or the program's own optimum.

    `slack` and `size` (N,) are those of the rows at the coefficients, by plain arithmetic.
    """
    ways = [_lowered(rows, coef, _gamma(rows) * size - slack, plain=True)]
    if _takes(rows, coef, ways[0], tolerances.REPAIR_FREE) and is_affordable(rows.n_basis):
        ways.append(_lowered(rows, coef, _missing(rows, coef, plain=False), plain=False))
        ways += _optima(rows, coef, moments, slack, size)
    found = [way for way in ways if way is not None]
    if all(_takes(rows, coef, way, tolerances.SPOILT) for way in found):
        found.append(_below_all_values(rows))  # what is spoilt must not be worse than nothing
    return max(found, key=lambda way: _value(rows, way))


def _optima(
    rows: TabularRows,
    coef: Doubled,
    moments: Doubled,
    slack: FloatArray,
    size: FloatArray,
) -> Iterator[Doubled | None]:
    """Solve the program with twice the digits until a repair takes nothing from the optimum.

    What far rows lack by rounding is little beside the size of their terms, and may be much beside
    their costs. So they are given a margin relative to their size, which costs what the dual pays
    for it, next to nothing, and then the program is solved once more.
    """
    relative = slack / np.where(size > 0.0, size, 1.0)
    pool = np.argsort(relative, kind="stable")[: _POOL * rows.n_basis]
    basic = pool[relative[pool] <= tolerances.TIGHT]
    columns = np.flatnonzero((coef.high != 0.0) | (rows.constant() != 0.0))
    limits, limit_cost = coefficient_bounds(rows.lower, rows.upper)
    narrowed = rows
    for _ in range(_ATTEMPTS):
        search = VertexSearch(narrowed, columns, (doubled(limits), limit_cost))
        try:
            vertex = search.run(moments, pool, basic)
        except SolverError:
            return
        missing = _missing(rows, vertex.coef, plain=False)
        found = _lowered(rows, vertex.coef, missing, plain=False)
        yield found
        if not _takes(rows, vertex.coef, found, tolerances.REPAIR_FREE):
            return
        pool, basic = vertex.pool, vertex.rows
        margin = _WIDER * float((missing / np.where(size > 0.0, size, 1.0)).max())
        narrowed = rows.with_cost(narrowed.pair_cost - margin * size)


def _takes(rows: TabularRows, coef: Doubled, repaired: Doubled | None, share: float) -> bool:
    """Return whether a repair fails, or takes more than a share of the value of coefficients."""
    before = _value(rows, coef)
    most = share * max(abs(before), np.finfo(float).tiny)
    return repaired is None or before - _value(rows, repaired) > most


def _lowered(
    rows: TabularRows, coef: Doubled, missing: FloatArray, *, plain: bool
) -> Doubled | None:
    """Lower the constant until every row is proven; `missing` (N,) is what rows lack of it."""
    most = float(missing.max())
    if most <= 0.0:
        return coef
    return _moved(rows, coef, -rows.constant() / (1.0 - rows.discount), most, plain=plain)


def _moved(
    rows: TabularRows, coef: Doubled, direction: FloatArray, length: float, *, plain: bool
) -> Doubled | None:
    """Go from the coefficients along a direction until every row is proven to hold."""
    is_rounded = not coef.low.any()
    for _ in range(_DOUBLINGS):
        moved = add(coef, multiply(doubled(direction), doubled(np.full(1, length))))
        moved = doubled(moved.high) if is_rounded else moved
        if _missing(rows, moved, plain=plain).max() <= 0.0:
            return moved
        length *= 2.0
    return None


def _below_all_values(rows: TabularRows) -> Doubled:
    """Return a constant below all values."""
    least = min(0.0, float(rows.pair_cost.min())) / (1.0 - rows.discount)
    constant = doubled(least * rows.constant())
    found = _moved(rows, constant, -rows.constant(), abs(least) * 1e-12 + 1e-300, plain=True)
    return constant if found is None else found


def _slacks(rows: TabularRows, coef: Doubled) -> tuple[FloatArray, FloatArray]:
    """Return the slacks (N,) of all rows, and the size (N,) of the terms they are made of."""
    slack, size = rows.slacks_and_terms(coef.high)
    return slack, np.abs(rows.pair_cost) + size


def _missing(rows: TabularRows, coef: Doubled, *, plain: bool) -> FloatArray:
    """Return what each row (N,) lacks to be proven, with twice the digits where it takes them.

    With `plain` it must be proven by plain arithmetic.
    """
    slack, size = _slacks(rows, coef)
    missing = _gamma(rows) * size - slack
    if not plain:
        close = np.flatnonzero(missing > 0.0)
        exact = rows.exact_slacks(coef, close)
        missing[close] = _TWICE * size[close] + _UNIT * np.abs(exact) - exact
    return missing


def _gamma(rows: TabularRows) -> float:
    """Return the bound on the rounding error of a slack, relative to the size of its terms."""
    longest = int(np.diff(rows.model.transition.indptr).max(initial=1))
    n = _SPARE * (rows.n_terms + longest + _OPERATIONS) * _UNIT
    return n / (1.0 - n)


def _value(rows: TabularRows, coef: Doubled) -> float:
    """Return the value of coefficients under the initial distribution, to the last digit."""
    return dot(rows.initial_moments, coef)


def _error(rows: TabularRows, coef: Doubled, value: float) -> float:
    """Return a bound on the rounding error of a value: that of its last digit, and of its terms."""
    initial = rows.model.initial
    terms = float(initial @ rows.value_terms(coef.high))
    n = int(np.count_nonzero(initial)) + rows.n_terms + _ROUNDINGS
    return 2.0 * _UNIT * abs(value) + n * _SUM * terms
