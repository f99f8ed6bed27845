"""Studies of the method on one model: contraction, sensitivity, and whether the weights matter.

Each makes many runs or takes the program apart, and tells what it saw; nothing else needs them.
"""

from bellweight.analysis import contraction
from bellweight.analysis.sensitivity import GridPoint, Sensitivity, sensitivity
from bellweight.analysis.weights_matter import Probe, weights_matter

__all__ = [
    "GridPoint",
    "Probe",
    "Sensitivity",
    "contraction",
    "sensitivity",
    "weights_matter",
]
