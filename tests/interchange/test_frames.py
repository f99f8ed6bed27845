"""Tables of transitions: frames and CSV files, there and back, and wrong rows by their number."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from same import assert_same
from strategies import models

import bellweight as bw
from bellweight.interchange import assembly, from_frame, read_csv, read_model, to_frame, write_csv
from bellweight.interchange import names as names_of_tables

ROWS = {
    "state": ["dry", "dry", "wet", "wet", "wet"],
    "action": ["wait", "wait", "go", "wait", "wait"],
    "next": ["wet", "dry", "dry", "wet", "dry"],
    "probability": [0.25, 0.75, 1.0, 0.5, 0.5],
    "cost": [4.0, 0.0, 3.0, 1.0, 1.0],
}


@given(models())
def test_tables_there_and_back(model: bw.TabularModel) -> None:
    for kind in ("pandas", "polars", "columns"):
        assert_same(from_frame(to_frame(model, kind), model.discount, model.initial), model)
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(model, Path(folder) / "model.csv")
        assert_same(read_csv(path, model.discount, model.initial), model)


@pytest.mark.parametrize("make", [dict, pandas.DataFrame, polars.DataFrame])
def test_names_costs_by_successor_and_order(make: Any, tmp_path: Path) -> None:
    model = from_frame(make(ROWS), 0.9, "wet")
    assert model.state_labels == ("dry", "wet")
    assert model.action_labels == ("go", "wait"), "as in the rows of wet"
    assert model.cost.tolist() == [1.0, 3.0, 1.0]
    assert model.initial.tolist() == [0.0, 1.0]
    again = read_csv(write_csv(model, tmp_path / "m.csv"), 0.9, "wet")
    assert_same(again, model)
    assert again.state_labels == model.state_labels
    turned = from_frame(make(ROWS), 0.9, states=["wet", "dry"], actions=["wait", "go"])
    assert turned.cost.tolist() == [1.0, 3.0, 1.0]
    assert turned.transition.toarray().tolist() == [[0.5, 0.5], [0, 1], [0.25, 0.75]]


def test_rewards_and_names_that_need_quotes(tmp_path: Path) -> None:
    rows = {**ROWS, "reward": ROWS["cost"]}
    del rows["cost"]
    rows["state"] = [f'{name}, "so"' for name in ROWS["state"]]
    rows["next"] = [f'{name}, "so"' for name in ROWS["next"]]
    model = from_frame(rows, 0.9)
    assert model.sense == "max"
    assert model.cost.tolist() == [-1.0, -3.0, -1.0]
    again = read_csv(write_csv(model, tmp_path / "m.csv"), 0.9)
    assert_same(again, model)
    assert (again.sense, again.state_labels) == ("max", model.state_labels)


def test_unsorted_rows_and_repeated_successors() -> None:
    shuffled = pandas.DataFrame(ROWS).iloc[[3, 0, 4, 2, 1]].reset_index(drop=True)
    names = {"states": ["dry", "wet"], "actions": ["go", "wait"]}
    assert_same(from_frame(shuffled, 0.9, **names), from_frame(ROWS, 0.9))
    twice = {"state": [0, 0], "action": [0, 0], "next": [0, 0], "probability": [0.5, 0.5],
             "cost": [2, 4]}  # fmt: skip
    assert from_frame(twice, 0.9).transition.nnz == 1
    assert from_frame(twice, 0.9).cost.tolist() == [3.0]


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting, averages and errors where a list is longer than what is looked at together."""
    table = pandas.DataFrame(ROWS)
    shuffled = table.iloc[[3, 0, 4, 2, 1]].reset_index(drop=True)
    names = {"states": ["dry", "wet"], "actions": ["go", "wait"]}
    model = from_frame(table, 0.9)
    for length in (1, 2, 3):
        for module in (assembly, names_of_tables):
            monkeypatch.setattr(module, "BLOCK", length)
        assert_same(from_frame(shuffled, 0.9, **names), model)
        assert from_frame(table, 0.9).action_labels == model.action_labels
        wrong = table.assign(cost=[4.0, 0.0, 3.0, 1.0, float("nan")])
        with pytest.raises(bw.BellweightError, match="row 4: the cost is nan"):
            from_frame(wrong, 0.9)


