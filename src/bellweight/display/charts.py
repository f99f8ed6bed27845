"""Pictures as data: lines over one axis, or colours over two. Others draw them.

The same chart becomes a Matplotlib figure (`drawing.py`), an interactive one (`interactive.py`)
and, for those who cannot see it, a sentence (`alt`) with a table of its numbers (`numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.display.table import Column, Table

_MOST_ROWS = 200
_Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Line:
    """One series: positions and heights (n,), and how it is drawn.

    `style` is `line`, `steps` (constant up to the next position), `points`, `band` (thick, with
    gaps where a number is missing), or `rule` (a level to compare with). `error` (n,) are
    half-widths along the axis of the numbers.
    """

    label: str
    x: _Array
    y: _Array
    style: str = "line"
    error: _Array | None = None


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
        low, high = (-math.inf, math.inf) if self.x_range is None else self.x_range
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


def visible_heights(lines: Sequence[Line], x_range: tuple[float, float]) -> tuple[float, float]:
    """Return the range of heights inside a range of positions, with a margin around it."""
    low, high = x_range
    seen = np.concatenate([line.y[(line.x >= low) & (line.x <= high)] for line in lines])
    margin = 0.05 * float(np.ptp(seen)) or 0.05 * abs(float(seen[0])) or 1.0
    return float(seen.min()) - margin, float(seen.max()) + margin


def name_of(value: float, names: tuple[str, ...]) -> str:
    """Return the name at a position; nothing beside the positions."""
    whole = float(value).is_integer() and 0 <= value < len(names)
    return names[int(value)] if whole else ""


def _named(value: float, names: tuple[str, ...] | None) -> Any:
    return value if names is None else name_of(value, names)


def _short(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float | int) else str(value)


def _left_out(stride: int) -> tuple[str, ...]:
    return () if stride == 1 else (f"One of every {stride} numbers.",)
