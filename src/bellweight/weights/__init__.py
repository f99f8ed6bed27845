"""How the weights are chosen: the loop of Algorithm 1, the methods that run in it, and their steps.

A method says where to begin, which policy to generate and how to update; the loop does the rest.
"""

from bellweight.backends.setup import Iterate
from bellweight.weights.loop import HistoryEntry, Method, Stop
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy, IterativeMethod
from bellweight.weights.plan import Plan, SolveSettings
from bellweight.weights.steps import Adaptive, Anderson, Steps

__all__ = [
    "DIA",
    "PIA",
    "Adaptive",
    "Anderson",
    "Fixed",
    "FromPolicy",
    "HistoryEntry",
    "Iterate",
    "IterativeMethod",
    "Method",
    "Plan",
    "SolveSettings",
    "Steps",
    "Stop",
]
