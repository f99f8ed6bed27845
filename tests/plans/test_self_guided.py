"""Self-guided programs: values rise at every state, reach the optimum, and guidance matters."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import reference
import strategies
from event_models import network
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import bellweight as bw
from bellweight.common.checks import FloatArray
from bellweight.plans.relatives.guided_rows import GuidedRows
from bellweight.program import solve_alp


def queue(capacity: int = 60) -> bw.TabularModel:
    return bw.problems.single_queue(capacity=capacity, discount=0.95)


def values_of(model: bw.TabularModel, result: bw.Result) -> FloatArray:
    return np.asarray(result.basis(model.states) @ result.coef)


@given(model=strategies.models(), seed=st.integers(0, 10_000))
@settings(max_examples=50)
def test_values_rise_at_every_state(model: bw.TabularModel, seed: int) -> None:
    plan = bw.plans.SelfGuided(features=2, batches=4, bandwidth=0.7, seed=seed)
    found = bw.solve(model, bw.Polynomial(0), plan, judge=False)
    unit = reference.cost_scale(model)
    values = [values_of(model, result) for result in found.results]
    for before, after in pairwise(values):
        assert (after >= before - 1e-8 * unit).all()
    optimal = reference.value_iteration(model)
    assert (values[-1] <= optimal + 1e-8 * unit).all()
    bounds = [result.lower_bound for result in found.results]
    assert all(bound is not None for bound in bounds)
    assert (np.diff(np.array(bounds, dtype=float)) >= -1e-8 * unit).all()
    assert found.lower_bound <= model.initial @ optimal + 1e-8 * unit
    assert found.cost.mean >= model.initial @ optimal - 1e-8 * unit


@pytest.mark.parametrize("seed", range(3))
def test_as_many_features_as_states_reach_the_optimum(seed: int) -> None:
    model = queue(20)
    plan = bw.plans.SelfGuided(features=7, batches=6, bandwidth=0.5, seed=seed)
    found = bw.solve(model, bw.Polynomial(1), plan)
    best = bw.exact.optimal(model)
    assert len(found.results[-1].names) <= model.n_states
    assert found.lower_bound == pytest.approx(model.initial @ best.values, rel=1e-6)
    assert found.cost.mean == pytest.approx(model.initial @ best.values, rel=1e-6)


def test_a_guided_program_is_the_full_one_with_guiding_rows() -> None:
    model = queue(30)
    basis = bw.Polynomial(3)
    floor = values_of(model, bw.solve(model, basis, bw.Fixed("uniform"))) - 1.0
    rows = GuidedRows(model, basis, floor)
    found = bw.solve(model, basis, bw.Fixed("initial"))  # what it would be without
    guided = solve_alp(rows, rows.moments(model.initial))
    features = reference.features_of(model, basis)
    scale = np.abs(features).max(axis=0)
    answer = linprog(
        -(features.T @ model.initial) / scale,
        A_ub=np.vstack([reference.bellman_rows(model, features), -features]) / scale,
        b_ub=np.append(model.cost, -floor),
        bounds=[(None, None)] * 4,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert guided.status is bw.Status.OPTIMAL
    assert guided.objective == pytest.approx(-answer.fun, rel=1e-8)
    assert guided.objective < found.objective - 1e-6
    assert (features @ guided.coef >= floor - 1e-9 * np.abs(floor).max()).all()


def test_without_guidance_values_fall_somewhere() -> None:
    model = queue()
    plan = bw.plans.SelfGuided(features=4, batches=3, bandwidth=6.0, seed=1)
    found = bw.solve(model, bw.Polynomial(1), plan)
    guided = [values_of(model, result) for result in found.results]
    alone = [
        values_of(model, bw.solve(model, result.basis, bw.Fixed("initial")))
        for result in found.results
    ]
    unit = reference.cost_scale(model)
    assert len(guided) >= 3
    falls = [float((b - a).min()) for a, b in pairwise(alone)]
    rises = [float((b - a).min()) for a, b in pairwise(guided)]
    assert min(rises) >= -1e-9 * unit
    assert min(falls) < -1e-3 * unit


def test_many_states_bring_guiding_rows_in_one_by_one() -> None:
    model = queue(2_000)
    plan = bw.plans.SelfGuided(features=5, batches=2, bandwidth=20.0, seed=2)
    found = bw.solve(model, bw.Polynomial(1), plan)
    first, *_, last = (values_of(model, result) for result in found.results)
    assert (last >= first - 1e-9 * np.abs(first).max()).all()
    assert found.results[-1].reported.rows < model.n_pairs
    assert all(result.status is bw.Status.CONVERGED for result in found.results)


def test_the_best_policy_is_kept_and_ends_are_told() -> None:
    model = queue()
    found = bw.solve(
        model, bw.Polynomial(1), bw.plans.SelfGuided(features=5, batches=8, bandwidth=3.0, seed=1)
    )
    costs = [result.cost.mean for result in found.results]
    assert found.cost.mean == min(cost for cost in costs if cost is not None)
    assert found.policy is found.result.policy
    exact = model.initial @ bw.exact.policy_value(model, found.policy)
    assert found.cost.mean == pytest.approx(exact)
    assert len(found.results) < 9  # before the batches are used up: nothing was gained
    text = str(found)
    assert "The optimal cost lies between" in text
    assert found.to_frame("columns")["functions"][0] == 2
    assert len(found.charts()) == 1


def test_a_basis_that_is_exact_needs_no_batch() -> None:
    model = queue(15)
    found = bw.solve(model, bw.Indicator(), bw.plans.SelfGuided(features=3, batches=3))
    assert len(found.results) == 1
    assert found.cost.mean == pytest.approx(found.lower_bound)


def test_other_weights_and_their_duals() -> None:
    model = queue(30)
    plan = bw.plans.SelfGuided(features=3, batches=2, bandwidth=4.0, weights=bw.DIA())
    found = bw.solve(model, bw.Polynomial(1), plan)
    mass = 1.0 / (1.0 - model.discount)
    for result in found.results:
        assert result.status is bw.Status.CONVERGED
        assert result.dual is not None
        # Guiding rows may carry mass of the dual, which belongs to no pair.
        assert result.dual.sum() >= mass * (1.0 - 1e-9)


def test_results_are_files_and_their_basis_can_be_evaluated(tmp_path: Path) -> None:
    model = queue(30)
    found = bw.solve(
        model, bw.Polynomial(1), bw.plans.SelfGuided(features=3, batches=2, bandwidth=4.0)
    )
    result = found.results[-1]
    result.save(tmp_path / "a.npz")
    loaded = bw.Result.load(tmp_path / "a.npz", model=model)
    np.testing.assert_allclose(values_of(model, loaded), values_of(model, result))
    assert len(set(result.names)) == len(result.names)
    # Fitted cosines stay on a model with other states: the coefficients belong to them.
    wider = queue(40)
    again = result.policy.on(wider)
    np.testing.assert_allclose(
        again.basis(model.states) @ again.coef, values_of(model, result), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"features": 0}, bw.errors.ArgumentError, "features is 0, expected a whole number"),
        ({"batches": 1.5}, bw.errors.ArgumentError, "batches is 1.5, expected a whole number"),
        ({"seed": -1}, bw.errors.ArgumentError, "seed is -1, expected a whole number"),
        ({"bandwidth": 0.0}, bw.errors.BasisError, "scale is 0.0, expected numbers above 0"),
        ({"bandwidth": "wide"}, bw.errors.BasisError, "scale is not an array of numbers"),
        ({"tol": 0.0}, bw.errors.ArgumentError, "tol is 0.0, expected a number above 0"),
        (
            {"weights": "uniform"},
            bw.errors.ArgumentError,
            "weights is 'uniform', expected a method",
        ),
    ],
)
def test_bad_settings(settings: dict[str, object], error: type[Exception], text: str) -> None:
    given: dict[str, object] = {"features": 3, "batches": 2, **settings}
    with pytest.raises(error, match=text):
        bw.plans.SelfGuided(**given)  # type: ignore[arg-type]


def test_bad_orders() -> None:
    plan = bw.plans.SelfGuided(features=3, batches=2)
    with pytest.raises(
        bw.errors.ArgumentError, match=r"got EventModel, expected a TabularModel: .*to_tab"
    ):
        bw.solve(network(), bw.Polynomial(1), plan)
    with pytest.raises(bw.errors.ArgumentError, match="expected 0: guiding rows must hold"):
        bw.solve(queue(), bw.Polynomial(1), plan, regularisation=1.0)


def test_bounds_of_the_given_basis_hold_to_the_end() -> None:
    plan = bw.plans.SelfGuided(features=3, batches=2, seed=1)
    found = bw.solve(queue(), bw.Polynomial(1, lower=0.0), plan)
    assert len(found.results) > 1
    for result in found.results:
        assert result.coef[:2].min() >= -1e-9
