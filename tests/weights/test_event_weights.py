"""The weight loop on event models: methods, stopping, cycles, history, resuming, files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.backends import simulated_occupancy
from bellweight.simulation import default_horizon

BASIS = bw.Polynomial(2)
SETTING = bw.Simulation(episodes=500)
SEED = 2
STATES = em.network_truth().states


@cache
def rows() -> bw.SampledRows:
    """A sample on which the greedy policy's weights cycle."""
    return bw.SampledRows(bw.sample_states(em.network(), 80, seed=2))


def solved(method: bw.weights.Method, **options: Any) -> bw.Result:
    given = {"rows": rows(), "simulation": SETTING, "seed": SEED, "judge": False, **options}
    return bw.solve(em.network(), BASIS, method, **given)


@cache
def occupied(policy: bw.policies.Policy) -> tuple[em.FloatArray, em.FloatArray]:
    """Moments and standard errors of a policy, on the streams of the loop."""
    found = simulated_occupancy(em.network(), policy, BASIS, SETTING, seed=SEED)
    assert found.moments is not None
    assert found.standard_error is not None
    return found.moments, found.standard_error


def same_iterates(first: bw.Result, second: bw.Result) -> bool:
    """Whether two runs went through the same objectives; the solver may round differently."""
    near, far = ([entry.objective for entry in one.history] for one in (first, second))
    return len(near) == len(far) and bool(np.allclose(near, far, rtol=1e-9))


def test_fixed_weights_are_the_exact_initial_moments() -> None:
    result = solved(bw.Fixed("initial"))
    exact = em.network().initial_moments(BASIS.words(4))
    assert exact is not None
    assert result.status is bw.Status.CONVERGED
    assert np.array_equal(result.moments, exact)
    assert result.moments_error is None
    assert result.weights is None
    assert result.dual is None
    assert result.cost is None
    assert result.lower_bound is None
    entry = result.history[0]
    assert (entry.sup_norm, entry.noise_ratio, entry.dual_share) == (None, None, None)
    assert "80" not in result.model_size
    assert "320 sampled rows" in " ".join(str(result).split())


def test_fixed_moments() -> None:
    moments, _ = occupied(bw.Uniform())
    result = solved(bw.Fixed(moments=moments))
    assert np.array_equal(result.moments, moments)
    assert result.objective == pytest.approx(float(moments @ result.coef))
    assert np.allclose(result.coef, solved(bw.FromPolicy()).coef, rtol=1e-7, atol=1e-9)


def test_weights_of_a_policy_carry_their_error() -> None:
    moments, error = occupied(bw.Uniform())
    result = solved(bw.FromPolicy(bw.Uniform()))
    assert np.array_equal(result.moments, moments)
    assert result.moments_error is not None
    assert np.array_equal(result.moments_error, error)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (bw.Fixed("uniform"), r"weights is 'uniform'.*Fixed\(moments"),
        (bw.Fixed(np.ones(15) / 15), r"expected \"initial\".*Fixed\(moments"),
        (bw.Fixed(moments=np.ones(14)), r"moments has shape \(14,\), expected \(15,\)"),
        (bw.Fixed(moments=np.full(15, np.nan)), r"moments\[0\] is nan"),
        (bw.PIA(start="uniform"), "start is 'uniform'"),
        (bw.DIA(start=np.ones(15)), "start is array"),
    ],
)
def test_weights_that_cannot_be_used(method: bw.weights.Method, message: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=message):
        solved(method)


def test_noise_ratio_and_norms_are_what_they_say() -> None:
    result = solved(bw.DIA())
    first = result.history[0]
    initial = solved(bw.Fixed())
    policy = bw.policies.DualSoftmax(initial.support, bw.Uniform(), 0.1, 0.1)
    moments, error = occupied(policy)
    gap = np.abs(moments - initial.moments)
    assert first.noise_ratio == pytest.approx(float((gap[1:] / error[1:]).max()), rel=1e-6)
    assert first.sup_norm == pytest.approx(float(gap.max()), rel=1e-6)
    assert first.one_norm == pytest.approx(float(gap.sum()), rel=1e-6)
    share = simulated_occupancy(em.network(), policy, BASIS, SETTING, seed=SEED).dual_share
    assert first.dual_share == pytest.approx(share, rel=1e-9)
    assert first.moment_step is None
    second = result.history[1]
    assert second.moment_step == pytest.approx(float(gap.sum()), rel=1e-6)


