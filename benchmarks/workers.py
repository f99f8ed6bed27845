"""One pass over rows: two threads, and two Dask workers, against one thread.

The rows are those of a table, whose values go to the workers in every pass, and drawn ones of the
network, of which only the coefficients do. The answers must be the same to the last bit. Blocks are
sent to the workers once, before the clock starts, as in a run of many passes. Dask takes some
hundredths of a second for a pass, whatever its size.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import joblib
import numpy as np
from distributed import Client, LocalCluster
from measure import Line
from second_core import two_against_one
from shapes import random_graph

import bellweight as bw
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


def run(*, quick: bool = False) -> list[Line]:
    """Return how many times as fast two threads and two Dask workers are."""
    table = AllRows().on(random_graph(QUICK_STATES if quick else N_STATES), bw.Polynomial(2))
    states = QUICK_DRAWN if quick else N_DRAWN
    drawn = DrawnRows(states, seed=1).on(bw.problems.queue_network(), bw.Polynomial(2))
    asked = {"table": table, "drawn": drawn}
    lines = [_line(f"workers.threads {name}", rows, 2) for name, rows in asked.items()]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                     silence_logs=logging.CRITICAL) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):  # fmt: skip
        lines += [_line(f"workers.dask {name}", rows, None) for name, rows in asked.items()]
    return lines


def _line(name: str, rows: Any, jobs: int | None) -> Line:
    coef = np.random.default_rng(0).normal(size=rows.n_basis)

    def here() -> Any:
        with joblib.parallel_config(backend="threading"):
            return _pass(rows, coef, 1)

    here(), _pass(rows, coef, jobs)  # compiles, and cuts the blocks and sends them
    two = partial(_pass, rows, coef, jobs)
    return two_against_one(name, REPEATS, two, here, LEAST_GAIN, _differ)


def _pass(rows: Any, coef: np.ndarray, jobs: int | None) -> Any:
    rows.jobs = jobs
    return rows.separate(coef, 1.0)


def _differ(two: Any, one: Any) -> str:
    names = ("close", "close_size", "near", "violation")
    same = all(np.array_equal(getattr(two, name), getattr(one, name)) for name in names)
    return "" if same else "the answers differ"
