"""Files that Storm wrote, files as the PRISM manual describes them, and files that are damaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.interchange import read_csv, read_drn, read_prism

DATA = Path(__file__).parent / "data"

# The program machine.prism by hand: pairs in the order run, mend, stay.
MACHINE = [
    (0, "run", 0.0, [2 / 3, 1 / 3, 0, 0]),
    (1, "run", 1.0, [0, 2 / 3, 1 / 3, 0]),
    (1, "mend", 3.5, [0.9, 0.1, 0, 0]),
    (2, "run", 2.0, [0, 0, 2 / 3, 1 / 3]),
    (2, "mend", 3.5, [0.9, 0, 0.1, 0]),
    (3, "mend", 8.5, [0.9, 0, 0, 0.1]),
    (3, "a1", 5.0, [0, 0, 0, 1]),
]


@pytest.mark.parametrize("name", ["machine", "machine_exact", "machine_plain"])
def test_a_machine_that_storm_wrote(name: str) -> None:
    model = read_drn(DATA / f"{name}.drn", 0.9, reward="cost")
    states, actions, costs, rows = zip(*MACHINE, strict=True)
    assert model.pair_state.tolist() == list(states)
    assert model.cost.tolist() == list(costs)
    exact = 0.0 if name == "machine_exact" else 1e-10
    np.testing.assert_allclose(model.transition.toarray(), rows, rtol=0, atol=exact)
    assert model.state_labels == ("", "", "worn", "broken worn")
    assert model.initial.tolist() == [1, 0, 0, 0]
    if name != "machine_plain":
        assert [model.label(int(a)) for a in model.pair_action] == list(actions)
    else:
        assert model.action_labels is None
        assert model.pair_action.tolist() == [0, 0, 1, 0, 1, 0, 1]
    assert read_drn(DATA / f"{name}.drn", 0.9, reward="repairs").cost.sum() == 3.0


def test_a_chain_that_storm_wrote() -> None:
    """The value of the first state: x = 1 + 0.9 * 0.3 (1 + 0.9 x / 3), by hand."""
    model = read_drn(DATA / "coin.drn", 0.9)
    assert (model.n_actions, model.cost.tolist()) == (1, [1.0, 1.0, 0.0])
    value = bw.exact.optimal(model).values[0]
    assert value == pytest.approx((1 + 0.27) / (1 - 0.27 * 0.3), rel=1e-9)


def test_choices_of_one_name_in_a_state_are_told_apart() -> None:
    model = read_drn(DATA / "same_names.drn", 0.9)
    assert model.action_labels == ("go", "go_2", "stay")
    pairs = zip(model.pair_state, model.pair_action, strict=True)
    found = [(int(x), model.label(int(a))) for x, a in pairs]
    assert found == [(0, "go"), (0, "go_2"), (0, "stay"), (1, "go"), (2, "go")]
    assert model.transition.toarray().tolist() == [
        [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1],
    ]  # fmt: skip


def test_headers_of_drn_files(tmp_path: Path) -> None:
    """Comments, lower-case types, placeholders, no count of choices, no rewards, no labels."""
    text = (
        "// one\n\n@type: mdp\n@value_type: double\n@parameters\n\n@placeholders\n$1 : 1/4\n"
        "@reward_models\n\n@nr_states\n2\n@model\n// states\nstate 0\n\taction 0\n"
        "\t\t0 : $1\n\t\t1 : 0.75\nstate 1 init\n\taction 0\n\t\t1 : 1.0\n"
    )
    (tmp_path / "m.drn").write_text(text, encoding="utf-8")
    model = read_drn(tmp_path / "m.drn", 0.9)
    assert model.transition.toarray().tolist() == [[0.25, 0.75], [0, 1]]
    assert model.initial.tolist() == [0, 1]
    for old, new, said in [
        ("@parameters\n\n", "@parameters\np\n", "line 6: the parameter p has no value"),
        ("0 : $1", "0 : [0.2, 0.3]", "line 17: .*expected a number"),
        ("0 : $1", "0 : $2", r"line 17: '\$2', expected a number"),
        ("2\n@model", "2\n@nr_choices\n5\n@model", "2 choices, expected 5"),
        ("state 1 init", "state", "line 19: 'state', expected the word state"),
        ("mdp", "ctmc", "line 3: the model is ctmc"),
    ]:
        (tmp_path / "m.drn").write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(bw.BellweightError, match=said):
            read_drn(tmp_path / "m.drn", 0.9)


PRISM = {
    "tra": "3 4 6\n0 0 0 2/5 east\n0 0 1 3/5 east\n0 1 2 1 south\n1 0 1 1\n2 0 1 0.25 stuck\n"
    "2 0 2 0.75 stuck\n",
    "sta": "(x,b)\n0:(0,false)\n1:(-3,true)\n2:(7,true)\n",
    "lab": '0="init" 1="deadlock" 2="goal one"\n0: 0\n2: 1 2\n',
    "srew": '# Reward structure "time"\n# State rewards\n3 2\n0 1\n2 1/2\n',
    "trew": '# Reward structure: "move"\n# Transition rewards\n3 4 2\n0 0 1 5\n2 0 2 2\n',
}
CHAIN = {
    "tra": "3 4\n0 1 0.5\n0 2 0.5\n1 1 1\n2 2 1\n",
    "trew": '# Reward structure "r"\n3 2\n0 1 4\n2 2 1\n',
    "lab": '0="init"\n0: 0\n',
}


def written(folder: Path, texts: dict[str, str]) -> Path:
    for ending, text in texts.items():
        (folder / f"m.{ending}").write_text(text, encoding="utf-8")
    return folder / "m.tra"


def test_prism_files_with_fractions_comments_and_a_choice_without_a_name(tmp_path: Path) -> None:
    model = read_prism(written(tmp_path, PRISM), 0.9)
    assert model.action_labels == ("east", "south", "a0", "stuck")
    assert model.pair_action.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(model.cost, [1 + 0.6 * 5, 1, 0, 0.5 + 0.75 * 2], rtol=1e-15)
    assert model.state_labels == ("", "", "deadlock goal one")
    assert model.states.tolist() == [[0, 0], [-3, 1], [7, 1]]
    assert model.transition.toarray()[0].tolist() == [0.4, 0.6, 0]


def test_prism_files_of_a_chain_have_no_choices(tmp_path: Path) -> None:
    model = read_prism(written(tmp_path, CHAIN), 0.9)
    assert model.cost.tolist() == [2.0, 0.0, 1.0]
    assert model.initial.tolist() == [1, 0, 0]


def test_a_state_without_transitions_is_told_from_the_header(tmp_path: Path) -> None:
    with pytest.raises(bw.BellweightError, match="line 1: 9 states and 5 transitions"):
        read_prism(written(tmp_path, {"tra": "9 3 5\n0 0 0 1\n"}), 0.9)


def test_prism_marks_initial_states_among_the_transitions(tmp_path: Path) -> None:
    texts = {
        "tra": PRISM["tra"].replace("3 4 6\n", "# Transitions (MDP)\n3 4 6\n- - 1 1\n- - 2 1\n")
    }
    assert read_prism(written(tmp_path, texts), 0.9).initial.tolist() == [0, 0.5, 0.5]
    texts = {"tra": CHAIN["tra"].replace("3 4\n", "3 4\n- 2 1\n")}
    assert read_prism(written(tmp_path, texts), 0.9).initial.tolist() == [0, 0, 1]


def test_one_of_several_reward_structures_of_prism(tmp_path: Path) -> None:
    path = written(tmp_path, {"tra": PRISM["tra"]})
    (tmp_path / "m1.srew").write_text('# Reward structure "time"\n3 1\n0 1\n', encoding="utf-8")
    (tmp_path / "m2.srew").write_text('# Reward structure "fuel"\n3 1\n0 7\n', encoding="utf-8")
    (tmp_path / "m2.trew").write_text("3 4 1\n0 0 1 5\n", encoding="utf-8")
    assert read_prism(path, 0.9, reward="time").cost.tolist() == [1, 1, 0, 0]
    assert read_prism(path, 0.9, reward="fuel").cost.tolist() == [10, 7, 0, 0]
    with pytest.raises(bw.BellweightError, match="are time, fuel: name one as reward="):
        read_prism(path, 0.9)
    with pytest.raises(bw.BellweightError, match=r"reward is 'x', and .* are time, fuel"):
        read_prism(path, 0.9, reward="x")


@pytest.mark.parametrize(
    ("ending", "old", "new", "said"),
    [
        ("tra", "3 4 6", "3 5 6", "line 7: the file has 4 choices, expected 5"),
        ("tra", "1 3/5 east", "1 3/5 west", "line 3: the action is 'west', and another one"),
        ("srew", "3 2", "4 2", "line 3: 4 states, expected 3 as the transitions have"),
        ("trew", "3 4 2", "2 4 2", "line 3: 2 states, expected 3 as the transitions have"),
    ],
)
def test_prism_files_that_contradict_themselves(
    ending: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in PRISM[ending]
    texts = {**PRISM, ending: PRISM[ending].replace(old, new, 1)}
    with pytest.raises(bw.BellweightError, match=said):
        read_prism(written(tmp_path, texts), 0.9)


CSV = (
    "state,action,next,probability,reward\nlow,wait,low,0.9,1\nlow,wait,high,0.1,2\n"
    "low,go,high,1,0\nhigh,go,low,1,-1\n"
)
LETTERS = "0129.-/:[]@ \t\n\"'#x,{\0é"


def damaged(text: str, rng: np.random.Generator, n: int) -> Iterator[str]:
    """Yield a text without each line, cut off after each, and with n random changes."""
    lines = text.splitlines(keepends=True)
    for i in range(len(lines)):
        yield "".join(lines[:i] + lines[i + 1 :])
        yield "".join(lines[:i])
        yield "".join(lines[: i + 1] + lines[i:])
    for _ in range(n):
        at, letter = int(rng.integers(len(text))), LETTERS[int(rng.integers(len(LETTERS)))]
        yield text[:at] + letter + text[at + int(rng.integers(0, 2)) :]
        yield text[:at]


def only_good_errors(read: Callable[[], Any], text: str) -> int:
    """Return 1 for an error with a line, or about states as a whole; 0 for a model."""
    try:
        assert isinstance(read(), bw.TabularModel)
        return 0
    except bw.BellweightError as problem:
        said = str(problem)
    assert re.search(r"line \d+|has no action|no rows|has the columns|reward models are", said), (
        f"{text!r}: {said}"
    )
    return 1


@pytest.mark.parametrize("name", ["machine", "machine_exact", "same_names", "coin"])
def test_a_damaged_drn_file_is_a_model_or_an_error_with_its_line(name: str, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(1), tmp_path / "m.drn"
    text = (DATA / f"{name}.drn").read_text(encoding="utf-8")
    reward = "cost" if name.startswith("machine") else None
    refused = 0
    for wrong in damaged(text, rng, 150):
        path.write_text(wrong, encoding="utf-8")
        refused += only_good_errors(lambda: read_drn(path, 0.9, reward=reward), wrong)
    assert refused > 100


@pytest.mark.parametrize("ending", list(PRISM))
def test_a_damaged_prism_file_is_a_model_or_an_error_with_its_line(
    ending: str, tmp_path: Path
) -> None:
    rng, path = np.random.default_rng(2), written(tmp_path, PRISM)
    refused = 0
    for wrong in damaged(PRISM[ending], rng, 80):
        path.with_suffix(f".{ending}").write_text(wrong, encoding="utf-8")
        refused += only_good_errors(lambda: read_prism(path, 0.9), wrong)
    assert refused > 20


def test_a_damaged_csv_file_is_a_model_or_an_error_with_its_line(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "m.csv"
    refused = 0
    for wrong in damaged(CSV, rng, 150):
        path.write_text(wrong, encoding="utf-8")
        refused += only_good_errors(lambda: read_csv(path, 0.9), wrong)
    assert refused > 100
