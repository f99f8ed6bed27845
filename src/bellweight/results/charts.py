"""The pictures of a result: its gap, its convergence, its weights, its values, actions, residuals.

They are data (`display/charts.py`): notebooks draw them with Matplotlib, reports with Plotly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.backends import Visited
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.display.charts import Chart, HeatMap, Line, Picture, name_of, visible_heights
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.table import capital, short_text
from bellweight.results.cross_sections import (
    CrossSection,
    marginal,
    mass_range,
    spread,
    thin,
)
from bellweight.results.judgement import Judgement
from bellweight.weights.loop import HistoryEntry

POLICY, PROGRAM = "the policy", "the program"  # whose colour a line has
_MOST_MARGINALS = 4
_MOST_ACTIONS = 6
_MOST_NAMED = 40
_INDEXED = re.compile(  # book[2, 14] or book[class 2, day 14]
    r"^(?P<name>\w+)\[(?:(?P<up>\w+) )?(?P<row>\d+), ?(?:(?P<across>\w+) )?(?P<column>\d+)\]$"
)
_RARE = 0.005  # share of the visits below which a mean says nothing
_NORMS = {
    "sup_norm": "largest difference",
    "one_norm": "sum of differences",
    "moment_step": "step of the moments",
}


def convergence_chart(history: Sequence[HistoryEntry], *, exact: bool) -> tuple[Chart, ...]:
    """Draw every norm by iteration on a log axis; none where no weights were compared."""
    compared = "occupancy and weights" if exact else "the moments of occupancy and weights"
    lines, ends, some_zero = [], [], False
    for field, label in _NORMS.items():
        known = [(record.iteration, getattr(record, field)) for record in history]
        kept = np.array([(at, size) for at, size in known if size is not None], dtype=np.float64)
        if len(kept) == 0:
            continue
        first, last = (short_text(size, 2) for size in (kept[0, 1], kept[-1, 1]))
        ends.append(f"{label} {first}" + f" at first, {last} at last" * (len(kept) > 1))
        positive = kept[kept[:, 1] > 0.0]  # zero has no place on a log axis
        some_zero |= len(positive) < len(kept)
        if len(positive):
            lines.append(Line(label, positive[:, 0] + 1.0, positive[:, 1]))
    if not lines:
        return ()
    chart = Chart(
        "convergence", "Convergence", "iteration", "size of the difference", tuple(lines),
        f"Between {compared}: {'; '.join(ends)}.", log_y=True,
    )  # fmt: skip
    left_out = " Differences of exactly zero are not drawn." * some_zero
    return (replace(chart, alt=chart.alt + left_out * chart.is_worth_drawing),)


def cost_chart(own: Between, found: Judgement | None) -> Chart:
    """Draw what the policy costs and what is proven, beside acting at random and the target."""
    rows = [replace(own, who=POLICY)]
    if found is not None:
        random = "Acting at random" + " (the target)" * found.target_is_random
        others = ((random, found.random), ("The target", found.target))
        rows += [
            Between(name, cost.mean, cost.half_width or None)
            for name, cost in others
            if cost is not None
        ]
    return gap_chart(rows)


def weight_charts(seen: Visited, weights: FloatArray) -> tuple[Chart, ...]:
    """Draw the weights against the policy's occupancy, along each of the first variables."""
    charts = []
    for axis in spread(seen)[:_MOST_MARGINALS]:
        positions, ours = marginal(seen, axis, weights)
        _, theirs = marginal(seen, axis, seen.share)
        low, high = mass_range(positions, ours + theirs)
        kept = thin(positions, low, high)
        apart = float(np.abs(ours - theirs).sum()) / 2.0
        charts.append(
            Chart(
                f"weights-{axis}",
                f"Weights and occupancy by {seen.variables[axis]}",
                seen.variables[axis],
                "share of the total",
                (
                    Line("time spent by the policy", positions[kept], theirs[kept], who=POLICY),
                    Line("weights of the program", positions[kept], ours[kept], who=PROGRAM),
                ),
                f"Along {seen.variables[axis]}, weights and occupancy differ in "
                f"{100.0 * apart:.3g} % of their mass.",
                x_range=(low, high),
                x_names=_state_names(seen),
            )
        )
    return tuple(charts)


