"""What a Markov decision process is: the model classes."""

from bellweight.models.events import EventModel
from bellweight.models.initial import Geometric, PointMass
from bellweight.models.tabular import TabularModel

__all__ = ["EventModel", "Geometric", "PointMass", "TabularModel"]
