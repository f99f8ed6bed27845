"""Programs that have no answer, and solvers that give a wrong one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference

import bellweight as bw
from bellweight.program import AllRows, AlpProgram, alp, simplex
from bellweight.program.auditing import Auditor
from bellweight.program.master import LpAnswer, MasterLp


def test_a_bound_that_excludes_every_value_is_infeasible(two_states: bw.TabularModel) -> None:
    """No value function lies above the optimal one, so the constant cannot be 100."""
    with pytest.raises(bw.errors.SolverError, match=r"infeasible.*try: widen the bounds") as caught:
        bw.solve(two_states, bw.Polynomial(0, lower=100.0), bw.Fixed())
    assert caught.value.status is bw.Status.INFEASIBLE
    assert caught.value.history == ()
    assert isinstance(caught.value, bw.BellweightError)


def test_a_bound_on_the_constant_alone_is_infeasible_in_a_richer_basis(
    small_queue: bw.TabularModel,
) -> None:
    free = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed())
    ceiling = float(bw.exact.optimal(small_queue).values[0])
    assert free.coef[0] <= ceiling
    lower = [ceiling + 1.0, -np.inf, -np.inf]
    with pytest.raises(bw.errors.SolverError) as caught:
        bw.solve(small_queue, bw.Polynomial(2, lower=lower), bw.Fixed())
    assert caught.value.status is bw.Status.INFEASIBLE


def test_moments_that_no_weights_have_are_unbounded(small_queue: bw.TabularModel) -> None:
    """All rows of a model bound every objective that comes from weights, but not any vector."""
    with pytest.raises(
        bw.errors.SolverError, match=r"grows without limit along.*try: add"
    ) as caught:
        bw.solve(small_queue, bw.Polynomial(1), bw.Fixed(moments=[1.0, 1e6]))
    assert caught.value.status is bw.Status.UNBOUNDED


def test_a_failure_in_a_later_iteration_carries_the_history(
    small_queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, calls = AlpProgram.solve, []

    def failing(self: AlpProgram, *args: object) -> object:
        calls.append(args)
        if len(calls) == 4:
            raise bw.errors.SolverError(bw.Status.FAILED, "no luck")
        return solve(self, *args)

    monkeypatch.setattr(AlpProgram, "solve", failing)
    with pytest.raises(bw.errors.SolverError, match=r"no luck.*try: check the model") as caught:
        bw.solve(small_queue, bw.Polynomial(3), bw.DIA(step_size=0.5))
    assert caught.value.status is bw.Status.FAILED
    assert [record.iteration for record in caught.value.history] == [0, 1, 2]
    assert all(record.sup_norm > 0.0 for record in caught.value.history)


class WrongVertex:
    """A solver that says "optimal" about the answer to another question."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.moments = np.zeros(0)
        self.solve = MasterLp.solve
        self.set_moments = MasterLp.set_moments

    def install(self, monkeypatch: pytest.MonkeyPatch) -> WrongVertex:
        def solve(lp: MasterLp, **options: bool) -> LpAnswer:
            return self.answer(lp)

        def set_moments(lp: MasterLp, moments: np.ndarray) -> None:
            self.moments = moments
            self.set_moments(lp, moments)

        monkeypatch.setattr(MasterLp, "solve", solve)
        monkeypatch.setattr(MasterLp, "set_moments", set_moments)
        return self

    def answer(self, lp: MasterLp) -> LpAnswer:
        right = self.solve(lp)
        if self.times == 0 or right.status is not bw.Status.OPTIMAL:
            return right
        self.times -= 1
        self.set_moments(lp, np.eye(lp.n_basis)[0] * self.moments[0])
        wrong = self.solve(lp)
        self.set_moments(lp, self.moments)
        basic = wrong.basic if set(wrong.basic) != set(right.basic) else right.basic[:-1]
        return replace(right, basic=basic)


@pytest.fixture
def bounded() -> tuple[bw.TabularModel, bw.bases.Basis]:
    return bw.problems.single_queue(capacity=30, discount=0.95), bw.Polynomial(3)


