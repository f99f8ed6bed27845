"""A portfolio of methods, raced: the policy that wins, and a cost free of selection bias.

Candidates are solved on shared rows; every distinct policy they lead to takes part, PIA's iterates
and phases included. Policies are raced on common random numbers (`evaluation.race`), and the winner
is judged once more on fresh ones. On event models constraint states are then re-drawn from the
winner's occupancy (`plans.resampling`), the methods that use it are run on them, and the policies
that are left race against the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from bellweight.backends import backend_of
from bellweight.common import checks
from bellweight.common.status import ArgumentError
from bellweight.common.threads import one_thread
from bellweight.plans.portfolio import Candidate, checked_policies, named
from bellweight.plans.race_result import RaceResult
from bellweight.plans.search import Search
from bellweight.policies import Policy
from bellweight.results.base import BaseResult
from bellweight.weights.plan import Plan, SolveSettings


@dataclass(frozen=True, eq=False, repr=False)
class Auto(Plan[RaceResult]):
    """Try a portfolio and return the policy that wins, with the places of all.

    A policy or result that the user brings wins unless another is clearly better.

    Args:
        candidates: names with methods, plans, `Candidate`s, policies or results; a list gets names
            by itself. By default: Fixed, FromPolicy, PIA with all its iterates, and DIA towards two
            targets, each with several regularisations where the model allows them.
        brought: policies or results by name that take part besides.
        budget: episodes of all races and of the judgement, which takes a fifth: by default 200,000,
            and 2,000 where a model runs as plain Python. On tabular models costs are exact and it
            is not used.
        confidence: with which the best policy is not dropped.
        rounds: how often constraint states are drawn again where the winner goes, on event models.
        regularisations: in place of the default ones.
        max_seconds: ends the search early.
        watch: a function that is told what is being done.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> bw.solve(queue, bw.Indicator(), bw.Auto())
        <RaceResult on single queue, cost 331.827>
    """

    candidates: Any = None
    brought: Mapping[str, Policy | BaseResult] | None = None
    budget: int | None = None
    confidence: float = 0.95
    rounds: int = 1
    regularisations: Sequence[float] | None = None
    max_seconds: float | None = None
    watch: Callable[[str], object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, thing in (named(self.candidates) or {}).items():
            if isinstance(thing.method if isinstance(thing, Candidate) else thing, Auto):
                raise ArgumentError(f"candidate {name!r} is an Auto itself: list its candidates")
        checked_policies(self.brought)
        if self.budget is not None:
            checks.count(self.budget, "budget")
        checks.positive(self.confidence, "confidence", below=1.0)
        checks.count(self.rounds, "rounds", least=0)
        if self.regularisations is not None:
            given = checks.float_array(
                self.regularisations, "regularisations", (-1,), ArgumentError
            )
            for delta in given:
                checks.at_least_zero(float(delta), "regularisations")
            object.__setattr__(self, "regularisations", tuple(given.tolist()))
        if self.max_seconds is not None:
            checks.positive(self.max_seconds, "max_seconds")
        if self.watch is not None and not callable(self.watch):
            raise ArgumentError(f"watch is {self.watch!r}, expected a function of a text")

    def run(self, settings: SolveSettings) -> RaceResult:
        """Carry out the plan."""
        # Steps on listed states are short: threads of linear algebra would wait for most of them.
        listed = backend_of(settings.model).lists_states
        with one_thread() if listed else nullcontext():
            return Search(self, settings).run()