def moment_chart(
    names: Sequence[str], weights: FloatArray, occupancy: FloatArray, error: FloatArray
) -> Chart:
    """Draw by how much the moments of the policy's occupancy differ from those of the weights."""
    scale = np.maximum(np.maximum(np.abs(weights), np.abs(occupancy)), 1e-300)
    apart, width = 100.0 * (occupancy - weights) / scale, 196.0 * error / scale
    clear = int((np.abs(apart) > width + 100.0 * tolerances.SAME_COST).sum())
    return Chart(
        "weights", "Moments of the weights and of the policy's occupancy", "basis function",
        "occupancy minus weights, %",
        (Line("difference, with 95 % interval", np.arange(len(names), dtype=np.float64), apart,
              "points", width, who=POLICY),),
        f"The largest estimated difference is {np.abs(apart).max():.3g} %; {clear} of {len(names)} "
        f"differences {'is' if clear == 1 else 'are'} larger than their 95 % interval.",
        x_names=tuple(names),
    )  # fmt: skip


def value_charts(seen: Visited, cuts: Sequence[CrossSection]) -> tuple[Picture, ...]:
    """Draw the approximate value, with the policy's own where it can be computed."""
    if seen.backend.acts_by_vectors:
        return (_price_chart(seen),)
    name = "approximate value" if seen.is_sample else "approximate value (lower bound)"
    lines = {name: (PROGRAM, lambda cut: cut.values())}
    if seen.cost_to_go is not None:
        exact = seen.cost_to_go
        lines["cost of the policy (upper bound)"] = (POLICY, lambda cut: cut.looked_up(exact))
    return _pictures(seen, cuts, "value", "Value", "expected discounted cost", lines)


def policy_charts(seen: Visited, cuts: Sequence[CrossSection]) -> tuple[Picture, ...]:
    """Draw which action is taken where."""
    if seen.backend.acts_by_vectors:
        return _action_charts(seen)
    names = seen.backend.action_names
    if len(cuts) == 1 and cuts[0].is_line:
        cut = cuts[0]
        actions = cut.actions()
        line = Along(cut.x, actions, seen.variables[0], _state_names(seen))
        return (
            Chart(
                "policy", "Policy", cut.x_label, "action",
                (Line("action", cut.x, actions, "steps", who=POLICY),),
                f"In the states shown: {policy_sentence(line, names)}",
                x_range=cut.x_range, x_names=line.names, y_names=names,
            ),
        )  # fmt: skip
    return tuple(
        cut.heat_map(
            "policy", f"Policy by {cut.x_label} and {cut.y_label}", "action", cut.actions(), names
        )
        for cut in cuts
    )


def residual_charts(seen: Visited, cuts: Sequence[CrossSection]) -> tuple[Picture, ...]:
    """Draw the Bellman residual of the action taken."""
    if not seen.is_sample:
        exact = without_rounding(seen)
        lines = {"residual of the action taken": (POLICY, lambda cut: cut.looked_up(exact))}
        return _pictures(seen, cuts, "residual", "Bellman residual", "cost per step", lines)
    axis = spread(seen)[0]
    shown = without_rounding(seen)
    below = float(seen.share[shown < 0.0].sum())
    signs = "none is negative, so no row is violated there"
    if below > 0.0:
        signs = f"negative, hence a violated row, on {100.0 * below:.3g} % of the visits"
    return (
        Chart(
            "residual", "Bellman residual in visited states", seen.variables[axis],
            "cost per step",
            (Line("residual of the action taken", seen.states[:, axis], shown, "points",
                  who=POLICY),),
            f"Residuals from {short_text(shown.min())} to {short_text(shown.max())}; {signs}.",
        ),
    )  # fmt: skip


