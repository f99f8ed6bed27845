"""The public conformance checks pass what is right and name what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import event_models as em
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import bellweight as bw
from bellweight.testing import check_basis, check_model, check_policy

PROBLEMS = {
    "geometric": lambda: bw.problems.single_queue(capacity=50),
    "empty": lambda: bw.problems.single_queue(capacity=50, initial="empty"),
    "reverse": lambda: bw.problems.single_queue(capacity=50, initial="reverse"),
    "network": bw.problems.queue_network,
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_problem_we_ship_is_in_order(problem: str) -> None:
    model = PROBLEMS[problem]()
    report = check_model(model)
    assert report.subject == model.name
    assert len(report.checked) >= 2
    assert check_policy(model, bw.Uniform()).checked
    assert check_basis(model, bw.Polynomial(2)).checked


@given(model=strategies.models(), data=st.data())
def test_random_models_bases_and_policies_are_in_order(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    check_model(model)
    check_basis(model, data.draw(strategies.bases_for(model)))
    check_policy(model, data.draw(strategies.policies_for(model)))


def test_a_solved_policy_is_in_order(small_queue: bw.TabularModel) -> None:
    result = bw.solve(small_queue, bw.Polynomial(3), bw.DIA())
    assert check_policy(small_queue, result.policy).notes == ()
    softmax = bw.policies.DualSoftmax(result.support, bw.Uniform(), 0.1, 0.1)
    assert check_policy(small_queue, softmax).notes == ("chooses at random in 31 states",)
    assert check_policy(small_queue, bw.policies.DualPolicy(result.support))


def test_the_report_reads_well(two_states: bw.TabularModel) -> None:
    lines = str(check_model(two_states)).splitlines()
    assert lines[0] == "tabular model: in order"
    assert "2 states, 4 sorted pairs" in lines[1]


def test_notes_name_unreachable_states_and_a_wide_range_of_costs() -> None:
    model = bw.TabularModel.from_arrays(
        [[1e-6], [1.0], [1e6]], [np.eye(3)], 0.9, [0.0, 1.0, 0.0], state_labels=["a", "b", "c"]
    )
    notes = check_model(model).notes
    assert notes[0].startswith("2 states cannot be reached")
    assert "state 0 (a)" in notes[0]
    assert notes[1] == "costs range from 1e-06 to 1e+06"


@settings(max_examples=30)
@given(model=strategies.models())
def test_the_note_on_reachability_is_right(model: bw.TabularModel) -> None:
    links = np.zeros((model.n_states, model.n_states))
    np.maximum.at(links, model.pair_state, model.transition.toarray() > 0.0)
    steps = np.linalg.matrix_power(np.eye(model.n_states) + links, model.n_states)
    lost = int(((model.initial > 0.0) @ steps == 0.0).sum())
    noted = [note for note in check_model(model).notes if "reached" in note]
    assert (noted == []) == (lost == 0)
    assert all(note.startswith(f"{lost} states") for note in noted)


def test_a_model_changed_behind_its_back_is_found_out(two_states: bw.TabularModel) -> None:
    two_states.transition.data[2] = 0.5
    with pytest.raises(
        bw.errors.ModelError, match=r"row 2 \(state 1 \(dear\), action 0 \(stay\)\) sums"
    ):
        check_model(two_states)


def test_what_is_no_model_basis_or_policy_is_refused(two_states: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ModelError, match=r"model is dict, expected .*: build one with"):
        check_model({})
    with pytest.raises(
        bw.errors.BasisError, match=r"basis is 3, expected a basis such as Polynomial"
    ):
        check_basis(two_states, 3)
    with pytest.raises(
        bw.errors.PolicyError, match=r"policy is 'x', expected .*: use TablePolicy or Rule"
    ):
        check_policy(two_states, "x")


class Counting:
    """Feature functions that remember how often they were called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, states: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.column_stack([np.ones(len(states)), states + self.calls])


def changing(states: np.ndarray) -> np.ndarray:
    states += 1.0
    return np.ones((len(states), 1))


def centred(states: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(states)), states - states.mean()])


