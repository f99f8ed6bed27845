"""Dual-guided enrichment: the basis grows where the program needs it, and says when to stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import event_models as em
import numpy as np
import pytest
import strategies as some
from event_models import NETWORK
from hypothesis import given, settings
from hypothesis import strategies as st

import bellweight as bw
from bellweight.basis.located import extended
from bellweight.plans.candidate_functions import (
    PricedChoice,
    candidates_at,
    listed_imbalance,
    proposed_points,
)
from bellweight.plans.sampled_imbalance import sampled_imbalance
from bellweight.program import TabularRows

LINEAR = bw.Polynomial(1)


def optimal_cost(model: bw.TabularModel) -> float:
    return float(model.initial @ bw.exact.optimal(model).values)


def standing(values: np.ndarray, vectors: np.ndarray | None = None) -> bw.TabularModel:
    """A model that stays where it is, so that its values are what they are made to be."""
    n = len(values)
    return bw.TabularModel.from_arrays(
        cost=0.1 * values[:, None],
        transition=[np.eye(n)],
        discount=0.9,
        initial=np.full(n, 1.0 / n),
        state_vectors=vectors,
    )


@pytest.fixture(scope="module")
def short_queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=60, initial="empty")


@pytest.fixture(scope="module")
def grown(short_queue: bw.TabularModel) -> bw.plans.EnrichedResult:
    return bw.solve(short_queue, LINEAR, bw.Enriched())


# The paper's queue has 50,000 states; how many functions it takes does not depend on them.
@pytest.mark.parametrize("capacity", [4_999, pytest.param(49_999, marks=pytest.mark.slow)])
def test_the_empty_queue_reaches_its_optimal_cost_and_proves_it(capacity: int) -> None:
    queue = bw.problems.single_queue(initial="empty", capacity=capacity)
    found = bw.solve(queue, LINEAR, bw.Enriched())
    optimum = optimal_cost(queue)
    assert found.cost.mean == pytest.approx(optimum, rel=1e-6)
    assert found.lower_bound <= optimum <= found.lower_bound + 1.1e-6 * optimum
    assert len(found.added) <= 20
    assert found.stopped.startswith("the gap is closed")
    early = next(one for one in found.rounds if one.cost.mean <= optimum * (1.0 + 1e-6))
    assert early.total <= 8


def test_the_tiny_clinic_reaches_its_optimal_cost() -> None:
    clinic = bw.problems.scheduling("tiny").to_tabular(clip=True)
    found = bw.solve(clinic, LINEAR, bw.Enriched(functions=12))
    optimum = optimal_cost(clinic)
    assert found.rounds[0].cost.mean > 1.0003 * optimum
    assert found.cost.mean == pytest.approx(optimum, rel=1e-6)
    assert len(found.added) <= 12
    assert found.stopped == "all 12 functions are used"
    # Patients of the first class wait with those booked for tomorrow: their sum is what matters.
    assert "max(x1 + x3 - 2, 0)" in found.result.names


def test_the_missing_hinge_is_found() -> None:
    x = np.arange(10.0)
    model = standing(2.0 + x + 3.0 * np.maximum(x - 4.0, 0.0))
    found = bw.solve(model, LINEAR, bw.Enriched(per_round=1))
    assert found.added == (bw.bases.Hinge((0,), 4.0),)
    assert found.result.names == ("1", "x", "max(x - 4, 0)")
    assert found.result.coef == pytest.approx([2.0, 1.0, 3.0])
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_the_missing_spot_is_found() -> None:
    x = np.arange(10.0)
    found = bw.solve(standing(2.0 + x + 5.0 * (x == 6.0)), LINEAR, bw.Enriched(per_round=1))
    assert found.added == (bw.bases.StateIndicator((6.0,)),)
    assert found.result.coef == pytest.approx([2.0, 1.0, 5.0])


def test_a_hinge_of_a_sum_is_found() -> None:
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    model = standing(1.0 + np.maximum(grid.sum(axis=1) - 4.0, 0.0), grid)
    found = bw.solve(model, LINEAR, bw.Enriched(per_round=1))
    assert found.result.names[3:] == ("max(x1 + x2 - 4, 0)",)
    assert found.result.coef == pytest.approx([1.0, 0.0, 0.0, 1.0], abs=1e-9)


@given(some.models(max_states=7), st.integers(1, 3))
@settings(max_examples=30)
def test_as_many_functions_as_states_reach_the_optimum(
    model: bw.TabularModel, per_round: int
) -> None:
    plan = bw.Enriched(functions=model.n_states, per_round=per_round, patience=model.n_states)
    found = bw.solve(model, LINEAR, plan, judge=False)
    optimum = optimal_cost(model)
    unit = max(1.0, float(np.abs(model.cost).max()) / (1.0 - model.discount))
    assert found.cost.mean <= optimum + 2e-6 * max(abs(optimum), 1e-3 * unit)
    assert found.lower_bound <= optimum + 1e-8 * unit


@pytest.mark.parametrize(
    "method", [bw.PIA(), bw.Fixed(), bw.Fixed("uniform"), bw.FromPolicy()], ids=repr
)
def test_every_method_can_be_enriched(
    short_queue: bw.TabularModel, method: bw.weights.Method
) -> None:
    found = bw.solve(short_queue, LINEAR, bw.Enriched(method=method))
    assert type(found.result.method) is type(method)
    assert found.cost.mean == pytest.approx(optimal_cost(short_queue), rel=1e-6)


def test_the_bound_never_falls_and_the_gap_never_grows(grown: bw.plans.EnrichedResult) -> None:
    assert (np.diff([one.lower_bound for one in grown.rounds]) >= 0.0).all()
    assert (np.diff([one.gap for one in grown.rounds]) <= 0.0).all()
    assert grown.rounds[-1].gap < 1e-6 * grown.rounds[0].gap * 10.0
    assert [one.total for one in grown.rounds] == [2 * k for k in range(len(grown.rounds))]
    assert grown.cost.mean == min(one.cost.mean for one in grown.rounds)


def test_what_is_left_is_the_weighted_residual_of_the_certificate(
    short_queue: bw.TabularModel, grown: bw.plans.EnrichedResult
) -> None:
    first = bw.solve(short_queue, LINEAR, bw.DIA())
    certificate = bw.certify(short_queue, first)
    assert grown.rounds[0].left == pytest.approx(certificate.weighted_residual)
    assert grown.rounds[0].gap == pytest.approx(certificate.bound)
    assert bw.certify(short_queue, grown.result).bound == pytest.approx(grown.gap, abs=1e-8)


def test_the_price_is_what_the_dual_leaves_out_of_balance(short_queue: bw.TabularModel) -> None:
    result = bw.solve(short_queue, bw.Polynomial(2), bw.DIA())
    found = listed_imbalance(short_queue, result)
    features = bw.Polynomial(2)(short_queue.states)
    assert np.abs(found.flow @ features) == pytest.approx(0.0, abs=1e-6)
    states = proposed_points(found, 1.0)
    assert (np.diff(found.contribution[states]) <= 0.0).all()
    with_mass = np.unique(result.support.states)
    assert not np.isin(states, with_mass).any()
    choice = PricedChoice(lambda basis: TabularRows(short_queue, basis), result.basis, (), found)
    offered = candidates_at(short_queue.states[states], short_queue.states[with_mass])
    (best,) = choice.best(offered, 1)
    # Adding it raises the objective under the same weights.
    weights = bw.Fixed(result.weights)
    before = bw.solve(short_queue, result.basis, weights)
    after = bw.solve(short_queue, extended(result.basis, [best], 1), weights)
    assert after.objective > before.objective + 1e-3


def test_the_final_result_is_an_ordinary_one(
    grown: bw.plans.EnrichedResult, short_queue: bw.TabularModel, tmp_path: Path
) -> None:
    grown.result.save(tmp_path / "grown.npz")
    loaded = bw.Result.load(tmp_path / "grown.npz", model=short_queue)
    assert loaded.names == grown.result.names
    assert np.array_equal(loaded.coef, grown.result.coef)
    here, there = grown.policy, loaded.policy
    chances = here.probabilities(short_queue)
    assert np.array_equal(there.on(short_queue).probabilities(short_queue), chances)
    again = bw.solve(short_queue, loaded.basis, bw.DIA())
    assert again.cost.mean == pytest.approx(grown.cost.mean)
    bw.testing.check_basis(short_queue, loaded.basis)


def test_it_shows_itself(grown: bw.plans.EnrichedResult) -> None:
    text = str(grown)
    assert "max(x - " in text
    assert "Stopped: the gap is closed" in text
    assert "<table" in grown._repr_html_()
    frame = grown.to_frame("columns")
    assert frame["cost"] == [one.cost.mean for one in grown.rounds]
    assert len(grown.figure().axes) == 2


def test_a_bound_that_is_proven_late_is_drawn_from_there_on(
    grown: bw.plans.EnrichedResult,
) -> None:
    first, *others = grown.rounds
    late = replace(grown, rounds=(replace(first, lower_bound=None, gap=None), *others))
    (chart,) = late.charts("growth")
    assert [len(line.x) for line in chart.lines] == [len(grown.rounds), len(others)]
    assert "bound went from" in chart.alt


@pytest.mark.parametrize("basis", [bw.Indicator(), bw.Polynomial(4)], ids=repr)
def test_a_basis_that_is_complete_is_returned_as_it_is(basis: bw.bases.Basis) -> None:
    model = standing(np.array([3.0, 1.0, 4.0, 1.0, 5.0]))
    found = bw.solve(model, basis, bw.Enriched())
    assert found.added == ()
    assert len(found.rounds) == 1
    assert found.cost.mean == pytest.approx(2.8)
    assert "the gap is closed" in found.stopped


def test_when_nothing_can_be_added_it_says_so() -> None:
    # Two states that a basis cannot tell apart: the second costs more, and no function sees it.
    model = standing(np.array([1.0, 2.0, 5.0]), np.array([[0.0], [1.0], [1.0]]))
    found = bw.solve(model, LINEAR, bw.Enriched())
    assert found.added == ()
    assert found.stopped.startswith("nothing to add: every function proposed depends on the basis")
    assert found.cost.mean == pytest.approx(8.0 / 3.0)
    assert found.lower_bound == pytest.approx(5.0 / 3.0)


def test_it_stops_when_nothing_improves() -> None:
    # Nearly all of the gap is due to two states of the same vector, and no function helps there.
    x = np.append(np.arange(10.0), 9.0)
    values = 2.0 + (x == 3.0) + (x == 6.0) + 198.0 * (np.arange(11) == 10)
    model = standing(values, x[:, None])
    found = bw.solve(model, LINEAR, bw.Enriched(per_round=1, tol=0.2, patience=1))
    assert found.stopped == "neither cost nor gap improved by 0.2 of the cost in the last round"
    assert len(found.rounds) == 2
    assert found.rounds[1].gap < found.rounds[0].gap


def test_the_time_limit_is_for_all_rounds(short_queue: bw.TabularModel) -> None:
    found = bw.solve(short_queue, LINEAR, bw.Enriched(), stop=bw.Stop(max_seconds=1e-6))
    assert found.stopped == "the time is up"
    assert len(found.rounds) == 1


def test_bounds_of_the_basis_are_kept(short_queue: bw.TabularModel) -> None:
    basis = bw.Affine(lower=[-np.inf, 0.0], upper=[np.inf, 1.0])
    found = bw.solve(short_queue, basis, bw.Enriched(functions=4))
    assert len(found.added) > 0
    assert 0.0 <= found.result.coef[1] <= 1.0
    low, high = found.result.basis.bounds(len(found.result.names))
    assert low.tolist()[:3] == [-np.inf, 0.0, -np.inf]
    assert high.tolist()[:3] == [np.inf, 1.0, np.inf]


@pytest.mark.parametrize(
    "basis",
    [bw.Polynomial(0), bw.Radial(4, seed=1), bw.Indicator(np.arange(61) // 10)],
    ids=repr,
)
def test_other_bases_grow_too(short_queue: bw.TabularModel, basis: bw.bases.Basis) -> None:
    first = bw.solve(short_queue, basis, bw.DIA())
    found = bw.solve(short_queue, basis, bw.Enriched(functions=10))
    assert found.gap < 0.5 * found.rounds[0].gap
    assert found.result.names[: len(first.names)] == first.names
    assert first.cost is not None
    assert found.cost.mean <= first.cost.mean


def test_a_regularised_program_can_be_enriched(short_queue: bw.TabularModel) -> None:
    plan = bw.Enriched(functions=4)
    found = bw.solve(short_queue, LINEAR, plan, regularisation=1e-3)
    assert found.result.regularisation == 1e-3
    assert found.gap < found.rounds[0].gap


def test_progress_is_told(short_queue: bw.TabularModel, capsys: pytest.CaptureFixture[str]) -> None:
    bw.solve(short_queue, LINEAR, bw.Enriched(functions=2), progress=True)
    printed = capsys.readouterr().out
    assert "round   0  functions   0" in printed
    assert "round   1  functions   2" in printed


def test_bad_settings_are_refused() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="expected a method such as DIA"):
        bw.Enriched(method=bw.Enriched())  # type: ignore[arg-type]
    for setting in ({"functions": 0}, {"per_round": 0}, {"patience": 1.5}, {"tol": 0.0}):
        with pytest.raises(bw.BellweightError, match=next(iter(setting))):
            bw.Enriched(**setting)


def test_methods_that_know_one_basis_only_are_refused(short_queue: bw.TabularModel) -> None:
    certified = bw.DIA.certified(lipschitz=100.0, discount=0.98)
    with pytest.raises(
        bw.errors.ArgumentError, match=r"use DIA\(\.\.\.\) with the same temperature"
    ):
        bw.Enriched(method=certified)
    with pytest.raises(bw.errors.ArgumentError, match=r"use Fixed\(weights\)"):
        bw.solve(short_queue, LINEAR, bw.Enriched(method=bw.Fixed(moments=[1.0, 3.0])))


class Watch:
    """Raises something in a chosen solve."""

    def __init__(self, solve: int, problem: BaseException) -> None:
        self.left = solve
        self.problem = problem

    def __call__(self, record: bw.weights.HistoryEntry) -> None:
        self.left -= record.iteration == 0
        if self.left == 0:
            raise self.problem


def test_what_was_found_before_an_interruption_is_kept(short_queue: bw.TabularModel) -> None:
    watch = Watch(3, KeyboardInterrupt())
    found = bw.solve(short_queue, LINEAR, bw.Enriched(), progress=watch)
    assert found.stopped == "interrupted"
    assert len(found.rounds) == 3
    assert found.cost.mean == min(one.cost.mean for one in found.rounds)


def test_what_was_found_before_a_failure_is_kept(short_queue: bw.TabularModel) -> None:
    problem = bw.errors.SolverError(bw.Status.FAILED, "the solver gave up")
    found = bw.solve(short_queue, LINEAR, bw.Enriched(), progress=Watch(3, problem))
    assert found.stopped.startswith("the next program failed: ")
    assert "the solver gave up" in found.stopped
    assert len(found.rounds) == 2
    with pytest.raises(bw.errors.SolverError, match="gave up"):
        bw.solve(short_queue, LINEAR, bw.Enriched(), progress=Watch(1, problem))


def network_rows() -> bw.SampledRows:
    return bw.SampledRows(em.network_truth().states)


@pytest.mark.parametrize("method", [bw.Fixed("initial"), bw.FromPolicy(bw.Uniform())])
def test_drawn_imbalances_are_those_of_the_listed_model(method: bw.weights.Method) -> None:
    network, table = em.network(), em.network().to_tabular()
    basis = bw.Polynomial(1)
    result = bw.solve(network, basis, method, rows=network_rows(), judge=False, seed=3)
    drawn = sampled_imbalance(network, result)
    listed = listed_imbalance(table, bw.solve(table, basis, method, judge=False))
    for function in (bw.bases.Hinge((0, 1), 1.0), bw.bases.Hinge((2,), 2.0)):
        found, wanted = (float(one.flow @ function(one.points)) for one in (drawn, listed))
        error = np.sqrt(drawn.weights @ function(drawn.points) ** 2 / drawn.drawn)
        assert abs(found - wanted) < 6.0 * error + 1e-6
    assert drawn.left == pytest.approx(listed.left, rel=0.1)


def test_the_basis_of_an_event_model_grows(tmp_path: Path) -> None:
    plan = bw.Enriched(functions=4, per_round=2)
    few = bw.Simulation(300)
    found = bw.solve(em.network(), bw.Affine(), plan, rows=network_rows(), simulation=few, seed=1)
    left = [one.left for one in found.rounds]
    assert [one.total for one in found.rounds] == [0, 2, 4]
    assert left[-1] < 0.75 * left[0]
    assert found.lower_bound is found.gap is None
    assert "lower bound" not in str(found)
    assert found.cost == found.judgement.cost
    found.save(tmp_path / "grown.npz")
    again = bw.plans.EnrichedResult.load(tmp_path / "grown.npz", em.network())
    assert again.rounds == found.rounds
    assert again.policy.action([1, 2, 0, 3]) == found.policy.action([1, 2, 0, 3])


def test_models_whose_rows_are_not_listed_are_refused_with_the_remedy() -> None:
    for model in (NETWORK.model(discount=0.9, compiled=False), bw.problems.scheduling("tiny")):
        with pytest.raises(bw.errors.ArgumentError, match=r"RaisedBound\(\).*to_tabular\(\)"):
            bw.solve(model, bw.Affine(), bw.Enriched())


def test_moments_alone_do_not_tell_where_the_weights_are() -> None:
    method = bw.Fixed(moments=[1.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(bw.errors.ArgumentError, match="gives moments only"):
        bw.solve(em.network(), bw.Affine(), bw.Enriched(method), rows=network_rows())


def test_located_functions_are_checked() -> None:
    states = np.array([[0.0, 1.0], [2.0, 3.0]])
    basis = bw.bases.Located(
        [
            bw.bases.Hinge((0, 1), -1.0),
            bw.bases.Hinge((1,), 0.0),
            bw.bases.StateIndicator((2.0, 3.0)),
        ]
    )
    assert basis.on(states)(states).tolist() == [[2.0, 1.0, 0.0], [6.0, 3.0, 1.0]]
    assert basis.function_names(2) == ("max(x1 + x2 + 1, 0)", "max(x2, 0)", "[x = (2, 3)]")
    with pytest.raises(bw.errors.BasisError, match="expected some of 0 to 1"):
        bw.bases.Located([bw.bases.Hinge((2,), 0.0)]).on(states)
    with pytest.raises(bw.errors.BasisError, match="expected 2 coordinates"):
        bw.bases.Located([bw.bases.StateIndicator((2.0,))]).on(states)
    with pytest.raises(bw.errors.BasisError, match="expected a list of Hinge"):
        bw.bases.Located([bw.Polynomial(2)])


def ordered(state: Any, action: int, noise: Any) -> float:
    return min(max(state[0] + 2.0 * action - noise[0], -3.0), 5.0)


def paid(state: Any, action: int) -> float:
    """Pay for orders and for the stock of today: affine values then order all or nothing."""
    return 1.0 * action + max(state[0], 0.0) + 6.0 * max(-state[0], 0.0)


def test_the_basis_of_a_step_model_grows_to_the_optimal_policy() -> None:
    model = bw.StepModel(
        dimension=1, actions=2, step=ordered, cost=paid, discount=0.8, lower=-3, upper=5,
        initial=1.0, noise=bw.Law([0.0, 1.5], [0.5, 0.5]), compiled=False,
    )  # fmt: skip
    listed = model.to_tabular(grid=17)  # which holds every state that is met

    def exact(policy: Any) -> float:
        table = bw.TablePolicy(policy.actions(listed.states))
        return float(listed.initial @ bw.exact.policy_value(listed, table))

    rows = bw.SampledRows(listed.states)
    few = bw.Simulation(episodes=200, horizon=25)
    found = bw.solve(
        model, LINEAR, bw.Enriched(bw.Fixed(), functions=4), rows=rows, simulation=few, judge=False
    )
    assert found.rounds[0].cost.mean > 2.0 * optimal_cost(listed)
    assert exact(found.policy) == pytest.approx(optimal_cost(listed), rel=0.01)
    assert all(isinstance(function, bw.bases.Hinge) for function in found.added)
