"""Checks of decision rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common.status import PolicyError
from bellweight.models.function_checks import call_by_name, naming
from bellweight.policies import Rule


def check_whole_actions(policy: Rule, states: Any) -> None:
    """Check that a rule returns whole numbers: the compiled loops cut off fractions."""
    function, numbers = policy.function(), policy.numbers()
    for state in states:
        with naming(state):
            action = call_by_name(function, {"state": state.copy(), "parameters": numbers})
        if action != np.rint(action):
            raise PolicyError(
                f"the rule returns {action} in state {state.tolist()}, expected a whole number, "
                "the index of an action: round it in the rule"
            )
