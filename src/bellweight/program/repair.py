"""Coefficients at which every Bellman row holds, proven with the rounding errors counted.

A computed slack differs from the true one by at most gamma times the size of the row's terms,
|cost| + |phi(x)|'|coef| + discount E|phi(next)|'|coef|, whatever the order of the sums and on every
machine (Higham, Accuracy and Stability of Numerical Algorithms, ch. 3). So a row is proven to hold
when

    slack >= gamma * size.

The optimum of a program does not pass: its tight rows have slack zero, and far rows, whose terms
are huge, may be violated by a rounding error of those. What is missing is relative to the size, so
the program is solved once more with costs less 2 gamma size, from the rows that are tight: its
basis hardly ever changes, and the value falls by what the dual pays for the margin, which is next
to nothing. Where it is not, slacks are computed with twice the digits, and the margin need only
cover the rounding of the coefficients themselves. Lowering the constant also repairs every row, but
lowers the values of all states for one far state; it is used where it costs nothing, and where
there is no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import dot, doubled, product, subtract
from bellweight.common.status import SolverError
from bellweight.program.all_rows import TabularRows
from bellweight.program.independent_functions import coefficient_bounds
from bellweight.program.simplex import VertexSearch, is_affordable

_UNIT = 2.0**-53
_SPARE = 4.0  # so that the rows also hold when they are evaluated in another way
_MARGIN = 2.0  # on upper bounds of slacks, for the same reason
_OPERATIONS = 8  # in a slack, besides those of its sums
_CHUNK = 20_000  # rows taken at a time with twice the digits
_DOUBLINGS = 60  # of a shift of the constant
_ATTEMPTS = 3  # at a margin, each four times as wide
_POOL = 20  # rows for each basis function to begin with


@dataclass(frozen=True, eq=False)
class Repaired:
    """Coefficients (K,) that are proven feasible, and what that took.

    `value` is their value under the initial distribution, a lower bound on the optimal cost;
    `violation` the largest violation of the coefficients before, and `loss` what the repair took
    from their value; it is negative where coefficients that are far from optimal have gained.
    """

    coef: FloatArray
    value: float
    violation: float
    loss: float


def repaired(rows: TabularRows, coef: FloatArray, moments: FloatArray) -> Repaired:
    """Return coefficients close to the optimum `coef` for `moments` that are proven feasible."""
    before = _value(rows, coef)
    slack, size = _slacks(rows, coef)
    proven = bool((slack >= _gamma(rows) * size).all())
    found = coef if proven else _mended(rows, coef, moments, slack, size)
    value = _value(rows, found)
    return Repaired(
        coef=found,
        value=value - _error(rows, found, value),
        violation=max(0.0, -float(slack.min())),
        loss=before - value,
    )


def largest_value(rows: TabularRows, found: Sequence[Repaired]) -> float:
    """Return a lower bound on the value of the largest of several feasible value functions.

    The values of states are rounded down. Where large terms cancel that takes more than the other
    functions bring, and the best one alone is better.
    """
    sized, share = [rows.values_and_terms(one.coef) for one in found], _gamma(rows)
    together = np.max([values - share * terms for values, terms in sized], axis=0)
    rounding = _UNIT * (len(together) + _OPERATIONS) * float(rows.model.initial @ np.abs(together))
    return max(float(rows.model.initial @ together) - rounding, *(one.value for one in found))


def largest_slacks(
    rows: TabularRows, coef: FloatArray, pairs: IntArray, enough: float
) -> FloatArray:
    """Return upper bounds on the slacks of some pairs (n,) at coefficients: rounding is included.

    Where that adds more than `enough`, the slack is computed with twice the digits.
    """
    slack, size = _slacks(rows, coef)
    slack, error = slack[pairs], _MARGIN * _gamma(rows) * size[pairs]
    found = slack + error
    coarse = np.flatnonzero(error > enough)
    for some in np.array_split(coarse, -(-len(coarse) // _CHUNK)) if len(coarse) else []:
        keys = pairs[some]
        exact = subtract(
            doubled(rows.pair_cost[keys]), product(rows.exact_rows(keys), doubled(coef))
        ).high
        precise = exact + _UNIT * np.abs(exact) + _MARGIN * _UNIT**1.7 * size[keys]
        found[some] = np.minimum(found[some], precise)
    return np.maximum(found, 0.0)


def _mended(
    rows: TabularRows, coef: FloatArray, moments: FloatArray, slack: FloatArray, size: FloatArray
) -> FloatArray:
    """Return the better of two repairs: a shift of the constant, or a margin in the program."""
    missing = _gamma(rows) * size - slack
    flat = -rows.constant() / (1.0 - rows.discount)
    shifted = _moved(rows, coef, flat, float(missing.max()))
    before = _value(rows, coef)
    free = tolerances.REPAIR_FREE * max(abs(before), np.finfo(float).tiny)
    if shifted is not None and before - _value(rows, shifted) <= free:
        return shifted
    wide = _with_margin(rows, coef, moments, slack, size, 2.0 * _gamma(rows), _holds)
    if wide is None or before - _value(rows, wide) > tolerances.REPAIR_LITTLE * abs(before):
        size = np.abs(rows.pair_cost) + _row_terms(rows, coef)
        thin = _with_margin(rows, coef, moments, slack, size, 4.0 * _UNIT, _holds_precisely)
    else:
        thin = None
    found = [way for way in (shifted, wide, thin) if way is not None]
    if not any(before - _value(rows, way) <= tolerances.SPOILT * abs(before) for way in found):
        found.append(_below_all_values(rows))  # what is spoilt must not be worse than nothing
    return max(found, key=lambda way: _value(rows, way))


def _with_margin(
    rows: TabularRows,
    coef: FloatArray,
    moments: FloatArray,
    slack: FloatArray,
    size: FloatArray,
    margin: float,
    holds: Callable[[TabularRows, FloatArray], bool],
) -> FloatArray | None:
    """Return the optimum of the program whose rows must hold with a margin, if it is found.

    The margin is relative to the size (N,) of the rows' terms; `holds` tells whether it was enough.
    """
    if not is_affordable(rows.n_basis):
        return None
    relative = slack / np.where(size > 0.0, size, 1.0)
    nearest = np.argsort(relative, kind="stable")[: _POOL * rows.n_basis]
    tight = nearest[relative[nearest] <= tolerances.TIGHT]
    columns = np.flatnonzero((coef != 0.0) | (rows.constant() != 0.0))
    limits, limit_cost = coefficient_bounds(rows.lower, rows.upper)
    for attempt in range(_ATTEMPTS):
        cost = rows.pair_cost - 4.0**attempt * margin * size
        search = VertexSearch(rows.with_cost(cost), columns, (doubled(limits), limit_cost))
        try:
            found = search.run(doubled(moments), nearest, tight).coef.high
        except SolverError:
            return None
        if holds(rows, found):
            return found
    return None


def _moved(
    rows: TabularRows, coef: FloatArray, direction: FloatArray, length: float
) -> FloatArray | None:
    """Go from the coefficients along a direction until every row is proven to hold."""
    for _ in range(_DOUBLINGS):
        moved = coef + length * direction
        if _holds(rows, moved):
            return np.asarray(moved)
        length *= 2.0
    return None


def _below_all_values(rows: TabularRows) -> FloatArray:
    """Return a constant below all values."""
    least = min(0.0, float(rows.pair_cost.min())) / (1.0 - rows.discount)
    found = _moved(rows, least * rows.constant(), -rows.constant(), abs(least) * 1e-12 + 1e-300)
    return least * rows.constant() if found is None else found


def _slacks(rows: TabularRows, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slacks (N,) of all rows, and the size (N,) of the terms they are made of."""
    slack, size = rows.slacks_and_terms(coef)
    return slack, np.abs(rows.pair_cost) + size


