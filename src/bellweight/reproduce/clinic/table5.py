"""Table 5 of the paper: the tiny clinic, solved in full with polynomials of degree one to four.

The model is closed: waiting patients beyond the arrivals' limit are turned away, which leaves 252
states, and everything is exact: the optimum, the cost of each greedy policy over all time and over
the paper's 688 steps, and how much at most is lost (the cost less the approximate value). Costs are
simulated as well, all policies on the same random numbers, so that differences are paired. The
paper has Random and DIA (Random) at degrees one and four; the rest is ours. Settings as in the
paper: start at the initial distribution, step 1, temperature = smoothing_mass = 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight import exact
from bellweight.basis import Polynomial
from bellweight.common.status import Status
from bellweight.display import Table
from bellweight.evaluation.evaluate import Comparison, Difference, Evaluation, compare
from bellweight.models import TabularModel
from bellweight.problems import scheduling
from bellweight.program import AllRows, conditioning
from bellweight.report.document import plain
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Tell
from bellweight.reproduce.clinic import table5_view
from bellweight.reproduce.clinic.tables_3_4 import methods
from bellweight.reproduce.paper import CLINIC_EPISODES, CLINIC_HORIZON, TABLE5, Printed
from bellweight.reproduce.runs import exact_cost, simulated_cost, solved
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared, Verdict
from bellweight.solve import Result

DEGREES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Row:
    """One method at one degree; `paper` and `verdict` are None where the paper has no number.

    `all_time` and `exact` are the exact costs over all time and over 688 steps, `bound` says how
    much over all time is lost at most, and `phases` are the exact costs of a cycle's phases.
    """

    method: str
    all_time: float
    exact: float
    simulated: Evaluation | None
    bound: float
    iterations: int
    status: Status
    phases: tuple[float, ...]
    seconds: float
    paper: Printed | None
    verdict: Verdict | None


@dataclass(frozen=True)
class Gap:
    """The cost of Random minus that of DIA (Random): exact over 688 steps, and simulated, paired.

    `same_policy` says that both act alike in every state; `value_change` is the largest difference
    of their approximate values, relative to the largest value.
    """

    exact: float
    relative: float
    simulated: Difference | None
    same_policy: bool
    value_change: float


@dataclass(frozen=True)
class Part:
    """All methods at one degree, with `n_basis` functions of which `rank` are independent."""

    degree: int
    n_basis: int
    rank: int
    rows: tuple[Row, ...]
    gap: Gap

    def __getitem__(self, method: str) -> Row:
        """Return the row of a method."""
        return next(row for row in self.rows if row.method == method)


@dataclass(frozen=True)
class Optimum:
    """The exact optimum, over all time and over 688 steps, and simulated."""

    all_time: float
    exact: float
    simulated: Evaluation | None


@dataclass(frozen=True)
class Table5(Reproduction):
    """The table, or the degrees of it that are finished."""

    optimum: Optimum
    parts: tuple[Part, ...]

    @property
    def complete(self) -> bool:
        """Whether all degrees are there."""
        return len(self.parts) == len(DEGREES)

    def __getitem__(self, degree: int) -> Part:
        """Return the rows of a degree."""
        return next(part for part in self.parts if part.degree == degree)

    def document(self) -> dict[str, Any]:
        notes = list(table5_view.notes(self))
        return {**plain(self), "horizon": CLINIC_HORIZON, "notes": notes}

    def tables(self) -> tuple[Table, ...]:
        """Return the table of costs, and the one of differences."""
        return table5_view.tables(self)

    def rows(self) -> Table:
        return table5_view.all_rows(self)

    def compared(self) -> tuple[Compared, ...]:
        return table5_view.compared(self)

    def times(self) -> tuple[Time, ...]:
        """Return the time of each method."""
        return tuple(
            Time(f"Degree {part.degree}, {row.method}", row.seconds)
            for part in self.parts
            for row in part.rows
        )


def steps(settings: Settings, tell: Tell) -> Iterator[Table5]:
    """Compute the table degree by degree."""
    tell("the exact optimum", 0.0)
    model = scheduling("tiny").to_tabular(clip=True)
    table = Table5(_optimum(model, settings), (), settings=settings)
    for place, degree in enumerate(DEGREES):
        tell(f"degree {degree}", place / len(DEGREES))
        part = _part(model, degree, table.optimum.exact, settings)
        table = replace(table, parts=(*table.parts, part))
        yield table


ARTEFACTS = (
    Artefact(
        "table5",
        steps,
        full=Settings(CLINIC_EPISODES),
        quick=Settings(1_000),
        takes=("episodes", "exact", "quick"),
    ),
)


def _optimum(model: TabularModel, settings: Settings) -> Optimum:
    policy = exact.optimal(model).policy
    return Optimum(
        exact_cost(model, policy),
        exact_cost(model, policy, CLINIC_HORIZON),
        None
        if settings.episodes is None
        else simulated_cost(model, policy, settings, CLINIC_HORIZON),
    )


def _part(model: TabularModel, degree: int, optimum: float, settings: Settings) -> Part:
    basis = Polynomial(degree)
    rows = AllRows().on(model, basis)
    results = {name: solved(model, basis, method) for name, method in methods().items()}
    simulated = _simulated(model, results, settings)
    printed = TABLE5.get(degree, {})
    return Part(
        degree=degree,
        n_basis=rows.n_basis,
        rank=len(conditioning.independent_columns(rows.span())),
        rows=tuple(
            _row(model, name, result, simulated, printed.get(name), optimum)
            for name, result in results.items()
        ),
        gap=_gap(model, results["Random"], results["DIA (Random)"], simulated),
    )


def _simulated(
    model: TabularModel, results: Mapping[str, Result], settings: Settings
) -> Comparison | None:
    if settings.episodes is None:
        return None
    return compare(
        model,
        {name: result.policy for name, result in results.items()},
        settings.episodes,
        baseline="DIA (Random)",
        horizon=CLINIC_HORIZON,
        seed=settings.seed,
        jobs=settings.jobs,
    )


def _row(
    model: TabularModel,
    name: str,
    result: Result,
    simulated: Comparison | None,
    printed: Printed | None,
    optimum: float,
) -> Row:
    cost = exact_cost(model, result.policy, CLINIC_HORIZON)
    assert result.cost is not None
    assert result.lower_bound is not None
    return Row(
        method=name,
        all_time=result.cost.mean,
        exact=cost,
        simulated=None if simulated is None else simulated.evaluations[name],
        bound=result.cost.mean - result.lower_bound,
        iterations=len(result.history),
        status=result.status,
        phases=tuple(phase.cost.mean for phase in result.phases),
        seconds=result.seconds,
        paper=printed,
        verdict=None if printed is None else verdicts.table5(cost, optimum, printed),
    )


def _gap(model: TabularModel, random: Result, dia: Result, simulated: Comparison | None) -> Gap:
    costs = [exact_cost(model, result.policy, CLINIC_HORIZON) for result in (random, dia)]
    difference = costs[0] - costs[1]
    rows = AllRows().on(model, random.basis)
    values = rows.values(random.coef)
    assert random.policy.table is not None
    assert dia.policy.table is not None
    return Gap(
        exact=difference,
        relative=difference / costs[0],
        simulated=None if simulated is None else simulated.differences["Random"],
        same_policy=np.array_equal(random.policy.table, dia.policy.table),
        value_change=float(np.abs(rows.values(dia.coef) - values).max() / np.abs(values).max()),
    )
