"""The command line and the documents for linear models."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runs import failure, solved

import bellweight as bw
from bellweight.backends import Point
from bellweight.cli import exits, parse, sources
from bellweight.cli.main import run
from bellweight.report.document import result_document

TINY = ["scheduling", "--option", "size=tiny", "--episodes", "40"]
FREE = (-np.inf, 0.0, 0.0, 0.0, 0.0)

FACTORIES = """
import warnings

import bellweight as bw


def shop():
    made = bw.LinearBuilder(discount=0.9, name="shop")
    stock = made.state("stock", upper=20, initial=bw.Law.certain(10))
    order = made.action("order", upper=8)
    made.require(stock + order <= 20, "shelf")
    made.follow(stock, stock + order - made.noise("sold", bw.Law.poisson(3, 6)))
    made.cost(2.0 * stock + 5.0 * order)
    return made.build()


def even():
    made = bw.LinearBuilder(discount=0.9, name="even")
    level = made.state("level", upper=3, initial=bw.Law.uniform(0, 3))
    made.follow(level, made.action("next", upper=3))
    made.cost(1.0)
    return made.build()


def cautious():
    warnings.warn("first line\\nsecond line", bw.errors.BellweightWarning, stacklevel=1)
    return shop()


def nothing():
    return None
"""


@pytest.fixture
def factories(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(FACTORIES, encoding="utf-8")
    return str(tmp_path / "mine.py")


@pytest.fixture(scope="module")
def clinic() -> bw.LinearModel:
    return bw.problems.scheduling("tiny")


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ([], bw.DIA()),
        (["--method", "fixed"], bw.Fixed()),
        (["--method", "random"], bw.FromPolicy()),
        (["--method", "pia", "--max-iterations", "1"], bw.PIA()),
        (["--method", "dia", "--target", "fixed:initial"], bw.DIA(target=bw.Fixed())),
    ],
)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_methods_are_those_of_the_library(
    words: list[str],
    method: bw.weights.Method,
    nonnegative: bool,
    tmp_path: Path,
    clinic: bw.LinearModel,
) -> None:
    limited = "--max-iterations" in words
    code = exits.NOT_CONVERGED if limited else exits.DONE
    flags = ["--nonnegative"] if nonnegative else []
    document = solved([*TINY, "--seed", "4", *words, *flags], tmp_path, code)
    result = bw.solve(
        clinic,
        bw.Affine(lower=FREE if nonnegative else None),
        method,
        simulation=bw.Simulation(40),
        stop=bw.Stop(max_iterations=1) if limited else None,
        seed=4,
        judge=False,
    )
    assert document["method"] == type(method).__name__
    assert document["status"] == result.status.name
    assert document["coef"] == pytest.approx(result.coef, rel=1e-9, abs=1e-9)
    assert document["basis"] == [
        "1", "booked[day 1]", "booked[day 2]", "waiting[class 1]", "waiting[class 2]",
    ]  # fmt: skip
    assert document["sample"] == {"episodes": 40, "horizon": 688}


def test_nonnegative_binds_and_leaves_the_constant_free(tmp_path: Path, factories: str) -> None:
    # An order saves nothing that is worth its price: more stock would be worth less than nothing.
    path = Path(factories)
    path.write_text(
        FACTORIES.replace("2.0 * stock + 5.0 * order", "-2.0 * stock + 50.0 * order"),
        encoding="utf-8",
    )
    words = [f"{factories}:shop", "--method", "fixed"]
    assert solved(words, tmp_path)["coef"][1] < -1.0
    bound = solved([*words, "--nonnegative"], tmp_path)["coef"]
    assert bound[1] == pytest.approx(0.0, abs=1e-9)
    assert bound[0] < -1.0


def test_nonnegative_goes_with_affine_on_any_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = ["single_queue", "--option", "capacity=20", "--basis", "affine", "--nonnegative"]
    assert len(solved(queue, tmp_path)["coef"]) == 2
    model = bw.problems.scheduling("tiny")
    assert parse.basis(parse.BasisWords(None, nonnegative=True), model).bounds(5)[0].tolist() == [
        -np.inf, 0.0, 0.0, 0.0, 0.0,
    ]  # fmt: skip
    capsys.readouterr()
    code, line = failure(["solve", *queue[:3], "--nonnegative"], capsys)
    assert code == exits.WRONG_USAGE
    assert "--nonnegative goes with --basis affine, the basis here is poly:3" in line


def test_solve_says_what_it_did_and_what_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    assert run(["solve", *TINY, "--save", saved]) == exits.DONE
    captured = capsys.readouterr()
    assert "DIA on tiny clinic (4 state and 6 action variables, discount 0.99)" in captured.out
    assert re.search(r"^weights     \d+ iterations in ", captured.out, re.MULTILINE)
    facts = bw.Result.load(saved).table().cells()
    assert any(row[0] == "columns" and "priced in" in row[1] for row in facts)
    assert "occupancy   40 episodes of 688 steps" in captured.out
    assert "states      " not in captured.out
    again = f"bellweight evaluate {saved} --model scheduling --option size=tiny"
    assert f"next        {again}" in captured.out
    assert captured.err == ""


def test_a_saved_model_is_solved_and_evaluated_like_the_problem(
    tmp_path: Path, clinic: bw.LinearModel, capsys: pytest.CaptureFixture[str]
) -> None:
    model, saved, target = (str(tmp_path / name) for name in ("m.npz", "run.npz", "cost.json"))
    clinic.save(model)
    from_file = solved([model, "--episodes", "40", "--save", saved], tmp_path)
    assert from_file["coef"] == pytest.approx(solved(TINY, tmp_path)["coef"], rel=1e-12)
    for source in ([model], ["scheduling", "--option", "size=tiny"]):
        words = ["evaluate", saved, "--model", *source, "--episodes", "30", "--jobs", "1"]
        assert run([*words, "--json", target]) == exits.DONE
        found = json.loads(Path(target).read_text(encoding="utf-8"))["evaluation"]
        # Not the seed of the run, whose episodes shaped the policy.
        assert found["seed"] == 1
        policy = bw.Result.load(saved, model=clinic).policy
        assert found["mean"] == bw.evaluate(clinic, policy, 30, seed=1).mean
    assert "tail at most" in capsys.readouterr().out
    code, line = failure(["evaluate", saved, "--model", "scheduling"], capsys)
    assert code == exits.BAD_INPUT
    assert "belongs to another model" in line
    code, line = failure(["solve", saved], capsys)
    assert code == exits.BAD_INPUT
    assert "holds a Result" in line


def test_a_damaged_linear_model_is_called_damaged(
    tmp_path: Path, clinic: bw.LinearModel, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.npz"
    clinic.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    del arrays["array0"]
    np.savez(path, **arrays)
    code, line = failure(["solve", str(path)], capsys)
    assert code == exits.BAD_INPUT
    assert "damaged or not a Bellweight file" in line


def test_a_run_resumes_to_the_same_answer(
    tmp_path: Path, factories: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.npz")
    words = [f"{factories}:shop", "--episodes", "40", "--seed", "3"]
    method = ["--method", "dia", "--step-size", "0.3", "--tol", "1e-12", "--nonnegative"]
    code = exits.NOT_CONVERGED
    solved([*words, *method, "--max-iterations", "2", "--save", saved], tmp_path, code)
    again = f"bellweight solve {' '.join(words)} --resume {saved} --save {saved}"
    assert f"next        {again}" in capsys.readouterr().out
    most = ["--max-iterations", "4"]
    resumed = solved([*words, "--resume", saved, *most], tmp_path, code)
    straight = solved([*words, *method, *most], tmp_path, code)
    assert resumed["iterations"] == straight["iterations"] == 4
    assert resumed["moments"] == pytest.approx(straight["moments"], rel=1e-10)
    assert resumed["coef"] == pytest.approx(straight["coef"], rel=1e-6)
    capsys.readouterr()
    for other, text in ((["--nonnegative"], "leave out --nonnegative"),
                        (["--basis", "affine"], "leave out --basis")):  # fmt: skip
        code, line = failure(["solve", *words, "--resume", saved, *other], capsys)
        assert code == exits.WRONG_USAGE
        assert text in line
    code, line = failure(["solve", *words[:-1], "4", "--resume", saved], capsys)
    assert "--seed is 4, the saved run's is 3" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--states", "9"],
            "--states does not go with a linear model: its rows are found by pricing",
        ),
        (["--states-from", "random"], "--states-from does not go with a linear model"),
        (["--basis", "poly:2"], "--basis is 'poly:2', expected affine for a linear model"),
        (["--basis", "indicator"], "expected affine for a linear model"),
        (["--method", "fixed", "--weights", "uniform"], "expected initial for a linear model"),
        (["--start", "geometric:0.5"], "expected initial for a linear model"),
        (["--option", "speed=1"], "there is no --option speed: expected size, capacity"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(["solve", "scheduling", *arguments], capsys)
    assert code == exits.WRONG_USAGE
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--option", "size=huge"], "'tiny', 'small', 'large'"),
        (["--option", "capacity=0"], "capacity is 0"),
        (["--option", "arrivals=1,2"], "targets has shape (3,), expected (2,)"),
        (["--option", "discount=1"], "discount is 1"),
        (["--horizon", "10"], "horizon 10 leaves out"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = failure(["solve", "scheduling", *arguments], capsys)
    assert code == exits.BAD_INPUT
    assert words in line


def test_tabular_models_still_refuse_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = failure(["solve", "single_queue", "--episodes", "9"], capsys)
    assert code == exits.WRONG_USAGE
    assert "--episodes does not go with a tabular model: its states are all known" in line


def test_the_parameters_of_the_clinic_can_be_typed(clinic: bw.LinearModel) -> None:
    words = ["size=tiny", "capacity=2", "targets=1,2", "arrivals=2,1", "penalties=100,1",
             "diversion_costs=200,5", "horizon=none"]  # fmt: skip
    made = sources.model("scheduling", sources.options(words))
    assert isinstance(made, bw.LinearModel)
    assert made.digest == clinic.digest
    assert "clinic" in dict(sources.problem_list())["scheduling"]
    assert "size=small" in sources.problem_parameters("scheduling")


def test_factories_may_return_linear_models(
    tmp_path: Path, factories: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = solved([f"{factories}:shop", "--method", "fixed"], tmp_path)
    assert document["model"] == "shop"
    assert document["basis"] == ["1", "stock"]
    capsys.readouterr()
    code, line = failure(["solve", f"{factories}:nothing"], capsys)
    assert code == exits.BAD_INPUT
    assert ": nothing() returns nothing: end it with `return` and the model" in line


def test_a_warning_of_the_result_is_said_once_in_the_summary(
    factories: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["solve", f"{factories}:even", "--method", "fixed"]) == exits.DONE
    captured = capsys.readouterr()
    assert captured.out.count("the value function is the same in every state") == 1
    assert captured.err == ""


def test_other_warnings_are_one_short_line(
    factories: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["solve", f"{factories}:cautious", "--method", "fixed"]
    assert run(words) == exits.DONE
    assert capsys.readouterr().err == "warning: first line second line\n"

    def told(*_: Any) -> Point:
        warnings.warn("the start is odd", bw.errors.BellweightWarning, stacklevel=1)
        return Point(np.array([1.0, 10.0]))

    monkeypatch.setattr(bw.Fixed, "first", told)
    assert run([*words[:1], f"{factories}:shop", *words[2:]]) == exits.DONE
    assert capsys.readouterr().err == "warning: the start is odd\n"


def test_warnings_of_others_stay_what_they_are(factories: str) -> None:
    path = Path(factories)
    path.write_text(
        FACTORIES.replace("bw.errors.BellweightWarning", "UserWarning"), encoding="utf-8"
    )
    with pytest.warns(UserWarning, match="first line"):
        assert run(["solve", f"{factories}:cautious", "--method", "fixed"]) == exits.DONE


def test_the_document_names_what_is_not_zero(clinic: bw.LinearModel) -> None:
    result = bw.solve(clinic, bw.Affine(), bw.Fixed(), judge=False)
    document = result_document(result, clinic)
    json.dumps(document, allow_nan=False)
    assert document["actions"] == {}
    assert len(document["support"]) == len(result.support.values) > 0
    for k, entry in enumerate(document["support"]):
        assert entry["state"] == result.support.states[k].tolist()
        assert entry["action"] == result.support.actions[k].tolist()
        for label, values, names in (
            (entry["state_label"], entry["state"], clinic.state_names),
            (entry["action_label"], entry["action"], clinic.action_names),
        ):
            wanted = [f"{name} = {v:g}" for name, v in zip(names, values, strict=True) if v]
            assert label == (", ".join(wanted) or "all zero")
    assert any(entry["action_label"] != "all zero" for entry in document["support"])
    bare = result_document(result)["support"][0]
    assert bare["state_label"] is None
    assert bare["action"] == document["support"][0]["action"]


def test_the_phases_of_a_cycle_say_how_sure_their_cost_is(tmp_path: Path) -> None:
    words = ["scheduling", "--method", "pia", "--episodes", "20", "--nonnegative"]
    document = solved(words, tmp_path, exits.NOT_CONVERGED)
    assert document["status"] == "CYCLING"
    phases = document["phases"]
    assert all(phase["half_width"] > 0.0 for phase in phases)
    assert [phase["is_constant"] for phase in phases] == [
        not np.any(phase["coef"][1:]) for phase in phases
    ]
    assert {phase["is_constant"] for phase in phases} == {True, False}
    history = document["history"]
    assert history[-1]["columns"] >= history[0]["columns"] > 0
    assert all(record["proven"] for record in history)


def test_the_phases_of_a_tabular_cycle_are_exact(cycling_of_three: bw.TabularModel) -> None:
    result = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA())
    phases = result_document(result, cycling_of_three)["phases"]
    assert len(phases) == 3
    assert {(phase["half_width"], phase["is_constant"]) for phase in phases} == {(0.0, False)}
