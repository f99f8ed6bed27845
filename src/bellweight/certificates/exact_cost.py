"""What a policy of a tabular model costs at most: its exact cost, rounded up where that matters.

With the residual r of values J, initial' (J^pi - J) = occupancy' r / (1 - discount): an error
counts where the policy goes.
"""

from __future__ import annotations

import numpy as np

from bellweight.certificates.certificate import TOLERANCE
from bellweight.certificates.enclosure import gamma, largest_sum, most_entering
from bellweight.exact.occupancy import exact_occupancy, policy_chain
from bellweight.models import TabularModel
from bellweight.policies import Policy

_SMALL = 1.0 / 16.0  # of what `verify` tolerates: errors below this are no part of a claim
_ROUNDINGS = 32  # of a sum beyond those of its terms


def rounded_up_cost(model: TabularModel, policy: Policy) -> float:
    """Return a policy's expected cost, or a number above it where costs cancel or differ widely."""
    chain, cost = policy_chain(model, policy)
    values = chain.values(cost)
    found = float(model.initial @ values)
    terms = chain.residual(np.abs(values), np.abs(cost), transposed=False) + 2.0 * np.abs(values)
    longest = int(np.diff(model.transition.indptr).max())
    share = gamma(longest + model.n_actions + _ROUNDINGS)
    rest = np.abs(chain.residual(values, cost, transposed=False)) + share * terms
    left = 1.0 - model.discount * largest_sum(model.transition)
    error = float(rest.max()) / left
    if error <= _SMALL * TOLERANCE * abs(found):
        return found
    followed = exact_occupancy(model, policy)
    assert followed.weights is not None
    assert followed.residual is not None
    off = (followed.residual + flow_rounding(model)) / left
    error = (float(followed.weights @ rest) + off * float(rest.max())) / left
    summing = gamma(model.n_states + _ROUNDINGS) * float(model.initial @ np.abs(values))
    return found + (1.0 + gamma(_ROUNDINGS)) * (error + summing)


def flow_rounding(model: TabularModel) -> float:
    """Return a bound on the rounding of an occupancy's flow balance, in the 1-norm.

    Each state's flow is a sum over the pairs that lead there; the occupancy has mass one.
    """
    return 4.0 * gamma(most_entering(model.transition) + model.n_actions + _ROUNDINGS)
