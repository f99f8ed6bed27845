"""How Table 5 is shown: the costs, the differences, and what they say as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellweight.display import Column, Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.paper import (
    CLINIC_HORIZON,
    TABLE5,
    TABLE5_DIFFERENCE,
    TABLE5_FUNCTIONS,
    TABLE5_PERCENT,
)
from bellweight.reproduce.verdicts import Compared, interval

if TYPE_CHECKING:
    from bellweight.reproduce.table5 import Part, Row, Table5
    from bellweight.reproduce.verdicts import Verdict

_CENT = 0.005  # half a unit of the last digit that the paper prints


def _money(value: float) -> str:
    return f"{value:,.2f}"


def _percent(value: float) -> str:
    return f"{100.0 * value:.2f} %"


_COLUMNS = (
    Column("degree", "degree"),
    Column("functions", "K"),
    Column("rank", "rank"),
    Column("method", "weights", right=False),
    Column("all_time", "all time", _money),
    Column("exact", f"{CLINIC_HORIZON} steps", _money),
    Column("simulated", "simulated", interval),
    Column("paper", "paper", interval),
    Column("bound", "loss at most", _money),
    Column("ended", "iterations"),
    Column("verdict", "verdict", right=False),
)
_GAP_COLUMNS = (
    Column("degree", "degree"),
    Column("exact", "Delta", _money),
    Column("relative", "Delta (%)", _percent),
    Column("simulated", "simulated, paired", interval),
    Column("paper", "paper", _money),
    Column("paper_relative", "paper (%)", _percent),
    Column("same", "same policy", right=False),
    Column("verdict", "verdict", right=False),
)


def tables(found: Table5) -> tuple[Table, ...]:
    """Return the table of costs, and the one of differences."""
    simulated = found.settings.episodes is not None
    best = found.optimum
    first = {
        "method": "Optimal",
        "all_time": best.all_time,
        "exact": best.exact,
        "simulated": best.simulated and (best.simulated.mean, best.simulated.half_width),
    }
    reasons = verdicts.reasons(row.verdict for part in found.parts for row in part.rows)
    rows = [_shown(part, row, reasons) for part in found.parts for row in part.rows]
    gap_reasons = verdicts.reasons(gap_verdict(part) for part in found.parts)
    costs = Table(
        title="The tiny clinic: discounted cost of the greedy policy, exact and simulated",
        columns=_without(_COLUMNS, simulated),
        rows=(first, *rows),
        notes=(*verdicts.numbered(reasons), *notes(found)),
    )
    return costs, Table(
        title=f"Delta: cost of Random minus that of DIA (Random), over {CLINIC_HORIZON} steps",
        columns=_without(_GAP_COLUMNS, simulated),
        rows=tuple(_shown_gap(part, gap_reasons) for part in found.parts),
        notes=verdicts.numbered(gap_reasons),
    )


def notes(found: Table5) -> tuple[str, ...]:
    """Return what the numbers show as a whole."""
    texts = [_pattern_note(part) for part in found.parts if part.degree in TABLE5_DIFFERENCE]
    for part in found.parts:
        for row in part.rows:
            if row.phases:
                costs = ", ".join(_money(cost) for cost in row.phases)
                texts.append(
                    f"{row.method} cycles at degree {part.degree} between policies that cost "
                    f"{costs} over all time. The row shows the cheapest."
                )
        if part.rank < part.n_basis:
            texts.append(
                f"Degree {part.degree}: {part.n_basis - part.rank} of {part.n_basis} functions "
                "depend on earlier ones on this grid, against the paper's assumption."
            )
    texts.append(
        "Waiting patients beyond the arrivals' limit are turned away, which leaves 252 states. "
        "Loss at most: the cost over all time less the approximate value, never below the loss."
    )
    return tuple(texts)


def pattern_holds(part: Part) -> bool | None:
    """Return whether Random minus DIA has the sign of the paper's, None where it has none."""
    printed = TABLE5_DIFFERENCE.get(part.degree)
    if printed is None:
        return None
    found = 0.0 if abs(part.gap.exact) < _CENT else part.gap.exact
    return found == 0.0 if printed == 0.0 else found * printed > 0.0


def gap_verdict(part: Part) -> Verdict | None:
    """Return the verdict on the paper's difference at this degree, None where it has none."""
    printed = TABLE5_DIFFERENCE.get(part.degree)
    return None if printed is None else verdicts.table5_difference(part.gap.exact, printed)


