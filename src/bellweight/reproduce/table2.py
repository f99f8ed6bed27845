"""Table 2 of the paper: the eight-dimensional network, over several samples of constraint states.

The paper draws one sample of 5,000 states. But the sample moves the cost more than the weights do,
so every method runs on several independent samples, with the paper's number of states and with
more. Policies of a sample meet the same random numbers, hence the paired difference to
last-buffer-first is known far better than any cost. Rules of thumb stand beside the methods.

Settings as in the paper: quadratic basis, start at the initial distribution, step 1, occupancies
from 4,000 episodes of 1,379 steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bellweight.common.status import FileError
from bellweight.display import Table as ReportTable
from bellweight.report.document import plain
from bellweight.reproduce import table2_view
from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, ignore
from bellweight.reproduce.folder import check_same, written
from bellweight.reproduce.paper import TABLE2_HORIZON, TABLE2_STATES
from bellweight.reproduce.table2_runs import (
    Choice,
    Run,
    Table2Settings,
    Task,
    Workshop,
    tasks,
    work,
)
from bellweight.reproduce.table2_summary import Summary, summaries
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared
from bellweight.weights.loop import HistoryEntry

EPISODES = Table2Settings().episodes
RESUMES = True
QUICK = Table2Settings(
    episodes=1_000, samples=2, occupancy_episodes=500, choice_episodes=250, max_iterations=6
)
"""A look at the whole table in a minute or two."""

_CANDIDATES = 72  # static priorities


@dataclass(frozen=True)
class Table2(Reproduction):
    """The table, or the rows of it that are finished.

    `tail_bound` is what any policy can cost after the last step.
    """

    runs: tuple[Run, ...]
    settings: Table2Settings
    choice: Choice | None = None
    tail_bound: float | None = None
    compile_seconds: float = 0.0
    seconds: float = 0.0
    name: str = field(default="table2")

    @property
    def complete(self) -> bool:
        """Whether every row is there."""
        return len(self.runs) == len(tasks(self.settings))

    @property
    def progress(self) -> str:
        """How many rows are finished."""
        return f"{len(self.runs)} of {len(tasks(self.settings))}"

    def summaries(self, states: int) -> tuple[Summary, ...]:
        """Return the rows over all samples for one number of states, baselines last."""
        return summaries(self.runs, states, self.settings.episodes)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "horizon": TABLE2_HORIZON,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "tail_bound": self.tail_bound,
            "choice": plain(self.choice),
            "summary": {str(n): plain(self.summaries(n)) for n in self.settings.states},
            "notes": {
                **{str(n): list(table2_view.cost_table(self, n).notes) for n in
                   self.settings.states},
                "all": list(table2_view.general_notes(self)),
            },
            "runs": plain(self.runs),
        }  # fmt: skip

    def tables(self) -> tuple[ReportTable, ...]:
        """Return the costs for each number of states, and how policies were found."""
        costs = [table2_view.cost_table(self, n) for n in self.settings.states]
        return (*costs, table2_view.generation_table(self))

    def rows(self) -> ReportTable:
        """Return all numbers as one long table."""
        return table2_view.long_table(self)

    @property
    def judged_states(self) -> int:
        """The number of states whose rows are compared with the paper's: its own, if it is here."""
        sizes = self.settings.states
        return TABLE2_STATES if TABLE2_STATES in sizes else sizes[0]

    def compared(self) -> tuple[Compared, ...]:
        """Return the verdict on every number that the paper prints."""
        return table2_view.compared(self.summaries(self.judged_states))

    def times(self) -> tuple[Time, ...]:
        """Return the mean time of policy generation, and that of compiling."""
        rows = [row for n in self.settings.states for row in self.summaries(n)]
        return (
            *table2_view.times(rows),
            Time("compiling, or loading what was compiled before", self.compile_seconds),
        )


def settings(wanted: Wanted) -> Table2Settings:
    """Return the settings that the command line asks for."""
    wanted.only("table2", "episodes", "samples", "states", "quick")
    asked = {"episodes": wanted.episodes, "samples": wanted.samples, "states": wanted.states}
    given: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    usual = QUICK if wanted.quick else Table2Settings()
    return replace(usual, **given, seed=wanted.seed, jobs=wanted.jobs, folder=wanted.folder)


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> Table2:
    """Compute the table row by row; `keep` sees it after each row.

    Rows that an earlier run with the same settings left in the settings' folder are not computed
    again.
    """
    assert isinstance(settings, Table2Settings)
    began = time.perf_counter()
    table = _earlier(settings)
    todo = [task for task in tasks(settings) if task not in {run.task for run in table.runs}]
    if not todo:
        return table
    if table.runs:
        keep(table)
        tell(f"{table.progress} rows found in {settings.folder}", 0.0)
    tell("compiling, or loading what was compiled before", 0.0)
    shop = Workshop(settings)
    compiled, tail = shop.warm_up()
    table = replace(table, compile_seconds=max(compiled, table.compile_seconds), tail_bound=tail)
    choosing = 0 if table.choice is not None else _CANDIDATES * settings.choice_episodes
    total, done, before = choosing + sum(work(task, settings) for task in todo), 0.0, table.seconds
    if table.choice is None:
        tell("choosing the best static priority", 0.0)
        table = replace(table, choice=shop.choose_static())
        done += choosing
    for task in todo:
        run = _row(table, shop, task, tell, done / total)
        done += work(task, settings)
        seconds = before + time.perf_counter() - began
        table = replace(table, runs=(*table.runs, run), seconds=seconds)
        keep(table)
    return table


def _row(table: Table2, shop: Workshop, task: Task, tell: Tell, share: float) -> Run:
    assert table.choice is not None
    tell(str(task), share)

    def watch(record: HistoryEntry) -> None:
        tell(f"{task}: iteration {record.iteration + 1}", share)

    return shop.run(task, table.choice, watch)


def _earlier(settings: Table2Settings) -> Table2:
    """Return what an earlier run left in the folder, if its settings are the same."""
    document = written("table2", settings.folder)
    fresh = Table2((), settings)
    if document is None:
        return fresh
    check_same("table2", settings.folder, document, settings)
    try:
        return replace(
            fresh,
            runs=tuple(_run(entry) for entry in document["runs"]),
            choice=None if document["choice"] is None else _choice(document["choice"]),
            tail_bound=document["tail_bound"],
            compile_seconds=float(document["compile_seconds"]),
            seconds=float(document["seconds"]),
        )
    except (KeyError, TypeError, ValueError):
        raise FileError(
            f"{settings.folder}/table2.json is damaged: delete it, or name another folder"
        ) from None


def _run(entry: Mapping[str, Any]) -> Run:
    return Run(**{**entry, "warnings": tuple(entry["warnings"])})


def _choice(entry: Mapping[str, Any]) -> Choice:
    return Choice(**{**entry, "order": tuple(entry["order"])})
