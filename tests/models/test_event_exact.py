"""A network small enough to enumerate: sampling and simulation against the exact answer."""

from __future__ import annotations

from functools import cache
from typing import Any

import event_models as em
import numpy as np
import pytest
from scipy import stats

import bellweight as bw
from bellweight.backends import simulated_occupancy
from bellweight.common.streams import stream_keys
from bellweight.exact.occupancy import exact_occupancy
from bellweight.models.initial import PointMass, product_moments
from bellweight.simulation import EventRollout, Task, run_blocks

QUADRATIC = bw.Polynomial(2)


@cache
def tabular() -> bw.TabularModel:
    return em.network().to_tabular()


def all_rows() -> bw.SampledRows:
    return bw.SampledRows(em.network_truth().states)


@cache
def greedy() -> bw.Greedy:
    """A sensible greedy policy with its dual."""
    return bw.solve(em.network(), QUADRATIC, bw.Fixed(), rows=all_rows()).policy


@cache
def policies() -> dict[str, bw.policies.Policy]:
    dual = greedy().dual
    assert dual is not None
    return {
        "uniform": bw.Uniform(),
        "greedy": greedy(),
        "softmax": bw.policies.DualSoftmax(dual, bw.Uniform(), 0.1, 0.1),
        "lent softmax": bw.policies.DualSoftmax(dual, bw.Uniform(), 0.1, 0.1, extend=3.5),
    }


POLICIES = ["uniform", "greedy", "softmax", "lent softmax"]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_rows_of_all_states_give_the_coefficients_of_the_enumerated_model(degree: int) -> None:
    basis = bw.Polynomial(degree)
    sampled = bw.solve(em.network(), basis, bw.Fixed("initial"), rows=all_rows())
    enumerated = bw.solve(tabular(), basis, bw.Fixed("initial"))
    assert sampled.status is bw.Status.CONVERGED
    assert np.allclose(sampled.moments, enumerated.moments, rtol=1e-12)
    assert sampled.objective == pytest.approx(enumerated.objective, rel=1e-9)
    assert np.allclose(sampled.coef, enumerated.coef, rtol=1e-6, atol=1e-7)
    dual = sampled.support.over_pairs(tabular())
    assert enumerated.dual is not None
    assert np.allclose(dual, enumerated.dual, atol=1e-7)
    assert dual.sum() == pytest.approx(10.0)
    actions = [sampled.policy.action(state) for state in em.network_truth().states]
    assert enumerated.policy.table is not None
    assert actions == enumerated.policy.table.tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_moments_lie_within_their_standard_errors(name: str) -> None:
    policy = policies()[name]
    features = np.asarray(QUADRATIC(tabular().states))
    weights = exact_occupancy(tabular(), policy).weights
    assert weights is not None
    exact = features.T @ weights
    scores = []
    # 0.9^200 is nothing: what is left is the error of simulation.
    setting = bw.Simulation(episodes=300, horizon=200)
    for seed in range(80):
        found = simulated_occupancy(em.network(), policy, QUADRATIC, setting, seed=seed, jobs=1)
        assert found.moments is not None
        assert found.standard_error is not None
        assert found.moments[0] == pytest.approx(1.0, abs=1e-12)
        scores.append((found.moments[1:] - exact[1:]) / found.standard_error[1:])
    size = np.abs(np.array(scores))
    assert (size <= 3.0).mean() > 0.985
    # Errors that are neither understated nor overstated: 68 % within one, moment by moment.
    low, high = stats.binom.ppf([1e-6, 1 - 1e-6], 80, 0.683)
    within = (size <= 1.0).sum(axis=0)
    assert (within >= low).all()
    assert (within <= high).all()


def test_missing_tail_is_made_up_for_and_reported() -> None:
    setting = bw.Simulation(episodes=4_000, horizon=30)
    found = simulated_occupancy(em.network(), bw.Uniform(), bw.Affine(), setting, seed=1)
    assert found.moments is not None
    assert found.moments[0] == pytest.approx(1.0, abs=1e-12)
    assert found.tail_mass == pytest.approx(0.9**30)
    default = simulated_occupancy(em.network(), bw.Uniform(), bw.Affine(), seed=1)
    assert default.tail_mass < 1e-3


def test_share_of_visits_with_dual_mass() -> None:
    policy = policies()["softmax"]
    assert isinstance(policy, bw.policies.DualSoftmax)
    weights = exact_occupancy(tabular(), policy).weights
    assert weights is not None
    exact = weights[np.unique(policy.dual.indices(tabular()))].sum()
    setting = bw.Simulation(episodes=4_000, horizon=100)
    found = simulated_occupancy(em.network(), policy, bw.Affine(), setting, seed=2)
    assert found.dual_share == pytest.approx(exact, abs=0.02)
    assert 0.02 < exact < 0.98
    # A policy that does not look at the dual does not know: that is not a share of zero.
    other = simulated_occupancy(em.network(), bw.Uniform(), bw.Affine(), setting, seed=2)
    assert other.dual_share is None


