"""Simulation of event models: random streams, common luck, intervals, tails."""

from __future__ import annotations

from functools import cache
from typing import Any

import event_models as em
import numpy as np
import pytest
from scipy import stats

import bellweight as bw
from bellweight.common.compiled import draw, episode_key
from bellweight.common.streams import stream_keys
from bellweight.evaluation.evaluate import rollout_of
from bellweight.simulation import BLOCK, episode_costs

GREEDY = bw.Greedy(bw.Affine(), np.array([0.0, 2.0, 1.0, 2.0, 1.0]))


@cache
def tabular() -> bw.TabularModel:
    return em.network().to_tabular()


def numbers(seed: int, stream: int, episodes: int, steps: int) -> em.FloatArray:
    """The first numbers (episodes, steps) of one of the three streams."""
    base = stream_keys(seed)[stream]
    keys = [np.uint64(episode_key(base, episode)) for episode in range(episodes)]
    return np.array([[draw(key, step) for step in range(steps)] for key in keys])


def test_streams_are_uniform() -> None:
    for stream in range(3):
        sample = numbers(3, stream, 100, 200)
        assert (sample >= 0.0).all()
        assert (sample < 1.0).all()
        for piece in (sample.ravel(), sample[:, 0], sample[0]):
            assert stats.kstest(piece, "uniform").pvalue > 1e-4


def test_streams_are_independent() -> None:
    initial, action, event = (numbers(3, stream, 100, 200) - 0.5 for stream in range(3))
    other = numbers(4, 1, 100, 200) - 0.5
    pairs = {
        "initial and action": (initial, action),
        "action and event": (action, event),
        "initial and event": (initial, event),
        "steps": (action[:, 1:], action[:, :-1]),
        "episodes": (action[1:], action[:-1]),
        "seeds": (action, other),
    }
    for name, (first, second) in pairs.items():
        correlation = np.corrcoef(first.ravel(), second.ravel())[0, 1]
        assert abs(correlation) < 5.0 / np.sqrt(first.size), name


def test_streams_do_not_overlap() -> None:
    drawn = [numbers(seed, stream, 60, 200) for seed in (0, 1) for stream in range(3)]
    # 72,000 numbers of 53 bits: two equal ones by chance once in three million tries.
    assert np.unique(drawn).size == 2 * 3 * 60 * 200


def test_seeds() -> None:
    assert np.array_equal(stream_keys(7), stream_keys(7))
    assert np.unique([stream_keys(seed) for seed in range(50)]).size == 150
    with pytest.raises(bw.errors.ArgumentError, match="seed is -1, expected a whole number"):
        stream_keys(-1)


def test_same_seed_same_answer_and_another_seed_another() -> None:
    model = em.network()
    found = [bw.evaluate(model, bw.Uniform(), 500, horizon=40, seed=seed) for seed in (5, 5, 6)]
    assert found[0] == found[1]
    assert found[0].mean != found[2].mean


@pytest.mark.parametrize("policy", [bw.Uniform(), GREEDY], ids=["uniform", "greedy"])
def test_same_costs_for_any_number_of_workers_and_any_cut(policy: bw.policies.Policy) -> None:
    rollout = rollout_of(em.network(), policy)
    n = 2 * BLOCK + 77
    found = [episode_costs(rollout, 0, n, 30, seed=9, jobs=jobs) for jobs in (1, 2, 3, None)]
    for other in found[1:]:
        assert np.array_equal(found[0], other)
    pieces = [episode_costs(rollout, first, last, 30, 9, 1) for first, last in ((0, 50), (50, n))]
    assert np.array_equal(found[0], np.concatenate(pieces))


def test_policies_meet_the_same_luck() -> None:
    # Nobody controls the first coordinate, and the cost looks at nothing else.
    def cost(state: Any) -> float:
        return state[0] * 1.0

    def probability(state: Any, action: Any, event: Any) -> float:
        if event < 2:
            return 0.3 if state[0] < 4 else 0.2
        return 0.1 * action

    def move(state: Any, event: Any) -> None:
        if event == 0:
            state[0] += 1
        elif event == 1 and state[0] > 0:
            state[0] -= 1
        elif event == 2:
            state[1] += 1

    model = bw.EventModel(
        dimension=2, actions=3, events=3, cost=cost, probability=probability, move=move,
        discount=0.9, initial=bw.models.Geometric(0.6), compiled=False,
    )  # fmt: skip
    rising = bw.Greedy(bw.Affine(), np.array([0.0, 0.0, 1.0]))
    falling = bw.Greedy(bw.Affine(), np.array([0.0, 0.0, -1.0]))
    costs = [
        episode_costs(rollout_of(model, policy), 0, 20, 40, seed=2, jobs=1)
        for policy in (bw.Uniform(), rising, falling)
    ]
    assert np.unique(costs[0]).size > 10
    assert np.array_equal(costs[0], costs[1])
    assert np.array_equal(costs[0], costs[2])


