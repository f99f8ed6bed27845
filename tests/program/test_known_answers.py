"""Answers known from elsewhere: closed forms, textbooks, another library, a solver's trap."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from scipy.optimize import linprog

import bellweight as bw

CAPACITY = 49_999
TRUE_OBJECTIVE = 352.2755649552  # single queue, weights of decay 0.9, cubic basis


def queue_on_scale(scale: float) -> bw.TabularModel:
    """The paper's queue with states x / scale instead of x."""
    queue = bw.problems.single_queue(capacity=CAPACITY)
    return bw.TabularModel.from_pairs(
        queue.cost,
        queue.transition,
        queue.pair_state,
        queue.pair_action,
        queue.discount,
        queue.initial,
        state_vectors=np.arange(CAPACITY + 1) / scale,
    )


@pytest.mark.parametrize("scale", [1, 10, 1_000, CAPACITY])
def test_the_wrong_optimum_case_is_solved_right_on_every_scale(scale: int) -> None:
    result = bw.solve(queue_on_scale(scale), bw.Polynomial(3), bw.Fixed())
    assert result.status is bw.Status.CONVERGED
    assert result.objective == pytest.approx(TRUE_OBJECTIVE, abs=1e-6)
    assert result.dual.sum() == pytest.approx(50.0, rel=1e-12)
    # The coefficients belong to the monomials that the user wrote.
    plain = bw.solve(queue_on_scale(1), bw.Polynomial(3), bw.Fixed())
    np.testing.assert_allclose(result.coef / scale ** np.arange(4.0), plain.coef, rtol=1e-7)


@pytest.mark.parametrize("scale", [10, 1_000, CAPACITY])
def test_the_wrong_optimum_case_is_solved_right_in_a_custom_basis(scale: int) -> None:
    def cubic(states: np.ndarray) -> np.ndarray:
        return (states / scale) ** np.arange(4)

    queue = bw.problems.single_queue(capacity=CAPACITY)
    result = bw.solve(queue, bw.Custom(cubic), bw.Fixed())
    assert result.objective == pytest.approx(TRUE_OBJECTIVE, abs=1e-6)


def test_the_trap_is_still_there() -> None:
    """A solver given the matrix as it stands says "optimal" and is wrong by a third."""
    model = queue_on_scale(CAPACITY)
    features = bw.Polynomial(3)(model.states)
    rows = features[model.pair_state] - model.discount * (model.transition @ features)
    naive = linprog(
        -(features.T @ model.initial), A_ub=rows, b_ub=model.cost, bounds=(None, None),
        method="highs",
    )  # fmt: skip
    assert naive.status == 0
    assert -naive.fun == pytest.approx(238.76, abs=0.01)


def test_service_rates_tie_at_one_job_and_the_tie_is_decided() -> None:
    """With decay 0.9, rates 0.2 and 0.4 tie at x = 1; dual mass and order both say 0.2."""
    queue = bw.problems.single_queue(initial="empty")
    weights = bw.problems.single_queue().initial
    result = bw.solve(queue, bw.Polynomial(3), bw.Fixed(weights))
    values = bw.Polynomial(3)(queue.states) @ result.coef
    pairs = slice(queue.pair_start[1], queue.pair_start[2])
    quality = (queue.cost + queue.discount * (queue.transition @ values))[pairs]
    assert abs(quality[1] - quality[2]) <= 1e-10 * abs(quality[1])
    assert quality[[0, 3, 4]].min() > quality[1] + 1.0
    assert result.policy.action(1) == 1
    assert queue.label(1) == "rate 0.2"
    # The tie alone moves the cost from an empty system by about 12.
    actions = np.array([result.policy.action(x) for x in range(queue.n_states)])
    other = actions.copy()
    other[1] = 2
    costs = [bw.exact.policy_value(queue, bw.TablePolicy(a), 343)[0] for a in (actions, other)]
    assert abs(costs[0] - costs[1]) == pytest.approx(12.0, abs=1.0)


def test_optimal_cost_of_the_empty_queue() -> None:
    queue = bw.problems.single_queue(initial="empty")
    best = bw.exact.optimal(queue)
    assert bw.exact.policy_value(queue, best.policy, 343)[0] == pytest.approx(117.1, abs=0.05)
    assert best.values[0] == pytest.approx(117.2, abs=0.05)


