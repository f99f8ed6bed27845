"""Information relaxation: a bound below the optimum with a stated confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates import relaxation, relaxed_bound
from bellweight.certificates.relaxation import _distinct
from bellweight.problems.queue_network import QueueNetwork

UPPER = 6


@pytest.fixture(scope="module")
def small() -> tuple[bw.EventModel, bw.Result, float]:
    """Two queues with one server, their optimum, and the optimal values as a value function."""
    net = QueueNetwork([0.2, 0.2], [0.5, 0.4], routes=(None, None), groups=((0, 1),))
    model = net.model(discount=0.8, initial=(2, 1), upper=UPPER)
    table = model.to_tabular()
    best = bw.exact.optimal(table).values
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=bw.program.LocalRows(), judge=False)
    return model, result, float(table.initial @ best)


def test_the_bound_is_below_the_optimum_and_close(small) -> None:
    model, result, optimum = small
    found = relaxed_bound(model, result, paths=80, horizon=30, seed=1)
    assert found.kind == "estimated"
    assert 0.9 * optimum < found.bound < found.mean <= optimum + 2.0 * found.half_width
    # What the program proves is a bound, too; knowing more than a policy can is worth less here.
    assert found.mean > result.lower_bound


def test_the_confidence_is_what_is_stated(small) -> None:
    """With one action and no value function a path's least total is its cost: nothing to spare."""
    _, result, _ = small
    one = QueueNetwork([0.3, 0.0], [0.4, 0.3], routes=(1, None), groups=((0,), (1,)))
    options = {"discount": 0.8, "initial": (2, 1), "compiled": False}
    table = one.model(upper=9, **options).to_tabular()
    cost = float(table.initial @ bw.exact.policy_value(table, bw.Uniform(), horizon=5))
    zero = replace(result, coef=np.zeros_like(result.coef))
    model = one.model(**options)
    bounds = [
        relaxed_bound(model, zero, paths=30, horizon=5, confidence=0.8, seed=seed, jobs=1).bound
        for seed in range(40)
    ]
    # 32 of 40 on average; fewer than 24 or all 40 would be rarer than one in five hundred.
    assert 24 <= (np.array(bounds) <= cost).sum() <= 39


def test_a_step_model_with_a_finite_law_has_a_bound() -> None:
    demand = bw.Law([0.0, 1.0, 2.0], [0.3, 0.4, 0.3])

    def step(state: Any, action: Any, noise: Any) -> Any:
        return (max(0.0, min(8.0, state[0] + action) - noise[0]),)

    def cost(state: Any, action: Any, noise: Any) -> float:
        return action + 0.5 * state[0] + 4.0 * max(0.0, noise[0] - min(8.0, state[0] + action))

    def model(noise: Any, *, whole: bool) -> bw.StepModel:
        return bw.StepModel(
            dimension=1, actions=3, step=step, cost=cost, noise=noise, discount=0.8,
            initial=(2.0,), lower=0.0, upper=8.0, integer=whole, compiled=False,
        )  # fmt: skip

    store = model(demand, whole=True)
    table = store.to_tabular(grid=9)
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    rows = bw.SampledRows(np.arange(9.0)[:, None])
    result = bw.solve(store, bw.Polynomial(3), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(store, result, paths=40, horizon=25, seed=1, jobs=1)
    assert 0.85 * optimum < found.bound < optimum
    with pytest.raises(bw.BellweightError, match="expected a model whose states"):
        relaxed_bound(model(bw.models.Exponential(1.0), whole=False), result)


def test_a_cubic_value_function_gets_close_on_a_criss_cross_network() -> None:
    """Three queues, lambda 0.6, mu 2, 1, 2; smaller and with a lower discount than in the study."""
    unit = 0.6 + 0.6 + 2.0 + 2.0
    rates = [rate / unit for rate in (0.6, 0.6, 0.0, 2.0, 1.0, 2.0)]
    net = QueueNetwork(rates[:3], rates[3:], routes=(2, None, None), groups=((0, 1), (2,)))
    model = net.model(discount=0.9, initial=(2, 2, 0), upper=5, compiled=False)
    table = model.to_tabular()
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    rows = bw.SampledRows(table.states.astype(np.int64))
    result = bw.solve(model, bw.Polynomial(3), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(model, result, paths=40, horizon=45, seed=1)
    assert 0.9 * optimum < found.bound < optimum
    assert found.mean > 0.96 * optimum


def test_it_does_not_depend_on_the_blocks(small) -> None:
    model, result, _ = small
    one = relaxed_bound(model, result, paths=30, horizon=20, seed=3, jobs=1)
    two = relaxed_bound(model, result, paths=30, horizon=20, seed=3, jobs=2)
    assert one == two


def test_bad_input_is_refused(small, monkeypatch: pytest.MonkeyPatch) -> None:
    model, result, _ = small
    with pytest.raises(bw.BellweightError, match="at least 30"):
        relaxed_bound(model, result, paths=10)
    with pytest.raises(bw.BellweightError, match=r"paths is 200, expected at least 1,000"):
        relaxed_bound(model, result, paths=200, confidence=0.999)
    with pytest.raises(bw.BellweightError, match="below least_cost"):
        relaxed_bound(model, result, paths=30, horizon=5, least_cost=1.0)
    monkeypatch.setattr(relaxation, "_MOST_SUCCESSORS", 40)
    with pytest.raises(bw.BellweightError, match=r"reaches \d+ states.*path_bound"):
        relaxed_bound(model, result, paths=30, horizon=20)
    with pytest.raises(bw.BellweightError, match="expected a model whose states"):
        relaxed_bound(bw.problems.single_queue(capacity=5), result)


def test_states_below_zero_are_told_apart() -> None:
    states = np.array([[-3, 2], [4, -1], [-3, 2], [0, 0], [-3, -1]])
    distinct, place = _distinct(states)
    assert (distinct[place] == states).all()
    assert len(distinct) == 4
