"""What a Markov decision process is: the model classes."""

from bellweight.models.tabular import TabularModel

__all__ = ["TabularModel"]
