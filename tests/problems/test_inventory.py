"""The continuous inventory: rows by hand, the optimum on a grid, a policy and a proven bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.order_rules import base_stock

KINKS = np.arange(-3.5, 12.0, 0.5)


@pytest.fixture(scope="module")
def model() -> bw.StepModel:
    return bw.problems.continuous_inventory()


@pytest.fixture(scope="module")
def result(model: bw.StepModel) -> bw.Result:
    rows = bw.SampledRows(np.linspace(-4.0, 12.0, 321)[:, None])
    few = bw.Simulation(episodes=50)
    basis = bw.PiecewiseLinear(KINKS)
    return bw.solve(model, basis, bw.Fixed(), rows=rows, simulation=few, judge=False)


@pytest.fixture(scope="module")
def listed(model: bw.StepModel) -> bw.TabularModel:
    return model.to_tabular(grid=321)


@pytest.fixture(scope="module")
def optimum(listed: bw.TabularModel) -> float:
    return float(listed.initial @ bw.exact.optimal(listed).values)


def cost_on(listed: bw.TabularModel, policy: Any) -> float:
    """The cost of a policy from stock 6 on the grid."""
    table = bw.TablePolicy(policy.actions(listed.states))
    return float(listed.initial @ bw.exact.policy_value(listed, table))


def test_cost_and_next_stock_are_those_of_the_formula(model: bw.StepModel) -> None:
    cost, _, after = model.expand(np.array([[-3.0], [11.5]]), np.array([5, 60]))
    demand, weights = model.nodes[:, 0], model.weights
    for row, (stock, order) in enumerate([(-3.0, 0.5), (11.5, 6.0)]):
        y = stock + order - demand
        left = np.minimum(np.maximum(y, -4.0), 12.0)
        paid = [
            20 * order + max(s, 0) + 25 * max(-s, 0) + 5 * max(v - 12, 0) + 3000 * max(-4 - v, 0)
            for s, v in zip(left, y, strict=True)
        ]
        np.testing.assert_allclose(after[row, :, 0], left, atol=1e-12)
        assert cost[row] == pytest.approx(weights @ np.array(paid))


def test_a_compiled_step_that_leaves_the_box_says_where_it_leads(model: bw.StepModel) -> None:
    wider = model.with_parameters(least=-4.5)
    words = r"noise \[1\.02.*\]: step leads out of the box .*: \[-4\.02.*\] \(coordinate 0 has"
    with pytest.raises(bw.errors.ModelError, match=words):
        wider.expand(np.array([[-3.0]]), np.array([0]))


def test_the_grid_is_fine_enough_and_so_is_the_quadrature(
    model: bw.StepModel, optimum: float
) -> None:
    more = bw.problems.continuous_inventory(quadrature=96).to_tabular(grid=161)
    values = bw.exact.optimal(more).values
    assert more.initial @ values == pytest.approx(optimum, rel=5e-4)
    # Found before by value iteration on the same grid, written for this problem alone.
    assert optimum == pytest.approx(3849.445886, abs=1e-5)


@pytest.mark.slow
def test_the_policy_is_optimal_on_the_grid_and_no_level_to_order_up_to_is_better(
    model: bw.StepModel, listed: bw.TabularModel, result: bw.Result, optimum: float
) -> None:
    ours = cost_on(listed, result.policy)
    assert -1e-6 < ours / optimum - 1.0 < 0.005
    for level in (10.0, 14.0, 18.0):
        assert cost_on(listed, base_stock(level, 6.0, 0.1).on(model)) >= ours * (1.0 - 1e-6)


def test_the_bound_is_proven_and_within_a_hundredth(
    model: bw.StepModel, result: bw.Result, optimum: float
) -> None:
    bound = result.lower_bound
    assert bound is not None
    assert 0.99 * optimum < bound < optimum
    assert result.lower_bound_kind == "estimated"
    assert "32 quadrature nodes in place of the law" in result.lower_bound_reason
    # The proof's slacks are the least of all: rows at other stocks violate no more than it allows.
    stocks = np.random.default_rng(1).uniform(-4.0, 12.0, (500, 1))
    rows = bw.SampledRows(stocks).on(model, result.basis)
    start = float((result.basis(np.array([[6.0]])) @ result.coef)[0])
    allowed = (start - bound) * (1.0 - model.discount)
    assert rows.separate(result.coef, 1.0).violation <= allowed + 1e-7
