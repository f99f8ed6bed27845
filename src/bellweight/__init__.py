"""Bellweight: good policies for Markov decision processes too large to solve exactly.

It solves the approximate linear program, chooses the state-relevance weights by itself, and says
how far from optimal the policy can be. Discounted, infinite-horizon, costs minimised.
"""

from bellweight import exact, problems
from bellweight.basis import Affine, Basis, Custom, Indicator, Polynomial
from bellweight.evaluate import Comparison, Difference, Evaluation, compare, evaluate
from bellweight.models import TabularModel
from bellweight.policy import (
    DualPolicy,
    DualSoftmax,
    Greedy,
    Policy,
    Support,
    Table,
    Uniform,
)
from bellweight.rows import AllRows
from bellweight.solve import Phase, Result, solve
from bellweight.status import (
    ArgumentError,
    BasisError,
    BellweightError,
    BellweightWarning,
    FileError,
    ModelError,
    PolicyError,
    SolverError,
    Status,
)
from bellweight.weights import (
    DIA,
    PIA,
    Fixed,
    FromPolicy,
    Iterate,
    Iteration,
    Iterative,
    Method,
    Stop,
)

__version__ = "0.1.0"

__all__ = [
    "DIA",
    "PIA",
    "Affine",
    "AllRows",
    "ArgumentError",
    "Basis",
    "BasisError",
    "BellweightError",
    "BellweightWarning",
    "Comparison",
    "Custom",
    "Difference",
    "DualPolicy",
    "DualSoftmax",
    "Evaluation",
    "FileError",
    "Fixed",
    "FromPolicy",
    "Greedy",
    "Indicator",
    "Iterate",
    "Iteration",
    "Iterative",
    "Method",
    "ModelError",
    "Phase",
    "Policy",
    "PolicyError",
    "Polynomial",
    "Result",
    "SolverError",
    "Status",
    "Stop",
    "Support",
    "Table",
    "TabularModel",
    "Uniform",
    "compare",
    "evaluate",
    "exact",
    "problems",
    "solve",
]
