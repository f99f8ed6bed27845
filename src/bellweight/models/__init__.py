"""What a Markov decision process is: one class for each kind of model, and laws of its noise.

Models hold data and check it at the door; what is computed from them is in other rooms. The
compilation of event models is here too.
"""

from bellweight.models.builder import LinearBuilder
from bellweight.models.declared import Lipschitz
from bellweight.models.events import EventModel
from bellweight.models.factored import FactoredModel
from bellweight.models.factored_parts import Local
from bellweight.models.function_model import FunctionModel
from bellweight.models.initial import Geometric, PointMass
from bellweight.models.laws import Independent, Law, Sampled
from bellweight.models.linear import Kernels, LinearModel
from bellweight.models.local import LocalCoordinate, LocalCoordinates, LocalStructure
from bellweight.models.noise import Exponential, Gamma, Interval, Normal
from bellweight.models.scopes import Scopes
from bellweight.models.step import StepModel
from bellweight.models.tabular import TabularModel

Model = TabularModel | FunctionModel | LinearModel

__all__ = [
    "EventModel",
    "Exponential",
    "FactoredModel",
    "FunctionModel",
    "Gamma",
    "Geometric",
    "Independent",
    "Interval",
    "Kernels",
    "Law",
    "LinearBuilder",
    "LinearModel",
    "Lipschitz",
    "Local",
    "LocalCoordinate",
    "LocalCoordinates",
    "LocalStructure",
    "Model",
    "Normal",
    "PointMass",
    "Sampled",
    "Scopes",
    "StepModel",
    "TabularModel",
]