def test_paired_differences_are_narrower_and_right() -> None:
    found = bw.compare(
        em.network(), {"random": bw.Uniform(), "greedy": GREEDY}, 6_000, horizon=60, seed=3
    )
    gap = found.differences["greedy"]
    wide = np.hypot(*(one.half_width for one in found.evaluations.values()))
    assert gap.half_width < 0.6 * wide
    exact = [
        float(tabular().initial @ bw.exact.policy_value(tabular(), policy, 60))
        for policy in (GREEDY, bw.Uniform())
    ]
    assert abs(gap.mean - (exact[0] - exact[1])) <= 2.5 * gap.half_width
    assert gap.is_clear
    assert found.differences["random"] == bw.evaluation.Difference(0.0, 0.0)


def test_half_width_is_reached() -> None:
    model = em.network_as_functions()
    first = bw.evaluate(model, GREEDY, 4_096, horizon=40, seed=3)
    target = first.half_width / 2.0
    found = bw.evaluate(model, GREEDY, half_width=target, horizon=40, seed=3, jobs=2)
    assert found.half_width <= target
    assert 4 * 4_096 * 0.9 < found.episodes < 4 * 4_096 * 1.5
    assert found == bw.evaluate(model, GREEDY, found.episodes, horizon=40, seed=3, jobs=1)
    easy = bw.evaluate(model, GREEDY, half_width=1e3, horizon=40, seed=3)
    assert easy == first


def test_half_width_that_cannot_be_reached() -> None:
    model = em.network_as_functions()
    with pytest.raises(
        bw.errors.ArgumentError, match=r"half_width 1e-06 needs about .*wider interval"
    ):
        bw.evaluate(model, GREEDY, half_width=1e-6, horizon=10)
    with pytest.raises(bw.errors.ArgumentError, match="episodes or half_width, not both"):
        bw.evaluate(model, GREEDY, 100, half_width=1.0)


def test_default_horizon_leaves_a_thousandth() -> None:
    found = bw.evaluate(em.network_as_functions(), GREEDY, 10)
    assert 0.9**found.horizon < 1e-3 <= 0.9 ** (found.horizon - 1)


def test_tail_is_unknown_without_a_growth_bound() -> None:
    found = bw.evaluate(em.network_as_functions(), GREEDY, 10, horizon=20)
    assert found.tail_bound is None
    assert "cost_growth" in found.tail_reason
    assert "tail unknown" in str(found)


@pytest.mark.parametrize("policy", [bw.Uniform(), GREEDY], ids=["uniform", "greedy"])
@pytest.mark.parametrize("horizon", [1, 10, 60])
def test_tail_bound_holds(policy: bw.policies.Policy, horizon: int) -> None:
    found = bw.evaluate(em.network(), policy, 10, horizon=horizon, seed=1)
    whole = float(tabular().initial @ bw.exact.policy_value(tabular(), policy))
    part = float(tabular().initial @ bw.exact.policy_value(tabular(), policy, horizon))
    assert found.tail_bound is not None
    assert whole - part <= found.tail_bound
    # The bound supposes that no job ever leaves: loose, but of the right order.
    assert found.tail_bound <= 10.0 * (whole - part)


def test_tail_bound_is_exact_where_costs_grow_as_declared() -> None:
    def cost(state: Any, action: Any) -> float:
        return 1.0 * state[0] - 100.0 * action

    def probability() -> float:
        return 1.0

    def move(state: Any) -> None:
        state[0] += 2

    model = bw.EventModel(
        dimension=1, actions=1, events=1, cost=cost, probability=probability, move=move,
        discount=0.8, initial=(5,), cost_growth=2.0, compiled=False,
    )  # fmt: skip
    found = bw.evaluate(model, bw.Uniform(), 2, horizon=7)
    steps = np.arange(2_000)
    discounted = 0.8**steps * (5.0 + 2.0 * steps)
    assert found.mean == pytest.approx(discounted[:7].sum())
    assert found.tail_bound == pytest.approx(discounted[7:].sum())


def test_negative_growth_is_refused() -> None:
    with pytest.raises(bw.errors.ModelError, match="cost_growth is -1"):
        em.random_grid(7, cost_growth=-1)
