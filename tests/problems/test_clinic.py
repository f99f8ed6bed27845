"""The clinic: its data, its transportation kernel, its two optima, its ties."""

from __future__ import annotations

import warnings
from itertools import product

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_models import nonnegative
from scipy.optimize import linprog

import bellweight as bw
from bellweight.common.streams import stream_keys
from bellweight.policies.linear_actions import ActionProgram
from bellweight.problems.transport import BookingKernels
from bellweight.program import IntegerProgram
from bellweight.simulation import LinearRollout

SIZES = ["tiny", "small", "large"]


def random_states(model: bw.LinearModel, n: int, seed: int) -> np.ndarray:
    """States of the box, and states whose backlog has left it."""
    rng = np.random.default_rng(seed)
    states = np.floor(rng.random((n, model.dimension)) * (model.state_upper + 1.0))
    waiting = [k for k, name in enumerate(model.state_names) if name.startswith("waiting")]
    states[n // 2 :, waiting] += rng.integers(0, 60, (n - n // 2, len(waiting)))
    days = [k for k, name in enumerate(model.state_names) if name.startswith("booked")]
    states[: n // 4, days] = model.state_upper[days] - states[: n // 4, days] // 4
    return states


def prices_of(model: bw.LinearModel, seed: int) -> list[np.ndarray]:
    """Prices of the good policy, of a constant value, of random values with and without ties."""
    rng = np.random.default_rng(seed)
    slope = 100.0 * 0.99 ** np.arange(model.dimension)
    some = [slope, np.zeros(model.dimension), rng.random(model.dimension) * 200.0]
    some.append(rng.integers(0, 4, model.dimension) * 50.0)
    return [model.action_cost + 0.99 * (model.next_action.T @ v) for v in some]


@pytest.mark.parametrize("size", SIZES)
def test_the_kernel_has_the_objective_of_the_solver_on_every_state(size: str) -> None:
    model = bw.problems.scheduling(size)
    assert model.kernels is not None
    assert model.preference is not None
    for seed, price in enumerate(prices_of(model, seed=2)):
        states = random_states(model, 400, seed)
        act = model.kernels.greedy_action(price, model.preference)
        assert act is not None
        actions = act(states)
        assert model.inadmissible(states, actions) is None
        program = IntegerProgram(
            model.action_rows, model.row_lower, model.row_upper, model.action_lower,
            model.action_upper, model.integer_actions,
        )  # fmt: skip
        for state, action in zip(states, actions, strict=True):
            used = model.state_rows @ state
            program.limit(row_lower=model.row_lower - used, row_upper=model.row_upper - used)
            best = program.minimise(price)
            assert best.point is not None
            wanted = float(price @ best.point)
            # The tie rule may cost one part in 10^9 of the largest price per patient.
            allowed = 1e-9 * np.abs(price).max() * (1.0 + action.sum() + best.point.sum())
            assert abs(price @ action - wanted) <= allowed


def test_the_kernel_against_a_third_solver() -> None:
    model = bw.problems.scheduling("small")
    assert model.kernels is not None and model.preference is not None  # noqa: PT018
    states = random_states(model, 60, seed=5)
    for price in prices_of(model, seed=6):
        act = model.kernels.greedy_action(price, model.preference)
        assert act is not None
        for state, action in zip(states, act(states), strict=True):
            used = model.state_rows @ state
            up, down = np.isfinite(model.row_upper), np.isfinite(model.row_lower)
            rows = model.action_rows.toarray()
            answer = linprog(
                price,
                A_ub=np.vstack([rows[up], -rows[down]]),
                b_ub=np.concatenate([(model.row_upper - used)[up], (used - model.row_lower)[down]]),
                method="highs-ipm",
            )
            assert price @ action == pytest.approx(answer.fun, abs=1e-6)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_the_kernel_is_exact_on_random_transportation_problems(seed: int) -> None:
    """Brute force over all flows of two classes, two days and diversion."""
    rng = np.random.default_rng(seed)
    kernels = BookingKernels(n_classes=2, n_days=2, capacity=3, diversion=int(rng.integers(0, 3)))
    state = np.append(rng.integers(0, 4, 2), rng.integers(0, 4, 2)).astype(float)
    price = rng.integers(-5, 3, 6) * (1.0 if rng.random() < 0.5 else rng.random(6))
    act = kernels.greedy_action(price.astype(float), np.arange(6.0))
    action = act(state[None])[0]
    free = [3 - state[0], 3 - state[1]]
    best = np.inf
    for a in product(*(range(4) for _ in range(6))):
        fits = (
            a[0] + a[2] <= free[0] and a[1] + a[3] <= free[1] and a[4] + a[5] <= kernels.diversion
        )
        enough = a[0] + a[1] + a[4] <= state[2] and a[2] + a[3] + a[5] <= state[3]
        if fits and enough:
            best = min(best, float(price @ np.array(a)))
    assert price @ action == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("size", SIZES)
def test_the_kernel_prices_like_the_solver(size: str) -> None:
    model = bw.problems.scheduling(size)
    rng = np.random.default_rng(4)
    fast = bw.program.PricedRows().on(model, bw.Affine())
    general = bw.program.PricedRows(kernel=False).on(model, bw.Affine())
    for _ in range(150):
        coef = rng.normal(size=model.dimension + 1) * 100.0
        coef[rng.random(len(coef)) < 0.3] = 0.0
        value, state, action = fast.largest_violation(coef)
        wanted, _, _ = general.largest_violation(coef)
        assert value == pytest.approx(wanted, rel=1e-9, abs=1e-7)
        assert model.inadmissible(state[None], action[None]) is None
        assert (state >= model.state_lower).all()
        assert (state <= model.state_upper).all()


def test_ties_go_to_the_earliest_day_and_to_waiting_rather_than_late() -> None:
    model = bw.problems.scheduling("small")
    policy = bw.Greedy(basis=bw.Affine(), coef=np.zeros(34), model=model)
    state = np.zeros(33)
    state[:6] = 10.0  # days 1 to 6 are full
    state[6] = 8.0  # two places on day 7
    state[30:] = [5.0, 3.0, 2.0]
    action = policy.action(state)
    booked = action[:90].reshape(3, 30)
    # Class 1 is late from day 8 on, at the price of waiting: two on day 7, the others wait.
    assert booked[0].nonzero()[0].tolist() == [6]
    assert booked[0].sum() == 2
    # The others are on time from day 8 on, and take the first day.
    assert booked[1:].sum(axis=0).nonzero()[0].tolist() == [7]
    assert booked[1].sum() == 3
    assert booked[2].sum() == 2
    assert action[90:].sum() == 0


def test_the_general_solver_breaks_ties_like_the_kernel() -> None:
    model = bw.problems.scheduling("small")
    assert model.kernels is not None and model.preference is not None  # noqa: PT018
    states = random_states(model, 40, seed=8)
    for price in prices_of(model, seed=9)[:2]:
        act = model.kernels.greedy_action(price, model.preference)
        assert act is not None
        program = ActionProgram(model, price, model.preference)
        ours, theirs = act(states), program.actions(states)
        # Equal in price and in preference; who takes which of two equal places may differ.
        np.testing.assert_allclose(ours @ model.preference, theirs @ model.preference, atol=1e-6)
        following = model.expected_next(states, ours) - model.expected_next(states, theirs)
        np.testing.assert_allclose(following[:, :30], 0.0, atol=1e-9)


def test_random_actions_let_each_patient_pick_evenly() -> None:
    kernels = BookingKernels(n_classes=1, n_days=3, capacity=1, diversion=1)
    states = np.tile([0.0, 1.0, 0.0, 1.0], (60_000, 1))  # day 2 is full, one patient waits
    act = kernels.random_action()
    actions = act(states, np.arange(60_000, dtype=np.uint64), 7)
    share = actions.mean(axis=0)
    np.testing.assert_allclose(share, [0.25, 0.0, 0.25, 0.25], atol=0.01)
    # Two patients: the second finds what the first has left.
    states[:, 3] = 2.0
    actions = act(states, np.arange(60_000, dtype=np.uint64), 7)
    nobody = (actions.sum(axis=1) == 0).mean()
    assert nobody == pytest.approx(1 / 16, abs=0.005)


@pytest.mark.parametrize("size", SIZES)
def test_random_actions_are_admissible(size: str) -> None:
    model = bw.problems.scheduling(size)
    states = random_states(model, 3_000, seed=3)
    choose = bw.Uniform().chooser(model).worker()
    actions, _ = choose(states, np.arange(3_000, dtype=np.uint64), 1)
    assert model.inadmissible(states, actions) is None
    assert actions.sum() > 0


# Data


def test_the_parameters_are_those_of_the_paper() -> None:
    small, large = bw.problems.scheduling("small"), bw.problems.scheduling("large")
    assert (small.dimension, small.n_action_variables) == (33, 93)
    np.testing.assert_array_equal(small.state_upper[30:], [15, 9, 6])
    np.testing.assert_array_equal(large.state_upper[[0, 30, 31, 32]], [60, 30, 60, 90])
    book = dict(zip(small.action_names, small.action_cost, strict=True))
    # Booking saves the day's waiting cost; late days cost the penalty each; the target day nothing.
    assert book["book[class 1, day 7]"] == -20.0
    assert book["book[class 1, day 8]"] == 0.0
    assert book["book[class 3, day 30]"] == 9 * 5.0 - 5.0
    assert book["divert[class 2]"] == 100.0 - 10.0
    state = np.arange(33.0)
    following = small.expected_next(state[None], np.zeros((1, 93)))[0]
    np.testing.assert_array_equal(following[:30], np.append(state[1:30], 0.0))
    np.testing.assert_allclose(following[30:], state[30:] + small.drift[30:])
    assert small.cost(state[None], np.zeros((1, 93)))[0] == 20 * 30 + 10 * 31 + 5 * 32


def test_the_tiny_clinic_is_a_table_as_well() -> None:
    tiny = bw.problems.scheduling("tiny")
    table = tiny.to_tabular(clip=True)
    assert table.n_states == 252
    np.testing.assert_allclose(table.initial, 1.0 / 252)
    bw.testing.check_model(table)
    exact = bw.exact.optimal(table)
    result = bw.solve(table, bw.Polynomial(2), bw.DIA())
    assert result.status is bw.Status.CONVERGED
    assert result.cost is not None
    assert table.initial @ exact.values <= result.cost.mean


def test_simulation_agrees_with_the_exact_cost_while_nothing_is_clipped() -> None:
    # With limits far above what a few steps can reach, clipping never happens.
    model = bw.problems.scheduling(
        "tiny", arrivals=[0.4], arrival_limits=[4], targets=[1], penalties=[10.0],
        diversion_costs=[30.0], discount=0.6,
    )  # fmt: skip
    table = model.to_tabular(clip=True)
    rule = bw.Rule(_earliest)
    by_table = bw.TablePolicy(
        np.array([_index(table, action) for action in _earliest(table.states)], dtype=np.int64)
    )
    exact = table.initial @ bw.exact.policy_value(table, by_table, horizon=12)
    found = bw.evaluate(model, rule, episodes=40_000, horizon=12)
    assert abs(found.mean - exact) <= 3.0 * found.half_width


def _earliest(states: np.ndarray) -> np.ndarray:
    """Book on day 1, then day 2, divert one more."""
    actions = np.zeros((len(states), 3))
    left = states[:, 2].copy()
    for column, free in ((0, 2 - states[:, 0]), (1, 2 - states[:, 1]), (2, np.ones(len(states)))):
        actions[:, column] = np.minimum(left, free)
        left -= actions[:, column]
    return actions


def _index(table: bw.TabularModel, action: np.ndarray) -> int:
    assert table.action_labels is not None
    return table.action_labels.index(str(tuple(int(v) for v in action)))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"capacity": 0}, "capacity"),
        ({"diversion": -1}, "diversion"),
        ({"arrivals": []}, "arrivals is empty"),
        ({"arrivals": [1.0, -2.0, 1.0]}, "expected no negative"),
        ({"arrivals": [0.0, 1.0, 1.0]}, "mean is 0"),
        ({"targets": [1, 2]}, "targets has shape"),
        ({"arrival_limits": [5]}, "expected 3"),
        ({"penalties": [np.nan, 1.0, 1.0]}, "finite"),
        ({"horizon": 1}, "horizon"),
        ({"discount": 1.0}, "discount"),
    ],
)
def test_wrong_parameters_are_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(bw.BellweightError, match=text):
        bw.problems.scheduling("small", **changes)  # type: ignore[arg-type]
    with pytest.raises(bw.errors.ArgumentError, match="expected one of"):
        bw.problems.scheduling("huge")


