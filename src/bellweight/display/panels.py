"""A grid of panels with the same curves in each, and one legend for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bellweight.display.axes import light_frame, new_figure
from bellweight.display.colours import BLACK, BLUE, ORANGE, RED, SKY

# Black for what all others are compared with.
_Dash = tuple[float, tuple[float, ...]]
_STYLES: tuple[tuple[str, str, _Dash], ...] = (
    (BLACK, "", (0, ())),
    (ORANGE, "o", (0, (6, 2))),
    (SKY, "s", (0, (4, 1.5, 1, 1.5))),
    (RED, "^", (0, (2, 1.2))),
    (BLUE, "D", (0, (1, 1.4))),
)
_PANEL = (3.3, 2.5)  # inches
_SHIFT = 0.012  # of the height, between curves that would hide each other


@dataclass(frozen=True)
class Panel:
    """Curves over a common axis; `x` (n,), each curve (n,).

    `levels` are the only heights there are: the curves are then steps, each a little above the one
    before, so that none hides another. `y_range` cuts off what lies outside; a curve that is
    nowhere inside is named.
    """

    title: str
    x_label: str
    y_label: str
    x: np.ndarray
    curves: Mapping[str, np.ndarray]
    y_range: tuple[float, float] | None = None
    levels: tuple[float, ...] = ()
    is_log: bool = False


def panel_figure(rows: Sequence[Sequence[Panel]]) -> Figure:
    """Draw panels row by row; the first curve is the one to compare with."""
    n_columns = max(len(row) for row in rows)
    size = (_PANEL[0] * n_columns, _PANEL[1] * len(rows) + 0.5)
    figure = new_figure(size)
    grid = figure.subplots(len(rows), n_columns, squeeze=False)
    for line, row in zip(grid, rows, strict=True):
        for axes, panel in zip(line, row, strict=True):
            _draw(axes, panel)
    names = list(rows[0][0].curves)
    handles = [_handle(name, place) for place, name in enumerate(names)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    spread = (max(panel.levels) - min(panel.levels)) if panel.levels else 0.0
    for place, values in enumerate(panel.curves.values()):
        color, marker, dash = _STYLES[place]
        axes.plot(
            panel.x,
            values + place * _SHIFT * spread,
            color=color,
            linestyle=dash,
            linewidth=1.4,
            drawstyle="steps-mid" if panel.levels else "default",
            marker=marker,
            markersize=3.2,
            # Markers of different curves stand in different places.
            markevery=(3 * place, 15),
        )
    axes.set_title(panel.title, fontsize="small", loc="left")
    axes.set_xlabel(panel.x_label, fontsize="small")
    axes.set_ylabel(panel.y_label, fontsize="small")
    axes.tick_params(labelsize="x-small")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_major_formatter(thousands)
    if panel.is_log:
        axes.set_yscale("log")
    elif panel.levels:
        axes.set_yticks(panel.levels, [f"{level:g}" for level in panel.levels])
    elif max(abs(bound) for bound in panel.y_range or axes.get_ylim()) > 100.0:
        axes.yaxis.set_major_formatter(thousands)
    axes.set_xlim(float(panel.x[0]), float(panel.x[-1]))
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
        _name_missing(axes, panel)
    light_frame(axes)


def _name_missing(axes: Axes, panel: Panel) -> None:
    """Write the names of curves that lie outside the panel as a whole."""
    assert panel.y_range is not None
    low, high = panel.y_range
    lost = [
        f"{name}: {'below' if values.max() < low else 'above'} (about {values.mean():.0e})"
        for name, values in panel.curves.items()
        if values.max() < low or values.min() > high
    ]
    if lost:
        text = "\n".join(["outside the panel:", *lost])
        axes.text(0.97, 0.05, text, transform=axes.transAxes, ha="right", fontsize="x-small")


def _handle(name: str, place: int) -> Line2D:
    color, marker, dash = _STYLES[place]
    return Line2D(
        [], [], color=color, marker=marker, linestyle=dash, markersize=4, linewidth=1.4, label=name
    )
