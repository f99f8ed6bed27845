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
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.basis import Affine
from bellweight.common.status import BellweightWarning, Status
from bellweight.display import Table
from bellweight.evaluation.evaluate import Comparison, Evaluation, compare_ties, evaluate
from bellweight.models import LinearModel
from bellweight.policies import Greedy
from bellweight.problems import scheduling
from bellweight.report.document import plain
from bellweight.reproduce import clinic_view, verdicts
from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, finished, ignore
from bellweight.reproduce.paper import CLINIC_HORIZON, Printed
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared, Verdict, interval
from bellweight.simulation import Simulation
from bellweight.solve import Result, solve
from bellweight.weights.loop import Method
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy

EPISODES = 50_000
OCCUPANCY_EPISODES = 2_048
TIE_EPISODES = 1_000
_QUICK = 1_000


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
    settings: Settings
    compile_seconds: float
    seconds: float
    name: str = "table3"

    @property
    def complete(self) -> bool:
        """Whether all methods and the tie rules are there."""
        return len(self.rows_done) == len(methods()) and self.ties is not None

    def __getitem__(self, method: str) -> Row:
        """Return the row of a method."""
        return next(row for row in self.rows_done if row.method == method)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {**plain(self), "notes": list(clinic_view.notes(self))}

    def tables(self) -> tuple[Table, ...]:
        """Return the table of methods, and the one of tie rules."""
        return clinic_view.tables(self)

    def rows(self) -> Table:
        """Return all numbers as one long table."""
        return clinic_view.long_table(self)

    def compared(self) -> tuple[Compared, ...]:
        """Return the verdict on every cost of the paper's table."""
        return tuple(
            Compared(
                what=row.method,
                ours=interval((row.cost.mean, row.cost.half_width)),
                paper=interval((row.paper.mean, row.paper.half_width)),
                verdict=row.verdict,
            )
            for row in self.rows_done
        )

    def times(self) -> tuple[Time, ...]:
        """Return the time of each method beside the paper's, and that of compiling."""
        return (
            *(Time(row.method, row.seconds, row.paper_seconds) for row in self.rows_done),
            Time("compiling, or loading what was compiled before", self.compile_seconds),
        )


def settings_for(name: str, wanted: Wanted) -> Settings:
    """Return the settings: 50,000 episodes, or as the command line says."""
    wanted.only(name, "episodes", "quick")
    usual = _QUICK if wanted.quick else EPISODES
    return Settings(wanted.episodes or usual, wanted.seed, wanted.jobs)


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


def reproduce_clinic(
    name: str,
    size: str,
    printed: Mapping[str, Printed],
    paper_seconds: Mapping[str, float],
    settings: Settings,
    tell: Tell = ignore,
    keep: Callable[[Reproduction], object] = ignore,
) -> ClinicTable:
    """Compute a table row by row; `keep` sees it after each row."""
    began = time.perf_counter()
    model = scheduling(size)
    tell("compiling, or loading what was compiled before", 0.0)
    table = ClinicTable(size, (), None, settings, _warm_up(model), 0.0, name)
    setup = _Bench(model, settings)
    n_steps = len(methods()) + 1
    for place, (label, method) in enumerate(methods().items()):
        tell(label, place / n_steps)
        row = setup.row(label, method, printed[label], paper_seconds[label])
        table = replace(table, rows_done=(*table.rows_done, row))
        table = replace(table, seconds=time.perf_counter() - began)
        keep(table)
    tell("tie rules", (n_steps - 1) / n_steps)
    constant = Greedy(basis=basis_of(model), coef=np.zeros(model.dimension + 1), model=model)
    ties = compare_ties(
        model, constant, TIE_EPISODES, horizon=CLINIC_HORIZON, seed=settings.seed,
        jobs=settings.jobs,
    )  # fmt: skip
    return replace(table, ties=ties, seconds=time.perf_counter() - began)


class _Bench:
    """Solves for each method and evaluates each distinct policy once."""

    def __init__(self, model: LinearModel, settings: Settings) -> None:
        self.model = model
        self.settings = settings
        self._known: list[tuple[np.ndarray[Any, Any], Evaluation]] = []

    def row(self, label: str, method: Method, printed: Printed, paper_seconds: float) -> Row:
        """Run one method."""
        result = finished(self._solve(method))
        cost = self._cost(result)
        phases = tuple(
            PhaseCost(phase.cost, phase.half_width or 0.0, phase.is_constant)
            for phase in result.phases
        )
        constant = not np.any(np.abs(result.coef[1:]) > 1e-9 * np.abs(self.model.action_cost).max())
        others = [(phase.cost, phase.half_width) for phase in phases if phase.is_constant]
        return Row(
            method=label,
            status=result.status,
            iterations=len(result.history),
            columns=result.reported.columns or 0,
            rounds=sum(record.passes for record in result.history),
            seconds=result.seconds,
            paper_seconds=paper_seconds,
            cost=cost,
            paper=printed,
            objective=result.objective,
            is_constant=constant,
            phases=phases,
            verdict=verdicts.clinic(cost.mean, cost.half_width, printed, constant, others),
        )

    def _solve(self, method: Method) -> Result:
        with warnings.catch_warnings():
            # A constant value function is what these tables show; the row says so itself.
            warnings.simplefilter("ignore", BellweightWarning)
            return solve(
                self.model,
                basis_of(self.model),
                method,
                simulation=Simulation(OCCUPANCY_EPISODES, CLINIC_HORIZON),
                seed=self.settings.seed,
                jobs=self.settings.jobs,
                judge=False,
            )

    def _cost(self, result: Result) -> Evaluation:
        """Evaluate the policy, unless one with the same coefficients was evaluated before."""
        for coef, known in self._known:
            if np.allclose(coef, result.coef, rtol=1e-9, atol=1e-9):
                return known
        found = evaluate(
            self.model, result.policy, self.settings.episodes, horizon=CLINIC_HORIZON,
            seed=self.settings.seed, jobs=self.settings.jobs,
        )  # fmt: skip
        self._known.append((result.coef, found))
        return found


def _warm_up(model: LinearModel) -> float:
    """Compile everything once and return the seconds that took."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BellweightWarning)
        few = Simulation(2, CLINIC_HORIZON)
        result = solve(model, basis_of(model), DIA(), simulation=few, judge=False)
    evaluate(model, result.policy, 2, horizon=2)
    return time.perf_counter() - began