def test_without_diversion_the_clinic_still_works() -> None:
    model = bw.problems.scheduling("small", diversion=0)
    found = bw.solve(model, nonnegative(model), bw.Fixed(), judge=False)
    assert found.policy.action(np.append(np.full(30, 10.0), [5.0, 5.0, 5.0])).sum() == 0


# Methods


def few() -> bw.Simulation:
    return bw.Simulation(episodes=256)


def test_pia_cycles_on_the_small_clinic_and_says_between_what() -> None:
    model = bw.problems.scheduling("small")
    found = bw.solve(model, nonnegative(model), bw.PIA(), simulation=few())
    assert found.status is bw.Status.CYCLING
    assert sorted(phase.is_constant for phase in found.phases) == [False, True]
    good, bad = sorted(found.phases, key=lambda phase: phase.cost.mean)
    assert bad.is_constant
    assert bad.cost.mean > 15.0 * good.cost.mean
    assert good.cost.half_width > 0.0
    assert abs(good.cost.mean - 5_961.0) <= 3.0 * good.cost.half_width
    np.testing.assert_array_equal(found.coef, good.coef)
    told = " ".join(str(found).split())
    assert f"cost {bad.cost} (constant value: decided by ties)" in told
    assert "what was simulated differs from them by at most" in told  # no cycle agrees with it


