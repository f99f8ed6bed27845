"""What the figures of the single queue share: the curves of every policy, by state.

One column for each initial distribution. The window of states lies where the queue spends its time:
at the bottom, or for the full system at the top.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bellweight import exact
from bellweight.common.checks import FloatArray, IntArray
from bellweight.display import Table
from bellweight.exact.occupancy import exact_occupancy
from bellweight.models import TabularModel
from bellweight.policies import checked_probabilities
from bellweight.problems import single_queue
from bellweight.program import AllRows
from bellweight.reproduce.artefact import Reproduction, Settings, Tell
from bellweight.reproduce.queue.runs import OPTIMAL, TITLES, Found, policies
from bellweight.reproduce.tables import long_table
from bellweight.reproduce.times import Time

if TYPE_CHECKING:
    from bellweight.display.panels import Panel

DRAWN = (OPTIMAL, "Fixed 0.9", "Fixed 0.999", "PIA", "DIA (Random)")
FIXED = ("Fixed 0.9", "Fixed 0.999")
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
class QueueCurves(Reproduction):
    """A figure of the single queue: one column of panels for each initial distribution."""

    columns: tuple[Column, ...]

    @staticmethod
    @abstractmethod
    def drawn(curve: Curve) -> dict[str, FloatArray]:
        """Return what is drawn of a curve, by state (S,)."""

    @staticmethod
    @abstractmethod
    def numbers(column: Column, curve: Curve) -> dict[str, Any]:
        """Return what is said of a curve as a whole, over all states."""

    def document(self) -> dict[str, Any]:
        """Return the curves inside the windows, and what is said of them over all states."""
        return {
            "columns": [
                {
                    "initial": column.initial,
                    "title": column.title,
                    "window": [int(column.window[0]), int(column.window[-1])],
                    "curves": [self._curve_document(column, curve) for curve in column.curves],
                }
                for column in self.columns
            ]
        }

    def rows(self) -> Table:
        """Return every number that is drawn."""
        rows = []
        for column in self.columns:
            for curve in column.curves:
                drawn = self.drawn(curve)
                for state in column.window:
                    place = {"initial": column.initial, "policy": curve.policy, "state": int(state)}
                    rows.append(place | {key: float(drawn[key][state]) for key in drawn})
        return long_table(self.name, rows)

    def times(self) -> tuple[Time, ...]:
        """Return the time of the whole figure."""
        return (Time("solving all methods, everything included", self.seconds),)

    def _curve_document(self, column: Column, curve: Curve) -> dict[str, Any]:
        drawn = {key: of[column.window].tolist() for key, of in self.drawn(curve).items()}
        return {"policy": curve.policy, **self.numbers(column, curve), **drawn}


Figure = TypeVar("Figure", bound=QueueCurves)


def steps(kind: type[Figure], settings: Settings, tell: Tell) -> Iterator[Figure]:
    """Compute a figure as a whole: it takes seconds, so a part of it is not worth a picture."""
    yield kind(columns_of(tell), settings=settings)


def panel(column: Column, label: str, curve: str, **more: Any) -> Panel:
    """Return a panel of one number of every drawn policy, by queue length."""
    from bellweight.display.panels import Panel

    curves = {name: getattr(column[name], curve)[column.window] for name in DRAWN}
    return Panel(column.title, "queue length (jobs)", label, column.window, curves, **more)


def columns_of(tell: Tell) -> tuple[Column, ...]:
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
