"""The regularised program: against a quadratic solver, in its limit, and what it allows itself."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import reference
import strategies
from cli_runs import failure, solved
from event_models import network
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import bellweight as bw
from bellweight.common.checks import FloatArray
from bellweight.program import PenaltyProgram, TabularRows


def quadratic_dual(
    model: bw.TabularModel, basis: bw.bases.Basis, weights: FloatArray, delta: float
) -> FloatArray:
    """min cost' x + delta/2 |x|^2  s.t.  rows' x = moments, x >= 0, over all rows."""
    features = reference.features_of(model, basis)
    equations = reference.bellman_rows(model, features).T
    moments = features.T @ weights
    length = np.linalg.norm(equations, axis=1)
    equations, moments = equations / length[:, None], moments / length
    unit = max(float(np.abs(model.cost).max()), delta, 1e-9)
    n = model.n_pairs
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.eye(n) * delta / unit),
        model.cost / unit,
        sparse.csc_matrix(np.vstack([equations, -np.eye(n)])),
        np.concatenate([moments, np.zeros(n)]),
        [clarabel.ZeroConeT(len(moments)), clarabel.NonnegativeConeT(n)],
        settings,
    )
    return np.maximum(np.array(solver.solve().x), 0.0)


@given(problem=strategies.problems(max_states=8), level=st.sampled_from([1e-2, 0.1, 1.0, 10.0]))
def test_agrees_with_a_quadratic_solver(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray], level: float
) -> None:
    model, basis, weights = problem
    delta = level * (float(np.abs(model.cost).max()) or 1.0) * (1.0 - model.discount)
    assume(not isinstance(basis, bw.Indicator))
    result = bw.solve(model, basis, bw.Fixed(weights), regularisation=delta, judge=False)
    wanted = quadratic_dual(model, basis, weights, delta)
    mass = 1.0 / (1.0 - model.discount)
    assert result.status is bw.Status.CONVERGED
    np.testing.assert_allclose(result.dual, wanted, rtol=0.0, atol=1e-5 * mass)
    assert result.dual.sum() == pytest.approx(mass, rel=1e-9)


@given(problem=strategies.problems(max_states=8))
def test_a_small_one_gives_the_minimum_norm_dual(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray],
) -> None:
    model, basis, weights = problem
    assume(not isinstance(basis, bw.Indicator))
    delta = 1e-9 * (float(np.abs(model.cost).max()) or 1.0)
    result = bw.solve(model, basis, bw.Fixed(weights), regularisation=delta, judge=False)
    wanted = bw.solve(model, basis, bw.Fixed(weights), judge=False).dual
    mass = 1.0 / (1.0 - model.discount)
    np.testing.assert_allclose(result.dual, wanted, rtol=0.0, atol=1e-6 * mass)


@given(problem=strategies.problems(max_states=8), level=st.sampled_from([0.1, 10.0]))
def test_the_bound_is_repaired(
    problem: tuple[bw.TabularModel, bw.bases.Basis, FloatArray], level: float
) -> None:
    model, basis, weights = problem
    assume(not isinstance(basis, bw.Indicator))
    unit = float(np.abs(model.cost).max()) or 1.0
    result = bw.solve(model, basis, bw.Fixed(weights), regularisation=level * unit, judge=False)
    best = float(model.initial @ bw.exact.optimal(model).values)
    assert result.lower_bound is not None
    assert result.lower_bound <= best + 1e-7 * unit / (1.0 - model.discount)
    certificate = bw.certify(model, result)
    assert certificate.bound is not None
    assert certificate.bound >= result.cost.mean - best - 1e-7 * unit / (1.0 - model.discount)
    slack = reference.residuals(model, reference.features_of(model, basis) @ result.coef)
    assert result.audit.violation == pytest.approx(max(0.0, -slack.min()), abs=1e-7 * unit)


def test_the_queue_reaches_the_limit_at_a_finite_size() -> None:
    model = bw.problems.single_queue(capacity=999)
    exact = bw.solve(model, bw.Polynomial(3), bw.Fixed("initial"))
    for delta in (1e-3, 1e-4, 1e-5, 1e-6):
        found = bw.solve(model, bw.Polynomial(3), bw.Fixed("initial"), regularisation=delta)
        np.testing.assert_allclose(found.dual, exact.dual, rtol=0.0, atol=1e-9)
    large = bw.solve(model, bw.Polynomial(3), bw.Fixed("initial"), regularisation=1.0)
    assert len(large.support.values) > 10 * len(exact.support.values)
    assert "regularised by 1" in str(large)


def test_a_warm_solve_is_the_same_as_a_cold_one() -> None:
    model = bw.problems.single_queue(capacity=300)
    rows = bw.program.AllRows().on(model, bw.Polynomial(2))
    even = np.full(model.n_states, 1.0 / model.n_states)
    warm = PenaltyProgram(rows, 0.5, model.initial)
    warm.solve(rows.moments(even))
    again = warm.solve(rows.moments(model.initial))
    cold = PenaltyProgram(rows, 0.5, model.initial).solve(rows.moments(model.initial))
    np.testing.assert_allclose(again.coef, cold.coef, rtol=1e-7)
    np.testing.assert_array_equal(again.keys, cold.keys)
    np.testing.assert_allclose(again.dual, cold.dual, rtol=1e-6, atol=1e-9)


def test_sampled_rows_that_cover_everything_equal_all_rows() -> None:
    model = network()
    table = model.to_tabular()
    basis = bw.Polynomial(2)
    states = table.states.astype(np.int64)
    sampled = bw.SampledRows(states).on(model, basis)
    whole = bw.program.AllRows().on(table, basis)
    moments = whole.moments(table.initial)
    one, other = (PenaltyProgram(rows, 0.3).solve(moments) for rows in (sampled, whole))
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-6, atol=1e-8)
    assert one.objective == pytest.approx(other.objective)


def test_few_steps_from_cold() -> None:
    model = bw.problems.queue_network()
    rows = bw.SampledRows(bw.sample_states(model, 1_000, seed=1)).on(model, bw.Polynomial(2))
    moments = rows.moments(np.full(1_000, 1e-3))
    found = PenaltyProgram(rows, 1.0).solve(moments)
    assert found.status is bw.Status.OPTIMAL
    assert found.rounds <= 40
    assert found.passes <= 5 * found.rounds


def test_dia_uses_the_spread_dual() -> None:
    model = bw.problems.single_queue(capacity=300)
    plain = bw.solve(model, bw.Polynomial(2), bw.DIA())
    spread = bw.solve(model, bw.Polynomial(2), bw.DIA(), regularisation=1.0)
    assert spread.status is bw.Status.CONVERGED
    assert spread.reported.dual_share > 2.0 * plain.reported.dual_share


def test_saved_results_keep_the_regularisation(tmp_path) -> None:
    model = bw.problems.single_queue(capacity=100)
    result = bw.solve(model, bw.Polynomial(2), bw.DIA(), regularisation=0.5)
    result.save(tmp_path / "a.npz")
    loaded = bw.Result.load(tmp_path / "a.npz", model=model)
    assert loaded.regularisation == 0.5
    with pytest.raises(bw.errors.ArgumentError, match=r"regularisation=0\.5: use the same"):
        bw.solve(model, bw.Polynomial(2), bw.DIA(), resume=loaded)
    again = bw.solve(model, bw.Polynomial(2), bw.DIA(), resume=loaded, regularisation=0.5)
    np.testing.assert_allclose(again.coef, result.coef, rtol=1e-6)


def test_one_that_drowns_in_rounding_is_refused() -> None:
    model = bw.problems.single_queue(capacity=100)
    with pytest.raises(bw.errors.ArgumentError, match="nothing beside the costs"):
        bw.solve(model, bw.Polynomial(3), bw.DIA(), regularisation=1e-21)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1", True])
def test_bad_regularisation(value: object) -> None:
    model = bw.problems.single_queue(capacity=10)
    with pytest.raises(bw.errors.ArgumentError, match="expected a number of zero or more"):
        bw.solve(model, bw.Polynomial(1), bw.DIA(), regularisation=value)  # type: ignore[arg-type]


def test_where_rows_cannot_be_listed_it_is_refused() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="expected 0 for a linear model"):
        bw.solve(bw.problems.scheduling("tiny"), bw.Affine(), bw.DIA(), regularisation=1.0)
    model = bw.problems.single_queue(capacity=10)
    with pytest.raises(bw.errors.ArgumentError, match="does not go with an Indicator"):
        bw.solve(model, bw.Indicator(), bw.DIA(), regularisation=1.0)
    with pytest.raises(bw.errors.ArgumentError, match="bounds on coefficients"):
        bw.solve(model, bw.Polynomial(1, lower=0.0), bw.DIA(), regularisation=1.0)


def test_moments_that_no_rows_reach() -> None:
    model = bw.problems.queue_network()
    rows = bw.SampledRows(bw.sample_states(model, 60, seed=1)).on(model, bw.Polynomial(2))
    far = np.zeros((1, 8)) + 1_000.0
    with pytest.raises(bw.errors.SolverError, match="grows without limit"):
        PenaltyProgram(rows, 1.0).solve(np.asarray(bw.Polynomial(2)(far))[0])


def test_the_command_line_takes_and_keeps_it(tmp_path, capsys) -> None:
    model = ["single_queue", "--option", "capacity=100"]
    saved = str(tmp_path / "a.npz")
    first = solved([*model, "--regularisation", "0.5", "--save", saved], tmp_path)
    assert first["regularisation"] == 0.5
    again = solved([*model, "--resume", saved], tmp_path)
    assert again["regularisation"] == 0.5
    capsys.readouterr()
    code, line = failure(["solve", *model, "--resume", saved, "--regularisation", "1"], capsys)
    assert code == 2
    assert "leave out --regularisation" in line
    code, line = failure(["solve", *model, "--regularisation", "-1"], capsys)
    assert code == 1
    assert "expected a number of zero or more" in line


def test_coefficients_that_the_dual_leaves_open_do_not_depend_on_the_start() -> None:
    model = bw.problems.single_queue(capacity=20, discount=0.9)
    rows = TabularRows(model, bw.PiecewiseLinear([3.0, 10.0, 15.0]))
    first, last = np.eye(21)[1], np.eye(21)[19]
    found = []
    for before in ((), (last,), (np.full(21, 1 / 21), last)):
        program = PenaltyProgram(rows, 1e-3)
        for weights in (*before, first):
            solution = program.solve(rows.moments(weights), weights)
        assert len(solution.keys) < rows.n_basis
        found.append(solution.coef)
    for coef in found[1:]:
        np.testing.assert_allclose(coef, found[0], rtol=1e-9)
    # The largest values on average: no other optimum, as the linear program finds them, has more.
    values = rows.values(found[0])
    paid = np.array(model.cost)
    paid[solution.keys] += 1e-3 * solution.dual
    matrix = -np.asarray(rows.rows(np.arange(model.n_pairs))[0])
    held = -matrix[solution.keys]
    best = linprog(
        -rows.moments(np.full(21, 1 / 21)), A_ub=-matrix, b_ub=paid, A_eq=held,
        b_eq=paid[solution.keys], bounds=(None, None),
    )  # fmt: skip
    assert values.mean() == pytest.approx(-best.fun, rel=1e-6)
