"""The audit: how far an answer of the linear program is from right, on unscaled data.

A solver's "optimal" is no evidence. Violations are measured row by row against

    unit + |cost| + (1 - discount) |value|,   unit = (1 - discount) |objective|,

all costs per step, so the test does not depend on the units of the costs; the equations of the dual
against the sizes of their terms.
"""

from __future__ import annotations

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.doubled import Doubled, add, dot, doubled, product, stacked, subtract
from bellweight.program.row_source import RowSource, Separation
from bellweight.program.solution import Audit, OptimalFace

CORRECTIONS = 3
"""Corrections of a basis's equations with twice the digits: each gains some ten of them."""


class Auditor:
    """Measures answers against all rows of a source and the bounds on its coefficients.

    `bounds` (b, K) are those bounds as rows, `bound_cost` (b,) their costs, and `cost_unit` is a
    typical cost.
    """

    def __init__(
        self, rows: RowSource, bounds: FloatArray, bound_cost: FloatArray, cost_unit: float
    ) -> None:
        self.rows = rows
        self.bounds, self.bound_cost = bounds, bound_cost
        self.cost_unit = cost_unit

    def scan(self, moments: FloatArray, coef: FloatArray) -> Separation:
        """Look at all rows for those that coefficients violate most."""
        unit = (1.0 - self.rows.discount) * abs(float(moments @ coef))
        # If the objective is zero, the costs give the scale.
        rounding = tolerances.ROUNDING / tolerances.FEASIBILITY * self.cost_unit
        return self.rows.separate(coef, unit + rounding)

    def violation(
        self, coef: FloatArray, found: Separation, exact: Doubled | None = None
    ) -> tuple[float, float]:
        """Return the largest violation, in units of cost and relative to the rows' scales.

        `found` is the last look at all rows. `exact` are the coefficients to twice the digits:
        where rows are known as well, what these violate is no rounding.
        """
        close, cost = self.rows.rows(found.close)
        slack = cost - close @ coef
        if (slack < -tolerances.FEASIBILITY * found.close_size).any():
            # Rounding is no violation: neither that of the sum nor that of the coefficients.
            slack = subtract(
                doubled(cost), product(self.rows.exact_rows(found.close), doubled(coef))
            ).high
        rounding = tolerances.ROUNDING / tolerances.FEASIBILITY * (abs(close) @ np.abs(coef))
        # Nor may it pass for rounding that a row is violated by a share of what it is about.
        most = tolerances.SPOILT / tolerances.FEASIBILITY
        rounding = np.minimum(rounding, most * found.close_size)
        relative = slack / (found.close_size + rounding)
        if exact is not None and self.rows.is_complete and exact.low.any():
            left = subtract(doubled(cost), product(self.rows.exact_rows(found.close), exact)).high
            relative = np.minimum(relative, left / found.close_size)
        largest = -float(slack.min())
        if found.proven:
            return max(largest, 0.0), max(0.0, -float(relative.min()))
        return max(found.violation, largest), max(0.0, -float(relative.min()))

    def audit(
        self,
        moments: Doubled,
        coef: Doubled,
        keys: IntArray,
        dual: FloatArray,
        at_bound: FloatArray,
        found: Separation,
        columns: IntArray,
        noise: FloatArray | float = 0.0,
    ) -> Audit:
        """Return how far coefficients and a dual are from feasible and optimal.

        `dual` is that of the rows `keys`, `at_bound` (b,) that of the bounds; `columns` are the
        functions that take part, and `noise` (K,) the scale below which an error of the dual's
        equations is rounding.
        """
        used = dual > 0.0
        raw, cost = self.rows.rows(keys[used])
        size = abs(raw).T @ dual[used] + np.abs(moments.high) + noise
        error = np.abs(raw.T @ dual[used] + self.bounds.T @ at_bound - moments.high)
        objective = dot(moments, coef)
        dual_terms = np.append(cost * dual[used], self.bound_cost * at_bound)
        scale = self._scale(objective, dual_terms, dual)
        relative = error / np.where(size > 0.0, size, 1.0)
        violation, relative_violation = self.violation(coef.high, found, coef)
        return Audit(
            violation=violation,
            relative_violation=relative_violation,
            dual_residual=float(np.max(relative[columns])),
            gap=abs(objective - float(dual_terms.sum())) / scale,
        )

    def scale(self, face: OptimalFace) -> float:
        """Return the size of the terms that make up an objective, a little more than zero."""
        used = face.dual > 0.0
        cost = self.rows.rows(face.tight[used])[1]
        return self._scale(face.objective, cost * face.dual[used], face.dual)

    def _scale(self, objective: float, terms: FloatArray, dual: FloatArray) -> float:
        rounding = tolerances.ROUNDING / tolerances.OPTIMALITY * self.cost_unit * float(dual.sum())
        return max(abs(objective), float(np.abs(terms).sum())) + max(rounding, np.finfo(float).tiny)

    def rounding(self, face: OptimalFace) -> float:
        """Return how much rounding of the rows can change the objective: weighted by the dual."""
        used = face.dual > 0.0
        raw = self.rows.rows(face.tight[used])[0]
        terms = np.asarray(abs(raw) @ np.abs(face.coef))
        return tolerances.COEFFICIENT * float(face.dual[used] @ terms)

    def missed(self, face: OptimalFace, moments: Doubled, columns: IntArray) -> BoolArray:
        """Return which equations (K,) of the dual do not hold by more than rounding.

        The dual is computed with twice the digits from the equations of `columns`. Where these
        hold, only dropped functions are missed; where one does not, the answer may be another.
        """
        used = face.dual > 0.0
        active = self.bounds[self.bounds @ face.coef >= self.bound_cost]
        rows = stacked(self.rows.exact_rows(face.tight[used]), doubled(active)).transposed
        dual = doubled(np.append(face.dual[used], np.zeros(len(active))))
        scale = np.abs(rows.high).max(axis=1, initial=0.0)
        scale = np.where(scale > 0.0, scale, 1.0)
        scaled = rows.high / scale[:, None]
        for _ in range(CORRECTIONS):
            error = subtract(moments, product(rows, dual)).high / scale
            step = np.linalg.lstsq(scaled[columns], error[columns])[0]
            dual = add(dual, doubled(np.asarray(step, dtype=np.float64)))
        size = np.abs(rows.high) @ np.abs(dual.high) + np.abs(moments.high)
        error = np.abs(subtract(moments, product(rows, dual)).high)
        relative = error / np.where(size > 0.0, size, 1.0)
        worst = float(relative[columns].max(initial=0.0))
        # Mass of this share of the dual may be missing where costs are largest.
        unseen = worst * self.rows.largest_cost * float(dual.high.sum())
        if max(worst, unseen / self.scale(face)) > tolerances.OPTIMALITY:
            missed = np.zeros(len(relative), dtype=np.bool_)
            missed[columns] = relative[columns] == worst
            return missed
        are_distinct = self.rows.functions.are_distinct
        allowed = np.where(
            are_distinct, tolerances.MISSED_DISTINCT, tolerances.MISSED + 10.0 * worst
        )
        return np.asarray(relative > allowed)


def is_worse(first: Audit, second: Audit) -> bool:
    """Return whether the first audit is worse than the second."""

    def size(audit: Audit) -> float:
        return max(
            audit.relative_violation / tolerances.FEASIBILITY,
            audit.dual_residual / tolerances.OPTIMALITY,
            audit.gap / tolerances.OPTIMALITY,
        )

    return size(first) > size(second)


def placed(keys: IntArray, basic: IntArray, multipliers: FloatArray) -> FloatArray:
    """Return the dual (n,) of rows with sorted keys from the multipliers of a basis."""
    dual = np.zeros(len(keys))
    dual[np.searchsorted(keys, basic)] = np.maximum(multipliers, 0.0)
    return dual
