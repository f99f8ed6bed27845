"""Inventories with a lead time: steps by hand, published optima and policies, exact values."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import Law
from bellweight.problems.ageing import ageing_stock, rounded_gamma
from bellweight.problems.lost_sales import lost_sales, myopic
from bellweight.problems.order_rules import base_stock
from bellweight.problems.perishable import perishable_inventory
from bellweight.problems.pipeline import pipeline_optimum, pipeline_value

# Figure 3 of De Moor et al. (2022): orders by oldest stock (columns 0 to 8) and youngest (rows).
PUBLISHED = {
    "lifo": ["333333333"] * 3 + ["222222222", "111111111"] + ["000000000"] * 4,
    "fifo": [
        "444444444", "443333333", "433322222", "332211111", "322111100",
        "221100000", "211000000", "110000000", "100000000",
    ],
}  # fmt: skip

MOST = {2: 14, 3: 5}  # units in an order, by lead time: models of one shape are compiled once


def one_step(
    model: bw.StepModel, state: list[float], action: int
) -> dict[float, tuple[float, ...]]:
    """Return the next state for each value of demand."""
    _, _, after = model.expand(model.check_states([state]), np.array([action]))
    demands = model.nodes[:, 0].tolist()
    return {d: tuple(x.tolist()) for d, x in zip(demands, after[0], strict=True)}


def test_perishable_goods_are_sold_thrown_away_and_owed() -> None:
    demand = Law([1.0, 6.0, 25.0], [0.5, 0.3, 0.2])
    model = perishable_inventory(demand)
    after = one_step(model, [2.0, 5.0, 3.0], 4)
    assert after == {1.0: (5.0, 3.0, 4.0), 6.0: (1.0, 3.0, 4.0), 25.0: (-10.0, 3.0, 4.0)}
    cost = model.expand(np.array([[2.0, 5.0, 3.0]]), np.array([4]))[0][0]
    paid = [5.0 * 5 + 10.0 * 1, 5.0 * 1, 8.0 * 18 + 100.0 * 8]
    assert cost == pytest.approx(18.05 * 4 + np.dot([0.5, 0.3, 0.2], paid))


def test_longer_lives_and_lead_times_move_up() -> None:
    model = perishable_inventory(Law([8.0], [1.0]), life=3, lead=2)
    # Five units come from the two oldest, and three of the youngest six are sold already.
    assert one_step(model, [1.0, 4.0, 6.0, 7.0], 2)[8.0] == (-3.0, 6.0, 7.0, 2.0)


def test_lost_sales_are_lost() -> None:
    model = lost_sales(Law([0, 2, 9], [0.2, 0.5, 0.3]), lead=3, most=MOST[3], penalty=9.0)
    after = one_step(model, [4, 1, 3], 5)
    assert after == {0.0: (5, 3, 5), 2.0: (3, 3, 5), 9.0: (1, 3, 5)}
    cost = model.expand(np.array([[4, 1, 3]]), np.array([5]))[0][0]
    assert cost == pytest.approx(0.2 * 4 + 0.5 * 2 + 0.3 * 9 * 5)
    full = np.array([[30, 5, 1]])
    assert model.admissible_mask(full)[0].tolist() == [True] + [False] * MOST[3]


def lost_sales_average(penalty: float, most: int = MOST[2], capacity: int = 28) -> float:
    """Return the least average cost per period for lead time 2, without any of our models."""
    demand = np.array([5.0**k / math.factorial(k) for k in range(25)])
    demand /= demand.sum()
    stock, orders = np.arange(capacity + 1), np.arange(most + 1)
    left = np.maximum(stock[:, None] - np.arange(25), 0)
    lost = np.maximum(np.arange(25) - stock[:, None], 0)
    cost = (left + penalty * lost) @ demand
    chances = np.array([np.bincount(row, demand, capacity + 1) for row in left])
    after = np.minimum(stock[:, None] + orders, capacity)
    values = np.zeros((capacity + 1, most + 1))
    for _ in range(100):
        new = cost[:, None] + np.tensordot(chances, values[after], axes=1).min(axis=2)
        gains = new - values
        if np.ptp(gains) < 1e-9:
            return float(gains.mean())
        values = new - new[0, 0]
    raise AssertionError("relative value iteration has not converged")


@pytest.mark.parametrize(
    ("penalty", "optimal", "best_level", "rule"),
    [(4.0, 4.40, 16, 4.64), (9.0, 6.09, 19, 6.32), (19.0, 7.66, 21, 7.84)],
)
def test_lost_sales_cost_per_period_what_relative_value_iteration_finds(
    penalty: float, optimal: float, best_level: int, rule: float
) -> None:
    # Averages to two digits; a discount of 0.9999 leaves a difference of less than one cent.
    assert lost_sales_average(penalty) == pytest.approx(optimal, abs=0.005)
    model = lost_sales(lead=2, penalty=penalty, discount=0.9999, most=MOST[2], capacity=28)
    found = 1e-4 * pipeline_optimum(model, tol=1.0).at([5, 5])
    assert found == pytest.approx(optimal, abs=0.008)
    ours = 1e-4 * pipeline_value(model, base_stock(best_level, float(MOST[2])), tol=1.0).at([5, 5])
    assert ours == pytest.approx(rule, abs=0.008)


def test_the_myopic_rule_meets_demand_when_its_order_arrives() -> None:
    model = lost_sales(Law([0, 1], [0.5, 0.5]), lead=2, most=MOST[2], penalty=3.0, capacity=12)
    rule = myopic(model).on(model)
    # Meeting demand with a chance of 3/4 takes a unit, unless one is left: of (1, 0) after two
    # periods with a chance of 1/4, of (2, 0) with 3/4.
    assert [rule.action(x) for x in ([0, 0], [1, 0], [2, 0], [0, 2])] == [1, 1, 0, 0]


def test_values_of_pipelines_are_those_of_the_listed_model() -> None:
    model = lost_sales(Law.poisson(2.0, 9), lead=3, most=MOST[3], capacity=9, discount=0.9, start=2)
    table = model.to_tabular()
    exact = bw.exact.optimal(table).values
    found = pipeline_optimum(model)
    np.testing.assert_allclose(found.values.ravel(), exact, rtol=1e-7)
    rule = base_stock(6, 3.0)
    again = pipeline_value(model, rule).values.ravel()
    np.testing.assert_allclose(again, bw.exact.policy_value(table, rule), rtol=1e-7)
    with pytest.raises(bw.BellweightError, match="no pipeline"):
        pipeline_optimum(perishable_inventory(life=3))


@pytest.mark.parametrize("issue", ["lifo", "fifo"])
def test_the_optimal_orders_of_ageing_stock_are_the_published_ones(issue: str) -> None:
    table = ageing_stock(issue=issue).to_tabular()
    orders = bw.exact.optimal(table).policy.actions(np.arange(table.n_states)).reshape(11, 11)
    published = [[int(order) for order in row] for row in PUBLISHED[issue]]
    np.testing.assert_array_equal(orders[:9, :9].T, published)


def test_ageing_stock_by_hand() -> None:
    demand = Law([3], [1.0])
    paid = {}
    for issue in ("fifo", "lifo"):
        model = ageing_stock(demand, life=3, lead=2, issue=issue)
        state = [2, 4, 1, 6]  # oldest, middle, youngest, under way
        wanted = {"fifo": (3, 1, 6, 7), "lifo": (2, 0, 6, 7)}
        assert one_step(model, state, 7)[3.0] == wanted[issue]
        paid[issue] = model.expand(np.array([state]), np.array([7]))[0][0]
    assert paid == pytest.approx({"fifo": 21.0 + 4.0, "lifo": 21.0 + 7.0 * 2 + 2.0})


def test_gamma_demand_is_rounded() -> None:
    law = rounded_gamma(4.0, 0.5)
    assert law.mean == pytest.approx(4.0, abs=0.01)
    assert law.chances.sum() == pytest.approx(1.0)
    # shape 4, scale 1: P(X <= 1/2) = 1 - exp(-1/2)(1 + 1/2 + 1/8 + 1/48)
    assert law.chances[0] == pytest.approx(1.0 - np.exp(-0.5) * (1 + 0.5 + 0.125 + 1 / 48))


@pytest.mark.slow
def test_quadratics_lose_less_than_a_hundredth_on_perishable_goods() -> None:
    model = perishable_inventory()
    result = bw.solve(
        model, bw.Polynomial(2), bw.DIA(), rows=bw.SampledRows(model.spread_states(500, 0)),
        simulation=bw.Simulation(episodes=50), judge=False,
    )  # fmt: skip
    levels = np.linspace(-10.0, 10.0, 81)
    optimum = pipeline_optimum(model, levels, 0.01).at(model.start)
    ours = pipeline_value(model, result.policy, levels, 0.01).at(model.start)
    assert optimum - 0.02 <= ours < 1.01 * optimum


def test_the_models_keep_their_contract() -> None:
    for model in (perishable_inventory(), lost_sales(lead=2, most=MOST[2]), ageing_stock()):
        bw.testing.check_model(model)