def test_a_wrong_optimum_that_persists_is_called_inaccurate(
    bounded: tuple[bw.TabularModel, bw.bases.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, basis = bounded
    WrongVertex(times=1_000).install(monkeypatch)
    monkeypatch.setattr(simplex, "_MOST_FUNCTIONS", 0)  # nothing takes twice the digits
    said = r"coefficients and dual differ by .* \(audit: at most .*: lower the degree"
    with pytest.warns(bw.errors.BellweightWarning, match=said):
        result = bw.solve(model, basis, bw.Fixed())
    assert result.status is bw.Status.INACCURATE
    assert not result.audit.passed
    assert not result.status.is_success
    assert "INACCURATE" in str(result)
    assert bw.Status.INACCURATE.remedy in " ".join(str(result).split())


def test_a_wrong_optimum_that_persists_is_found_with_twice_the_digits(
    bounded: tuple[bw.TabularModel, bw.bases.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, basis = bounded
    wanted, _ = reference.full_program(model, basis, model.initial)
    WrongVertex(times=1_000).install(monkeypatch)
    result = bw.solve(model, basis, bw.Fixed())
    assert result.status is bw.Status.CONVERGED
    assert result.objective == pytest.approx(wanted, rel=1e-8)


def test_an_inaccurate_answer_says_which_check_failed(
    bounded: tuple[bw.TabularModel, bw.bases.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, basis = bounded
    shortest = alp.minimum_norm_dual
    monkeypatch.setattr(
        alp, "minimum_norm_dual", lambda *args: replace(shortest(*args), residual=1e-3)
    )
    with pytest.warns(bw.errors.BellweightWarning, match="dual of smallest norm is off by 1.0e-03"):
        assert bw.solve(model, basis, bw.Fixed()).status is bw.Status.INACCURATE
    monkeypatch.undo()
    monkeypatch.setattr(Auditor, "rounding", lambda *_: 1e9)
    with pytest.warns(bw.errors.BellweightWarning, match="rounding of the coefficients may move"):
        assert bw.solve(model, basis, bw.Fixed()).status is bw.Status.INACCURATE


def test_the_next_weights_go_back_to_the_solver(
    bounded: tuple[bw.TabularModel, bw.bases.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer that took twice the digits does not make all later ones slow."""
    model, basis = bounded
    searches = []
    run = simplex.VertexSearch.run
    monkeypatch.setattr(
        simplex.VertexSearch, "run", lambda self, *args: searches.append(1) or run(self, *args)
    )
    rows = AllRows().on(model, basis)
    program = AlpProgram(rows, model.initial)
    program.solve(rows.moments(model.initial), model.initial)
    usual = len(searches)
    searches.clear()
    program = AlpProgram(rows, model.initial)
    wrong = WrongVertex(times=2).install(monkeypatch)  # all that it tries at first
    first = program.solve(rows.moments(model.initial), model.initial)
    assert wrong.times == 0
    assert len(searches) > usual
    searches.clear()
    even = np.full(model.n_states, 1.0 / model.n_states)
    second = program.solve(rows.moments(even), even)
    assert len(searches) == usual
    for found, weights in ((first, model.initial), (second, even)):
        wanted, _ = reference.full_program(model, basis, weights)
        assert found.status is bw.Status.OPTIMAL
        assert found.objective == pytest.approx(wanted, rel=1e-8)


def test_a_search_with_twice_the_digits_ends_at_the_time_limit(
    bounded: tuple[bw.TabularModel, bw.bases.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, basis = bounded
    WrongVertex(times=1_000).install(monkeypatch)
    stop = bw.Stop(max_seconds=1e-9)
    with pytest.warns(bw.errors.BellweightWarning, match=r"more with Stop\(max_seconds"):
        late = bw.solve(model, basis, bw.Fixed(), stop=stop)
    assert late.status is bw.Status.INACCURATE
    # Where the solver has no answer at all, the last complete iterate is the result.
    optimum, calls = AlpProgram.optimum, []

    def slow(self: AlpProgram, *args: object) -> object:
        calls.append(args)
        if len(calls) == 3:
            raise bw.errors.SolverError(bw.Status.TIME_LIMIT, "too slow")
        return optimum(self, *args[:2])

    monkeypatch.undo()
    monkeypatch.setattr(AlpProgram, "optimum", slow)
    cut = bw.solve(model, basis, bw.DIA(step_size=0.5), stop=bw.Stop(max_seconds=1e6))
    assert cut.status is bw.Status.TIME_LIMIT
    assert len(cut.history) == 2


@pytest.mark.parametrize("times", [1, 2])
def test_a_wrong_optimum_that_does_not_persist_is_repaired(
    times: int, bounded: tuple[bw.TabularModel, bw.bases.Basis], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, basis = bounded
    wanted, _ = reference.full_program(model, basis, model.initial)
    wrong = WrongVertex(times).install(monkeypatch)
    result = bw.solve(model, basis, bw.Fixed())
    assert wrong.times == 0
    assert result.status is bw.Status.CONVERGED
    assert result.objective == pytest.approx(wanted, rel=1e-8)


def test_an_inaccurate_iterate_overrules_convergence(
    small_queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = AlpProgram.solve
    monkeypatch.setattr(
        AlpProgram,
        "solve",
        lambda self, *args: replace(solve(self, *args), status=bw.Status.INACCURATE),
    )
    assert bw.solve(small_queue, bw.Polynomial(3), bw.DIA()).status is bw.Status.INACCURATE


def test_a_violation_is_not_hidden_by_rows_without_scale() -> None:
    """A row of zeros divides zero by zero; the violated row must still come first."""
    model = bw.TabularModel.from_arrays([[0.0], [1.0]], [np.eye(2)], 0.5, [1.0, 0.0])
    found = AllRows().on(model, bw.Indicator()).separate(np.array([0.0, 10.0]), unit=0.0)
    assert found.close[0] == 1
    assert (found.close_size > 0.0).all()


def test_a_model_without_costs_is_solved() -> None:
    model = bw.TabularModel.from_arrays(np.zeros((3, 2)), [np.eye(3)] * 2, 0.9, [1.0, 0.0, 0.0])
    for basis in (bw.Affine(), bw.Indicator()):
        result = bw.solve(model, basis, bw.DIA())
        assert result.status is bw.Status.CONVERGED
        assert result.coef.tolist() == [0.0] * len(result.coef)
        assert result.dual.sum() == pytest.approx(10.0, rel=1e-12)


@pytest.mark.parametrize("status", list(bw.Status))
def test_every_status_has_its_own_message_and_failures_a_remedy(status: bw.Status) -> None:
    assert len(status.message) > 20
    assert [s.message for s in bw.Status].count(status.message) == 1
    assert status.is_success == (status.remedy == "")


def test_more_indicators_than_the_solver_takes_are_refused_at_once() -> None:
    model = bw.problems.single_queue(capacity=20_000)
    with pytest.raises(bw.errors.BasisError, match=r"20,001 functions, .* needs no solver"):
        bw.solve(model, bw.Indicator(lower=0.0), bw.Fixed("uniform"))
