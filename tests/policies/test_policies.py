"""Policies: the softmax of the dual, greedy ties, tables, the normalised dual, acting."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import bellweight as bw
from bellweight.common.doubled import doubled
from bellweight.policies import greedy_actions
from bellweight.program import AllRows

scales = st.floats(-3.0, 3.0).map(lambda power: 10.0**power)


def dual_on(model: bw.TabularModel, values: np.ndarray) -> bw.policies.Support:
    used = np.flatnonzero(values > 0.0)
    return bw.policies.Support(model.pair_state[used], model.pair_action[used], values[used])


def random_dual(rng: np.random.Generator, model: bw.TabularModel) -> np.ndarray:
    values = rng.exponential(size=model.n_pairs) * 10.0 ** rng.uniform(-4.0, 1.0, model.n_pairs)
    return np.where(rng.random(model.n_pairs) < 0.4, 0.0, values)


def naive_softmax(
    model: bw.TabularModel, dual: np.ndarray, target: np.ndarray, temperature: float, mass: float
) -> np.ndarray:
    """The formula of eq. target_guided_softmax_policy, as it stands, in 60 digits."""
    wanted = np.zeros(model.n_pairs)
    with localcontext(prec=60, Emax=10**9, Emin=-(10**9)):
        for x in range(model.n_states):
            pairs = range(model.pair_start[x], model.pair_start[x + 1])
            duals = [Decimal(float(dual[i])) for i in pairs]
            powers = [(value / Decimal(temperature)).exp() for value in duals]
            share = sum(duals) / (sum(duals) + Decimal(mass))
            for i, power in zip(pairs, powers, strict=True):
                softmax = power / sum(powers)
                wanted[i] = float(share * softmax + (1 - share) * Decimal(float(target[i])))
    return wanted


@given(model=strategies.models(), data=st.data(), temperature=scales, mass=scales)
def test_softmax_equals_its_formula(
    model: bw.TabularModel, data: st.DataObject, temperature: float, mass: float
) -> None:
    target = data.draw(strategies.policies_for(model))
    dual = random_dual(np.random.default_rng(data.draw(strategies.seeds)), model)
    policy = bw.policies.DualSoftmax(dual_on(model, dual), target, temperature, mass)
    found = policy.probabilities(model)
    wanted = naive_softmax(model, dual, target.probabilities(model), temperature, mass)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@given(model=strategies.models(), data=st.data(), temperature=scales, mass=scales)
def test_softmax_obeys_its_lipschitz_bound(
    model: bw.TabularModel, data: st.DataObject, temperature: float, mass: float
) -> None:
    """Lemma L_Lipschitz_policy: L_p = 1 / (2 temperature) + 2 / smoothing_mass."""
    target = data.draw(strategies.policies_for(model))
    rng = np.random.default_rng(data.draw(strategies.seeds))
    first = random_dual(rng, model)
    nearby = data.draw(st.booleans())
    second = first * rng.uniform(0.9, 1.1, model.n_pairs) if nearby else random_dual(rng, model)
    one, two = (
        bw.policies.DualSoftmax(dual_on(model, dual), target, temperature, mass).probabilities(
            model
        )
        for dual in (first, second)
    )
    bound = 1.0 / (2.0 * temperature) + 2.0 / mass
    starts = model.pair_start[:-1]
    moved = np.add.reduceat(np.abs(one - two), starts)
    distance = np.add.reduceat(np.abs(first - second), starts)
    assert (moved <= bound * distance + 1e-12).all()


@pytest.mark.parametrize("ratio", [1e3, 1e6, 1e12])
def test_softmax_does_not_overflow(two_states: bw.TabularModel, ratio: float) -> None:
    dual = dual_on(two_states, np.array([1.0, 2.0, 0.0, 1.0]))
    policy = bw.policies.DualSoftmax(
        dual, bw.Uniform(), temperature=1.0 / ratio, smoothing_mass=1.0
    )
    found = policy.probabilities(two_states)
    # All of the softmax share on the larger dual: 3/4 and 1/2 of the mass, the rest uniform.
    np.testing.assert_allclose(found, [0.125, 0.875, 0.25, 0.75], rtol=1e-12)


def test_softmax_without_dual_mass_is_the_target(small_queue: bw.TabularModel) -> None:
    nothing = dual_on(small_queue, np.zeros(small_queue.n_pairs))
    policy = bw.policies.DualSoftmax(nothing, bw.Uniform(), 0.1, 0.1)
    assert (policy.probabilities(small_queue) == 0.2).all()


@given(model=strategies.models(), data=st.data())
def test_normalised_dual_divides_by_the_mass_of_the_state(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    elsewhere = data.draw(strategies.policies_for(model))
    dual = random_dual(np.random.default_rng(data.draw(strategies.seeds)), model)
    found = bw.policies.DualPolicy(dual_on(model, dual), elsewhere).probabilities(model)
    mass = np.add.reduceat(dual, model.pair_start[:-1])[model.pair_state]
    np.testing.assert_allclose(found * mass, dual, rtol=1e-14)
    assert np.array_equal(found[mass == 0.0], elsewhere.probabilities(model)[mass == 0.0])


@given(model=strategies.models(), data=st.data())
def test_greedy_takes_the_least_and_decides_ties_by_dual_then_action(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(strategies.seeds))
    values = rng.integers(-3, 4, size=model.n_states).astype(float)
    # Few distinct masses, so that masses tie as well.
    dual = rng.integers(0, 3, size=model.n_pairs) / 7.0
    chosen = greedy_actions(model, values, dual)
    quality, least = reference.greedy_quality(model, values)
    edge = 1e-11 * reference.cost_scale(model)
    for x in range(model.n_states):
        pairs = np.arange(model.pair_start[x], model.pair_start[x + 1])
        tied = pairs[quality[pairs] <= least[x] + edge]
        heaviest = tied[dual[tied] == dual[tied].max()]
        assert chosen[x] == model.pair_action[heaviest].min()


def test_equal_dual_masses_that_differ_by_rounding_go_to_the_lowest_action() -> None:
    model = bw.TabularModel.from_arrays([[2.0, 2.0, 2.0]], np.ones((3, 1, 1)), 0.75, [1.0])
    mass = np.array([4.0 / 3.0, np.nextafter(4.0 / 3.0, 2.0), 1.0])
    assert greedy_actions(model, np.zeros(1), mass) == [0]
    assert greedy_actions(model, np.zeros(1), np.array([0.0, 1e-12, 0.0])) == [1]


def test_ties_are_seen_where_values_cancel() -> None:
    """Both actions are worth 0.1 + 0.9 * (0.7 * 3 - 0.3 * 7) = 0.1, up to rounding."""
    cost = [[0.1, 0.1], [0.0, 0.0], [0.0, 0.0]]
    first = [[0.0, 0.7, 0.3], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    second = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    model = bw.TabularModel.from_arrays(cost, [first, second], 0.9, [1.0, 0.0, 0.0])
    values = np.array([0.0, 3.0e9, -7.0e9])
    assert abs(0.7 * values[1] + 0.3 * values[2]) < 1e-5
    assert greedy_actions(model, values)[0] == 0


def test_table_of_actions_and_table_of_probabilities_agree(two_states: bw.TabularModel) -> None:
    actions, matrix = bw.TablePolicy([1, 0]), bw.TablePolicy([[0.0, 1.0], [1.0, 0.0]])
    wanted = [0.0, 1.0, 1.0, 0.0]
    assert np.array_equal(actions.probabilities(two_states), wanted)
    assert np.array_equal(matrix.probabilities(two_states), wanted)


def test_uniform_counts_only_admissible_actions() -> None:
    model = bw.TabularModel.from_arrays(
        np.zeros((2, 3)),
        np.array([np.eye(2)] * 3),
        0.5,
        [1.0, 0.0],
        admissible=np.array([[True, False, True], [False, True, False]]),
    )
    assert np.array_equal(bw.Uniform().probabilities(model), [0.5, 0.5, 1.0])
    assert model.admissible_actions(0).tolist() == [0, 2]


def test_action_draws_with_the_policys_frequencies(two_states: bw.TabularModel) -> None:
    policy = bw.TablePolicy([[0.3, 0.7], [0.0, 1.0]]).on(two_states)
    rng = np.random.default_rng(1)
    drawn = [policy.action(0, rng) for _ in range(4_000)]
    # Four standard deviations of a binomial share: 4 * sqrt(0.21 / 4000) = 0.029.
    assert abs(np.mean(drawn) - 0.7) < 0.029
    assert policy.action(1) == 1


def test_action_of_a_randomised_policy_needs_a_generator(two_states: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.PolicyError, match=r"state 0 \(cheap\).*np.random.default_rng"):
        bw.Uniform().on(two_states).action(0)


def test_an_unbound_policy_says_that_it_needs_its_model() -> None:
    with pytest.raises(bw.errors.PolicyError, match=r"needs its model.*policy\.on\(model\)"):
        bw.Uniform().action(0)


@pytest.mark.parametrize("state", [-1, 31, 1.5, True, "0"])
def test_policies_refuse_states_that_do_not_exist(
    small_queue: bw.TabularModel, state: object
) -> None:
    greedy = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed()).policy
    loose = bw.TablePolicy(np.zeros(31, dtype=int))
    for policy in (greedy, loose):
        with pytest.raises(bw.errors.PolicyError, match=r"state.*expected.*0 to 30"):
            policy.action(state)
    with pytest.raises(bw.errors.ModelError, match=r"state.*0 to 30"):
        loose.on(small_queue).action(state)


def test_greedy_policy_rebinds_to_another_model(small_queue: bw.TabularModel) -> None:
    policy = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed()).policy
    dearer = bw.problems.single_queue(capacity=30, discount=0.95, service_cost=1e6)
    assert any(policy.action(x) > 0 for x in range(31))
    rebound = policy.on(dearer)
    assert [rebound.action(x) for x in range(31)] == [0] * 31
    # Used on a model it is not bound to, a policy is computed anew as well.
    assert np.array_equal(policy.probabilities(dearer), rebound.probabilities(dearer))


def test_a_policy_is_bound_to_a_model_before_anything_else_is_asked_for() -> None:
    # Names are loaded when they are asked for; acting needs the model's backend.
    program = (
        "import bellweight as bw; queue = bw.problems.single_queue(capacity=5); "
        "print(bw.TablePolicy([1, 0, 1, 0, 1, 0]).on(queue).action(2))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert (ended.stdout.strip(), ended.stderr) == ("1", "")


def test_ties_that_plain_digits_leave_open_are_decided_with_twice_the_digits() -> None:
    """Values made of terms of 1e15: what plain digits find depends on the order of a sum."""
    model = bw.problems.single_queue(capacity=4_999, initial="reverse")
    rows = AllRows().on(model, bw.Polynomial(8))
    result = bw.solve(model, bw.Polynomial(8), bw.DIA(), judge=False)
    values, terms = rows.values_and_terms(result.coef)
    noise, rng = rows.n_basis * terms, np.random.default_rng(1)
    moved = values + np.finfo(float).eps * terms * rng.uniform(-1.0, 1.0, len(terms))

    def exact(pairs: np.ndarray) -> np.ndarray:
        return rows.exact_slacks(doubled(result.coef), pairs)

    def chosen(values: np.ndarray, **options: Any) -> np.ndarray:
        return greedy_actions(model, values, noise=noise, **options)

    assert (chosen(values) != chosen(moved)).any()
    assert (chosen(values, precise=exact) == chosen(moved, precise=exact)).all()


@pytest.mark.parametrize(("state", "action"), [(0, 2), (1, -1), (9, 0)])
def test_a_dual_outside_the_model_is_no_other_pair_s_dual(
    two_states: bw.TabularModel, state: int, action: int
) -> None:
    stray = bw.policies.Support(np.array([state]), np.array([action]), np.ones(1))
    with pytest.raises(bw.errors.PolicyError, match="pairs that the model lacks"):
        stray.over_pairs(two_states)


def test_a_state_that_the_model_lacks_lends_nothing() -> None:
    model = bw.problems.single_queue(capacity=5)
    vectors = bw.TabularModel.from_pairs(
        model.cost, model.transition, model.pair_state, model.pair_action, model.discount,
        model.initial, state_vectors=np.arange(6.0)[:, None],
    )  # fmt: skip
    stray = bw.policies.Support(np.array([[7.0]]), np.array([0]), np.ones(1))
    policy = bw.policies.DualSoftmax(stray, bw.Uniform(), 0.1, 0.1, extend=2.0)
    with pytest.raises(bw.errors.PolicyError, match="pairs that the model lacks"):
        policy.probabilities(vectors)


def test_fractions_are_no_list_of_actions() -> None:
    with pytest.raises(bw.errors.PolicyError, match="needs its model to act"):
        bw.TablePolicy([0.5, 1.0]).action(0)
