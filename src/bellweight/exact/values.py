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
from bellweight.exact.table_passes import TablePasses
from bellweight.models import TabularModel
from bellweight.policies import HasPolicy, Policy, TablePolicy, policy_of, tie_margin

_MAX_IMPROVEMENTS = 1_000
_INEXACT = 0.1  # share of the last gain that an evaluation may be off by
_TIGHTER = 1e-3  # the share that is left of it where nothing was better
_MOST_ONWARD = 100  # improvements of values between two evaluations by elimination
_SMALL = 1e-12  # relative residuals below which a policy is evaluated as exactly as it can be


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

    Passes over more than a million transitions use all cores, or as many as
    `joblib.parallel_config(n_jobs=...)` says; the answer is the same to the last bit.
    """
    if not isinstance(model, TabularModel):
        raise ModelError(f"model is {type(model).__name__}, expected a TabularModel")
    start = approximate(model)
    values, pairs = start.values, start.pairs
    best, following = np.empty(model.n_states), np.empty(model.n_states, dtype=np.int64)
    matrix = model.transition
    table = TablePasses(model)
    tol = 0.0 if start.is_settled else _INEXACT * (1.0 - model.discount) * start.error
    seen: set[bytes] = set()  # a policy that comes back differs from the last one by rounding only
    chain, cost = Chain(matrix[pairs], model.discount), model.cost[pairs]
    for iteration in range(1, _MAX_IMPROVEMENTS + 1):
        values = chain.values(cost, values, tol)
        low, high = table.improve(values, best, following)
        # Against the same values, so that their error is not mistaken for a gain.
        gain = cost + model.discount * (chain.transition @ values) - best
        improved = _is_better(model, values, following, gain)
        known = pairs.tobytes()
        is_exact = tol == 0.0 or chain.is_eliminated
        if not improved.any() or (is_exact and known in seen):
            if is_exact:
                residual = float(max(-low, high))
                policy = TablePolicy(model.pair_action[pairs], model=model)
                return Optimal(values, policy, residual, iteration)
            # Gradually: a policy that takes long to evaluate is often not the last one.
            tol *= _TIGHTER
            tol = 0.0 if tol <= _SMALL * float(np.abs(values).max()) else tol
            continue
        if is_exact:
            seen.add(known)
        tol = min(tol, _INEXACT * float(gain.max()))
        pairs = np.where(improved, following, pairs)
        pairs = _onward(model, chain, best, pairs)
        chain = Chain(matrix[pairs], model.discount, like=chain)
        cost = model.cost[pairs]
    raise SolverError(Status.FAILED, f"policy iteration took over {_MAX_IMPROVEMENTS} improvements")


def _onward(model: TabularModel, chain: Chain, values: FloatArray, pairs: IntArray) -> IntArray:
    """Return a policy that improves on a greedy one (S,), by value iteration from `values` on.

    The values are those after the first improvement of a policy's own. Further ones only go down
    (Puterman, section 6.5), so each policy found costs less than the one before. On grids the
    border between two actions moves by a state at a time: value iteration moves it for a small part
    of the time that an evaluation by elimination takes, and may not take longer than that.
    """
    matrix = model.transition
    table = TablePasses(model)
    n = min(_MOST_ONWARD, int(chain.passes * chain.transition.nnz / matrix.nnz))
    if n == 0:
        return pairs
    values, best = np.array(values), np.empty(model.n_states)
    following = np.empty(model.n_states, dtype=np.int64)
    for _ in range(n):
        table.improve(values, best, following)
        values, best = best, values
    before = best
    gain = model.cost[pairs] + model.discount * (matrix[pairs] @ before) - values
    return np.where(_is_better(model, before, following, gain), following, pairs)


def policy_value(
    model: TabularModel, policy: Policy | HasPolicy, horizon: int | None = None
) -> FloatArray:
    """Return the cost (S,) of a policy, or of a result's, for all time or `horizon` steps."""
    chain, cost = policy_chain(model, policy_of(policy))
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
