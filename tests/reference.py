"""Independent, slow, dense answers to compare with. Nothing here calls the code under test."""

from __future__ import annotations

from itertools import product
from typing import Any

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

import bellweight as bw

FloatArray = NDArray[np.float64]


def features_of(model: bw.TabularModel, basis: bw.bases.Basis) -> FloatArray:
    """The feature matrix (S, K), dense."""
    found: Any = basis.on(model.states)(model.states)
    return np.asarray(found.toarray() if sparse.issparse(found) else found)


def bellman_rows(model: bw.TabularModel, features: FloatArray) -> FloatArray:
    """The matrix A Phi (N, K)."""
    return features[model.pair_state] - model.discount * (model.transition.toarray() @ features)


def residuals(model: bw.TabularModel, values: FloatArray) -> FloatArray:
    """The Bellman residual cost + discount P v - v of every pair."""
    following = model.transition.toarray() @ values
    return model.cost + model.discount * following - values[model.pair_state]


def cost_scale(model: bw.TabularModel) -> float:
    """The size of values that the costs can make: the unit of a value comparison."""
    return float(np.abs(model.cost).max()) / (1.0 - model.discount) + 1e-300


def full_program(
    model: bw.TabularModel, basis: bw.bases.Basis, weights: FloatArray
) -> tuple[float, FloatArray]:
    """The optimal objective and approximate values of the full program, by linprog."""
    features = features_of(model, basis)
    lower, upper = basis.bounds(features.shape[1])
    unit = float(np.abs(model.cost).max()) or 1.0
    answer = linprog(
        -(features.T @ weights),
        A_ub=bellman_rows(model, features),
        b_ub=model.cost / unit,
        bounds=np.column_stack([lower / unit, upper / unit]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0, answer.message
    return -answer.fun * unit, features @ answer.x * unit


def two_step_dual(
    model: bw.TabularModel, basis: bw.bases.Basis, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The paper's minimum-norm dual over all rows: a linear program, then a quadratic one.

    Returns the dual (N,) and the multipliers of the bounds, upper ones first.
    """
    features = features_of(model, basis)
    rows = bellman_rows(model, features)
    lower, upper = basis.bounds(features.shape[1])
    above, below = np.isfinite(upper), np.isfinite(lower)
    eye = np.eye(len(upper))
    equations = np.vstack([rows, eye[above], -eye[below]]).T
    unit = float(np.abs(model.cost).max()) or 1.0
    cost = np.concatenate([model.cost, upper[above], -lower[below]]) / unit
    moments = features.T @ weights
    # Equations of unit length: the programs are the same, their numbers are tamer.
    length = np.linalg.norm(equations, axis=1)
    equations, moments = equations / length[:, None], moments / length
    first = linprog(
        cost,
        A_eq=equations,
        b_eq=moments,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert first.status == 0, first.message
    found = _least_norm(equations, moments, cost, float(first.fun), model.n_pairs)
    return found[: model.n_pairs], found[model.n_pairs :]


def _least_norm(
    equations: FloatArray, moments: FloatArray, cost: FloatArray, optimum: float, n_pairs: int
) -> FloatArray:
    """min 1/2 |x[:n_pairs]|^2  s.t.  equations x = moments, cost' x <= optimum, x >= 0."""
    n = len(cost)
    slack = 1e-11 * (1.0 + abs(optimum))
    matrix = sparse.csc_matrix(np.vstack([equations, cost[None, :], -np.eye(n)]))
    right = np.concatenate([moments, [optimum + slack], np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.diag(np.r_[np.ones(n_pairs), np.zeros(n - n_pairs)])),
        np.zeros(n),
        matrix,
        right,
        [clarabel.ZeroConeT(len(moments)), clarabel.NonnegativeConeT(n + 1)],
        settings,
    )
    return np.maximum(np.array(solver.solve().x), 0.0)


def policy_matrix(model: bw.TabularModel, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The dense transition matrix (S, S) and cost (S,) of a policy given over pairs."""
    mixer = np.zeros((model.n_states, model.n_pairs))
    mixer[model.pair_state, np.arange(model.n_pairs)] = chances
    return mixer @ model.transition.toarray(), mixer @ model.cost


def occupancy(
    model: bw.TabularModel, chances: FloatArray, initial: FloatArray | None = None
) -> FloatArray:
    """The discounted occupancy by a dense inverse."""
    matrix, _ = policy_matrix(model, chances)
    start = model.initial if initial is None else initial
    inverse = np.linalg.inv(np.eye(model.n_states) - model.discount * matrix)
    return (1.0 - model.discount) * (start @ inverse)


def policy_value(model: bw.TabularModel, chances: FloatArray) -> FloatArray:
    """The value of a policy by a dense inverse."""
    matrix, cost = policy_matrix(model, chances)
    return np.linalg.inv(np.eye(model.n_states) - model.discount * matrix) @ cost


def value_iteration(model: bw.TabularModel) -> FloatArray:
    """The optimal values by plain value iteration, to rounding."""
    dense = model.transition.toarray()
    values = np.zeros(model.n_states)
    for _ in range(int(np.ceil(np.log(1e-17) / np.log(model.discount)))):
        quality = model.cost + model.discount * (dense @ values)
        values = np.minimum.reduceat(quality, model.pair_start[:-1])
    return values


def best_of_all_policies(model: bw.TabularModel) -> FloatArray:
    """The optimal values by enumerating every deterministic policy."""
    best = np.full(model.n_states, np.inf)
    pairs = [range(model.pair_start[x], model.pair_start[x + 1]) for x in range(model.n_states)]
    for choice in product(*pairs):
        chances = np.zeros(model.n_pairs)
        chances[list(choice)] = 1.0
        best = np.minimum(best, policy_value(model, chances))
    return best


def greedy_quality(model: bw.TabularModel, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cost plus discounted value of every pair (N,), and the least of each state (S,)."""
    quality = model.cost + model.discount * (model.transition.toarray() @ values)
    return quality, np.minimum.reduceat(quality, model.pair_start[:-1])
