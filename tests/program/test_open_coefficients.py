"""Weights on a few states leave coefficients open: even weights on all states decide them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import bellweight as bw

KINKS = bw.PiecewiseLinear(np.array([2.0, 5.0, 10.0, 30.0]))


def short_queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=99, initial="empty")


def bellman_rows(model: bw.TabularModel, features: np.ndarray) -> np.ndarray:
    ahead = model.transition @ features
    return np.asarray(features[model.pair_state] - model.discount * ahead)


def second_program(model: bw.TabularModel, features: np.ndarray, objective: float) -> float:
    """The largest mean value among optimal coefficients, by another solver, with all rows."""
    rows = bellman_rows(model, features)
    start = model.initial @ features
    scale = np.abs(features).max(axis=0)
    answer = linprog(
        -features.mean(axis=0) / scale,
        A_ub=np.vstack([rows / scale, -start / scale]),
        b_ub=np.append(model.cost, -objective + 1e-9 * abs(objective)),
        bounds=(None, None),
        method="highs",
    )
    assert answer.status == 0
    return -float(answer.fun)


def test_open_coefficients_have_the_largest_mean_value() -> None:
    model = short_queue()
    result = bw.solve(model, KINKS, bw.Fixed("initial"), judge=False)
    features = np.asarray(KINKS.on(model.states)(model.states))
    assert result.status is bw.Status.CONVERGED
    assert (
        np.count_nonzero(result.dual) < features.shape[1]
    )  # the dual alone does not fix the coefficients
    mean = float(features.mean(axis=0) @ result.coef)
    assert mean == pytest.approx(second_program(model, features, result.objective), rel=1e-6)
    slack = model.cost - bellman_rows(model, features) @ result.coef
    assert slack.min() >= -1e-9 * np.abs(model.cost).max()
    at_start = float(model.initial @ features @ result.coef)
    assert at_start == pytest.approx(result.objective, rel=1e-12)


def test_a_full_basis_then_gives_the_optimal_values_of_all_states() -> None:
    # State 2 is never reached from state 0, so weights on state 0 say nothing about it.
    cost = np.array([[1.0, 3.0], [2.0, 1.0], [5.0, 4.0]])
    move = np.array([[[0, 1, 0], [1, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [1, 0, 0]]], float)
    model = bw.TabularModel.from_arrays(cost, move, 0.9, np.array([1.0, 0.0, 0.0]))
    result = bw.solve(model, bw.Indicator(), bw.Fixed("initial"), judge=False)
    optimal = bw.exact.optimal(model).values
    assert result.coef == pytest.approx(optimal, rel=1e-12)


def test_weights_on_all_states_leave_nothing_open() -> None:
    model = short_queue()
    result = bw.solve(model, bw.Polynomial(3), bw.Fixed("uniform"), judge=False)
    assert np.count_nonzero(result.dual) == 4


def test_bounds_on_coefficients_are_kept() -> None:
    basis = bw.Polynomial(3, lower=[-np.inf, -np.inf, -np.inf, 0.0])
    model = short_queue()
    result = bw.solve(model, basis, bw.Fixed("initial"), judge=False)
    assert result.coef[3] >= 0.0
    assert result.status is bw.Status.CONVERGED
