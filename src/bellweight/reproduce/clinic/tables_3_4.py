"""Tables 3 and 4 of the paper: the small and the large clinic, four ways to choose the weights.

Settings as in the paper: affine value function with non-negative coefficients of the state
variables, start at the initial distribution, step 1, temperature = smoothing_mass = 0.1, costs over
688 steps. Occupancies come from 2,048 episodes of 688 steps.

The program has one of two answers here: values that fall with the day, or the same value in every
state. In the second case ties decide the policy, and its cost is a matter of the tie rule: it is
marked, and the range over several tie rules stands below the table. When the weights cycle, the row
shows the cheapest phase and the notes show all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bellweight.basis import Affine
from bellweight.common import tolerances
from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.evaluation.evaluate import Comparison, Evaluation, compare_ties, evaluate
from bellweight.models import LinearModel
from bellweight.policies import Greedy
from bellweight.problems import scheduling
from bellweight.report.document import plain
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Tell
from bellweight.reproduce.paper import CLINIC_HORIZON, CLINIC_TABLES, Printed, PrintedClinic
from bellweight.reproduce.runs import simulated_cost, solved
from bellweight.reproduce.tables import (
    compared_cost,
    ended,
    judged_table,
    long_table,
    paper_cells,
    verdict_cells,
)
from bellweight.reproduce.times import COMPILING, Time
from bellweight.reproduce.verdicts import Compared, Verdict, interval
from bellweight.simulation import Simulation
from bellweight.solve import Result
from bellweight.weights.loop import Method
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy

OCCUPANCY_EPISODES = 2_048
TIE_EPISODES = 1_000


@dataclass(frozen=True)
class PhaseCost:
    """The cost of one phase of a cycle, and whether ties decide it."""

    cost: float
    half_width: float
    is_constant: bool


@dataclass(frozen=True)
class Row:
    """One method: what it found, in how many seconds, and what the policy costs.

    `columns` and `rounds` are those of pricing; `is_constant` says that ties decide the policy.
    """

    method: str
    status: Status
    iterations: int
    columns: int
    rounds: int
    seconds: float
    paper_seconds: float
    cost: Evaluation
    paper: Printed
    objective: float
    is_constant: bool
    phases: tuple[PhaseCost, ...]
    verdict: Verdict


@dataclass(frozen=True)
class ClinicTable(Reproduction):
    """The rows that are finished, and the costs of the constant value function by tie rule."""

    size: str
    rows_done: tuple[Row, ...]
    ties: Comparison | None
    compile_seconds: float

    @property
    def complete(self) -> bool:
        """Whether all methods and the tie rules are there."""
        return len(self.rows_done) == len(methods()) and self.ties is not None

    def __getitem__(self, method: str) -> Row:
        """Return the row of a method."""
        return next(row for row in self.rows_done if row.method == method)

    def document(self) -> dict[str, Any]:
        return {**plain(self), "notes": list(notes(self))}

    def tables(self) -> tuple[Table, ...]:
        """Return the table of methods with numbered reasons, and the one of tie rules."""
        main = judged_table(
            f"The {self.size} clinic: discounted cost over {CLINIC_HORIZON} steps",
            _COLUMNS,
            [(_shown(row), row.verdict) for row in self.rows_done],
            notes(self),
        )
        if self.ties is None:
            return (main,)
        return main, Table(
            title="The same value in every state: what the tie rule makes of it",
            columns=_TIE_COLUMNS,
            rows=tuple({"rule": rule, "cost": e} for rule, e in self.ties.evaluations.items()),
        )

    def rows(self) -> Table:
        rows = [_long(self.size, row) for row in self.rows_done]
        if self.ties is not None:
            rows += [
                {
                    "size": self.size,
                    "method": "constant value",
                    "tie_rule": rule,
                    "cost": evaluation.mean,
                    "half_width": evaluation.half_width,
                    "episodes": evaluation.episodes,
                }
                for rule, evaluation in self.ties.evaluations.items()
            ]
        return long_table(self.name, rows)

    def compared(self) -> tuple[Compared, ...]:
        return tuple(
            compared_cost(row.method, interval(row.cost), row.paper, row.verdict)
            for row in self.rows_done
        )

    def times(self) -> tuple[Time, ...]:
        """Return the time of each method beside the paper's, and that of compiling."""
        return (
            *(Time(row.method, row.seconds, row.paper_seconds) for row in self.rows_done),
            Time(COMPILING, self.compile_seconds),
        )


def methods() -> dict[str, Method]:
    """Return the methods of the tables by the name of their row."""
    return {
        "Fixed": Fixed(),
        "Random": FromPolicy(),
        "PIA": PIA(),
        "DIA (Random)": DIA(temperature=0.1, smoothing_mass=0.1),
    }


def basis_of(model: LinearModel) -> Affine:
    """Return the affine basis with non-negative coefficients for all state variables."""
    return Affine(lower=np.append(-np.inf, np.zeros(model.dimension)))


def steps(printed: PrintedClinic, settings: Settings, tell: Tell) -> Iterator[ClinicTable]:
    """Compute a table row by row, then the costs of the tie rules."""
    model = scheduling(printed.size)
    tell(COMPILING, 0.0)
    table = ClinicTable(printed.size, (), None, _warm_up(model), settings=settings)
    runs = Runs(model, settings)
    n_steps = len(methods()) + 1
    for place, (label, method) in enumerate(methods().items()):
        tell(label, place / n_steps)
        table = replace(table, rows_done=(*table.rows_done, runs.row(label, method, printed)))
        yield table
    tell("tie rules", (n_steps - 1) / n_steps)
    constant = Greedy(basis=basis_of(model), coef=np.zeros(model.dimension + 1), model=model)
    ties = compare_ties(
        model, constant, TIE_EPISODES, horizon=CLINIC_HORIZON, seed=settings.seed,
        jobs=settings.jobs,
    )  # fmt: skip
    yield replace(table, ties=ties)


