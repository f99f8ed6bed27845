"""What the tables of all artefacts share: numbered reasons, long tables, and how cells read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.evaluation.evaluate import Evaluation
from bellweight.reproduce.paper import Printed
from bellweight.reproduce.verdicts import Compared, Verdict, interval, marked, numbered, reasons

STATED = "stated"
"""Stands in place of the paper's number where its text makes a statement without one."""


def judged_table(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[Mapping[str, Any], Verdict | None]],
    notes: Sequence[str] = (),
) -> Table:
    """Return a table with a last column of verdicts, and their reasons numbered in its notes.

    Keys of a row that no column has are left out. A row without a verdict may have a word of its
    own under "verdict".
    """
    judged = list(rows)
    why = reasons(verdict for _, verdict in judged)
    shown = tuple(
        row if verdict is None else {**row, "verdict": marked(verdict, why)}
        for row, verdict in judged
    )
    last = Column("verdict", "verdict", right=False)
    return Table(title, (*columns, last), shown, (*numbered(why), *notes))


def statement_table(compared: Sequence[Compared]) -> Table:
    """Return statements of the paper's text, what holds here, and the verdicts."""
    columns = (
        Column("what", "the paper says", right=False),
        Column("ours", "here", right=False),
    )
    rows = [({"what": entry.what, "ours": entry.ours}, entry.verdict) for entry in compared]
    return judged_table("What the paper's text says, and what holds here", columns, rows)


def long_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows in full precision, with a column for every key that occurs."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return Table(title, tuple(Column(key, key) for key in keys), tuple(rows))


def compared_cost(what: str, ours: str, printed: Printed, verdict: Verdict) -> Compared:
    """Return our cost beside the one that the paper prints."""
    return Compared(what, ours, interval(printed), verdict)


def simulated_cells(simulated: Evaluation | None) -> dict[str, Any]:
    """Return the cells of a simulated cost in a long table."""
    return {
        "simulated": simulated and simulated.mean,
        "simulated_half_width": simulated and simulated.half_width,
        "episodes": simulated and simulated.episodes,
        "seed": simulated and simulated.seed,
    }


def paper_cells(printed: Printed | None) -> dict[str, Any]:
    """Return the cells of a printed cost in a long table."""
    return {
        "paper": printed and printed.mean,
        "paper_half_width": printed and printed.half_width,
    }


def verdict_cells(verdict: Verdict | None) -> dict[str, Any]:
    """Return the cells of a verdict in a long table."""
    return {
        "difference": verdict and verdict.difference,
        "verdict": verdict and verdict.word,
        "reason": verdict and verdict.reason,
    }


def without_simulated(columns: Sequence[Column], simulated: bool) -> list[Column]:
    """Return columns, but for that of simulated costs where nothing was simulated."""
    return [column for column in columns if simulated or column.key != "simulated"]


def ended(iterations: int | None, status: Status | None) -> str | None:
    """Return the number of iterations, and how they ended if they did not converge."""
    if status is None:
        return None
    return f"{iterations}" if status.is_success else f"{iterations} {status.name}"


def money(value: float) -> str:
    """Return a cost to the cent, as the paper prints it."""
    return f"{value:,.2f}"
