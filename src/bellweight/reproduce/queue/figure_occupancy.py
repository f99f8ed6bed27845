"""The occupancy figure: in which states each policy spends its discounted time, exactly.

The paper's text says which policies match the optimal one. How far two occupancies lie apart is
measured here by the share of the time that is spent elsewhere (half the 1-norm, over all states);
the paper gives no measure, so the shares that count as a match and as close are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.display import Column as Shown
from bellweight.display import Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Artefact
from bellweight.reproduce.paper import ADAPTIVE, OCCUPIED_FROM
from bellweight.reproduce.queue.curves import FIXED, Column, Curve, QueueCurves, panel, steps
from bellweight.reproduce.queue.runs import OPTIMAL
from bellweight.reproduce.tables import STATED, statement_table
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MATCH = 0.02
"""Share of the time spent elsewhere up to which an occupancy counts as the same."""
CLOSE = 0.1
"""The same for: closely approximates."""
NEGLIGIBLE = 1e-3
_LEAST_DRAWN = 1e-5


@dataclass(frozen=True, eq=False)
class OccupancyFigure(QueueCurves):
    """Occupancies, and how far they are from that of the optimal policy."""

    @property
    def caption(self) -> str:
        return (
            "The single queue: the share of discounted time that each policy spends in each state, "
            "under three initial distributions. The black line is the optimal policy. The first "
            "two panels show the shortest queues, the third the longest ones, where a full system "
            f"spends its time. The scale is logarithmic and ends at {_LEAST_DRAWN:g}."
        )

    @staticmethod
    def drawn(curve: Curve) -> dict[str, FloatArray]:
        """Return the occupancy."""
        return {"occupancy": curve.occupancy}

    @staticmethod
    def numbers(column: Column, curve: Curve) -> dict[str, Any]:
        """Return the distance to the optimal occupancy, and where the time is spent."""
        occupancy = curve.occupancy
        return {
            "elsewhere": elsewhere(column, curve.policy),
            "mean": float(occupancy @ np.arange(len(occupancy))),
            "below": float(occupancy[:OCCUPIED_FROM].sum()),
            "inside": float(occupancy[column.window].sum()),
        }

    def tables(self) -> tuple[Table, ...]:
        """Return the verdicts, and the distances to the optimal occupancy."""
        return statement_table(self.compared()), _distances(self.columns)

    def compared(self) -> tuple[Compared, ...]:
        return compared(self.columns)

    def figure(self) -> Figure:
        from bellweight.display.panels import panel_figure

        label = "share of discounted time (log)"
        look: dict[str, Any] = {"y_range": (_LEAST_DRAWN, 1.0), "is_log": True}
        return panel_figure([[panel(c, label, "occupancy", **look) for c in self.columns]])


ARTEFACTS = (Artefact("figure-occupancy", partial(steps, OccupancyFigure)),)


def elsewhere(column: Column, policy: str) -> float:
    """Return the share of its time that a policy spends where the optimal one does not."""
    gap = column[policy].occupancy - column[OPTIMAL].occupancy
    return 0.5 * float(np.abs(gap).sum())


def compared(columns: Sequence[Column]) -> tuple[Compared, ...]:
    """Return the verdicts on the paper's statements; they need all three columns."""
    named = {column.initial: column for column in columns}
    return (
        *(_never_everywhere(columns, name) for name in FIXED),
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
    shares = {name: elsewhere(column, name) for name in ADAPTIVE}
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


def _distances(columns: Sequence[Column]) -> Table:
    rows = tuple(
        {"initial": column.title, "policy": curve.policy, **OccupancyFigure.numbers(column, curve)}
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


def _listed(shares: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {_percent(share)}" for name, share in shares)


def _percent(share: float) -> str:
    return "under 0.01 %" if 0.0 < share < 5e-5 else f"{100.0 * share:.2f} %"
