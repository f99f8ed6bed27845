"""The occupancy figure: in which states each policy spends its discounted time, exactly.

The paper's text says which policies match the optimal one. How far two occupancies lie apart is
measured here by the share of the time that is spent elsewhere (half the 1-norm, over all states);
the paper gives no measure, so the shares that count as a match and as close are ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.display import Column as Shown
from bellweight.display import Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import (
    Reproduction,
    Settings,
    Tell,
    Wanted,
    exact_settings,
    ignore,
)
from bellweight.reproduce.figure_queue import Column, columns_of
from bellweight.reproduce.figure_queue_view import DRAWN
from bellweight.reproduce.paper import OCCUPIED_FROM
from bellweight.reproduce.queue_runs import OPTIMAL
from bellweight.reproduce.statements import STATED, statement_table
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bellweight.display.panels import Panel

EPISODES = 0
RESUMES = False
MATCH = 0.02
"""Share of the time spent elsewhere up to which an occupancy counts as the same."""
CLOSE = 0.1
"""The same for: closely approximates."""
NEGLIGIBLE = 1e-3
_LEAST_DRAWN = 1e-5

_FIXED = ("Fixed 0.9", "Fixed 0.999")
_ADAPTIVE = ("PIA", "DIA (Random)", "DIA (0.9)")


@dataclass(frozen=True, eq=False)
class OccupancyFigure(Reproduction):
    """One panel for each initial distribution."""

    columns: tuple[Column, ...]
    settings: Settings
    seconds: float = 0.0
    complete: bool = True
    name: str = "figure-occupancy"

    @property
    def caption(self) -> str:
        """What the figure shows."""
        return (
            "The single queue: the share of discounted time that each policy spends in each state, "
            "under three initial distributions. The black line is the optimal policy. The first "
            "two panels show the shortest queues, the third the longest ones, where a full system "
            f"spends its time. The scale is logarithmic and ends at {_LEAST_DRAWN:g}."
        )

    def document(self) -> dict[str, Any]:
        """Return the occupancies inside the windows, and distances over all states."""
        return {
            "seconds": self.seconds,
            "columns": [
                {
                    "initial": column.initial,
                    "title": column.title,
                    "window": [int(column.window[0]), int(column.window[-1])],
                    "curves": [
                        {
                            **_numbers(column, curve.policy),
                            "occupancy": curve.occupancy[column.window].tolist(),
                        }
                        for curve in column.curves
                    ],
                }
                for column in self.columns
            ],
        }

    def tables(self) -> tuple[Table, ...]:
        """Return the verdicts, and the distances to the optimal occupancy."""
        return statement_table(self.compared()), _distances(self.columns)

    def rows(self) -> Table:
        """Return every number that is drawn."""
        rows = tuple(
            {
                "initial": column.initial,
                "policy": curve.policy,
                "state": int(state),
                "occupancy": float(curve.occupancy[state]),
            }
            for column in self.columns
            for curve in column.curves
            for state in column.window
        )
        keys = ("initial", "policy", "state", "occupancy")
        return Table("Occupancy", tuple(Shown(key, key) for key in keys), rows)

    def compared(self) -> tuple[Compared, ...]:
        """Return the verdicts on what the paper's text says of this figure."""
        return compared(self.columns)

    def times(self) -> tuple[Time, ...]:
        """Return the time of the whole figure."""
        return (Time("solving all methods, everything included", self.seconds),)

    def figure(self) -> Figure:
        """Return the picture."""
        from bellweight.display.panels import panel_figure

        return panel_figure([[_panel(column) for column in self.columns]])


def settings(wanted: Wanted) -> Settings:
    """Return the settings: everything is exact, and quick anyway."""
    return exact_settings("figure-occupancy", wanted)


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> OccupancyFigure:
    """Compute the panels; they take seconds, so a part of them is not worth a picture."""
    began = time.perf_counter()
    columns = columns_of(tell)
    found = OccupancyFigure(columns, settings, time.perf_counter() - began)
    keep(found)
    return found