def test_the_loop_stops_at_the_noise_level() -> None:
    result = solved(bw.DIA(step_size=0.5))
    ratios = [entry.noise_ratio for entry in result.history]
    assert result.status is bw.Status.CONVERGED
    assert None not in ratios
    assert ratios[-1] <= 1.0  # type: ignore[operator]
    assert all(ratio > 1.0 for ratio in ratios[:-1])  # type: ignore[operator]
    assert len(ratios) > 3
    assert all(0.0 < (entry.dual_share or 0.0) < 1.0 for entry in result.history)


def test_an_explicit_tolerance_goes_below_the_noise() -> None:
    loose = solved(bw.DIA(step_size=0.5))
    tight = solved(bw.DIA(step_size=0.5), stop=bw.Stop(tol=1e-6))
    assert tight.status is bw.Status.CONVERGED
    assert tight.history[-1].sup_norm is not None
    assert tight.history[-1].sup_norm <= 1e-6
    assert len(tight.history) > len(loose.history)
    hurried = solved(bw.DIA(step_size=0.5), stop=bw.Stop(tol=1e6))
    assert len(hurried.history) == 1


def test_moments_without_noise_are_held_to_the_exact_tolerance() -> None:
    # Nothing is random: the queue loses a job per step, or two if served fast.
    def cost(state: Any, action: Any) -> float:
        return state[0] + 0.1 * action

    def probability(event: Any) -> float:
        return 1.0

    def move(state: Any, action: Any) -> None:
        state[0] = max(0, state[0] - 1 - action)

    model = bw.EventModel(
        dimension=1, actions=2, events=1, cost=cost, probability=probability, move=move,
        discount=0.9, initial=(9,), compiled=False,
    )  # fmt: skip
    states = bw.SampledRows(np.arange(12)[:, None])
    setting = bw.Simulation(episodes=3)
    result = bw.solve(model, bw.Affine(), bw.PIA(), rows=states, simulation=setting)
    first, last = result.history[0], result.history[-1]
    assert result.status is bw.Status.CONVERGED
    assert first.noise_ratio is not None
    assert first.noise_ratio > 1e6
    assert len(result.history) > 1
    assert last.noise_ratio == pytest.approx(0.0, abs=1e-3)
    steps = np.arange(66)
    discounted = 0.9**steps * np.maximum(0, 9 - 2 * steps)
    assert result.moments[1] == pytest.approx(discounted.sum() / (0.9**steps).sum(), rel=1e-12)


def test_the_summary_says_when_the_dual_is_never_visited() -> None:
    result = solved(bw.DIA())
    assert "% of visits" in str(result)
    unseen = tuple(replace(entry, dual_share=0.0) for entry in result.history)
    text = str(replace(result, history=unseen))
    assert "DIA follows its target here, and its weights are those of the" in " ".join(text.split())


def test_start_of_another_method() -> None:
    moments, _ = occupied(bw.Uniform())
    once = bw.Stop(max_iterations=1)
    for start in (bw.FromPolicy(), bw.Fixed(moments=moments)):
        for method in (bw.DIA(start=start), bw.PIA(start=start)):
            assert np.array_equal(solved(method, stop=once).moments, moments)
    greedy = bw.DIA(start=bw.DIA(), target=bw.Fixed())
    assert solved(greedy).status is bw.Status.CONVERGED


