"""Exact answers for tabular models: optimal values, values and occupancies of a policy.

Linear algebra of the chain that a policy makes of a model; each answer carries its residual.
"""

from bellweight.exact.values import Optimal, optimal, policy_value, residuals

__all__ = ["Optimal", "optimal", "policy_value", "residuals"]
