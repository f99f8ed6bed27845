"""What a Markov decision process is: the model classes."""

from bellweight.models.builder import LinearBuilder
from bellweight.models.events import EventModel
from bellweight.models.initial import Geometric, PointMass
from bellweight.models.laws import Independent, Law, Sampled, certain, poisson, uniform
from bellweight.models.linear import Kernels, LinearModel
from bellweight.models.local import LocalCoordinate, LocalCoordinates, LocalStructure
from bellweight.models.scopes import Scopes
from bellweight.models.tabular import TabularModel

__all__ = [
    "EventModel",
    "Geometric",
    "Independent",
    "Kernels",
    "Law",
    "LinearBuilder",
    "LinearModel",
    "LocalCoordinate",
    "LocalCoordinates",
    "LocalStructure",
    "PointMass",
    "Sampled",
    "Scopes",
    "TabularModel",
    "certain",
    "poisson",
    "uniform",
]