def test_target_of_another_method_is_its_greedy_policy() -> None:
    target = solved(bw.Fixed()).policy
    by_method = solved(bw.DIA(target=bw.Fixed()))
    by_policy = solved(bw.DIA(target=target))
    assert same_iterates(by_method, by_policy)
    assert not same_iterates(by_method, solved(bw.DIA()))


def test_a_start_that_cycles_is_used_with_a_warning() -> None:
    with pytest.warns(bw.errors.BellweightWarning, match="the start, PIA, ended as CYCLING"):
        result = solved(bw.DIA(start=bw.PIA()))
    assert result.status is bw.Status.CONVERGED


def test_the_greedy_policy_may_cycle() -> None:
    result = solved(bw.PIA())
    assert result.status is bw.Status.CYCLING
    assert len(result.phases) == 2
    costs = [phase.cost.mean for phase in result.phases]
    assert costs[0] != costs[1]
    best = result.phases[int(np.argmin(costs))]
    assert np.array_equal(result.coef, best.coef)
    assert np.array_equal(result.moments, best.moments)
    assert result.policy is best.policy
    steps = default_horizon(0.9)
    for phase in result.phases:
        found = bw.evaluate(em.network(), phase.policy, 500, horizon=steps, seed=SEED)
        assert found.mean == pytest.approx(phase.cost.mean, rel=1e-12)
    # Each phase's policy has the weights of the other phase.
    first, second = result.phases
    assert np.allclose(occupied(first.policy)[0], second.moments, rtol=1e-9)
    assert np.allclose(occupied(second.policy)[0], first.moments, rtol=1e-9)
    assert "Adaptive" in result.status.remedy
    assert "phase 2" in str(result)
    assert all(entry.dual_share is None for entry in result.history)


def test_a_run_depends_on_the_seed_and_on_nothing_else() -> None:
    first, again, other = solved(bw.DIA()), solved(bw.DIA(), jobs=1), solved(bw.DIA(), seed=3)
    assert np.array_equal(first.coef, again.coef)
    assert np.array_equal(first.moments, again.moments)
    assert first.seed == SEED
    assert not np.array_equal(first.moments, other.moments)


def test_limits_end_a_run() -> None:
    few = solved(bw.DIA(step_size=0.1), stop=bw.Stop(max_iterations=3))
    assert few.status is bw.Status.ITERATION_LIMIT
    assert len(few.history) == 3
    late = solved(bw.DIA(step_size=0.1), stop=bw.Stop(max_seconds=1e-9))
    assert late.status is bw.Status.TIME_LIMIT
    assert len(late.history) == 1


@pytest.mark.parametrize("through_file", [False, True])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(
    through_file: bool, tmp_path: Path
) -> None:
    method = bw.DIA(step_size=0.5)
    whole = solved(method)
    part = solved(method, stop=bw.Stop(max_iterations=2))
    assert part.status is bw.Status.ITERATION_LIMIT
    earlier: Any = part
    if through_file:
        earlier = tmp_path / "part.npz"
        part.save(earlier)
    rest = solved(method, resume=earlier)
    assert rest.status is bw.Status.CONVERGED
    assert same_iterates(rest, whole)
    assert np.allclose(rest.moments, whole.moments, rtol=1e-9)
    assert rest.moments_error is not None
    assert whole.moments_error is not None
    assert np.allclose(rest.moments_error, whole.moments_error, rtol=1e-6)


def test_resuming_a_finished_run_keeps_the_errors_of_its_moments() -> None:
    whole = solved(bw.DIA())
    again = solved(bw.DIA(), resume=whole)
    assert again.status is bw.Status.CONVERGED
    assert len(again.history) == len(whole.history)
    assert again.moments_error is not None
    assert np.array_equal(again.moments_error, whole.moments_error)


def test_an_interrupted_run_can_be_resumed() -> None:
    def impatient(entry: bw.weights.HistoryEntry) -> None:
        if entry.iteration == 1:
            raise KeyboardInterrupt

    method = bw.DIA(step_size=0.5)
    part = solved(method, progress=impatient)
    assert part.status is bw.Status.INTERRUPTED
    assert len(part.history) == 2
    assert same_iterates(solved(method, resume=part), solved(method))


