"""Table 2 of the paper: the eight-dimensional network, over several samples of constraint states.

The paper draws one sample of 5,000 states. But the sample moves the cost more than the weights do,
so every method runs on several independent samples, with the paper's number of states and with
more. Policies of a sample meet the same random numbers, hence the paired difference to
last-buffer-first is known far better than any cost. Rules of thumb stand beside the methods.

Settings as in the paper: quadratic basis, start at the initial distribution, step 1, occupancies
from 4,000 episodes of 1,379 steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bellweight.display import Table as ReportTable
from bellweight.report.document import plain
from bellweight.reproduce import folder
from bellweight.reproduce.artefact import Artefact, Reproduction, Tell
from bellweight.reproduce.network import table2_view
from bellweight.reproduce.network.runs import (
    Choice,
    Run,
    Runner,
    Table2Settings,
    Task,
    tasks,
    work,
)
from bellweight.reproduce.network.summary import Summary, summaries
from bellweight.reproduce.paper import TABLE2_HORIZON, TABLE2_STATES
from bellweight.reproduce.times import COMPILING, Time
from bellweight.reproduce.verdicts import Compared
from bellweight.weights.loop import HistoryEntry

_CANDIDATES = 72  # static priorities


@dataclass(frozen=True)
class Table2(Reproduction):
    """The table, or the rows of it that are finished.

    `tail_bound` is what any policy can cost after the last step.
    """

    runs: tuple[Run, ...]
    choice: Choice | None = None
    tail_bound: float | None = None
    compile_seconds: float = 0.0
    settings: Table2Settings = field(kw_only=True)

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
        return {
            "horizon": TABLE2_HORIZON,
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
        return table2_view.all_rows(self)

    @property
    def judged_states(self) -> int:
        """The number of states whose rows are compared with the paper's: its own, if it is here."""
        sizes = self.settings.states
        return TABLE2_STATES if TABLE2_STATES in sizes else sizes[0]

    def compared(self) -> tuple[Compared, ...]:
        return table2_view.compared(self.summaries(self.judged_states))

    def times(self) -> tuple[Time, ...]:
        """Return the mean time of policy generation, and that of compiling."""
        rows = [row for n in self.settings.states for row in self.summaries(n)]
        return (
            *table2_view.times(rows),
            Time(COMPILING, self.compile_seconds),
        )


def steps(settings: Table2Settings, tell: Tell) -> Iterator[Table2]:
    """Compute the table row by row.

    Rows that an earlier run with the same settings left in the settings' folder are not computed
    again.
    """
    table = _earlier(settings)
    todo = [task for task in tasks(settings) if task not in {run.task for run in table.runs}]
    if table.runs:
        yield table
    if not todo:
        return
    if table.runs:
        tell(f"{table.progress} rows found in {settings.folder}", 0.0)
    tell(COMPILING, 0.0)
    runner = Runner(settings)
    compiled, tail = runner.warm_up()
    table = replace(table, compile_seconds=max(compiled, table.compile_seconds), tail_bound=tail)
    choosing = 0 if table.choice is not None else _CANDIDATES * settings.choice_episodes
    total, done = choosing + sum(work(task, settings) for task in todo), 0.0
    if table.choice is None:
        tell("choosing the best static priority", 0.0)
        table = replace(table, choice=runner.choose_static())
        done += choosing
    for task in todo:
        run = _row(table, runner, task, tell, done / total)
        done += work(task, settings)
        table = replace(table, runs=(*table.runs, run))
        yield table


ARTEFACTS = (
    Artefact(
        "table2",
        steps,
        full=Table2Settings(),
        # A look at the whole table in a minute or two.
        quick=Table2Settings(
            episodes=1_000, samples=2, occupancy_episodes=500, choice_episodes=250, max_iterations=6
        ),
        takes=("episodes", "samples", "states", "quick"),
        resumes=True,
    ),
)


def _row(table: Table2, runner: Runner, task: Task, tell: Tell, share: float) -> Run:
    assert table.choice is not None
    tell(str(task), share)

    def watch(record: HistoryEntry) -> None:
        tell(f"{task}: iteration {record.iteration + 1}", share)

    return runner.run(task, table.choice, watch)


def _earlier(settings: Table2Settings) -> Table2:
    """Return what an earlier run left in the folder, if its settings are the same."""
    document = folder.earlier("table2", settings)
    if document is None:
        return Table2((), settings=settings)
    with folder.reading("table2", settings.folder):
        return Table2(
            runs=tuple(_run(entry) for entry in document["runs"]),
            choice=None if document["choice"] is None else _choice(document["choice"]),
            tail_bound=document["tail_bound"],
            compile_seconds=float(document["compile_seconds"]),
            seconds=float(document["seconds"]),
            settings=settings,
        )


def _run(entry: Mapping[str, Any]) -> Run:
    return Run(**{**entry, "warnings": tuple(entry["warnings"])})


def _choice(entry: Mapping[str, Any]) -> Choice:
    return Choice(**{**entry, "order": tuple(entry["order"])})
