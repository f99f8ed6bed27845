"""One pass by two threads, and by two Dask workers, against one thread.

Rows are those of a table, whose values go to the workers in every pass, and drawn ones of the
network, of which only the coefficients do. The other passes are those of exact answers on a table
(value iteration, and a step of an occupancy, of which a vector over the states comes back), of
moments, and of a Newton step of the regularised program. The answers must be the same to the last
bit. Blocks are sent to the workers once, before the clock starts, as in a run of many passes. Dask
takes some hundredths of a second for a pass, whatever its size; where a pass of a table is not much
longer, its time is told and not judged. A busy machine has no second core to give: hashing in two
threads shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from distributed import Client, LocalCluster
from measure import Line
from second_core import two_against_one
from shapes import random_graph

import bellweight as bw
from bellweight.common.workers import limited
from bellweight.exact.table_passes import MixedPasses, TablePasses
from bellweight.program import AllRows, DrawnRows

TITLE = "Two workers"
FIGURES = {
    "workers.threads": "two threads against one",
    "workers.dask": "two Dask workers against one thread",
}

N_STATES, QUICK_STATES = 300_000, 60_000
N_DRAWN, QUICK_DRAWN = 20_000_000, 2_000_000
REPEATS = 5
LEAST_GAIN = 1.0  # two workers are no slower than one
JUDGED_AWAY = ("rows", "drawn")  # passes that are worth the way to local Dask workers

Pass = Callable[[int | None], tuple[Any, ...]]


def run(*, quick: bool = False) -> list[Line]:
    """Return how many times as fast two threads and two Dask workers are."""
    states = QUICK_DRAWN if quick else N_DRAWN
    drawn = DrawnRows(states, seed=1).on(bw.problems.queue_network(), bw.Polynomial(2))
    asked = {
        "drawn": _separation(drawn), **_of_table(random_graph(QUICK_STATES if quick else N_STATES))
    }  # fmt: skip
    lines = [_line("threads", name, work, 2, LEAST_GAIN) for name, work in asked.items()]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                     silence_logs=logging.CRITICAL) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):  # fmt: skip
        for name, work in asked.items():
            least = LEAST_GAIN if name in JUDGED_AWAY else 0.0
            lines.append(_line("dask", name, work, None, least))
    return lines


def _of_table(model: bw.TabularModel) -> dict[str, Pass]:
    """Return passes over a table and over its rows."""
    rng = np.random.default_rng(0)
    rows = AllRows().on(model, bw.Polynomial(2))
    weights = rng.dirichlet(np.ones(model.n_states))
    values, constant = rng.random(model.n_states), rng.random(model.n_states)
    table = TablePasses(model)
    mixed = MixedPasses(model, np.full(model.n_pairs, model.n_states / model.n_pairs))
    active = np.flatnonzero(rng.random(model.n_pairs) < 0.1)
    coordinates = rows.coordinates(None)

    def iteration(jobs: int | None) -> tuple[Any, ...]:
        following, pairs = np.empty(model.n_states), np.empty(model.n_states, dtype=np.int64)
        with limited(jobs):
            return following, pairs, table.improve(values, following, pairs)

    def occupancy(jobs: int | None) -> tuple[Any, ...]:
        following = np.empty(model.n_states)
        with limited(jobs):
            return following, mixed.spread(constant, model.discount, weights, following)

    def moments(jobs: int | None) -> tuple[Any, ...]:
        rows.jobs = jobs
        return (rows.moments(weights),)

    def newton(jobs: int | None) -> tuple[Any, ...]:
        rows.jobs = jobs
        return (rows.weighed(active, np.ones(len(active)), coordinates),)

    return {
        "rows": _separation(rows), "value iteration": iteration, "occupancy": occupancy,
        "moments": moments, "Newton step": newton,
    }  # fmt: skip


def _separation(rows: Any) -> Pass:
    coef = np.random.default_rng(0).normal(size=rows.n_basis)

    def work(jobs: int | None) -> tuple[Any, ...]:
        rows.jobs = jobs
        found = rows.separate(coef, 1.0)
        return found.close, found.close_size, found.near, found.violation

    return work


def _line(kind: str, name: str, work: Pass, jobs: int | None, least: float) -> Line:
    def here() -> Any:
        with joblib.parallel_config(backend="threading"):
            return work(1)

    here(), work(jobs)  # compiles, and cuts the blocks and sends them
    return two_against_one(
        f"workers.{kind} {name}", REPEATS, lambda: work(jobs), here, least, _differences
    )


def _differences(found: tuple[Any, ...], expected: tuple[Any, ...]) -> str:
    same = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    return "" if same else "the answers differ"
