"""How numbers are shown: one `Table`, several renderings, and figures of plain data.

Nothing here knows of models or results, so everything else may use it.
"""

from bellweight.display.markup import to_frame, to_html, to_latex, to_markdown
from bellweight.display.table import (
    Column,
    Table,
    facts_table,
    facts_text,
    interval_text,
    number_text,
    short_text,
    to_csv,
    to_text,
)

__all__ = [
    "Column",
    "Table",
    "facts_table",
    "facts_text",
    "interval_text",
    "number_text",
    "short_text",
    "to_csv",
    "to_frame",
    "to_html",
    "to_latex",
    "to_markdown",
    "to_text",
]
