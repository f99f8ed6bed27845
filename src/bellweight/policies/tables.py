"""Policies of a tabular model as numbers over its pairs."""

from __future__ import annotations

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import PolicyError
from bellweight.models import TabularModel


def by_state(model: TabularModel, values: FloatArray) -> FloatArray:
    """Return the sums (S,) of values (N,) over the pairs of each state."""
    return np.add.reduceat(values, model.pair_start[:-1])


def actions_to_probabilities(model: TabularModel, actions: IntArray) -> FloatArray:
    """Return a deterministic policy, one action per state, as probabilities over pairs."""
    if actions.shape != (model.n_states,):
        raise PolicyError(
            f"the policy's actions have shape {actions.shape}, expected one for each of the "
            f"{model.n_states} states"
        )
    chosen = (model.pair_action == actions[model.pair_state]).astype(np.float64)
    missing = checks.first_index(by_state(model, chosen) == 0.0)
    if missing is not None:
        raise PolicyError(
            f"action {actions[missing]} is not admissible in {model.state_name(missing[0])}: "
            f"expected one of {model.admissible_actions(missing[0]).tolist()}"
        )
    return chosen
