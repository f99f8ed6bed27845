"""Problems that other packages add by an entry point."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import failure

from bellweight.cli.main import run

CODE = '''
from bellweight.problems import single_queue

def small_queue(capacity=7):
    """A queue of another package."""
    return single_queue(capacity=capacity)

def nothing():
    return 3
'''
POINTS = """[bellweight.problems]
small_queue = other_problems:small_queue
nothing = other_problems:nothing
broken = other_problems:missing
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other_problems.py").write_text(CODE, encoding="utf-8")
    about = tmp_path / "other_problems-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-problems\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_they_are_listed_and_solved(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["problems"]) == 0
    said = capsys.readouterr().out
    assert "small_queue           A queue of another package. (from other-problems)" in said
    assert "broken                from other-problems: the problem broken" in said
    assert run(["problems", "small_queue"]) == 0
    assert "capacity=7" in capsys.readouterr().out
    words = ["--option", "capacity=9", "--basis", "poly:1", "--no-judge"]
    assert run(["solve", "small_queue", *words]) == 0
    assert "10 states" in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
def test_a_broken_one_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be loaded: AttributeError" in failure(["solve", "broken"], capsys)[1]
    assert "int" in failure(["solve", "nothing"], capsys)[1]
    told = failure(["solve", "nothing", "--option", "size=3"], capsys)[1]
    assert "there is no --option size: there are none" in told
