"""The approximate linear program on random models: bounds, duals, objectives."""

from __future__ import annotations

import numpy as np
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import bellweight as bw
from bellweight.common import tolerances

Problem = tuple[bw.TabularModel, bw.bases.Basis, strategies.FloatArray]


def solved(problem: Problem) -> bw.Result:
    model, basis, weights = problem
    return bw.solve(model, basis, bw.Fixed(weights), judge=False)


@given(problem=strategies.problems())
def test_every_program_is_solved_and_passes_its_audit(problem: Problem) -> None:
    result = solved(problem)
    assert result.history[0].dual_residual <= tolerances.DUAL
    # Coefficients in double precision cannot carry an objective this much smaller than its terms.
    terms = float(np.abs(result.moments) @ np.abs(result.coef))
    if abs(result.objective) > 1e-5 * terms or result.objective == 0.0:
        assert result.status is bw.Status.CONVERGED
        assert result.audit.passed


@given(problem=strategies.problems())
def test_approximate_value_never_exceeds_optimal_value(problem: Problem) -> None:
    model, basis, _ = problem
    result = solved(problem)
    values = reference.features_of(model, basis) @ result.coef
    # A violation v of the rows lifts the values by at most v / (1 - discount).
    allowance = result.audit.violation / (1.0 - model.discount)
    rounding = 1e-11 * reference.cost_scale(model)
    assert (values <= reference.value_iteration(model) + allowance + rounding).all()


@given(problem=strategies.problems())
def test_audit_violation_is_the_largest_violation_of_all_rows(problem: Problem) -> None:
    model, basis, _ = problem
    result = solved(problem)
    values = reference.features_of(model, basis) @ result.coef
    largest = max(0.0, -float(reference.residuals(model, values).min()))
    assert abs(result.audit.violation - largest) <= 1e-12 * reference.cost_scale(model)


@given(problem=strategies.problems())
def test_dual_is_non_negative_with_mass_one_over_one_minus_discount(problem: Problem) -> None:
    model = problem[0]
    dual = solved(problem).dual
    assert dual is not None
    assert (dual >= 0.0).all()
    assert abs(dual.sum() * (1.0 - model.discount) - 1.0) <= 1e-9


@given(problem=strategies.problems())
def test_dual_reproduces_the_moments(problem: Problem) -> None:
    model, basis, weights = problem
    features = reference.features_of(model, basis)
    result = solved(problem)
    reached = reference.bellman_rows(model, features).T @ result.dual
    size = np.abs(features).max(axis=0) / (1.0 - model.discount)
    assert (np.abs(reached - features.T @ weights) <= 1e-9 * size).all()
    assert (np.abs(result.moments - features.T @ weights) <= 1e-12 * size).all()


@given(problem=strategies.problems())
def test_dual_support_lies_on_tight_rows_hence_on_greedy_actions(problem: Problem) -> None:
    model, basis, _ = problem
    result = solved(problem)
    values = reference.features_of(model, basis) @ result.coef
    quality, least = reference.greedy_quality(model, values)
    edge = 1e-9 * reference.cost_scale(model)
    used = np.flatnonzero(result.dual > 0.0)
    assert len(used) > 0
    assert (quality[used] - least[model.pair_state[used]] <= edge).all()
    assert (np.abs(quality[used] - values[model.pair_state[used]]) <= edge).all()
    assert np.array_equal(result.support.states, model.pair_state[used])
    assert np.array_equal(result.support.actions, model.pair_action[used])


@given(problem=strategies.problems())
def test_objective_equals_that_of_the_full_program(problem: Problem) -> None:
    model, basis, weights = problem
    objective, _ = reference.full_program(model, basis, weights)
    result = solved(problem)
    assert abs(result.objective - objective) <= 1e-8 * reference.cost_scale(model)
    assert abs(result.objective - model.cost @ result.dual) <= 1e-9 * reference.cost_scale(model)


@given(model=strategies.models(), data=st.data())
def test_indicator_basis_with_positive_weights_is_exact(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    weights = data.draw(strategies.weights_for(model, positive=True))
    result = bw.solve(model, bw.Indicator(), bw.Fixed(weights), judge=False)
    optimal = reference.value_iteration(model)
    scale = reference.cost_scale(model)
    np.testing.assert_allclose(result.coef, optimal, rtol=0.0, atol=1e-10 * scale)
    assert abs(result.objective - weights @ optimal) <= 1e-10 * scale
    greedy = reference.policy_value(model, result.policy.probabilities(model))
    np.testing.assert_allclose(greedy, optimal, rtol=0.0, atol=1e-9 * scale)


@given(model=strategies.models(max_states=8), data=st.data())
def test_upper_bounds_on_coefficients_are_respected_and_priced(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    degree = data.draw(st.integers(0, min(3, model.n_states - 1)))
    weights = data.draw(strategies.weights_for(model))
    free = bw.solve(model, bw.Polynomial(degree), bw.Fixed(weights), judge=False).coef
    # Move some of the bounds below the free answer, so that they bind.
    shift = np.array(data.draw(st.lists(st.sampled_from([-0.5, 0.0, 1.0]), min_size=degree + 1,
                                        max_size=degree + 1)))  # fmt: skip
    basis = bw.Polynomial(degree, upper=free + shift * (np.abs(free) + 1.0))
    result = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    objective, _ = reference.full_program(model, basis, weights)
    scale = reference.cost_scale(model) + np.abs(basis.upper).max()
    assert (result.coef <= basis.upper + 1e-9 * scale).all()
    assert abs(result.objective - objective) <= 1e-8 * scale


@given(problem=strategies.problems())
def test_result_fields_belong_to_one_iterate(problem: Problem) -> None:
    model, basis, weights = problem
    result = solved(problem)
    values = reference.features_of(model, basis) @ result.coef
    scale = reference.cost_scale(model)
    assert abs(result.objective - weights @ values) <= 1e-10 * scale
    assert abs(result.lower_bound - model.initial @ values) <= 1e-10 * scale
    greedy = reference.policy_value(model, result.policy.probabilities(model))
    assert abs(result.cost.mean - model.initial @ greedy) <= 1e-10 * scale
    assert np.array_equal(result.weights, weights)
    allowance = result.audit.violation / (1.0 - model.discount)
    assert result.lower_bound <= result.cost.mean + allowance + 1e-10 * scale
