"""Gymnasium's environments as models, our models as environments, policies in both."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from strategies import models

import bellweight as bw
from bellweight.interchange import from_gymnasium, policy_for_gymnasium, to_gymnasium

NAMES = ["FrozenLake8x8-v1", "Taxi", "CliffWalking"]


def made(name: str) -> Any:
    if name.startswith("FrozenLake"):
        return gymnasium.make("FrozenLake-v1", map_name="8x8")
    newest = [key for key in gymnasium.registry if key.split("-v")[0] == name]
    return gymnasium.make(newest[-1])


def value_iteration(table: Any, discount: float) -> np.ndarray:
    """On the environment's own table, an ending being worth nothing."""
    moves = [
        (x, a, p, y, r, end)
        for x in range(len(table))
        for a in table[x]
        for p, y, r, end in table[x][a]
    ]
    x, a, p, y, r, end = (np.array(column) for column in zip(*moves, strict=True))
    n, m = len(table), len(table[0])
    values = np.zeros(n)
    for _ in range(1500):
        quality = np.zeros((n, m))
        np.add.at(quality, (x, a), p * (r + discount * np.where(end, 0.0, values[y])))
        values = quality.max(axis=1)
    return values


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_original_and_the_policy_earns_them(name: str) -> None:
    env, discount = made(name), 0.97
    model = from_gymnasium(env, discount)
    assert "without its limit" in model.name or env.spec.max_episode_steps is None
    best = bw.exact.optimal(model)
    n = model.n_states - 1
    np.testing.assert_allclose(
        -best.values[:n], value_iteration(env.unwrapped.P, discount), rtol=0, atol=1e-8
    )
    assert abs(best.values[n]) < 1e-12
    act = policy_for_gymnasium(best.policy)
    earned = []
    env = env.unwrapped
    for episode in range(150):
        state, _ = env.reset(seed=episode)
        total, factor, ended, steps = 0.0, 1.0, False, 0
        while not ended and steps < 400:
            state, reward, ended, _, _ = env.step(act(state))
            total, factor, steps = total + factor * reward, factor * discount, steps + 1
        earned.append(total)
    error = 4.0 * np.std(earned) / np.sqrt(len(earned)) + 1e-4
    assert abs(np.mean(earned) + model.initial @ best.values) <= error


@pytest.mark.parametrize("which", ["queue", "frozen lake", "parts"])
def test_our_environments_pass_the_checks_of_gymnasium(which: str) -> None:
    model = {
        "queue": lambda: bw.problems.single_queue(capacity=5),
        "frozen lake": lambda: from_gymnasium(made(NAMES[0]), 0.9),
        "parts": lambda: bw.TabularModel.from_pairs(
            [1, 2, 0], np.eye(2)[[1, 0, 1]], [0, 0, 1], [0, 2, 1], 0.5, [1, 0]
        ),
    }[which]()
    with warnings.catch_warnings():
        # It asks for a registered environment, which only the user can make of ours.
        warnings.filterwarnings("ignore", message=".*spec.*")
        check_env(to_gymnasium(model), skip_render_check=True)


def test_an_environment_of_ours_by_hand() -> None:
    model = bw.TabularModel.from_pairs(
        [1, 2, 0], np.eye(2)[[1, 0, 1]], [0, 0, 1], [0, 2, 1], 0.5, [1, 0]
    )
    env = to_gymnasium(model)
    state, info = env.reset(seed=1)
    assert (state, info["action_mask"].tolist()) == (0, [1, 0, 1])
    assert env.step(1)[:3] == (0, -2.0, False), "not admissible: stays, at the dearest cost"
    assert env.step(2)[:3] == (0, -2.0, False)
    assert env.step(0)[:3] == (1, -1.0, True)


def test_a_simulated_environment_earns_what_the_model_costs() -> None:
    queue = bw.problems.single_queue(capacity=5, discount=0.8)
    policy = bw.Uniform().on(queue)
    act, env = policy_for_gymnasium(policy, seed=1), to_gymnasium(queue)
    totals = []
    for episode in range(300):
        state, _ = env.reset(seed=episode)
        total = 0.0
        for step in range(40):
            state, reward, _, _, _ = env.step(act(state))
            total += 0.8**step * reward
        totals.append(total)
    cost = queue.initial @ bw.exact.policy_value(queue, policy, 40)
    assert abs(np.mean(totals) + cost) < 4.0 * np.std(totals) / np.sqrt(300)


@given(models())
def test_our_environments_there_and_back(model: bw.TabularModel) -> None:
    again = from_gymnasium(to_gymnasium(model), model.discount)
    n, ends = model.n_states, again.n_states - model.n_states
    assert ends in (0, 1), "one state more where episodes end"
    np.testing.assert_array_equal(again.initial[:n], model.initial)
    np.testing.assert_array_equal(again.cost[: model.n_pairs], model.cost)
    np.testing.assert_array_equal(again.pair_action[: model.n_pairs], model.pair_action)
    values = bw.exact.optimal(again).values[:n]
    np.testing.assert_allclose(values, bw.exact.optimal(model).values, rtol=1e-9, atol=1e-9)


def test_the_table_of_an_environment_of_ours() -> None:
    model = bw.TabularModel.from_pairs(
        [1, 2, 0], np.array([[0.5, 0.5], [1, 0], [0, 1]]), [0, 0, 1], [0, 2, 1], 0.5, [1, 0]
    )
    table = to_gymnasium(model).P
    assert dict(table) == {
        0: {0: [(0.5, 0, -1.0, False), (0.5, 1, -1.0, True)], 2: [(1.0, 0, -2.0, False)]},
        1: {1: [(1.0, 1, 0.0, True)]},
    }
    assert 2 not in table


def test_what_has_no_table_is_refused() -> None:
    with pytest.raises(bw.BellweightError, match="CartPoleEnv has no table P"):
        from_gymnasium(gymnasium.make("CartPole-v1"), 0.9)


class Given:
    """An environment that is nothing but its table."""

    action_space = None

    def __init__(self, table: Any) -> None:
        self.P = table

    def step(self, action: int) -> None: ...


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "the model is empty"),
        ({0: {0: []}}, "no transitions"),
        ({0: {0: [(1.0, 5, 0.0, False)]}}, "state 0, action 0 leads to state 5, expected 0 to 0"),
        ({0: {0: [(0.5, 0, 0.0, False)]}}, "transition 0 of the environment: .* sum to 0.5"),
        ({0: {2**40: [(1.0, 0, 0.0, False)]}}, "state 0 has the action 1099511627776, expected 0"),
        ({1: {0: [(1.0, 1, 0.0, False)]}}, r"P\[0\] of the environment is wrong \(KeyError"),
        (
            {0: {0: [(0.5, 0, 0.0, False)] * 3, 1: 5}},
            r"P\[0\] of the environment is wrong \(TypeError",
        ),
        ({0: {0: [(1.0, 0, 0.0)]}}, r"P\[0\] of the environment is wrong \(ValueError"),
    ],
)
def test_a_wrong_table_is_refused(table: Any, said: str) -> None:
    with pytest.raises(bw.BellweightError, match=said):
        from_gymnasium(Given(table), 0.9)
    # Where an episode ended does not matter.
    assert from_gymnasium(Given({0: {0: [(1.0, -1, 2.0, True)]}}), 0.9).n_states == 2