@pytest.mark.parametrize("name", POLICIES)
def test_intervals_cover_the_exact_cost_as_often_as_they_claim(name: str) -> None:
    policy = policies()[name]
    exact = float(tabular().initial @ bw.exact.policy_value(tabular(), policy, 60))
    runs = 300
    found = [
        bw.evaluate(em.network_as_functions(), policy, 100, horizon=60, seed=seed, jobs=1)
        for seed in range(runs)
    ]
    covered = sum(abs(one.mean - exact) <= one.half_width for one in found)
    low, high = stats.binom.ppf([1e-5, 1 - 1e-5], runs, 0.95)
    assert low <= covered <= high
    mean = np.mean([one.mean for one in found])
    error = np.std([one.mean for one in found], ddof=1) / np.sqrt(runs)
    assert abs(mean - exact) <= 5.0 * error


def test_adaptive_weights_agree_with_the_enumerated_model() -> None:
    setting = bw.Simulation(episodes=20_000, horizon=120)
    method = bw.DIA()
    sampled = bw.solve(em.network(), QUADRATIC, method, rows=all_rows(), simulation=setting, seed=3)
    enumerated = bw.solve(tabular(), QUADRATIC, method)
    assert sampled.status is bw.Status.CONVERGED
    assert sampled.moments_error is not None
    gap = np.abs(sampled.moments - enumerated.moments)[1:] / sampled.moments_error[1:]
    # Two standard errors of simulation and one of the stopping rule.
    assert gap.max() <= 4.0
    cost = float(tabular().initial @ bw.exact.policy_value(tabular(), sampled.policy))
    assert cost == pytest.approx(enumerated.cost.mean, rel=5e-3)


def test_exact_initial_moments_of_a_bounded_geometric() -> None:
    basis = bw.Polynomial(3)
    found = em.network().initial_moments(basis.words(4))
    features = np.asarray(basis(tabular().states))
    assert found is not None
    assert np.allclose(found, features.T @ tabular().initial, rtol=1e-12)


@pytest.mark.parametrize("decay", [0.01, 0.5, 0.9, 0.99])
def test_exact_initial_moments_of_an_unbounded_geometric(decay: float) -> None:
    laws = bw.models.Geometric(decay).marginals(np.array([-1, 3]))
    found = product_moments(laws, [(), (0,), (0, 0), (0, 0, 0), (1,), (0, 0, 1)])
    first = decay / (1.0 - decay)
    second = decay * (1.0 + decay) / (1.0 - decay) ** 2
    third = decay * (1.0 + 4.0 * decay + decay**2) / (1.0 - decay) ** 3
    mass = decay ** np.arange(4)
    other = float(mass @ np.arange(4) / mass.sum())
    expected = [1.0, first, second, third, other, second * other]
    assert np.allclose(found, expected, rtol=1e-12)


def test_exact_initial_moments_of_one_state() -> None:
    model, _ = em.random_grid(7, initial=(2, 1))
    found = model.initial_moments(bw.Polynomial(3).words(2))
    assert isinstance(model.initial, PointMass)
    assert found is not None
    assert np.array_equal(found, np.asarray(bw.Polynomial(3)(np.array([[2.0, 1.0]])))[0])
    assert (model.sample_initial(0, 10, np.uint64(3)) == (2, 1)).all()


def test_initial_moments_by_sampling_where_the_initial_is_a_function() -> None:
    def initial(state: Any, u: Any) -> None:
        state[0] = 1 if u[2] < 0.25 else 0
        state[1] = 1 if u[0] < 0.5 else 0

    model, written_out = em.random_grid(7, initial=initial, initial_draws=3)
    assert model.initial_moments([(0,)]) is None
    with pytest.raises(bw.errors.ModelError, match="initial=probabilities"):
        model.to_tabular()
    mass = np.zeros(len(written_out.states))
    for x, state in enumerate(written_out.states.tolist()):
        mass[x] = {0: 0.75, 1: 0.25}.get(state[0], 0.0) * (0.5 if state[1] <= 1 else 0.0)
    assert np.array_equal(model.to_tabular(initial=mass).initial, mass)
    rows = bw.SampledRows(written_out.states)
    result = bw.solve(
        model, bw.Affine(), bw.Fixed(), rows=rows, simulation=bw.Simulation(episodes=900)
    )
    assert result.moments_error is not None
    assert np.abs(result.moments - [1.0, 0.25, 0.5])[1:].max() < 0.07
    assert result.moments_error[1] == pytest.approx(np.sqrt(0.25 * 0.75 / 900), rel=0.1)