def growing(states: np.ndarray) -> np.ndarray:
    return np.ones((len(states), 1 if len(states) > 1 else 2))


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (
            Counting(),
            r"basis function 1 at state \[0.0\] is .* when asked again, expected the same",
        ),
        (centred, r"basis function 1 at state \[0.0\] is .* when asked for alone, .*each row"),
        (growing, r"returns shape \(31, 2\) for 31 states when asked for alone"),
        (lambda s: s, r"constant function is not in the span.*add a column of ones"),
        (lambda s: np.log(s - 1e3), r"not finite at state \[0.0\]"),
        (lambda s: np.ones(len(s)), r"has shape \(1,\), expected \(any, any\)"),
        (lambda s: np.ones((2, 1)), r"returned shape \(2, 1\) for 1 states, expected \(1, K\)"),
    ],
)
def test_bases_that_do_not_conform(fn: Any, message: str, small_queue: bw.TabularModel) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(bw.errors.BasisError, match=message):
        check_basis(small_queue, bw.Custom(fn))


def test_a_basis_that_changes_its_states_is_refused(small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.BasisError, match=r"state \[0.0\] became \[1.0\]: work on a copy"):
        check_basis(small_queue, bw.Custom(changing))
    # Solving cannot change the model either.
    with pytest.raises(ValueError, match="read-only"):
        bw.solve(small_queue, bw.Custom(changing), bw.Fixed())


def test_dependent_functions_are_noted(small_queue: bw.TabularModel) -> None:
    basis = bw.Custom(lambda s: np.hstack([np.ones_like(s), s, 2.0 * s]), ["one", "x", "twice"])
    notes = check_basis(small_queue, basis).notes
    assert notes == ("depends on earlier functions and will be dropped: twice",)


@dataclass(frozen=True, eq=False)
class Fickle(bw.policies.Policy):
    """Probabilities that change from call to call."""

    rng: Any = None

    def probabilities(self, model: bw.TabularModel) -> np.ndarray:
        table = self.rng.random((model.n_states, model.n_actions))
        table /= table.sum(axis=1, keepdims=True)
        return table[model.pair_state, model.pair_action]


@dataclass(frozen=True, eq=False)
class Contrary(bw.policies.Policy):
    """Says one thing and does another."""

    def probabilities(self, model: bw.TabularModel) -> np.ndarray:
        return bw.TablePolicy(np.zeros(model.n_states, dtype=int)).probabilities(model)

    def action(self, state: Any, rng: np.random.Generator | None = None) -> int:
        return 1 if state == 3 else 0


@dataclass(frozen=True, eq=False)
class Given(bw.policies.Policy):
    """Whatever numbers it is given."""

    numbers: Any = None

    def probabilities(self, model: bw.TabularModel) -> np.ndarray:
        return self.numbers


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Fickle(np.random.default_rng(0)), r"state 0, action 0 .*when asked again.*rng argument"),
        (Contrary(), r"action\(3\) returned 1 in state 3, expected one of \[0\]"),
        (Given(np.full(155, 0.3)), r"probabilities in state 0 sum to 1.5, expected 1"),
        (Given(np.full(150, 0.2)), r"probabilities has shape \(150,\), expected \(155,\)"),
        (Given(np.tile([-0.2, 0.6, 0.2, 0.2, 0.2], 31)), r"-0.2 to state 0, action 0"),
        (bw.TablePolicy(np.full(31, 5)), r"action 5 is not admissible in state 0: expected one of"),
        (bw.TablePolicy(np.zeros(30, dtype=int)), r"one for each of the 31 states"),
    ],
)
def test_policies_that_do_not_conform(
    policy: bw.policies.Policy, message: str, small_queue: bw.TabularModel
) -> None:
    with pytest.raises(bw.errors.PolicyError, match=message):
        check_policy(small_queue, policy)


def half_rule(state: Any) -> float:
    return 0.7 if state[0] == 2 else 0.0


def test_rules_that_return_fractions(small_queue: bw.TabularModel) -> None:
    found = r"the rule returns 0.7 in state \[2.*expected a whole number"
    for model in (small_queue, em.line()):
        with pytest.raises(bw.errors.PolicyError, match=found):
            check_policy(model, bw.Rule(half_rule))


def leaky(move: Any) -> bw.EventModel:
    def cost(state: Any) -> float:
        return state[0]

    return bw.EventModel(
        dimension=1, actions=["slow", "fast"], events=["leak"], cost=cost, move=move,
        probability=[[0.5], [0.7]], discount=0.9, initial=(9,), compiled=False,
    )  # fmt: skip


def test_moves_that_write_fractions() -> None:
    def halve(state: Any) -> None:
        state[0] = state[0] / 2

    def halve_down(state: Any) -> None:
        state[:] = np.floor(state / 2)

    found = r"in state \[\d\], action 0 \(slow\): event leak writes \d.5 into the state, expected"
    with pytest.raises(bw.errors.ModelError, match=found):
        check_model(leaky(halve))
    assert "in order" in str(check_model(leaky(halve_down)))
