"""The command line: what it prints, what it leaves behind, and how it exits."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runs import QUEUE, SLOW, failure, solved

import bellweight as bw
from bellweight import cli
from bellweight.cli import exits
from bellweight.cli.main import run

FACTORIES = """
import bellweight as bw
import numpy as np


def good():
    return bw.TabularModel.from_arrays(
        cost=[[0.0, 1.0], [3.0, 1.0]],
        transition=[np.eye(2), np.eye(2)[::-1]],
        discount=0.5,
        initial=[0.25, 0.75],
        action_labels=["[red]stay[/red]", "move"],
        name="[bold]mine",
    )


def leaky():
    return bw.TabularModel.from_arrays([[1.0, 1.0]], [np.eye(1), 0.5 * np.eye(1)], 0.5, [1.0])


def raises():
    raise RuntimeError("first line\\nsecond line")


def leaves():
    raise SystemExit(7)


def nothing():
    return None


number = 3
"""
RAISING_LINE = 1 + FACTORIES.splitlines().index(
    '    raise RuntimeError("first line\\nsecond line")'
)


@pytest.fixture
def factories(tmp_path: Path) -> Path:
    path = tmp_path / "queue.py"  # a name that the standard library has, too
    path.write_text(FACTORIES, encoding="utf-8")
    return path


def test_solve_prints_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", *QUEUE, "--option", "initial=empty"]) == exits.DONE
    captured = capsys.readouterr()
    assert "CONVERGED" in captured.out
    assert "optimum     between" in captured.out
    assert "rate 0.2 in" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize(
    ("words", "method"),
    [
        (["--method", "fixed", "--weights", "uniform"], bw.Fixed("uniform")),
        (["--method", "random"], bw.FromPolicy()),
        (["--method", "pia", "--start", "uniform"], bw.PIA(start="uniform")),
        ([], bw.DIA()),
        (
            ["--method", "dia", "--target", "fixed:uniform", "--temperature", "0.5",
             "--smoothing-mass", "0.2", "--step-size", "0.5"],
            bw.DIA(target=bw.Fixed("uniform"), temperature=0.5, smoothing_mass=0.2, step_size=0.5),
        ),
    ],
)  # fmt: skip
def test_methods_are_those_of_the_library(
    words: list[str], method: bw.weights.Method, tmp_path: Path
) -> None:
    document = solved([*QUEUE, "--basis", "poly:2", *words], tmp_path)
    model = bw.problems.single_queue(capacity=60)
    result = bw.solve(model, bw.Polynomial(2), method)
    assert document["method"] == type(method).__name__
    assert document["cost"] == pytest.approx(result.cost.mean, rel=1e-12)
    np.testing.assert_allclose(document["coef"], result.coef, rtol=1e-9)


def test_geometric_weights(tmp_path: Path) -> None:
    words = ["--method", "fixed", "--weights", "geometric:0.8"]
    weights = 0.8 ** np.arange(61)
    model = bw.problems.single_queue(capacity=60)
    result = bw.solve(model, bw.Polynomial(3), bw.Fixed(weights / weights.sum()))
    assert solved([*QUEUE, *words], tmp_path)["objective"] == pytest.approx(result.objective)


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("affine", 2),
        ("poly:4", 5),
        ("indicator", 61),
        ("kinks:5", 7),
        ("kinks:1,2.5,10", 5),
        ("radial:6", 7),
        ("fourier:6", 7),
    ],
)
def test_bases(words: str, size: int, tmp_path: Path) -> None:
    document = solved([*QUEUE, "--basis", words, "--method", "random"], tmp_path)
    assert len(document["coef"]) == len(document["basis"]) == size


def test_the_document_says_how_it_ended(tmp_path: Path) -> None:
    document = solved([*SLOW, "--max-iterations", "3", "--seed", "5"], tmp_path, code=3)
    assert document["status"] == "ITERATION_LIMIT"
    assert document["iterations"] == len(document["history"]) == 3
    assert document["seed"] == 5
    assert document["support"][0]["action_label"].startswith("rate ")
    assert sum(document["actions"].values()) == 61


def test_json_on_stdout_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", *QUEUE, "--json", "-"]) == exits.DONE
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "CONVERGED"
    assert "CONVERGED" in captured.err


def test_model_files_and_factories(
    factories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = bw.problems.single_queue(capacity=20)
    model.save(tmp_path / "model.npz")
    assert run(["solve", str(tmp_path / "model.npz")]) == exits.DONE
    assert "21 states" in capsys.readouterr().out
    assert run(["solve", f"{factories}:good", "--basis", "affine"]) == exits.DONE
    text = capsys.readouterr().out
    assert "[bold]mine" in text
    assert "[red]stay[/red] in 1 state, move in 1 state" in text
    assert str(factories.parent) not in sys.path


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("leaky", "row 1 (state 0, action 1) sums to 0.5, expected 1"),
        ("raises", f"line {RAISING_LINE}: RuntimeError: first line second line"),
        ("leaves", ": SystemExit: 7"),
        ("nothing", "returns nothing: end it with `return` and the model"),
        ("number", "has no function 'number'"),
        ("missing", "has no function 'missing'"),
    ],
)
def test_bad_factories_are_one_line(
    factory: str, words: str, factories: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(["solve", f"{factories}:{factory}"], capsys)
    assert code == exits.BAD_INPUT
    assert words in line


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def broken(:\n", "SyntaxError: invalid syntax"),
        ("import no_such_module_anywhere\n", "ModuleNotFoundError: No module named"),
        ("1 / 0\n", "ZeroDivisionError: "),
    ],
)
def test_files_that_cannot_be_loaded_are_one_line(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text, encoding="utf-8")
    code, line = failure(["solve", f"{path}:factory"], capsys)
    assert code == exits.BAD_INPUT
    assert f"{path}, line 1: {why}" in line


def test_debug_shows_the_traceback(factories: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", f"{factories}:raises", "--debug"]) == exits.BAD_INPUT
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "in raises" in text


@pytest.mark.parametrize("content", [b"", b"rubbish", b"PK\x03\x04 cut short"])
def test_damaged_files_are_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    code, line = failure(["solve", str(path)], capsys)
    assert code == exits.BAD_INPUT
    assert "damaged or not a Bellweight file" in line
    assert "pickle" not in line


def test_foreign_and_missing_files_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "foreign.npz", numbers=np.arange(3))
    for source in ("foreign.npz", "missing.npz", "missing.py:factory", "missing.py"):
        code, _ = failure(["solve", str(tmp_path / source)], capsys)
        assert code == exits.BAD_INPUT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve"], "SOURCE is missing"),
        (["solve", "no_such_problem"], "a model file or a Python file"),
        (["frobnicate"], "there is no command 'frobnicate': expected solve,"),
        (["solve", *QUEUE, "--method", "magic"], "expected fixed, random, pia or dia"),
        (["solve", *QUEUE, "--basis", "poly:x"], "as in poly:5"),
        (["solve", *QUEUE, "--method", "pia", "--temperature", "1"], "belongs to --method dia"),
        (["solve", *QUEUE, "--weights", "uniform"], "belongs to --method fixed"),
        (["solve", *QUEUE, "--start", "geometric:2"], "decay is 2.0"),
        (["solve", *QUEUE, "--start", "geometric:x"], "'x' is no number"),
        (["solve", *QUEUE, "--target", "best"], "random or fixed:WEIGHTS"),
        (
            ["solve", *QUEUE, "--option", "speed=1"],
            "there is no --option speed: expected capacity,",
        ),
        (["solve", *QUEUE, "--option", "capacity=61"], "capacity is given twice"),
        (["solve", *QUEUE, "--option", "capacity"], "KEY=VALUE"),
        (["solve", *QUEUE, "--resume", "x.npz", "--method", "dia"], "leave out --method"),
        (["reproduce", "table9"], "did you mean table"),
        (
            ["solve", *QUEUE, "--states", "ten"],
            "error: --states is 'ten', expected a whole number (see",
        ),
        (
            ["solve", *QUEUE, "--max-iterations", "-3"],
            "--max-iterations is -3, expected at least 1",
        ),
        (["solve", *QUEUE, "--tol", "small"], "error: --tol is 'small', expected a number (see"),
        (["reproduce", "table1", "--exact", "--episodes", "10"], "not both"),
        (
            ["evaluate", __file__, "--model", __file__, "--episodes", "9", "--half-width", "1"],
            "not both",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(arguments, capsys)
    assert code == exits.WRONG_USAGE
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--option", "capacity=many"], "capacity is 'many'"),
        (["--option", "initial=full"], "'geometric', 'empty', 'reverse'"),
        (["--option", "services=0,0.9"], "services[1] is 0.9"),
        (["--option", "discount=1"], "discount is 1"),
        (["--tol", "-1"], "tol is -1.0"),
        (["--method", "pia", "--step-size", "2"], "step_size is 2.0"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(["solve", "single_queue", *arguments], capsys)
    assert code == exits.BAD_INPUT
    assert words in line


@pytest.mark.parametrize("option", ["--save", "--json"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    option: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["bellweight.solve"], "solve", None)  # never reached
    for target in (tmp_path / "no" / "folder" / "file", tmp_path):
        code, line = failure(["solve", *QUEUE, option, str(target)], capsys)
        assert code == exits.BAD_INPUT
        assert "cannot write" in line


def test_a_folder_that_is_a_file_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("mine", encoding="utf-8")
    code, line = failure(["reproduce", "table1", "--out", str(blocked)], capsys)
    assert code == exits.BAD_INPUT
    assert "expected a folder" in line
    assert blocked.read_text(encoding="utf-8") == "mine"


def test_a_failed_run_leaves_old_files_alone(
    factories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {tmp_path / name: f"old {name}" for name in ("r.npz", "r.json")}
    for path, text in old.items():
        path.write_text(text, encoding="utf-8")
    words = ["--save", str(tmp_path / "r.npz"), "--json", str(tmp_path / "r.json")]
    failure(["solve", f"{factories}:leaky", *words], capsys)
    assert all(path.read_text(encoding="utf-8") == text for path, text in old.items())


def test_solver_errors_have_their_own_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unbounded(*_: Any, **__: Any) -> None:
        raise bw.errors.SolverError(bw.Status.UNBOUNDED, "along x")

    monkeypatch.setattr(sys.modules["bellweight.solve"], "solve", unbounded)
    code, line = failure(["solve", *QUEUE], capsys)
    assert code == exits.SOLVER_ERROR
    assert "along x" in line
    assert "bounds on the coefficients" in line


def test_our_own_bugs_are_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(sys.modules["bellweight.solve"], "solve", broken)
    code, line = failure(["solve", *QUEUE], capsys)
    assert code == exits.BAD_INPUT
    assert "ZeroDivisionError: oops; run again with --debug" in line


def test_exit_codes_follow_the_status() -> None:
    assert exits.of(bw.Status.CONVERGED) == 0
    assert exits.of(bw.Status.INTERRUPTED) == 130
    ended = ("ITERATION_LIMIT", "TIME_LIMIT", "CYCLING", "INACCURATE")
    assert {exits.of(bw.Status[name]) for name in ended} == {3}
    for code in exits.MEANINGS:
        assert f"\n    {code} " in (cli.__doc__ or "")


def test_a_saved_run_resumes_to_the_same_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    solved([*SLOW, "--max-iterations", "4", "--save", saved], tmp_path, code=3)
    assert f"--resume {saved}" in capsys.readouterr().out
    resumed = solved([*QUEUE, "--resume", saved, "--max-iterations", "9"], tmp_path, code=3)
    straight = solved([*SLOW, "--max-iterations", "9"], tmp_path, code=3)
    assert resumed["method"] == "DIA"
    assert resumed["iterations"] == straight["iterations"] == 9
    np.testing.assert_allclose(resumed["moments"], straight["moments"], rtol=1e-10)
    np.testing.assert_allclose(resumed["coef"], straight["coef"], rtol=1e-6)
    # Without a limit of its own a resumed run may go on for 100 more iterations.
    assert solved([*QUEUE, "--resume", saved], tmp_path, code=3)["iterations"] == 104


def test_a_result_of_another_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    assert run(["solve", *QUEUE, "--save", saved]) == exits.DONE
    capsys.readouterr()
    for words in (["solve", "single_queue", "--resume", saved], ["evaluate", saved, "--model",
                  "single_queue"]):  # fmt: skip
        code, line = failure([*words, "--option", "capacity=61"], capsys)
        assert code == exits.BAD_INPUT
        assert "belongs to another model" in line


def test_evaluate_a_saved_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, target = str(tmp_path / "run.npz"), tmp_path / "cost.json"
    assert run(["solve", *QUEUE, "--save", saved]) == exits.DONE
    words = ["evaluate", saved, "--model", *QUEUE, "--seed", "3", "--json", str(target)]
    assert run([*words, "--episodes", "2000", "--horizon", "300", "--jobs", "1"]) == exits.DONE
    document = json.loads(target.read_text(encoding="utf-8"))
    found = document["evaluation"]
    assert (found["episodes"], found["horizon"], found["seed"]) == (2000, 300, 3)
    assert found["half_width"] > 0.0
    slack = 2.0 * found["half_width"] + found["tail_bound"]
    assert abs(found["mean"] - document["exact_cost"]) <= slack
    assert run([*words, "--half-width", "5"]) == exits.DONE
    assert json.loads(target.read_text(encoding="utf-8"))["evaluation"]["half_width"] <= 5.0
    assert "+-" in capsys.readouterr().out


def test_problems_lists_parameters_and_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["problems", "--json", str(tmp_path / "p.json")]) == exits.DONE
    text = capsys.readouterr().out
    assert "single_queue          The paper's single queue" in text
    assert [name for name in bw.problems.__all__ if name.islower()] == sorted(bw.problems.ABOUT)
    assert "capacity=49999" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < len(bw.problems.ABOUT) + 5  # each on one line
    listed = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["problems"]
    assert "services=0,0.2,0.4,0.6,0.8" in listed[0]["parameters"]
    assert run(["problems", "single_queue"]) == exits.DONE
    assert "capacity=49999\n" in capsys.readouterr().out
    assert "did you mean single_queue?" in failure(["problems", "single_que"], capsys)[1]


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == exits.DONE
    assert capsys.readouterr().out == f"bellweight {bw.__version__}\n"
    for words in (["--help"], ["-h"], []):
        assert run(words) == exits.DONE
        assert "130  interrupted" in capsys.readouterr().out


def test_the_demonstration_proves_the_queue_and_bounds_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bellweight.reproduce.demo import NEXT, network_part

    monkeypatch.setattr(network_part, "_EPISODES", 512)
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--json", "demo.json"]) == exits.DONE
    document = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    queue, network = document["queue"], document["network"]
    assert queue["n_states"] == 50_000
    assert queue["optimal"] == pytest.approx(117.24959, abs=1e-4)
    rows = {row["policy"]: row for row in queue["rows"]}
    assert rows["By hand, decay 0.9"]["loss_percent"] < 0.01
    assert rows["By hand, decay 0.999"]["loss_percent"] > 50.0
    proven = rows["Bellweight, 11 numbers"]
    assert proven["loss_percent"] == pytest.approx(0.0, abs=1e-6)
    assert proven["lower_bound"] <= queue["optimal"] <= proven["cost"] + 1e-6
    assert 0.0 < proven["savings_percent"] < 0.5
    assert network["lower_bound"] > 12_150.0
    for row in network["rows"]:
        assert row["cost"] + row["half_width"] > network["lower_bound"]
    named = {row["policy"]: row for row in network["rows"]}
    assert named["Best of 72 priorities"]["minus_ours"]["mean"] > -200.0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert all(command in shown for command in NEXT)
    assert (tmp_path / "bellweight-demo.html").stat().st_size > 100_000


def test_files_that_are_read_are_never_written(
    tmp_path: Path, small_queue: bw.TabularModel, capsys: pytest.CaptureFixture[str]
) -> None:
    model, result = tmp_path / "model.npz", tmp_path / "result.npz"
    small_queue.save(model)
    assert run(["solve", str(model), "--save", str(result)]) == exits.DONE
    factory = tmp_path / "made.py"
    factory.write_text("def make(): ...", encoding="utf-8")
    link = tmp_path / "link.npz"
    link.symlink_to(model)
    capsys.readouterr()
    before = {path: path.read_bytes() for path in (model, result, factory)}
    for words in (
        ["solve", str(model), "--save", str(model)],
        ["solve", str(model), "--save", str(link)],
        ["solve", str(model), "--json", str(model)],
        ["solve", f"{factory}:make", "--json", str(factory)],
        ["solve", str(model), "--resume", str(result), "--json", str(result)],
        ["evaluate", str(result), "--model", str(model), "--json", str(result)],
        ["evaluate", str(result), "--model", str(model), "--json", str(model)],
    ):
        code, line = failure(words, capsys)
        assert code == exits.BAD_INPUT
        assert f"cannot write {words[-1]}: the command reads it: choose another name" in line
    assert before == {path: path.read_bytes() for path in before}


def test_cli_modules_import_nothing_heavy_at_the_top() -> None:
    light = {"bellweight.cli", "bellweight.common.status", "typer", "rich"}
    for path in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                known = name.split(".")[0] in sys.stdlib_module_names
                near = any(name == ok or name.startswith(f"{ok}.") for ok in light)
                assert known or near, f"{path.name} imports {name} at the top"


def test_a_saved_comparison_tells_its_page_and_takes_no_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, held = str(tmp_path / "r.npz"), str(tmp_path / "both.npz")
    assert run(["solve", *QUEUE, "--save", saved]) == exits.DONE
    words = ["--model", *QUEUE, "--random", "--episodes", "20", "--save", held]
    assert run(["compare", saved, *words]) == exits.DONE
    page = f"{held.removesuffix('.npz')}.html"
    assert f"saved to {held}: bellweight report {held} --out {page}" in capsys.readouterr().out
    assert run(["report", held, "--model", *QUEUE, "--out", page]) == exits.BAD_INPUT
    assert "a comparison, which holds all its numbers, takes no model" in capsys.readouterr().err
    assert run(["report", held, "--out", page]) == exits.DONE
