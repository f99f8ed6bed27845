"""Table 1 of the paper: the single queue, seven policies under three initial distributions.

Every cost is computed twice: exactly over the paper's 343 steps, and by simulation with its 95 %
half-width. The paper's own numbers are simulated, so a number *matches* when our exact value lies
inside the paper's interval. Where it does not, the verdict gives the reason if one is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.certificates.certificate import Certificate, certify
from bellweight.common.status import ArgumentError, Status
from bellweight.display import Table
from bellweight.evaluation.evaluate import Evaluation, evaluate
from bellweight.models import TabularModel
from bellweight.policies import Policy, TablePolicy, checked_probabilities
from bellweight.problems import single_queue
from bellweight.report.document import plain
from bellweight.reproduce import table1_view, verdicts
from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, ignore
from bellweight.reproduce.paper import TABLE1, TABLE1_EPISODES, TABLE1_HORIZON, Printed
from bellweight.reproduce.queue_runs import TITLES, Found, cost, policies
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared, Verdict, interval

EPISODES = TABLE1_EPISODES
RESUMES = False
_QUICK = 20_000
CONSTANT_RATE = 0.6
"""The constant action whose cost the paper's Reverse column prints in its adaptive rows."""


@dataclass(frozen=True)
class Row:
    """One policy under one initial distribution.

    `exact` is its cost over the horizon, `tail` the cost that the horizon leaves out, `loss` what
    it costs more than the optimum over all time. `iterations`, `status` and `certificate` are None
    for the optimal policy, which no method chose.
    """

    policy: str
    exact: float
    tail: float
    simulated: Evaluation | None
    paper: Printed
    iterations: int | None
    status: Status | None
    seconds: float
    verdict: Verdict
    loss: float
    certificate: Certificate | None


@dataclass(frozen=True)
class Part:
    """One column of the paper's table; `constant` is the exact cost of the constant rate 0.6."""

    initial: str
    rows: tuple[Row, ...]
    constant: float

    @property
    def title(self) -> str:
        """The paper's name of the initial distribution."""
        return TITLES[self.initial]

    def __getitem__(self, policy: str) -> Row:
        """Return the row of a policy."""
        return next(row for row in self.rows if row.policy == policy)


@dataclass(frozen=True)
class Table1(Reproduction):
    """The table, or the columns of it that are finished."""

    parts: tuple[Part, ...]
    settings: Settings
    seconds: float
    name: str = "table1"

    @property
    def complete(self) -> bool:
        """Whether all three columns are there."""
        return len(self.parts) == len(TITLES)

    def __getitem__(self, initial: str) -> Part:
        """Return a column by its initial distribution."""
        return next(part for part in self.parts if part.initial == initial)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "horizon": TABLE1_HORIZON,
            "seconds": self.seconds,
            "columns": [
                {**plain(part), "title": part.title, "notes": list(table1_view.notes(part))}
                for part in self.parts
            ],
        }

    def tables(self) -> tuple[Table, ...]:
        """Return one table for each initial distribution."""
        return tuple(table1_view.table(part) for part in self.parts)

    def rows(self) -> Table:
        """Return all numbers as one long table."""
        return table1_view.long_table(self.parts)

    def compared(self) -> tuple[Compared, ...]:
        """Return the verdict on every number of the paper's table."""
        return tuple(
            Compared(
                what=f"{part.title}, {row.policy}",
                ours=f"{row.exact:,.2f}",
                paper=interval((row.paper.mean, row.paper.half_width)),
                verdict=row.verdict,
            )
            for part in self.parts
            for row in part.rows
        )

    def times(self) -> tuple[Time, ...]:
        """Return the time of each policy."""
        return tuple(
            Time(f"{part.title}, {row.policy}", row.seconds)
            for part in self.parts
            for row in part.rows
        )


def settings(wanted: Wanted) -> Settings:
    """Return the settings: as many episodes as the paper, fewer, or exact values only."""
    wanted.only("table1", "episodes", "exact", "quick")
    if wanted.exact and wanted.episodes is not None:
        raise ArgumentError("give --exact or --episodes, not both")
    episodes = None if wanted.exact else wanted.episodes or (_QUICK if wanted.quick else EPISODES)
    return Settings(episodes, wanted.seed, wanted.jobs)


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> Table1:
    """Compute the table column by column; `keep` sees it after each column."""
    began = time.perf_counter()
    table = Table1((), settings, 0.0)
    for initial in TITLES:
        part = _part(initial, settings, tell, len(table.parts))
        table = Table1((*table.parts, part), settings, time.perf_counter() - began)
        keep(table)
    return table


def _part(initial: str, settings: Settings, tell: Tell, finished: int) -> Part:
    model = single_queue(initial=initial)
    n_rows = len(TABLE1[initial])
    known: dict[bytes, Evaluation] = {}
    constant = cost(model, _constant_policy(model, CONSTANT_RATE), TABLE1_HORIZON)
    rows: list[Row] = []
    best = None
    for count, found in enumerate(policies(model)):
        share = (finished + count / n_rows) / len(TITLES)
        tell(f"{TITLES[initial]}, {found.name}", share)
        best = cost(model, found.policy) if best is None else best
        rows.append(_row(model, initial, found, constant, best, settings, known))
    return Part(initial, tuple(rows), constant)


def _row(
    model: TabularModel,
    initial: str,
    found: Found,
    constant: float,
    best: float,
    settings: Settings,
    known: dict[bytes, Evaluation],
) -> Row:
    within, whole = cost(model, found.policy, TABLE1_HORIZON), cost(model, found.policy)
    printed = TABLE1[initial][found.name]
    result = found.result
    return Row(
        policy=found.name,
        exact=within,
        tail=abs(whole - within),
        simulated=_simulated(model, found.policy, settings, known),
        paper=printed,
        iterations=None if result is None else len(result.history),
        status=None if result is None else result.status,
        seconds=found.seconds,
        verdict=verdicts.table1(initial, found.name, within, printed, constant),
        loss=max(0.0, whole - best),
        # The record of a certificate holds arrays over all states, which no table needs.
        certificate=None if result is None else replace(certify(model, result), record={}),
    )


def _simulated(
    model: TabularModel, policy: Policy, settings: Settings, known: dict[bytes, Evaluation]
) -> Evaluation | None:
    """Simulate a policy, unless one with the same actions was simulated before."""
    if settings.episodes is None:
        return None
    key = np.packbits(checked_probabilities(model, policy) > 0.5).tobytes()
    if key not in known:
        known[key] = evaluate(
            model,
            policy,
            settings.episodes,
            horizon=TABLE1_HORIZON,
            seed=settings.seed,
            jobs=settings.jobs,
        )
    return known[key]


def _constant_policy(model: TabularModel, rate: float) -> TablePolicy:
    assert model.action_labels is not None
    return TablePolicy(np.full(model.n_states, model.action_labels.index(f"rate {rate:g}")))
