"""Charts as Matplotlib figures: nothing is shown on a screen.

Lines differ by dash and marker as well as by colour, for print without colour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from matplotlib.transforms import ScaledTranslation

from bellweight.display.axes import light_frame, new_figure
from bellweight.display.charts import Chart, HeatMap, Line, Picture, palette_of
from bellweight.display.colours import NEUTRAL, Palette
from bellweight.display.table import short_text

_DASHES = ("-", "--", "-.", (0, (8, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P")
_PANEL = (4.8, 3.2)  # inches: two side by side are readable on a page
_LOW = 1.9  # inches of a chart with few named rows
_AXIS_WORDS = 0.45  # inches below an axis that its numbers and its name take
_DPI = 190
_MOST_NAMES = 12
_TITLE_WIDTH = 50
_NAME_WIDTH = 22
_MANY = 60  # points; more are drawn small and see-through


def draw(pictures: Sequence[Picture], *, columns: int = 2) -> Figure:
    """Return one figure with a panel for each picture."""
    across = max(1, min(columns, len(pictures)))
    down = -(-len(pictures) // across) or 1
    height = _PANEL[1] if len(pictures) != 1 else _height(pictures[0])
    size = (_PANEL[0] * across, height * down)
    figure = new_figure(size, _DPI)
    palette = palette_of(pictures)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, picture in zip(panels, pictures, strict=False):
        if isinstance(picture, Chart):
            _draw_chart(axes, picture, palette)
        else:
            _draw_map(figure, axes, picture, palette)
        title = textwrap.fill(_plain(picture.title), _TITLE_WIDTH)
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_xlabel(_plain(picture.x_label))
        axes.set_ylabel(_plain(picture.y_label))
    for axes in panels[len(pictures) :]:
        axes.set_visible(False)
    return figure


def _height(picture: Picture) -> float:
    if isinstance(picture, Chart) and picture.y_shown is not None:
        low, high = picture.y_shown
        return min(8.0, _LOW + 0.3 * (high - low))
    return _PANEL[1]


def _draw_chart(axes: Axes, chart: Chart, palette: Palette) -> None:
    for line in chart.lines:
        _draw_line(axes, line, palette, sideways=chart.y_names is not None)
    if chart.log_y:
        axes.set_yscale("log")
    shown = chart.x_shown
    if shown is not None and shown[0] < shown[1]:
        axes.set_xlim(shown)
    if chart.y_range is not None:
        axes.set_ylim(chart.y_range)
    _name(axes, chart)
    for value, row, right in chart.beyond():
        axes.annotate(
            f"{short_text(value)} ▶" if right else f"◀ {short_text(value)}", (float(right), row),
            xycoords=("axes fraction", "data"), ha="right" if right else "left", va="center",
            fontsize="small",
        )  # fmt: skip
    _separate_thousands(axes, chart)
    light_frame(axes)
    if len(chart.lines) > 1:
        _legend(axes, chart)


def _separate_thousands(axes: Axes, chart: Chart) -> None:
    """Write 12,500 in place of 12500 where an axis has numbers of that size."""
    numbered: list[Axis] = []
    numbered += [axes.xaxis] if chart.x_names is None else []
    numbered += [axes.yaxis] if chart.y_names is None and not chart.log_y else []
    for axis in numbered:
        low, high = axis.get_view_interval()
        if max(abs(low), abs(high)) >= 1_000.0 and high - low >= 10.0:
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


def _legend(axes: Axes, chart: Chart) -> None:
    """Name the lines: inside where there is room, below a chart whose rows take all of it."""
    if any(line.marks for line in chart.lines):
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 2}
        down = ScaledTranslation(0.0, -_AXIS_WORDS, axes.figure.dpi_scale_trans)
        below |= {"bbox_transform": axes.transAxes + down}
        below |= {"handlelength": 1.2, "handletextpad": 0.5, "columnspacing": 1.0}
        axes.legend(frameon=False, fontsize="small", **below)
    else:
        axes.legend(frameon=False, fontsize="small")


def _draw_line(axes: Axes, line: Line, palette: Palette, *, sideways: bool) -> None:
    color, dash, marker = _look(line, palette)
    label = _plain(line.label)
    if line.style == "points":
        error: dict[str, Any] = {"xerr" if sideways else "yerr": line.error}
        size, alpha = (5.0, 1.0) if len(line.x) <= _MANY else (2.5, 0.6)
        colours = [palette.of(name).colour for name in line.marks]
        axes.errorbar(
            line.x, line.y, **error, fmt="none" if colours else marker, color=color,
            ecolor=NEUTRAL if colours else color, markersize=size, alpha=alpha, capsize=0.6 * size,
            label=None if colours else label,
        )  # fmt: skip
        if colours:  # the key shows a dark point: colours are those of policies
            axes.scatter(line.x, line.y, s=size**2 + 5.0, c=colours, zorder=3)
            axes.plot([], [], "o", color="0.2", markersize=size, label=label)
    elif line.style == "ticks":
        axes.plot(line.x, line.y, "|", color=color, markersize=13, markeredgewidth=2, label=label)
    elif line.style == "band":
        axes.plot(
            line.x, line.y, color=color, linewidth=7, alpha=0.45, solid_capstyle="butt", label=label
        )
    else:
        step = "steps-post" if line.style == "steps" else "default"
        few = marker if line.is_marked else ""
        axes.plot(
            line.x, line.y, color=color, linestyle=dash, linewidth=1.5, drawstyle=step,
            marker=few, markersize=4, label=label,
        )  # fmt: skip


def _look(line: Line, palette: Palette) -> tuple[str, Any, str]:
    """Return colour, dash and marker of a line."""
    if line.owner is None:
        return NEUTRAL, ":" if line.style == "rule" else "-", "o"
    look = palette.of(line.owner)
    return look.colour, _DASHES[look.place % len(_DASHES)], _MARKERS[look.place % len(_MARKERS)]


def _name(axes: Axes, chart: Chart) -> None:
    if chart.y_names is not None and chart.y_shown is not None:
        places = chart.y_places(_MOST_NAMES)
        names = [_folded(chart.y_names[k]) for k in places]
        axes.set_yticks(places, names, fontsize="small")
        axes.set_ylim(*chart.y_shown)
    if chart.x_names is not None:
        _set_names(axes, chart.x_names)
    elif all(np.array_equal(line.x, np.round(line.x)) for line in chart.lines):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _set_names(axes: Axes, names: tuple[str, ...]) -> None:
    stride = -(-len(names) // _MOST_NAMES)
    shown = [_cut(name) for name in names[::stride]]
    turned = sum(map(len, shown)) > 30
    axes.set_xticks(
        range(0, len(names), stride),
        shown,
        fontsize="small",
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
    )


def _draw_map(figure: Figure, axes: Axes, picture: HeatMap, palette: Palette) -> None:
    if picture.z_names is None:
        mesh = axes.pcolormesh(_edges(picture.x), _edges(picture.y), picture.z, cmap="cividis")
        bar = figure.colorbar(mesh, ax=axes)
    else:
        n = len(picture.z_names)
        shades = ListedColormap([palette.action(name) for name in picture.z_names])
        norm = BoundaryNorm(np.arange(n + 1) - 0.5, n)
        edges = _edges(picture.x), _edges(picture.y)
        mesh = axes.pcolormesh(*edges, picture.z, cmap=shades, norm=norm)
        stride = -(-n // _MOST_NAMES)
        bar = figure.colorbar(mesh, ax=axes, ticks=range(0, n, stride))
        bar.ax.set_yticklabels([_cut(name) for name in picture.z_names[::stride]])
    bar.set_label(_plain(picture.z_label))


def _edges(centres: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the edges (n + 1,) of cells around centres (n,); a cell alone is one wide."""
    if len(centres) == 1:
        return centres[0] + np.array([-0.5, 0.5])
    between = 0.5 * (centres[1:] + centres[:-1])
    ends = centres[[0, -1]] + 0.5 * np.array([centres[0] - centres[1], centres[-1] - centres[-2]])
    return np.concatenate([ends[:1], between, ends[1:]])


def _plain(text: str) -> str:
    """Return a text in which a user's dollar signs are not read as mathematics."""
    return text.replace("$", r"\$")


def _folded(text: str) -> str:
    return textwrap.fill(_plain(text), _NAME_WIDTH, max_lines=3, placeholder=" …")


def _cut(text: str) -> str:
    return _plain(text if len(text) <= 28 else text[:27] + "…")
