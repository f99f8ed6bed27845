"""Algorithm 1: what each method converges to, starts, targets, steps, and what is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import reference
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bellweight as bw


def occupancy_of(model: bw.TabularModel, policy: bw.policies.Policy) -> np.ndarray:
    return reference.occupancy(model, policy.probabilities(model))


def softmax_of(
    result: bw.Result, method: bw.DIA, target: bw.policies.Policy
) -> bw.policies.DualSoftmax:
    return bw.policies.DualSoftmax(
        result.support, target, method.temperature, method.smoothing_mass
    )


@settings(max_examples=30)
@given(model=strategies.models(max_states=8), data=st.data())
def test_dia_converges_to_the_occupancy_of_its_own_policy(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    target = data.draw(strategies.policies_for(model))
    method = bw.DIA(
        target=target,
        temperature=data.draw(st.sampled_from([0.5, 5.0, 50.0])),
        smoothing_mass=data.draw(st.sampled_from([0.5, 5.0, 50.0])),
        step_size=data.draw(st.sampled_from([0.5, 1.0])),
    )
    result = bw.solve(model, bw.Affine(), method, stop=bw.Stop(max_iterations=30), judge=False)
    assume(result.status is bw.Status.CONVERGED)
    wanted = occupancy_of(model, softmax_of(result, method, target))
    np.testing.assert_allclose(result.weights, wanted, rtol=0.0, atol=1.1e-8)
    assert result.reported.sup_norm <= 1e-8


@given(model=strategies.models(max_states=8))
def test_pia_converges_to_the_occupancy_of_its_greedy_policy(model: bw.TabularModel) -> None:
    result = bw.solve(model, bw.Affine(), bw.PIA(), judge=False)
    assume(result.status is bw.Status.CONVERGED)
    wanted = occupancy_of(model, result.policy)
    np.testing.assert_allclose(result.weights, wanted, rtol=0.0, atol=1.1e-8)


@settings(max_examples=50)
@given(model=strategies.models(max_states=6, max_actions=2))
def test_dia_with_certified_smoothing_always_converges(model: bw.TabularModel) -> None:
    """With much smoothing the map contracts (the paper's theorem on convergence)."""
    result = bw.solve(model, bw.Affine(), bw.DIA(temperature=1e6, smoothing_mass=1e6), judge=False)
    assert result.status is bw.Status.CONVERGED
    wanted = occupancy_of(model, bw.Uniform())
    np.testing.assert_allclose(result.weights, wanted, rtol=0.0, atol=1e-3)


def test_fixed_weights_are_kept(small_queue: bw.TabularModel) -> None:
    weights = strategies.random_distribution(np.random.default_rng(1), 31)
    result = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed(weights))
    assert np.array_equal(result.weights, weights)
    assert len(result.history) == 1
    assert result.history[0].sup_norm is result.history[0].moment_step is None
    by_moments = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed(moments=result.moments))
    assert by_moments.weights is None
    np.testing.assert_allclose(by_moments.coef, result.coef, rtol=1e-9)


@pytest.mark.parametrize("name", ["initial", "uniform"])
def test_named_weights(small_queue: bw.TabularModel, name: str) -> None:
    weights = {"initial": small_queue.initial, "uniform": np.full(31, 1 / 31)}[name]
    for method in (bw.Fixed(name), bw.PIA(start=name), bw.DIA(start=name)):
        result = bw.solve(small_queue, bw.Polynomial(1), method, stop=bw.Stop(max_iterations=1))
        assert np.array_equal(result.weights, weights)


def test_from_policy_takes_the_policys_occupancy(small_queue: bw.TabularModel) -> None:
    result = bw.solve(small_queue, bw.Polynomial(2), bw.FromPolicy())
    wanted = occupancy_of(small_queue, bw.Uniform())
    np.testing.assert_allclose(result.weights, wanted, rtol=0.0, atol=1e-14)
    always = bw.TablePolicy(np.full(31, 4))
    other = bw.solve(small_queue, bw.Polynomial(2), bw.FromPolicy(always))
    np.testing.assert_allclose(other.weights, occupancy_of(small_queue, always), atol=1e-14)


