"""Bad input: every message says what is wrong, where, what was found and what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import bellweight as bw
from bellweight.common import memory


def arguments() -> dict[str, Any]:
    """A right model of three states: state 2 lacks action 1."""
    return {
        "cost": np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        "transition": np.array(
            [
                [0.5, 0.5, 0.0],
                [0.0, 1.0, 0.0],
                [0.2, 0.3, 0.5],
                [0.0, 0.0, 1.0],
                [1.0, 0.0, 0.0],
            ]
        ),
        "pair_state": np.array([0, 0, 1, 1, 2]),
        "pair_action": np.array([0, 1, 0, 1, 0]),
        "discount": 0.9,
        "initial": np.array([0.5, 0.25, 0.25]),
    }


def with_entry(name: str, index: Any, value: float) -> dict[str, Any]:
    array = arguments()[name].astype(float)
    array[index] = value
    return {name: array}


def test_the_right_model_is_accepted() -> None:
    assert bw.TabularModel.from_pairs(**arguments()).n_pairs == 5


BAD_PAIRS = {
    "row sum": (
        with_entry("transition", (2, 2), 0.4),
        r"transition row 2 \(state 1, action 0\) sums to 0.9, expected 1 \(tolerance 1e-08\): "
        r"add the missing successor or renormalise",
    ),
    "row of zeros": (
        with_entry("transition", (4, 0), 0.0),
        r"transition row 4 \(state 2, action 0\) sums to 0, expected 1",
    ),
    "negative probability": (
        {
            "transition": arguments()["transition"]
            + [[0, 0, 0], [0, 0, 0], [-0.4, 0.4, 0], [0, 0, 0], [0, 0, 0]]
        },
        r"transition probability to state 0 in row 2 \(state 1, action 0\) is -0.2, expected a "
        r"number between 0 and 1: correct it",
    ),
    "NaN probability": (
        with_entry("transition", (3, 1), np.nan),
        r"transition probability to state 1 in row 3 \(state 1, action 1\) is nan",
    ),
    "infinite probability": (
        with_entry("transition", (0, 2), np.inf),
        r"transition probability to state 2 in row 0 \(state 0, action 0\) is inf",
    ),
    "NaN cost": (
        with_entry("cost", 3, np.nan),
        r"cost of state 1, action 1 is nan, expected a finite number: leave the pair out",
    ),
    "infinite cost": (
        with_entry("cost", 4, -np.inf),
        r"cost of state 2, action 0 is -inf, expected a finite number: leave the pair out",
    ),
    "cost of words": (
        {"cost": ["cheap"] * 5},
        r"cost is not an array of numbers .*: pass numbers",
    ),
    "state without action": (
        {
            "cost": np.ones(4),
            "transition": arguments()["transition"][[0, 1, 2, 3]],
            "pair_state": np.array([0, 0, 2, 2]),
            "pair_action": np.array([0, 1, 0, 1]),
        },
        r"state 1 has no action, expected at least one: add a pair",
    ),
    "discount of one": (
        {"discount": 1.0},
        r"discount is 1.0, expected a number strictly between 0 and 1: only discounted",
    ),
    "discount of zero": ({"discount": 0.0}, r"discount is 0.0, expected a number strictly"),
    "negative discount": ({"discount": -0.5}, r"discount is -0.5, expected a number strictly"),
    "NaN discount": ({"discount": np.nan}, r"discount is nan, expected a number strictly"),
    "discount of words": ({"discount": "0.9"}, r"discount is '0.9', expected a number strictly"),
    "unsorted states": (
        {"pair_state": np.array([0, 1, 0, 1, 2]), "pair_action": np.array([0, 0, 1, 1, 0])},
        r"pair 2 \(state 0, action 1\) comes after a larger pair: sort the pairs by state, then",
    ),
    "unsorted actions": (
        {"pair_action": np.array([0, 1, 1, 0, 0])},
        r"pair 3 \(state 1, action 0\) comes after a larger pair: sort the pairs",
    ),
    "duplicate pair": (
        {"pair_action": np.array([0, 1, 1, 1, 0])},
        r"pair 3 \(state 1, action 1\) repeats the pair before it: .*keep each once",
    ),
    "cost of wrong length": (
        {"cost": np.ones(4)},
        r"cost has shape \(4,\), expected \(5,\): reshape it",
    ),
    "cost as matrix": ({"cost": np.ones((5, 1))}, r"cost has shape \(5, 1\)"),
    "pair_state of wrong length": (
        {"pair_state": np.array([0, 1, 2])},
        r"pair_state has shape \(3,\), expected \(5,\): one entry per pair",
    ),
    "pair_state of fractions": (
        {"pair_state": np.array([0.0, 0.0, 1.0, 1.0, 2.0])},
        r"pair_state has type float64, expected whole numbers: convert it to int",
    ),
    "pair_state out of range": (
        {"pair_state": np.array([0, 0, 1, 1, 3])},
        r"pair_state\[4\] is 3, expected between 0 and 2: correct it",
    ),
    "negative action": (
        {"pair_action": np.array([-1, 1, 0, 1, 0])},
        r"pair_action\[0\] is -1, expected non-negative: correct it",
    ),
    "transition of three dimensions": (
        {"transition": np.ones((5, 3, 1))},
        r"transition has shape \(5, 3, 1\) .*expected a matrix of numbers with one row per pair",
    ),
    "transition of words": (
        {"transition": np.full((5, 3), "x")},
        r"transition has shape \(5, 3\) and type <U1, expected a matrix of numbers",
    ),
    "initial of wrong length": (
        {"initial": np.array([0.5, 0.5])},
        r"initial has shape \(2,\), expected \(3,\): reshape it",
    ),
    "initial sum": (
        {"initial": np.array([0.5, 0.25, 0.2])},
        r"initial sums to 0.95, expected 1 \(tolerance 1e-08\): divide it by its sum",
    ),
    "negative initial": (
        {"initial": np.array([0.5, -0.25, 0.75])},
        r"initial is -0.25 at state 1, expected no negative entry: set it to zero or correct it",
    ),
    "NaN initial": (
        {"initial": np.array([0.5, 0.5, np.nan])},
        r"initial\[2\] is nan, expected a finite number: replace it",
    ),
    "empty model": (
        {
            "cost": [],
            "transition": np.zeros((0, 0)),
            "pair_state": np.zeros(0, dtype=int),
            "pair_action": np.zeros(0, dtype=int),
            "initial": [],
        },
        r"the model is empty: transition has shape \(0, 0\), expected at least one state",
    ),
    "sense": ({"sense": "maximise"}, r"sense is 'maximise', expected one of 'min', 'max'"),
    "too few state labels": (
        {"state_labels": ["a", "b"]},
        r"state_labels has 2 entries, expected 3: one label for each",
    ),
    "too many state labels": (
        {"state_labels": list("abcd")},
        r"state_labels has 4 entries, expected 3: one label for each",
    ),
    "too few action labels": (
        {"action_labels": ["go"]},
        r"action_labels has 1 entries, expected 2: one label for each",
    ),
    "an action label twice": (
        {"action_labels": ["go", "go"]},
        r"action_labels\[1\] is 'go', as action_labels\[0\] is: give each a label of its own",
    ),
    "state vectors of wrong length": (
        {"state_vectors": np.ones((2, 2))},
        r"state_vectors has shape \(2, 2\), expected \(3, any\): reshape it",
    ),
    "NaN in state vectors": (
        {"state_vectors": np.array([0.0, np.nan, 1.0])},
        r"state_vectors\[1, 0\] is nan, expected a finite number: replace it",
    ),
}


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_a_bad_model_is_refused(case: str) -> None:
    change, message = BAD_PAIRS[case]
    with pytest.raises(bw.BellweightError, match=message) as caught:
        bw.TabularModel.from_pairs(**{**arguments(), **change})
    assert isinstance(caught.value, bw.errors.ModelError | bw.errors.ArgumentError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("case", ["row sum", "negative probability", "NaN probability"])
def test_a_bad_sparse_transition_is_refused_like_a_dense_one(case: str) -> None:
    change, message = BAD_PAIRS[case]
    for form in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array, sparse.lil_matrix):
        wrong = {**arguments(), "transition": form(change["transition"])}
        with pytest.raises(bw.errors.ModelError, match=message):
            bw.TabularModel.from_pairs(**wrong)


def test_messages_use_the_users_labels() -> None:
    wrong = {**arguments(), **with_entry("transition", (2, 2), 0.4)}
    with pytest.raises(
        bw.errors.ModelError, match=r"row 2 \(state 1 \(busy\), action 0 \(wait\)\)"
    ):
        bw.TabularModel.from_pairs(
            **wrong, state_labels=["idle", "busy", "down"], action_labels=["wait", "go"]
        )


def test_rounding_is_tolerated_and_nothing_is_changed() -> None:
    given = arguments()
    given["transition"] = given["transition"] + 0.0
    given["transition"][0, 0] += 1e-12
    given["initial"] = given["initial"] * (1.0 + 1e-12)
    model = bw.TabularModel.from_pairs(**given)
    assert model.transition.toarray()[0, 0] == 0.5 + 1e-12
    assert np.array_equal(model.initial, given["initial"])


def test_inputs_are_copied_and_models_are_read_only() -> None:
    given = arguments()
    model = bw.TabularModel.from_pairs(**given)
    given["cost"][0] = 99.0
    given["transition"][0, 0] = 99.0
    assert model.cost[0] == 1.0
    assert model.transition.toarray()[0, 0] == 0.5
    for array in (model.cost, model.initial, model.pair_state, model.pair_action, model.states):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        model.discount = 0.5


BAD_ARRAYS = {
    "cost of one dimension": (
        {"cost": [1.0, 2.0]},
        r"cost has shape \(2,\), expected \(any, any\)",
    ),
    "ragged cost": ({"cost": [[1.0], [1.0, 2.0]]}, r"cost is not an array of numbers"),
    "empty": ({"cost": np.zeros((0, 2))}, r"the model is empty: cost has shape \(0, 2\)"),
    "too few matrices": (
        {"transition": np.array([np.eye(2)])},
        r"transition has 1 matrices, expected one per action \(2\)",
    ),
    "no matrices": ({"transition": None}, r"transition is NoneType, expected an array"),
    "one sparse matrix": (
        {"transition": sparse.eye_array(2, format="csr")},
        r"transition is csr_array, expected an array .* list of sparse matrices",
    ),
    "matrix of wrong shape": (
        {"transition": [np.eye(2), np.eye(3)]},
        r"transition\[1\] has shape \(3, 3\), expected \(2, 2\)",
    ),
    "row sum": (
        {"transition": [np.eye(2), [[0.5, 0.5], [0.5, 0.4]]]},
        r"transition row 3 \(state 1, action 1\) sums to 0.9",
    ),
    "NaN cost": (
        {"cost": [[1.0, 2.0], [np.nan, 1.0]]},
        r"cost of state 1, action 0 is nan, expected a finite number",
    ),
    "admissible of wrong shape": (
        {"admissible": [True, False]},
        r"admissible has shape \(2,\) and type bool, expected booleans of shape \(2, 2\)",
    ),
    "admissible of numbers": (
        {"admissible": [[1, 0], [1, 1]]},
        r"admissible has shape \(2, 2\) and type int64, expected booleans",
    ),
    "nothing admissible": (
        {"admissible": [[True, True], [False, False]]},
        r"state 1 has no admissible action, expected at least one",
    ),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_refused(case: str) -> None:
    change, message = BAD_ARRAYS[case]
    right = {
        "cost": [[1.0, 2.0], [3.0, 4.0]],
        "transition": [np.eye(2), np.eye(2)[::-1]],
        "discount": 0.9,
        "initial": [1.0, 0.0],
    }
    assert bw.TabularModel.from_arrays(**right).n_pairs == 4
    with pytest.raises(bw.errors.ModelError, match=message):
        bw.TabularModel.from_arrays(**{**right, **change})


BAD_WEIGHTS = {
    "length": ([0.5, 0.5], r"has shape \(2,\), expected \(31,\): reshape it"),
    "negative": (
        np.eye(31)[0] + 0.1 * (np.eye(31)[3] - np.eye(31)[7]),
        r"is -0.1 at state 7, expected no negative entry: set it to zero",
    ),
    "sum": (np.full(31, 0.1), r"sums to 3.1, expected 1 \(tolerance 1e-08\): divide it by its sum"),
    "NaN": (np.full(31, np.nan), r"\[0\] is nan, expected a finite number: replace it"),
    "name": ("unifrom", r"is 'unifrom', expected one of 'initial', 'uniform'"),
    "words": (["a"] * 31, r"is not an array of numbers .*: pass numbers"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@pytest.mark.parametrize("role", ["weights", "start"])
def test_bad_weights_are_refused(case: str, role: str, small_queue: bw.TabularModel) -> None:
    weights, message = BAD_WEIGHTS[case]
    method = bw.Fixed(weights) if role == "weights" else bw.DIA(start=weights)
    with pytest.raises(bw.errors.ArgumentError, match=rf"^{role}.*{message}"):
        bw.solve(small_queue, bw.Polynomial(1), method)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bw.PIA(step_size=0.0), r"step_size is 0.0, expected a number above 0 and at most"),
        (lambda: bw.PIA(step_size=1.5), r"step_size is 1.5, expected a number above 0 and at most"),
        (lambda: bw.DIA(temperature=0.0), r"temperature is 0.0, expected a number above 0"),
        (lambda: bw.DIA(temperature="hot"), r"temperature is 'hot', expected a positive number"),
        (lambda: bw.DIA(smoothing_mass=-1.0), r"smoothing_mass is -1.0, expected a number above"),
        (lambda: bw.DIA(target="uniform"), r"target is 'uniform', expected a policy such as Unif"),
        (lambda: bw.Stop(tol=0.0), r"tol is 0.0, expected a number above 0"),
        (lambda: bw.Stop(tol=float("nan")), r"tol is nan, expected a number above 0"),
        (lambda: bw.Stop(max_iterations=0), r"max_iterations is 0, expected a whole number of at"),
        (lambda: bw.Stop(max_iterations=2.5), r"max_iterations is 2.5, expected a whole number"),
        (lambda: bw.Stop(max_seconds=-1), r"max_seconds is -1, expected a number above 0"),
        (lambda: bw.Polynomial(-1), r"degree is -1, expected a whole number of at least 0"),
        (lambda: bw.Polynomial(2.0), r"degree is 2.0, expected a whole number of at least 0"),
        (lambda: bw.problems.single_queue(capacity=0), r"capacity is 0, expected a whole number"),
        (lambda: bw.problems.single_queue(arrival=1.5), r"arrival is 1.5, expected a number above"),
        (lambda: bw.problems.single_queue(decay=0.0), r"decay is 0.0, expected a number above 0"),
        (
            lambda: bw.problems.single_queue(initial="full"),
            r"initial is 'full', expected one of 'geometric', 'empty', 'reverse'",
        ),
    ],
)
def test_bad_settings_are_refused_when_they_are_made(build: Any, message: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=message):
        build()


def test_bad_service_rates_are_refused() -> None:
    with pytest.raises(
        bw.errors.ModelError, match=r"services\[1\] is 0.9, expected between 0 and .*0.8"
    ):
        bw.problems.single_queue(services=[0.1, 0.9])
    with pytest.raises(bw.errors.ModelError, match=r"services is empty, expected at least one"):
        bw.problems.single_queue(services=[])


def test_what_is_no_model_basis_or_method_is_refused(small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ModelError, match=r"model is str, expected a TabularModel"):
        bw.solve("queue", bw.Polynomial(1), bw.Fixed())
    with pytest.raises(
        bw.errors.ArgumentError, match=r"basis is 3, expected a basis such as Polynomial"
    ):
        bw.solve(small_queue, 3, bw.Fixed())
    with pytest.raises(
        bw.errors.ArgumentError, match=r"method is 'dia', expected a method such as DIA"
    ):
        bw.solve(small_queue, bw.Polynomial(1), "dia")
    with pytest.raises(
        bw.errors.PolicyError, match=r"policy is 'any', expected a bellweight policy"
    ):
        bw.solve(small_queue, bw.Polynomial(1), bw.FromPolicy("any"))
    with pytest.raises(
        bw.errors.ArgumentError, match=r"seed is -1, expected a whole number of at least"
    ):
        bw.solve(small_queue, bw.Polynomial(1), bw.Fixed(), seed=-1)
    with pytest.raises(bw.errors.ArgumentError, match=r"moments has shape \(3,\), expected \(2,\)"):
        bw.solve(small_queue, bw.Polynomial(1), bw.Fixed(moments=[1.0, 2.0, 3.0]))


def test_an_event_model_needs_sampled_rows_and_a_table_does_not_take_them(
    small_queue: bw.TabularModel,
) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=r"rows is SampledRows.*, expected AllRows"):
        bw.solve(small_queue, bw.Polynomial(1), bw.Fixed(), rows=bw.SampledRows([[0]]))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            bw.TablePolicy([0, 7]),
            r"action 7 is not admissible in state 1 \(dear\): expected one of",
        ),
        (bw.TablePolicy([0]), r"expected one for each of the 2 states"),
        (bw.TablePolicy([[0.5, 0.5]]), r"policy table has shape \(1, 2\), expected \(2, 2\)"),
        (bw.TablePolicy([[0.5, 0.5], [0.5, 0.4]]), r"in state 1 \(dear\) sum to 0.9, expected 1"),
        (
            bw.TablePolicy([[1.5, -0.5], [1.0, 0.0]]),
            r"-0.5 to state 0 \(cheap\), action 1 \(move\)",
        ),
        (bw.TablePolicy([[1.0, np.nan], [1.0, 0.0]]), r"policy table\[0, 1\] is nan"),
    ],
)
def test_bad_policies_are_refused(
    policy: bw.policies.Policy, message: str, two_states: bw.TabularModel
) -> None:
    with pytest.raises(bw.errors.PolicyError, match=message):
        bw.exact.policy_value(two_states, policy)


def test_probability_on_an_inadmissible_action_is_refused() -> None:
    model = bw.TabularModel.from_pairs(**arguments())
    table = np.full((3, 2), 0.5)
    with pytest.raises(
        bw.errors.PolicyError, match=r"inadmissible action in state 2: set it to zero"
    ):
        bw.exact.policy_value(model, bw.TablePolicy(table))


def test_a_dual_of_another_model_is_refused(
    small_queue: bw.TabularModel, two_states: bw.TabularModel
) -> None:
    support = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed()).support
    with pytest.raises(
        bw.errors.PolicyError, match=r"pairs that the model lacks: use its own model"
    ):
        bw.policies.DualPolicy(support).probabilities(two_states)


def test_entries_in_columns_that_no_state_has_are_refused() -> None:
    """SciPy does not look; compiled loops would read beyond the end of an array."""
    rows = sparse.csr_array(([1.0], [5], [0, 1]), shape=(1, 1))
    with pytest.raises(bw.BellweightError, match="columns 5 to 5, expected 0 to 0: one column per"):
        bw.TabularModel.from_pairs([1.0], rows, [0], [0], 0.9, [1.0])


@pytest.mark.parametrize("far", [2**31, 2**32, -(2**32)])
def test_columns_beyond_32_bits_do_not_come_back_as_others(far: int) -> None:
    matrix = sparse.csr_array(np.full((2, 2), 0.5))
    matrix.indices = matrix.indices.astype(np.int64) + np.array([0, far, 0, 0])
    matrix.indptr = matrix.indptr.astype(np.int64)
    with pytest.raises(bw.errors.ModelError, match="one column per state"):
        bw.TabularModel.from_arrays([[1.0], [2.0]], [matrix], 0.9, [0.5, 0.5])


def test_arrays_and_labels_have_the_same_actions() -> None:
    """A label too many is an action that somebody forgot to give a cost and a matrix."""
    with pytest.raises(bw.errors.ModelError, match="action_labels has 2 entries, expected 1"):
        bw.TabularModel.from_arrays([[1.0]], [[[1.0]]], 0.9, [1.0], action_labels=["wait", "go"])


def test_a_model_larger_than_memory_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        bw.BellweightError, match=r"100,000,000,001 states would take 1.1e\+05 GB, and"
    ):
        bw.problems.single_queue(capacity=100_000_000_000)
    queue = bw.problems.single_queue(capacity=30)
    monkeypatch.setattr("bellweight.common.memory.free", lambda: 1_000.0)
    with pytest.raises(bw.BellweightError, match=r"copy of transition with .* entries would take"):
        replace(queue)
    matrices = [sparse.eye_array(100, format="csr")] * 2
    with pytest.raises(
        bw.BellweightError, match=r"a table with 200 transitions would take .*: put"
    ):
        bw.TabularModel.from_arrays(np.zeros((100, 2)), matrices, 0.9, np.full(100, 0.01))


def test_free_memory_is_what_the_system_and_a_container_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(name: str, text: str) -> None:
        (tmp_path / name).write_text(text, encoding="ascii")

    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert memory.free() == float("inf")
    told("meminfo", "MemAvailable: 3000 kB\nSwapFree: 1000 kB\nHugePages_Total: 0\n")
    assert memory.free() == 4000 * 1024
    told("memory.max", "max\n")
    told("memory.current", "1500000\n")
    told("memory.stat", "anon 1000000\nfile 500000\n")
    assert memory.free() == 4000 * 1024
    told("memory.max", "2000000\n")
    assert memory.free() == 1_000_000


def test_rows_that_sum_to_more_than_the_discount_takes_are_refused() -> None:
    given = {**arguments(), "discount": 1.0 - 1e-9}
    given["transition"] = given["transition"] * (1.0 + 5e-9)
    with pytest.raises(bw.errors.ModelError, match="together discount nothing"):
        bw.TabularModel.from_pairs(**given)


@pytest.mark.parametrize("value", [np.complex128(0.5), True, "0.5", None])
def test_what_is_no_real_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=r"^temperature is .*positive number"):
        bw.DIA(temperature=value)
    with pytest.raises(bw.errors.ModelError, match=r"^discount is .*between 0 and 1"):
        bw.problems.single_queue(capacity=3, discount=value)