def compared(found: Table5) -> tuple[Compared, ...]:
    """Return the verdict on every number of the paper's table."""
    numbers = []
    for part in found.parts:
        if part.degree not in TABLE5:
            continue
        place = f"Degree {part.degree}"
        functions = TABLE5_FUNCTIONS[part.degree]
        verdict = verdicts.statement(part.n_basis == functions, "another number of functions")
        numbers.append(Compared(f"{place}, K", str(part.n_basis), str(functions), verdict))
        for row in part.rows:
            if row.paper is not None and row.verdict is not None:
                printed = interval((row.paper.mean, row.paper.half_width))
                numbers.append(
                    Compared(f"{place}, {row.method}", _money(row.exact), printed, row.verdict)
                )
        numbers += _compared_gap(part)
    return tuple(numbers)


def _compared_gap(part: Part) -> list[Compared]:
    ours, percent = part.gap.exact, 100.0 * part.gap.relative
    return [
        Compared(
            f"Degree {part.degree}, {what}",
            f"{round(value, 9) + 0.0:,.2f}{unit}",
            f"{printed:,.2f}{unit}",
            verdicts.table5_difference(value, printed),
        )
        for what, value, printed, unit in (
            ("Delta", ours, TABLE5_DIFFERENCE[part.degree], ""),
            ("Delta in per cent", percent, TABLE5_PERCENT[part.degree], " %"),
        )
    ]


def long_table(found: Table5) -> Table:
    """Return every number in full precision."""
    rows = tuple(_long(found, part, row) for part in found.parts for row in part.rows)
    return Table(found.name, tuple(Column(key, key) for key in rows[0]), rows)


def _pattern_note(part: Part) -> str:
    printed = TABLE5_DIFFERENCE[part.degree]
    ours = "act alike in every state" if part.gap.same_policy else "act differently"
    claim = "no difference" if printed == 0.0 else "DIA (Random) is better"
    held = "holds" if pattern_holds(part) else "does not hold here"
    return (
        f"The paper's pattern at degree {part.degree}, {claim}, {held}: Random and DIA (Random) "
        f"{ours}, Delta is {_money(part.gap.exact)} (paper: {_money(printed)})."
    )


def _without(columns: tuple[Column, ...], simulated: bool) -> tuple[Column, ...]:
    return tuple(column for column in columns if simulated or column.key != "simulated")


def _shown(part: Part, row: Row, reasons: list[str]) -> dict[str, Any]:
    ended = "" if row.status.is_success else f" {row.status.name}"
    return {
        "degree": part.degree,
        "functions": part.n_basis,
        "rank": part.rank,
        "method": row.method,
        "all_time": row.all_time,
        "exact": row.exact,
        "simulated": row.simulated and (row.simulated.mean, row.simulated.half_width),
        "paper": row.paper and (row.paper.mean, row.paper.half_width),
        "bound": row.bound,
        "ended": f"{row.iterations}{ended}",
        "verdict": verdicts.marked(row.verdict, reasons),
    }


def _shown_gap(part: Part, reasons: list[str]) -> dict[str, Any]:
    gap, printed = part.gap, TABLE5_DIFFERENCE.get(part.degree)
    return {
        "degree": part.degree,
        # No "-0.00" for costs that differ by rounding alone.
        "exact": round(gap.exact, 9) + 0.0,
        "relative": round(gap.relative, 9) + 0.0,
        "simulated": gap.simulated and (gap.simulated.mean, gap.simulated.half_width),
        "paper": printed,
        "paper_relative": None if printed is None else TABLE5_PERCENT[part.degree] / 100.0,
        "same": "yes" if gap.same_policy else "no",
        "verdict": verdicts.marked(gap_verdict(part), reasons),
    }


def _long(found: Table5, part: Part, row: Row) -> dict[str, Any]:
    simulated, verdict, gap = row.simulated, row.verdict, part.gap
    return {
        "degree": part.degree,
        "functions": part.n_basis,
        "rank": part.rank,
        "method": row.method,
        "horizon": CLINIC_HORIZON,
        "all_time": row.all_time,
        "exact": row.exact,
        "optimum_all_time": found.optimum.all_time,
        "optimum": found.optimum.exact,
        "bound": row.bound,
        "simulated": simulated and simulated.mean,
        "simulated_half_width": simulated and simulated.half_width,
        "episodes": simulated and simulated.episodes,
        "seed": simulated and simulated.seed,
        "paper": row.paper and row.paper.mean,
        "paper_half_width": row.paper and row.paper.half_width,
        "difference": verdict and verdict.difference,
        "verdict": verdict and verdict.word,
        "iterations": row.iterations,
        "status": row.status.name,
        "delta": gap.exact,
        "delta_relative": gap.relative,
        "delta_simulated": gap.simulated and gap.simulated.mean,
        "delta_simulated_half_width": gap.simulated and gap.simulated.half_width,
        "delta_paper": TABLE5_DIFFERENCE.get(part.degree),
        "same_policy": gap.same_policy,
    }
