"""The bounds behind the primal algorithm, checked where the optimum is known.

For weights c, J' = Phi r the program's answer, u its greedy policy and V = Phi v > 0 a Lyapunov
function, beta = max_x discount max_a E[V(next)] / V(x) < 1 (appendix app:pia_algorithm):

    ||J^u - J*||_{1, initial}  <=  ||J* - J'||_{1, occupancy of u} / (1 - discount)
    ||J* - J'||_{1, c}         <=  2 c'V / (1 - beta)  min_r ||J* - Phi r||_{inf, 1/V}

and, when c is the occupancy of u, both together. These are no certificates: they need J*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.backends import listed
from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, SolverError, Status
from bellweight.exact.occupancy import exact_occupancy
from bellweight.exact.values import optimal, policy_value
from bellweight.models import TabularModel
from bellweight.program import IntegerProgram, TabularRows, conditioning
from bellweight.solve import Result

_SEARCHED_PAIRS = 20_000  # beyond this only the constant is tried as a Lyapunov function
_SHARES = (0.05, 0.2, 0.4, 0.6, 0.8)  # of the way from the discount to one, for beta


@dataclass(frozen=True, eq=False)
class Lyapunov:
    """A Lyapunov function: its values (S,) and its constant beta."""

    values: FloatArray
    beta: float


@dataclass(frozen=True)
class PiaBounds:
    """Left and right sides of the three inequalities; the last is None when c does not match.

    `mismatch` is ||occupancy of u - c||_1; the combined bound needs it to be zero.
    """

    greedy_loss: float
    greedy_bound: float
    approximation_error: float
    approximation_bound: float
    combined_bound: float | None
    mismatch: float
    beta: float

    @property
    def hold(self) -> bool:
        """Whether every inequality holds, up to rounding."""
        slack = tolerances.VERIFIED * max(1.0, self.greedy_bound, self.approximation_bound)
        combined = np.inf if self.combined_bound is None else self.combined_bound
        return (
            self.greedy_loss <= min(self.greedy_bound, combined) + slack
            and self.approximation_error <= self.approximation_bound + slack
        )


def pia_bounds(model: TabularModel, result: Result, lyapunov: Any = None) -> PiaBounds:
    """Evaluate the bounds; `lyapunov` (K,) are coefficients, found in the basis by default."""
    need = "these bounds need the optimum, so a tabular model and its result"
    model = listed(model, need)
    if result.weights is None:
        raise ArgumentError(need)
    rows = TabularRows(model, result.basis)
    best = optimal(model).values
    values = rows.values(result.coef)
    weights = result.weights
    features = _features(rows)
    if lyapunov is None:
        found, error = _found(model, features, best, weights)
    else:
        given = checks.float_array(lyapunov, "lyapunov", (rows.n_basis,), ArgumentError)
        found = checked_lyapunov(model, rows.values(given))
        error = _best_error(features, best, found.values)
    occupancy = exact_occupancy(model, result.policy).weights
    assert occupancy is not None
    left = 1.0 - model.discount
    approximation = 2.0 * float(weights @ found.values) / (1.0 - found.beta) * error
    mismatch = float(np.abs(occupancy - weights).sum())
    loss = policy_value(model, result.policy) - best
    return PiaBounds(
        greedy_loss=float(model.initial @ np.abs(loss)),
        greedy_bound=float(occupancy @ np.abs(best - values)) / left,
        approximation_error=float(weights @ np.abs(best - values)),
        approximation_bound=approximation,
        combined_bound=approximation / left if mismatch <= tolerances.VERIFIED else None,
        mismatch=mismatch,
        beta=found.beta,
    )


def checked_lyapunov(model: TabularModel, values: FloatArray) -> Lyapunov:
    """Return a Lyapunov function with its constant, or say in which state it is none."""
    low = checks.first_index(values <= 0.0)
    if low is not None:
        raise ArgumentError(
            f"the Lyapunov candidate is {values[low]:g} in {model.state_name(low[0])}, expected a "
            "positive value everywhere: add a constant"
        )
    following = model.discount * (model.transition @ values) / values[model.pair_state]
    worst = int(np.argmax(following))
    if following[worst] >= 1.0:
        raise ArgumentError(
            f"the Lyapunov candidate does not fall in {model.pair_name(worst)}: discount times its "
            f"expected next value is {following[worst]:.6g} of its value, expected less than 1"
        )
    return Lyapunov(values, float(following[worst]))


def _features(rows: TabularRows) -> FloatArray:
    """Return the features in orthonormal coordinates, dependent ones dropped."""
    features = checks.dense(rows.features(slice(None)))
    factor = conditioning.triangle([features / np.sqrt(len(features))], features.shape[1])
    kept = conditioning.independent_columns(factor)
    return np.asarray(conditioning.orthonormal(factor, kept).rows(features))


def _best_error(features: FloatArray, best: FloatArray, scale: FloatArray) -> float:
    """Return min_r max_x |best - features r| / scale."""
    scaled = features / scale[:, None]
    ones = np.ones((len(best), 1))
    rows = np.vstack([np.hstack([scaled, -ones]), np.hstack([-scaled, -ones])])
    limit = np.concatenate([best / scale, -best / scale])
    price = np.eye(1, rows.shape[1], rows.shape[1] - 1)[0]
    return float(_minimum(rows, limit, price)[-1])


def _found(
    model: TabularModel, features: FloatArray, best: FloatArray, weights: FloatArray
) -> tuple[Lyapunov, float]:
    """Return the Lyapunov function of the span that gives the smallest bound, and its error.

    Scaled so that |J* - Phi r| <= V for some r, V and r are found together by a linear program for
    each of a few constants beta; the constant function is one of the candidates.
    """
    constant = checked_lyapunov(model, np.ones(len(best)))
    error = _best_error(features, best, constant.values)
    choice, choice_error = constant, error
    smallest = error / (1.0 - constant.beta)
    if model.n_pairs > _SEARCHED_PAIRS or error <= 0.0:
        return choice, choice_error
    following = model.discount * (model.transition @ features)
    here = features[model.pair_state]
    nothing = np.zeros_like(features)
    moments = np.concatenate([features.T @ weights, np.zeros(features.shape[1])])
    for share in _SHARES:
        beta = model.discount + share * (1.0 - model.discount)
        rows = np.vstack(
            [
                np.hstack([-features, features]),
                np.hstack([-features, -features]),
                np.hstack([-features, nothing]),
                np.hstack([following - beta * here, np.zeros_like(here)]),
            ]
        )
        floor = np.full(len(best), -tolerances.LEAST_LYAPUNOV * error)
        limit = np.concatenate([best, -best, floor, np.zeros(model.n_pairs)])
        try:
            point = _minimum(rows, limit, moments)
        except SolverError:
            continue
        values = features @ point[: features.shape[1]]
        if values.min() <= 0.0:
            continue
        candidate = checked_lyapunov(model, values)
        its_error = _best_error(features, best, values)
        bound = float(weights @ values) * its_error / (1.0 - candidate.beta)
        if bound < smallest:
            choice, choice_error, smallest = candidate, its_error, bound
    return choice, choice_error


def _minimum(rows: FloatArray, limit: FloatArray, price: FloatArray) -> FloatArray:
    n = rows.shape[1]
    endless = np.full(n, np.inf)
    program = IntegerProgram(
        rows, np.full(len(limit), -np.inf), limit, -endless, endless, np.zeros(n, dtype=bool)
    )
    found = program.minimise(price)
    if found.point is None:
        raise SolverError(Status.FAILED, "the linear program of a theoretical bound")
    return found.point
