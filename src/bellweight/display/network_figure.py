"""A network of queues as a picture: nodes, arrows between them, and boxes around groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from bellweight.display.axes import new_figure
from bellweight.display.colours import BLUE, GREEN, ORANGE, PURPLE, RED, SKY

_COLOURS = (BLUE, GREEN, RED, PURPLE, ORANGE, SKY)
_RADIUS = 0.2
_PAD = (0.55, 0.38)  # of a box around its nodes
_STUB = 1.1  # length of an arrow from or to the outside
_SPACING = (2.0, 1.15)
_INCHES = 1.05  # per unit of length


@dataclass(frozen=True)
class Node:
    """A queue: where it stands (column, row from the top), and what is written in and beside it.

    The note stands at the upper right, or at the upper left where an arrow would cross it.
    """

    name: str
    column: float
    row: float
    note: str = ""
    note_left: bool = False

    @property
    def place(self) -> tuple[float, float]:
        """The centre in the picture."""
        return _SPACING[0] * self.column, -_SPACING[1] * self.row


@dataclass(frozen=True)
class Outside:
    """An arrow from or to the outside of the network; `side` is "left" or "right"."""

    node: str
    side: str
    text: str
    enters: bool


def network_figure(
    nodes: Sequence[Node],
    arrows: Sequence[tuple[str, str]],
    outside: Sequence[Outside],
    groups: Mapping[str, Sequence[str]],
    footnote: str = "",
) -> Figure:
    """Draw the network; `arrows` name two nodes each, `groups` the nodes inside each box."""
    named = {node.name: node for node in nodes}
    xs, ys = zip(*(node.place for node in nodes), strict=True)
    left, right = min(xs) - _STUB - 0.75, max(xs) + _STUB + 0.75
    low, high = min(ys) - 0.85, max(ys) + 0.8
    size = (_INCHES * (right - left), _INCHES * (high - low))
    figure = new_figure(size)
    axes = figure.subplots()
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.axis("off")
    for place, (title, members) in enumerate(groups.items()):
        _draw_group(axes, title, [named[name] for name in members], _COLOURS[place])
    for start, end in arrows:
        _draw_arrow(axes, named[start].place, named[end].place, _RADIUS, _RADIUS)
    for arrow in outside:
        _draw_outside(axes, named[arrow.node], arrow)
    for node in nodes:
        _draw_node(axes, node)
    axes.text((left + right) / 2, low, footnote, ha="center", va="bottom", fontsize=8)
    return figure


def _draw_group(axes: Axes, title: str, members: Sequence[Node], colour: str) -> None:
    xs, ys = zip(*(node.place for node in members), strict=True)
    corner = min(xs) - _PAD[0], min(ys) - _PAD[1]
    width, height = max(xs) - min(xs) + 2 * _PAD[0], max(ys) - min(ys) + 2 * _PAD[1]
    box = FancyBboxPatch(
        corner, width, height, boxstyle="round,pad=0.04", linewidth=1.5, edgecolor=colour,
        facecolor=colour + "18", zorder=1,
    )  # fmt: skip
    axes.add_patch(box)
    above = (sum(xs) / len(xs), max(ys) + _PAD[1] + 0.1)
    axes.annotate(title, above, ha="center", va="bottom", fontsize=9, color="black")


def _draw_node(axes: Axes, node: Node) -> None:
    x, y = node.place
    axes.add_patch(Circle((x, y), _RADIUS, facecolor="white", edgecolor="black", zorder=3))
    axes.text(x, y, node.name, ha="center", va="center", fontsize=10, zorder=4)
    side, across = ("right", -0.75) if node.note_left else ("left", 0.75)
    corner = x + across * _RADIUS, y + 0.85 * _RADIUS
    axes.text(*corner, node.note, ha=side, fontsize=8, zorder=4)


def _draw_outside(axes: Axes, node: Node, arrow: Outside) -> None:
    x, y = node.place
    far = (x - _STUB, y) if arrow.side == "left" else (x + _STUB, y)
    if arrow.enters:
        _draw_arrow(axes, far, (x, y), 0.0, _RADIUS)
    else:
        _draw_arrow(axes, (x, y), far, _RADIUS, 0.0)
    beyond = far[0] - 0.05 if arrow.side == "left" else far[0] + 0.05
    side = "right" if arrow.side == "left" else "left"
    axes.text(beyond, y, arrow.text, ha=side, va="center", fontsize=8)


def _draw_arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], off: float, before: float
) -> None:
    """Draw an arrow that leaves and reaches its nodes at their rims."""
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    along = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    tail = start[0] + off * along[0], start[1] + off * along[1]
    head = end[0] - before * along[0], end[1] - before * along[1]
    axes.add_patch(
        FancyArrowPatch(
            tail,
            head,
            arrowstyle="-|>",
            mutation_scale=12,
            linewidth=1.3,
            color="0.15",
            shrinkA=0.0,
            shrinkB=0.0,
            zorder=2,
        )
    )
