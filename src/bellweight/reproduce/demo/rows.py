"""What both parts of the demonstration share: a policy with its cost, its proof, its lesson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellweight.display import Column, Table


@dataclass(frozen=True)
class Row:
    """A policy: what it costs, what is proven about every policy, and what follows from that.

    `half_width` is 0 where the cost is exact. `tail` bounds what a simulation left out.
    """

    policy: str
    cost: float
    lower_bound: float | None
    so_what: str
    half_width: float = 0.0
    tail: float = 0.0

    @property
    def savings(self) -> float | None:
        """The share of the cost, in per cent, that the best policy could save at most.

        The cost is taken at the upper end of its 95 % interval. Costs here are never negative, so
        a lower bound below zero proves nothing.
        """
        if self.lower_bound is None or self.lower_bound <= 0.0:
            return None
        most = self.cost + self.half_width + self.tail
        return 100.0 * (most - self.lower_bound) / most


def percent_text(share: float) -> str:
    """Return per cent with one decimal, or two digits where it is less than one."""
    if share == 0.0:
        return "none"
    return f"{share:.1f} %" if share >= 1.0 else f"{share:.2g} %"


def table_of(title: str, rows: Sequence[Row], digits: int, between: str = "+-") -> Table:
    """Return the rows for a screen of 80 columns."""
    simulated = any(row.half_width for row in rows)

    def cost(row: Row) -> str:
        width = f" {between} {row.half_width:,.{digits}f}" if simulated else ""
        return f"{row.cost:,.{digits}f}{width}"

    cells = tuple(
        {
            "policy": row.policy,
            "cost": row.cost,
            "shown": cost(row),
            "half_width": row.half_width,
            "lower_bound": row.lower_bound,
            "savings": row.savings,
            "so_what": row.so_what,
        }
        for row in rows
    )
    columns = (
        Column("policy", "policy", right=False),
        Column("cost", "", None),
        Column("shown", "cost"),
        Column("half_width", "", None),
        Column("lower_bound", "proven at least", lambda value: f"{value:,.{digits}f}"),
        Column("savings", "savings left", percent_text),
        Column("so_what", "so what", right=False),
    )
    # Where every row has the same proof, a sentence says it, not a column.
    same = len({row.lower_bound for row in rows}) == 1
    used = tuple(column for column in columns if not (same and column.key == "lower_bound"))
    return Table(title, used, cells)