def elsewhere(column: Column, policy: str) -> float:
    """Return the share of its time that a policy spends where the optimal one does not."""
    gap = column[policy].occupancy - column[OPTIMAL].occupancy
    return 0.5 * float(np.abs(gap).sum())


def compared(columns: Sequence[Column]) -> tuple[Compared, ...]:
    """Return the verdicts on the paper's statements; they need all three columns."""
    named = {column.initial: column for column in columns}
    return (
        *(_never_everywhere(columns, name) for name in _FIXED),
        _near(named["geometric"], MATCH, "match"),
        _near(named["empty"], CLOSE, "closely approximate"),
        _rarely_short(named["reverse"]),
    )


def _never_everywhere(columns: Sequence[Column], name: str) -> Compared:
    shares = {column.title: elsewhere(column, name) for column in columns}
    verdict = verdicts.statement(
        max(shares.values()) > MATCH,
        f"it is within {_percent(MATCH)} under every initial distribution",
    )
    what = f"{name} does not match the optimal occupancy everywhere"
    return Compared(what, f"elsewhere: {_listed(shares.items())}", STATED, verdict)


def _near(column: Column, limit: float, verb: str) -> Compared:
    shares = {name: elsewhere(column, name) for name in _ADAPTIVE}
    far = {name: share for name, share in shares.items() if share > limit}
    verdict = verdicts.statement(
        not far,
        f"more than {_percent(limit)} of the time is spent elsewhere: {_listed(far.items())}",
    )
    what = f"{column.title}: PIA and DIA {verb} the optimal occupancy (within {limit:.0%})"
    return Compared(what, f"elsewhere: {_listed(shares.items())}", STATED, verdict)


def _rarely_short(column: Column) -> Compared:
    mass = {c.policy: float(c.occupancy[:OCCUPIED_FROM].sum()) for c in column.curves}
    most = max(mass, key=lambda name: mass[name])
    verdict = verdicts.statement(
        mass[most] < NEGLIGIBLE, f"{most} spends {mass[most]:.2g} of its time there"
    )
    what = f"{column.title}: no policy visits queues below {OCCUPIED_FROM} to speak of"
    return Compared(what, f"{_percent(mass[most])} of the time", STATED, verdict)


def _numbers(column: Column, policy: str) -> dict[str, Any]:
    occupancy = column[policy].occupancy
    states = np.arange(len(occupancy))
    return {
        "policy": policy,
        "elsewhere": elsewhere(column, policy),
        "mean": float(occupancy @ states),
        "below": float(occupancy[:OCCUPIED_FROM].sum()),
        "inside": float(occupancy[column.window].sum()),
    }


def _distances(columns: Sequence[Column]) -> Table:
    rows = tuple(
        {"initial": column.title, **_numbers(column, curve.policy)}
        for column in columns
        for curve in column.curves
    )
    return Table(
        title="How far from the optimal occupancy, over all states",
        columns=(
            Shown("initial", "initial", right=False),
            Shown("policy", "policy", right=False),
            Shown("elsewhere", "time elsewhere", _percent),
            Shown("mean", "mean queue", "{:,.2f}".format),
            Shown("below", f"below {OCCUPIED_FROM}", _percent),
            Shown("inside", "inside the panel", _percent),
        ),
        rows=rows,
    )


def _panel(column: Column) -> Panel:
    from bellweight.display.panels import Panel

    shown = column.window
    return Panel(
        title=column.title,
        x_label="queue length (jobs)",
        y_label="share of discounted time (log)",
        x=shown,
        curves={name: column[name].occupancy[shown] for name in DRAWN},
        y_range=(_LEAST_DRAWN, 1.0),
        is_log=True,
    )


def _listed(shares: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {_percent(share)}" for name, share in shares)


def _percent(share: float) -> str:
    return "under 0.01 %" if 0.0 < share < 5e-5 else f"{100.0 * share:.2f} %"
