"""Coefficients that the weights do not determine, chosen by even weights on all states.

Weights on a few states need not determine all coefficients: many are optimal, and which of them a
simplex method happens to find depends on rounding, so on the CPU. The optimal ones are those that
satisfy every row, and with equality the rows on which an optimal dual is positive. Among them the
largest values on average over all states are taken: another linear program, whose answer is nearly
always unique. It is solved with twice the digits, from the rows that are tight already.
"""

from __future__ import annotations

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import Doubled, doubled, stacked
from bellweight.common.status import SolverError
from bellweight.program.row_source import RowSource
from bellweight.program.simplex import VertexSearch

_MOST_STEPS = 50  # and this many more for each function: some five are the rule
_MOST_STEPS_EACH = 3


def decided(
    rows: RowSource,
    columns: IntArray,
    bounds: tuple[FloatArray, FloatArray],
    coef: FloatArray,
    tight: IntArray,
    dual: FloatArray,
) -> Doubled | None:
    """Return the coefficients (K,) to take, or None where the optimum is unique.

    `columns` are the functions that take part, `bounds` (b, K) their coefficient bounds with costs
    (b,), and `dual` (t,) is an optimal one on the tight rows at an optimum `coef`.
    """
    held = tight[dual > tolerances.POSITIVE * dual.sum()]
    limits, limit_cost = bounds
    active = limits @ coef >= limit_cost
    if len(held) + active.sum() >= len(columns):
        return None
    even = rows.even_moments
    if even is None:
        return None
    opposed = -stacked(rows.exact_rows(held), doubled(limits[active]))
    opposed_cost = -np.append(rows.rows(held)[1], limit_cost[active])
    both = stacked(doubled(limits), opposed), np.append(limit_cost, opposed_cost)
    try:
        most = _MOST_STEPS + _MOST_STEPS_EACH * len(columns)
        return VertexSearch(rows, columns, both, most).run(even, tight, held).coef
    except SolverError:  # the other answer is optimal, too
        return None
