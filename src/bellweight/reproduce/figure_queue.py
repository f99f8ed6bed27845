"""The figure of the single queue: approximate cost-to-go, true cost-to-go, and actions.

One column for each initial distribution. The window of states lies where the queue spends its time:
at the bottom, or for the full system at the top. The paper's text on this figure says where the
approximations are good; these statements are judged on all states, by exact numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight import exact
from bellweight.common.checks import FloatArray, IntArray
from bellweight.display import Table
from bellweight.exact.occupancy import exact_occupancy
from bellweight.models import TabularModel
from bellweight.policies import checked_probabilities
from bellweight.problems import single_queue
from bellweight.program import AllRows
from bellweight.reproduce import figure_queue_view as view
from bellweight.reproduce.artefact import (
    Reproduction,
    Settings,
    Tell,
    Wanted,
    exact_settings,
    ignore,
)
from bellweight.reproduce.queue_runs import OPTIMAL, TITLES, Found, policies
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPISODES = 0
RESUMES = False
WINDOW = 61
"""How many states a panel shows."""
_FEW = 50
"""How many states count as the low, and as the high ones."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One policy, by state (S,): cost-to-go, approximate and true, rates, occupancy, weights.

    The errors are mean distances of the approximation to the optimum over the lowest and over the
    highest states. The optimal policy needs no weights: they are its occupancy.
    """

    policy: str
    approximate: FloatArray
    true: FloatArray
    rates: FloatArray
    occupancy: FloatArray
    weights: FloatArray
    low_error: float
    high_error: float


@dataclass(frozen=True, eq=False)
class Column:
    """All policies under one initial distribution; `window` lists the states that are drawn."""

    initial: str
    curves: tuple[Curve, ...]
    window: IntArray

    @property
    def title(self) -> str:
        """The paper's name of the initial distribution."""
        return TITLES[self.initial]

    def __getitem__(self, policy: str) -> Curve:
        """Return the curve of a policy."""
        return next(curve for curve in self.curves if curve.policy == policy)

    def error(self, policy: str, over: FloatArray) -> float:
        """Return the mean distance of an approximation to the optimum over states (S,)."""
        return float(over @ np.abs(self[OPTIMAL].true - self[policy].approximate))


@dataclass(frozen=True, eq=False)
class QueueFigure(Reproduction):
    """One column for each initial distribution."""

    columns: tuple[Column, ...]
    settings: Settings
    seconds: float = 0.0
    complete: bool = True
    name: str = "figure-queue"

    @property
    def caption(self) -> str:
        """What the figure shows."""
        return view.CAPTION

    def document(self) -> dict[str, Any]:
        """Return the curves inside the windows, and the errors over all states."""
        return {"seconds": self.seconds, "columns": [view.document(c) for c in self.columns]}

    def tables(self) -> tuple[Table, ...]:
        """Return where actions change, how good the approximations are, and the verdicts."""
        return view.tables(self)

    def rows(self) -> Table:
        """Return every number that is drawn."""
        return view.long_table(self.columns)

    def compared(self) -> tuple[Compared, ...]:
        """Return the verdicts on what the paper's text says of this figure."""
        return view.compared(self.columns)

    def times(self) -> tuple[Time, ...]:
        """Return the time of the whole figure."""
        return (Time("solving all methods, everything included", self.seconds),)

    def figure(self) -> Figure:
        """Return the picture."""
        from bellweight.display.panels import panel_figure

        return panel_figure(view.panels(self.columns))


def settings(wanted: Wanted) -> Settings:
    """Return the settings: everything is exact, and quick anyway."""
    return exact_settings("figure-queue", wanted)


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> QueueFigure:
    """Compute the columns; they take seconds, so a part of them is not worth a picture."""
    began = time.perf_counter()
    columns = columns_of(tell)
    found = QueueFigure(columns, settings, time.perf_counter() - began)
    keep(found)
    return found


def columns_of(tell: Tell = ignore) -> tuple[Column, ...]:
    """Return one column for each initial distribution."""
    columns = []
    for place, (initial, title) in enumerate(TITLES.items()):
        tell(title, place / len(TITLES))
        columns.append(_column(initial))
    return tuple(columns)


def _column(initial: str) -> Column:
    model = single_queue(initial=initial)
    best = exact.optimal(model).values
    curves = tuple(_curve(model, found, best) for found in policies(model))
    first = model.n_states - WINDOW if initial == "reverse" else 0
    return Column(initial, curves, np.arange(first, first + WINDOW))


def _curve(model: TabularModel, found: Found, best: FloatArray) -> Curve:
    approximate = best
    if found.result is not None:
        approximate = AllRows().on(model, found.result.basis).values(found.result.coef)
    gap = np.abs(best - approximate)
    occupancy = exact_occupancy(model, found.policy).weights
    weights = occupancy if found.result is None else found.result.weights
    assert occupancy is not None
    assert weights is not None
    return Curve(
        policy=found.name,
        approximate=approximate,
        true=exact.policy_value(model, found.policy),
        rates=rates(model, found),
        occupancy=occupancy,
        weights=weights,
        low_error=float(gap[:_FEW].mean()),
        high_error=float(gap[-_FEW:].mean()),
    )


def rates(model: TabularModel, found: Found) -> FloatArray:
    """Return the service rate that a policy chooses in each state (S,)."""
    assert model.action_labels is not None
    offered = np.array([float(label.removeprefix("rate ")) for label in model.action_labels])
    chances = checked_probabilities(model, found.policy)
    return np.asarray(np.add.reduceat(chances * offered[model.pair_action], model.pair_start[:-1]))
