"""One step of improvement by paired simulation, against the exact improvement."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.queue_network import QueueNetwork

NET = QueueNetwork([0.15, 0.15], [0.5, 0.2], routes=(None, None), groups=((0, 1),))
DISCOUNT, UPPER = 0.9, 25


def exact_gains() -> np.ndarray:
    """What serving the other queue changes, in each state, where the base serves queue 2 first."""
    model = NET.model(discount=DISCOUNT, upper=UPPER, compiled=False)
    table = model.to_tabular()
    states = table.states
    base = np.where(states[:, 1] > 0, 1, 0)
    chances = np.zeros((table.n_states, 2))
    chances[np.arange(table.n_states), base] = 1.0
    value = bw.exact.policy_value(table, bw.TablePolicy(chances)).reshape(UPPER + 1, UPPER + 1)
    gain = np.zeros_like(value)
    gain[1:, 1:] = 0.5 * (value[:-1, 1:] - value[1:, 1:]) - 0.2 * (value[1:, :-1] - value[1:, 1:])
    return gain


def test_it_leaves_the_base_where_the_exact_gain_is_clear() -> None:
    gain = exact_gains()
    model = NET.model(discount=DISCOUNT, compiled=False)
    rule = NET.rollout((1, 0), DISCOUNT, paths=60, horizon=60).on(model)
    assert gain[3, 2] < -0.3  # the faster queue first: fewer jobs at once
    assert rule.action((3, 2)) == 0
    assert rule.action((0, 4)) == 1
    assert rule.action((4, 0)) == 0
    # From the better priority there is nothing to gain.
    other = NET.rollout((0, 1), DISCOUNT, paths=60, horizon=60).on(model)
    assert other.action((3, 2)) == 0


def test_without_a_clear_gain_it_is_the_base() -> None:
    even = QueueNetwork([0.2, 0.2], [0.3, 0.3], routes=(None, None), groups=((0, 1),))
    model = even.model(discount=DISCOUNT, compiled=False)
    rule = even.rollout((1, 0), DISCOUNT, paths=40, horizon=40).on(model)
    assert [rule.action((2, 2)), rule.action((1, 3))] == [1, 1]


def test_the_same_seed_gives_the_same_decision_and_bad_input_is_refused() -> None:
    model = NET.model(discount=DISCOUNT, compiled=False)
    rules = [NET.rollout((1, 0), DISCOUNT, paths=10, horizon=30, seed=4) for _ in range(2)]
    states = [(1, 1), (2, 5), (7, 1)]
    first, second = ([rule.on(model).action(s) for s in states] for rule in rules)
    assert first == second
    with pytest.raises(bw.BellweightError, match="each queue from 0 once"):
        NET.rollout((0, 0))


@pytest.mark.slow
def test_it_costs_less_than_its_base() -> None:
    """Compiled, with the same random numbers for both policies."""
    model = NET.model(discount=DISCOUNT, initial=(4, 4))
    found = bw.compare(
        model,
        {
            "base": NET.static_priority((1, 0)),
            "rollout": NET.rollout((1, 0), DISCOUNT, paths=40, horizon=60),
        },
        episodes=400,
        horizon=80,
        seed=1,
    )
    difference = found.differences["rollout"]
    assert found.baseline == "base"
    assert difference.mean + difference.half_width < 0.0
