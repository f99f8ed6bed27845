"""The same answers wherever a process is started: terminals, locales, homes, signals, umasks."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runs import QUEUE

import bellweight as bw
from bellweight.cli import exits

COMMAND = [sys.executable, "-c", "from bellweight_command import main; main()"]
SOLVE = ["solve", *QUEUE, "--method", "pia", "--json", "found.json"]
# Python would otherwise turn the locale C into UTF-8 by itself.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def started(
    words: list[str], folder: Path, changes: dict[str, str | None], **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a process with some variables of the environment set, or taken away (None)."""
    folder.mkdir(exist_ok=True)
    changed = {**os.environ, **changes}
    environment = {name: value for name, value in changed.items() if value is not None}
    return subprocess.run(
        words, cwd=folder, env=environment, check=False, capture_output=True, encoding="utf-8",
        timeout=120, **options,
    )  # fmt: skip


def document(folder: Path) -> dict[str, Any]:
    """What `solve` found, without its times."""

    def timeless(part: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if "seconds" not in key}

    text = (folder / "found.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text, object_hook=timeless)
    return found


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("usual")
    assert started([*COMMAND, *SOLVE], folder, {}).returncode == exits.DONE
    return document(folder)


@pytest.mark.parametrize(
    ("mask", "changes"),
    [
        (
            0o077,
            {
                **ASCII,
                "TZ": "Asia/Kathmandu",
                "TERM": "dumb",
                "COLUMNS": "1",
                "LINES": "1",
                "PYTHONHASHSEED": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
                "OMP_NUM_THREADS": "1",
            },
        ),
        (
            0o027,
            {
                "LC_ALL": "tr_TR.UTF-8",
                "LANGUAGE": "tr",
                "TZ": "Pacific/Kiritimati",
                "FORCE_COLOR": "1",
                "COLUMNS": "20",
                "TERM": "xterm-256color",
                "HOME": None,
                "XDG_CACHE_HOME": None,
                "USER": None,
                "LOGNAME": None,
            },
        ),
        (
            0o022,
            {
                "NO_COLOR": "1",
                "FORCE_COLOR": "1",
                "COLUMNS": "40",
                "PYTHONOPTIMIZE": "2",
                "PYTHONHASHSEED": "77",
                "OMP_NUM_THREADS": None,
                "OPENBLAS_NUM_THREADS": None,
            },
        ),
    ],
    ids=["plain", "coloured", "optimised"],
)
def test_no_surroundings_change_what_is_found(
    mask: int, changes: dict[str, str | None], usual: dict[str, Any], tmp_path: Path
) -> None:
    """And files get the rights that the umask leaves."""
    folder = tmp_path / "with space"
    ended = started([*COMMAND, *SOLVE, "--save", "found.npz"], folder, changes, umask=mask)
    assert ended.stderr == ""
    assert ended.returncode == exits.DONE
    assert "CONVERGED" in ended.stdout
    assert document(folder) == usual
    for name in ("found.json", "found.npz"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o666 & ~mask


SCRIPT = """# A model whose names are not ASCII.
import bellweight as bw

λ = 0.3

def cost(state):
    return λ * state[0]

model = bw.EventModel(
    dimension=1, actions=["langsam", "schnell, für Eilige"], events=2, cost=cost,
    probability=[[0.3, 0.2], [0.3, 0.4]], move=[[1], [-1]], discount=0.8,
)
found = bw.compare(model, {"für alle": bw.Uniform()}, 10, horizon=5, jobs=1)
bw.report(found, "page.html")
"""


def test_a_model_with_other_letters_works_in_a_plain_locale(tmp_path: Path) -> None:
    """Compiled, read back from the cache by another process, and reported."""
    (tmp_path / "mine.py").write_text(SCRIPT, encoding="utf-8")
    changes: dict[str, str | None] = {**ASCII, "BELLWEIGHT_CACHE": str(tmp_path / "cache")}
    ended = [started([sys.executable, "mine.py"], tmp_path, changes) for _ in range(2)]
    assert [process.returncode for process in ended] == [0, 0], ended
    told = ended[0].stderr.splitlines()
    assert told
    assert all(re.fullmatch(r"compiling .+, about \d+ s, once \.\.\.", line) for line in told)
    assert ended[1].stderr == ""
    assert "für alle" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "λ" in next((tmp_path / "cache").glob("model_*.py")).read_text(encoding="utf-8")


def test_nothing_can_be_kept_on_disk(usual: dict[str, Any], tmp_path: Path) -> None:
    """Neither beside the package nor in a home: what is compiled is compiled each time."""
    source = Path(bw.__file__).parents[1]
    package = tmp_path / "package"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for folder in [path for path in package.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").write_text("in the way", encoding="utf-8")
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    home = str(tmp_path / "file" / "home")
    changes = {
        "PYTHONPATH": str(package), "HOME": home, "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None,
        "MPLCONFIGDIR": str(tmp_path), "BELLWEIGHT_CACHE": None,
    }  # fmt: skip
    where = started([sys.executable, "-c", "import bellweight as b; print(b.__file__)"],
                    tmp_path / "out", changes)  # fmt: skip
    assert where.stdout.startswith(str(package)), where.stderr
    ended = started([*COMMAND, *SOLVE], tmp_path / "out", changes)
    assert ended.returncode == exits.DONE, ended.stderr
    assert document(tmp_path / "out") == usual


def test_a_process_without_an_output_still_does_its_work(
    usual: dict[str, Any], tmp_path: Path
) -> None:
    """As a service is started; what is closed is not there for Python."""
    script = f"exec {sys.executable} -c '{COMMAND[2]}' \"$@\" <&- >&-"
    ended = started(["sh", "-c", script, "sh", *SOLVE], tmp_path, {})
    assert ended.stderr == ""
    assert ended.returncode == exits.DONE
    assert document(tmp_path) == usual


def ignoring_ctrl_c() -> None:
    """As a shell does for what it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_a_run_in_the_background_is_not_stopped_by_ctrl_c(
    usual: dict[str, Any], tmp_path: Path
) -> None:
    """It belongs to whatever runs in the foreground."""
    script = """
import importlib, signal
command = importlib.import_module("bellweight.cli.main")
began = command.run
def interrupted(arguments):
    signal.raise_signal(signal.SIGINT)
    return began(arguments)
command.run = interrupted
command.main()
"""
    words = [sys.executable, "-c", script, *SOLVE]
    ended = started(words, tmp_path, {}, preexec_fn=ignoring_ctrl_c)
    assert ended.returncode == exits.DONE, ended.stderr
    assert document(tmp_path) == usual


def test_the_tests_of_interruptions_pass_in_the_background(tmp_path: Path) -> None:
    chosen = "while_loading or real_signal or before_anything or the_target"
    files = [
        str(Path(__file__).parent / name)
        for name in ("cli/test_cli_processes.py", "weights/test_interrupt_resume.py")
    ]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *files]
    changes = {"PYTEST_ADDOPTS": None, "PYTEST_XDIST_WORKER": None}
    ended = started(words, tmp_path, changes, preexec_fn=ignoring_ctrl_c)
    assert "5 passed" in ended.stdout, ended.stdout
    assert ended.returncode == 0
