"""The same network as an event model and as a step model: the same rows, the same costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import Law

CHANCES = (0.15, 0.1, 0.25, 0.2, 0.15)  # two arrivals, three services; otherwise nothing happens
LIMIT = 8


def happens(state: Any, action: int, event: int) -> None:
    """Queues 0 and 2 share a server, which the action points to; queue 0 feeds queue 1."""
    if event == 0:
        state[0] = min(state[0] + 1, LIMIT)
    elif event == 1:
        state[2] = min(state[2] + 1, LIMIT)
    elif event == 2:
        if action == 0 and state[0] > 0 and state[1] < LIMIT:
            state[0] -= 1
            state[1] += 1
    elif event == 3:
        state[1] = max(state[1] - 1, 0)
    elif action == 1:
        state[2] = max(state[2] - 1, 0)


def probability(event: int) -> float:
    return CHANCES[event]


def cost(state: Any) -> float:
    return 1.0 * state[0] + 1.5 * state[1] + 3.0 * state[2]


def nothing_else(state: Any, action: int, event: int) -> None:
    if event < 5:
        happens(state, action, event)


def step_safely(state: Any, action: int, noise: Any, successor: Any) -> None:
    for i in range(3):
        successor[i] = state[i]
    nothing_else(successor, action, int(noise[0]))


def as_events(*, compiled: bool = False) -> bw.EventModel:
    return bw.EventModel(
        dimension=3, actions=["first", "last"], events=[f"event {e}" for e in range(5)],
        cost=cost, probability=probability, move=happens, discount=0.9, initial=[2, 0, 1],
        upper=[LIMIT] * 3, compiled=compiled,
    )  # fmt: skip


def as_steps(*, compiled: bool = False) -> bw.StepModel:
    return bw.StepModel(
        dimension=3, actions=["first", "last"], step=step_safely, cost=cost, discount=0.9,
        noise=Law(np.arange(6.0), [*CHANCES, 1.0 - sum(CHANCES)]), initial=[2, 0, 1], lower=0,
        upper=LIMIT, integer=True, compiled=compiled,
    )  # fmt: skip


@pytest.fixture(scope="module")
def pair() -> tuple[bw.EventModel, bw.StepModel]:
    return as_events(), as_steps()


@pytest.mark.parametrize("basis", [bw.Polynomial(2), bw.PiecewiseLinear([1.0, 4.0])])
def test_rows_are_the_same(pair: tuple[bw.EventModel, bw.StepModel], basis: Any) -> None:
    states = np.random.default_rng(1).integers(0, LIMIT + 1, size=(40, 3))
    states = np.unique(states, axis=0)
    found = [bw.SampledRows(states).on(model, basis) for model in pair]
    every = np.arange(found[0].n_pairs)
    for events, steps in zip(found[0].rows(every), found[1].rows(every), strict=True):
        np.testing.assert_allclose(steps, events, atol=1e-11)


@pytest.mark.parametrize("kind", ["uniform", "greedy"])
def test_costs_on_the_same_random_numbers_are_the_same(
    pair: tuple[bw.EventModel, bw.StepModel], kind: str
) -> None:
    coef = np.random.default_rng(2).normal(size=10)
    greedy = bw.Greedy(basis=bw.Polynomial(2), coef=coef)
    policy = bw.Uniform() if kind == "uniform" else greedy
    costs = [bw.evaluate(m, policy, episodes=40, horizon=40, seed=7).mean for m in pair]
    assert costs[1] == pytest.approx(costs[0], rel=1e-12)