def test_from_policy_takes_results_and_nothing_without_a_policy(
    small_queue: bw.TabularModel,
) -> None:
    found = bw.solve(small_queue, bw.Polynomial(1), bw.DIA(), judge=False)
    assert bw.FromPolicy(found).policy is found.policy  # type: ignore[arg-type]
    for wrong in (5, bw.FromPolicy, bw.Polynomial(1)):
        with pytest.raises(bw.errors.PolicyError, match=r"^policy is .*expected a bellweight"):
            bw.FromPolicy(wrong)  # type: ignore[arg-type]


def test_a_policy_that_was_not_stored_is_named(
    small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    class Lazy(bw.policies.Policy):
        def probabilities(self, model: bw.TabularModel) -> np.ndarray:
            return bw.Uniform().probabilities(model)

    path = tmp_path / "result.npz"
    bw.solve(small_queue, bw.Polynomial(1), bw.FromPolicy(Lazy()), judge=False).save(path)
    method = bw.Result.load(path).method
    with pytest.raises(bw.errors.ArgumentError, match=r"the policy .*Lazy.* was not stored: build"):
        bw.solve(small_queue, bw.Polynomial(1), method)


def test_start_as_array_or_as_a_method(small_queue: bw.TabularModel) -> None:
    basis, once = bw.Polynomial(2), bw.Stop(max_iterations=1)
    random = bw.solve(small_queue, basis, bw.FromPolicy()).weights
    by_array = bw.solve(small_queue, basis, bw.PIA(start=random), stop=once)
    by_method = bw.solve(small_queue, basis, bw.PIA(start=bw.FromPolicy()), stop=once)
    assert np.array_equal(by_array.weights, random)
    assert np.array_equal(by_method.weights, random)


def test_an_iterative_method_as_start_is_run_to_its_end(small_queue: bw.TabularModel) -> None:
    basis = bw.Polynomial(3)
    ended = bw.solve(small_queue, basis, bw.PIA())
    result = bw.solve(small_queue, basis, bw.PIA(start=bw.PIA()))
    assert len(result.history) == 1 < len(ended.history)
    np.testing.assert_allclose(result.weights, ended.weights, rtol=0.0, atol=1e-8)


def test_target_as_a_method_is_its_greedy_policy(small_queue: bw.TabularModel) -> None:
    basis = bw.Polynomial(2)
    greedy = bw.solve(small_queue, basis, bw.Fixed("uniform")).policy
    by_policy = bw.solve(small_queue, basis, bw.DIA(target=greedy))
    by_method = bw.solve(small_queue, basis, bw.DIA(target=bw.Fixed("uniform")))
    by_default = bw.solve(small_queue, basis, bw.DIA())
    np.testing.assert_allclose(by_method.weights, by_policy.weights, rtol=0.0, atol=1e-12)
    assert np.abs(by_method.weights - by_default.weights).max() > 1e-3


def test_a_target_that_does_not_converge_is_announced(cycling_of_three: bw.TabularModel) -> None:
    with pytest.warns(bw.errors.BellweightWarning, match=r"the target, PIA, ended as CYCLING"):
        bw.solve(cycling_of_three, bw.Polynomial(3), bw.DIA(target=bw.PIA()), judge=False)


@pytest.mark.parametrize("method", [bw.PIA, bw.DIA])
def test_a_smaller_step_reaches_the_same_fixed_point(
    method: type, small_queue: bw.TabularModel
) -> None:
    full = bw.solve(small_queue, bw.Polynomial(3), method())
    half = bw.solve(small_queue, bw.Polynomial(3), method(step_size=0.5))
    assert full.status is half.status is bw.Status.CONVERGED
    assert len(half.history) > len(full.history)
    np.testing.assert_allclose(half.weights, full.weights, rtol=0.0, atol=1e-7)


def test_history_records_all_three_norms(small_queue: bw.TabularModel) -> None:
    method, basis = bw.PIA(step_size=0.7), bw.Polynomial(2)
    result = bw.solve(small_queue, basis, method, stop=bw.Stop(max_iterations=5))
    features = reference.features_of(small_queue, basis)
    weights, before = small_queue.initial, None
    assert [record.iteration for record in result.history] == [0, 1, 2, 3, 4]
    for record in result.history:
        alone = bw.solve(small_queue, basis, bw.Fixed(weights))
        occupancy = occupancy_of(small_queue, alone.policy)
        moments = features.T @ weights
        gap = np.abs(occupancy - weights)
        assert record.sup_norm == pytest.approx(gap.max(), rel=1e-9)
        assert record.one_norm == pytest.approx(gap.sum(), rel=1e-9)
        if before is None:
            assert record.moment_step is None
        else:
            step = np.abs(moments - before).sum()
            assert record.moment_step == pytest.approx(step, rel=1e-9)
        assert record.objective == pytest.approx(alone.objective, rel=1e-10)
        assert record.audit.passed
        assert record.flow_residual <= 1e-10
        assert record.seconds > 0.0
        before, weights = moments, 0.3 * weights + 0.7 * occupancy
    assert result.status is bw.Status.ITERATION_LIMIT


def test_moments_that_stand_still_are_no_cycle() -> None:
    """A constant basis has the moment 1 whatever the weights, which still converge."""
    model = bw.TabularModel.from_arrays(
        [[1.0, 2.0], [3.0, 1.0]], [np.eye(2), np.eye(2)[::-1]], 0.5, [0.5, 0.5]
    )
    result = bw.solve(model, bw.Polynomial(0), bw.PIA(step_size=0.5, start=[1.0, 0.0]))
    assert result.status is bw.Status.CONVERGED
    wanted = occupancy_of(model, result.policy)
    np.testing.assert_allclose(result.weights, wanted, rtol=0.0, atol=1e-8)


@dataclass(frozen=True, eq=False, kw_only=True)
class Averaged(bw.weights.IterativeMethod):
    """A user's method: a generator that mixes greedy and uniform, a geometric update."""

    share: float = 0.5

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        model = iterate.model
        mixed = self.share * iterate.greedy.probabilities(model)
        mixed = mixed + (1.0 - self.share) * bw.Uniform().probabilities(model)
        table = np.zeros((model.n_states, model.n_actions))
        table[model.pair_state, model.pair_action] = mixed
        return bw.TablePolicy(table)

    def update(self, weights: np.ndarray, occupancy: np.ndarray) -> np.ndarray:
        mixed = np.sqrt(weights * occupancy)
        return mixed / mixed.sum()


def test_a_users_own_method_supplies_generator_and_update(small_queue: bw.TabularModel) -> None:
    method = Averaged(start="uniform")
    result = bw.solve(small_queue, bw.Polynomial(2), method)
    assert result.status is bw.Status.CONVERGED
    chances = 0.5 * result.policy.probabilities(small_queue) + 0.1
    wanted = reference.occupancy(small_queue, chances)
    np.testing.assert_allclose(result.weights, wanted, rtol=0.0, atol=1e-7)
    first, second = (
        bw.solve(small_queue, bw.Polynomial(2), method, stop=bw.Stop(max_iterations=n)).weights
        for n in (1, 2)
    )
    once = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed(first)).policy
    occupancy = reference.occupancy(small_queue, 0.5 * once.probabilities(small_queue) + 0.1)
    expected = np.sqrt(first * occupancy)
    np.testing.assert_allclose(second, expected / expected.sum(), rtol=1e-9)


def test_progress_prints_a_line_per_iteration(
    small_queue: bw.TabularModel, capsys: pytest.CaptureFixture[str]
) -> None:
    result = bw.solve(small_queue, bw.Polynomial(2), bw.DIA(), progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(result.history)
    assert all("objective" in line and "mismatch" in line for line in lines)
    bw.solve(small_queue, bw.Polynomial(2), bw.DIA())
    assert capsys.readouterr().out == ""


def test_summary_tells_what_how_and_what_next(
    small_queue: bw.TabularModel, cycling_of_three: bw.TabularModel
) -> None:
    text = str(bw.solve(small_queue, bw.Polynomial(2), bw.DIA()))
    assert "DIA on single queue (31 states, 155 pairs, discount 0.95)" in text
    assert "CONVERGED" in text
    assert "next" in text
    text = str(bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA()))
    assert "CYCLING" in text
    assert "phase 3" in text
    assert bw.Status.CYCLING.remedy in " ".join(text.split())


def test_results_are_frozen(small_queue: bw.TabularModel) -> None:
    result = bw.solve(small_queue, bw.Polynomial(2), bw.DIA())
    for array in (result.coef, result.moments, result.weights, result.dual):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        result.status = bw.Status.FAILED
