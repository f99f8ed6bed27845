"""The discounted occupancy of a policy on a tabular model: where it spends its time.

    occupancy = (1 - discount) initial' (I - discount P)^-1       (eq. discounted_occupancy)

An occupancy that sums to one proves nothing; what counts is the flow balance
(1 - discount) initial + discount P' occupancy = occupancy, whose 1-norm residual comes with it.
"""

from __future__ import annotations

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import SolverError, Status
from bellweight.exact.chain import Chain, MixedChain, mixed_rows
from bellweight.models import TabularModel
from bellweight.policies import Policy, by_state, checked_probabilities
from bellweight.simulation import Occupancy

_LARGE = 1 << 20  # transitions of a table of which no mixture is made where it can be avoided


def policy_chain(model: TabularModel, policy: Policy) -> tuple[Chain, FloatArray]:
    """Return the chain of a policy and its expected cost per step (S,)."""
    chances = checked_probabilities(model, policy)
    cost = by_state(model, chances * model.cost)
    if np.count_nonzero(chances) > model.n_states and model.transition.nnz > _LARGE:
        return MixedChain(model, chances), cost
    return Chain(mixed_rows(model, chances), model.discount), cost


def exact_occupancy(
    model: TabularModel, policy: Policy, initial: FloatArray | None = None
) -> Occupancy:
    """Return the occupancy of a policy from the model's initial distribution, or another one."""
    if initial is None:
        start = model.initial
    else:
        start = checks.distribution(initial, "initial", model.n_states, model.state_name)
    chain, _ = policy_chain(model, policy)
    # Elimination may leave entries like -1e-18; the residual below is that of the clipped vector.
    weights = np.maximum(chain.occupancy(start), 0.0)
    inflow = (1.0 - model.discount) * start
    residual = float(np.abs(chain.residual(weights, inflow, transposed=True)).sum())
    if residual > tolerances.FLOW_BALANCE:
        raise SolverError(
            Status.FAILED,
            f"the occupancy's flow balance is off by {residual:.2g}, expected at most "
            f"{tolerances.FLOW_BALANCE:g}",
        )
    weights.setflags(write=False)
    return Occupancy(weights=weights, residual=residual)
