"""PRISM's explicit files and Storm's DRN: there and back, theirs, and wrong ones by their line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from same import assert_same
from strategies import models

import bellweight as bw
from bellweight.interchange import (
    read_drn,
    read_model,
    read_prism,
    write_drn,
    write_model,
    write_prism,
)

FORMATS = {"tra": (write_prism, read_prism), "drn": (write_drn, read_drn)}


@given(models(), st.integers(1, 2))
def test_there_and_back(model: bw.TabularModel, starts: int) -> None:
    law = np.zeros(model.n_states)
    law[:starts] = 1.0 / starts
    labels = ("low", *("",) * (model.n_states - 2), "high full")
    model = replace(model, initial=law, state_labels=labels)
    for ending, (write, read) in FORMATS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write(model, Path(folder) / f"model.{ending}")
            again = read(path, model.discount)
        assert_same(again, model)
        assert again.state_labels == labels
        np.testing.assert_array_equal(again.initial, model.initial)


@pytest.mark.parametrize("ending", FORMATS)
def test_action_names_vectors_and_rewards(ending: str, tmp_path: Path) -> None:
    write, read = FORMATS[ending]
    model = bw.TabularModel.from_pairs(
        [1.0, 2.0, 0.1], np.array([[0.5, 0.5], [0, 1], [1, 0]]), [0, 0, 1], [0, 1, 1], 0.9, [0, 1],
        sense="max", action_labels=["up", "down"],
        state_vectors=[[3, -1], [0, 2]] if ending == "tra" else None,
    )  # fmt: skip
    path = write(model, tmp_path / f"m.{ending}")
    again = read(path, 0.9, sense="max", actions=["up", "down"])
    assert_same(again, model)
    assert again.action_labels == ("up", "down")
    if ending == "tra":
        np.testing.assert_array_equal(again.states, model.states)
    swapped = read(path, 0.9, sense="max", actions=["down", "up"])
    assert swapped.cost.tolist() == [-2.0, -1.0, -0.1]


@pytest.mark.parametrize("ending", FORMATS)
def test_unequal_initial_probabilities_come_back(ending: str, tmp_path: Path) -> None:
    write, read = FORMATS[ending]
    model = bw.problems.single_queue(capacity=3)
    path = write(model, tmp_path / f"m.{ending}")
    np.testing.assert_array_equal(read(path, 0.9).initial, model.initial)
    assert read(path, 0.9, initial=2).initial.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("ending", ["tra", "drn", "csv"])
def test_vectors_that_a_file_cannot_hold_are_a_warning(ending: str, tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=3)
    with pytest.warns(UserWarning, match="cannot hold the vectors of states"):
        write_model(replace(model, state_vectors=[[0.5], [1], [2], [3]]), tmp_path / f"m.{ending}")
    indices = np.arange(4.0)[:, None]
    write_model(replace(model, state_vectors=indices), tmp_path / f"n.{ending}")
    again = read_model(tmp_path / f"n.{ending}", discount=0.9)
    np.testing.assert_array_equal(again.states, indices)


# The die of Knuth and Yao's first states as `storm --exportbuild` writes it, shortened.
STORM = """// Exported by storm
// Original model type: MDP
@type: MDP
@parameters

