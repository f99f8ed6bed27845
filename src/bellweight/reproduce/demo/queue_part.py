"""A queue with 50,000 states: small enough that what is claimed can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellweight import exact
from bellweight.basis import Basis, PiecewiseLinear, Polynomial
from bellweight.display import Table
from bellweight.exact import Optimal
from bellweight.models import TabularModel
from bellweight.problems import single_queue
from bellweight.problems.single_queue import geometric
from bellweight.report.document import plain
from bellweight.reproduce.artefact import Tell
from bellweight.reproduce.demo.rows import Row, table_of
from bellweight.solve import Result, solve
from bellweight.weights.loop import Method
from bellweight.weights.methods import DIA, Fixed

KINKS = (1, 2, 3, 4, 5, 6, 8, 10, 15)
"""Where the value function may bend: with a constant and a slope, eleven numbers."""

BY_HAND = ("By hand, decay 0.9", "By hand, decay 0.999")
CUBIC = "Bellweight, 4 numbers"
KINKED = "Bellweight, 11 numbers"
EXACT = "Exact, as a check"


@dataclass(frozen=True)
class QueuePart:
    """The queue, its exact solution, and what each way of choosing weights found without it."""

    model: TabularModel
    optimum: Optimal
    results: Mapping[str, Result]

    @property
    def optimal_cost(self) -> float:
        """The least cost of any policy, from an empty queue."""
        return float(self.model.initial @ self.optimum.values)

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row for each way, the exact optimum last."""
        found = [
            Row(name, result.cost.mean, result.lower_bound, self._lesson(name, result))
            for name, result in self.results.items()
            if result.cost is not None
        ]
        check = Row(EXACT, self.optimal_cost, self.optimal_cost, "only to check")
        return (*found, check)

    @property
    def proven(self) -> Row:
        """The row of the eleven numbers."""
        return next(row for row in self.rows if row.policy == KINKED)

    def loss(self, cost: float) -> float:
        """Return how much a cost is above the optimum, in per cent of it."""
        return 100.0 * (cost - self.optimal_cost) / self.optimal_cost

    def document(self) -> dict[str, Any]:
        """Return what was found, for programs."""
        return {
            "problem": "single_queue",
            "initial": "empty",
            "n_states": self.model.n_states,
            "optimal": self.optimal_cost,
            "rows": [
                {**plain(row), "savings_percent": row.savings, "loss_percent": self.loss(row.cost)}
                for row in self.rows
            ],
        }

    def table(self) -> Table:
        """Return the table to show."""
        return table_of(
            f"1. One queue, {self.model.n_states:,} states: small enough to check", self.rows, 2
        )

    def sentences(self) -> tuple[str, ...]:
        """Return what was done and what it shows, for a newcomer."""
        proven = self.proven
        hand = [self.loss(row.cost) for row in self.rows if row.policy in BY_HAND]
        return (
            "A controller picks the service rate of a queue that holds up to "
            f"{self.model.n_states - 1:,} jobs. A few numbers stand for the "
            f"{self.model.n_states:,} unknown values; weights say in which states they must be "
            f"good. Two usual guesses of those weights lose {abs(hand[0]):.0f} % and "
            f"{hand[1]:.0f} % of the optimal cost, and nothing tells which is which.",
            "Bellweight chooses the weights itself, and proves how good its policy is: with "
            f"eleven numbers no policy can cost less than {proven.lower_bound:,.2f}, so at most "
            f"{proven.savings:.2g} % is left to save. The exact row is there to check that claim. "
            "Larger problems have no such row.",
        )

    def _lesson(self, name: str, result: Result) -> str:
        assert result.cost is not None
        loss = self.loss(result.cost.mean)
        if name in BY_HAND:
            return "optimal, unproven" if loss < 0.01 else f"{loss:.0f} % too dear"
        return "optimal, proven" if loss < 0.01 else f"{loss:.1f} % too dear"


def run(tell: Tell) -> QueuePart:
    """Solve the queue exactly, with weights by hand, and with weights that are chosen."""
    model = single_queue(initial="empty")
    ways: dict[str, tuple[Basis, Method]] = {
        BY_HAND[0]: (Polynomial(3), Fixed(geometric(model.n_states, 0.9))),
        BY_HAND[1]: (Polynomial(3), Fixed(geometric(model.n_states, 0.999))),
        CUBIC: (Polynomial(3), DIA()),
        KINKED: (PiecewiseLinear(KINKS), DIA()),
    }
    tell("queue: the exact optimum", 0.0)
    optimum = exact.optimal(model)
    results = {}
    for number, (name, (basis, method)) in enumerate(ways.items(), start=1):
        tell(f"queue: {name}", number / (1 + len(ways)))
        results[name] = solve(model, basis, method, judge=False)
    return QueuePart(model, optimum, results)
