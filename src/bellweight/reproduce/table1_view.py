"""How Table 1 is shown: one table for each initial distribution, and one long one for CSV."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, Any

from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.paper import TABLE1_HORIZON
from bellweight.reproduce.verdicts import interval

if TYPE_CHECKING:
    from bellweight.reproduce.table1 import Part, Row

_PRINTED = 0.005  # half a unit of the last digit that the paper prints


def _money(value: float) -> str:
    return f"{value:,.2f}"


_COLUMNS = (
    Column("policy", "policy", right=False),
    Column("exact", "exact", _money),
    Column("simulated", "simulated", interval),
    Column("paper", "paper", interval),
    Column("tail", "tail", lambda value: f"{value:,.3g}" if value < 100 else f"{value:,.0f}"),
    Column("loss", "loss", lambda value: f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}"),
    Column("bound", "loss at most", lambda v: f"{v:,.3g}" if v < 1_000 else f"{v:,.0f}"),
    Column("ended", "iterations"),
    Column("verdict", "verdict", right=False),
)


def table(part: Part) -> Table:
    """Return one column of the paper as a table of its own, with numbered reasons below."""
    reasons = verdicts.reasons(row.verdict for row in part.rows)
    simulated = any(row.simulated is not None for row in part.rows)
    return Table(
        title=f"{part.title}: discounted cost over {TABLE1_HORIZON} steps",
        columns=tuple(c for c in _COLUMNS if simulated or c.key != "simulated"),
        rows=tuple(_shown_row(row, reasons) for row in part.rows),
        notes=(*verdicts.numbered(reasons), *notes(part)),
    )


def long_table(parts: Iterable[Part]) -> Table:
    """Return every number of every column in full precision."""
    rows = tuple(_long_row(part, row) for part in parts for row in part.rows)
    return Table("Table 1", tuple(Column(key, key) for key in rows[0]), rows)


def notes(part: Part) -> tuple[str, ...]:
    """Return what the numbers of one column show as a whole."""
    found = [_ending_note(part), _order_note(part)]
    gaps = [row.paper.mean - row.exact for row in part.rows]
    if part.initial == "geometric":
        found.append(f"The paper's costs are {min(gaps):.2f} to {max(gaps):.2f} above ours.")
    if part.initial == "reverse":
        largest = max(_relative(row) for row in part.rows)
        found.append(
            f"Rate 0.6 in every state costs {part.constant:,.2f}. The largest difference to the "
            f"paper is {100.0 * largest:.1g} % of the cost."
        )
    found.append(
        f"Tail: the cost after step {TABLE1_HORIZON}, which these numbers leave out; at most "
        f"{max(row.tail for row in part.rows):,.4g}."
    )
    found.append(
        "Loss: what the policy costs more than the optimum over all time. Loss at most: what its "
        "certificate proves without knowing the optimum."
    )
    simulated = [row for row in part.rows if row.simulated is not None]
    if simulated:
        inside = sum(_agrees(row) for row in simulated)
        found.append(
            f"{inside} of {len(simulated)} simulated 95 % intervals contain the exact value; all "
            "rows meet the same random numbers."
        )
    return tuple(found)


def same_order(part: Part) -> bool:
    """Return whether our exact costs stand in the order of the paper's, ties included."""
    for one, other in combinations(part.rows, 2):
        ours, theirs = one.exact - other.exact, one.paper.mean - other.paper.mean
        if theirs == 0.0 and abs(ours) > _PRINTED:
            return False
        if theirs != 0.0 and ours * theirs <= 0.0:
            return False
    return True


def _ending_note(part: Part) -> str:
    runs = [row for row in part.rows if row.status is not None]
    stuck = [row.policy for row in runs if row.status is not Status.CONVERGED]
    if stuck:
        return f"Not converged: {', '.join(stuck)}."
    most = max(row.iterations or 0 for row in runs)
    return f"Every method converged, within {most} iterations."


def _order_note(part: Part) -> str:
    if same_order(part):
        return "The policies stand in the paper's order, ties included."
    return "The policies do not all stand in the paper's order: see the differences."


def _relative(row: Row) -> float:
    """Return how far the paper's number is from ours, as a share of ours."""
    return abs(row.paper.mean - row.exact) / abs(row.exact)


def _agrees(row: Row) -> bool:
    return row.simulated is not None and (
        abs(row.simulated.mean - row.exact) <= row.simulated.half_width
    )


def _ended(row: Row) -> str | None:
    if row.status is None:
        return None
    return f"{row.iterations}" if row.status.is_success else f"{row.iterations} {row.status.name}"


def _shown_row(row: Row, reasons: list[str]) -> dict[str, Any]:
    return {
        "policy": row.policy,
        "exact": row.exact,
        "simulated": row.simulated and (row.simulated.mean, row.simulated.half_width),
        "paper": (row.paper.mean, row.paper.half_width),
        "tail": row.tail,
        "loss": row.loss,
        "bound": row.certificate and row.certificate.bound,
        "ended": _ended(row),
        "verdict": verdicts.marked(row.verdict, reasons),
    }


def _long_row(part: Part, row: Row) -> dict[str, Any]:
    simulated = row.simulated
    return {
        "initial": part.initial,
        "policy": row.policy,
        "horizon": TABLE1_HORIZON,
        "exact": row.exact,
        "tail": row.tail,
        "simulated": simulated and simulated.mean,
        "simulated_half_width": simulated and simulated.half_width,
        "episodes": simulated and simulated.episodes,
        "seed": simulated and simulated.seed,
        "paper": row.paper.mean,
        "paper_half_width": row.paper.half_width,
        "difference": row.verdict.difference,
        "relative": _relative(row),
        "loss": row.loss,
        "bound": row.certificate and row.certificate.bound,
        "greedy_bound": row.certificate and row.certificate.greedy_bound,
        "iterations": row.iterations,
        "status": row.status and row.status.name,
        "verdict": row.verdict.word,
        "reason": row.verdict.reason,
    }