@reward_models
coin_flips other
@nr_states
3
@nr_choices
4
@model
state 0 [1, 7] init
\taction left [0.5, 0]
\t\t1 : 0.5
\t\t2 : 1/2
\taction right [0, 0]
\t\t2 : 1
state 1 [0, 0] "done" one [x]
\taction __NOLABEL__ [0, 0]
\t\t1 : 1
state 2 [0, 0] done
\taction __NOLABEL__ [0, 0]
\t\t2 : 0.999999
"""


def test_a_file_as_storm_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "die.drn"
    path.write_text(STORM, encoding="utf-8")
    model = read_drn(path, 0.9, reward="coin_flips")
    assert model.cost.tolist() == [1.5, 1.0, 0.0, 0.0]
    assert model.state_labels == ("", "done one [x]", "done")
    assert model.action_labels == ("left", "right", "a0")
    assert model.transition.toarray().tolist() == [[0, 0.5, 0.5], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
    with pytest.raises(bw.BellweightError, match="coin_flips, other: name one"):
        read_drn(path, 0.9)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\t\t2 : 1/2\n", "", "line 15: the probabilities of state 0"),
        ("\t\t2 : 1/2\n", "\t\t9 : 1/2\n", "line 16: '9', expected a whole number below 3"),
        ("\t\t2 : 1/2\n", "\t\t2 ; 1/2\n", "line 16: .* expected a state, an action or next"),
        ("[0, 0] done", "[0, 0 done", "line 22: .*expected rewards in brackets"),
        ('"done" one', '"done one', "line 19: .*each with two quotes or none"),
        ("0.999999", "x", "line 24: 'x', expected a number"),
        ("state 2 [0, 0] done\n\taction __NOLABEL__ [0, 0]\n\t\t2 : 0.999999\n", "", "2 of 3"),
        ("@type: MDP", "@type: POMDP", "line 3: the model is POMDP"),
        ("@nr_states\n3", "@nr_states\n0", "line 9: there are no states"),
        ("@model", "@states", "ends before @model"),
        ("\t\t2 : 1\n", "", "line 18: state 0 has no transition"),
    ],
)
def test_a_wrong_drn_file_is_an_error_with_its_line(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in STORM
    (tmp_path / "m.drn").write_text(STORM.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(bw.BellweightError, match=said):
        read_drn(tmp_path / "m.drn", 0.9, reward="coin_flips")


PRISM = {
    "tra": "2 3 4\n0 0 0 0.5 go\n0 0 1 0.5 go\n0 1 1 1 stop\n1 0 1 1 stop\n",
    "sta": "(s,b)\n0:(0,false)\n1:(7,true)\n",
    "lab": '0="init" 1="deadlock" 2="end"\n0: 0\n1: 2\n',
    "srew": "2 1\n0 3\n",
    "trew": "2 3 1\n0 0 1 4\n",
}


def written(folder: Path, texts: dict[str, str]) -> Path:
    for ending, text in texts.items():
        (folder / f"m.{ending}").write_text(text, encoding="utf-8")
    return folder / "m.tra"


def test_files_as_prism_writes_them(tmp_path: Path) -> None:
    model = read_prism(written(tmp_path, PRISM), 0.9)
    assert model.cost.tolist() == [5.0, 3.0, 0.0]
    assert model.states.tolist() == [[0, 0], [7, 1]]
    assert model.state_labels == ("", "end")
    assert model.action_labels == ("go", "stop")
    assert model.initial.tolist() == [1.0, 0.0]


def test_a_markov_chain_has_one_action(tmp_path: Path) -> None:
    model = read_prism(written(tmp_path, {"tra": "2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n"}), 0.9)
    assert model.n_actions == 1
    assert model.initial.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("ending", "text", "said"),
    [
        ("tra", "2 3 4\n0 0 0 0.5 go\n", "line 2: the file has 1 transitions, expected 4"),
        ("tra", "2 3\n0 0 0.5\n0 2 0.5\n1 1 1\n", "line 3: '2', expected a whole number below 2"),
        ("tra", "2 2 3\n0 0 0 0.5\n0 0 1 0.4\n1 0 1 1\n", "line 2: the probabilities of state 0"),
        ("tra", "2 2 3\n0 0 0 0.5\n0 0 1 0.5\n0 1 1 1\n", r"line 3: state 1 \(end\) has no action"),
        ("tra", "1 1 1\n0 2000000000 0 1\n", "line 2: '2000000000', expected a whole number below"),
        ("tra", "two\n", "line 1: 'two', expected a header"),
        ("tra", "", "expected a header"),
        ("sta", "(s,b)\n0:(0,false)\n", "line 2: the file ends after 1 of 2 states"),
        ("lab", '0="init"\n0: 3\n', "line 2: '0: 3'"),
        ("srew", "2 1\n0 x\n", "line 2: 'x', expected a number"),
        ("trew", "2 3 1\n1 0 0 4\n", "line 2: 1 0 0 is no transition"),
        ("trew", "2 3 1\n", "line 1: the file has 0 entries, expected 1"),
    ],
)
def test_a_wrong_prism_file_is_an_error_with_its_line(
    ending: str, text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(bw.BellweightError, match=said):
        read_prism(written(tmp_path, {**PRISM, ending: text}), 0.9)


def test_what_is_no_path_is_refused_by_name() -> None:
    model = bw.problems.single_queue(capacity=3)
    with pytest.raises(bw.errors.FileError, match="path is None"):
        read_model(None, discount=0.9)  # type: ignore[arg-type]
    with pytest.raises(bw.errors.FileError, match="path is 5"):
        write_model(model, 5)  # type: ignore[arg-type]
