"""Table 1 of the paper: the single queue, seven policies under three initial distributions.

Every cost is computed twice: exactly over the paper's 343 steps, and by simulation with its 95 %
half-width. The paper's own numbers are simulated, so a number *matches* when our exact value lies
inside the paper's interval. Where it does not, the verdict gives the reason if one is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from bellweight.certificates.certificate import Certificate
from bellweight.certificates.certifying import certify
from bellweight.common import tolerances
from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.evaluation.evaluate import Evaluation
from bellweight.models import TabularModel
from bellweight.policies import Policy, TablePolicy, checked_probabilities
from bellweight.problems import single_queue
from bellweight.report.document import plain
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Tell
from bellweight.reproduce.paper import (
    CENT,
    TABLE1,
    TABLE1_EPISODES,
    TABLE1_HORIZON,
    Printed,
)
from bellweight.reproduce.queue.runs import TITLES, Found, policies
from bellweight.reproduce.runs import exact_cost, simulated_cost
from bellweight.reproduce.tables import (
    compared_cost,
    ended,
    judged_table,
    long_table,
    money,
    paper_cells,
    simulated_cells,
    verdict_cells,
    without_simulated,
)
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared, Verdict, interval

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

    @property
    def complete(self) -> bool:
        """Whether all three columns are there."""
        return len(self.parts) == len(TITLES)

    def __getitem__(self, initial: str) -> Part:
        """Return a column by its initial distribution."""
        return next(part for part in self.parts if part.initial == initial)

    def document(self) -> dict[str, Any]:
        columns = [
            {**plain(part), "title": part.title, "notes": list(notes(part))} for part in self.parts
        ]
        return {"horizon": TABLE1_HORIZON, "columns": columns}

    def tables(self) -> tuple[Table, ...]:
        """Return one table for each initial distribution."""
        return tuple(map(_table, self.parts))

    def rows(self) -> Table:
        rows = [_long_row(part, row) for part in self.parts for row in part.rows]
        return long_table("Table 1", rows)

    def compared(self) -> tuple[Compared, ...]:
        return tuple(
            compared_cost(f"{part.title}, {row.policy}", money(row.exact), row.paper, row.verdict)
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


def steps(settings: Settings, tell: Tell) -> Iterator[Table1]:
    """Compute the table column by column."""
    table = Table1((), settings=settings)
    for initial in TITLES:
        part = _part(initial, settings, tell, len(table.parts))
        table = replace(table, parts=(*table.parts, part))
        yield table


ARTEFACTS = (
    Artefact(
        "table1",
        steps,
        full=Settings(TABLE1_EPISODES),
        quick=Settings(20_000),
        takes=("episodes", "exact", "quick"),
    ),
)


def _part(initial: str, settings: Settings, tell: Tell, finished: int) -> Part:
    model = single_queue(initial=initial)
    n_rows = len(TABLE1[initial])
    known: dict[bytes, Evaluation] = {}
    constant = exact_cost(model, _constant_policy(model, CONSTANT_RATE), TABLE1_HORIZON)
    rows: list[Row] = []
    best = None
    for count, found in enumerate(policies(model)):
        share = (finished + count / n_rows) / len(TITLES)
        tell(f"{TITLES[initial]}, {found.name}", share)
        best = exact_cost(model, found.policy) if best is None else best
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
    within, whole = exact_cost(model, found.policy, TABLE1_HORIZON), exact_cost(model, found.policy)
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
        known[key] = simulated_cost(model, policy, settings, TABLE1_HORIZON)
    return known[key]


def _constant_policy(model: TabularModel, rate: float) -> TablePolicy:
    assert model.action_labels is not None
    return TablePolicy(np.full(model.n_states, model.action_labels.index(f"rate {rate:g}")))


_USELESS = "no use"


def _rounded(value: float) -> str:
    return f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}"


_COLUMNS = (
    Column("policy", "policy", right=False),
    Column("exact", "exact", money),
    Column("simulated", "simulated", interval),
    Column("paper", "paper", interval),
    Column("tail", "tail", lambda value: f"{value:,.3g}" if value < 100 else f"{value:,.0f}"),
    Column("loss", "loss", _rounded),
    Column("bound", "loss at most", lambda value: value if value == _USELESS else _rounded(value)),
    Column("ended", "iterations"),
)


def _table(part: Part) -> Table:
    """Return one column of the paper as a table of its own."""
    simulated = any(row.simulated is not None for row in part.rows)
    return judged_table(
        f"{part.title}: discounted cost over {TABLE1_HORIZON} steps",
        without_simulated(_COLUMNS, simulated),
        [(_shown_row(row), row.verdict) for row in part.rows],
        notes(part),
    )


def notes(part: Part) -> tuple[str, ...]:
    """Return what the numbers of one column show as a whole."""
    found = [_ending_note(part), _order_note(part)]
    gaps = [row.paper.mean - row.exact for row in part.rows]
    if part.initial == "geometric":
        found.append(f"The paper's costs are {min(gaps):.2f} to {max(gaps):.2f} above ours.")
    if part.initial == "reverse":
        largest = max(_relative(row) for row in part.rows)
        found.append(
            f"Rate 0.6 in every state costs {part.constant:,.2f}. The largest difference to the "
            f"paper is {100.0 * largest:.1g} % of the cost."
        )
    found.append(
        f"Tail: the cost after step {TABLE1_HORIZON}, which these numbers leave out; at most "
        f"{max(row.tail for row in part.rows):,.4g}."
    )
    found.append(
        "Loss: what the policy costs more than the optimum over all time. Loss at most: what its "
        "certificate proves without knowing the optimum; where that is more than the whole cost it "
        f"says nothing, and {_USELESS!r} stands there."
    )
    simulated = [row for row in part.rows if row.simulated is not None]
    if simulated:
        inside = sum(_agrees(row) for row in simulated)
        found.append(
            f"{inside} of {len(simulated)} simulated 95 % intervals contain the exact value; all "
            "rows meet the same random numbers."
        )
    return tuple(found)


def same_order(part: Part) -> bool:
    """Return whether our exact costs stand in the order of the paper's, ties included."""
    for one, other in combinations(part.rows, 2):
        ours, theirs = one.exact - other.exact, one.paper.mean - other.paper.mean
        if theirs == 0.0 and abs(ours) > CENT:
            return False
        if theirs != 0.0 and ours * theirs <= 0.0:
            return False
    return True


