"""One pass over the rows of a table: two threads, and two Dask workers, against one thread.

The answers must be the same to the last bit. Blocks are sent to the workers once, before the clock
starts, as in a run of many passes. On a machine with two cores that are busy with other work there
is nothing to gain: the load is in the note.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import joblib
import numpy as np
from distributed import Client, LocalCluster
from measure import Line, take_turns
from shapes import random_graph

import bellweight as bw
from bellweight.program import AllRows, ListedRows

N_STATES, QUICK_STATES = 300_000, 60_000
REPEATS = 5
LEAST_GAIN = 1.0  # two workers are no slower than one


def run(*, quick: bool = False) -> list[Line]:
    """Return how many times as fast two threads and two Dask workers are."""
    model = random_graph(QUICK_STATES if quick else N_STATES)
    rows = AllRows().on(model, bw.Polynomial(2))
    coef = np.random.default_rng(0).normal(size=rows.n_basis)
    _pass(rows, coef, 1)  # compiles, and cuts the blocks
    lines = [_line("workers.threads", rows, coef, lambda: _pass(rows, coef, 2))]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                     silence_logs=logging.CRITICAL) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):  # fmt: skip
        _pass(rows, coef, None)
        lines.append(_line("workers.dask", rows, coef, lambda: _pass(rows, coef, None)))
    return lines


def _line(name: str, rows: ListedRows, coef: np.ndarray, work: Any) -> Line:
    with joblib.parallel_config(backend="threading"):
        before = take_turns(REPEATS, lambda: _pass(rows, coef, 1))[0]
    taken, found = take_turns(REPEATS, work)[0]
    with joblib.parallel_config(backend="threading"):
        after = take_turns(REPEATS, lambda: _pass(rows, coef, 1))[0]
    one = min(before[0], after[0])
    wrong = "" if _same(before[1], found) else "the answers differ"
    notes = (f"efficiency {one / taken / 2:.0%} of two workers; load {os.getloadavg()[0]:.1f}",)
    return Line(name, taken, "s", one, one / taken, LEAST_GAIN, notes=notes, wrong=wrong)


def _pass(rows: ListedRows, coef: np.ndarray, jobs: int | None) -> Any:
    rows.jobs = jobs
    return rows.separate(coef, 1.0)


def _same(one: Any, other: Any) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("close", "close_size", "near", "violation")
    )
