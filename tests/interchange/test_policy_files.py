"""Policies as tables and as Python files, and model files by their endings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import bellweight as bw
from bellweight.cli.main import run
from bellweight.interchange import (
    policy_for_gymnasium,
    policy_frame,
    read_model,
    read_policy,
    write_model,
    write_policy,
)

LONG = "1" * 5_000  # more digits than Python reads as a whole number


@pytest.fixture(scope="module")
def queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=12, initial="empty")


@pytest.mark.parametrize("ending", ["csv", "json"])
@pytest.mark.parametrize("randomised", [False, True])
def test_tables_there_and_back(
    queue: bw.TabularModel, ending: str, randomised: bool, tmp_path: Path
) -> None:
    policy = bw.Uniform().on(queue) if randomised else bw.exact.optimal(queue).policy
    path = write_policy(policy, tmp_path / f"p.{ending}")
    again = read_policy(path, queue)
    np.testing.assert_array_equal(again.probabilities(queue), policy.probabilities(queue))


def test_a_python_file_needs_only_python(queue: bw.TabularModel, tmp_path: Path) -> None:
    best = bw.exact.optimal(queue).policy
    text = write_policy(best, tmp_path / "p.py").read_text(encoding="utf-8")
    assert "import" not in text
    place: dict[str, object] = {}
    exec(text, place)
    for state in range(queue.n_states):
        assert place["action"](state) == queue.label(best.action(state))  # type: ignore[operator]
    text = write_policy(bw.Uniform().on(queue), tmp_path / "q.py").read_text(encoding="utf-8")
    exec(text, place)
    chances = place["probabilities"](3)  # type: ignore[operator]
    assert list(chances.values()) == [0.2] * 5


def test_labels_of_all_kinds_in_a_python_file(tmp_path: Path) -> None:
    """The file is run by another Python that sees nothing but the standard library."""
    states, actions = ('a"""b', "c\\n'{0}"), ("x\ny", "\u00e9'")
    model = bw.TabularModel.from_pairs(
        [1, 2], np.eye(2), [0, 1], [0, 1], 0.9, [1, 0], state_labels=states, action_labels=actions
    )
    path = write_policy(bw.Uniform().on(model), tmp_path / "p.py")
    said = f"f = __import__('runpy').run_path({str(path)!r})['action']; print([*map(f, {states})])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", said],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.stdout.strip() == repr(list(actions)), done.stderr