def _ending_note(part: Part) -> str:
    runs = [row for row in part.rows if row.status is not None]
    stuck = [row.policy for row in runs if row.status is not Status.CONVERGED]
    if stuck:
        return f"Not converged: {', '.join(stuck)}."
    most = max(row.iterations or 0 for row in runs)
    return f"Every method converged, within {most} iterations."


def _order_note(part: Part) -> str:
    if same_order(part):
        return "The policies stand in the paper's order, ties included."
    return "The policies do not all stand in the paper's order: see the differences."


def _relative(row: Row) -> float:
    """Return how far the paper's number is from ours, as a share of ours."""
    return abs(row.paper.mean - row.exact) / abs(row.exact)


def _agrees(row: Row) -> bool:
    return row.simulated is not None and (
        abs(row.simulated.mean - row.exact) <= row.simulated.half_width
    )


def _shown_row(row: Row) -> dict[str, Any]:
    return {
        **vars(row),
        "loss": row.loss if row.loss > tolerances.SAME_COST * row.exact else 0.0,
        "bound": _useful(row),
        "ended": ended(row.iterations, row.status),
    }


def _useful(row: Row) -> float | str | None:
    """Return the proven loss, or in words that it is more than the cost, which says nothing."""
    bound = None if row.certificate is None else row.certificate.bound
    return _USELESS if bound is not None and bound > row.exact + row.tail else bound


def _long_row(part: Part, row: Row) -> dict[str, Any]:
    return {
        "initial": part.initial,
        "policy": row.policy,
        "horizon": TABLE1_HORIZON,
        "exact": row.exact,
        "tail": row.tail,
        **simulated_cells(row.simulated),
        **paper_cells(row.paper),
        "relative": _relative(row),
        "loss": row.loss,
        "bound": row.certificate and row.certificate.bound,
        "greedy_bound": row.certificate and row.certificate.greedy_bound,
        "iterations": row.iterations,
        "status": row.status and row.status.name,
        **verdict_cells(row.verdict),
    }
