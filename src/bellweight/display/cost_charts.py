"""Costs with their intervals and bounds, as one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.display.charts import Chart, Line
from bellweight.display.table import interval_text, number_text

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
_FAR = 2.0  # times the reach: farther numbers do not set the scale
_LEAST_ROOM = 5e-4  # share of a cost: what is closer cannot be told apart in a picture
_MUCH = 10.0  # times the next smaller difference
_MOST_SAID = 8  # differences that the sentence below a chart names


@dataclass(frozen=True)
class Between:
    """A policy's cost, perhaps with a 95 % half-width, and a lower bound on every policy's cost.

    `who` is whose colour it has, by default the label's.
    """

    label: str
    cost: float
    half_width: float | None = None
    low: float | None = None
    who: str = ""


def gap_chart(found: Sequence[Between], optimum: float | None = None) -> Chart:
    """Draw between which numbers the optimal cost lies, one row for each policy.

    What lies far from the best bound and the best cost is named at the edge instead of setting the
    scale.
    """
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
        lines.append(Line("proven: no policy costs less", low[known], places[known], "ticks"))
    owners = tuple(row.who or row.label for row in rows)
    lines.append(
        Line("cost of the policy", cost, places, "points", width if width.any() else None,
             marks=owners)
    )  # fmt: skip
    if optimum is not None:
        ends = np.array([-0.5, len(rows) - 0.5])
        lines.append(Line("optimal cost, exact", np.full(2, optimum), ends, "rule"))
    return Chart(
        "gap", "Cost and bound" if bounded else "Cost", "expected discounted cost", "",
        tuple(lines), " ".join(_gap_sentence(row, bounded=bounded) for row in found),
        x_range=scale_of(cost, width, low),
        y_names=tuple(row.label for row in rows),
    )  # fmt: skip


def scale_of(
    cost: FloatArray, width: FloatArray, low: FloatArray | None = None
) -> tuple[float, float] | None:
    """Return the numbers to show: around the best cost and the best bound; None for all of them.

    Whatever is farther off than a few times their distance (or a tenth of the cost, or a few of the
    half-widths) is left outside.
    """
    bounds = np.zeros(0) if low is None else low[np.isfinite(low)]
    best = float((cost + width).min())
    proven = float(bounds.max()) if len(bounds) else best
    reach = max(best - proven, 0.1 * abs(best), 4.0 * float(np.median(width)))
    shown = np.concatenate([cost - width, cost + width, bounds])
    # Costs of short episodes may be below a bound, which is one for all time.
    left, right = min(best, proven) - _FAR * reach, max(best, proven) + _FAR * reach
    inside = shown[(shown >= left) & (shown <= right)]
    least = _LEAST_ROOM * abs(best)
    if len(inside) == len(shown) and float(np.ptp(inside)) > least:
        return None
    room = max(0.12 * float(np.ptp(inside)), least) or 1.0
    return float(inside.min()) - room, float(inside.max()) + room


def _gap_sentence(row: Between, *, bounded: bool) -> str:
    cost = interval_text(row.cost, row.half_width or 0.0, between="±")
    bound = ""
    if row.low is not None:
        bound = f"; no policy costs less than {number_text(row.low)}"
    elif bounded:
        bound = "; no lower bound is proven"
    return f"{row.label} costs {cost}{bound}."


def difference_chart(
    name: str,
    title: str,
    reference: str,
    gaps: Mapping[str, tuple[float, float]],
    words: str,
    least: float = 0.0,
) -> Chart:
    """Return differences to a reference, each with its half-width, the first on top.

    `words` say what a point is. Differences below `least` are too small to set the scale.
    """
    shown = dict(reversed(list(gaps.items())))
    means, widths = (np.array(column) for column in zip(*shown.values(), strict=True))
    places = np.arange(len(shown), dtype=np.float64)
    zero = Line(reference, np.zeros(2), np.array([-0.5, len(shown) - 0.5]), "rule")
    exact = not widths.any()
    told = words if exact else f"{words}, with 95 % interval"
    points = Line(told, means, places, "points", None if exact else widths, marks=tuple(shown))
    others = [(policy, gap) for policy, gap in gaps.items() if policy != reference]
    said = [
        f"{policy}: {interval_text(*gap, sign='+', between='±')}."
        for policy, gap in others[:_MOST_SAID]
    ]
    more = len(others) - len(said)
    alt = f"Costs minus {reference}. {' '.join(said)}" + (f" And {more} more." if more else "")
    return Chart(
        name, title, "difference in cost", "", (zero, points), alt,
        x_range=_around_zero(means, widths, least), y_names=tuple(shown),
    )  # fmt: skip


def _around_zero(means: FloatArray, widths: FloatArray, least: float) -> tuple[float, float] | None:
    """Return the differences to show, None for all of them.

    A few that are ten times as large as all others, and as `least`, do not set the scale.
    """
    ends = np.abs(means) + widths
    order = np.sort(ends)
    usual = np.maximum(order, least)
    far = [k for k in range((len(order) + 1) // 2, len(order)) if order[k] > _MUCH * usual[k - 1]]
    if not far:
        return None
    inside = ends < order[far[0]]
    low = min(0.0, float((means - widths)[inside].min()))
    high = max(0.0, float((means + widths)[inside].max()))
    room = 0.12 * (high - low) or 1.0
    return low - room, high + room
