"""The notebooks run from top to bottom and show what they print and draw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from notebook_runs import NOTEBOOKS, code_cells, run
from test_readme import agree


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["inventory", "network", "queue"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_shows_what_it_stores(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell, found in zip(code_cells(notebook), run(notebook), strict=True):
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert kinds == [output["output_type"] for output in found]
        for stored, fresh in zip(cell["outputs"], found, strict=True):
            if stored["output_type"] == "stream":
                assert len(stored["text"]) == len(fresh["text"])
                for shown, printed in zip(stored["text"], fresh["text"], strict=True):
                    assert agree(shown, printed), f"{path.name} shows: {shown}"


def test_the_notebooks_are_small_and_name_no_machine() -> None:
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert len(text) < 300_000, path.name
        assert json.loads(text)["nbformat"] == 4
        assert "/home/" not in text
