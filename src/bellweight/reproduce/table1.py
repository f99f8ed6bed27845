"""Table 1 of the paper: the single queue, seven policies under three initial distributions.

Every cost is computed twice: exactly over the paper's 343 steps, and by simulation with its 95 %
half-width. The paper's own numbers are simulated, so a number *matches* when our exact value lies
inside the paper's interval. Where it does not, the verdict gives the reason if one is known.
Settings as in the paper: cubic basis, start at the initial distribution, step 1, tolerance 1e-8,
temperature = smoothing_mass = 0.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight import exact
from bellweight.basis import Polynomial
from bellweight.certificate import Certificate, certify
from bellweight.display import Table as ReportTable
from bellweight.evaluate import Evaluation, evaluate
from bellweight.models import TabularModel
from bellweight.policy import Policy, Table, checked_probabilities
from bellweight.problems import single_queue
from bellweight.problems.single_queue import geometric
from bellweight.report.document import plain
from bellweight.reproduce import table1_view, verdicts
from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, ignore
from bellweight.reproduce.paper import TABLE1, TABLE1_EPISODES, TABLE1_HORIZON, Printed
from bellweight.reproduce.verdicts import Verdict
from bellweight.selection import Method, Stop
from bellweight.solve import Result, solve
from bellweight.status import ArgumentError, Status
from bellweight.weights import DIA, PIA, Fixed, FromPolicy

EPISODES = TABLE1_EPISODES
RESUMES = False
TITLES = {
    "geometric": "Geometric",
    "empty": "Empty-System",
    "reverse": "Reverse-Geometric",
}
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
            "name": self.name,
            "complete": self.complete,
            "horizon": TABLE1_HORIZON,
            "settings": plain(self.settings),
            "seconds": self.seconds,
            "columns": [
                {**plain(part), "title": part.title, "notes": list(table1_view.notes(part))}
                for part in self.parts
            ],
        }

    def tables(self) -> tuple[ReportTable, ...]:
        """Return one table for each initial distribution."""
        return tuple(table1_view.table(part) for part in self.parts)

    def rows(self) -> ReportTable:
        """Return all numbers as one long table."""
        return table1_view.long_table(self.parts)


def settings(wanted: Wanted) -> Settings:
    """Return the settings: as many episodes as the paper, or exact values only."""
    wanted.only("table1", "episodes", "exact")
    if wanted.exact and wanted.episodes is not None:
        raise ArgumentError("give --exact or --episodes, not both")
    episodes = None if wanted.exact else wanted.episodes or EPISODES
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


def methods(n_states: int) -> dict[str, Method]:
    """Return the methods of the table by the name of their row."""
    low = Fixed(geometric(n_states, 0.9))
    return {
        "Fixed 0.9": low,
        "Fixed 0.999": Fixed(geometric(n_states, 0.999)),
        "PIA": PIA(),
        "DIA (Random)": DIA(temperature=0.1, smoothing_mass=0.1),
        "DIA (0.9)": DIA(target=low, temperature=0.1, smoothing_mass=0.1),
        "Random": FromPolicy(),
    }


@dataclass(frozen=True)
class _Found:
    """A policy, how it was found, and how long that took."""

    name: str
    policy: Policy
    result: Result | None
    seconds: float


def _part(initial: str, settings: Settings, tell: Tell, finished: int) -> Part:
    model = single_queue(initial=initial)
    n_rows = len(TABLE1[initial])
    known: dict[bytes, Evaluation] = {}
    constant = _cost(model, _constant_policy(model, CONSTANT_RATE), TABLE1_HORIZON)
    rows: list[Row] = []
    best = None
    for count, found in enumerate(_policies(model)):
        share = (finished + count / n_rows) / len(TITLES)
        tell(f"{TITLES[initial]}, {found.name}", share)
        best = _cost(model, found.policy) if best is None else best
        rows.append(_row(model, initial, found, constant, best, settings, known))
    return Part(initial, tuple(rows), constant)


def _policies(model: TabularModel) -> Iterator[_Found]:
    began = time.perf_counter()
    best = exact.optimal(model)
    yield _Found("Optimal", best.policy, None, time.perf_counter() - began)
    for name, method in methods(model.n_states).items():
        result = solve(model, Polynomial(3), method, stop=Stop(tol=1e-8))
        yield _Found(name, result.policy, result, result.seconds)


def _row(
    model: TabularModel,
    initial: str,
    found: _Found,
    constant: float,
    best: float,
    settings: Settings,
    known: dict[bytes, Evaluation],
) -> Row:
    cost, whole = _cost(model, found.policy, TABLE1_HORIZON), _cost(model, found.policy)
    printed = TABLE1[initial][found.name]
    result = found.result
    return Row(
        policy=found.name,
        exact=cost,
        tail=abs(whole - cost),
        simulated=_simulated(model, found.policy, settings, known),
        paper=printed,
        iterations=None if result is None else len(result.history),
        status=None if result is None else result.status,
        seconds=found.seconds,
        verdict=verdicts.table1(initial, found.name, cost, printed, constant),
        loss=max(0.0, whole - best),
        # The record of a certificate holds arrays over all states, which no table needs.
        certificate=None if result is None else replace(certify(model, result), record={}),
    )


def _cost(model: TabularModel, policy: Policy, horizon: int | None = None) -> float:
    return float(model.initial @ exact.policy_value(model, policy, horizon))


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


def _constant_policy(model: TabularModel, rate: float) -> Table:
    assert model.action_labels is not None
    return Table(np.full(model.n_states, model.action_labels.index(f"rate {rate:g}")))
