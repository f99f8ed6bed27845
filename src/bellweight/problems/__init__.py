"""The problems of the paper, with open parameters."""

from bellweight.problems.single_queue import single_queue

__all__ = ["single_queue"]
