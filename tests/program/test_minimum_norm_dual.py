"""The minimum-norm dual against the paper's two steps over all rows, solved independently."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st

import bellweight as bw


def assert_same_dual(model: bw.TabularModel, basis: bw.bases.Basis, weights: np.ndarray) -> None:
    result = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    wanted, _ = reference.two_step_dual(model, basis, weights)
    mass = 1.0 / (1.0 - model.discount)
    assert result.status is bw.Status.CONVERGED
    np.testing.assert_allclose(result.dual, wanted, rtol=0.0, atol=2e-6 * mass)
    # Of two optimal duals the shorter one is right: ours must not be the longer.
    assert np.linalg.norm(result.dual) <= np.linalg.norm(wanted) + 1e-6 * mass


@given(problem=strategies.problems(max_states=8))
def test_agrees_with_the_two_step_program(problem: tuple) -> None:
    assert_same_dual(*problem)


@given(model=strategies.degenerate_models(), data=st.data())
def test_agrees_where_several_duals_are_optimal(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    distinct = len(np.unique(model.states))
    basis = bw.Polynomial(data.draw(st.integers(0, min(3, distinct - 1))))
    weights = data.draw(strategies.weights_for(model))
    assert_same_dual(model, basis, weights)


@given(model=strategies.models(max_states=6), data=st.data())
def test_duplicate_actions_share_the_dual_equally(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    doubled = strategies.with_duplicate_actions(model)
    basis = data.draw(strategies.bases_for(model))
    weights = data.draw(strategies.weights_for(model))
    single = bw.solve(model, basis, bw.Fixed(weights), judge=False).dual
    double = bw.solve(doubled, basis, bw.Fixed(weights), judge=False).dual
    by_pair = {
        (int(x), int(a)): double[i]
        for i, (x, a) in enumerate(zip(doubled.pair_state, doubled.pair_action, strict=True))
    }
    mass = 1.0 / (1.0 - model.discount)
    for i, (x, a) in enumerate(zip(model.pair_state, model.pair_action, strict=True)):
        first, second = by_pair[int(x), 2 * int(a)], by_pair[int(x), 2 * int(a) + 1]
        assert abs(first - second) <= 1e-9 * mass
        assert abs(first + second - single[i]) <= 1e-7 * mass


@given(model=strategies.models(max_states=6), data=st.data())
def test_agrees_with_active_coefficient_bounds(model: bw.TabularModel, data: st.DataObject) -> None:
    assume(model.cost.any())
    degree = data.draw(st.integers(1, min(3, model.n_states - 1)))
    weights = data.draw(strategies.weights_for(model))
    free = bw.solve(model, bw.Polynomial(degree), bw.Fixed(weights), judge=False).coef
    which = data.draw(st.integers(0, degree))
    margin = data.draw(st.sampled_from([0.1, 1.0]))
    lower, upper = np.full(degree + 1, -np.inf), np.full(degree + 1, np.inf)
    if which == 0:
        upper[0] = free[0] - margin * reference.cost_scale(model)
    else:  # a steeper slope than wanted; the constant can always make up for it
        lower[which] = free[which] + margin * np.abs(model.cost).max()
    basis = bw.Polynomial(degree, lower=lower, upper=upper)
    result = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    bound = lower[which] if which else upper[which]
    assume(abs(result.coef[which] - bound) <= 1e-9 * (1.0 + abs(bound)))
    wanted, _ = reference.two_step_dual(model, basis, weights)
    mass = 1.0 / (1.0 - model.discount)
    np.testing.assert_allclose(result.dual, wanted, rtol=0.0, atol=2e-6 * mass)


def test_one_state_with_three_equal_actions_splits_in_three() -> None:
    model = bw.TabularModel.from_arrays([[2.0, 2.0, 2.0]], np.ones((3, 1, 1)), 0.75, [1.0])
    dual = bw.solve(model, bw.Polynomial(0), bw.Fixed()).dual
    np.testing.assert_allclose(dual, np.full(3, 4.0 / 3.0), rtol=1e-12)


def test_a_bound_that_carries_everything_leaves_a_dual_of_zero() -> None:
    model = bw.TabularModel.from_arrays([[2.0, 3.0]], np.ones((2, 1, 1)), 0.75, [1.0])
    result = bw.solve(model, bw.Polynomial(0, upper=1.0), bw.Fixed())
    assert result.coef == [1.0]
    assert (result.dual == 0.0).all()
    assert len(result.support.states) == 0


def test_an_equation_far_below_the_others_is_satisfied() -> None:
    """Weights on a group are 4e-7 of all, and three equal rows share what the others carry."""
    model = bw.TabularModel.from_pairs(
        np.array([-1.0, -1.0, -1.0, 0.0]),
        np.vstack([np.eye(2)[[0, 0, 0]], [[2 / 3, 1 / 3]]]),
        np.array([0, 0, 0, 1]),
        np.array([0, 1, 2, 0]),
        0.999,
        np.array([1.0, 0.0]),
    )
    small = 3.8e-7
    weights = bw.Fixed(np.array([1.0 - small, small]))
    result = bw.solve(model, bw.Indicator(), weights, judge=False)
    assert result.status is bw.Status.CONVERGED
    assert result.dual[3] == pytest.approx(small / 0.667, rel=1e-7)


def test_rows_that_only_seem_tight_are_told_from_tight_ones() -> None:
    # Twenty rows are tight in plain digits, six of them truly.
    queue = bw.problems.single_queue(initial="reverse")
    result = bw.solve(queue, bw.Polynomial(5), bw.Fixed("initial"), judge=False)
    assert result.status is bw.Status.CONVERGED
    assert len(result.support.values) == 6
    costs = [queue.cost[k] for k in np.flatnonzero(result.dual)]
    assert result.dual[result.dual > 0.0] @ costs == pytest.approx(result.objective, rel=1e-9)


@pytest.mark.parametrize("degree", [6, 7])
def test_no_row_is_violated_by_more_than_the_rounding_of_coefficients(degree: int) -> None:
    # The terms of a row are 1e13 times its cost: in plain digits other vertices seem feasible, too.
    queue = bw.problems.single_queue(initial="reverse")
    result = bw.solve(queue, bw.Polynomial(degree), bw.Fixed("initial"), judge=False)
    assert result.status is bw.Status.CONVERGED
    assert len(result.support.values) == degree + 1
    assert result.dual @ queue.cost == pytest.approx(result.objective, rel=1e-12)