@pytest.mark.parametrize("decay", [1e-3, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_geometric_states_stay_within_bounds_at_the_edge_of_the_unit_interval(
    decay: float,
) -> None:
    upper = np.array([0, 1, 2, 5, 17, 100, 348, 349, 1_000])
    model = bw.EventModel(
        dimension=len(upper), actions=1, events=1, cost=idle, probability=[[0.0]],
        move=np.zeros((1, len(upper))), discount=0.9, initial=bw.models.Geometric(decay),
        upper=upper, compiled=False,
    )  # fmt: skip
    first_state = model.loops.source.load().first_state
    for u in (0.0, 0.5, np.nextafter(1.0, 0.0)):
        state = np.full(len(upper), -1)
        first_state(state, 0, np.full(len(upper), u), model.loops.data, None)
        assert (state >= 0).all()
        assert (state <= upper).all()
    assert decay > 0.5 or state[1] == 1


def idle(state: Any) -> float:
    return 0.0


def test_sampled_occupancy_states_follow_the_occupancy() -> None:
    policy = policies()["softmax"]
    weights = exact_occupancy(tabular(), policy).weights
    assert weights is not None
    n = 60_000
    rollout = EventRollout.of(em.network(), policy.compiled(em.network()))
    drawn = np.concatenate(run_blocks(Task(rollout.state_block, 0, stream_keys(11)), 0, n, 2))
    seen = np.bincount(np.ravel_multi_index(tuple(drawn.T), (5,) * 4), minlength=625)
    common = n * weights >= 10.0
    assert common.sum() > 200
    counts = np.append(seen[common], seen[~common].sum())
    expected = np.append(n * weights[common], n * weights[~common].sum())
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def test_sampled_occupancy_states_take_the_right_number_of_steps() -> None:
    # Every step adds one job: the state is the number of steps, P(steps = t) = (1 - a) a^t.
    def cost(state: Any) -> float:
        return 0.0 * state[0]

    def probability() -> float:
        return 1.0

    def move(state: Any) -> None:
        state[0] += 1

    model = bw.EventModel(
        dimension=1, actions=1, events=1, cost=cost, probability=probability, move=move,
        discount=0.6, compiled=False,
    )  # fmt: skip
    n = 3_000
    rollout = EventRollout.of(model, bw.Uniform().compiled(model))
    steps = rollout.state_block(0, n, 0, stream_keys(5)).ravel()
    seen = np.bincount(np.minimum(steps, 8), minlength=9)
    expected = n * np.append(0.4 * 0.6 ** np.arange(8), 0.6**8)
    assert stats.chisquare(seen, expected).pvalue > 1e-4


@pytest.mark.parametrize("name", [None, "softmax"])
def test_sampled_states_are_distinct_and_reproducible(name: str | None) -> None:
    policy = None if name is None else policies()[name]
    found = [bw.sample_states(em.network(), 300, policy, seed=1, jobs=jobs) for jobs in (1, 2)]
    assert np.array_equal(found[0], found[1])
    assert found[0].shape == (300, 4)
    assert len(np.unique(found[0], axis=0)) == 300
    other = bw.sample_states(em.network(), 300, policy, seed=2)
    assert not np.array_equal(found[0], other)
    # The first states drawn come first: a smaller sample is the beginning of a larger one.
    assert np.array_equal(bw.sample_states(em.network(), 40, policy, seed=1), found[0][:40])


def test_sampled_states_are_not_where_episodes_of_the_same_seed_begin() -> None:
    model = em.line()
    first = model.sample_initial(0, 1_024, stream_keys(0)[0])
    places = np.sort(np.unique(first, axis=0, return_index=True)[1])
    assert not np.array_equal(bw.sample_states(model, 30), first[places[:30]])
    assert np.unique([stream_keys(seed, *at) for seed in range(9) for at in ((), (1,))]).size == 54


def test_more_distinct_states_than_there_are() -> None:
    model, _ = em.random_grid(7, initial=(1, 1))
    assert len(bw.sample_states(model, 1)) == 1
    with pytest.raises(
        bw.errors.ArgumentError, match=r"only 1 distinct states.*expected 2: ask for fewer"
    ):
        bw.sample_states(model, 2)


def test_servers_that_may_rest_decide_as_the_rows_say() -> None:
    """A choice without any event stands beside choices of one and of two events."""
    chances = [
        [0.2, *first, *second]
        for first in ([0.0, 0.0], [0.3, 0.0], [0.1, 0.15])
        for second in ([0.0], [0.25])
    ]
    model = bw.EventModel(
        dimension=3, actions=len(chances), events=4, cost=total_of, probability=chances,
        move=[[1, 0, 0], [-1, 1, 0], [-1, 0, 1], [0, -1, 0]], discount=0.95, upper=[9, 9, 9],
        initial=bw.models.Geometric(0.7),
    )  # fmt: skip
    states = np.stack(np.unravel_index(np.arange(1_000), (10, 10, 10)), axis=1)
    rows = bw.SampledRows(states).on(model, QUADRATIC)
    chosen = set()
    for seed in range(5):
        coef = np.random.default_rng(seed).normal(size=10)
        slacks = rows.slacks_at(states, coef)
        actions = bw.Greedy(QUADRATIC, coef).on(model).actions(states)
        least = slacks.min(axis=1)
        assert slacks[np.arange(1_000), actions] == pytest.approx(least, abs=1e-9)
        chosen |= set(actions.tolist())
    assert chosen == set(range(6))


def total_of(state: Any) -> float:
    return state[0] + 2.0 * state[1] + state[2]
