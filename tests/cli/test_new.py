"""`bellweight new`: starters solve as they are, nothing is written over; misspelt words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bellweight.cli import exits, parse, run
from bellweight.cli.app import app
from bellweight.cli.starting import Kind
from bellweight.reproduce import CONTENTS


@pytest.mark.parametrize("kind", list(Kind))
def test_a_starter_solves_as_it_is(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    assert run(["new", kind, str(path)]) == exits.DONE
    assert f"bellweight solve {path}" in capsys.readouterr().out
    assert "type: ignore" not in path.read_text(encoding="utf-8")
    little = [] if kind is Kind.tabular else ["--episodes", "40"]
    assert run(["solve", str(path), "--no-judge", *little]) == exits.DONE
    assert "CONVERGED" in capsys.readouterr().out


def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text("mine\n", encoding="utf-8")
    assert run(["new", "step", str(path)]) == exits.BAD_INPUT
    assert "it exists" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "mine\n"
    assert run(["new", "step", str(tmp_path / "mine.txt")]) == exits.BAD_INPUT
    assert run(["new", "step", str(tmp_path / "no" / "mine.py")]) == exits.BAD_INPUT


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("slove single_queue", "there is no command 'slove': did you mean solve?"),
        ("solve singel_queue", "did you mean single_queue?"),
        ("solve xyz", "expected "),
        ("solve single_queue --methd dia", "there is no option --methd: did you mean --method?"),
        ("solve single_queue --method dai", "did you mean dia?"),
        ("solve single_queue --basis plo:3", "did you mean poly?"),
        ("solve single_queue --basis poly", "expected a number as in poly:5"),
        ("solve single_queue --option capcity=9", "did you mean capacity?"),
        ("reproduce tabel3", "did you mean table3?"),
        ("new evnt", "did you mean event?"),
        ("certify run.npz --model singel_queue", "did you mean single_queue?"),
        ("solve", "SOURCE is missing"),
        ("certify run.npz", "--model is missing"),
        ("solve single_queue twice", "'twice' is one word too many"),
        ("-x", "there is no option -x (see bellweight --help)"),
    ],
)
def test_misspelt_words_are_told_with_what_was_meant(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == exits.WRONG_USAGE
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert "--help)" in said


@pytest.mark.parametrize("command", [info.callback.__name__ for info in app.registered_commands])  # type: ignore[union-attr]
def test_every_help_has_examples_and_no_types(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([command, "-h"]) == exits.DONE
    said = capsys.readouterr().out
    assert f"  bellweight {command} " in said + " " or f"  bellweight {command}\n" in said
    assert "<bool>" not in said
    assert "<int" not in said
    assert "<str" not in said
    assert "x>=" not in said
    assert max(map(len, said.splitlines())) <= 80
    assert run([command, "--help"]) == exits.DONE
    assert capsys.readouterr().out == said


def test_the_shell_completes_commands_and_problems() -> None:
    def completed(line: str) -> str:
        code = "import sys; sys.argv = ['bellweight']; from bellweight_command import main; main()"
        words = {
            "_BELLWEIGHT_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        ended = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True,
            encoding="utf-8", check=False,
        )  # fmt: skip
        return ended.stdout

    assert completed("bellweight so").split() == ["solve"]
    assert completed("bellweight solve sing").split() == ["single_queue"]


def test_what_is_reproduced_is_known_without_loading_it() -> None:
    assert ("all", *CONTENTS) == parse.REPRODUCED


def test_the_exit_codes_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"])
    said = capsys.readouterr().out
    for code, meaning in exits.MEANINGS.items():
        assert f"  {code} " in said
        assert meaning[:40] in " ".join(said.split())


def test_the_linear_starter_declares_what_a_proof_needs() -> None:
    from bellweight.backends import backend_of
    from bellweight.cli.starters.linear import model
    from bellweight.policies import Uniform

    assert backend_of(model()).tail(Uniform(), 100)[0] is not None
