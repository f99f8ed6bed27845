"""Tables on a terminal, by Rich; plain text where the output is not a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group
from rich.table import Table as RichTable
from rich.text import Text

from bellweight.display.table import Table, to_text, wrapped

_LEAST_TEXT = 16  # narrower than this, a column of words is no longer readable


def print_table(console: Console, table: Table) -> None:
    """Print a table; user text in it is never read as markup."""
    if not console.is_terminal:
        console.file.write(to_text(table))
        return
    if not fits(table, console.width):
        console.out(to_text(table, console.width), end="", highlight=False)
        return
    console.print(to_rich(table))
    for note in table.notes:
        console.out(wrapped(note, console.width), highlight=False)


def fits(table: Table, width: int) -> bool:
    """Return whether no number has to be cut; words may be broken into lines."""
    needed = [
        wide if column.right else min(wide, _LEAST_TEXT)
        for column, wide in zip(table.shown, table.widths(), strict=True)
    ]
    return sum(needed) + 2 * len(needed) <= width


def to_rich(table: Table) -> RichTable:
    """Return the table for Rich to draw: words are broken into lines, numbers never."""
    drawn = RichTable(
        title=Text(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        show_header=any(column.heading for column in table.shown),
        padding=(0, 1, 0, 0),
    )
    for column, wide in zip(table.shown, table.widths(), strict=True):
        heading = Text(column.heading)
        if column.right:
            drawn.add_column(heading, justify="right", no_wrap=True, min_width=wide)
        else:
            drawn.add_column(heading, justify="left", overflow="fold")
    for cells in table.cells():
        drawn.add_row(*[Text(cell) for cell in cells])
    return drawn


def face(table: Table, width: int) -> Group:
    """Return a table with its notes as Rich shows it in this width."""
    if not fits(table, width):
        # A narrow window may break lines as it likes; we never break a number.
        return Group(Text(to_text(table, width).rstrip("\n"), no_wrap=True, overflow="ignore"))
    return Group(to_rich(table), *(Text(wrapped(note, width)) for note in table.notes))
