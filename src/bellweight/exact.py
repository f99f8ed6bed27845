"""Exact answers for tabular models: optimal values, values of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight import checks
from bellweight.checks import FloatArray, IntArray
from bellweight.models import TabularModel
from bellweight.occupancy import policy_chain
from bellweight.policy import Policy, Table, tie_margin
from bellweight.status import SolverError, Status

_MAX_IMPROVEMENTS = 1_000


@dataclass(frozen=True, eq=False)
class Optimal:
    """Optimal values (S,), an optimal policy, the sup norm of the Bellman residual, iterations."""

    values: FloatArray
    policy: Table
    residual: float
    iterations: int


def optimal(model: TabularModel) -> Optimal:
    """Return the optimal values and policy, by policy iteration with sparse solves.

    An action is replaced only by one that is better beyond rounding, so the iteration ends.
    """
    actions = _cheapest(model)
    for iteration in range(1, _MAX_IMPROVEMENTS + 1):
        policy = Table(actions, model=model)
        values = policy_value(model, policy)
        quality = model.cost + model.discount * (model.transition @ values)
        best = np.minimum.reduceat(quality, model.pair_start[:-1])
        better = quality + tie_margin(model, values) < values[model.pair_state]
        improved = np.logical_or.reduceat(better, model.pair_start[:-1])
        if not improved.any():
            residual = float(np.abs(best - values).max())
            return Optimal(values, policy, residual, iteration)
        first = np.flatnonzero(quality == best[model.pair_state])
        place = np.searchsorted(model.pair_state[first], np.arange(model.n_states))
        actions = np.where(improved, model.pair_action[first[place]], actions)
    raise SolverError(Status.FAILED, f"policy iteration took over {_MAX_IMPROVEMENTS} improvements")


def policy_value(model: TabularModel, policy: Policy, horizon: int | None = None) -> FloatArray:
    """Return a policy's discounted cost (S,) from each state, for all time or `horizon` steps."""
    chain, cost = policy_chain(model, policy)
    if horizon is None:
        return chain.values(cost)
    values = np.zeros(model.n_states)
    for _ in range(checks.count(horizon, "horizon")):
        values = cost + model.discount * (chain.transition @ values)
    return values


def _cheapest(model: TabularModel) -> IntArray:
    """Return the action of least immediate cost in each state."""
    least = np.minimum.reduceat(model.cost, model.pair_start[:-1])
    first = np.flatnonzero(model.cost == least[model.pair_state])
    return model.pair_action[
        first[np.searchsorted(model.pair_state[first], np.arange(model.n_states))]
    ]
