"""What a program returns, and how far it is from right, measured on unscaled data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.files import storable
from bellweight.common.status import Status


@storable("Audit")
@dataclass(frozen=True)
class Audit:
    """How far an answer is from feasible and optimal, measured on unscaled data.

    `violation` is the largest Bellman violation in cost units and `relative_violation` the same in
    units of each row's scale; `dual_residual` is the largest relative error of rows' dual =
    moments; `gap` the relative difference of the two objectives.
    """

    violation: float
    relative_violation: float
    dual_residual: float
    gap: float

    @property
    def passed(self) -> bool:
        """Return whether every measure is within its tolerance."""
        return not self.failures

    @property
    def failures(self) -> tuple[str, ...]:
        """What is beyond its tolerance: a sentence for each measure."""
        measures = (
            ("a row is violated by {} of its size", self.relative_violation, "FEASIBILITY"),
            (
                "the dual misses its equations by {} of their terms",
                self.dual_residual,
                "OPTIMALITY",
            ),
            ("the objectives of coefficients and dual differ by {}", self.gap, "OPTIMALITY"),
        )
        return tuple(
            f"{text.format(f'{value:.1e}')} (audit: at most {getattr(tolerances, name):.0e})"
            for text, value, name in measures
            if not value <= getattr(tolerances, name)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """Audited coefficients (K,) for moments (K,), however they were found.

    `passes` counts the looks at all rows, `rounds` the steps of the method, `n_rows` the rows that
    took part. `proven` is off when the last search for violated rows was cut short. `given_up` is
    what the objective would gain from dropped functions, if rounding did not spoil the gain.
    """

    coef: FloatArray
    objective: float
    moments: FloatArray
    audit: Audit
    passes: int
    rounds: int
    n_rows: int
    proven: bool = True
    given_up: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution(Answer):
    """What every program returns: an answer with its dual decided.

    `dual` are its values, all positive, on the rows `keys`, and `dual_residual` says how exactly
    they are optimal. `allows_violations` is on where the program itself lets rows be violated.
    `doubts` say which checks an inaccurate answer has not passed, and what to do.
    """

    status: Status
    keys: IntArray
    dual: FloatArray
    dual_residual: float
    seconds: float
    allows_violations: bool = False
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class OptimalFace(Answer):
    """An optimum of the linear program, and the rows on which all optimal duals live.

    `tight` holds the keys of all rows that are tight at `coef`, and `tight_rows` (t, rank) and
    `bound_rows` (b, rank) those rows and the active coefficient bounds in the program's
    coordinates, with costs `tight_cost` and `bound_cost` and right-hand side `inner_moments`, which
    are made of terms of size `moment_terms`; `dual` (t,) is the basic dual over the tight rows, and
    `unique` says that no other dual is optimal because tight rows and active bounds are
    independent. `columns` are the basis functions that took part, and `cost_unit` is a typical
    cost. `is_late` says that the time limit ended the search with twice the digits.
    """

    tight: IntArray
    tight_rows: Matrix
    tight_cost: FloatArray
    bound_rows: FloatArray
    bound_cost: FloatArray
    inner_moments: FloatArray
    moment_terms: FloatArray
    dual: FloatArray
    unique: bool
    columns: IntArray
    cost_unit: float
    is_late: bool = False


def cost_unit(cost: FloatArray) -> float:
    """Return a typical size of the costs: the median of those that are not zero."""
    sizes = np.abs(cost[cost != 0.0])
    return float(np.median(sizes)) if len(sizes) else 1.0
