"""Checks of decision rules."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from bellweight.common.status import PolicyError
from bellweight.models.compile import naming
from bellweight.policies import Rule


def check_whole_actions(policy: Rule, states: Any) -> None:
    """Check that a rule returns whole numbers: the compiled loops cut off fractions."""
    function, numbers = policy.function(), policy.numbers()
    names = tuple(inspect.signature(function).parameters)
    for state in states:
        given = {"state": state.copy(), "parameters": numbers}
        with naming(state):
            action = function(**{name: given[name] for name in names})
        if action != np.rint(action):
            raise PolicyError(
                f"the rule returns {action} in state {state.tolist()}, expected a whole number, "
                "the index of an action: round it in the rule"
            )
