"""`action` takes one state and `actions` several; neither takes one for the other."""

from __future__ import annotations

from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw

SEVERAL = r"policy\.action takes one state, got a list of \d+: use policy\.actions\(states\)"
NO_STATE = r"lies outside|has a fraction|is NaN|not an array of numbers"


def tall(state: Any) -> int:
    return 1 if state[0] > 2 else 0


def tabular_policies(model: bw.TabularModel) -> dict[str, bw.policies.Policy]:
    greedy = bw.solve(model, bw.Polynomial(2), bw.Fixed()).policy
    dual = greedy.dual
    assert dual is not None
    return {
        "greedy": greedy,
        "table": bw.TablePolicy(np.arange(model.n_states) % 2),
        "bound table": bw.TablePolicy(np.arange(model.n_states) % 2).on(model),
        "chances": bw.TablePolicy(np.full((model.n_states, model.n_actions), 1.0 / 5.0)).on(model),
        "rule": bw.Rule(tall).on(model),
        "uniform": bw.Uniform().on(model),
        "dual": bw.policies.DualPolicy(dual).on(model),
        "softmax": bw.policies.DualSoftmax(dual, bw.Uniform(), 0.1, 0.1).on(model),
    }


def test_tabular_policies(small_queue: bw.TabularModel) -> None:
    for name, policy in tabular_policies(small_queue).items():
        some = [0, 5, 30, 5]
        one_by_one = np.random.default_rng(1)
        expected = [policy.action(x, one_by_one) for x in some]
        found = policy.actions(some, np.random.default_rng(1))
        assert found.tolist() == expected, name
        assert found.dtype == np.int64
        assert policy.actions(np.array(some), np.random.default_rng(1)).tolist() == expected
        assert policy.actions([], np.random.default_rng(1)).shape == (0,)
        assert policy.action(np.int32(5), np.random.default_rng(1)) in range(5)
        assert policy.action(np.array(5), np.random.default_rng(1)) in range(5)
        for several in ([1, 2], (3, 4), np.array([5, 6]), [5], []):
            with pytest.raises(bw.errors.PolicyError, match=SEVERAL):
                policy.action(several)
        for wrong in (3, [0.5, 1.0], [[1, 2]], ["a"], [True, False], [np.nan], [[1], [2, 3]]):
            with pytest.raises(bw.errors.PolicyError, match="states"):
                policy.actions(wrong)
        for outside in ([0, 31], [-1, 0]):
            with pytest.raises(bw.BellweightError, match="does not exist: expected 0 to 30"):
                policy.actions(outside, np.random.default_rng(1))


def event_policies(model: bw.EventModel) -> dict[str, bw.policies.Policy]:
    rows = bw.SampledRows(bw.sample_states(model, 50, seed=1))
    greedy = bw.solve(model, bw.Polynomial(1), bw.Fixed(), rows=rows).policy
    dual = greedy.dual
    assert dual is not None
    return {
        "greedy": greedy,
        "rule": bw.Rule(tall).on(model),
        "uniform": bw.Uniform().on(model),
        "softmax": bw.policies.DualSoftmax(dual, bw.Uniform(), 0.1, 0.1).on(model),
    }


@pytest.mark.parametrize("policy", ["greedy", "rule", "uniform", "softmax"])
def test_event_policies(policy: str) -> None:
    model = em.network()
    d = model.dimension
    acting = event_policies(model)[policy]
    states = np.arange(3 * d).reshape(3, d) % 3
    one_by_one = np.random.default_rng(1)
    expected = [acting.action(state, one_by_one) for state in states]
    assert acting.actions(states, np.random.default_rng(1)).tolist() == expected
    assert acting.actions(states.tolist(), np.random.default_rng(1)).tolist() == expected
    assert acting.action(states[:1], np.random.default_rng(1)) == expected[0]
    assert acting.actions(np.zeros((0, d)), np.random.default_rng(1)).shape == (0,)
    for several in (states, states.tolist(), np.zeros((0, d))):
        with pytest.raises(bw.errors.PolicyError, match=SEVERAL):
            acting.action(several, np.random.default_rng(1))
    for wrong in (3, [0] * (d + 1), [[0] * (d + 1)], [[[0] * d]], [[0], [0, 1]]):
        with pytest.raises(bw.errors.PolicyError, match=r"state (has shape|is)"):
            acting.action(wrong, np.random.default_rng(1))
    for wrong in (3, [0] * d, [[0] * (d + 1)], [[[0] * d]], [[0], [0, 1]]):
        with pytest.raises(bw.errors.PolicyError, match=r"states (has shape|is)"):
            acting.actions(wrong, np.random.default_rng(1))
    for entry in (np.nan, np.inf, 0.5, -1, "a", None):
        for call, given in ((acting.action, [entry] * d), (acting.actions, [[entry] * d])):
            with pytest.raises(bw.errors.ModelError, match=NO_STATE):
                call(given, np.random.default_rng(1))


