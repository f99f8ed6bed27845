"""Running the command line in tests: a run that fails in one line, a run that is read as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bellweight.cli.main import run

QUEUE = ["single_queue", "--option", "capacity=60"]
SLOW = [*QUEUE, "--method", "dia", "--step-size", "0.01"]


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command that must fail with one line on stderr and nothing on stdout.

    A model that had to be compiled first may say so in a line of its own.
    """
    code = run(arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if not line.startswith("compiling the")]
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("error: ")
    return code, lines[0]


def solved(arguments: list[str], tmp_path: Path, code: int = 0) -> dict[str, Any]:
    """Run `solve` and return its JSON document."""
    target = tmp_path / "result.json"
    assert run(["solve", *arguments, "--json", str(target)]) == code
    document: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return document
