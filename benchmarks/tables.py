"""Large tables: growth of time with their size, memory, and `verify` beside `certify`.

Random tables with ten actions, ten successors each, and fifty functions. Memory is the most that is
allocated at a time beyond the model, in units of its transition matrix; one unit is the matrix
itself.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Line, exponent
from shapes import random_graph

import bellweight as bw

SIZES = (10_000, 30_000, 100_000)
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
    """Return growth of each step, memory, and the ratio of verify to certify."""
    sizes = QUICK_SIZES if quick else SIZES
    models = [random_graph(n, N_ACTIONS) for n in sizes]
    _steps(random_graph(500, N_ACTIONS))  # compiles
    taken = [_steps(model) for model in models]
    transitions = [model.transition.nnz for model in models]
    lines = []
    for name in taken[0]:
        seconds = [one[name] for one in taken]
        times = ", ".join(f"{n:,}: {t:.3g} s" for n, t in zip(transitions, seconds, strict=True))
        lines.append(Line(f"tables.{name}", exponent(transitions, seconds), "exponent",
                          target=MOST_GROWTH, limit=True,
                          notes=(f"transitions and CPU seconds: {times}",)))  # fmt: skip
    share = taken[-1]["verify"] / taken[-1]["certify"]
    lines.append(Line("tables.verify/certify", share, "times", target=MOST_VERIFY, limit=True))
    if not quick:  # of a small table, blocks of a fixed size are most of the memory
        lines.append(Line("tables.memory", 1.0 + _allocated(models[-1]), "matrices",
                          target=MOST_MEMORY, limit=True))  # fmt: skip
    return lines


def _steps(model: bw.TabularModel) -> dict[str, float]:
    """Return the CPU seconds of each step on one table."""
    taken: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        answer = work()
        taken[name] = time.process_time() - began
        return answer

    timed("ALP", lambda: bw.solve(model, Waves(), bw.Fixed("uniform"), judge=False))
    result = timed("DIA", lambda: _dia(model))
    # Features of large tables are not recorded, so what is verified are polynomials.
    result = bw.solve(model, bw.Polynomial(3), bw.DIA(), judge=False)
    certificate = timed("certify", lambda: bw.certify(model, result))
    timed("verify", lambda: bw.verify(model, certificate))
    return taken


def _dia(model: bw.TabularModel) -> bw.Result:
    return bw.solve(model, Waves(), bw.DIA(), judge=False)


def _allocated(model: bw.TabularModel) -> float:
    """Return the most that DIA allocates at a time, in transition matrices."""
    matrix = model.transition
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    tracemalloc.start()
    _dia(model)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / size
