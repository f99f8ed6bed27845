"""Figures: functions that return a Matplotlib `Figure`; nothing is shown on a screen.

Lines differ by marker and dash as well as by colour, for print without colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bellweight.display.axes import light_frame, new_figure
from bellweight.display.colours import BLUE, GREEN, PURPLE, RED

_STYLES = (
    (RED, "o", "-"),
    (BLUE, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
)
_SIZE = (6.4, 4.2)
_MOST_TICKS = 8
_CELL = (0.62, 0.42)  # inches of a heat map's cell
_MAPS = (
    ("cost", "cost of the greedy policy", False),
    ("mismatch", "mismatch $R(c)$ at the end", True),
    ("greedy_mismatch", "weights to greedy occupancy", False),
)


def convergence_figure(
    differences: Mapping[str, Sequence[float]],
    *,
    noise: float | None = None,
) -> Figure:
    """Draw successive differences by iteration, one curve for each method, on a log axis.

    A difference of exactly zero has no place on a log axis: it is drawn as an open marker on a
    line of its own below all others, labelled 0. `noise` is a level to compare with.
    """
    figure = new_figure(_SIZE)
    axes = figure.subplots()
    axes.set_yscale("log")
    positive = [d for curve in differences.values() for d in curve if d > 0.0]
    if noise is not None and noise > 0.0:
        positive.append(noise)
        axes.axhline(
            noise, color="0.45", linewidth=1.0, linestyle=(0, (1, 2)), label="simulation noise"
        )
    has_zero = any(d == 0.0 for curve in differences.values() for d in curve)
    floor = _floor(positive)
    for (name, curve), style in zip(differences.items(), _STYLES, strict=False):
        _draw(axes, name, np.asarray(curve, dtype=np.float64), style, floor)
    if has_zero:
        _label_zero(axes, floor)
    axes.set_xlabel("iteration $m$")
    axes.set_ylabel(r"$\|c^{(m)\top}\Phi - c^{(m-1)\top}\Phi\|_1$  (jobs and jobs$^2$)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    light_frame(axes)
    axes.legend(frameon=False, loc="best")
    return figure


def _floor(positive: Sequence[float]) -> float:
    """Return the height at which exact zeros are drawn: two decades below everything else."""
    return 10.0 ** (np.floor(np.log10(min(positive, default=1.0))) - 2.0)


def _draw(
    axes: Axes, name: str, curve: np.ndarray, style: tuple[str, str, str], floor: float
) -> None:
    color, marker, dash = style
    iterations = np.arange(1, len(curve) + 1)
    zero = curve == 0.0
    heights = np.where(zero, floor, curve)
    axes.plot(iterations, heights, color=color, linestyle=dash, linewidth=1.4)
    # The legend shows line and marker together.
    axes.plot([], [], color=color, linestyle=dash, marker=marker, markersize=5, label=name)
    for part, face in ((~zero, color), (zero, "white")):
        axes.plot(
            iterations[part],
            heights[part],
            color=color,
            linestyle="none",
            marker=marker,
            markersize=5,
            markerfacecolor=face,
            clip_on=False,
        )


def _label_zero(axes: Axes, floor: float) -> None:
    """Draw the line of exact zeros, with its own tick in place of the log axis's."""
    axes.axhline(floor, color="0.7", linewidth=0.8)
    axes.set_ylim(bottom=floor / 3.0)
    highest = axes.get_ylim()[1]
    decades = np.arange(np.round(np.log10(floor)) + 1.0, np.log10(highest))
    step = max(1, int(np.ceil(len(decades) / _MOST_TICKS)))
    shown = decades[step - 1 :: step]
    axes.set_yticks([floor, *(10.0**shown)], ["exactly 0", *(f"$10^{{{int(d)}}}$" for d in shown)])
    axes.minorticks_off()


class Grid(Protocol):
    """Numbers over temperatures, smoothing masses and step sizes, as `Sensitivity` holds them."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The columns of a heat map."""

    @property
    def smoothing_masses(self) -> tuple[float, ...]:
        """The rows of a heat map."""

    @property
    def step_sizes(self) -> tuple[float, ...]:
        """One row of heat maps for each."""

    def grid(self, name: str, step_size: float | None = None) -> np.ndarray[Any, Any]:
        """Return the numbers (masses, temperatures) of this name."""


def sensitivity_figure(found: Grid, *, title: str = "") -> Figure:
    """Draw costs and mismatches as heat maps, temperature across, one row for each step size.

    All maps of one kind share their colours, and every cell holds its number.
    """
    n_steps, n_maps = len(found.step_sizes), len(_MAPS)
    width = max(2.9, _CELL[0] * len(found.temperatures) + 1.4)
    height = max(2.2, _CELL[1] * len(found.smoothing_masses) + 1.3)
    figure = new_figure((n_maps * width, n_steps * height + 0.3))
    panels = figure.subplots(n_steps, n_maps, squeeze=False)
    for column, (name, heading, is_log) in enumerate(_MAPS):
        grids = [found.grid(name, step) for step in found.step_sizes]
        norm = _shared_norm(np.array(grids), is_log)
        for row, (step, values) in enumerate(zip(found.step_sizes, grids, strict=True)):
            axes = panels[row, column]
            image = axes.imshow(values, norm=norm, cmap="cividis", aspect="auto", origin="lower")
            _write_cells(axes, values, norm, is_log)
            _label_grid(axes, found)
            axes.set_title(f"{heading}\nstep size {step:g}", fontsize="small", loc="left")
            if np.ptp(grids) > 0.0:
                figure.colorbar(image, ax=axes, shrink=0.9).ax.tick_params(labelsize=7)
    figure.suptitle(title, fontsize="medium")
    return figure


def _shared_norm(values: np.ndarray[Any, Any], is_log: bool) -> Normalize:
    low, high = float(values.min()), float(values.max())
    if is_log and high > 0.0:
        low = float(values[values > 0.0].min())
        return LogNorm(low, max(high, 10.0 * low), clip=True)
    return Normalize(low, high if high > low else low + max(abs(low), 1.0))


def _write_cells(axes: Axes, values: np.ndarray[Any, Any], norm: Normalize, is_log: bool) -> None:
    for (row, column), value in np.ndenumerate(values):
        # Cividis runs from dark to light.
        colour = "black" if float(norm(value)) > 0.55 else "white"
        text = f"{value:.0e}" if is_log else _short(float(value))
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=6)


def _short(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 1_000.0 else f"{value:.{2 if size >= 1.0 else 3}f}"


def _label_grid(axes: Axes, found: Grid) -> None:
    axes.set_xticks(range(len(found.temperatures)), [f"{t:g}" for t in found.temperatures])
    axes.set_yticks(range(len(found.smoothing_masses)), [f"{m:g}" for m in found.smoothing_masses])
    axes.tick_params(labelsize=7)
    axes.set_xlabel("temperature", fontsize="small")
    axes.set_ylabel("smoothing mass", fontsize="small")
