"""Tables on a terminal, by Rich; plain text where the output is not a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from bellweight.display.table import Table, to_text, wrapped

_RICH_MARGIN = 2  # what Rich draws beyond the cells and the gaps between them


def print_table(console: Console, table: Table) -> None:
    """Print a table; user text in it is never read as markup."""
    if not console.is_terminal:
        console.file.write(to_text(table))
        return
    if table.width + _RICH_MARGIN > console.width:
        console.out(to_text(table, console.width), end="", highlight=False)
        return
    console.print(to_rich(table))
    for note in table.notes:
        console.out(wrapped(note, console.width), highlight=False)


def to_rich(table: Table) -> RichTable:
    """Return the table for Rich to draw."""
    drawn = RichTable(
        title=Text(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in table.shown:
        heading = Text(column.heading)
        drawn.add_column(heading, justify="right" if column.right else "left", no_wrap=True)
    for cells in table.cells():
        drawn.add_row(*[Text(cell) for cell in cells])
    return drawn
