"""What loading Bellweight costs: names and commands do not pay for what they do not use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bellweight as bw

HEAVY = ("numba", "scipy.sparse.linalg", "matplotlib", "plotly", "highspy", "clarabel", "joblib")
_REPORT = "import sys, time; print(time.process_time(), *sorted(sys.modules), file=sys.stderr)"


def loaded_by(code: str) -> tuple[float, set[str]]:
    """The CPU seconds and the modules of a fresh interpreter that runs some code."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\n{_REPORT}"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    seconds, *modules = ran.stderr.splitlines()[-1].split()
    return float(seconds), set(modules)


def command(*words: str) -> str:
    return (
        "import sys\nfrom bellweight_command import main\n"
        f"sys.argv = {['bellweight', *words]!r}\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
    )


def test_importing_loads_nothing_heavy() -> None:
    seconds, modules = loaded_by("import bellweight as bw; dir(bw); bw.__version__")
    assert not modules & {*HEAVY, "numpy", "scipy"}
    assert seconds < 0.4


def test_a_listed_problem_does_not_wait_for_the_compiler() -> None:
    _, modules = loaded_by("import bellweight as bw; bw.problems.single_queue(capacity=9)")
    assert not modules & set(HEAVY)


@pytest.mark.parametrize("room", ["models", "problems", "errors", "bases"])
def test_rooms_to_look_around_in_load_no_solver(room: str) -> None:
    _, modules = loaded_by(f"import bellweight as bw; dir(bw.{room})")
    assert not modules & set(HEAVY)


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["-h"],
        ["solve", "-h"],
        ["reproduce", "--help"],
        ["slove"],
        ["solve"],
        ["solve", "single_queu"],
        ["solve", "single_queue", "--methd", "dia"],
        ["solve", "single_queue", "--method", "dai"],
        ["solve", "single_queue", "--basis", "plo:3"],
        ["solve", "single_queue", "--seed", "x"],
        ["solve", "missing.py"],
        ["new"],
        ["problems"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_that_compute_nothing_load_nothing_heavy(words: list[str]) -> None:
    seconds, modules = loaded_by(command(*words))
    assert not modules & {*HEAVY, "numpy", "scipy"}
    assert seconds < 1.0  # 0.2 to 0.3 on an idle machine


def test_what_type_checkers_read_is_what_is_loaded() -> None:
    """The imports under TYPE_CHECKING, the homes of the names and `__all__` agree."""
    for package in (bw, bw.problems):
        source = Path(str(package.__file__)).read_text(encoding="utf-8")
        block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
        told = [node for node in block.body if isinstance(node, ast.ImportFrom)]
        homes = {n.module: {a.name for a in n.names} for n in told}
        rooms = homes.pop(package.__name__, set())
        assert homes == {home: set(names.split()) for home, names in package._HOMES.items()}
        assert rooms.union(*homes.values()) == set(package.__all__)


def test_functions_stand_before_modules_of_their_name() -> None:
    _, modules = loaded_by(
        "import bellweight.solve, bellweight.report, bellweight.problems.single_queue\n"
        "import bellweight as bw\n"
        "assert all(map(callable, (bw.solve, bw.report, bw.problems.single_queue)))\n"
        "from bellweight import *\n"
        "assert solve is bw.solve\n"
    )
    assert "bellweight.solve" in modules


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        _ = bw.slove  # type: ignore[attr-defined]


def test_a_file_may_hold_what_nobody_has_asked_for_yet(tmp_path: Path) -> None:
    """The clinic's kernels are in a file of their own, which reading the model must find."""
    clinic = tmp_path / "clinic.npz"
    bw.problems.scheduling("small").save(clinic)
    code = f"import bellweight as bw; m = bw.LinearModel.load({str(clinic)!r}); assert m.kernels"
    _, modules = loaded_by(code)
    assert "bellweight.problems.transport" in modules


def test_functions_travel_to_workers() -> None:
    loaded_by(
        "import pickle, bellweight as bw\n"
        "for thing in (bw.solve, bw.report, bw.problems.single_queue, bw.DIA):\n"
        "    assert pickle.loads(pickle.dumps(thing)) is thing\n"
    )
