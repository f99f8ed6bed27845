"""The smoothed approximate linear program, with weights that a method chooses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bellweight.backends import Point, Setup, backend_of
from bellweight.common import checks, files
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.plans.relatives.smoothed_program import SmoothedProgram
from bellweight.program import ListedRows
from bellweight.results.result import Result
from bellweight.solve import run_loop
from bellweight.weights.loop import Method, check_method
from bellweight.weights.methods import DIA, Fixed
from bellweight.weights.plan import Plan, SolveSettings


@files.storable("SmoothedALP")
@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedALP(Plan[Result]):
    """The smoothed program of Desai, Farias and Moallemi (2012), with weights from a method.

        max moments' coef   s.t.   (row of (x, a)) coef <= cost + s(x),   s >= 0,
                                   sum_x weights(x) s(x) <= budget.

    The method runs first, on the plain program; its last weights are those of the objective and
    those of the budget. The larger the budget (in units of cost per step), the more violation is
    bought where visits are rare; the lower bound of the result is that of repaired coefficients.
    With a budget of zero the program is the plain one. With any other, a state without weight has
    no price, so its rows are left out.

    Where states cannot be enumerated the sample stands for the weights: every state of
    `SampledRows` has the same share of the budget, so sample from the occupancy that you mean.
    """

    budget: float
    weights: Method = field(default_factory=DIA)

    def __post_init__(self) -> None:
        checks.at_least_zero(self.budget, "budget")
        check_method(self.weights, "weights")

    def run(self, settings: SolveSettings) -> Result:
        """Choose weights, then solve the smoothed program for them; return a `Result`."""
        setup = _setup(settings)
        chosen = run_loop(setup, self.weights, settings)
        point = chosen.outcome.iterate.point
        if self.budget > 0.0:
            rows = setup.listed_rows
            assert rows is not None
            setup = setup.using(SmoothedProgram(rows, self.budget, _shares(rows, setup, point)))
        history = chosen.outcome.history
        found = run_loop(setup, Fixed(), settings, point=point, history=history)
        outcome = replace(found.outcome, target=chosen.outcome.target)
        if not chosen.outcome.status.is_success:
            outcome = replace(outcome, status=chosen.outcome.status)
        seconds = chosen.seconds + found.seconds
        run = replace(found, method=self, outcome=outcome, seconds=seconds)
        return run.result(judge=settings.judge)


def _setup(settings: SolveSettings) -> Setup:
    if not backend_of(settings.model).lists_rows:
        raise ArgumentError(
            "SmoothedALP got a linear model, expected a tabular or an event model: it needs rows "
            "that can be listed; to_tabular() lists them where they are few"
        )
    if settings.regularisation != 0.0:
        raise ArgumentError(
            f"regularisation is {settings.regularisation!r}, expected 0: SmoothedALP has its "
            "budget for violations"
        )
    setup = settings.setup()
    if setup.listed_rows is None:
        raise ArgumentError(
            "SmoothedALP needs rows that are listed, and here they are found one by one or drawn "
            "anew: pass rows=SampledRows(sample_states(model, 5000))"
        )
    return setup


def _shares(rows: ListedRows, setup: Setup, point: Point) -> FloatArray:
    """Return each listed state's share of the budget: its weight, or the same for all."""
    if not setup.is_exact:
        n = len(rows.pair_start) - 1
        return np.full(n, 1.0 / n)
    if point.weights is None:
        raise ArgumentError(
            "the method gives moments only, expected weights on a tabular model: use "
            "Fixed(weights), or DIA()"
        )
    return point.weights
