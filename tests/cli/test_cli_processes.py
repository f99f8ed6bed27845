"""The command line as a process: Ctrl-C, broken pipes, progress, the entry point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli_runs import QUEUE, solved

import bellweight as bw
from bellweight.cli import exits
from bellweight.cli.main import run
from bellweight.cli.progress import Progress
from bellweight.reproduce.queue import table1


def start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from bellweight.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_saves_what_was_found_and_says_how_to_go_on(tmp_path: Path) -> None:
    saved = tmp_path / "run.npz"
    words = [*QUEUE, "--method", "dia", "--step-size", "1e-5", "--max-iterations", "10000000"]
    process = start(["solve", *words, "--save", str(saved), "--progress"])
    assert process.stderr is not None
    try:
        # A residual is told once an iteration has ended: before, there is nothing to save.
        assert any("residual" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == exits.INTERRUPTED
    assert "Traceback" not in err
    assert "INTERRUPTED" in out
    assert "next        bellweight solve single_queue --option capacity=60 --resume" in out
    earlier = bw.Result.load(saved)
    assert earlier.status is bw.Status.INTERRUPTED
    most = str(len(earlier.history) + 2)
    document = solved([*QUEUE, "--resume", str(saved), "--max-iterations", most], tmp_path, code=3)
    assert document["iterations"] == len(earlier.history) + 2


def launched(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", script, *arguments]
    return subprocess.run(words, check=False, capture_output=True, encoding="utf-8")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("module", ["bellweight.common.lazy", "numba"])
def test_ctrl_c_while_loading_is_one_line(module: str) -> None:
    script = """
import signal, sys
class Interrupting:
    def find_spec(self, name, *rest):
        if name == "MODULE":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from bellweight_command import main
main()
"""
    process = launched(script.replace("MODULE", module), "solve", *QUEUE)
    assert process.returncode == exits.INTERRUPTED
    assert process.stderr == "\ninterrupted: nothing was finished\n"


def test_the_entry_point_runs_the_command_line() -> None:
    process = launched("from bellweight_command import main; main()", "solve", "nothing")
    assert process.returncode == exits.WRONG_USAGE
    assert process.stderr.startswith("error: 'nothing' is no model")


def test_ctrl_c_keeps_the_columns_that_are_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = table1._part

    def interrupted_later(initial: str, *rest: Any) -> table1.Part:
        if initial != "geometric":
            raise KeyboardInterrupt
        return finish(initial, *rest)

    monkeypatch.setattr(table1, "_part", interrupted_later)
    monkeypatch.setattr(table1, "single_queue", partial(bw.problems.single_queue, capacity=300))
    target = tmp_path / "out"
    words = ["reproduce", "table1", "--exact"]
    assert run([*words, "--out", str(target)]) == exits.INTERRUPTED
    assert f"interrupted: what was finished is in {target}" in capsys.readouterr().err
    document = json.loads((target / "table1.json").read_text(encoding="utf-8"))
    assert document["complete"] is False
    assert [column["initial"] for column in document["columns"]] == ["geometric"]
    assert run(words) == exits.INTERRUPTED
    assert "interrupted: nothing was finished" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["-h"], ["solve", *QUEUE, "--json", "found.json"]])
def test_a_reader_that_goes_away_is_no_error(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    process = start(words)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode == exits.DONE
    assert Path("found.json").exists() == ("--json" in words)


def test_quick_commands_say_nothing_about_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--progress", "problems"]) == exits.DONE
    with Progress("working", wanted=True):
        pass
    assert capsys.readouterr().err == ""


def test_progress_tells_elapsed_and_expected_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bellweight.cli.progress._SILENT_SECONDS", 0.05)
    with Progress("working", wanted=True) as progress:
        progress.tell("half\nway", 0.5)
        time.sleep(0.3)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "half way  0 s, about 0 s left\n"
    with Progress("working"):  # stderr is not a terminal here
        time.sleep(0.3)
    assert capsys.readouterr().err == ""