def test_a_constant_value_function_is_a_warning_and_ties_have_a_range() -> None:
    model = bw.problems.scheduling("large")
    with pytest.warns(bw.errors.BellweightWarning, match="ties decide"):
        found = bw.solve(model, nonnegative(model), bw.Fixed(), judge=False)
    assert found.status is bw.Status.CONVERGED
    assert any("same in every state" in text for text in found.warnings)
    ties = bw.evaluation.compare_ties(model, found.policy, 60)
    costs = [evaluation.mean for evaluation in ties.evaluations.values()]
    assert max(costs) > 1.5 * min(costs)
    with pytest.raises(bw.errors.ArgumentError, match="LinearModel and a Greedy"):
        bw.evaluation.compare_ties(model, bw.Uniform(), 60)  # type: ignore[arg-type]


def test_dia_follows_its_target_and_random_gives_the_good_policy() -> None:
    model = bw.problems.scheduling("large")
    random = bw.solve(model, nonnegative(model), bw.FromPolicy(), simulation=few(), judge=False)
    dia = bw.solve(model, nonnegative(model), bw.DIA(), simulation=few(), judge=False)
    assert dia.status is bw.Status.CONVERGED
    assert dia.history[-1].dual_share == 0.0
    np.testing.assert_allclose(dia.coef, random.coef, rtol=1e-9)
    np.testing.assert_allclose(dia.coef[1:8], 100.0)


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    model = bw.problems.scheduling("small")
    costs = {
        jobs: bw.evaluate(model, bw.Uniform(), episodes=2_100, horizon=40, jobs=jobs).mean
        for jobs in (1, 2)
    }
    assert costs[1] == costs[2]


