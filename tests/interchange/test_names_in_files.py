"""Names of states and actions in files: whatever they are made of, they must not change a model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same import assert_same

import bellweight as bw
from bellweight.interchange import (
    from_frame,
    read_csv,
    read_drn,
    read_prism,
    to_frame,
    write_csv,
    write_drn,
    write_prism,
)

ROWS = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
# Letters with a meaning in one of the formats, and words that stand for something.
ODD = st.text(st.sampled_from("ab019 _.,:;[]{}!#@/'\\\u00e9\u65e5"), min_size=1, max_size=6)
WORDS = st.sampled_from(["state", "action", "@model", "//", "[1]", "0", "7", "a0", "a1", "-"])
LABEL = st.one_of(ODD, WORDS).map(lambda text: " ".join(text.split()) or "x")
TWO = st.lists(LABEL, min_size=2, max_size=2, unique=True)
FORMATS = {
    "tra": (write_prism, read_prism),
    "drn": (write_drn, read_drn),
    "csv": (write_csv, read_csv),
}


def labelled(states: Any, actions: Any) -> bw.TabularModel:
    """State 0 has both actions, state 1 the second only."""
    return bw.TabularModel.from_pairs(
        [1.0, 2.0, 0.1], ROWS, [0, 0, 1], [0, 1, 1], 0.9, [1, 0],
        state_labels=states, action_labels=actions,
    )  # fmt: skip


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=40)
@given(TWO, TWO)
def test_a_model_does_not_depend_on_its_names(
    ending: str, tmp_path_factory: pytest.TempPathFactory, states: list[str], actions: list[str]
) -> None:
    write, read = FORMATS[ending]
    model = labelled(states, actions)
    path = tmp_path_factory.getbasetemp() / f"odd.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a state may be called init
        write(model, path)
    again = read(path, 0.9)
    assert_same(again, model)
    assert again.action_labels == model.action_labels
    assert again.state_labels == model.state_labels or "init" in states


@pytest.mark.parametrize("ending", FORMATS)
def test_names_without_an_order_come_back(ending: str, tmp_path: Path) -> None:
    write, read = FORMATS[ending]
    model = labelled(("[1, 7]", "[2]") if ending == "drn" else ("low", "high"), ("a1", "a0"))
    again = read(write(model, tmp_path / f"m.{ending}"), 0.9)
    assert_same(again, model)
    assert again.action_labels == ("a1", "a0")
    assert again.state_labels == model.state_labels


@pytest.mark.parametrize("ending", ["tra", "drn"])
def test_actions_stand_as_in_every_state(ending: str, tmp_path: Path) -> None:
    """State 0 has the last action only: it is not the first one for that."""
    write, read = FORMATS[ending]
    model = bw.TabularModel.from_pairs(
        np.arange(5.0), np.eye(3)[[0, 1, 2, 0, 1]], [0, 1, 1, 2, 2], [2, 0, 1, 1, 2], 0.9,
        [1, 0, 0], action_labels=("keep", "mend", "replace"),
    )  # fmt: skip
    again = read(write(model, tmp_path / f"m.{ending}"), 0.9)
    assert_same(again, model)
    assert again.action_labels == model.action_labels


def test_names_are_as_each_program_takes_them(tmp_path: Path) -> None:
    """PRISM wants identifiers; Storm takes any word, in quotes where it looks like rewards."""
    model = labelled(("(3, 1)", "[2]"), ("rate 0.2", "5"))
    text = write_drn(model, tmp_path / "m.drn").read_text(encoding="utf-8")
    assert "state 0 init (3, 1)\n\taction rate_0.2 [1.0]" in text
    assert 'state 1 "[2]"\n\taction 5 [0.1]' in text
    text = write_prism(model, tmp_path / "m.tra").read_text(encoding="utf-8")
    assert text.splitlines()[1:] == [
        "0 0 0 0.5 rate_0_2", "0 0 1 0.5 rate_0_2", "0 1 1 1.0 _5", "1 0 0 1.0 _5",
    ]  # fmt: skip
    labels = (tmp_path / "m.lab").read_text(encoding="utf-8")
    assert labels.splitlines()[0] == '0="init" 1="deadlock" 2="_3_" 3="_1_" 4="_2_"'


@pytest.mark.parametrize("ending", ["tra", "drn"])
def test_what_the_format_cannot_hold_is_noted(ending: str, tmp_path: Path) -> None:
    """Names that are spelled alike or unused, far indices, and that rewards are."""
    write, read = FORMATS[ending]
    for labels in [("x y", "x_y"), ("", "a0"), ("50", "5"), ("a", "b", "unused")]:
        model = labelled(("p (1)", "p [1]"), labels)
        again = read(write(model, tmp_path / f"m.{ending}"), 0.9)
        assert_same(again, model)
        assert (again.state_labels, again.action_labels) == (model.state_labels, labels)
    far = bw.TabularModel.from_pairs([1, 2], np.eye(2), [0, 1], [0, 70], 0.9, [1, 0], sense="max")
    again = read(write(far, tmp_path / f"m.{ending}"), 0.9)
    assert_same(again, far)
    assert (again.action_labels, again.sense) == (None, "max")
    assert read(tmp_path / f"m.{ending}", 0.9, sense="min").sense == "min"


@pytest.mark.parametrize("ending", ["tra", "drn"])
def test_notes_of_another_file_or_damaged_ones(ending: str, tmp_path: Path) -> None:
    write, read = FORMATS[ending]
    path = write(labelled(None, ("rate 1", "rate 2")), tmp_path / f"m.{ending}")
    path.write_text(path.read_text(encoding="utf-8").replace(" rate_2", " fast"), encoding="utf-8")
    assert read(path, 0.9).action_labels == ("rate_1", "fast"), "names as the file has them"
    noted = path.with_suffix(".names") if ending == "tra" else path
    text = noted.read_text(encoding="utf-8")
    noted.write_text(text.replace('"rate_1": 0', '"rate_1": 1'), encoding="utf-8")
    with pytest.raises(bw.BellweightError, match=r"line 2: the names .* are damaged: delete"):
        read(path, 0.9)
    if ending == "tra":
        noted.write_text(text.replace("2 3 4", "2 3 5", 1), encoding="utf-8")
        assert read(path, 0.9).action_labels == ("rate_1", "fast"), "notes of other transitions"


def test_files_of_another_model_are_not_taken_for_parts(tmp_path: Path) -> None:
    model = labelled(None, None)
    write_prism(model, tmp_path / "m.tra")
    for name in ("m.srew", "m.sta"):
        (tmp_path / name).write_text("", encoding="utf-8")
        with pytest.raises(bw.BellweightError, match=rf"{name} is there and would be read"):
            write_prism(model, tmp_path / "m.tra")
        (tmp_path / name).unlink()
    for name in ("m1", "m2"):  # not the first and second rewards of m
        assert_same(read_prism(write_prism(model, tmp_path / f"{name}.tra"), 0.9), model)
    assert_same(read_prism(tmp_path / "m.tra", 0.9), model)
    (tmp_path / "m.trew").unlink()
    assert not read_prism(tmp_path / "m.tra", 0.9).cost.any()


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "columns"])
@pytest.mark.parametrize("labels", [("10", "5"), ("1", "2"), ("0", "1"), ("007", "7")])
def test_numbers_that_are_names_stay_names_in_tables(
    kind: str, labels: tuple[str, str], tmp_path: Path
) -> None:
    """Actions stand as in every state, though state 0 has the second only."""
    model = bw.TabularModel.from_pairs(
        [1.0, 2.0, 0.1], ROWS, [0, 1, 1], [1, 0, 1], 0.9, [1, 0],
        state_labels=labels, action_labels=labels,
    )  # fmt: skip
    if kind == "csv":
        again = read_csv(write_csv(model, tmp_path / "m.csv"), 0.9)
    else:
        again = from_frame(to_frame(model, kind), 0.9)
    assert_same(again, model)
    assert again.state_labels == again.action_labels == labels


def test_names_that_tables_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(bw.BellweightError, match="' b' begins or ends with a space"):
        write_csv(labelled(("a", " b"), None), tmp_path / "m.csv")
    with pytest.warns(UserWarning, match="state labels are not all different"):
        write_csv(labelled(("a", "a"), None), tmp_path / "m.csv")


@pytest.mark.parametrize(("write", "ending"), [(write_prism, "tra"), (write_drn, "drn")])
def test_what_a_file_cannot_hold_is_said(write: Any, ending: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"state 1 \(no init\) has a name with the word init"):
        write(labelled(("go", "no init"), None), tmp_path / f"m.{ending}")
    with pytest.warns(UserWarning, match="more than single spaces"):
        write(labelled(("go", "a  b"), None), tmp_path / f"m.{ending}")
    if ending == "drn":
        with pytest.raises(bw.BellweightError, match="quotation mark"):
            write(labelled(('say "x"', "b"), None), tmp_path / "m.drn")


@pytest.mark.parametrize("ending", FORMATS)
def test_windows_files_and_files_that_are_no_utf8(ending: str, tmp_path: Path) -> None:
    write, read = FORMATS[ending]
    model = labelled(("süd", "nord"), ("go", "stop"))
    path = write(model, tmp_path / f"m.{ending}")
    plain = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"))
    assert_same(read(path, 0.9), model)
    wrong = path.with_suffix(".lab") if ending == "tra" else path
    wrong.write_bytes(wrong.read_bytes().replace("ü".encode(), b"\xfc"))
    with pytest.raises(bw.BellweightError, match=r"line \d+: the byte 0xfc is no UTF-8: save"):
        read(path, 0.9)
