"""A pass over sampled rows of the network, against code written for this network only.

The peer (`hand_network.worst_rows`) does only the arithmetic of the least slack in each state. Both
use one thread and the same states. Growth and memory are those of passes over more and more states;
the last line is two threads against one.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hand_network import worst_rows
from measure import Line, growth
from network import value_function
from second_core import two_against_one

import bellweight as bw

TITLE = "A pass over sampled rows"
FIGURES = {
    "row_passes.hand": "time of a pass, against arithmetic for this network only",
    "row_passes": "growth of the time with the number of states",
    "row_passes.memory": "memory of the largest sample",
    "row_passes.threads": "two threads against one",
}

SIZES = (10_000, 100_000, 1_000_000, 3_000_000)
QUICK_SIZES = (10_000, 30_000, 100_000)
MOST_TIMES, MOST_GROWTH, MOST_MEMORY = 3.0, 1.05, 1.0
REPEATS = 5


def run(*, quick: bool = False) -> list[Line]:
    """Return the ratio to the peer, the growth, the memory and the gain of a second thread."""
    model, (policy, linear, quadratic) = bw.problems.queue_network(), value_function()
    coef = np.asarray(policy.coef)
    taken: list[float] = []
    for n in QUICK_SIZES if quick else SIZES:
        rows = bw.SampledRows(bw.sample_states(model, n, seed=1)).on(model, bw.Polynomial(2))
        rows.jobs = 1
        rows._matrix = None  # small samples keep their rows, which is another way
        rows.separate(coef, 1.0)
        ours, found = _best(lambda rows=rows: rows.separate(coef, 1.0))
        taken.append(ours)
    # Before anything of the peer's: the memory of the largest sample, the program included.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if _LINUX else 2**30)
    states = rows.states.astype(np.int64)
    least, action = np.zeros(len(states)), np.zeros(len(states), dtype=np.int64)
    worst_rows(states[:10], model.discount, 0.0, linear, quadratic, least[:10], action[:10])
    peer, _ = _best(
        lambda: worst_rows(states, model.discount, 0.0, linear, quadratic, least, action)
    )
    apart = abs(found.violation + float(least.min()))
    wrong = "" if apart <= 1e-9 * abs(found.violation) else f"violations differ by {apart:.2g}"
    sizes = QUICK_SIZES if quick else SIZES
    return [
        Line("row_passes.hand", ours, "s", peer, peer / ours, 1.0 / MOST_TIMES, wrong=wrong,
             notes=(f"{ours / peer:.2f} times the arithmetic; {1e9 * ours / len(states):.0f} ns "
                    f"for each of {len(states):,} states with 18 rows",)),
        growth("row_passes", sizes, taken, MOST_GROWTH, "states"),
        Line("row_passes.memory", memory, "GB", target=MOST_MEMORY, limit=True,
             notes=(f"{rows.n_pairs:,} rows x 45; the rows themselves hold "
                    f"{rows.n_bytes / 1e6:.0f} MB",)),
        _two_threads(rows, coef),
    ]  # fmt: skip


_LINUX = sys.platform != "darwin"


def _two_threads(rows: Any, coef: np.ndarray) -> Line:
    def separate(jobs: int) -> Any:
        rows.jobs = jobs
        return rows.separate(coef, 1.0)

    def differ(two: Any, one: Any) -> str:
        return "" if np.array_equal(one.close, two.close) else "two threads find other rows"

    two, one = partial(separate, 2), partial(separate, 1)
    return two_against_one("row_passes.threads", REPEATS, two, one, 1.7, differ)


def _best(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU seconds of several runs, and the answer."""
    least, answer = np.inf, None
    for _ in range(REPEATS):
        began = time.process_time()
        answer = work()
        least = min(least, time.process_time() - began)
    return least, answer
