"""Studies of the method on one model: contraction, sensitivity, and whether the weights matter.

Each makes many runs, or looks into the program, and reports what was found. No other room needs
them.
"""

from bellweight.analysis import contraction
from bellweight.analysis.sensitivity import GridPoint, Sensitivity, sensitivity
from bellweight.analysis.weights_matter import WeightEffect, weights_matter

__all__ = [
    "GridPoint",
    "Sensitivity",
    "WeightEffect",
    "contraction",
    "sensitivity",
    "weights_matter",
]
