"""What all Matplotlib figures share: how figures are made, and how axes look."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PRINT_DPI = 200


def new_figure(size: tuple[float, float], dpi: int = PRINT_DPI) -> Figure:
    """Return an empty figure of this size in inches; nothing is shown on a screen."""
    return Figure(figsize=size, dpi=dpi, layout="constrained")


def light_frame(axes: Axes) -> None:
    """Draw a light grid behind the curves, and only the left and the lower edge of the frame."""
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