def test_a_policy_on_some_states(queue: bw.TabularModel, tmp_path: Path) -> None:
    best = bw.exact.optimal(queue).policy
    columns = policy_frame(best, [0, 3], "columns")
    assert columns["action"] == [queue.label(best.action(0)), queue.label(best.action(3))]
    assert policy_frame(bw.Uniform().on(queue), [2], "columns")["probability"] == [0.2] * 5
    with pytest.raises(bw.BellweightError, match="state 99 does not exist"):
        write_policy(best, tmp_path / "p.csv", [99])
    network = bw.problems.queue_network()
    greedy = bw.Greedy(bw.Polynomial(1), np.arange(9.0)).on(network)
    states = np.array([[1, 0, 0, 2, 0, 0, 1, 0], [0, 3, 0, 2, 0, 0, 1, 0]])
    place: dict[str, Any] = {}
    exec(write_policy(greedy, tmp_path / "p.py", states).read_text(encoding="utf-8"), place)
    for state in states:
        assert place["action"](state) == network.label(int(greedy.action(state)))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.csv", "state,action\n0,1\n", "no table .*: no 'probability'"),
        ("p.csv", "state,action,probability\n0,rate 0\n", "line 2: 2 fields, expected 3"),
        ("p.json", "{", "no table"),
        ("p.json", "[1]", "no table"),
        ("p.json", '{"state": [0], "action": ["rate 7"], "probability": [1]}', "entry 0: state 0"),
        ("p.txt", "", r"expected a file \.csv or \.json"),
    ],
)
def test_what_is_no_table_is_said(
    queue: bw.TabularModel, name: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(bw.BellweightError, match=said):
        read_policy(tmp_path / name, queue)


def test_a_table_as_windows_saves_it(queue: bw.TabularModel, tmp_path: Path) -> None:
    best = bw.exact.optimal(queue).policy
    path = write_policy(best, tmp_path / "p.csv")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    again = read_policy(path, queue)
    np.testing.assert_array_equal(again.probabilities(queue), best.probabilities(queue))


def test_a_table_that_does_not_fit_is_refused(queue: bw.TabularModel, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("state,action,probability\n0,rate 0,1\n1,rate 7,1\n", encoding="utf-8")
    with pytest.raises(bw.BellweightError, match="line 3: state '1', action 'rate 7'"):
        read_policy(path, queue)
    path.write_text("state,action,probability\n0,rate 0,1\n", encoding="utf-8")
    with pytest.raises(bw.BellweightError, match="in state 1 sum to 0"):
        read_policy(path, queue)
    path.write_text("a,b\n", encoding="utf-8")
    with pytest.raises(bw.BellweightError, match=r"no table|sum to 0"):
        read_policy(path, queue)
    with pytest.raises(bw.BellweightError, match=r"policy\.on\(model\)"):
        write_policy(bw.Uniform(), path)


def test_endings_in_capitals_and_a_file_of_brackets(queue: bw.TabularModel, tmp_path: Path) -> None:
    best = bw.exact.optimal(queue).policy
    path = write_policy(best, tmp_path / "P.CSV")
    assert read_policy(path, queue).action(3) == best.action(3)
    (tmp_path / "p.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(bw.BellweightError, match="no table of state, action, probability"):
        read_policy(tmp_path / "p.json", queue)


def test_frames_of_policies(queue: bw.TabularModel) -> None:
    frame = policy_frame(bw.exact.optimal(queue).policy, kind="polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == ["state", "action", "probability"]
    assert len(frame) == queue.n_states


@pytest.mark.parametrize("ending", ["csv", "tra", "drn", "npz"])
def test_convert_and_solve_by_the_ending(ending: str, tmp_path: Path) -> None:
    target = tmp_path / f"m.{ending}"
    empty = ["--option", "capacity=12", "--option", "initial=empty"]
    assert run(["convert", "single_queue", str(target), *empty]) == 0
    words = [] if ending == "npz" else ["--option", "discount=0.98"]
    words += ["--option", "initial=0"] if ending == "csv" else []
    found = tmp_path / "found.json"
    assert run(["solve", str(target), *words, "--json", str(found), "--no-judge"]) == 0
    cost = json.loads(found.read_text(encoding="utf-8"))["cost"]
    queue = bw.problems.single_queue(capacity=12, initial="empty")
    expected = bw.solve(queue, bw.Polynomial(3), bw.DIA(), judge=False).cost
    assert expected is not None
    assert cost == pytest.approx(expected.mean, rel=1e-9)


def test_endings_and_options_are_checked(
    queue: bw.TabularModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_model(queue, tmp_path / "M.CSV")
    assert read_model(tmp_path / "M.CSV", discount=0.9).n_pairs == queue.n_pairs
    assert (
        run(
            [
                "convert",
                str(tmp_path / "M.CSV"),
                str(tmp_path / "m.npz"),
                "--option",
                "discount=0.9",
            ]
        )
        == 0
    )
    with pytest.raises(bw.BellweightError, match="holds no discount"):
        read_model(tmp_path / "m.csv")
    with pytest.raises(bw.BellweightError, match=r"colour is no option of \.drn"):
        read_model(tmp_path / "m.drn", discount=0.9, colour=3)
    with pytest.raises(bw.BellweightError, match=r"expected \.csv, \.tra, \.drn, \.npz"):
        write_model(queue, tmp_path / "m.xls")
    for name, kind in (("queue_network", "EventModel"), ("continuous_inventory", "StepModel")):
        for ending in ("npz", "csv"):
            assert run(["convert", name, str(tmp_path / f"n.{ending}")]) == 1
            assert f"error: model is {kind}" in capsys.readouterr().err
    assert run(["convert", "scheduling", str(tmp_path / "linear.npz")]) == 0
    assert run(["solve", str(tmp_path / "M.CSV")]) != 0
    assert "discount" in capsys.readouterr().err


def test_convert_lists_the_states_of_other_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.csv"
    assert run(["convert", "continuous_inventory", str(path), "--grid", "5"]) == 0
    model = bw.problems.continuous_inventory()
    assert read_model(path, discount=0.9).n_pairs == model.to_tabular(5).n_pairs
    factored = ["convert", "machine_maintenance", "--option", "n=2", str(path), "--tabular"]
    assert run(factored) == 0
    capsys.readouterr()
    assert run([*factored, "--grid", "5"]) == 2
    assert "--grid is for step models, and this is FactoredModel" in capsys.readouterr().err
    assert run(["convert", "continuous_inventory", str(path), "--grid", "five"]) == 2
    assert "expected numbers of points" in capsys.readouterr().err


def test_numbers_of_thousands_of_digits_end_in_named_errors(
    queue: bw.TabularModel, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    large = f'{{"state": ["0"], "action": ["0"], "probability": [1{"0" * 400}]}}'
    path.write_text(large, encoding="utf-8")
    with pytest.raises(bw.errors.FileError, match="expected a state"):
        read_policy(path, queue)
    small = bw.problems.single_queue(capacity=3, discount=0.9)
    for ending, beside in ((".tra", ".tra"), (".drn", ".drn"), (".tra", ".names")):
        write_model(small, tmp_path / f"m{ending}")
        wrong = (tmp_path / "m").with_suffix(beside)
        text = wrong.read_text(encoding="utf-8")
        for digits in (LONG, "9" * 15):
            wrong.write_text(text.replace(" 3", f" {digits}"), encoding="utf-8")
            with pytest.raises(bw.errors.FileError):
                read_model(tmp_path / f"m{ending}", discount=0.9)
        wrong.write_text(text, encoding="utf-8")
    write_model(small, tmp_path / "m.tra")
    notes = tmp_path / "m.names"
    text = notes.read_text(encoding="utf-8")
    for number in ("1e999", "-1e999"):
        wrong_notes = text.replace('": 0', f'": {number}', 1)
        assert wrong_notes != text
        notes.write_text(wrong_notes, encoding="utf-8")
        with pytest.raises(bw.errors.FileError, match="damaged"):
            read_model(tmp_path / "m.tra", discount=0.9)


def test_names_of_thousands_of_digits_are_names(tmp_path: Path) -> None:
    rows = [("0", LONG), (LONG, "12"), ("12", "0")]
    lines = [f"{x},go,{y},1,1" for x, y in rows]
    path = tmp_path / "m.csv"
    path.write_text("\n".join(["state,action,next,probability,cost", *lines]), encoding="utf-8")
    assert read_model(path, discount=0.9).state_labels == ("0", "12", LONG)


def test_results_are_written_and_acted_by_as_their_policies(
    queue: bw.TabularModel, tmp_path: Path
) -> None:
    result = bw.solve(queue, bw.Polynomial(2), bw.DIA(), judge=False)
    written = [
        write_policy(one, tmp_path / "p.csv").read_bytes() for one in (result, result.policy)
    ]
    assert written[0] == written[1]
    act = policy_for_gymnasium(result)
    assert [act(np.array(x)) for x in range(13)] == result.policy.table.tolist()
    for wrong in (lambda: write_policy(5, tmp_path / "p.csv"), lambda: policy_for_gymnasium(5)):
        with pytest.raises(bw.errors.PolicyError, match=r"^policy is 5, expected a bellweight"):
            wrong()
