"""A linear program for each path of a network: below the optimum, with the stated confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates import path_bound, relaxed_bound
from bellweight.problems.queue_network import QueueNetwork

NET = QueueNetwork(
    [0.1, 0.0, 0.08], [0.3, 0.25, 0.2], routes=(1, None, None), groups=((0, 2), (1,))
)
DISCOUNT = 0.9


@pytest.fixture(scope="module")
def model() -> bw.EventModel:
    return NET.model(discount=DISCOUNT, initial=(3, 1, 2), compiled=False)


@pytest.fixture(scope="module")
def optimum() -> float:
    table = NET.model(discount=DISCOUNT, initial=(3, 1, 2), upper=12, compiled=False).to_tabular()
    return float(table.initial @ bw.exact.optimal(table).values)


def test_the_bound_is_below_the_optimum_and_close(model: bw.EventModel, optimum: float) -> None:
    found = path_bound(model, paths=60, horizon=60, seed=1, jobs=1)
    assert 0.8 * optimum < found.bound < optimum
    assert found.kind == "estimated"
    assert found == path_bound(model, paths=60, horizon=60, seed=1, jobs=2)


def test_it_is_below_the_exact_relaxation_without_a_penalty(model: bw.EventModel) -> None:
    """With value 0 the inner problem over states is the same one in whole numbers."""
    result = bw.solve(model, bw.PiecewiseLinear([1]), bw.Fixed(), judge=False)
    zero = replace(result, coef=np.zeros_like(result.coef))
    whole = relaxed_bound(model, zero, paths=30, horizon=12, seed=2)
    shares = path_bound(model, paths=30, horizon=12, seed=2)  # the same paths
    assert 0.9 * whole.mean < shares.mean <= whole.mean + 1e-9


def test_one_server_is_solved_by_the_index_rule() -> None:
    """With one queue nothing is to decide: the program's value is the path's cost."""
    one = QueueNetwork([0.3], [0.5], routes=(None,), groups=((0,),))
    model = one.model(discount=DISCOUNT, initial=(2,), compiled=False)
    table = one.model(discount=DISCOUNT, initial=(2,), upper=60, compiled=False).to_tabular()
    exact = float(table.initial @ bw.exact.optimal(table).values)
    found = path_bound(model, paths=60, horizon=60, seed=3)
    assert abs(found.mean - exact) < 2.0 * found.half_width


def test_the_margin_is_that_of_the_confidence(model: bw.EventModel) -> None:
    """The same margin as that of `relaxed_bound`, whose coverage is measured in its own test."""
    low, high = (
        path_bound(model, paths=40, horizon=5, confidence=c, seed=1, jobs=1) for c in (0.5, 0.975)
    )
    assert low.bound == pytest.approx(low.mean) == pytest.approx(high.mean)
    assert high.mean - high.bound == pytest.approx(high.half_width)


def test_what_is_no_network_is_refused(model: bw.EventModel) -> None:
    with pytest.raises(bw.BellweightError, match="at least 30"):
        path_bound(model, paths=5)
    with pytest.raises(bw.BellweightError, match="upper bound"):
        path_bound(NET.model(discount=DISCOUNT, upper=4, compiled=False), paths=30)
    with pytest.raises(bw.BellweightError, match="no network of queues"):
        path_bound(bw.problems.single_queue(capacity=5), paths=30)

    def cost(state: Any) -> float:
        return float(state[0] ** 2)

    square = bw.EventModel(
        dimension=1, actions=["go"], events=["arrival", "departure"], cost=cost,
        probability=[[0.3, 0.5]], move=[[1], [-1]], discount=DISCOUNT, compiled=False,
    )  # fmt: skip
    with pytest.raises(bw.BellweightError, match="not that of an affine function"):
        path_bound(square, paths=30)
