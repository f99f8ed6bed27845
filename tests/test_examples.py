"""Every example runs, says what it found, draws its picture, and keeps its model short."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


def test_there_are_examples() -> None:
    assert "two_queues.py" in [path.name for path in FILES]
    assert len(FILES) >= 8


LONG = {
    "ageing_stock",
    "continuous_inventory",
    "lost_sales",
    "machine_crew",
    "perishable_inventory",
    "resource_booking",
    "two_queues",
}
"""Examples that compile for most of a minute, and whose problems have tests of their own."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in FILES
    ],
)
def test_example_runs_and_draws(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), "--quick"])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr()
    assert len(printed.out.split()) >= 10
    told = printed.err.splitlines()
    assert all(re.fullmatch(r"compiling .+, about \d+ s, once \.\.\.", line) for line in told), told
    assert [file.name for file in tmp_path.iterdir()] == [f"{path.stem}.png"]
    with Image.open(tmp_path / f"{path.stem}.png") as picture:
        pixels = np.asarray(picture.convert("RGB"), dtype=float)
    assert min(pixels.shape[:2]) >= 300
    # Axes and marks: neither blank nor a single block of colour.
    assert 0.01 < (pixels.min(axis=2) < 200.0).mean() < 0.9


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_example_says_what_it_shows(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text is not None
    first, _, rest = text.partition("\n\n")
    assert len(first.splitlines()) == 1, "the first line is the title in the gallery"
    assert rest


def test_the_two_queue_model_takes_at_most_thirty_lines() -> None:
    tree = ast.parse((EXAMPLES / "two_queues.py").read_text(encoding="utf-8"))
    first = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    last = next(
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and "EventModel" in ast.dump(node)
    )
    assert last.end_lineno is not None
    assert 0 < last.end_lineno - first.lineno + 1 <= 30