def without_rounding(seen: Visited) -> FloatArray:
    """Return the residuals, zero where there is no more than rounding."""
    rounding = tolerances.SAME_COST * (1.0 + np.abs(seen.value))
    return np.where(np.abs(seen.residual) <= rounding, 0.0, seen.residual)


def _pictures(
    seen: Visited,
    cuts: Sequence[CrossSection],
    key: str,
    title: str,
    unit: str,
    lines: dict[str, Any],
) -> tuple[Picture, ...]:
    """Draw lines over one variable, or the first of them as colours over two."""
    if len(cuts) == 1 and cuts[0].is_line:
        cut = cuts[0]
        drawn = tuple(Line(label, cut.x, of(cut), who=who) for label, (who, of) in lines.items())
        low, high = cut.x_range
        inside = (cut.x >= low) & (cut.x <= high)
        y_range = visible_heights(drawn, cut.x_range)
        alt = " ".join(
            f"{capital(line.label)}: "
            + line_sentence(
                Along(cut.x[inside], line.y[inside], seen.variables[0], _state_names(seen))
            )
            for line in drawn
        )
        return (
            Chart(key, title, cut.x_label, unit, drawn, alt, x_range=cut.x_range,
                  y_range=y_range, x_names=_state_names(seen)),
        )  # fmt: skip
    return tuple(
        cut.heat_map(key, f"{title} by {cut.x_label} and {cut.y_label}: {label}", unit, of(cut))
        for cut in cuts
        for label, (_, of) in lines.items()
    )


@dataclass(frozen=True)
class Along:
    """Heights y (n,) at positions x (n,) of a variable, which may have names."""

    x: FloatArray
    y: FloatArray
    variable: str
    names: tuple[str, ...] | None = None

    def place(self, number: int, *, first: bool = False) -> str:
        """Return where a height is; the first place of a sentence names the variable."""
        if self.names is not None:
            return name_of(float(self.x[number]), self.names)
        return (
            f"{self.variable} = {short_text(self.x[number])}"
            if first
            else short_text(self.x[number])
        )


def line_sentence(line: Along) -> str:
    """Return where a line begins and ends, and its top if that lies in between."""
    y, last = line.y, len(line.y) - 1
    top = int(np.argmax(y))
    places = [0, top, last] if y[top] > max(y[0], y[last]) else [0, last]
    told = [f"{short_text(y[k])} at {line.place(k, first=k == 0)}" for k in places]
    return f"{', '.join(told)}."


def _state_names(seen: Visited) -> tuple[str, ...] | None:
    """Return the names of the states of a small model without vectors."""
    return seen.backend.state_names if len(seen.states) <= _MOST_NAMED else None


def policy_sentence(line: Along, names: Sequence[str]) -> str:
    """Return which action is taken from where on."""
    changes = np.flatnonzero(np.diff(line.y)) + 1
    if len(changes) == 0:
        return f"{names[int(line.y[0])]} everywhere."
    parts = [
        f"{names[int(line.y[k])]} from {line.place(k, first=k == 0)}" for k in (0, *changes[:8])
    ]
    more = "" if len(changes) <= 8 else f", and {len(changes) - 8} more changes"
    return ", ".join(parts) + more + "."


def _price_chart(seen: Visited) -> Chart:
    """Draw what one more unit of each state variable adds to the value of a linear model."""
    names = seen.variables
    prices = seen.values_at(np.eye(len(names))) - seen.values_at(np.zeros((1, len(names))))
    dearest = int(np.argmax(np.abs(prices)))
    return Chart(
        "value", "Value of one more unit of each state variable", "state variable",
        "expected discounted cost",
        (Line("price", np.arange(len(names), dtype=np.float64), prices, "points", who=PROGRAM),),
        f"One more unit of {names[dearest]} adds {short_text(prices[dearest])} to the expected "
        f"discounted cost{', which is the most' * (len(names) > 1)}.",
        x_names=names,
    )  # fmt: skip


