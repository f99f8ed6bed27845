"""The dual beyond its own states: what states lend each other, and searches that can be skipped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import event_models as em
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

import bellweight as bw
from bellweight.common.checks import FloatArray
from bellweight.exact.occupancy import exact_occupancy
from bellweight.policies import by_state
from bellweight.weights.lipschitz import softmax_lipschitz

TEMPERATURE, SMOOTHING = 0.7, 0.4


def lent(model: bw.TabularModel, dual: FloatArray, radius: float) -> FloatArray:
    """The dual (N,) that states lend each other, written out pair by pair."""
    found = np.zeros(model.n_pairs)
    for pair in range(model.n_pairs):
        for other in range(model.n_pairs):
            here, there = model.pair_state[pair], model.pair_state[other]
            distance = float(np.abs(model.states[here] - model.states[there]).sum())
            if distance < radius and model.pair_action[pair] == model.pair_action[other]:
                found[pair] += (1.0 - distance / radius) * dual[other]
    return found


def support_of(model: bw.TabularModel, dual: FloatArray) -> bw.policies.Support:
    used = np.flatnonzero(dual > 0.0)
    return bw.policies.Support(model.pair_state[used], model.pair_action[used], dual[used])


def random_dual(model: bw.TabularModel, seed: int, share: float = 0.3) -> FloatArray:
    rng = np.random.default_rng(seed)
    dual = np.where(rng.random(model.n_pairs) < share, rng.exponential(size=model.n_pairs), 0.0)
    dual[seed % model.n_pairs] = 1.0
    return dual


def softmax(dual: bw.policies.Support, radius: float | None) -> bw.policies.DualSoftmax:
    return bw.policies.DualSoftmax(dual, bw.Uniform(), TEMPERATURE, SMOOTHING, extend=radius)


@given(model=strategies.models(), seed=st.integers(0, 99), radius=st.sampled_from([0.5, 1.5, 4.0]))
def test_lent_mass_is_the_weighted_sum_over_nearby_states(
    model: bw.TabularModel, seed: int, radius: float
) -> None:
    dual = random_dual(model, seed)
    found = softmax(support_of(model, dual), radius).extended_dual(model).over_pairs(model)
    np.testing.assert_allclose(found, lent(model, dual, radius), rtol=1e-12, atol=1e-14)


@given(model=strategies.models(), seed=st.integers(0, 99))
def test_a_radius_within_which_nobody_else_lives_changes_nothing(
    model: bw.TabularModel, seed: int
) -> None:
    dual = support_of(model, random_dual(model, seed))
    near, plain = (softmax(dual, radius).probabilities(model) for radius in (0.9, None))
    np.testing.assert_allclose(near, plain, rtol=1e-12, atol=1e-14)


@given(model=strategies.models(), seed=st.integers(0, 99), radius=st.sampled_from([1.5, 3.0, 50.0]))
def test_the_lemma_holds_for_lent_duals_with_the_same_constant(
    model: bw.TabularModel, seed: int, radius: float
) -> None:
    """The policy of every state moves by at most L_p times the 1-norm of the dual's change."""
    duals = [random_dual(model, seed), random_dual(model, seed + 100)]
    chances = [softmax(support_of(model, dual), radius).probabilities(model) for dual in duals]
    moved = by_state(model, np.abs(chances[0] - chances[1]))
    change = float(np.abs(duals[0] - duals[1]).sum())
    assert moved.max() <= softmax_lipschitz(TEMPERATURE, SMOOTHING) * change + 1e-12


def test_dia_with_a_radius_speaks_on_more_visits() -> None:
    model = em.network()
    rows = bw.SampledRows(bw.sample_states(model, 60, seed=3))
    shares = []
    for radius in (None, 2.5, 6.0):
        method = bw.DIA(extend=radius)
        found = bw.solve(
            model, bw.Affine(), method, rows=rows, simulation=bw.Simulation(500), regularisation=1.0
        )
        share = found.reported.dual_share
        assert share is not None
        shares.append(share)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.9


def test_the_share_of_an_enumerated_model_counts_lent_mass(queue: bw.TabularModel) -> None:
    found = bw.solve(queue, bw.Polynomial(2), bw.DIA(extend=10.0))
    policy = bw.policies.DualSoftmax(found.support, bw.Uniform(), 0.1, 0.1, extend=10.0)
    occupancy = exact_occupancy(queue, policy)
    assert occupancy.weights is not None
    reached = by_state(queue, lent(queue, found.support.over_pairs(queue), 10.0)) > 0.0
    assert found.reported.dual_share == pytest.approx(occupancy.weights[reached].sum(), rel=1e-9)


def test_a_certificate_of_a_lent_policy_can_be_verified(small_queue: bw.TabularModel) -> None:
    found = bw.solve(small_queue, bw.Polynomial(1), bw.DIA(extend=3.0))
    policy = bw.policies.DualSoftmax(found.support, bw.Uniform(), 0.1, 0.1, extend=3.0)
    certificate = bw.certify(small_queue, found, policy=policy)
    assert bw.verify(small_queue, certificate).passed


def test_certified_settings_stay_certified_with_a_radius(small_queue: bw.TabularModel) -> None:
    settings = bw.DIA.certified(lipschitz=2.0, discount=small_queue.discount)
    assert replace(settings, extend=2.0).mode == "certified"


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), "near"])
def test_a_bad_radius_is_refused(radius: Any) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="extend"):
        bw.DIA(extend=radius)


def test_a_linear_model_has_no_nearby_states_to_lend() -> None:
    model = bw.problems.scheduling("tiny")
    with pytest.raises(bw.errors.PolicyError, match="linear model"):
        bw.solve(model, bw.Affine(), bw.DIA(extend=2.0), simulation=bw.Simulation(10))


def test_lent_actions_need_a_generator_only_where_mass_reaches() -> None:
    model = em.network()
    dual = bw.policies.Support(np.array([[1, 0, 0, 0]]), np.array([2]), np.array([1.0]))
    greedy = bw.Greedy(bw.Affine(), np.arange(5.0))
    policy = bw.policies.DualSoftmax(dual, greedy, 0.1, 0.1, extend=1.5).on(model)
    assert policy.action([4, 4, 4, 4]) == greedy.on(model).action([4, 4, 4, 4])
    with pytest.raises(bw.errors.PolicyError, match="at random"):
        policy.action([2, 0, 0, 0])
    assert policy.action([2, 0, 0, 0], np.random.default_rng(0)) in range(4)


@given(problem=strategies.problems(max_states=8), delta=st.sampled_from([0.0, 0.5]))
def test_the_action_of_most_dual_mass_is_greedy(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray], delta: float
) -> None:
    """By complementary slackness; with a regularisation because its row is the most violated."""
    model, basis, weights = problem
    if isinstance(basis, bw.Indicator):
        delta = 0.0
    found = bw.solve(model, basis, bw.Fixed(weights), regularisation=delta, judge=False)
    features = found.basis.on(model.states)(model.states)
    ahead = model.cost + model.discount * (model.transition @ np.asarray(features @ found.coef))
    best = np.minimum.reduceat(ahead, model.pair_start[:-1])[model.pair_state]
    dual = found.support.over_pairs(model)
    most = np.maximum.reduceat(dual, model.pair_start[:-1])[model.pair_state]
    known = (dual > 0.0) & (dual == most)
    assert known.any()
    assert (ahead <= best + 1e-7 * (np.abs(ahead).max() + 1e-300))[known].all()
