"""Simulated costs: they cover the exact ones, do not depend on workers, and compare in pairs."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import bellweight as bw
from bellweight.evaluation.evaluate import rollout_of
from bellweight.simulation import blocks as simulated


@pytest.fixture
def randomised(small_queue: bw.TabularModel) -> bw.policies.Policy:
    """A policy that mixes two service rates, differently in every state."""
    table = np.zeros((31, 5))
    share = np.linspace(0.1, 0.9, 31)
    table[:, 1], table[:, 3] = share, 1.0 - share
    return bw.TablePolicy(table)


def exact_cost(
    model: bw.TabularModel, policy: bw.policies.Policy, horizon: int | None = None
) -> float:
    return float(model.initial @ bw.exact.policy_value(model, policy, horizon))


@pytest.mark.parametrize("kind", ["deterministic", "randomised", "uniform"])
def test_intervals_cover_the_exact_cost_as_often_as_they_claim(
    kind: str, small_queue: bw.TabularModel, randomised: bw.policies.Policy
) -> None:
    policies = {
        "deterministic": bw.exact.optimal(small_queue).policy,
        "randomised": randomised,
        "uniform": bw.Uniform(),
    }
    policy = policies[kind]
    truth = exact_cost(small_queue, policy, horizon=60)
    runs = 400
    found = [
        bw.evaluate(small_queue, policy, episodes=200, horizon=60, seed=seed, jobs=1)
        for seed in range(runs)
    ]
    covered = sum(abs(one.mean - truth) <= one.half_width for one in found)
    # With 95 % coverage fewer hits than `low`, or more than `high`, come once in 100,000 tries.
    low, high = stats.binom.ppf([1e-5, 1.0 - 1e-5], runs, 0.95)
    assert low <= covered <= high


def test_many_episodes_approach_the_exact_cost_of_a_randomised_policy(
    small_queue: bw.TabularModel, randomised: bw.policies.Policy
) -> None:
    found = bw.evaluate(small_queue, randomised, episodes=60_000, horizon=120, seed=5)
    truth = exact_cost(small_queue, randomised, horizon=120)
    # Five standard errors; the half-width is 1.96 of them.
    assert abs(found.mean - truth) <= 5.0 / 1.96 * found.half_width
    assert found.half_width < 0.01 * truth


@settings(max_examples=25)
@given(model=strategies.models(), data=st.data())
def test_simulated_cost_agrees_on_random_models(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    policy = data.draw(strategies.policies_for(model))
    found = bw.evaluate(model, policy, episodes=3_000, horizon=20, seed=3)
    truth = exact_cost(model, policy, horizon=20)
    rounding = 1e-10 * float(np.abs(model.cost).max() * 20.0)
    # Six standard errors: 25 models, none may stray by chance.
    assert abs(found.mean - truth) <= 6.0 / 1.96 * found.half_width + rounding


def test_same_answer_for_any_number_of_workers(
    small_queue: bw.TabularModel, randomised: bw.policies.Policy
) -> None:
    episodes = 2 * simulated.BLOCK + 37
    found = [
        bw.evaluate(small_queue, randomised, episodes=episodes, horizon=30, seed=9, jobs=jobs)
        for jobs in (1, 2, 3, None)
    ]
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_episodes_do_not_depend_on_where_blocks_end(
    small_queue: bw.TabularModel, randomised: bw.policies.Policy, extra: int
) -> None:
    rollout = rollout_of(small_queue, randomised)
    last = simulated.BLOCK + extra
    whole = simulated.episode_costs(rollout, 0, 2 * simulated.BLOCK + 5, 30, seed=4)
    part = simulated.episode_costs(rollout, 0, last, 30, seed=4)
    rest = simulated.episode_costs(rollout, last, 2 * simulated.BLOCK + 5, 30, seed=4)
    assert np.array_equal(np.concatenate([part, rest]), whole)
    assert len(np.unique(whole)) > simulated.BLOCK  # the episodes are not copies of one another


def test_seeds_change_the_sample(small_queue: bw.TabularModel) -> None:
    one, two, again = (
        bw.evaluate(small_queue, bw.Uniform(), episodes=500, seed=seed) for seed in (1, 2, 1)
    )
    assert one == again
    assert one.mean != two.mean


def test_requested_half_width_is_reached(small_queue: bw.TabularModel) -> None:
    found = bw.evaluate(small_queue, bw.Uniform(), half_width=0.8, seed=2)
    assert found.half_width <= 0.8
    assert found.tail_bound <= 0.8
    assert found.episodes > 4_096
    truth = exact_cost(small_queue, bw.Uniform(), horizon=found.horizon)
    assert abs(found.mean - truth) <= 5.0 / 1.96 * found.half_width


def test_a_horizon_too_short_for_the_half_width_is_refused(small_queue: bw.TabularModel) -> None:
    with pytest.raises(
        bw.errors.ArgumentError, match=r"horizon 10 leaves out more than .* use a horizon of"
    ):
        bw.evaluate(small_queue, bw.Uniform(), half_width=0.8, horizon=10)


def test_tail_bound_is_the_cost_beyond_the_horizon(small_queue: bw.TabularModel) -> None:
    found = bw.evaluate(small_queue, bw.Uniform(), episodes=100, horizon=40)
    beyond = exact_cost(small_queue, bw.Uniform()) - exact_cost(small_queue, bw.Uniform(), 40)
    assert found.tail_bound == pytest.approx(beyond, rel=1e-9)


@pytest.mark.parametrize("discount", [0.1, 0.5, 0.9, 0.98, 0.999])
def test_default_horizon_leaves_less_than_a_thousandth(discount: float) -> None:
    model = bw.TabularModel.from_arrays([[1.0]], np.ones((1, 1, 1)), discount, [1.0])
    steps = bw.evaluate(model, bw.Uniform(), episodes=2).horizon
    assert discount**steps < 1e-3 <= discount ** (steps - 1)


def test_cost_of_a_certain_chain_has_no_spread() -> None:
    model = bw.TabularModel.from_arrays([[2.0]], np.ones((1, 1, 1)), 0.5, [1.0])
    found = bw.evaluate(model, bw.Uniform(), episodes=10, horizon=3)
    assert (found.mean, found.half_width) == (3.5, 0.0)
    assert found.tail_bound == pytest.approx(0.5, rel=1e-14)


def test_difference_of_a_policy_with_itself_is_exactly_zero(
    small_queue: bw.TabularModel, randomised: bw.policies.Policy
) -> None:
    found = bw.compare(small_queue, {"one": randomised, "same": randomised}, episodes=500)
    assert (found.differences["same"].mean, found.differences["same"].half_width) == (0.0, 0.0)
    assert not found.differences["same"].is_clear


def test_paired_differences_are_sharper_than_unpaired_ones(small_queue: bw.TabularModel) -> None:
    best = bw.exact.optimal(small_queue).policy
    good = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed()).policy
    assert [best.action(x) for x in range(31)] != [good.action(x) for x in range(31)]
    found = bw.compare(small_queue, {"best": best, "good": good}, episodes=5_000, horizon=100)
    one, two = found.evaluations["best"].half_width, found.evaluations["good"].half_width
    gap = found.differences["good"]
    assert gap.half_width < 0.5 * np.hypot(one, two)
    truth = exact_cost(small_queue, good, 100) - exact_cost(small_queue, best, 100)
    assert abs(gap.mean - truth) <= 5.0 / 1.96 * gap.half_width
    means = found.evaluations["good"].mean - found.evaluations["best"].mean
    assert gap.mean == pytest.approx(means, rel=1e-9)


def test_compare_gives_what_evaluate_gives(
    small_queue: bw.TabularModel, randomised: bw.policies.Policy
) -> None:
    both = bw.compare(
        small_queue, {"mixed": randomised, "any": bw.Uniform()}, episodes=700, seed=3,
        baseline="any",
    )  # fmt: skip
    alone = bw.evaluate(small_queue, randomised, episodes=700, seed=3)
    assert both.evaluations["mixed"] == alone
    assert both.differences["any"].mean == 0.0
    text = str(both)
    assert "mixed" in text
    assert "minus any" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 1}, r"episodes is 1, expected a whole number of at least 2"),
        ({"episodes": 10, "half_width": 1.0}, r"give episodes or half_width, not both"),
        ({"half_width": 0.0}, r"half_width is 0.0, expected a number above 0"),
        ({"half_width": 1e-9}, r"half_width 1e-09 needs about .* ask for a wider interval"),
        ({"horizon": 0}, r"horizon is 0, expected a whole number of at least 1"),
        ({"seed": -1}, r"seed is -1, expected a whole number of at least 0"),
        ({"jobs": 0}, r"jobs is 0, expected a whole number of at least 1"),
    ],
)
def test_bad_settings_are_refused(
    small_queue: bw.TabularModel, options: dict, message: str
) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=message):
        bw.evaluate(small_queue, bw.Uniform(), **options)


def test_compare_refuses_nothing_and_strangers(small_queue: bw.TabularModel) -> None:
    with pytest.raises(
        bw.errors.ArgumentError, match=r"policies is \{\}, expected at least one name"
    ):
        bw.compare(small_queue, {})
    with pytest.raises(
        bw.errors.ArgumentError, match=r'policies is \[Uniform.*pass \{"name": policy\}'
    ):
        bw.compare(small_queue, [bw.Uniform()])  # type: ignore[arg-type]
    with pytest.raises(bw.errors.ArgumentError, match=r"baseline is 'x', expected one of \['a'\]"):
        bw.compare(small_queue, {"a": bw.Uniform()}, baseline="x")
    with pytest.raises(bw.errors.PolicyError, match=r"policy is 3, expected a bellweight policy"):
        bw.evaluate(small_queue, 3, episodes=10)