def counting(**options: Any) -> bw.EventModel:
    def cost(state: Any) -> float:
        return 1.0 * state[0]

    return bw.EventModel(
        dimension=1, actions=2, events=2, cost=cost, probability=[[0.3, 0.2], [0.3, 0.4]],
        move=[[1], [-1]], discount=0.8, upper=9, compiled=False, **options,
    )  # fmt: skip


def test_one_dimension_takes_plain_numbers() -> None:
    policy = bw.Rule(tall).on(counting())
    assert [policy.action(2), policy.action([3]), policy.action(np.int64(3))] == [0, 1, 1]
    assert policy.action([[3]]) == 1
    assert policy.actions([2, 3]).tolist() == policy.actions([[2], [3]]).tolist() == [0, 1]
    with pytest.raises(bw.errors.PolicyError, match=SEVERAL):
        policy.action([2, 3])
    for outside in (10, -1, 2.5, np.nan):
        with pytest.raises(bw.errors.ModelError, match=NO_STATE):
            policy.action(outside)


def stock(**changes: Any) -> bw.LinearModel:
    data: dict[str, Any] = {
        "state_cost": [1.0, 2.0], "action_cost": [-3.0, 1.0], "next_state": np.eye(2),
        "next_action": -np.eye(2), "noise": bw.models.Independent([bw.Law.uniform(0, 1)] * 2),
        "initial": bw.models.Independent([bw.Law.uniform(0, 2)] * 2),
        "discount": 0.8, "state_upper": 5.0,
        "state_rows": -np.eye(2), "action_rows": np.eye(2), "row_upper": 0.0,
    }  # fmt: skip
    return bw.LinearModel(**{**data, **changes})


def keep_none(states: Any) -> Any:
    return states.copy()


@pytest.mark.parametrize(
    "policy",
    [bw.Rule(keep_none), bw.Uniform(), bw.Greedy(bw.Affine(), np.array([0.0, 1.0, 1.0]))],
    ids=["rule", "uniform", "greedy"],
)
def test_linear_policies(policy: bw.policies.Policy) -> None:
    acting = policy.on(stock())
    states = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
    one_by_one = np.random.default_rng(1)
    expected = [acting.action(state, one_by_one).tolist() for state in states]
    found = acting.actions(states, np.random.default_rng(1))
    assert found.tolist() == expected
    assert found.dtype == np.int64
    # What was given away is not changed by the next call.
    acting.actions(states[::-1].copy(), np.random.default_rng(2))
    assert found.tolist() == expected
    assert acting.actions(np.zeros((0, 2)), np.random.default_rng(1)).shape == (0, 2)
    with pytest.raises(bw.errors.PolicyError, match=SEVERAL):
        acting.action(states, np.random.default_rng(1))
    for wrong in (1.0, [1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(bw.errors.PolicyError, match="state has shape"):
            acting.action(wrong, np.random.default_rng(1))
    with pytest.raises(bw.errors.PolicyError, match="states has shape"):
        acting.actions([1.0, 2.0], np.random.default_rng(1))
    for entry in (np.nan, np.inf, 0.5, "a"):
        with pytest.raises(bw.BellweightError):
            acting.action([entry, 0.0], np.random.default_rng(1))


def test_a_random_policy_asks_for_a_generator_in_both_forms() -> None:
    for call in (bw.Uniform().on(counting()).actions, bw.Uniform().on(stock()).actions):
        with pytest.raises(bw.errors.PolicyError, match="pass a numpy Generator"):
            call(np.zeros((2, 1 if call.__self__.model.dimension == 1 else 2), dtype=int))


def test_an_unbound_policy_says_so_in_both_forms() -> None:
    for call in (bw.Uniform().action, bw.Uniform().actions):
        with pytest.raises(bw.errors.PolicyError, match="needs its model to act"):
            call([0])
