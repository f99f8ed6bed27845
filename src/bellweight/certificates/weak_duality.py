"""The least slack of a linear model's rows, bounded from below by plain exact arithmetic.

With an affine value function coef_0 + v' s the slack of a pair z = (s, a) is

    constant + price' z,   price = cost - (v, 0) + discount (next_state, next_action)' v,

and every admissible pair meets row_lower <= rows z <= row_upper and lower <= z <= upper. For any
multipliers y of the rows, with reduced = price - rows' y,

    price' z >= sum_i y_i (row_lower_i if y_i > 0 else row_upper_i)
              + sum_j reduced_j (lower_j if reduced_j > 0 else upper_j).

So multipliers prove a bound, wherever they come from: checking it takes sums only. The bound
holds for all real pairs, so for whole-number ones too. Sums are of exact fractions, so that on a
side without limit a reduced price of zero is distinguished from one just below zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, Matrix
from bellweight.models import LinearModel
from bellweight.program import implied_upper


def least_slack(
    model: LinearModel,
    coef: FloatArray,
    box: tuple[FloatArray, FloatArray],
    multipliers: FloatArray,
) -> float:
    """Return a bound below the slack of every pair with a state in the box; -inf if none is."""
    slope = [Fraction(float(value)) for value in coef[1:]]
    discount = Fraction(model.discount)
    drift = sum((Fraction(float(d)) * v for d, v in zip(model.drift, slope, strict=True)), _ZERO)
    total = Fraction(float(model.constant_cost)) + discount * drift
    total -= (1 - discount) * Fraction(float(coef[0]))
    sides = _sides(model, multipliers)
    total += sum((weight * end for weight, end in sides.values()), _ZERO)
    reduced = _prices(model, slope)
    matrices = (model.state_rows, model.action_rows)
    for matrix, offset in zip(matrices, (0, model.dimension), strict=True):
        for i, j, entry in _entries(matrix):
            if i in sides:
                reduced[offset + j] -= sides[i][0] * entry
    lower, upper = _limits(model, box)
    for price, low, high in zip(reduced, lower, upper, strict=True):
        if price == 0:
            continue
        edge = low if price > 0 else high
        if not np.isfinite(edge):
            return -np.inf
        total += price * Fraction(float(edge))
    return _rounded_down(total)


_ZERO = Fraction(0)


def _sides(model: LinearModel, multipliers: FloatArray) -> dict[int, tuple[Fraction, Fraction]]:
    """Return, by row, its multiplier and the limit that it multiplies, both where they exist."""
    found = {}
    for i, weight in enumerate(multipliers):
        end = float(model.row_lower[i] if weight > 0.0 else model.row_upper[i])
        if weight != 0.0 and np.isfinite(end):
            found[i] = (Fraction(float(weight)), Fraction(end))
    return found


def _prices(model: LinearModel, slope: list[Fraction]) -> list[Fraction]:
    """Return the slack's coefficients of the state and of the action."""
    discount = Fraction(model.discount)
    costs = np.concatenate([model.state_cost, model.action_cost])
    prices = [Fraction(float(value)) for value in costs]
    for k, value in enumerate(slope):
        prices[k] -= value
    for matrix, offset in ((model.next_state, 0), (model.next_action, model.dimension)):
        for i, j, entry in _entries(matrix):
            prices[offset + j] += discount * slope[i] * entry
    return prices


def _limits(
    model: LinearModel, box: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on states and actions, with what single constraints imply where none is."""
    rows = np.hstack([model.state_rows.toarray(), model.action_rows.toarray()])
    lower = np.concatenate([box[0], model.action_lower])
    given = np.concatenate([box[1], model.action_upper])
    implied = implied_upper(rows, model.row_lower, model.row_upper, lower, given)
    outward = implied + tolerances.OUTWARD * (1.0 + np.abs(implied))
    return lower, np.where(np.isinf(given), outward, given)


def _entries(matrix: Matrix) -> Iterator[tuple[int, int, Fraction]]:
    entries = matrix.tocoo()
    for i, j, entry in zip(entries.row, entries.col, entries.data, strict=True):
        yield int(i), int(j), Fraction(float(entry))


def _rounded_down(exact: Fraction) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return -np.inf
    return nearest if Fraction(nearest) <= exact else float(np.nextafter(nearest, -np.inf))
