"""Recipes made of several solves: `Auto`, `Resampled`, `Enriched`, and relatives of the program.

`solve` runs a plan like a method; what a plan returns has a policy, a cost and a file form.
"""

from bellweight.plans.auto import Auto
from bellweight.plans.enriched_result import EnrichedResult, EnrichedRound
from bellweight.plans.enrichment import Enriched
from bellweight.plans.portfolio import Candidate
from bellweight.plans.race_result import RaceResult
from bellweight.plans.raised_bound import BoundRound, RaisedBound, RaisedBoundResult
from bellweight.plans.relatives import (
    PointwiseMaximum,
    PointwiseMaximumResult,
    SelfGuided,
    SelfGuidedResult,
    SmoothedALP,
)
from bellweight.plans.resampling import Resampled, ResampledResult, ResampledRound

__all__ = [
    "Auto",
    "BoundRound",
    "Candidate",
    "Enriched",
    "EnrichedResult",
    "EnrichedRound",
    "PointwiseMaximum",
    "PointwiseMaximumResult",
    "RaceResult",
    "RaisedBound",
    "RaisedBoundResult",
    "Resampled",
    "ResampledResult",
    "ResampledRound",
    "SelfGuided",
    "SelfGuidedResult",
    "SmoothedALP",
]