def test_processes_give_the_same_numbers_as_threads() -> None:
    model = bw.problems.scheduling("tiny")
    policy = bw.Greedy(basis=bw.Affine(), coef=np.arange(5.0), model=model)
    here = bw.evaluate(model, policy, episodes=2_100, horizon=30)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        there = bw.evaluate(model, policy, episodes=2_100, horizon=30)
    assert here == there


def test_the_softmax_follows_the_dual_where_it_has_mass() -> None:
    model = bw.problems.scheduling("tiny")
    state = np.array([0.0, 0.0, 3.0, 1.0])
    actions = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    dual = bw.policies.Support(np.tile(state, (2, 1)), actions, np.array([30.0, 10.0]))
    policy = bw.policies.DualSoftmax(dual, bw.Rule(lambda s: np.zeros((len(s), 6))), 10.0, 10.0)
    chooser = policy.chooser(model)
    n = 40_000
    chosen, found = chooser.worker()(np.tile(state, (n, 1)), np.arange(n, dtype=np.uint64), 0)
    assert found is not None
    assert found.all()
    share = 40.0 / 50.0
    first = share / (1.0 + np.exp(-2.0))
    assert (chosen == actions[0]).all(axis=1).mean() == pytest.approx(first, abs=0.01)
    assert (chosen.sum(axis=1) == 0).mean() == pytest.approx(1.0 - share, abs=0.01)
    other, found = chooser.worker()(np.zeros((1, 4)), np.zeros(1, dtype=np.uint64), 0)
    assert found is not None
    assert not found.any()
    assert other.sum() == 0.0


def test_occupancy_moments_are_those_of_the_visited_states() -> None:
    model = bw.problems.scheduling("tiny")
    rollout = LinearRollout(model, bw.Uniform().chooser(model))
    keys = stream_keys(5)
    seen = rollout.states(0, 50, 30, keys)
    mean, _, _ = rollout.moment_block(0, 50, 30, keys)
    factor = 0.99 ** np.arange(30)
    np.testing.assert_allclose(mean[0], factor.sum())
    np.testing.assert_allclose(mean[1:], np.einsum("t,tek->k", factor, seen) / 50.0)
    assert (seen[:, :, :2] <= 2).all()


def test_a_saved_result_acts_again(tmp_path: object) -> None:
    model = bw.problems.scheduling("small")
    found = bw.solve(model, nonnegative(model), bw.Fixed())
    path = f"{tmp_path}/result.npz"
    found.save(path)
    again = bw.Result.load(path, model=model)
    state = found.support.states[0]
    np.testing.assert_array_equal(again.policy.action(state), found.policy.action(state))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(again) == str(found)
    with pytest.raises(bw.errors.FileError, match="another model"):
        bw.Result.load(path, model=bw.problems.scheduling("large"))
