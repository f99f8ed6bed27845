"""What a policy costs and where it spends its time, exactly or by simulation.

Occupancies, `evaluate`, `compare` and `race`, with the errors of what they estimate.
"""

from bellweight.backends import Estimate
from bellweight.evaluation.evaluate import (
    Comparison,
    Difference,
    Evaluation,
    compare,
    compare_ties,
    evaluate,
)
from bellweight.evaluation.race import Race, RankedPolicy, race

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "Evaluation",
    "Race",
    "RankedPolicy",
    "compare",
    "compare_ties",
    "evaluate",
    "race",
]
