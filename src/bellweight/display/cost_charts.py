"""Costs with their intervals and bounds, as one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellweight.display.charts import Chart, Line
from bellweight.display.table import pair_text

_MOST_SAID = 8  # differences that the sentence below a chart names


@dataclass(frozen=True)
class Between:
    """A policy's cost, perhaps with a 95 % half-width, and a lower bound on every policy's cost."""

    label: str
    cost: float
    half_width: float | None = None
    low: float | None = None


def gap_chart(found: Sequence[Between], optimum: float | None = None) -> Chart:
    """Draw between which numbers the optimal cost lies, one row for each policy."""
    rows = list(found)[::-1]  # the first on top
    places = np.arange(len(rows), dtype=np.float64)
    low = np.array([np.nan if row.low is None else row.low for row in rows])
    cost = np.array([row.cost for row in rows])
    width = np.array([row.half_width or 0.0 for row in rows])
    lines = []
    bounded = bool(np.isfinite(low).any())
    if bounded:
        gaps = np.column_stack([low, cost + width, np.full(len(rows), np.nan)]).ravel()
        heights = np.column_stack([places, places, np.full(len(rows), np.nan)]).ravel()
        lines.append(Line("where the optimal cost can lie", gaps, heights, "band"))
        known = np.isfinite(low)
        lines.append(Line("proven lower bound", low[known], places[known], "points"))
    lines.append(Line("cost of the policy", cost, places, "points", width if width.any() else None))
    if optimum is not None:
        ends = np.array([-0.5, len(rows) - 0.5])
        lines.append(Line("optimal cost, exact", np.full(2, optimum), ends, "rule"))
    return Chart(
        "gap", "Cost and bound" if bounded else "Cost", "expected discounted cost", "",
        tuple(lines), " ".join(_gap_sentence(row, bounded=bounded) for row in found),
        y_names=tuple(row.label for row in rows),
    )  # fmt: skip


def _gap_sentence(row: Between, *, bounded: bool) -> str:
    width = f" plus or minus {row.half_width:,.4g}" if row.half_width else ""
    bound = ""
    if row.low is not None:
        bound = f"; no policy costs less than {row.low:,.6g}"
    elif bounded:
        bound = "; no lower bound is proven"
    return f"{row.label}: cost {row.cost:,.6g}{width}{bound}."


def difference_chart(
    name: str, title: str, reference: str, gaps: Mapping[str, tuple[float, float]], words: str
) -> Chart:
    """Return differences to a reference, each with its half-width, the first on top.

    `words` say what a point is.
    """
    shown = dict(reversed(list(gaps.items())))
    means, widths = (np.array(column) for column in zip(*shown.values(), strict=True))
    places = np.arange(len(shown), dtype=np.float64)
    zero = Line(reference, np.zeros(2), np.array([-0.5, len(shown) - 0.5]), "rule")
    exact = not widths.any()
    told = words if exact else f"{words}, with 95 % interval"
    points = Line(told, means, places, "points", None if exact else widths)
    said = [
        f"{policy}: {gap[0]:+,.6g}." if exact else f"{policy}: {pair_text(*gap, sign='+')}."
        for policy, gap in list(gaps.items())[:_MOST_SAID]
    ]
    more = len(gaps) - len(said)
    alt = f"Differences to {reference}. {' '.join(said)}" + (f" And {more} more." if more else "")
    label = "expected discounted cost, negative is better"
    return Chart(name, title, label, "", (zero, points), alt, y_names=tuple(shown))