@pytest.mark.parametrize(
    ("column", "row", "value", "said"),
    [
        ("probability", 1, 1.75, "row 1: the probability is 1.75"),
        ("probability", 4, 0.25, "row 3: the probabilities of state 1, action 1 .* sum to 0.75"),
        ("probability", 2, float("nan"), "row 2: the probability is nan"),
        ("cost", 3, float("inf"), "row 3: the cost is inf"),
        ("cost", 3, "dear", "row 3: the cost is 'dear'"),
        ("next", 0, "moist", r"row 0: state 2 \(moist\) has no action"),
        ("state", 1, None, "row 1: the state is missing"),
        ("action", 2, float("nan"), "row 2: the action is missing"),
        ("next", 3, " ", "row 3: the next is missing"),
    ],
)
def test_one_wrong_row_is_named(column: str, row: int, value: Any, said: str) -> None:
    rows = {name: list(values) for name, values in ROWS.items()}
    rows[column][row] = value
    with pytest.raises(bw.BellweightError, match=said):
        from_frame(rows, 0.9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"is empty \(line 1\): expected the names"),
        ("state,action,next,probability\n", "add either cost or reward"),
        ("state,action,next,probability,cost\n", "has no rows"),
        ("state,action,next,probability,cost\n0,0,0,1\n", "line 2: 4 fields, expected 5"),
        ("state,action,next,probability,cost\n\n0,0,0,one,1\n", "line 3: probability and cost"),
        ("state,action,next,probability,cost\n0,0,0,0.5,1\n", "line 2: the probabilities of"),
        ("state,action,next,probability,cost\n0,0,0,1,1\n0,,0,1,1\n", "line 3: state, action or"),
        (
            "state;action;next;probability;cost\n0;0;0;1;1\n",
            "line 1: .* separated by ';', expected",
        ),
        ("state,action,next,probability,cost,cost\n0,0,0,1,1,2\n", "several columns cost"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    with pytest.raises(bw.BellweightError, match=said):
        read_csv(tmp_path / "m.csv", 0.9)


def test_states_stand_in_the_order_of_their_own_column(tmp_path: Path) -> None:
    """Successors that come before their own rows do not change it, in a file or in a frame."""
    rows = {"state": ["a", "b", "c"], "action": ["go"] * 3, "next": ["c", "a", "b"],
            "probability": [1.0] * 3, "cost": [1.0, 2.0, 3.0]}  # fmt: skip
    model = from_frame(rows, 0.9)
    again = read_csv(write_csv(model, tmp_path / "m.csv"), 0.9)
    assert again.state_labels == model.state_labels == ("a", "b", "c")
    assert again.cost.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("make", [dict, pandas.DataFrame, polars.DataFrame])
def test_numbers_of_states_and_actions(make: Any) -> None:
    rows = {"state": [0.0, 1.0], "action": [0, 2], "next": [1.0, 0.0], "probability": [1.0] * 2,
            "cost": [1.0, 2.0]}  # fmt: skip
    model = from_frame(make(rows), 0.9)
    assert model.state_labels is None
    assert model.action_labels is None
    assert model.pair_action.tolist() == [0, 2]
    model = from_frame(make({**rows, "action": [0, 50], "state": [1, 2], "next": [2, 1]}), 0.9)
    assert model.action_labels == ("0", "50")
    assert model.state_labels == ("1", "2")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "the table is NoneType, expected a frame"),
        (polars.DataFrame(ROWS).lazy(), "LazyFrame, .* a lazy frame has collect"),
        ({**ROWS, "cost": [1.0]}, "the column cost has 1 rows, expected one value for each row"),
        ({**ROWS, "cost": 1.0}, "the column cost is no list"),
        ({**ROWS, "cost": [1j] * 5}, "the cost is complex"),
    ],
)
def test_what_is_no_table_is_refused(table: Any, said: str) -> None:
    with pytest.raises(bw.BellweightError, match=said):
        from_frame(table, 0.9)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint32, np.uint64, np.int16])
def test_indices_of_any_whole_type(kind: Any) -> None:
    """Polars numbers its rows by unsigned numbers."""
    n = 100
    rows = {"state": np.arange(n, dtype=kind), "action": np.zeros(n, dtype=kind),
            "next": np.arange(n, dtype=kind)[::-1], "probability": np.ones(n),
            "cost": np.arange(n)}  # fmt: skip
    model = from_frame(polars.DataFrame(rows), 0.9)
    assert model.state_labels is None
    assert model.transition.indices.tolist() == list(range(n))[::-1]


def test_an_order_with_a_name_twice_is_refused() -> None:
    with pytest.raises(bw.BellweightError, match=r"states\[1\] is 'dry', as states\[0\] is"):
        from_frame(ROWS, 0.9, states=["dry", "dry", "wet"])


def test_a_compressed_file_is_told(tmp_path: Path) -> None:
    for name in ("m.csv", "m.drn", "m.tra"):
        (tmp_path / name).write_bytes(gzip.compress(b"state\n"))
        with pytest.raises(bw.errors.FileError, match="line 1: the file is compressed: unpack"):
            read_model(tmp_path / name, discount=0.9)
    with pytest.raises(bw.BellweightError, match=r"ends in '\.gz'.*: unpack it"):
        read_model(tmp_path / "m.csv.gz", discount=0.9)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(bw.errors.FileError, match="does not exist"):
        read_csv(tmp_path / "none.csv", 0.9)


def test_only_listed_states_can_leave() -> None:
    with pytest.raises(bw.BellweightError, match="expected a TabularModel"):
        to_frame(bw.problems.scheduling("small"))
    assert isinstance(to_frame(bw.problems.single_queue(capacity=2)), pandas.DataFrame)
    assert np.isclose(to_frame(bw.problems.single_queue(capacity=2))["probability"].sum(), 15)
