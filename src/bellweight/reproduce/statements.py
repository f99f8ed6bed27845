"""What the paper says, ours beside it, and the verdict, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from bellweight.display import Column, Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.verdicts import Compared

STATED = "stated"
"""Stands in place of the paper's number where its text makes a statement without one."""


def statement_table(compared: Sequence[Compared]) -> Table:
    """Return statements of the paper's text, what holds here, and the verdicts."""
    reasons = verdicts.reasons(entry.verdict for entry in compared)
    return Table(
        title="What the paper's text says, and what holds here",
        columns=(
            Column("what", "the paper says", right=False),
            Column("ours", "here", right=False),
            Column("verdict", "verdict", right=False),
        ),
        rows=tuple(
            {"what": e.what, "ours": e.ours, "verdict": verdicts.marked(e.verdict, reasons)}
            for e in compared
        ),
        notes=verdicts.numbered(reasons),
    )