def _action_charts(seen: Visited) -> tuple[Picture, ...]:
    """Draw a linear model's mean action, and how it changes with the most varied variable."""
    names = seen.backend.action_names
    actions = np.asarray(seen.actions_at(seen.states))
    mean = seen.share @ actions
    axis = spread(seen)[0]
    positions, group = np.unique(seen.states[:, axis], return_inverse=True)
    mass = np.bincount(group, weights=seen.share)
    often = mass >= _RARE
    top = np.argsort(-np.abs(mean), kind="stable")[:_MOST_ACTIONS]
    lines = [
        Line(
            names[k],
            positions[often],
            (np.bincount(group, weights=seen.share * actions[:, k]) / mass)[often],
        )
        for k in top
    ]
    means = mean_actions(names, mean)
    if not often.any():
        return means  # no value of the variable is met often enough
    return (
        *means,
        Chart(
            "policy-along", f"Mean action by {seen.variables[axis]}", seen.variables[axis],
            "units per step", tuple(lines),
            f"The {len(lines)} most used action variables against {seen.variables[axis]}, which "
            "varies most, averaged over the visits; values met in less than 0.5 % of them are left "
            "out.",
        ),
    )  # fmt: skip


def mean_actions(names: Sequence[str], mean: FloatArray) -> tuple[Picture, ...]:
    """Draw the mean of each action variable: those with two indices, book[2, 14], as a map."""
    found = [_INDEXED.match(name) for name in names]
    maps = []
    drawn: set[int] = set()
    for word in dict.fromkeys(match["name"] for match in found if match):
        same = {k: match for k, match in enumerate(found) if match and match["name"] == word}
        rows, columns = (
            np.array([int(match[side]) for match in same.values()]) for side in ("row", "column")
        )
        if min(len(np.unique(rows)), len(np.unique(columns))) < 2:
            continue
        drawn.update(same)
        first = next(iter(same.values()))
        axes = first["across"] or "second index", first["up"] or "first index"
        maps.append(_indexed_map(word, axes, rows, columns, mean[list(same)]))
    rest = [k for k in range(len(names)) if k not in drawn]
    if not rest:
        return tuple(maps)
    most = sorted(rest, key=lambda k: -abs(mean[k]))[:_MOST_ACTIONS]
    told = ", ".join(f"{names[k]} {mean[k]:.3g}" for k in most)
    others = Chart(
        "policy", "Mean action over the visits", "action variable", "units per step",
        (Line("mean", np.arange(len(rest), dtype=np.float64), mean[rest], "points", who=POLICY),),
        f"Mean action over the visits, per step: {told}{', ...' * (len(rest) > len(most))}.",
        x_names=tuple(names[k] for k in rest),
    )  # fmt: skip
    return (*maps, others)


def _indexed_map(
    word: str, axes: tuple[str, str], rows: IntArray, columns: IntArray, mean: FloatArray
) -> HeatMap:
    """Return the means of word[i, j] as colours, i upwards and j to the right."""
    across_name, up_name = axes
    y, up = np.unique(rows, return_inverse=True)
    x, across = np.unique(columns, return_inverse=True)
    z = np.full((len(y), len(x)), np.nan)
    z[up, across] = mean
    most = int(np.argmax(mean))
    return HeatMap(
        f"policy-{word}", f"Mean {word} by {up_name} and {across_name}", across_name, up_name,
        x.astype(np.float64), y.astype(np.float64), z, "units per step",
        f"{100.0 * float((np.abs(mean) > _RARE).mean()):.0f} % of the variables are used; the "
        f"largest, {up_name} {rows[most]} and {across_name} {columns[most]}, has {mean[most]:.3g} "
        "per step on average.",
    )  # fmt: skip
