"""Coefficients at which the rows of all states are proven to hold, for models of local parts.

Elimination finds the largest violation in floating-point arithmetic. What is claimed must hold for
real numbers, so every table comes with a bound on its error: a term of a row is a sum of products,
and its computed value differs from the true one by at most gamma_n times the sum of the products'
sizes (Higham, Accuracy and Stability of Numerical Algorithms, ch. 3). The largest sum of (value +
error), plus what rounding can do to the few additions on the way, is a number that no violation
exceeds: of pairs' rows, and of slopes along endless coordinates.

A violation v of pairs' rows is mended by lowering the constant by v / (1 - discount). A slope must
not be positive at all. Where costs grow along every endless coordinate, the coefficients times
1 - s satisfy every slope with room to spare, s times the growth of the cost; an s of rounding size
is enough, and takes that share from the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import dot, doubled
from bellweight.models.local import Table
from bellweight.program.elimination import Order, eliminated
from bellweight.program.local_rows import EliminatedRows
from bellweight.program.local_terms import gamma
from bellweight.program.repair import Repaired

_UNIT = 2.0**-53
_SHRUNK = (0.0, *(10.0**-k for k in range(14, 3, -1)))
_DOUBLINGS = 60  # of the shift of the constant
_ROOM = 8.0  # times the errors along a tail: a verifier's bounds on them may be wider than ours


@dataclass(frozen=True, eq=False)
class Bounds:
    """Numbers that no violation exceeds: of a pair's row, and of a slope along each coordinate."""

    violation: float
    slopes: dict[int, float]

    @property
    def falls(self) -> bool:
        """Whether no violation grows along an endless coordinate."""
        return all(slope <= 0.0 for slope in self.slopes.values())


def violation_bounds(rows: EliminatedRows, coef: FloatArray) -> Bounds:
    """Return proven bounds on the violations at coefficients (K,), over all states."""
    values, errors = rows.tables(coef), rows.error_tables(coef)
    both = list(zip(values, errors, strict=True))
    slopes = {}
    for i in rows.structure.endless:
        own = [_slope_above(value, error, i) for value, error in both if i in value.scope]
        slopes[i] = _largest(own, rows.forbidden_beyond(i), rows.slope_orders[i])
    tables = [_above(value, error) for value, error in both]
    return Bounds(_largest(tables, rows.forbidden, rows.orders[0]), slopes)


def repaired_locally(rows: EliminatedRows, coef: FloatArray) -> Repaired | None:
    """Return coefficients close to `coef` at which all rows are proven to hold, if there are any.

    None where the initial law is not known exactly, or no violation bound along a tail is found.
    """
    if rows.initial_moments is None:
        return None
    before = dot(doubled(rows.initial_moments[0]), doubled(coef))
    first: Bounds | None = None
    for share in _SHRUNK:
        shrunk = (1.0 - share) * coef
        bounds = violation_bounds(rows, shrunk)
        first = first or bounds
        if bounds.falls:
            found = _lowered(rows, shrunk, bounds)
            if found is None:
                return None
            value = initial_value(rows, found)
            return Repaired(
                coef=found,
                value=value,
                violation=max(0.0, first.violation),
                loss=before - value,
            )
    return None


def growing_row(rows: EliminatedRows, coef: FloatArray) -> str:
    """Return where the violation of rows grows fastest along an endless coordinate, in words."""
    tables = rows.tables(coef)
    worst: tuple[float, int, IntArray] | None = None
    for i in rows.structure.endless:
        found = eliminated(rows.slope_tables(tables, i), rows.slope_orders[i])
        slope = float(found.values.max())
        if worst is None or slope > worst[0]:
            point = found.points(np.array([found.values.argmax()]), len(rows.sizes))
            point[0, i] = rows.sizes[i] - 2
            worst = slope, i, point
    assert worst is not None
    slope, i, point = worst
    d = rows.structure.dimension
    action = int(rows.structure.actions(point[:, d:])[0])
    named = f"action {action} ({rows.model.label(action)})"
    return (
        f"from state {point[0, :d].tolist()} on with {named}, each further unit of x{i + 1} adds "
        f"{slope:.6g}"
    )


def initial_value(rows: EliminatedRows, coef: FloatArray) -> float:
    """Return a number that the value under the initial law is proven not to be below."""
    assert rows.initial_moments is not None
    moments, error = rows.initial_moments
    value = dot(doubled(moments), doubled(coef))
    spread = float(error @ np.abs(coef)) + _UNIT**1.5 * float(np.abs(moments) @ np.abs(coef))
    return value - (1.0 + 1e-6) * spread - 4.0 * _UNIT * abs(value)


def _lowered(rows: EliminatedRows, coef: FloatArray, bounds: Bounds) -> FloatArray | None:
    """Lower the constant until every row is proven to hold."""
    length = max(bounds.violation, 0.0) / (1.0 - rows.discount)
    for _ in range(_DOUBLINGS):
        if bounds.violation <= 0.0 and bounds.falls:
            return coef
        length = max(length, _UNIT * float(np.abs(coef).max()))
        moved = coef - length * rows.constant()
        bounds = violation_bounds(rows, moved)
        if bounds.violation <= 0.0 and bounds.falls:
            return moved
        length *= 2.0
    return None


def _above(values: Table, errors: Table) -> Table:
    """Return the table of values that the true ones do not exceed."""
    return Table(
        values.scope, values.values + (errors.values + 2.0 * _UNIT * np.abs(values.values))
    )


def _slope_above(values: Table, errors: Table, coordinate: int) -> Table:
    """Return the same for the difference of the last two values along a coordinate, with room."""
    last, before = values.at_end(coordinate), values.at_end(coordinate, -2)
    spread = errors.at_end(coordinate).values + errors.at_end(coordinate, -2).values
    spread = spread + 2.0 * _UNIT * (np.abs(last.values) + np.abs(before.values))
    slope = values.slope(coordinate)
    return Table(slope.scope, slope.values + _ROOM * spread)


def _largest(tables: list[Table], forbidden: list[Table], order: Order) -> float:
    """Return a number that the largest sum of tables does not exceed, additions included."""
    found = float(eliminated([*tables, *forbidden], order).values.max())
    size = sum(float(np.abs(table.values).max()) for table in tables)
    return found + gamma(len(tables) + 2) * size
