"""Policies: which action, with what probability, in which state.

Their classes, and the layouts in which tables, compiled event models and linear models read them.
"""

from bellweight.policies.policy import (
    DualPolicy,
    DualSoftmax,
    Greedy,
    Policy,
    Rule,
    Support,
    TablePolicy,
    Uniform,
)

__all__ = [
    "DualPolicy",
    "DualSoftmax",
    "Greedy",
    "Policy",
    "Rule",
    "Support",
    "TablePolicy",
    "Uniform",
]
