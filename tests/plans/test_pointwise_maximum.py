"""The pointwise maximum: against brute force, and on an event model against its tabular twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import reference
import strategies
from event_models import line, network, network_as_functions
from hypothesis import given

import bellweight as bw
from bellweight.basis.compiled import CompiledBasis
from bellweight.common import files
from bellweight.common.checks import FloatArray

BASIS = bw.Polynomial(2)


def pieces(n: int, seed: int = 0) -> FloatArray:
    """Coefficients of n quadratic functions of four coordinates."""
    return np.random.default_rng(seed).normal(size=(n, 15)) * np.array([20.0] + [3.0] * 14)


@given(problem=strategies.problems(max_states=8))
def test_agrees_with_brute_force(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray],
) -> None:
    model, basis, weights = problem
    unit = reference.cost_scale(model)
    methods = [bw.Fixed(weights), bw.Fixed("uniform"), bw.FromPolicy(bw.Uniform())]
    found = bw.solve(model, basis, bw.plans.PointwiseMaximum(methods=methods), judge=False)
    features = reference.features_of(model, basis)
    alone = [bw.solve(model, basis, method, judge=False) for method in methods]
    each = np.array([features @ result.coef for result in alone])
    wanted = each.max(axis=0)
    values = found.values(model.states)
    for member, result in zip(found.members, alone, strict=True):
        assert member.objective == pytest.approx(result.objective, rel=1e-9, abs=1e-9 * unit)
    # Members may differ where several optima are equally good, so the bound is on their own.
    own = np.array([features @ member.coef for member in found.members])
    np.testing.assert_allclose(values, own.max(axis=0), rtol=0.0, atol=1e-12 * unit)
    if all(np.allclose(a, b, rtol=0.0, atol=1e-9 * unit) for a, b in zip(own, each, strict=True)):
        np.testing.assert_allclose(values, wanted, rtol=0.0, atol=1e-9 * unit)
    optimal = reference.value_iteration(model)
    assert (values <= optimal + 1e-8 * unit).all()
    assert (values >= own - 1e-12 * unit).all()
    quality, least = reference.greedy_quality(model, values)
    chosen = found.policy.probabilities(model) > 0.0
    assert (quality[chosen] <= least + 1e-9 * unit).all()
    cost = model.initial @ reference.policy_value(model, chosen.astype(float))
    assert found.cost.mean == pytest.approx(cost, rel=1e-9, abs=1e-9 * unit)
    assert found.lower_bound == pytest.approx(model.initial @ values, abs=1e-8 * unit)
    assert found.cost.half_width == 0.0


def test_two_functions_that_cross() -> None:
    # Weights on one end of the queue and on the other give functions that cross in between.
    model = bw.problems.single_queue(capacity=40, discount=0.9)
    left, right = np.zeros(41), np.zeros(41)
    left[:5], right[-5:] = 0.2, 0.2
    found = bw.solve(
        model,
        bw.Polynomial(2),
        bw.plans.PointwiseMaximum(methods=[bw.Fixed(left), bw.Fixed(right)]),
    )
    each = np.array([bw.Polynomial(2)(model.states) @ row for row in found.coef])
    assert (each[0] > each[1] + 1e-6).any()
    assert (each[1] > each[0] + 1e-6).any()
    slack = reference.residuals(model, found.values(model.states))
    assert slack.min() >= -1e-9
    assert found.lower_bound is not None
    bounds = [member.lower_bound for member in found.members]
    assert all(bound is not None and found.lower_bound >= bound - 1e-9 for bound in bounds)


def test_repaired_members_keep_the_bound_true() -> None:
    model = bw.problems.single_queue(capacity=60, discount=0.9)
    plan = bw.plans.PointwiseMaximum(methods=[bw.DIA(), bw.Fixed("uniform")])
    found = bw.solve(model, bw.Polynomial(2), plan, regularisation=5.0)
    assert all(member.audit.violation > 1e-3 for member in found.members)
    best = float(model.initial @ bw.exact.optimal(model).values)
    assert found.lower_bound is not None
    assert found.lower_bound <= best


@pytest.mark.parametrize("model", [network, network_as_functions], ids=["data", "functions"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_compiled_actions_are_those_of_the_tabular_twin(
    model: Callable[[], bw.EventModel], n: int
) -> None:
    event, table = model(), network().to_tabular()
    policy = bw.Greedy(basis=BASIS, coef=pieces(n))
    compiled, tabulated = policy.on(event), policy.on(table)
    values = np.max(BASIS(table.states) @ pieces(n).T, axis=1)
    quality, least = reference.greedy_quality(table, values)
    for x in range(0, table.n_states, 7):
        action = compiled.action(table.states[x].astype(int))
        pair = table.pair_start[x] + list(table.admissible_actions(x)).index(action)
        assert quality[pair] <= least[x] + 1e-9
        assert action == tabulated.action(x)


@pytest.mark.parametrize("n", [1, 3])
def test_compiled_slacks_are_those_of_the_tabular_twin(n: int) -> None:
    model, table = network(), network().to_tabular()
    states = table.states.astype(np.int64)
    value = CompiledBasis.of(BASIS, 4).value(pieces(n), model.jumps)
    slack = model.loops.slacks(states, value)[0]
    wanted = reference.residuals(table, np.max(BASIS(table.states) @ pieces(n).T, axis=1))
    np.testing.assert_allclose(slack[model.admissible_mask(states)], wanted, atol=1e-9)


def test_one_row_of_coefficients_is_the_plain_greedy_policy() -> None:
    model = line()
    coef = np.array([1.0, 2.0, 3.0, 0.3, 0.1, 0.2])
    plain = bw.Greedy(basis=BASIS, coef=coef)
    one = bw.Greedy(basis=BASIS, coef=coef[None, :])
    twice = bw.Greedy(basis=BASIS, coef=np.array([coef, coef]))
    costs = [bw.evaluate(model, policy, 200, horizon=60, seed=3) for policy in (plain, one, twice)]
    assert costs[0].mean == costs[1].mean
    assert costs[2].mean == pytest.approx(costs[0].mean, rel=1e-12)


def test_on_an_event_model_as_on_its_twin() -> None:
    model, table = network(), network().to_tabular()
    states = table.states.astype(np.int64)
    basis = bw.Polynomial(2)
    rows = bw.program.AllRows().on(table, basis)
    even = np.full(table.n_states, 1.0 / table.n_states)
    weightings = [table.initial, even]
    event = bw.solve(
        model,
        basis,
        bw.plans.PointwiseMaximum(methods=[bw.Fixed(moments=rows.moments(w)) for w in weightings]),
        rows=bw.SampledRows(states),
        simulation=bw.Simulation(episodes=2_000),
        seed=4,
    )
    whole = bw.solve(
        table, basis, bw.plans.PointwiseMaximum(methods=[bw.Fixed(w) for w in weightings])
    )
    np.testing.assert_allclose(event.values(table.states), whole.values(table.states), rtol=1e-7)
    assert event.lower_bound is None
    assert event.cost.half_width > 0.0
    assert event.cost.mean == pytest.approx(whole.cost.mean, abs=2.0 * event.cost.half_width)
    assert "±" in str(event)


def test_the_policy_is_stored_and_acts_again(tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=40, discount=0.9)
    plan = bw.plans.PointwiseMaximum(methods=[bw.DIA(), bw.Fixed("uniform")])
    policy = bw.solve(model, bw.Polynomial(2), plan).policy
    files.save(tmp_path / "a.npz", policy)
    loaded = files.load(tmp_path / "a.npz", bw.Greedy)
    assert loaded.coef.shape == (2, 3)
    assert [loaded.action(x) for x in range(41)] == [policy.action(x) for x in range(41)]
    np.testing.assert_array_equal(
        loaded.on(model).probabilities(model), policy.probabilities(model)
    )


def test_what_it_shows() -> None:
    model = bw.problems.single_queue(capacity=40, discount=0.9)
    found = bw.solve(
        model, bw.Polynomial(1), bw.plans.PointwiseMaximum(methods=[bw.DIA(), bw.Fixed("uniform")])
    )
    text = str(found)
    for part in ("1 DIA", "2 Fixed", "maximum", "lower bound", "CONVERGED"):
        assert part in text
    assert found.to_frame("columns")["cost"][-1] == found.cost.mean
    assert len(found.charts("gap")) == 1


@pytest.mark.parametrize("methods", [[], bw.DIA(), None, "DIA"])
def test_bad_lists(methods: object) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="expected a "):
        bw.plans.PointwiseMaximum(methods=methods)  # type: ignore[arg-type]


def test_bad_orders() -> None:
    with pytest.raises(
        bw.errors.ArgumentError, match=r"methods\[1\] is 'uniform', expected a method"
    ):
        bw.plans.PointwiseMaximum(methods=[bw.DIA(), "uniform"])  # type: ignore[list-item]
    plan = bw.plans.PointwiseMaximum(methods=[bw.DIA()])
    with pytest.raises(bw.errors.ArgumentError, match="got a linear model, expected a tabular"):
        bw.solve(bw.problems.scheduling("tiny"), bw.Affine(), plan)
    policy = bw.Greedy(basis=bw.Affine(), coef=np.zeros((2, 3)))
    tiny = bw.problems.scheduling("tiny")
    with pytest.raises(bw.errors.PolicyError, match="expected one more than variables"):
        policy.on(tiny).action(np.zeros(tiny.dimension))
