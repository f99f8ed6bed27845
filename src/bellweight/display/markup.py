"""Tables as HTML, as LaTeX, and as columns that data-frame libraries take.

Cells may hold what users named: everything is escaped here, once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from bellweight.display.table import Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}

_TORN = re.compile(r"[\d.,]+e[-+]\d+|[\d.,]+(e[-+]\d+)? %|[\d.,]+ ± [\d.,]+")
"""Numbers that a line must not break: powers of ten, shares and half-widths."""

_MARKDOWN = "\\|*_`[]#"


def to_html(table: Table, *, links: Mapping[str, str] | None = None) -> str:
    """Return a table element with its title as caption; the first column heads the rows.

    `links` are addresses for cells of the first column, by their text.
    """
    columns = table.shown
    sides = ["number" if column.right else "text" for column in columns]
    head = "".join(
        f'<th scope="col" class="{side}">{escape(column.heading)}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    lines = []
    for first, *others in table.cells():
        head_cell = escape(first)
        if links and first in links:
            head_cell = f'<a href="{escape(links[first])}">{head_cell}</a>'
        cells = [
            f'<td class="{side}{" none" * (cell in ("", "-"))}" '
            f'data-name="{escape(column.heading, quote=True)}">'
            f"{_number(cell) if side == 'number' else escape(cell)}</td>"
            for cell, side, column in zip(others, sides[1:], columns[1:], strict=True)
        ]
        lines.append(
            f'<th scope="row" class="{sides[0]}"{_counted(first, columns[0].heading)}>'
            f"{head_cell}</th>{''.join(cells)}"
        )
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    below = "".join(f'<p class="note">{prose(note)}</p>' for note in table.notes)
    kind = " stacked" if len(columns) > 2 else ""
    return (
        f'<div class="wide{kind}" tabindex="0" role="group" aria-label="{escape(table.title)}">'
        f"<table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        f"{below}\n"
    )


def _counted(head: str, heading: str) -> str:
    """Return what tells of a head without a letter what it counts, where rows are blocks."""
    return "" if re.search(r"[^\W\d_]", head) else f' data-name="{escape(heading, quote=True)}"'


def prose(text: str) -> str:
    """Return a text for people, escaped, whose numbers are not torn from their sign or unit."""
    return _TORN.sub(r'<span class="whole">\g<0></span>', escape(text))


def _number(cell: str) -> str:
    """Return a number with the sign for plus or minus; texts of users stay as they are."""
    return escape(cell).replace(" +- ", " ± ")


def to_latex(table: Table) -> str:
    """Return a tabular of the booktabs package inside a table, notes below it."""
    columns = table.shown
    sides = "".join("r" if column.right else "l" for column in columns)
    rows = [[column.heading for column in columns], *table.cells()]
    head, *body = [" & ".join(map(latex, row)) + r" \\" for row in rows]
    notes = [rf"\par\smallskip\footnotesize {latex(note)}" for note in table.notes]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(table.title)}}}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def to_markdown(table: Table) -> str:
    """Return the title in bold, a table with pipes, and the notes as paragraphs."""
    columns = table.shown
    rule = ["---:" if column.right else "---" for column in columns]
    rows = [[column.heading for column in columns], rule, *table.cells()]
    lines = ["| " + " | ".join(map(_piped, row)) + " |" for row in rows]
    parts = [f"**{_piped(table.title)}**", "\n".join(lines), *map(_piped, table.notes)]
    return "\n\n".join(part for part in parts if part != "****") + "\n"


def _piped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    escaped = "".join(f"\\{letter}" if letter in _MARKDOWN else letter for letter in text)
    return escape(escaped, quote=False).replace("\n", " ")


def to_frame(table: Table) -> dict[str, list[Any]]:
    """Return every column's raw values by key, as `pandas.DataFrame` and others take them."""
    return {column.key: [row.get(column.key) for row in table.rows] for column in table.columns}


def latex(text: str) -> str:
    """Return a text with every character that LaTeX would read as a command escaped."""
    return "".join(_LATEX.get(letter, letter) for letter in text)
