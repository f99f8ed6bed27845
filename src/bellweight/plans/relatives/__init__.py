"""Relatives of the approximate linear program, on the same rows and the same loop.

    SmoothedALP        rows may be violated, within a budget
    PointwiseMaximum   the largest of several value functions, one for each weighting
    SelfGuided         random features, batch after batch, each no lower than the last

Each is a plan: `solve(model, basis, SmoothedALP(budget=1.0))`.
"""

from bellweight.plans.relatives.maximum import PointwiseMaximum, PointwiseMaximumResult
from bellweight.plans.relatives.self_guided import SelfGuided, SelfGuidedResult
from bellweight.plans.relatives.smoothed import SmoothedALP

__all__ = [
    "PointwiseMaximum",
    "PointwiseMaximumResult",
    "SelfGuided",
    "SelfGuidedResult",
    "SmoothedALP",
]