ARTEFACTS = tuple(
    Artefact(
        name,
        partial(steps, printed),
        full=Settings(50_000),
        quick=Settings(1_000),
        takes=("episodes", "quick"),
    )
    for name, printed in CLINIC_TABLES.items()
)


class Runs:
    """Solves for each method and evaluates each distinct policy once."""

    def __init__(self, model: LinearModel, settings: Settings) -> None:
        self.model = model
        self.settings = settings
        self._known: list[tuple[np.ndarray[Any, Any], Evaluation]] = []

    def row(self, label: str, method: Method, paper: PrintedClinic) -> Row:
        """Run one method."""
        result = solved(
            self.model, basis_of(self.model), method,
            simulation=Simulation(OCCUPANCY_EPISODES, CLINIC_HORIZON), seed=self.settings.seed,
            jobs=self.settings.jobs,
        )  # fmt: skip
        printed = paper.costs[label]
        cost = self._cost(result)
        phases = tuple(
            PhaseCost(phase.cost.mean, phase.cost.half_width, phase.is_constant)
            for phase in result.phases
        )
        constant = not np.any(
            np.abs(result.coef[1:]) > tolerances.SAME_COST * np.abs(self.model.action_cost).max()
        )
        others = [phase.cost for phase in phases if phase.is_constant]
        return Row(
            method=label,
            status=result.status,
            iterations=len(result.history),
            columns=result.reported.columns or 0,
            rounds=sum(record.passes for record in result.history),
            seconds=result.seconds,
            paper_seconds=paper.seconds[label],
            cost=cost,
            paper=printed,
            objective=result.objective,
            is_constant=constant,
            phases=phases,
            verdict=verdicts.clinic(cost.mean, cost.half_width, printed, constant, others),
        )

    def _cost(self, result: Result) -> Evaluation:
        """Evaluate the policy, unless one with the same coefficients was evaluated before."""
        for coef, known in self._known:
            if np.allclose(coef, result.coef, tolerances.SAME_COST, tolerances.SAME_COST):
                return known
        found = simulated_cost(self.model, result.policy, self.settings, CLINIC_HORIZON)
        self._known.append((result.coef, found))
        return found


def _warm_up(model: LinearModel) -> float:
    """Compile everything once and return the seconds that took."""
    began = time.perf_counter()
    result = solved(model, basis_of(model), DIA(), simulation=Simulation(2, CLINIC_HORIZON))
    evaluate(model, result.policy, 2, horizon=2)
    return time.perf_counter() - began


_COLUMNS = (
    Column("method", "weights", right=False),
    Column("columns", "columns", "{:,}".format),
    Column("cost", "cost", interval),
    Column("paper", "paper", interval),
    Column("ended", "iterations"),
)
_TIE_COLUMNS = (
    Column("rule", "ties go to", right=False),
    Column("cost", "cost", interval),
)


def notes(found: ClinicTable) -> tuple[str, ...]:
    """Return what the numbers show as a whole."""
    texts = []
    for row in found.rows_done:
        if row.phases:
            phases = "; ".join(
                interval(Printed(phase.cost, phase.half_width))
                + (" (constant value, decided by ties)" if phase.is_constant else "")
                for phase in row.phases
            )
            texts.append(f"{row.method} cycles between: {phases}. The row shows the cheapest.")
    texts.append(
        "Ties go to the earliest day, and to waiting rather than a late booking: the rule is part "
        "of every cost here."
    )
    if found.rows_done:
        most = max(row.rounds for row in found.rows_done)
        texts.append(
            f"Every program ends with a pricing round without a violated row (at most {most} "
            "rounds per run). The minimum-norm dual is the one over the generated columns."
        )
        tail = found.rows_done[0].cost.tail_bound
        if tail is not None:
            texts.append(
                f"The costs leave out what comes after step {CLINIC_HORIZON}: for any policy at "
                f"all, at most {tail:,.0f}, a crude bound."
            )
    return tuple(texts)


def _shown(row: Row) -> dict[str, Any]:
    return {**vars(row), "ended": ended(row.iterations, row.status)}


def _long(size: str, row: Row) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "size": size,
        "method": row.method,
        "tie_rule": "model's own",
        "cost": row.cost.mean,
        "half_width": row.cost.half_width,
        "episodes": row.cost.episodes,
        "horizon": row.cost.horizon,
        "tail_bound": row.cost.tail_bound,
        "seed": row.cost.seed,
        **paper_cells(row.paper),
        **verdict_cells(row.verdict),
        "status": row.status.name,
        "iterations": row.iterations,
        "columns": row.columns,
        "rounds": row.rounds,
        "objective": row.objective,
        "is_constant": row.is_constant,
    }
    for number, phase in enumerate(row.phases, start=1):
        numbers[f"phase_{number}_cost"] = phase.cost
        numbers[f"phase_{number}_half_width"] = phase.half_width
        numbers[f"phase_{number}_is_constant"] = phase.is_constant
    return numbers
