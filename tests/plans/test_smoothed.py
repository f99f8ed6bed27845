"""The smoothed program: against the full program written out, in its limits, and its promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference
import strategies
from event_models import network
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import bellweight as bw
from bellweight.common.checks import FloatArray
from bellweight.plans.relatives.smoothed_program import SmoothedProgram

levels = st.sampled_from([1e-3, 0.1, 1.0, 10.0])


def full_program(
    model: bw.TabularModel, basis: bw.bases.Basis, weights: FloatArray, budget: float
) -> float | None:
    """The optimum of the smoothed program over all rows, by linprog; None: there is no limit."""
    features = reference.features_of(model, basis)
    rows = reference.bellman_rows(model, features)
    n_basis, n_states = features.shape[1], model.n_states
    unit = float(np.abs(model.cost).max()) or 1.0
    allowed = -np.eye(n_states)[model.pair_state]
    spending = np.concatenate([np.zeros(n_basis), weights])[None, :]
    # A state without weight buys any violation for nothing: its rows say nothing.
    kept = weights[model.pair_state] > 0.0
    answer = linprog(
        np.append(-(features.T @ weights), np.zeros(n_states)),
        A_ub=np.vstack([np.hstack([rows, allowed])[kept], spending]),
        b_ub=np.append(model.cost[kept], budget) / unit,
        bounds=[(None, None)] * n_basis + [(0.0, None)] * n_states,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status in (0, 3), answer.message
    return -float(answer.fun) * unit if answer.status == 0 else None


@given(problem=strategies.problems(max_states=8), level=levels)
def test_agrees_with_the_full_program(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray], level: float
) -> None:
    model, basis, weights = problem
    weights = 0.9 * weights + 0.1 / model.n_states
    budget = level * (float(np.abs(model.cost).max()) or 1.0)
    found = bw.solve(
        model, basis, bw.plans.SmoothedALP(budget=budget, weights=bw.Fixed(weights)), judge=False
    )
    wanted = full_program(model, basis, weights, budget)
    assert wanted is not None
    unit = reference.cost_scale(model) + budget
    assert found.status is bw.Status.CONVERGED
    assert found.objective == pytest.approx(wanted, rel=1e-8, abs=1e-8 * unit)
    slack = reference.residuals(model, reference.features_of(model, basis) @ found.coef)
    needed = np.maximum.reduceat(np.maximum(-slack, 0.0), model.pair_start[:-1])
    assert weights @ needed <= budget + 1e-9 * unit
    assert found.audit.violation == pytest.approx(needed.max(), abs=1e-9 * unit)


@given(problem=strategies.problems(max_states=8), level=levels)
def test_states_without_weight_have_no_say(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray], level: float
) -> None:
    model, basis, weights = problem
    budget = level * (float(np.abs(model.cost).max()) or 1.0)
    plan = bw.plans.SmoothedALP(budget=budget, weights=bw.Fixed(weights))
    wanted = full_program(model, basis, weights, budget)
    if wanted is None:
        with pytest.raises(bw.errors.SolverError, match="grows without limit"):
            bw.solve(model, basis, plan, judge=False)
    else:
        unit = reference.cost_scale(model) + budget
        found = bw.solve(model, basis, plan, judge=False)
        assert found.objective == pytest.approx(wanted, rel=1e-8, abs=1e-8 * unit)


@given(problem=strategies.problems(max_states=8))
def test_a_budget_of_zero_is_the_plain_program(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray],
) -> None:
    model, basis, weights = problem
    plain = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    found = bw.solve(
        model, basis, bw.plans.SmoothedALP(budget=0.0, weights=bw.Fixed(weights)), judge=False
    )
    np.testing.assert_array_equal(found.coef, plain.coef)
    assert found.lower_bound == plain.lower_bound


@given(problem=strategies.problems(max_states=8), level=levels)
def test_the_bound_and_the_certificate_stay_true(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray], level: float
) -> None:
    model, basis, _ = problem
    unit = reference.cost_scale(model)
    budget = level * (float(np.abs(model.cost).max()) or 1.0)
    weights = bw.FromPolicy(bw.Uniform())  # its occupancy is closed: there is always an optimum
    found = bw.solve(
        model, basis, bw.plans.SmoothedALP(budget=budget, weights=weights), judge=False
    )
    best = float(model.initial @ bw.exact.optimal(model).values)
    assert found.lower_bound is not None
    assert found.cost is not None
    assert found.lower_bound <= best + 1e-8 * (unit + budget)
    certificate = bw.certify(model, found)
    assert certificate.bound is not None
    assert certificate.bound >= found.cost.mean - best - 1e-8 * (unit + budget)
    greedy_bound = certificate.greedy_bound
    assert greedy_bound is None or greedy_bound >= found.cost.mean - best - 1e-8 * (unit + budget)


def test_more_budget_never_lowers_the_objective() -> None:
    model = bw.problems.single_queue(capacity=300)
    rows = bw.program.AllRows().on(model, bw.Polynomial(3))
    weights = bw.solve(model, bw.Polynomial(3), bw.DIA()).weights
    assert weights is not None
    plain = bw.solve(model, bw.Polynomial(3), bw.Fixed(weights)).objective
    found = [
        SmoothedProgram(rows, budget, weights).solve(rows.moments(weights))
        for budget in (1e-9, 1e-3, 0.1, 1.0, 10.0)
    ]
    objectives = [plain, *(answer.objective for answer in found)]
    assert (np.diff(objectives) > 0.0).all()
    # The optimum is concave in the budget, and its slope is the price.
    prices = [answer.price for answer in found]
    assert (np.diff(prices) <= 1e-9).all()
    assert found[0].objective == pytest.approx(plain, rel=1e-5)
    for answer in found:
        mass = np.bincount(model.pair_state[answer.keys], answer.dual, model.n_states)
        assert (mass <= answer.price * weights * (1.0 + 1e-9) + 1e-12).all()
        assert mass.sum() == pytest.approx(1.0 / (1.0 - model.discount))


def test_a_constant_function_takes_the_whole_budget() -> None:
    model = bw.problems.single_queue(capacity=20, discount=0.9)
    # The value v meets (1 - discount) v <= cost + s(x): with s = budget everywhere, the lowest
    # cost of a step plus the budget is reached, and more where violations are bought dear.
    even = bw.Fixed("uniform")
    found = bw.solve(model, bw.Polynomial(0), bw.plans.SmoothedALP(budget=0.5, weights=even))
    least = np.sort(np.minimum.reduceat(model.cost, model.pair_start[:-1]))
    filled = (np.cumsum(least) + 0.5 * model.n_states) / np.arange(1, model.n_states + 1)
    assert (1.0 - model.discount) * found.coef[0] == pytest.approx(filled.min())


def test_many_rows_are_found_few_at_a_time() -> None:
    model = bw.problems.single_queue(capacity=20_000)
    plan = bw.plans.SmoothedALP(budget=1.0)
    large = bw.solve(model, bw.Polynomial(3), plan)
    small = bw.solve(bw.problems.single_queue(capacity=500), bw.Polynomial(3), plan)
    assert large.reported.passes > 1
    assert large.reported.rows < 0.02 * model.n_pairs
    assert large.objective == pytest.approx(small.objective, rel=1e-4)
    plain = bw.solve(model, bw.Polynomial(3), bw.DIA())
    assert large.cost is not None
    assert plain.cost is not None
    assert large.cost.mean < plain.cost.mean


def test_sampled_states_share_the_budget_evenly() -> None:
    model = network()
    table = model.to_tabular()
    basis = bw.Polynomial(2)
    n = table.n_states
    even = np.full(n, 1.0 / n)
    moments = bw.program.AllRows().on(table, basis).moments(even)
    sampled = bw.solve(
        model,
        basis,
        bw.plans.SmoothedALP(budget=0.2, weights=bw.Fixed(moments=moments)),
        rows=bw.SampledRows(table.states.astype(np.int64)),
    )
    whole = bw.solve(table, basis, bw.plans.SmoothedALP(budget=0.2, weights=bw.Fixed(even)))
    assert sampled.objective == pytest.approx(whole.objective, rel=1e-9)
    assert sampled.lower_bound is None


def test_coefficient_bounds_hold() -> None:
    model = bw.problems.single_queue(capacity=50)
    basis = bw.Polynomial(2, upper=[np.inf, np.inf, 0.05])
    found = bw.solve(model, basis, bw.plans.SmoothedALP(budget=1.0))
    free = bw.solve(model, bw.Polynomial(2), bw.plans.SmoothedALP(budget=1.0))
    assert found.status is bw.Status.CONVERGED
    assert free.coef[2] > 0.05
    assert found.coef[2] == pytest.approx(0.05)
    assert found.objective < free.objective


def test_how_the_weights_ended_is_told(cycling_of_three: bw.TabularModel) -> None:
    plan = bw.plans.SmoothedALP(budget=0.1, weights=bw.PIA())
    assert bw.solve(cycling_of_three, bw.Polynomial(3), plan).status is bw.Status.CYCLING


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=50)
    found = bw.solve(model, bw.Polynomial(2), bw.plans.SmoothedALP(budget=1.0, weights=bw.DIA()))
    found.save(tmp_path / "a.npz")
    loaded = bw.Result.load(tmp_path / "a.npz", model=model)
    assert loaded.method.budget == 1.0
    assert loaded.method_name == "SmoothedALP"
    np.testing.assert_array_equal(loaded.coef, found.coef)


@pytest.mark.parametrize("budget", [-1.0, np.nan, np.inf, "1", True, None])
def test_bad_budget(budget: object) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="expected a number of zero or more"):
        bw.plans.SmoothedALP(budget=budget)  # type: ignore[arg-type]


def test_bad_orders() -> None:
    model = bw.problems.single_queue(capacity=10)
    with pytest.raises(bw.errors.ArgumentError, match="weights is 'uniform', expected a method"):
        bw.plans.SmoothedALP(budget=1.0, weights="uniform")  # type: ignore[arg-type]
    plan = bw.plans.SmoothedALP(budget=1.0)
    with pytest.raises(bw.errors.ArgumentError, match="expected 0: SmoothedALP has its budget"):
        bw.solve(model, bw.Polynomial(1), plan, regularisation=1.0)
    with pytest.raises(bw.errors.ArgumentError, match="got a linear model, expected a tabular"):
        bw.solve(bw.problems.scheduling("tiny"), bw.Affine(), plan)
    only = bw.plans.SmoothedALP(budget=1.0, weights=bw.Fixed(moments=[1.0, 2.0]))
    with pytest.raises(bw.errors.ArgumentError, match="moments only, expected weights"):
        bw.solve(model, bw.Polynomial(1), only)


def test_rows_that_are_not_listed_are_refused() -> None:
    model, basis = bw.problems.queue_network(compiled=False), bw.PiecewiseLinear([2])
    plan = bw.plans.SmoothedALP(budget=1.0, weights=bw.Fixed())
    for rows in (None, bw.LocalRows()):  # without rows, those of all states are taken
        with pytest.raises(bw.errors.ArgumentError, match="SmoothedALP needs rows that are listed"):
            bw.solve(model, basis, plan, rows=rows, judge=False)
