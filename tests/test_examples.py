"""Every example runs, and the model in it is as short as promised."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


def test_there_are_examples() -> None:
    assert "two_queues.py" in [path.name for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_example_runs(path: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.split()) >= 10
    assert ended.stderr == ""


def test_the_two_queue_model_takes_at_most_thirty_lines() -> None:
    tree = ast.parse((EXAMPLES / "two_queues.py").read_text())
    first = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    last = next(
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and "EventModel" in ast.dump(node)
    )
    assert last.end_lineno is not None
    assert 0 < last.end_lineno - first.lineno + 1 <= 30
