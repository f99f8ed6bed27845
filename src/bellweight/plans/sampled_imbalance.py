"""Residual and unbalanced flow where states are not listed: see `candidate_functions`.

The points are states drawn from the weights, the states in which the dual has mass, those that
they lead to, and states that the greedy policy visits.
"""

from __future__ import annotations

import numpy as np

from bellweight.backends import Point, backend_of
from bellweight.backends.backend import DRAWN_STATES
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.common.streams import stream_keys
from bellweight.models.function_model import FunctionModel
from bellweight.plans.candidate_functions import Imbalance
from bellweight.policies import Policy
from bellweight.results.result import Result
from bellweight.weights.methods import Fixed, FromPolicy

_DRAWING = 5  # the branch of a seed for these draws


def sampled_imbalance(model: FunctionModel, result: Result) -> Imbalance:
    """Return the residual and the unbalanced flow of a result's program in drawn states."""
    backend, support = backend_of(model), result.support
    drawn, share = _weights(model, result)
    point = Point(result.moments, result.weights)
    seen = backend.visited(result.basis, result.coef, point, result.policy, result.seed + 1)
    _, chances, after = model.expand(np.ascontiguousarray(support.states), support.actions)
    outflow = model.discount * support.values[:, None] * chances
    possible = outflow > 0.0
    stay = model.discount * support.values * (1.0 - chances.sum(axis=1))
    parts = [drawn, support.states, after[possible], support.states, seen.states]
    points, places = np.unique(
        np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]),
        axis=0, return_inverse=True,
    )  # fmt: skip
    where = np.split(places.ravel(), np.cumsum([len(part) for part in parts])[:-1])

    def total(k: int, values: FloatArray) -> FloatArray:
        counted = np.bincount(where[k], weights=values, minlength=len(points))
        return np.asarray(counted, dtype=np.float64)

    weights, mass = total(0, share), total(1, support.values)
    following = total(2, outflow[possible]) + total(3, stay)
    rows = backend.some_rows(result.basis, points)
    slack = rows.slacks(result.coef, slice(0, len(points)))[0]  # type: ignore[attr-defined]
    least = np.minimum.reduceat(slack, rows.pair_start[:-1])  # type: ignore[attr-defined]
    return Imbalance(
        points=points,
        weights=weights,
        residual=np.where(mass > 0.0, 0.0, np.maximum(least, 0.0)),
        flow=weights - mass + following,
        size=weights + mass + following,
        by_policy=lambda: total(4, seen.share),
        drawn=DRAWN_STATES,
    )


def _weights(model: FunctionModel, result: Result) -> tuple[FloatArray, FloatArray]:
    """Return states (n, d) drawn from the weights of a result, and their shares (n,)."""
    method = result.method
    policy = method.policy if isinstance(method, FromPolicy) else result.generated
    if isinstance(policy, Policy):
        backend = backend_of(model)
        point = Point(result.moments, result.weights)
        seen = backend.visited(result.basis, result.coef, point, policy, result.seed)
        return seen.states, seen.share
    if isinstance(method, Fixed) and method.moments is None:
        key = stream_keys(result.seed, _DRAWING)[0]
        states = model.sample_initial(0, DRAWN_STATES, key)
        return states, np.full(len(states), 1.0 / len(states))
    raise ArgumentError(
        f"{result.method_name} gives moments only, expected weights that states can be drawn from: "
        'use DIA(), PIA(), FromPolicy(policy) or Fixed("initial")'
    )
