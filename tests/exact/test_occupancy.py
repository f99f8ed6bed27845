"""Exact occupancies, optimal values and policy values against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import bellweight as bw
from bellweight.common import tolerances
from bellweight.exact.chain import Chain, MixedChain, mixed_rows
from bellweight.exact.occupancy import exact_occupancy


@given(model=strategies.models(), data=st.data())
def test_occupancy_is_a_distribution_that_balances_flow(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    policy = data.draw(strategies.policies_for(model))
    found = exact_occupancy(model, policy)
    matrix, _ = reference.policy_matrix(model, policy.probabilities(model))
    inflow = (1.0 - model.discount) * model.initial
    balance = inflow + model.discount * (matrix.T @ found.weights) - found.weights
    assert np.abs(balance).sum() <= tolerances.FLOW_BALANCE == 1e-10
    assert found.residual <= tolerances.FLOW_BALANCE
    assert (found.weights >= 0.0).all()
    assert abs(found.weights.sum() - 1.0) <= 1e-12
    wanted = reference.occupancy(model, policy.probabilities(model))
    np.testing.assert_allclose(found.weights, wanted, rtol=0.0, atol=1e-12)


@given(model=strategies.models(), data=st.data())
def test_occupancy_from_another_start(model: bw.TabularModel, data: st.DataObject) -> None:
    start = data.draw(strategies.weights_for(model))
    found = exact_occupancy(model, bw.Uniform(), initial=start)
    wanted = reference.occupancy(model, bw.Uniform().probabilities(model), initial=start)
    np.testing.assert_allclose(found.weights, wanted, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("route", ["elimination", "iteration", "elimination after iteration"])
def test_every_route_through_the_chain_solver_gives_the_same(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    matrix = np.array([strategies.random_row(rng, 40, x) for x in range(40)])
    if route != "elimination":
        for name in ("_QUICK_PASSES", "_CHEAP_PASSES"):
            monkeypatch.setattr(f"bellweight.exact.chain.{name}", -1)
    if route == "iteration":
        monkeypatch.setattr("bellweight.exact.elimination._MAX_ENTRIES", 0)
    chain = Chain(sparse.csr_array(matrix), 0.97)
    cost, start = rng.normal(size=40), strategies.random_distribution(rng, 40)
    inverse = np.linalg.inv(np.eye(40) - 0.97 * matrix)
    np.testing.assert_allclose(chain.values(cost), inverse @ cost, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(
        chain.occupancy(start), 0.03 * (start @ inverse), rtol=0.0, atol=1e-13
    )


@pytest.mark.parametrize("few_passes", [100_000, 0])
def test_a_mixture_needs_no_matrix_and_gives_the_same(
    few_passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    rows = np.array([strategies.random_row(rng, 40, x // 3) for x in range(120)])
    model = bw.TabularModel.from_pairs(
        rng.random(120), rows, np.repeat(np.arange(40), 3), np.tile(np.arange(3), 40), 0.97,
        strategies.random_distribution(rng, 40),
    )  # fmt: skip
    chances = rng.random(model.n_pairs)
    chances /= np.add.reduceat(chances, model.pair_start[:-1])[model.pair_state]
    monkeypatch.setattr("bellweight.exact.chain._FEW_PASSES", few_passes)
    mixed, plain = MixedChain(model, chances), Chain(mixed_rows(model, chances), model.discount)
    cost = rng.normal(size=40)
    np.testing.assert_allclose(mixed.values(cost), plain.values(cost), rtol=0.0, atol=1e-11)
    found = mixed.occupancy(model.initial)
    np.testing.assert_allclose(found, plain.occupancy(model.initial), rtol=0.0, atol=1e-13)
    assert ("transition" in mixed.__dict__) == (few_passes == 0)


@given(model=strategies.models())
def test_optimal_values_match_value_iteration(model: bw.TabularModel) -> None:
    found = bw.exact.optimal(model)
    scale = reference.cost_scale(model)
    wanted = reference.value_iteration(model)
    np.testing.assert_allclose(found.values, wanted, rtol=0.0, atol=1e-11 * scale)
    chances = found.policy.probabilities(model)
    np.testing.assert_allclose(
        reference.policy_value(model, chances), wanted, rtol=0.0, atol=1e-11 * scale
    )
    assert found.residual <= 1e-11 * scale


@settings(max_examples=30)
@given(model=strategies.models(max_states=5, max_actions=3))
def test_optimal_values_match_the_best_of_all_policies(model: bw.TabularModel) -> None:
    found = bw.exact.optimal(model)
    best = reference.best_of_all_policies(model)
    np.testing.assert_allclose(
        found.values, best, rtol=0.0, atol=1e-11 * reference.cost_scale(model)
    )


@given(model=strategies.models(), data=st.data())
def test_policy_value_matches_a_dense_inverse(model: bw.TabularModel, data: st.DataObject) -> None:
    policy = data.draw(strategies.policies_for(model))
    wanted = reference.policy_value(model, policy.probabilities(model))
    found = bw.exact.policy_value(model, policy)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-11 * reference.cost_scale(model))


@given(model=strategies.models(), data=st.data(), horizon=st.integers(1, 40))
def test_finite_horizon_value_matches_explicit_summation(
    model: bw.TabularModel, data: st.DataObject, horizon: int
) -> None:
    policy = data.draw(strategies.policies_for(model))
    matrix, cost = reference.policy_matrix(model, policy.probabilities(model))
    wanted = sum(
        model.discount**t * np.linalg.matrix_power(matrix, t) @ cost for t in range(horizon)
    )
    found = bw.exact.policy_value(model, policy, horizon)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-11 * reference.cost_scale(model))


def test_a_long_horizon_approaches_the_infinite_one(small_queue: bw.TabularModel) -> None:
    whole = bw.exact.policy_value(small_queue, bw.Uniform())
    part = bw.exact.policy_value(small_queue, bw.Uniform(), horizon=800)
    np.testing.assert_allclose(part, whole, rtol=1e-13)
    assert (bw.exact.policy_value(small_queue, bw.Uniform(), horizon=50) < whole - 1.0).all()


def test_policy_iteration_ends_where_values_cancel_to_zero() -> None:
    """Costs of both signs make values of zero, whose rounding error has no scale of its own."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        cost = rng.integers(-1, 2, size=(5, 3)).astype(float)
        transition = np.array([[strategies.random_row(rng, 5, x) for x in range(5)]
                               for _ in range(3)])  # fmt: skip
        model = bw.TabularModel.from_arrays(cost, transition, 0.9, np.full(5, 0.2))
        found = bw.exact.optimal(model)
        wanted = reference.value_iteration(model)
        np.testing.assert_allclose(found.values, wanted, rtol=0.0, atol=1e-11)
