"""How the figure of the single queue is shown, and what the paper's text says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.display import Column as Shown
from bellweight.display import Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.queue_runs import OPTIMAL
from bellweight.reproduce.statements import STATED, statement_table
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from bellweight.display.panels import Panel
    from bellweight.reproduce.figure_queue import Column, Curve, QueueFigure

CAPTION = (
    "The single queue under three initial distributions, one column each: the approximate "
    "cost-to-go, the true cost-to-go of the greedy policy, and its service rate, by queue length. "
    "The black line is the exact optimum. The first two columns show the shortest queues, the "
    "third the longest ones, where a full system spends its time. Service rates are drawn a little "
    "apart so that no line hides another."
)
DRAWN = (OPTIMAL, "Fixed 0.9", "Fixed 0.999", "PIA", "DIA (Random)")
_FIXED = ("Fixed 0.9", "Fixed 0.999")
_ADAPTIVE = ("PIA", "DIA (Random)")
_MARGIN = 0.25  # of the optimum's height: what is drawn beyond it


def document(column: Column) -> dict[str, Any]:
    """Return one column as JSON: the curves inside the window."""
    shown = column.window
    return {
        "initial": column.initial,
        "title": column.title,
        "window": [int(shown[0]), int(shown[-1])],
        "curves": [
            {
                "policy": curve.policy,
                "changes": changes(curve),
                "low_error": curve.low_error,
                "high_error": curve.high_error,
                "own_error": column.error(curve.policy, curve.occupancy),
                "approximate": curve.approximate[shown].tolist(),
                "true": curve.true[shown].tolist(),
                "rate": curve.rates[shown].tolist(),
            }
            for curve in column.curves
        ],
    }


def changes(curve: Curve) -> list[tuple[int, float]]:
    """Return the states from which a new service rate holds, with that rate."""
    places = [0, *(np.flatnonzero(np.diff(curve.rates)) + 1).tolist()]
    return [(place, float(curve.rates[place])) for place in places]


def tables(found: QueueFigure) -> tuple[Table, ...]:
    """Return the verdicts, where actions change, and how good the approximations are."""
    return (statement_table(found.compared()), *(_column_table(c) for c in found.columns))


def long_table(columns: Sequence[Column]) -> Table:
    """Return every drawn number in full precision."""
    rows = tuple(
        {
            "initial": column.initial,
            "policy": curve.policy,
            "state": int(state),
            "approximate": float(curve.approximate[state]),
            "true": float(curve.true[state]),
            "rate": float(curve.rates[state]),
        }
        for column in columns
        for curve in column.curves
        for state in column.window
    )
    keys = ("initial", "policy", "state", "approximate", "true", "rate")
    return Table("Single queue", tuple(Shown(key, key) for key in keys), rows)


def compared(columns: Sequence[Column]) -> tuple[Compared, ...]:
    """Return the verdicts: where the approximations are good."""
    first = columns[0]  # fixed weights do not depend on the initial distribution
    low, high = (first[name] for name in _FIXED)
    return (
        _compared("Decay 0.9 is accurate for short queues", low.low_error, "Fixed 0.999",
                  high.low_error),
        _compared("Decay 0.999 is accurate for long queues", high.high_error, "Fixed 0.9",
                  low.high_error),
        *(_where_it_lives(column, name) for column in columns for name in _ADAPTIVE),
    )  # fmt: skip


def _where_it_lives(column: Column, name: str) -> Compared:
    """Judge that no fixed weights give a better approximation where a method's policy lives."""
    curve = column[name]
    other = min(_FIXED, key=lambda fixed: column.error(fixed, curve.occupancy))
    weighted = column.error(name, curve.weights), column.error(other, curve.weights)
    because = ""
    if weighted[0] <= weighted[1]:
        because = (
            f"over the weights of {name} it is the other way round ({_number(weighted[0])} against "
            f"{_number(weighted[1])}), and those are not the occupancy of its greedy policy"
        )
    what = f"{column.title}: {name} is accurate where its policy spends its time"
    errors = column.error(name, curve.occupancy), column.error(other, curve.occupancy)
    return _compared(what, errors[0], other, errors[1], because)


def _compared(what: str, error: float, other: str, other_error: float, why: str = "") -> Compared:
    """Judge that an approximation is closer to the optimum than another one."""
    ours = f"mean error {_number(error)}; {other}: {_number(other_error)}"
    reason = f"{other} is closer to the optimum there; {why or 'no reason is known'}"
    return Compared(what, ours, STATED, verdicts.statement(error <= other_error, reason))


def panels(columns: Sequence[Column]) -> list[list[Panel]]:
    """Return the panels: cost-to-go approximate and true, then actions."""
    return [
        [_cost_panel(c, "approximate", "approximate cost-to-go") for c in columns],
        [_cost_panel(c, "true", "true cost-to-go") for c in columns],
        [_rate_panel(c) for c in columns],
    ]


def _cost_panel(column: Column, kind: str, label: str) -> Panel:
    from bellweight.display.panels import Panel

    shown = column.window
    best = column[OPTIMAL].true[shown]
    margin = _MARGIN * float(np.ptp(best))
    return Panel(
        title=column.title,
        x_label="queue length (jobs)",
        y_label=label,
        x=shown,
        curves={name: getattr(column[name], kind)[shown] for name in DRAWN},
        y_range=(float(best.min()) - margin, float(best.max()) + margin),
    )


def _rate_panel(column: Column) -> Panel:
    from bellweight.display.panels import Panel

    shown = column.window
    return Panel(
        title=column.title,
        x_label="queue length (jobs)",
        y_label="service rate (per period)",
        x=shown,
        curves={name: column[name].rates[shown] for name in DRAWN},
        levels=(0.0, 0.2, 0.4, 0.6, 0.8),
    )


def _column_table(column: Column) -> Table:
    rows = tuple(
        {
            "policy": curve.policy,
            "low": curve.low_error,
            "high": curve.high_error,
            "own": column.error(curve.policy, curve.occupancy),
            "changes": "; ".join(f"{rate:g} from {state:,}" for state, rate in changes(curve)),
        }
        for curve in column.curves
    )
    return Table(
        title=f"{column.title}: mean distance of the approximation to the optimum, and the actions",
        columns=(
            Shown("policy", "policy", right=False),
            Shown("low", "50 shortest queues", _number),
            Shown("high", "50 longest", _number),
            Shown("own", "where it spends its time", _number),
            Shown("changes", "service rate, from which queue length on", right=False),
        ),
        rows=rows,
    )


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 1e6 else f"{value:.2e}"
