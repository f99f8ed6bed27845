"""Tables as text, as CSV and on a terminal, and documents as JSON."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import bellweight as bw
from bellweight.cli.output import one_line
from bellweight.display import Column, Table, short_text, to_csv, to_text
from bellweight.display.screen import print_table
from bellweight.report.document import plain

TABLE = Table(
    "A [red]title",
    (
        Column("name", "name", right=False),
        Column("cost", "cost", lambda value: f"{value:,.2f}"),
        Column("hidden", "hidden", None),
    ),
    ({"name": "[bold]one", "cost": 1234567.891, "hidden": 0.1 + 0.2}, {"name": "two"}),
    ("a note",),
)


def test_text_tables_line_up() -> None:
    lines = to_text(TABLE).splitlines()
    assert lines[0] == "A [red]title"
    assert lines[3] == "[bold]one  1,234,567.89"
    assert lines[4] == "two                   -"
    assert lines[5] == "a note"


def test_narrow_tables_become_records() -> None:
    text = to_text(TABLE, width=20)
    assert "[bold]one\n  cost  1,234,567.89\ntwo\n" in text


def test_csv_keeps_full_precision() -> None:
    lines = to_csv(TABLE).splitlines()
    assert lines[0] == "name,cost,hidden"
    assert lines[1] == f"[bold]one,1234567.891,{0.1 + 0.2!r}"
    assert lines[2] == "two,,"


@pytest.mark.parametrize("width", [15, 23, 24, 25, 80])
def test_terminal_tables_never_cut_or_interpret(width: int) -> None:
    stream = io.StringIO()
    print_table(Console(file=stream, force_terminal=True, width=width, color_system=None), TABLE)
    text = stream.getvalue()
    assert "1,234,567.89" in text
    assert "[bold]one" in text
    assert "…" not in text


def test_documents_hold_no_rubbish() -> None:
    found = plain({"a": np.array([1.0, np.nan]), "b": (np.int64(3), bw.Status.CYCLING)})
    assert found == {"a": [1.0, None], "b": [3, "CYCLING"]}
    assert one_line("a\n\tb \x1b[31mred") == "a b ?[31mred"


def test_notes_fit_a_screen_where_the_width_is_not_known() -> None:
    long = Table("t", (Column("a", "a"),), ({"a": 1},), ("word " * 60,))
    assert max(map(len, to_text(long).splitlines())) <= 80


def test_numbers_of_hundreds_are_no_powers_of_ten() -> None:
    assert [short_text(value, 2) for value in (799.4, 0.0123, 3.1)] == ["799", "0.012", "3.1"]
