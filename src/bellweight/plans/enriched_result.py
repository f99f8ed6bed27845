"""What enrichment found: every round, the result of the lowest cost, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellweight.backends import Estimate
from bellweight.basis import Function
from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import Status
from bellweight.display import Column, Table, number_text
from bellweight.display.charts import Chart, Line, Picture
from bellweight.display.presentable import Pictures
from bellweight.results.base import ChosenResult
from bellweight.results.judgement import notes_of
from bellweight.results.result import Result


@files.storable("EnrichedRound")
@dataclass(frozen=True)
class EnrichedRound:
    """One round: the functions it added, by name, and what the program with them says.

    `total` counts the functions added so far. `cost` is that of this round's policy; `lower_bound`
    and `gap` are the best so far: of all bounds, and from the lowest cost to it, None where nothing
    is proven. `left` is weight times residual, summed over the states where the dual has no mass.
    """

    added: tuple[str, ...]
    total: int
    lower_bound: float | None
    cost: Estimate
    gap: float | None
    left: float
    status: Status
    seconds: float


@files.storable("EnrichedResult")
@dataclass(frozen=True, eq=False, repr=False)
class EnrichedResult(ChosenResult):
    """What enrichment found: the `result` of the lowest cost, every round, and why it stopped.

    Of results with the same cost the one with the highest bound is taken. `lower_bound` is the best
    of all rounds: what one of them has proven holds for all.
    """

    result: Result
    rounds: tuple[EnrichedRound, ...]
    added: tuple[Function, ...]
    stopped: str

    @property
    def cost(self) -> Estimate:
        """The cost of the policy: exact, or on random numbers that had no part in choosing it."""
        cost = self.result.cost
        assert cost is not None
        if cost.half_width > 0.0 and self.judgement is not None:
            return self.judgement.cost
        return cost

    def stored_fault(self) -> str:
        exact = self.rounds and self.result.cost is not None
        return "" if exact else "there is no round, or its result has no cost"

    @property
    def lower_bound(self) -> float | None:
        """What no policy can cost less than, None where nothing is proven."""
        return self.rounds[-1].lower_bound

    @property
    def gap(self) -> float | None:
        """What the policy can cost more than the best one, at most; None where it is not known.

        Where the cost is simulated its half-width is added.
        """
        if self.lower_bound is None:
            return None
        return self.cost.mean + self.cost.half_width - self.lower_bound

    def table(self) -> Table:
        """Return one row for each round."""
        rows = tuple(
            {**vars(one), "cost": one.cost.mean, "round": k, "names": ", ".join(one.added) or "-"}
            for k, one in enumerate(self.rounds)
        )
        above = "" if self.gap is None else f", at most {self.gap:.3g} above the optimum"
        notes = (
            f"Stopped: {self.stopped}.",
            f"Taken: {len(self.added)} added functions, cost {self.cost}{above}. Left: weight "
            "times residual where the dual has no mass.",
            *notes_of(self.judgement),
        )
        columns: tuple[Column, ...] = _COLUMNS
        if self.gap is None:
            columns = tuple(one for one in columns if one.key not in ("lower_bound", "gap"))
        return Table(f"Enrichment on {self.result.model_name}", columns, rows, notes)

    def pictures(self) -> Pictures:
        """Return cost and bound, and what is left, by the number of functions added."""
        return {"growth": self._growth, "left": self._left}

    def _growth(self) -> tuple[Picture, ...]:
        total = _totals(self.rounds)
        cost = np.array([one.cost.mean for one in self.rounds])
        alt = (
            f"With {int(total[-1])} functions added the cost went from {cost[0]:,.6g} to "
            f"{cost[-1]:,.6g}."
        )
        lines = [Line("cost of the policy", total, cost)]
        proven = [one for one in self.rounds if one.lower_bound is not None]
        if proven:
            bound = np.array([one.lower_bound for one in proven])
            alt += f" The bound went from {bound[0]:,.6g} to {bound[-1]:,.6g}."
            lines.append(Line("proven lower bound", _totals(proven), bound))
        title, down = "Cost and bound as the basis grows", "expected discounted cost"
        return (Chart("growth", title, "functions added", down, tuple(lines), alt),)

    def _left(self) -> tuple[Picture, ...]:
        left = np.array([one.left for one in self.rounds])
        seen = left > 0.0  # zero has no place on a log axis
        if not seen.any():
            return ()
        line = Line("weight times residual", _totals(self.rounds)[seen], left[seen])
        alt = f"What is left went from {left[0]:.3g} to {left[-1]:.3g}."
        title = "Residual where the dual has no mass"
        names = ("functions added", "weight times residual")
        return (Chart("left", title, *names, (line,), alt, log_y=True),)


def _totals(rounds: Sequence[EnrichedRound]) -> FloatArray:
    return np.array([one.total for one in rounds], dtype=np.float64)


_COLUMNS = (
    Column("round", "round"),
    Column("total", "functions"),
    Column("lower_bound", "lower bound", number_text),
    Column("cost", "cost", number_text),
    Column("gap", "gap", "{:.3g}".format),
    Column("left", "left", "{:.3g}".format),
    Column("status", "status", lambda status: str(status.name), right=False),
    Column("names", "added", right=False),
    Column("seconds", "", None),
)
