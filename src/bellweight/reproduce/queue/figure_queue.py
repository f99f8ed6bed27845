"""The figure of the single queue: approximate cost-to-go, true cost-to-go, and actions.

The paper's text on this figure says where the approximations are good; these statements are judged
on all states, by exact numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.display import Column as Shown
from bellweight.display import Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Artefact
from bellweight.reproduce.queue.curves import FIXED, Column, Curve, QueueCurves, panel, steps
from bellweight.reproduce.queue.runs import OPTIMAL
from bellweight.reproduce.tables import STATED, statement_table
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bellweight.display.panels import Panel

CAPTION = (
    "The single queue under three initial distributions, one column each: the approximate "
    "cost-to-go, the true cost-to-go of the greedy policy, and its service rate, by queue length. "
    "The black line is the exact optimum. The first two columns show the shortest queues, the "
    "third the longest ones, where a full system spends its time. Service rates are drawn a little "
    "apart so that no line hides another."
)
_ADAPTIVE = ("PIA", "DIA (Random)")
_MARGIN = 0.25  # of the optimum's height: what is drawn beyond it


@dataclass(frozen=True, eq=False)
class QueueFigure(QueueCurves):
    """Cost-to-go, approximate and true, and service rates."""

    @property
    def caption(self) -> str:
        return CAPTION

    @staticmethod
    def drawn(curve: Curve) -> dict[str, FloatArray]:
        """Return both costs-to-go and the service rate."""
        return {"approximate": curve.approximate, "true": curve.true, "rate": curve.rates}

    @staticmethod
    def numbers(column: Column, curve: Curve) -> dict[str, Any]:
        """Return where actions change, and how good the approximation is."""
        return {
            "changes": changes(curve),
            "low_error": curve.low_error,
            "high_error": curve.high_error,
            "own_error": column.error(curve.policy, curve.occupancy),
        }

    def tables(self) -> tuple[Table, ...]:
        """Return the verdicts, where actions change, and how good the approximations are."""
        return (statement_table(self.compared()), *map(_column_table, self.columns))

    def compared(self) -> tuple[Compared, ...]:
        return compared(self.columns)

    def figure(self) -> Figure:
        from bellweight.display.panels import panel_figure

        return panel_figure(
            [
                [_cost_panel(c, "approximate", "approximate cost-to-go") for c in self.columns],
                [_cost_panel(c, "true", "true cost-to-go") for c in self.columns],
                [
                    panel(c, "service rate (per period)", "rates", levels=_RATES)
                    for c in self.columns
                ],
            ]
        )


ARTEFACTS = (Artefact("figure-queue", partial(steps, QueueFigure)),)
_RATES = (0.0, 0.2, 0.4, 0.6, 0.8)


def changes(curve: Curve) -> list[tuple[int, float]]:
    """Return the states from which a new service rate holds, with that rate."""
    places = [0, *(np.flatnonzero(np.diff(curve.rates)) + 1).tolist()]
    return [(place, float(curve.rates[place])) for place in places]


def compared(columns: Sequence[Column]) -> tuple[Compared, ...]:
    """Return the verdicts: where the approximations are good."""
    first = columns[0]  # fixed weights do not depend on the initial distribution
    low, high = (first[name] for name in FIXED)
    return (
        _compared("Decay 0.9 is accurate for short queues", low.low_error, "Fixed 0.999",
                  high.low_error),
        _compared("Decay 0.999 is accurate for long queues", high.high_error, "Fixed 0.9",
                  low.high_error),
        *(_where_it_lives(column, name) for column in columns for name in _ADAPTIVE),
    )  # fmt: skip


def _where_it_lives(column: Column, name: str) -> Compared:
    """Judge that no fixed weights approximate better where a method's policy spends its time."""
    curve = column[name]
    other = min(FIXED, key=lambda fixed: column.error(fixed, curve.occupancy))
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


def _cost_panel(column: Column, curve: str, label: str) -> Panel:
    best = column[OPTIMAL].true[column.window]
    margin = _MARGIN * float(np.ptp(best))
    y_range = float(best.min()) - margin, float(best.max()) + margin
    return panel(column, label, curve, y_range=y_range)


def _column_table(column: Column) -> Table:
    rows = tuple(
        {
            "policy": curve.policy,
            **QueueFigure.numbers(column, curve),
            "shown": "; ".join(f"{rate:g} from {state:,}" for state, rate in changes(curve)),
        }
        for curve in column.curves
    )
    return Table(
        title=f"{column.title}: mean distance of the approximation to the optimum, and the actions",
        columns=(
            Shown("policy", "policy", right=False),
            Shown("low_error", "50 shortest queues", _number),
            Shown("high_error", "50 longest", _number),
            Shown("own_error", "where it spends its time", _number),
            Shown("shown", "service rate, from which queue length on", right=False),
        ),
        rows=rows,
    )


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 1e6 else f"{value:.2e}"
