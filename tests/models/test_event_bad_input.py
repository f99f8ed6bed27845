"""Bad input to event models: every error says what was wrong, in which state, with which action."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.models.initial import PointMass

STATES = np.arange(10)[:, None]


def cost(state: Any) -> float:
    return 1.0 * state[0]


def chance(state: Any, action: Any, event: Any) -> float:
    return 0.375 if event == 0 else 0.25 + 0.25 * action


def step(state: Any, event: Any) -> None:
    if event == 0:
        state[0] += 1
    elif state[0] > 0:
        state[0] -= 1


def build(**options: Any) -> bw.EventModel:
    """An unbounded queue that starts empty, served slowly or fast, as plain Python."""
    given: dict[str, Any] = {
        "dimension": 1, "actions": ["slow", "fast"], "events": ["up", "down"], "cost": cost,
        "probability": chance, "move": step, "discount": 0.9, "compiled": False,
    }  # fmt: skip
    return bw.EventModel(**{**given, **options})


def greedy(slope: float = 1.0) -> bw.Greedy:
    return bw.Greedy(bw.Polynomial(2), np.array([0.0, slope, 0.0]))


def too_likely(state: Any, action: Any, event: Any) -> float:
    return 0.375 if event == 0 or state[0] < 3 or action == 0 else 0.75


def not_a_chance(state: Any, action: Any, event: Any) -> float:
    return np.nan if state[0] == 3 and action == 1 and event == 1 else 0.375


def negative_chance(state: Any, action: Any, event: Any) -> float:
    return -0.125 if state[0] == 3 and action == 1 and event == 1 else 0.375


def through_the_floor(state: Any, action: Any, event: Any) -> None:
    if event == 0:
        state[0] += 1
    elif state[0] > 0:
        state[0] -= 4 if state[0] == 3 and action == 1 else 1


def through_the_floor_for_all(state: Any, event: Any) -> None:
    if event == 0:
        state[0] += 1
    elif state[0] > 0:
        state[0] -= 4 if state[0] == 3 else 1


def priceless(state: Any, action: Any) -> float:
    return np.nan if state[0] == 3 and action == 1 else 1.0 * state[0]


def boundless(state: Any, action: Any) -> float:
    return np.inf if state[0] == 3 and action == 1 else 1.0 * state[0]


def never_open(state: Any, action: Any) -> bool:
    return state[0] != 3


def beyond(state: Any, event: Any) -> None:
    if state[0] == 3:
        state[1] += 1
    state[0] += 1 - event if state[0] == 0 else 1 - 2 * event


def divided(state: Any) -> float:
    return 1.0 / (3 - int(state[0]))


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"probability": too_likely}, r"action 1 \(fast\).*sum to more than 1, found the sum 1.125:"),
    ({"probability": not_a_chance}, r"action 1 \(fast\).* found nan for event 1: correct"),
    ({"probability": negative_chance}, r"action 1 \(fast\).* found -0.125 for event 1: correct"),
    ({"move": through_the_floor}, r"action 1 \(fast\).*leads to a negative state"),
    ({"cost": priceless}, r"action 1 \(fast\).*cost is not finite"),
    ({"cost": boundless}, r"action 1 \(fast\).*cost is not finite"),
    ({"admissible": never_open}, "no action is admissible"),
    ({"move": beyond}, "fails .IndexError"),
    ({"cost": divided}, "fails .ZeroDivisionError"),
]
NAMES = [
    "more than one", "not a number", "negative", "floor", "NaN cost", "infinite cost", "no action",
    "dimension", "division",
]  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=NAMES)
def test_faults_that_only_a_simulation_meets(fault: dict[str, Any], message: str) -> None:
    model = build(**fault)  # nothing is wrong where episodes begin
    with pytest.raises(bw.errors.ModelError, match=r"^in state \[3\].*" + message):
        bw.evaluate(model, bw.Uniform(), 200, horizon=40, seed=1)


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=NAMES)
def test_faults_that_a_greedy_policy_meets(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=r"^in state \[3\].*" + message):
        bw.evaluate(build(**fault), greedy(), 200, horizon=40, seed=1)
    policy = greedy().on(build(**fault))
    if "more than 1" not in message:  # a matter of the event that comes after the action
        with pytest.raises(bw.errors.ModelError, match=r"^in state \[3\].*" + message):
            policy.action([3])
    assert policy.action([2]) in (0, 1)


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=NAMES)
def test_faults_in_sampled_rows(fault: dict[str, Any], message: str) -> None:
    rows = bw.SampledRows(STATES)
    with pytest.raises(bw.errors.ModelError, match=r"^in state \[3\].*" + message):
        bw.solve(build(**fault), bw.Affine(), bw.Fixed(), rows=rows)


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=NAMES)
def test_faults_where_episodes_begin_are_found_at_once(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=r"^in state \[3\].*" + message):
        build(**fault, initial=(3,))


@pytest.mark.parametrize(("fault", "message"), FAULTS, ids=NAMES)
def test_faults_in_the_enumerated_model(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=r"^in state \[3\].*" + message):
        build(**fault, upper=8).to_tabular()


def test_a_fault_of_a_move_that_all_actions_share() -> None:
    table = [[0.375, 0.25], [0.375, 0.5]]
    for probability in (table, chance):
        model = build(move=through_the_floor_for_all, probability=probability)
        for policy in (bw.Uniform(), greedy()):
            with pytest.raises(
                bw.errors.ModelError, match=r"in state \[3\], action \d .*negative state"
            ):
                bw.evaluate(model, policy, 200, horizon=40, seed=1)


def rule_of(action: int) -> Callable[..., int]:
    def rule(state: Any) -> int:
        return action if state[0] == 2 else 0

    return rule


def open_but_not_there(state: Any, action: Any) -> bool:
    return action == 0 or state[0] != 2


@pytest.mark.parametrize(
    ("action", "name"),
    [(1, r"action 1 \(fast\)"), (2, r"action 2 \(there are 2"), (-1, "action -1 ")],
)
def test_an_inadmissible_action_of_a_rule(action: int, name: str) -> None:
    model = build(admissible=open_but_not_there)
    policy = bw.Rule(rule_of(action))
    message = rf"in state \[2\], {name}.*not admissible: change the policy"
    with pytest.raises(bw.errors.ModelError, match=message):
        bw.evaluate(model, policy, 100, horizon=40, seed=1)
    with pytest.raises(bw.errors.ModelError, match=message):
        policy.on(model).action([2])
    with pytest.raises(bw.errors.ModelError, match=message):
        bw.sample_states(model, 5, policy)
    assert policy.on(model).action([1]) == 0


def test_a_rule_with_too_few_parameters() -> None:
    def rule(state: Any, parameters: Any) -> int:
        return int(parameters[state[0]])

    assert bw.Rule(rule, [1, 0]).on(build()).action([0]) == 1
    with pytest.raises(bw.errors.ModelError, match=r"in state \[2\].*IndexError"):
        bw.Rule(rule, [1, 0]).on(build()).action([2])


def test_faults_in_compiled_loops() -> None:
    def rule(state: Any, parameters: Any) -> int:
        return int(parameters[state[0] + state[1]])

    model = em.line()
    message = r"in state \[\d, 0\], action 2 \(second\): the policy's action is not admissible"
    with pytest.raises(bw.errors.ModelError, match=message):
        bw.evaluate(model, bw.Rule(rule, np.full(100, 2)), 50, horizon=40, seed=1)
    with pytest.raises(bw.errors.ModelError, match=r"in state \[\d, 0\], action 7 \(there are 3"):
        bw.evaluate(model, bw.Rule(rule, [0, 7, 7, 7]), 50, horizon=40, seed=1)
    # Beyond the parameters there is an error, not whatever lies in memory there.
    with pytest.raises(bw.errors.ModelError, match=r"in state \[\d, \d\].*IndexError") as caught:
        bw.evaluate(model, bw.Rule(rule, np.zeros(6)), 50, horizon=400, seed=1)
    assert sum(int(text) for text in re.findall(r"\d", str(caught.value))[:2]) >= 6


def initial_outside(state: Any, u: Any) -> None:
    state[0] = -1


def initial_beyond(state: Any, u: Any) -> None:
    state[3] = 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probability": [[0.5, 0.6], [0.1, 0.1]]}, r"action 0 \(slow\).*sum to 1.1"),
        ({"probability": [[0.5, 0.5], [-0.1, 0.1]]}, r"action 1 \(fast\) are negative"),
        ({"probability": [[0.5, 0.5]]}, r"probability has shape \(1, 2\), expected \(2, 2\)"),
        ({"probability": [[0.5, np.nan], [0.1, 0.1]]}, r"probability\[0, 1\] is nan"),
        ({"move": [[1, 0], [-1, 0]]}, r"move has shape \(2, 2\), expected \(2, 1\)"),
        ({"move": [[1], [-1], [0]]}, r"move has shape \(3, 1\), expected \(2, 1\)"),
        ({"move": [[0.5], [-1]]}, "jumps that are not whole numbers"),
        ({"initial": (0, 0)}, r"initial has shape \(1, 2\), expected \(n, 1\)"),
        ({"initial": PointMass((0, 0))}, r"initial has shape \(1, 2\), expected \(n, 1\)"),
        ({"initial": (-1,)}, r"initial\[0\] is \[-1\]"),
        ({"initial": (7,), "upper": 5}, r"initial\[0\] is \[7\].* lies outside \[0, 5\]"),
        ({"initial": initial_outside}, r"initial gives the state \[-1\], outside"),
        ({"initial": initial_beyond}, "IndexError"),
        ({"upper": -1}, "upper contains -1"),
        ({"upper": 2.5}, "upper contains 2.5"),
        ({"upper": np.nan}, "upper contains nan"),
        ({"upper": [1, 2]}, "upper has 2 entries, expected 1"),
        ({"actions": []}, r"actions is \[\], expected how many, or a list of labels"),
        ({"events": "up"}, "events is 'up', expected how many, or a list of labels"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"cost_growth": np.inf}, "cost_growth is inf"),
    ],
)
def test_data_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=message):
        build(**options)


def test_dimension_is_a_count() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="dimension is 0"):
        build(dimension=0)


def test_what_cannot_be_enumerated() -> None:
    with pytest.raises(bw.errors.ModelError, match="coordinate 0 has no upper bound: set upper="):
        build().to_tabular()
    with pytest.raises(
        bw.errors.ModelError, match=r"10,000,001 states, expected at most 5,000,000"
    ):
        build(upper=10_000_000).to_tabular()


def test_episodes_and_horizon() -> None:
    for episodes in (0, 1, -3, 2.5):
        with pytest.raises(bw.errors.ArgumentError, match=f"episodes is {episodes}"):
            bw.evaluate(build(), bw.Uniform(), episodes)  # type: ignore[arg-type]
        with pytest.raises(bw.errors.ArgumentError, match=f"episodes is {episodes}"):
            bw.Simulation(episodes=episodes)  # type: ignore[arg-type]
    with pytest.raises(bw.errors.ArgumentError, match="horizon is 0"):
        bw.evaluate(build(), bw.Uniform(), 10, horizon=0)
    with pytest.raises(bw.errors.ArgumentError, match="horizon is 0"):
        bw.Simulation(horizon=0)
    rows = bw.SampledRows(STATES)
    with pytest.raises(
        bw.errors.ArgumentError, match=r"horizon 1 leaves out 90 % .*use at least 66"
    ):
        bw.solve(build(), bw.Affine(), bw.DIA(), rows=rows, simulation=bw.Simulation(horizon=1))


def test_an_event_model_has_no_list_of_all_rows() -> None:
    with pytest.raises(
        bw.errors.ArgumentError, match=r"SampledRows\(sample_states\(model, 5000\)\)"
    ):
        bw.solve(build(), bw.Affine(), bw.Fixed(), rows=bw.program.AllRows())


def test_without_rows_an_event_model_says_which_states_were_taken() -> None:
    result = bw.solve(build(), bw.Affine(), bw.Fixed(), judge=False)
    assert result.status is bw.Status.CONVERGED
    assert "sampled rows" in result.model_size
    assert "acting at random" in str(result)


def test_a_tabular_model_needs_all_rows() -> None:
    tabular = build(upper=5).to_tabular()
    with pytest.raises(bw.errors.ArgumentError, match=r"expected AllRows.* for a tabular model"):
        bw.solve(tabular, bw.Affine(), bw.Fixed(), rows=bw.SampledRows(STATES))


@pytest.mark.parametrize("basis", [bw.Custom(lambda x: np.ones((len(x), 1))), bw.Indicator()])
def test_a_basis_that_cannot_be_compiled(basis: bw.bases.Basis) -> None:
    name = type(basis).__name__
    with pytest.raises(bw.errors.BasisError, match=rf"{name}.* cannot run .*to_tabular\(\)"):
        bw.solve(build(), basis, bw.Fixed(), rows=bw.SampledRows(STATES))


def test_policies_that_are_none() -> None:
    with pytest.raises(bw.errors.PolicyError, match=r"TablePolicy is a policy for .*Rule"):
        bw.evaluate(build(), bw.TablePolicy([0, 1]), 10)
    with pytest.raises(
        bw.errors.PolicyError, match="expected a bellweight policy: use TablePolicy or Rule"
    ):
        bw.evaluate(build(), rule_of(0), 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [[1, 2], [-1], [0.5], "a"])
def test_states_that_a_policy_cannot_act_in(state: Any) -> None:
    with pytest.raises(bw.BellweightError, match="state"):
        greedy().on(build()).action(state)


def test_the_number_of_sampled_states() -> None:
    for n in (0, -1, 2.5):
        with pytest.raises(bw.errors.ArgumentError, match=f"n is {n}"):
            bw.sample_states(build(), n)  # type: ignore[arg-type]


def test_laws_that_are_too_long_to_write_out() -> None:
    found = r"Geometric\(decay=0.99999\) spreads over 9.2e\+06 values.*lower the decay, or"
    with pytest.raises(bw.errors.ModelError, match=found):
        build(initial=bw.models.Geometric(0.99999)).initial_moments([(), (0,)])
    # A bound keeps it short, and a short law needs no entry for each value up to the bound.
    for decay, upper, mean in ((0.99999, 2, 1.0), (0.5, 10**12, 1.0)):
        moments = build(initial=bw.models.Geometric(decay), upper=upper).initial_moments([(), (0,)])
        assert moments == pytest.approx([1.0, mean], rel=1e-4)
