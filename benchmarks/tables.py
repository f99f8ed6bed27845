"""How time grows on large random tables, what memory they take, and the peers of the optimum.

Random tables with ten actions, ten successors each, and fifty functions. The model is made from
rows that the caller keeps, so making it takes twice its memory. Memory is the most that a step
holds at a time, in units of the transition matrix, which is one of them. The peer is the faster of
value iteration in NumPy and QuantEcon's modified policy iteration, to the accuracy of the page on
growth.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from growth import against_peers
from measure import Line, growth
from shapes import random_graph

import bellweight as bw

TITLE = "Large tables"
FIGURES = {
    "tables.model": "growth of making the model",
    "tables.optimal": "growth of the exact optimum",
    "tables.ALP": "growth of one program with fifty functions",
    "tables.DIA": "growth of DIA",
    "tables.certify": "growth of a certificate",
    "tables.verify": "growth of its verification",
    "tables.verify/certify": "verification, in times of the certificate",
    "tables.peer": "exact optimum, against the fastest peer",
    "tables.memory": "most memory of a step, in times of the transition matrix",
}

SIZES = (10_000, 30_000, 100_000, 300_000)
QUICK_SIZES = (1_000, 3_000, 10_000)
N_ACTIONS, N_FUNCTIONS = 10, 50
MOST_GROWTH = 1.15
MOST_MEMORY = 3.0
MOST_VERIFY = 2.0  # of the time of certify


class Waves(bw.bases.Basis):
    """A constant and cosines in random directions: functions that have no shorter description."""

    _directions = np.random.default_rng(1).normal(size=(3, N_FUNCTIONS - 1))

    def __call__(self, states: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(states)), np.cos(3.0 * states @ self._directions)])

    def function_names(self, dimension: int) -> tuple[str, ...]:
        return tuple(f"wave {k}" for k in range(N_FUNCTIONS))


def run(*, quick: bool = False) -> list[Line]:
    """Return growth of each step, memory, the ratio of verify to certify, and that to the peer."""
    sizes = QUICK_SIZES if quick else SIZES
    _steps(random_graph(500, N_ACTIONS))  # compiles
    transitions: list[int] = []
    taken: list[dict[str, float]] = []
    for n in sizes:
        model = random_graph(n, N_ACTIONS)
        transitions.append(model.transition.nnz)
        taken.append(_steps(model))
    lines = []
    for name in taken[0]:
        seconds = [one[name] for one in taken]
        lines.append(growth(f"tables.{name}", transitions, seconds, MOST_GROWTH, "transitions"))
    share = taken[-1]["verify"] / taken[-1]["certify"]
    lines.append(Line("tables.verify/certify", share, "times", target=MOST_VERIFY, limit=True))
    lines.append(against_peers("random graph", "tables.peer", model))
    if not quick:  # of a small table, blocks of a fixed size are most of the memory
        most, notes = _most_allocated(model)
        lines.append(Line("tables.memory", most, "matrices", target=MOST_MEMORY, limit=True,
                          notes=(notes,)))  # fmt: skip
    return lines


def _works(model: bw.TabularModel) -> list[tuple[str, Callable[[dict[str, Any]], Any]]]:
    """Return the steps in order; each may use the answers of those before."""
    polynomial = bw.Polynomial(3)  # features of large tables are not recorded, so not verified
    return [
        ("model", lambda _: replace(model)),
        ("optimal", lambda _: bw.exact.optimal(model)),
        ("ALP", lambda _: bw.solve(model, Waves(), bw.Fixed("uniform"), judge=False)),
        ("DIA", lambda _: bw.solve(model, Waves(), bw.DIA(), judge=False)),
        ("DIA poly:3", lambda _: bw.solve(model, polynomial, bw.DIA(), judge=False)),
        ("certify", lambda found: bw.certify(model, found["DIA poly:3"])),
        ("verify", lambda found: bw.verify(model, found["certify"])),
    ]


def _steps(model: bw.TabularModel) -> dict[str, float]:
    """Return the CPU seconds of each step on one table."""
    taken: dict[str, float] = {}
    found: dict[str, Any] = {}
    for name, work in _works(model):
        began = time.process_time()
        found[name] = work(found)
        taken[name] = time.process_time() - began
        if name == "model":
            del found[name]
    return taken


def _most_allocated(model: bw.TabularModel) -> tuple[float, str]:
    """Return the most that a step holds at a time, the model included, in transition matrices."""
    matrix = model.transition
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    most: dict[str, float] = {}
    found: dict[str, Any] = {}
    for name, work in _works(model):
        tracemalloc.start()
        found[name] = work(found)
        most[name] = 1.0 + tracemalloc.get_traced_memory()[1] / size
        tracemalloc.stop()
        if name == "model":
            del found[name]
    return max(most.values()), ", ".join(f"{name} {peak:.2f}" for name, peak in most.items())