def test_two_states_in_closed_form(two_states: bw.TabularModel) -> None:
    """Staying in the cheap state costs nothing; moving there once costs 1."""
    best = bw.exact.optimal(two_states)
    np.testing.assert_allclose(best.values, [0.0, 1.0], rtol=0.0, atol=1e-15)
    assert [best.policy.action(x) for x in (0, 1)] == [0, 1]
    result = bw.solve(two_states, bw.Affine(), bw.PIA())
    np.testing.assert_allclose(result.coef, [0.0, 1.0], rtol=0.0, atol=1e-14)
    assert result.cost.mean == pytest.approx(0.75, rel=1e-14)
    # Occupancy: 0.75 * (1 - 0.5) in the dear state, where one step is spent.
    np.testing.assert_allclose(result.weights, [0.625, 0.375], rtol=1e-14)


def test_putermans_two_state_example() -> None:
    """Puterman, Markov Decision Processes, section 3.1: rewards, v* = (-60/7, -20)."""
    model = bw.TabularModel.from_pairs(
        cost=[5.0, 10.0, -1.0],
        transition=[[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]],
        pair_state=[0, 0, 1],
        pair_action=[0, 1, 0],
        discount=0.95,
        initial=[1.0, 0.0],
        sense="max",
    )
    found = bw.exact.optimal(model)
    np.testing.assert_allclose(-found.values, [-60.0 / 7.0, -20.0], rtol=1e-13)
    assert found.policy.action(0) == 0
    result = bw.solve(model, bw.Indicator(), bw.Fixed("uniform"))
    np.testing.assert_allclose(-result.coef, [-60.0 / 7.0, -20.0], rtol=1e-12)


@pytest.mark.parametrize(("price", "wear"), [(5.0, 1.0), (40.0, 2.0), (1.0, 10.0)])
def test_machine_replacement(price: float, wear: float) -> None:
    """A machine of age x costs wear * x per period and ages; replacing it costs `price`.

    Replacing at age m costs (sum of discount^x wear x over x < m + discount^m price) / (1 -
    discount^(m + 1)) in all; the best m gives the optimal value of a new machine.
    """
    ages, discount = 30, 0.9
    keep = np.eye(ages, k=1)
    keep[-1, -1] = 1.0
    replace = np.zeros((ages, ages))
    replace[:, 0] = 1.0
    cost = np.column_stack([wear * np.arange(ages), np.full(ages, price)])
    model = bw.TabularModel.from_arrays(cost, [keep, replace], discount, np.eye(ages)[0])
    age = np.arange(ages)
    running = np.concatenate([[0.0], np.cumsum(discount**age * wear * age)])[:ages]
    of_limit = (running + discount**age * price) / (1.0 - discount ** (age + 1.0))
    best = bw.exact.optimal(model)
    limit = int(np.argmin(of_limit))
    assert best.values[0] == pytest.approx(of_limit[limit], rel=1e-12)
    assert [best.policy.action(int(x)) for x in age[:-1]] == [int(x >= limit) for x in age[:-1]]


@given(model=strategies.models())
def test_quantecon_finds_the_same_values(model: bw.TabularModel) -> None:
    # Here, not above: workers that compile it at the same moment spoil its cache for each other.
    from quantecon.markov import DiscreteDP

    other = DiscreteDP(
        -model.cost, model.transition.toarray(), model.discount, model.pair_state,
        model.pair_action,
    ).solve(method="policy_iteration")  # fmt: skip
    found = bw.exact.optimal(model).values
    np.testing.assert_allclose(found, -other.v, rtol=0.0, atol=1e-10 * reference.cost_scale(model))


def test_indicators_of_states_that_are_hardly_ever_the_first_are_solved() -> None:
    """Weights go down to 1e-24: the solver takes what is below its tolerance for nothing."""
    queue = bw.problems.single_queue(capacity=499, initial="geometric")
    result = bw.solve(queue, bw.Indicator(), bw.Fixed("initial"), judge=False)
    assert result.status is bw.Status.CONVERGED
    best = float(queue.initial @ bw.exact.optimal(queue).values)
    assert result.history[0].objective == pytest.approx(best, rel=1e-11)
