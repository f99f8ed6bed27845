"""Exact answers for tabular models: optimal values, values of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import ModelError, SolverError, Status
from bellweight.exact.approximation import approximate
from bellweight.exact.chain import Chain
from bellweight.exact.occupancy import policy_chain
from bellweight.models import TabularModel
from bellweight.policies import Policy, TablePolicy, tie_margin

_MAX_IMPROVEMENTS = 1_000
_INEXACT = 0.1  # share of the last gain that an evaluation may be off by


@dataclass(frozen=True, eq=False)
class Optimal:
    """Optimal values (S,), an optimal policy, the sup norm of the Bellman residual, iterations."""

    values: FloatArray
    policy: TablePolicy
    residual: float
    iterations: int


def optimal(model: TabularModel) -> Optimal:
    """Return the optimal values and policy, by policy iteration.

    Modified policy iteration goes as far as it is fast (see `approximation`); then evaluations
    begin with its values, often those of the optimal policy already. As long as the policy changes
    it need not be evaluated exactly: its values are iterated until their residual is a small part
    of what the last improvement gained. An action is replaced only by one that is better beyond
    rounding, so the iteration ends.
    """
    if not isinstance(model, TabularModel):
        raise ModelError(f"model is {type(model).__name__}, expected a TabularModel")
    start = approximate(model)
    values = start.values
    pairs = _first_cheapest(model, model.cost + model.discount * (model.transition @ values))
    tol = 0.0 if start.is_settled else _INEXACT * (1.0 - model.discount) * start.error
    seen: set[bytes] = set()  # a policy that comes back differs from the last one by rounding only
    for iteration in range(1, _MAX_IMPROVEMENTS + 1):
        chain = Chain(model.transition[pairs], model.discount)
        values = chain.values(model.cost[pairs], values, tol)
        quality = model.cost + model.discount * (model.transition @ values)
        following = _first_cheapest(model, quality)
        best = quality[following]
        # Against the same values, so that an error of the values does not pass for a gain.
        gain = quality[pairs] - best
        improved = _is_better(model, values, following, gain)
        known = pairs.tobytes()
        if not improved.any() or (tol == 0.0 and known in seen):
            if tol == 0.0:
                residual = float(np.abs(best - values).max())
                policy = TablePolicy(model.pair_action[pairs], model=model)
                return Optimal(values, policy, residual, iteration)
            tol = 0.0
            continue
        if tol == 0.0:
            seen.add(known)
        tol = min(tol, _INEXACT * float(gain.max()))
        pairs = np.where(improved, following, pairs)
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


def residuals(model: TabularModel, values: FloatArray) -> FloatArray:
    """Return the Bellman residuals (N,) of values: negative where a row is violated."""
    following = model.discount * (model.transition @ values)
    return np.asarray(model.cost + following - values[model.pair_state])


def _is_better(
    model: TabularModel, values: FloatArray, pairs: IntArray, gain: FloatArray
) -> BoolArray:
    """Return in which states (S,) a gain by these pairs (S,) is more than the margin of a tie."""
    costs = float(np.abs(model.cost).max())
    terms = costs + model.discount * float(np.abs(values).max())
    rounding = 2.0 * np.finfo(float).eps * costs / (1.0 - model.discount)
    better = gain > tolerances.TIE * terms + rounding  # more than the margin of any pair
    close = np.flatnonzero(~better & (gain > 0.0))
    if len(close) > 0:
        better[close] = gain[close] > tie_margin(model, values)[pairs[close]]
    return better


def _first_cheapest(model: TabularModel, cost: FloatArray) -> IntArray:
    """Return the pair of least cost in each state, the first of several."""
    least = np.minimum.reduceat(cost, model.pair_start[:-1])
    cheapest = np.flatnonzero(cost == least[model.pair_state])
    place = np.searchsorted(model.pair_state[cheapest], np.arange(model.n_states))
    return np.asarray(cheapest[place], dtype=np.int64)
