"""A small Table 2 for tests, and one made up of given costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellweight.reproduce.network.runs import (
    LAST_BUFFER,
    Choice,
    Run,
    Table2Settings,
    tasks,
)
from bellweight.reproduce.network.table2 import Table2

TINY = Table2Settings(
    episodes=60,
    states=(150, 190),
    samples=2,
    occupancy_episodes=40,
    choice_episodes=16,
    max_iterations=3,
    seed=5,
)
CHOICE = Choice((3, 8, 1, 2, 6, 7, 5, 4), 13_000.0, 100, 72, is_last_buffer=True)


def made_up(
    cost: Callable[[int, str], float], settings: Table2Settings, half_width: float = 20.0
) -> Table2:
    """A finished table with costs by sample and policy, and no simulation behind it."""
    runs = []
    for task in tasks(settings):
        own, first = cost(task.sample, task.policy), cost(task.sample, LAST_BUFFER)
        facts = {} if task.states is None else {
            "status": "CONVERGED", "iterations": 2, "seconds": 10.0 * task.sample,
            "largest_total": 190 + task.sample, "largest_queue": 80 + task.sample,
        }  # fmt: skip
        place = (task.sample, task.states, task.policy)
        runs.append(Run(*place, own, half_width, own - first, 3.0, **facts))
    return Table2(tuple(runs), CHOICE, settings=settings, tail_bound=69.0)


def summary(table: Table2, states: int, policy: str) -> Any:
    return next(row for row in table.summaries(states) if row.policy == policy)
