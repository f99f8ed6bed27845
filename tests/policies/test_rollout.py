"""One step of improvement by paired simulation, against the exact improvement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.queue_network import QueueNetwork

NET = QueueNetwork([0.15, 0.15], [0.5, 0.2], routes=(None, None), groups=((0, 1),))
DISCOUNT, UPPER = 0.9, 25
SLOW_FIRST = NET.static_priority((1, 0))


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


def functions_of_a_line(fast: float = 0.6) -> bw.EventModel:
    """One queue whose server is slow or fast: chances and costs are functions."""

    def cost(state: Any, action: Any) -> float:
        return state[0] + 0.5 * action

    def chance(state: Any, action: Any, event: Any) -> float:
        return 0.3 if event == 0 else 0.2 + 0.4 * action

    def move(state: Any, event: Any) -> None:
        state[0] += 1 if event == 0 else -min(1, state[0])

    return bw.EventModel(
        dimension=1, actions=["slow", "fast"], events=["arrival", "departure"], cost=cost,
        probability=chance, move=move, discount=DISCOUNT, initial=(3,), compiled=False,
        upper=UPPER,
    )  # fmt: skip


def test_it_leaves_the_base_where_the_exact_gain_is_clear() -> None:
    gain = exact_gains()
    model = NET.model(discount=DISCOUNT, compiled=False)
    rule = bw.Rollout(SLOW_FIRST, paths=60, horizon=60).on(model)
    assert gain[3, 2] < -0.3  # the faster queue first: fewer jobs at once
    assert rule.action((3, 2)) == 0
    assert rule.action((0, 4)) == 1
    assert rule.action((4, 0)) == 0
    # From the better priority there is nothing to gain.
    other = bw.Rollout(NET.static_priority((0, 1)), paths=60, horizon=60).on(model)
    assert other.action((3, 2)) == 0


def test_without_a_clear_gain_it_is_the_base() -> None:
    even = QueueNetwork([0.2, 0.2], [0.3, 0.3], routes=(None, None), groups=((0, 1),))
    model = even.model(discount=DISCOUNT, compiled=False)
    rule = bw.Rollout(even.static_priority((1, 0)), paths=40, horizon=40, clear=3.0).on(model)
    assert [rule.action((2, 2)), rule.action((1, 3))] == [1, 1]


def test_servers_decide_by_themselves() -> None:
    twice = QueueNetwork(
        [0.05] * 4, [0.3, 0.1, 0.3, 0.1], routes=(None,) * 4, groups=((0, 1), (2, 3))
    )
    model = twice.model(discount=DISCOUNT, compiled=False)
    rule = bw.Rollout(twice.static_priority((1, 0, 2, 3)), paths=60, horizon=50).on(model)
    assert twice.allocations[rule.action((3, 3, 3, 3))] == (0, 2)
    assert twice.allocations[rule.action((0, 3, 3, 3))] == (1, 2)


def test_chances_that_are_functions_are_simulated_from_the_first_step_on() -> None:
    model = functions_of_a_line()
    table = model.to_tabular()
    slow = bw.exact.policy_value(table, bw.TablePolicy(np.zeros(table.n_states, dtype=np.int64)))
    up, down = slow[4] - slow[3], slow[2] - slow[3]
    gain = 0.5 + DISCOUNT * 0.4 * down  # of serving fast once, in state 3
    assert up > 0.0 > down
    assert gain < -0.2

    def always_slow(state: Any) -> int:
        return 0

    rule = bw.Rollout(bw.Rule(always_slow), paths=200, horizon=60).on(model)
    assert rule.action((3,)) == 1
    assert rule.action((0,)) == 0  # nobody to serve


def test_a_step_model_is_improved_where_the_exact_gain_is_clear() -> None:
    demands, chances = np.array([0.0, 1.0, 2.0]), np.array([0.3, 0.4, 0.3])

    def step(state: Any, action: Any, noise: Any) -> Any:
        return (max(0.0, state[0] + action - noise[0]),)

    def cost(state: Any, action: Any, noise: Any) -> float:
        return 0.5 * state[0] + 4.0 * max(0.0, noise[0] - state[0] - action)

    def never(state: Any) -> int:
        return 0

    def quality(state: int, action: int) -> float:
        paid = [cost([state], action, [d]) + DISCOUNT * value[step([state], action, [d])[0]]
                for d in demands]  # fmt: skip
        return float(chances @ paid)

    value = dict.fromkeys(np.arange(21.0), 0.0)
    for _ in range(300):
        value = {x: quality(x, 0) for x in value}
    model = bw.StepModel(
        dimension=1, actions=3, step=step, cost=cost, noise=bw.Law(demands, chances),
        discount=DISCOUNT, initial=(0.0,), lower=0.0, upper=20.0, compiled=False,
    )  # fmt: skip
    rule = bw.Rollout(bw.Rule(never), paths=64, horizon=40).on(model)
    gains = {x: [quality(x, a) - quality(x, 0) for a in range(3)] for x in (0.0, 12.0)}
    assert gains[0.0][2] < gains[0.0][1] < -1.0
    assert rule.action((0.0,)) == 2
    assert min(gains[12.0][1:]) > 0.2
    assert rule.action((12.0,)) == 0


def test_a_random_number_means_the_same_event_whatever_the_action() -> None:
    model = bw.problems.queue_network(compiled=False)
    places, table = model.event_places, model.probability
    assert places is not None  # the services of a server share a place, and all fit
    for action in range(model.n_actions):
        used = np.flatnonzero(table[action] > 0.0)
        begin = np.sort(places[used])
        end = (places + table[action])[used][np.argsort(places[used])]
        assert (end[:-1] <= begin[1:] + 1e-12).all()
        assert end[-1] <= 1.0 + 1e-12
    assert len(np.unique(places)) == 5  # two arrivals, three servers


def test_the_same_seed_gives_the_same_decision() -> None:
    model = NET.model(discount=DISCOUNT, compiled=False)
    states = [(1, 1), (2, 5), (7, 1)]
    first, second = (
        [bw.Rollout(SLOW_FIRST, paths=10, horizon=30, seed=4).on(model).action(s) for s in states]
        for _ in range(2)
    )
    assert first == second


def test_bad_input_is_refused() -> None:
    with pytest.raises(bw.BellweightError, match="expected a bellweight policy"):
        bw.Rollout(lambda state: 0)
    with pytest.raises(bw.BellweightError, match="a Rollout itself"):
        bw.Rollout(bw.Rollout(SLOW_FIRST))
    with pytest.raises(bw.BellweightError, match="paths is 1"):
        bw.Rollout(SLOW_FIRST, paths=1)
    with pytest.raises(bw.BellweightError, match="clear"):
        bw.Rollout(SLOW_FIRST, clear=-1.0)
    queue = bw.problems.single_queue(capacity=5)
    with pytest.raises(bw.BellweightError, match="event and step models"):
        bw.Rollout(bw.Uniform()).on(queue).action(1)


@pytest.mark.slow  # the study of rollouts runs in small every time
def test_it_costs_less_than_its_base() -> None:
    """Compiled, with the same random numbers for both policies."""
    model = NET.model(discount=DISCOUNT, initial=(4, 4))
    acting = bw.Rollout(SLOW_FIRST, paths=60, horizon=60).on(model)
    assert acting.action((3, 2)) == acting.actions([(3, 2)])[0] == 0
    found = bw.compare(
        model,
        {
            "base": SLOW_FIRST,
            "same": bw.Rollout(SLOW_FIRST, paths=0),
            "rollout": bw.Rollout(SLOW_FIRST, paths=40, horizon=60),
        },
        episodes=400,
        horizon=80,
        baseline="same",
        seed=1,
    )
    difference = found.differences["rollout"]
    assert difference.mean + difference.half_width < 0.0
    assert not found.differences["base"].is_clear  # the same law, drawn in another way
