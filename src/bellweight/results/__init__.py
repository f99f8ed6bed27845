"""What a run found, and what it shows: numbers, judgement of the policy, tables and charts.

A result is plain data that can be saved; nothing here solves anything.
"""

from bellweight.results.base import BaseResult, PlanResult
from bellweight.results.gap import Gap
from bellweight.results.judgement import Judgement
from bellweight.results.result import CyclePhase, Result

__all__ = [
    "BaseResult",
    "CyclePhase",
    "Gap",
    "Judgement",
    "PlanResult",
    "Result",
]
