"""Weights that repeat: any period is found, every phase kept, the cheapest reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import reference

import bellweight as bw


def phase_cost(model: bw.TabularModel, phase: bw.results.CyclePhase) -> float:
    values = reference.policy_value(model, phase.policy.probabilities(model))
    return float(model.initial @ values)


def assert_phases_follow_each_other(model: bw.TabularModel, result: bw.Result) -> None:
    """Each phase's greedy occupancy is the weights of the next; the last leads to the first."""
    n = len(result.phases)
    for i, phase in enumerate(result.phases):
        following = reference.occupancy(model, phase.policy.probabilities(model))
        np.testing.assert_allclose(
            following, result.phases[(i + 1) % n].weights, rtol=0.0, atol=1e-9
        )


def test_pia_cycles_with_period_three(cycling_of_three: bw.TabularModel) -> None:
    model = cycling_of_three
    result = bw.solve(model, bw.Polynomial(3), bw.PIA())
    assert result.status is bw.Status.CYCLING
    assert len(result.phases) == 3
    assert_phases_follow_each_other(model, result)
    costs = [phase_cost(model, phase) for phase in result.phases]
    np.testing.assert_allclose([phase.cost.mean for phase in result.phases], costs, rtol=1e-12)
    np.testing.assert_allclose(sorted(costs), [127.0, 220.0, 243.1], rtol=1e-12)
    assert result.cost.mean == pytest.approx(127.0, rel=1e-12)


def test_pia_cycles_with_period_two() -> None:
    successor = np.array([[1, 1], [2, 2], [1, 2]])
    model = bw.TabularModel.from_arrays(
        cost=[[2.0, 6.0], [4.0, 0.0], [9.0, 5.0]],
        transition=[np.eye(3)[successor[:, action]] for action in (0, 1)],
        discount=0.8,
        initial=np.full(3, 1.0 / 3.0),
    )
    result = bw.solve(model, bw.Polynomial(2), bw.PIA())
    assert result.status is bw.Status.CYCLING
    assert len(result.phases) == 2
    assert_phases_follow_each_other(model, result)


def test_a_damped_step_may_still_cycle_and_is_found_out(cycling_of_three: bw.TabularModel) -> None:
    result = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA(step_size=0.5))
    assert result.status is bw.Status.CYCLING
    weights = [phase.weights for phase in result.phases]
    for i, phase in enumerate(result.phases):
        occupancy = reference.occupancy(
            cycling_of_three, phase.policy.probabilities(cycling_of_three)
        )
        following = 0.5 * phase.weights + 0.5 * occupancy
        np.testing.assert_allclose(following, weights[(i + 1) % len(weights)], atol=1e-5)


def test_dia_does_not_cycle_where_pia_does(cycling_of_three: bw.TabularModel) -> None:
    result = bw.solve(cycling_of_three, bw.Polynomial(3), bw.DIA())
    assert result.status is bw.Status.CONVERGED


def test_reported_fields_are_those_of_the_cheapest_phase(
    cycling_of_three: bw.TabularModel,
) -> None:
    result = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA())
    best = min(result.phases, key=lambda phase: phase.cost.mean)
    assert result.cost.mean == best.cost.mean
    assert np.array_equal(result.coef, best.coef)
    assert np.array_equal(result.weights, best.weights)
    assert np.array_equal(result.moments, best.moments)
    assert np.array_equal(result.policy.table, best.policy.table)
    assert np.array_equal(result.support.values, best.support.values)
    assert result.objective == pytest.approx(float(best.moments @ best.coef), rel=1e-14)
    assert result.reported.objective == result.objective


@dataclass(frozen=True, eq=False, kw_only=True)
class Rotating(bw.weights.IterativeMethod):
    """A generator that, from the weights of one policy of a list, goes on to the next policy."""

    policies: Any = ()

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        model = iterate.model
        known = [reference.occupancy(model, p.probabilities(model)) for p in self.policies]
        distances = [float(np.abs(weights - iterate.weights).sum()) for weights in known]
        return self.policies[(int(np.argmin(distances)) + 1) % len(self.policies)]


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_any_period_is_found(period: int, small_queue: bw.TabularModel) -> None:
    tables = [bw.TablePolicy(np.full(31, action)) for action in (0, 1, 2, 3, 4)]
    method = Rotating(policies=tuple(tables[:period]), start=bw.FromPolicy(tables[0]))
    result = bw.solve(small_queue, bw.Polynomial(2), method)
    assert result.status is bw.Status.CYCLING
    assert len(result.phases) == period
    # Found after two rounds, plus one to visit every phase again.
    assert len(result.history) == 3 * period
    found = {tuple(np.round(phase.weights, 9)) for phase in result.phases}
    wanted = {
        tuple(np.round(reference.occupancy(small_queue, p.probabilities(small_queue)), 9))
        for p in tables[:period]
    }
    assert found == wanted
    costs = [phase_cost(small_queue, phase) for phase in result.phases]
    assert result.cost.mean == pytest.approx(min(costs), rel=1e-12)


def test_a_cycle_that_starts_late_is_found(small_queue: bw.TabularModel) -> None:
    tables = [bw.TablePolicy(np.full(31, action)) for action in (1, 3)]
    start = np.eye(31)[30]
    result = bw.solve(
        small_queue, bw.Polynomial(2), Rotating(policies=tuple(tables), start=start, step_size=0.9)
    )
    assert result.status is bw.Status.CYCLING
    assert len(result.phases) == 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Swinging(bw.weights.IterativeMethod):
    """Weights that swing round the occupancy of a policy, each time by a given factor less."""

    centre: Any = None
    factor: float = 0.999

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        return self.centre

    def update(self, weights: np.ndarray, occupancy: np.ndarray) -> np.ndarray:
        return occupancy - self.factor * (weights - occupancy)


@pytest.mark.parametrize("factor", [0.99, 0.999, 0.9999])
def test_a_slowly_damped_swing_is_not_called_a_cycle(
    factor: float, small_queue: bw.TabularModel
) -> None:
    centre = bw.Uniform()
    middle = reference.occupancy(small_queue, centre.probabilities(small_queue))
    push = np.zeros(31)
    push[[0, 20]] = [-1e-4, 1e-4]
    method = Swinging(centre=centre, factor=factor, start=middle + push)
    result = bw.solve(small_queue, bw.Polynomial(2), method, stop=bw.Stop(max_iterations=120))
    assert result.status is bw.Status.ITERATION_LIMIT
    assert result.phases == ()


def test_a_swing_that_is_not_damped_is_a_cycle(small_queue: bw.TabularModel) -> None:
    middle = reference.occupancy(small_queue, bw.Uniform().probabilities(small_queue))
    push = np.zeros(31)
    push[[0, 20]] = [-1e-4, 1e-4]
    method = Swinging(centre=bw.Uniform(), factor=1.0, start=middle + push)
    result = bw.solve(small_queue, bw.Polynomial(2), method)
    assert result.status is bw.Status.CYCLING
    assert len(result.phases) == 2


def test_a_damped_swing_converges(small_queue: bw.TabularModel) -> None:
    middle = reference.occupancy(small_queue, bw.Uniform().probabilities(small_queue))
    push = np.zeros(31)
    push[[0, 20]] = [-1e-4, 1e-4]
    method = Swinging(centre=bw.Uniform(), factor=0.5, start=middle + push)
    result = bw.solve(small_queue, bw.Polynomial(2), method)
    assert result.status is bw.Status.CONVERGED