def _row_terms(rows: TabularRows, coef: FloatArray) -> FloatArray:
    """Return |rows| |coef| (N,): what the rounding of coefficients moves a slack relative to."""
    chunks = [
        np.arange(start, min(start + _CHUNK, rows.n_pairs))
        for start in range(0, rows.n_pairs, _CHUNK)
    ]
    return np.concatenate([np.asarray(abs(rows.rows(some)[0]) @ np.abs(coef)) for some in chunks])


def _holds(rows: TabularRows, coef: FloatArray) -> bool:
    """Return whether every row is proven to hold by plain arithmetic."""
    slack, size = _slacks(rows, coef)
    return bool((slack >= _gamma(rows) * size).all())


def _holds_precisely(rows: TabularRows, coef: FloatArray) -> bool:
    """Return whether every row is proven to hold, with twice the digits where it takes them."""
    slack, size = _slacks(rows, coef)
    close = np.flatnonzero(slack < _gamma(rows) * size)
    for some in np.array_split(close, -(-len(close) // _CHUNK)) if len(close) else []:
        exact = subtract(
            doubled(rows.pair_cost[some]), product(rows.exact_rows(some), doubled(coef))
        )
        if (exact.high < _UNIT**1.7 * size[some]).any():
            return False
    return True


def _gamma(rows: TabularRows) -> float:
    """Return the bound on the rounding error of a slack, relative to the size of its terms."""
    longest = int(np.diff(rows.model.transition.indptr).max(initial=1))
    n = _SPARE * (rows.n_terms + longest + _OPERATIONS) * _UNIT
    return n / (1.0 - n)


def _value(rows: TabularRows, coef: FloatArray) -> float:
    """Return the value of coefficients under the initial distribution, to the last digit."""
    return dot(rows.initial_moments, doubled(coef))


def _error(rows: TabularRows, coef: FloatArray, value: float) -> float:
    """Return a bound on the rounding error of a value: that of its last digit, and of its terms."""
    terms = float(rows.model.initial @ rows.value_terms(coef))
    return 2.0 * _UNIT * abs(value) + _UNIT**1.9 * terms
