"""A table as data, and its plain renderings: text for a terminal or a file, CSV for programs.

Cells are raw values. A column says how its cells are shown; CSV always holds them in full
precision. A table that does not fit the width at hand is shown as records, one value to a line, so
that no number is ever cut or broken.
"""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Show = Callable[[Any], str]
_GAP = "  "
_SCREEN = 80
_INDENT = " " * 12


@dataclass(frozen=True)
class Column:
    """One column: the key of its cells, its heading, how a cell is shown, and on which side.

    With `show` None the column is left to CSV and JSON.
    """

    key: str
    heading: str
    show: Show | None = str
    right: bool = True


@dataclass(frozen=True)
class Table:
    """A title, columns, one mapping from key to raw value for each row, and notes below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that people see."""
        return tuple(column for column in self.columns if column.show is not None)

    def cells(self) -> list[list[str]]:
        """Return what is shown in each row."""
        return [[shown(column, row) for column in self.shown] for row in self.rows]

    def widths(self) -> list[int]:
        """Return the width that each shown column needs."""
        headings = [column.heading for column in self.shown]
        return [max(map(len, entries)) for entries in zip(headings, *self.cells(), strict=True)]

    @property
    def width(self) -> int:
        """The width that the whole table needs."""
        widths = self.widths()
        return sum(widths) + len(_GAP) * (len(widths) - 1)


def shown(column: Column, row: Mapping[str, Any]) -> str:
    """Return a cell as people see it; a missing value is a dash."""
    value = row.get(column.key)
    return "-" if value is None or column.show is None else column.show(value)


def interval_text(mean: float, half_width: float, sign: str = "", between: str = "+-") -> str:
    """Return an estimate to two digits of its error, or a number that has none."""
    if not half_width:
        shown = number_text(mean)
        return f"+{shown}" if sign and mean >= 0.0 else shown
    if not math.isfinite(half_width):
        return f"{number_text(mean)} {between} {half_width:g}"
    digits = min(12, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{mean:{sign},.{digits}f} {between} {half_width:,.{digits}f}"


def number_text(value: float) -> str:
    """Return a cost as people read it."""
    return f"{value:,.2f}" if abs(value) >= 1_000.0 else f"{value:.6g}"


def short_text(value: float, digits: int = 4) -> str:
    """Return a number to a few digits; thousands in full, not as a power of ten."""
    many = min(1_000.0, 10.0**digits)
    return f"{value:,.0f}" if many <= abs(value) < 1e9 else f"{value:.{digits}g}"


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]


def facts_table(title: str, facts: Iterable[tuple[str, str]]) -> Table:
    """Return names and texts as a table of two columns without headings."""
    rows = tuple({"fact": name, "value": text} for name, text in facts)
    columns = (Column("fact", "", right=False), Column("value", "", right=False))
    return Table(title, columns, rows)


def facts_text(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a title, if any, and facts, one to a paragraph, none wider than a screen."""
    lines = textwrap.wrap(title, _SCREEN, subsequent_indent=_INDENT) if title else []
    for name, text in facts:
        first = f"{name:<11} "
        lines += textwrap.wrap(
            text, _SCREEN, initial_indent=first, subsequent_indent=_INDENT,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines)


def to_text(table: Table, width: int | None = None) -> str:
    """Return the table as plain text; as records when it is wider than `width`."""
    if width is None or table.width <= width:
        title, body = table.title, _grid(table)
    else:
        title, body = wrapped(table.title, width), records(table, width)
    notes = [wrapped(note, width) for note in table.notes]
    return "\n".join([title, *body, *notes]) + "\n"


def to_csv(table: Table) -> str:
    """Return every column, shown or not, in full precision."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    for row in table.rows:
        writer.writerow([_raw(row.get(column.key)) for column in table.columns])
    return stream.getvalue()


def records(table: Table, width: int | None = None) -> list[str]:
    """Return the rows as blocks of lines: the first cell, then one named value to a line.

    Where a name and its value do not fit side by side, the value goes below.
    """
    names = [column.heading for column in table.shown]
    margin = max(map(len, names))
    lines = []
    for cells in table.cells():
        lines.append(cells[0])
        for name, cell in zip(names[1:], cells[1:], strict=True):
            if cell == "-":
                continue
            line = f"  {name:{margin}}  {cell}"
            if width is None or len(line) <= width:
                lines.append(line)
            else:
                long = textwrap.wrap(cell, max(width - 4, 1), break_long_words=False) or [cell]
                lines += [f"  {name}", *(f"    {part}" for part in long)]
    return lines


def wrapped(note: str, width: int | None = None) -> str:
    """Return a note in lines of readable length."""
    return textwrap.fill(note, min(width or _SCREEN, _SCREEN))


def _grid(table: Table) -> list[str]:
    widths = table.widths()
    headings = [column.heading for column in table.shown]
    rule = ["-" * width for width in widths]
    return [_line(table, line, widths) for line in [headings, rule, *table.cells()]]


def _line(table: Table, cells: list[str], widths: list[int]) -> str:
    placed = [
        cell.rjust(width) if column.right else cell.ljust(width)
        for column, cell, width in zip(table.shown, cells, widths, strict=True)
    ]
    return _GAP.join(placed).rstrip()


def _raw(value: Any) -> Any:
    return "" if value is None else value
