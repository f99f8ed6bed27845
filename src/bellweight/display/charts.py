"""Pictures as data: lines over one axis, or colours over two. Others draw them.

The same chart becomes a Matplotlib figure (`drawing.py`), an interactive one (`interactive.py`)
and, for those who cannot see it, a sentence (`alt`) with a table of its numbers (`numbers`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.display.colours import Palette
from bellweight.display.table import Column, Table, number_text, short_text

_MOST_ROWS = 200
_MANY_ROWS = 12  # names beside steps; of more, only those are shown that are taken
_FEW_POINTS = 30  # of a line; each of so few has a marker
_MARKER_ROOM = 0.03  # share of an axis that a marker at its end takes
_LEAST_POINTS = 3  # with fewer, a sentence says more than a picture
_Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Line:
    """One series: positions and heights (n,), and how it is drawn.

    `style` is `line`, `steps` (constant up to the next position), `points`, `ticks` (points without
    an owner), `band` (thick, with gaps where a number is missing), or `rule` (a level to compare
    with). `error` (n,) are half-widths along the axis of the numbers. All series of one owner,
    `who` (by default the label), have the same colour on a whole page; bands and rules have no
    owner. `marks` name the owners of single points.
    """

    label: str
    x: _Array
    y: _Array
    style: str = "line"
    error: _Array | None = None
    who: str = ""
    marks: tuple[str, ...] = ()

    @property
    def owner(self) -> str | None:
        """The owner whose colour it takes, None where it has none, or one for each point."""
        nobody = self.style in ("band", "rule", "ticks") or self.marks
        return None if nobody else self.who or self.label

    @property
    def is_marked(self) -> bool:
        """Whether its points have markers, as those of a line with few points."""
        return self.style in ("line", "steps") and len(self.x) <= _FEW_POINTS

    @property
    def positions(self) -> _Array:
        """Where there are points that carry a message of their own, each of them."""
        found: _Array = self.x[self._speaks]
        return found

    @property
    def places(self) -> list[tuple[str, float]]:
        """Their positions, as exactly as a picture shows them, and their rows."""
        points = zip(self.x[self._speaks].tolist(), self.y[self._speaks].tolist(), strict=True)
        return [(f"{x:.6g}", y) for x, y in points]

    @property
    def _speaks(self) -> _Array:
        known: _Array = np.isfinite(self.y * self.x)
        return known & (self.style not in ("band", "rule"))


@dataclass(frozen=True, eq=False)
class Chart:
    """Lines over one axis; `x_names` or `y_names` stand for the positions 0, 1, ....

    `alt` says in a sentence what is to be seen. The ranges are what is shown at first.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    alt: str
    log_y: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    x_names: tuple[str, ...] | None = None
    y_names: tuple[str, ...] | None = None

    @property
    def is_worth_drawing(self) -> bool:
        """Whether a picture tells more than its sentence: from three points on.

        Rows of named points count together, those that coincide once; along an axis one line
        alone must have them, at different positions.
        """
        if self.y_names is not None:
            return len({place for line in self.lines for place in line.places}) >= _LEAST_POINTS
        return max((len(np.unique(line.positions)) for line in self.lines), default=0) >= (
            _LEAST_POINTS
        )

    @property
    def x_shown(self) -> tuple[float, float] | None:
        """The range that is shown at first: with room for names and markers at its ends."""
        if self.x_names is not None:
            low, high = self.x_range or (0.0, len(self.x_names) - 1.0)
            return low - 0.5, high + 0.5
        if self.x_range is None:
            return None
        low, high = self.x_range
        room = _MARKER_ROOM * (high - low) * any(line.is_marked for line in self.lines)
        return low - room, high + room

    @property
    def y_shown(self) -> tuple[float, float] | None:
        """The named rows that are shown: of many along an axis, those that some line takes."""
        if self.y_names is None:
            return None
        low, high = 0.0, len(self.y_names) - 1.0
        if high >= _MANY_ROWS and all(line.style == "steps" for line in self.lines):
            low = min(float(line.y.min()) for line in self.lines)
            high = max(float(line.y.max()) for line in self.lines)
        return low - 0.5, high + 0.5

    def y_places(self, most: int) -> range:
        """Return the rows that are named: every one shown, every second one, ..., not too many."""
        low, high = self.y_shown or (-0.5, -0.5)
        first, last = round(low + 0.5), round(high + 0.5)
        return range(first, last, -(-(last - first) // most) or 1)

    def beyond(self) -> list[tuple[float, float, bool]]:
        """Return number, row and side (right or left) of points outside of a range of numbers."""
        if self.x_range is None or self.y_names is None:
            return []
        low, high = self.x_range
        return [
            (x, y, x > high)
            for line in self.lines
            if line.style in ("points", "ticks")
            for x, y in zip(line.x.tolist(), line.y.tolist(), strict=True)
            if x < low or x > high
        ]

    def numbers(self) -> Table:
        """Return the numbers of all lines in the range shown, each thinned out if very long."""
        rows: list[dict[str, Any]] = []
        left_out = 0
        for line in self.lines:
            known = self._rows(line)
            stride = -(-len(known) // _MOST_ROWS) or 1
            rows += known[::stride]
            left_out = max(left_out, stride - 1)
        columns = (
            Column("series", "series", right=False),
            Column("x", self.x_label, _short),
            Column("y", self.y_label, _short),
            Column("error", "95 % half-width", _short),
        )
        used = columns if any(line.error is not None for line in self.lines) else columns[:3]
        return Table(self.title, used, tuple(rows), _left_out(left_out + 1))

    def _rows(self, line: Line) -> list[dict[str, Any]]:
        shown = None if self.y_names is not None else self.x_range
        low, high = (-math.inf, math.inf) if shown is None else shown
        widths = [None] * len(line.x) if line.error is None else line.error.tolist()
        return [
            {
                "series": line.label,
                "x": _named(x, self.x_names),
                "y": _named(y, self.y_names),
                "error": width,
            }
            for x, y, width in zip(line.x.tolist(), line.y.tolist(), widths, strict=True)
            if low <= x <= high and not math.isnan(y)
        ]


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Numbers z (ny, nx) over positions x (nx,) and y (ny,); not a number where there is none.

    With `z_names` the numbers are places in that list.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    x: _Array
    y: _Array
    z: _Array
    z_label: str
    alt: str
    z_names: tuple[str, ...] | None = None

    @property
    def is_worth_drawing(self) -> bool:
        """Whether a picture tells more than its sentence: from three cells on."""
        return int(np.isfinite(self.z).sum()) >= _LEAST_POINTS

    def numbers(self) -> Table:
        """Return the cells that have a number, thinned out where there are very many."""
        rows = [
            {"x": x, "y": y, "z": _named(self.z[j, i], self.z_names)}
            for j, y in enumerate(self.y.tolist())
            for i, x in enumerate(self.x.tolist())
            if not np.isnan(self.z[j, i])
        ]
        columns = (
            Column("x", self.x_label, _short),
            Column("y", self.y_label, _short),
            Column("z", self.z_label, _short),
        )
        stride = -(-len(rows) // _MOST_ROWS) or 1
        return Table(self.title, columns, tuple(rows[::stride]), _left_out(stride))


Picture = Chart | HeatMap


def palette_of(pictures: Sequence[Picture]) -> Palette:
    """Return the colours of a page: one for each policy and one for each action in all charts."""
    palette = Palette()
    owners = [
        name for picture in pictures if isinstance(picture, Chart) for name in _owners(picture)
    ]
    times = Counter(owners)
    # The first colours differ most: they go to those that come back from chart to chart.
    for name in sorted(owners, key=lambda name: times[name] == 1):
        palette.of(name)
    for picture in pictures:
        if isinstance(picture, HeatMap):
            palette.meet_actions(picture.z_names or ())
    return palette


def _owners(chart: Chart) -> Iterator[str]:
    """Yield the names of a chart that have a colour, each once."""
    known: list[str] = []
    for line in chart.lines:
        known += reversed(line.marks)  # the first row stands on top
        known += [line.owner] if line.owner is not None else []
    yield from dict.fromkeys(known)


def visible_heights(lines: Sequence[Line], x_range: tuple[float, float]) -> tuple[float, float]:
    """Return the range of heights inside a range of positions, with a margin around it.

    Of three lines or more, one that runs far from most of them does not set the scale.
    """
    low, high = x_range
    seen = [line.y[(line.x >= low) & (line.x <= high) & np.isfinite(line.y)] for line in lines]
    known = [heights for heights in seen if len(heights)]
    if not known:
        return 0.0, 1.0
    least = np.array([heights.min() for heights in known])
    most = np.array([heights.max() for heights in known])
    bottom, top = float(least.min()), float(most.max())
    if len(known) > 2:
        usual = float(np.median(least)), float(np.median(most))
        room = usual[1] - usual[0] or 0.1 * abs(usual[1]) or 1.0
        bottom, top = max(bottom, usual[0] - room), min(top, usual[1] + room)
    margin = 0.05 * (top - bottom) or 0.05 * abs(bottom) or 1.0
    return bottom - margin, top + margin


def off_scale(lines: Sequence[Line], chart: Chart) -> str:
    """Return a sentence on lines that leave the range of heights shown, or no text."""
    if chart.y_range is None or chart.x_range is None:
        return ""
    (left, right), (low, high) = chart.x_range, chart.y_range
    told = []
    for line in lines:
        inside = line.y[(line.x >= left) & (line.x <= right) & np.isfinite(line.y)]
        if len(inside) and (inside.min() < low or inside.max() > high):
            ends = short_text(inside.min()), short_text(inside.max())
            told.append(f"{line.label} ({ends[0]} to {ends[1]})")
    return f" Beyond the scale: {', '.join(told)}." if told else ""


def name_of(value: float, names: tuple[str, ...]) -> str:
    """Return the name at a position; nothing beside the positions."""
    whole = float(value).is_integer() and 0 <= value < len(names)
    return names[int(value)] if whole else ""


def _named(value: float, names: tuple[str, ...] | None) -> Any:
    return value if names is None else name_of(value, names)


def _short(value: Any) -> str:
    return number_text(value) if isinstance(value, float | int) else str(value)


def _left_out(stride: int) -> tuple[str, ...]:
    return () if stride == 1 else (f"One of every {stride} numbers.",)
