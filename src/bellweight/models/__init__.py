"""What a Markov decision process is: the model classes."""

from bellweight.models.builder import LinearBuilder
from bellweight.models.events import EventModel
from bellweight.models.initial import Geometric, PointMass
from bellweight.models.laws import Independent, Law, Sampled, certain, poisson, uniform
from bellweight.models.linear import Kernels, LinearModel
from bellweight.models.noise import Exponential, Gamma, Interval, Normal
from bellweight.models.step import StepModel
from bellweight.models.tabular import TabularModel

__all__ = [
    "EventModel",
    "Exponential",
    "Gamma",
    "Geometric",
    "Independent",
    "Interval",
    "Kernels",
    "Law",
    "LinearBuilder",
    "LinearModel",
    "Normal",
    "PointMass",
    "Sampled",
    "StepModel",
    "TabularModel",
    "certain",
    "poisson",
    "uniform",
]
