"""Policies: which action, with what probability, in which state.

Their classes, and the layouts in which tables, compiled event models and linear models read them.
"""

from bellweight.policies.dual import DualPolicy, DualSoftmax
from bellweight.policies.greedy import Greedy, greedy_actions, tie_margin
from bellweight.policies.policy import HasPolicy, Policy, checked_probabilities, policy_of
from bellweight.policies.rollout import Rollout
from bellweight.policies.simple import Rule, TablePolicy, Uniform
from bellweight.policies.support import Support
from bellweight.policies.tables import by_state

__all__ = [
    "DualPolicy",
    "DualSoftmax",
    "Greedy",
    "HasPolicy",
    "Policy",
    "Rollout",
    "Rule",
    "Support",
    "TablePolicy",
    "Uniform",
    "by_state",
    "checked_probabilities",
    "greedy_actions",
    "policy_of",
    "tie_margin",
]
