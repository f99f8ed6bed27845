"""From the rows of single samples to the rows of Table 2.

Two intervals, and they answer different questions. `simulated` is the error of simulation alone:
it holds for the mean over these very samples of constraint states. `between` is Student's interval
over the samples: it holds for the mean over all samples that could have been drawn, and is wide
because there are few. A baseline needs no constraint states, so for it only the first one exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellweight.reproduce import verdicts
from bellweight.reproduce.network.runs import BASELINES, METHODS, Run
from bellweight.reproduce.paper import TABLE2, TABLE2_SECONDS, Printed
from bellweight.reproduce.verdicts import Verdict
from bellweight.simulation import mean_and_half_width


@dataclass(frozen=True)
class Estimate:
    """A mean over samples, its two 95 % half-widths, and the spread between samples."""

    mean: float
    simulated: float
    between: float | None
    deviation: float | None
    low: float
    high: float

    @property
    def range(self) -> float:
        """How far the samples lie apart."""
        return self.high - self.low

    @property
    def is_below(self) -> bool:
        """Whether it is below zero by more than the error of simulation."""
        return self.mean < -self.simulated

    @property
    def is_below_for_all_samples(self) -> bool:
        """Whether it is below zero for the mean over all samples that could have been drawn."""
        return self.between is not None and self.mean < -self.between


@dataclass(frozen=True)
class Generation:
    """How policies were found: mean seconds, beside the paper's; how runs ended."""

    seconds: float
    paper_seconds: float | None
    iterations: tuple[int, ...]
    statuses: Mapping[str, int]
    dual_share: float | None
    largest_totals: tuple[int, ...]
    largest_queues: tuple[int, ...]


@dataclass(frozen=True)
class Summary:
    """One row of the table, over the samples that are finished; `episodes` are pooled.

    A baseline, which the paper lacks, has no verdict: `standing` says how it compares with the
    paper's best row.
    """

    states: int | None
    policy: str
    samples: int
    episodes: int
    cost: Estimate
    difference: Estimate
    generation: Generation | None
    paper: Printed | None
    verdict: Verdict | None
    standing: str | None


def summaries(runs: Sequence[Run], states: int, episodes: int) -> tuple[Summary, ...]:
    """Return the rows of the table for one number of states, baselines last."""
    found = []
    for policy in (*METHODS, *BASELINES):
        wanted = states if policy in METHODS else None
        mine = [run for run in runs if run.policy == policy and run.states == wanted]
        if mine:
            found.append(_summary(mine, episodes))
    gaps = [row.difference.mean for row in found if row.paper is not None]
    between_methods = max(gaps) - min(gaps) if gaps else 0.0
    return tuple(
        replace(row, verdict=_judged(row, between_methods)) if row.paper is not None else row
        for row in found
    )


def estimate(
    values: Sequence[float], half_widths: Sequence[float], *, sampled: bool = True
) -> Estimate:
    """Return the mean of independent estimates; `sampled`: each has constraint states of its own.

    Half-widths of independent means add up in squares.
    """
    numbers, widths = np.array(values), np.array(half_widths)
    n = len(numbers)
    between = deviation = None
    if sampled and n > 1:
        between, deviation = mean_and_half_width(numbers)[1], float(numbers.std(ddof=1))
    return Estimate(
        mean=float(numbers.mean()),
        simulated=float(np.sqrt((widths**2).sum())) / n,
        between=between,
        deviation=deviation,
        low=float(numbers.min()),
        high=float(numbers.max()),
    )


def _summary(runs: Sequence[Run], episodes: int) -> Summary:
    first = runs[0]
    is_method = first.states is not None
    cost = estimate([r.cost for r in runs], [r.half_width for r in runs], sampled=is_method)
    pooled = episodes * len(runs)
    return Summary(
        states=first.states,
        policy=first.policy,
        samples=len(runs),
        episodes=pooled,
        cost=cost,
        difference=estimate(
            [r.difference for r in runs],
            [r.difference_half_width for r in runs],
            sampled=is_method,
        ),
        generation=_generation(runs) if is_method else None,
        paper=TABLE2.get(first.policy),
        verdict=None,
        standing=None if is_method else verdicts.table2_baseline(cost.mean, cost.simulated, pooled),
    )


def _judged(row: Summary, between_methods: float) -> Verdict:
    assert row.paper is not None
    return verdicts.table2(
        row.cost.mean,
        row.cost.simulated,
        row.paper,
        row.episodes,
        samples=row.samples,
        lowest=row.cost.low,
        highest=row.cost.high,
        between_samples=row.difference.range,
        between_methods=between_methods,
    )


def _generation(runs: Sequence[Run]) -> Generation:
    seconds = [run.seconds for run in runs if run.seconds is not None]
    shares = [run.dual_share for run in runs if run.dual_share is not None]
    return Generation(
        seconds=float(np.mean(seconds)),
        paper_seconds=TABLE2_SECONDS.get(runs[0].policy),
        iterations=tuple(run.iterations or 0 for run in runs),
        statuses=dict(Counter(run.status or "" for run in runs)),
        dual_share=float(np.mean(shares)) if shares else None,
        largest_totals=tuple(run.largest_total or 0 for run in runs),
        largest_queues=tuple(run.largest_queue or 0 for run in runs),
    )
