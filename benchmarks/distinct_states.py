"""Finding the distinct ones among states that were drawn, beside sorting them with NumPy."""

from __future__ import annotations

import time

import numpy as np
from measure import Line, growth

import bellweight as bw
from bellweight.common.streams import stream_keys

TITLE = "Drawing constraint states"
FIGURES = {
    "distinct_states": "growth of the time with the number of states",
    "distinct_states.peer": "time, against sorting with NumPy",
}

SIZES = (10_000, 100_000, 1_000_000, 3_000_000)
QUICK_SIZES = (3_000, 10_000, 30_000)
MOST_GROWTH = 1.1


def run(*, quick: bool = False) -> list[Line]:
    """Return the exponent, and the ratio to the peer at the second largest size."""
    model = bw.problems.queue_network()
    sizes = QUICK_SIZES if quick else SIZES
    bw.sample_states(model, 10)  # compiles
    taken = []
    for n in sizes:
        began = time.process_time()
        found = bw.sample_states(model, n, seed=1)
        taken.append(time.process_time() - began)
    began = time.process_time()
    drawn = model.sample_initial(0, sizes[-2], stream_keys(1)[0])
    np.unique(drawn, axis=0)
    peer = time.process_time() - began
    wrong = "" if len(found) == sizes[-1] else "states are missing"
    return [
        growth("distinct_states", sizes, taken, MOST_GROWTH, "states"),
        Line("distinct_states.peer", taken[-2], "s", peer, peer / taken[-2], 1.0, wrong=wrong),
    ]  # fmt: skip