def test_resuming_with_something_else_is_refused() -> None:
    part = solved(bw.DIA(step_size=0.5), stop=bw.Stop(max_iterations=2))
    with pytest.raises(
        bw.errors.ArgumentError, match="resume is a result of DIA, the method is PIA"
    ):
        solved(bw.PIA(), resume=part)
    with pytest.raises(bw.errors.ArgumentError, match="use the same basis"):
        bw.solve(em.network(), bw.Affine(), bw.DIA(), rows=rows(), resume=part)
    with pytest.raises(bw.errors.ArgumentError, match="another model"):
        bw.solve(
            em.network_as_functions(), BASIS, bw.DIA(), rows=rows(), simulation=SETTING, resume=part
        )


def test_a_loaded_result_acts_like_the_saved_one(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    result = solved(bw.PIA())
    result.save(path)
    alone = bw.Result.load(path)
    with pytest.raises(bw.errors.PolicyError, match="needs its model to act"):
        alone.policy.action(STATES[0])
    assert alone.status is bw.Status.CYCLING
    assert alone.history == result.history
    assert len(alone.phases) == 2
    loaded = bw.Result.load(path, model=em.network())
    assert np.array_equal(loaded.coef, result.coef)
    for state in STATES:
        assert loaded.policy.action(state) == result.policy.action(state)
        assert alone.policy.on(em.network()).action(state) == loaded.policy.action(state)
    before, after = (
        bw.evaluate(em.network(), one.policy, 200, horizon=30, seed=1) for one in (result, loaded)
    )
    assert before == after


def test_a_result_belongs_to_its_model(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    solved(bw.Fixed()).save(path)
    with pytest.raises(bw.errors.FileError, match="belongs to another model"):
        bw.Result.load(path, model=em.network_as_functions())


def test_a_rule_in_the_method_is_not_stored(tmp_path: Path) -> None:
    def first(state: Any) -> int:
        return 0

    slow, written_out = em.random_jumps(5)
    result = bw.solve(
        slow, bw.Affine(), bw.FromPolicy(bw.Rule(first)), rows=bw.SampledRows(written_out.states),
        simulation=bw.Simulation(episodes=20),
    )  # fmt: skip
    path = tmp_path / "result.npz"
    result.save(path)
    loaded = bw.Result.load(path, model=slow)
    assert np.array_equal(loaded.coef, result.coef)
    with pytest.raises(bw.errors.PolicyError, match="was not stored: build Rule"):
        loaded.method.policy.compiled(slow)


def test_settings_are_equal_only_if_they_are_the_same() -> None:
    assert bw.Greedy(BASIS, np.zeros(15)) != bw.Greedy(BASIS, np.ones(15))
    assert bw.Fixed("initial") != bw.Fixed("uniform")
    assert bw.PIA() != bw.PIA(step_size=0.5)
    assert bw.Custom(np.sin) != bw.Custom(np.cos)
    assert bw.Uniform() == bw.Uniform()
    assert bw.Polynomial(2) == bw.Polynomial(2) != bw.Polynomial(3)


def test_unbounded_programs_carry_the_history() -> None:
    few = bw.SampledRows(bw.sample_states(em.network(), 20, seed=2))
    with pytest.raises(bw.errors.SolverError) as caught:
        solved(bw.PIA(), rows=few)
    assert caught.value.status is bw.Status.UNBOUNDED
    assert caught.value.history == ()
    # Weights that begin where the program is bounded, and lead to where it is not.
    start = bw.SampledRows(STATES[STATES.sum(axis=1) <= 4])
    empty = np.asarray(BASIS(np.zeros((1, 4))))[0]
    with pytest.raises(bw.errors.SolverError) as caught:
        solved(bw.PIA(start=bw.Fixed(moments=empty)), rows=start)
    assert caught.value.status is bw.Status.UNBOUNDED
    assert len(caught.value.history) == 1
