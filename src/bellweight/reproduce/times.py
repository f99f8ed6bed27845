"""Times on this machine, kept apart from all other numbers: no seed decides them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellweight.display import Column, Table

COMPILING = "compiling, or loading what was compiled before"


@dataclass(frozen=True)
class Time:
    """How long something took, beside the paper's time where the paper prints one."""

    what: str
    seconds: float
    paper_seconds: float | None = None

    @property
    def word(self) -> str | None:
        """`better` where we are faster, else `differs`; None where the paper has no time."""
        if self.paper_seconds is None:
            return None
        return "better" if self.seconds < self.paper_seconds else "differs"

    @property
    def pace(self) -> str | None:
        """How many times faster or slower than the paper's."""
        if self.paper_seconds is None or self.seconds <= 0.0:
            return None
        ratio = self.paper_seconds / self.seconds
        return f"{ratio:,.0f} times faster" if ratio >= 1.0 else f"{1.0 / ratio:,.1f} times slower"


_COLUMNS = (
    Column("artefact", "of", right=False),
    Column("what", "what", right=False),
    Column("seconds", "seconds", "{:,.2f}".format),
    Column("paper", "paper's seconds", "{:,.2f}".format),
    Column("pace", "ratio"),
    Column("verdict", "verdict", right=False),
)
_NOTE = (
    "Seconds are those of choosing the weights on this machine, where not said otherwise, without "
    "compiling; the paper's are those of a cluster node with another solver. That is the reason "
    "wherever they differ."
)


def table(times: Mapping[str, Sequence[Time]]) -> Table:
    """Return the times of several artefacts as one table."""
    rows = tuple(_row(name, time) for name, found in times.items() for time in found)
    shown = _COLUMNS if len(times) > 1 else _COLUMNS[1:]
    has_paper = any(row["paper"] is not None for row in rows)
    columns = [c for c in shown if has_paper or c.key not in ("paper", "pace", "verdict")]
    return Table("Times on this machine", tuple(columns), rows, (_NOTE,) if has_paper else ())


def _row(name: str, time: Time) -> dict[str, Any]:
    return {
        "artefact": name,
        "what": time.what,
        "seconds": time.seconds,
        "paper": time.paper_seconds,
        "pace": time.pace,
        "verdict": time.word,
    }
