"""How Tables 3 and 4 are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellweight.display import Column, Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.paper import CLINIC_HORIZON
from bellweight.reproduce.verdicts import interval

if TYPE_CHECKING:
    from bellweight.reproduce.clinic import ClinicTable, Row


_COLUMNS = (
    Column("method", "weights", right=False),
    Column("columns", "columns", "{:,}".format),
    Column("cost", "cost", interval),
    Column("paper", "paper", interval),
    Column("ended", "iterations"),
    Column("verdict", "verdict", right=False),
)
_TIE_COLUMNS = (
    Column("rule", "ties go to", right=False),
    Column("cost", "cost", interval),
)


def tables(found: ClinicTable) -> tuple[Table, ...]:
    """Return the table of methods with numbered reasons, and the one of tie rules."""
    reasons = verdicts.reasons(row.verdict for row in found.rows_done)
    main = Table(
        title=f"The {found.size} clinic: discounted cost over {CLINIC_HORIZON} steps",
        columns=_COLUMNS,
        rows=tuple(_shown(row, reasons) for row in found.rows_done),
        notes=(*verdicts.numbered(reasons), *notes(found)),
    )
    if found.ties is None:
        return (main,)
    rules = found.ties.evaluations.items()
    return main, Table(
        title="The same value in every state: what the tie rule makes of it",
        columns=_TIE_COLUMNS,
        rows=tuple({"rule": rule, "cost": (e.mean, e.half_width)} for rule, e in rules),
    )


def notes(found: ClinicTable) -> tuple[str, ...]:
    """Return what the numbers show as a whole."""
    texts = []
    for row in found.rows_done:
        if row.phases:
            phases = "; ".join(
                f"{interval((phase.cost, phase.half_width))}"
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


def long_table(found: ClinicTable) -> Table:
    """Return every number in full precision."""
    rows: list[dict[str, Any]] = [_long(found, row) for row in found.rows_done]
    if found.ties is not None:
        for rule, evaluation in found.ties.evaluations.items():
            rows.append(
                {
                    "size": found.size,
                    "method": "constant value",
                    "tie_rule": rule,
                    "cost": evaluation.mean,
                    "half_width": evaluation.half_width,
                    "episodes": evaluation.episodes,
                }
            )
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table(found.name, tuple(Column(key, key) for key in keys), tuple(rows))


def _shown(row: Row, reasons: list[str]) -> dict[str, Any]:
    ended = "" if row.status.is_success else f" {row.status.name}"
    return {
        "method": row.method,
        "columns": row.columns,
        "cost": (row.cost.mean, row.cost.half_width),
        "paper": (row.paper.mean, row.paper.half_width),
        "ended": f"{row.iterations}{ended}",
        "verdict": verdicts.marked(row.verdict, reasons),
    }


def _long(found: ClinicTable, row: Row) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "size": found.size,
        "method": row.method,
        "tie_rule": "model's own",
        "cost": row.cost.mean,
        "half_width": row.cost.half_width,
        "episodes": row.cost.episodes,
        "horizon": row.cost.horizon,
        "tail_bound": row.cost.tail_bound,
        "seed": row.cost.seed,
        "paper": row.paper.mean,
        "paper_half_width": row.paper.half_width,
        "difference": row.verdict.difference,
        "verdict": row.verdict.word,
        "reason": row.verdict.reason,
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
