"""How Table 5 is shown: the costs, the differences, and what they say as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellweight.display import Column, Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.paper import (
    CENT,
    CLINIC_HORIZON,
    TABLE5,
    TABLE5_DIFFERENCE,
    TABLE5_FUNCTIONS,
    TABLE5_PERCENT,
)
from bellweight.reproduce.tables import (
    compared_cost,
    ended,
    judged_table,
    long_table,
    money,
    paper_cells,
    simulated_cells,
    verdict_cells,
    without_simulated,
)
from bellweight.reproduce.verdicts import Compared, interval

if TYPE_CHECKING:
    from bellweight.reproduce.clinic.table5 import Part, Row, Table5
    from bellweight.reproduce.verdicts import Verdict


def _percent(value: float) -> str:
    return f"{100.0 * value:.2f} %"


_COLUMNS = (
    Column("degree", "degree"),
    Column("functions", "K"),
    Column("rank", "rank"),
    Column("method", "weights", right=False),
    Column("all_time", "all time", money),
    Column("exact", f"{CLINIC_HORIZON} steps", money),
    Column("simulated", "simulated", interval),
    Column("paper", "paper", interval),
    Column("bound", "loss at most", money),
    Column("ended", "iterations"),
)
_GAP_COLUMNS = (
    Column("degree", "degree"),
    Column("exact", "Delta", money),
    Column("relative", "Delta (%)", _percent),
    Column("simulated", "simulated, paired", interval),
    Column("paper", "paper", money),
    Column("paper_relative", "paper (%)", _percent),
    Column("same", "same policy", right=False),
)


def tables(found: Table5) -> tuple[Table, ...]:
    """Return the table of costs, and the one of differences."""
    simulated = found.settings.episodes is not None
    best = found.optimum
    first = {
        "method": "Optimal",
        "all_time": best.all_time,
        "exact": best.exact,
        "simulated": best.simulated,
    }
    rows = [(_shown(part, row), row.verdict) for part in found.parts for row in part.rows]
    return (
        judged_table(
            "The tiny clinic: discounted cost of the greedy policy, exact and simulated",
            without_simulated(_COLUMNS, simulated),
            [(first, None), *rows],
            notes(found),
        ),
        judged_table(
            f"Delta: cost of Random minus that of DIA (Random), over {CLINIC_HORIZON} steps",
            without_simulated(_GAP_COLUMNS, simulated),
            [(_shown_gap(part), gap_verdict(part)) for part in found.parts],
        ),
    )


def notes(found: Table5) -> tuple[str, ...]:
    """Return what the numbers show as a whole."""
    texts = [_pattern_note(part) for part in found.parts if part.degree in TABLE5_DIFFERENCE]
    for part in found.parts:
        for row in part.rows:
            if row.phases:
                costs = ", ".join(money(cost) for cost in row.phases)
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
    found = 0.0 if abs(part.gap.exact) < CENT else part.gap.exact
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
                what = f"{place}, {row.method}"
                numbers.append(compared_cost(what, money(row.exact), row.paper, row.verdict))
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


def all_rows(found: Table5) -> Table:
    """Return every number in full precision."""
    rows = [_long(found, part, row) for part in found.parts for row in part.rows]
    return long_table(found.name, rows)


def _pattern_note(part: Part) -> str:
    printed = TABLE5_DIFFERENCE[part.degree]
    ours = "act alike in every state" if part.gap.same_policy else "act differently"
    claim = "no difference" if printed == 0.0 else "DIA (Random) is better"
    held = "holds" if pattern_holds(part) else "does not hold here"
    return (
        f"The paper's pattern at degree {part.degree}, {claim}, {held}: Random and DIA (Random) "
        f"{ours}, Delta is {money(part.gap.exact)} (paper: {money(printed)})."
    )


def _shown(part: Part, row: Row) -> dict[str, Any]:
    return {
        **vars(part),
        **vars(row),
        "functions": part.n_basis,
        "ended": ended(row.iterations, row.status),
    }


def _shown_gap(part: Part) -> dict[str, Any]:
    gap, printed = part.gap, TABLE5_DIFFERENCE.get(part.degree)
    return {
        "degree": part.degree,
        # No "-0.00" for costs that differ by rounding alone.
        "exact": round(gap.exact, 9) + 0.0,
        "relative": round(gap.relative, 9) + 0.0,
        "simulated": gap.simulated,
        "paper": printed,
        "paper_relative": None if printed is None else TABLE5_PERCENT[part.degree] / 100.0,
        "same": "yes" if gap.same_policy else "no",
    }


def _long(found: Table5, part: Part, row: Row) -> dict[str, Any]:
    gap = part.gap
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
        **simulated_cells(row.simulated),
        **paper_cells(row.paper),
        **verdict_cells(row.verdict),
        "iterations": row.iterations,
        "status": row.status.name,
        "delta": gap.exact,
        "delta_relative": gap.relative,
        "delta_simulated": gap.simulated and gap.simulated.mean,
        "delta_simulated_half_width": gap.simulated and gap.simulated.half_width,
        "delta_paper": TABLE5_DIFFERENCE.get(part.degree),
        "same_policy": gap.same_policy,
    }
