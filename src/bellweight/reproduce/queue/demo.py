"""The demonstration: the paper's queue with 50,000 states, solved by every method."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellweight import exact
from bellweight.basis import Polynomial
from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.models import TabularModel
from bellweight.problems import single_queue
from bellweight.report import report
from bellweight.report.document import plain
from bellweight.reproduce.artefact import Tell, ignore
from bellweight.reproduce.queue.runs import methods as queue_methods
from bellweight.solve import Result, solve


@dataclass(frozen=True)
class Row:
    """One method: how it ended, what its policy costs over all time, what it proves."""

    method: str
    status: Status
    iterations: int
    seconds: float
    cost: float
    lower_bound: float


@dataclass(frozen=True)
class Demo:
    """The exact optimum, and what each method found without it."""

    optimal: float
    optimal_seconds: float
    rows: tuple[Row, ...]
    n_states: int
    seconds: float
    results: Mapping[str, Result]

    def loss(self, row: Row) -> float:
        """Return what a row's policy costs above the optimum, in per cent of it."""
        return 100.0 * (row.cost - self.optimal) / self.optimal

    def document(self) -> dict[str, Any]:
        return {
            "problem": "single_queue",
            "initial": "empty",
            "n_states": self.n_states,
            "optimal": self.optimal,
            "optimal_seconds": self.optimal_seconds,
            "methods": [{**plain(row), "loss_percent": self.loss(row)} for row in self.rows],
            "seconds": self.seconds,
        }

    def table(self) -> Table:
        """Return the table to show."""
        best = {"method": "Optimal (exact)", "status": "-", "seconds": self.optimal_seconds,
                "cost": self.optimal, "optimal": self.optimal, "loss": 0.0}  # fmt: skip
        rows = [
            {
                "method": row.method,
                "status": row.status.name,
                "iterations": row.iterations,
                "seconds": row.seconds,
                "cost": row.cost,
                "optimal": self.optimal,
                "loss": self.loss(row),
                "bound": row.lower_bound,
            }
            for row in self.rows
        ]
        title = f"One queue, {self.n_states:,} states, empty at the start; 4 basis functions"
        return Table(title, _COLUMNS, (best, *rows))

    def write_page(self, path: Path) -> None:
        """Write the page that shows all methods side by side."""
        report(
            self.results,
            path,
            optimum=self.optimal,
            title=f"One queue, {self.n_states:,} states, and who chooses the weights",
            about=self.sentences()[:2],
        )

    def sentences(self) -> tuple[str, ...]:
        """Return what was done, what it shows and what to try next, for a newcomer."""
        guessed = [self.loss(row) for row in self.rows if row.method in _BY_HAND]
        chosen = [row for row in self.rows if row.method not in _BY_HAND]
        worst = max(chosen, key=lambda row: row.cost)
        gap = 100.0 * (worst.cost - worst.lower_bound) / worst.cost
        return (
            "A controller picks the service rate of a queue that holds up to "
            f"{self.n_states - 1:,} jobs; each method replaced the {self.n_states:,} unknown "
            "values of that problem by 4 numbers, found by a linear program whose weights say in "
            "which states they must be good.",
            f"Weights set by hand (Fixed) lose {abs(min(guessed)):.2f} % or "
            f"{max(guessed):.0f} % of the optimal cost, which nobody knows beforehand; the "
            f"weights that the other methods chose by themselves lose at most "
            f"{self.loss(worst):.1f} %, and their lower bound of {worst.lower_bound:,.2f} proves, "
            f"without the exact optimum, that no policy is more than {gap:.1f} % cheaper.",
            "Next, start from a full queue, compare with the paper, or solve a model of your own:",
        )


NEXT = (
    "bellweight solve single_queue --method pia --option initial=reverse",
    "bellweight reproduce table1 --exact",
    "bellweight solve FILE.py:FACTORY",
)
"""Commands to try after the demonstration."""

_BY_HAND = ("Fixed 0.9", "Fixed 0.999")
_COLUMNS = (
    Column("method", "method", right=False),
    Column("status", "status", right=False),
    Column("iterations", "iterations"),
    Column("seconds", "seconds", lambda value: f"{value:.2f}"),
    Column("cost", "cost", lambda value: f"{value:,.2f}"),
    Column("optimal", "optimal", lambda value: f"{value:,.2f}"),
    Column("loss", "loss %", lambda value: f"{abs(value):.2f}"),
    Column("bound", "lower bound", lambda value: f"{value:,.2f}"),
)


def run(tell: Tell = ignore) -> Demo:
    """Solve the queue exactly and by every method."""
    began = time.perf_counter()
    model = single_queue(initial="empty")
    tell("exact optimum", 0.0)
    optimal, optimal_seconds = _optimum(model)
    rows: list[Row] = []
    results: dict[str, Result] = {}
    methods = queue_methods(model.n_states)
    for name, method in methods.items():
        tell(name, (1 + len(rows)) / (1 + len(methods)))
        result = results[name] = solve(model, Polynomial(3), method, judge=False)
        assert result.cost is not None
        assert result.lower_bound is not None
        rows.append(
            Row(
                method=name,
                status=result.status,
                iterations=len(result.history),
                seconds=result.seconds,
                cost=result.cost.mean,
                lower_bound=result.lower_bound,
            )
        )
    seconds = time.perf_counter() - began
    return Demo(optimal, optimal_seconds, tuple(rows), model.n_states, seconds, results)


def _optimum(model: TabularModel) -> tuple[float, float]:
    began = time.perf_counter()
    values = exact.optimal(model).values
    return float(model.initial @ values), time.perf_counter() - began
