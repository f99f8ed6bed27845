"""`evaluate` with two workers against one: 200,000 episodes of 343 steps on 50,000 states.

The policy is the optimal one. The time is that of the whole call, with the layout of the model and
the tail bound, which do not gain from a second worker. A busy machine has no second core to give:
hashing in two threads, which has no serial part at all, takes turns with ours and shows it.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from measure import Line, take_turns

import bellweight as bw

TITLE = "Simulating the queue"
FIGURES = {
    "simulation": "million steps a second, two workers against one",
}

EPISODES, HORIZON = 200_000, 343
REPEATS = 10
TARGET = 1.7
IDLE = 1.85  # gain of two hashing threads below which the machine is too busy to judge


def run() -> list[Line]:
    """Return the one line of this benchmark."""
    if (os.cpu_count() or 1) < 2:
        return [Line("simulation", skipped="there is only one core")]
    model = bw.problems.single_queue()
    policy = bw.exact.optimal(model).policy
    bw.evaluate(model, policy, episodes=4_096, horizon=HORIZON, jobs=2)  # compiles
    evaluate = partial(bw.evaluate, model, policy, EPISODES, horizon=HORIZON, seed=1)
    (two_time, two), (one_time, one), (two_hashing, _), (one_hashing, _) = take_turns(
        REPEATS,
        partial(evaluate, jobs=2),
        partial(evaluate, jobs=1),
        partial(hashing, threads=2),
        partial(hashing, threads=1),
    )
    ratio, possible = one_time / two_time, 2.0 * one_hashing / two_hashing
    reason = busy(ratio, TARGET, two_hashing, one_hashing)
    if reason:
        return [Line("simulation", skipped=reason)]
    steps = EPISODES * HORIZON / 1e6
    return [
        Line(
            "simulation",
            steps / two_time,
            "M/s",
            peer=steps / one_time,
            ratio=ratio,
            target=TARGET,
            notes=(
                "million steps per second with two workers (ours) and one (peer)",
                f"hashing, the same way: ratio {possible:.2f}",
            ),
            wrong="" if one == two else f"two workers give {two.mean}, one {one.mean}",
        )
    ]


def busy(ratio: float, target: float, two_hashing: float, one_hashing: float) -> str:
    """Return why a gain of two workers says nothing, if the machine had no second core to give."""
    possible = 2.0 * one_hashing / two_hashing
    if ratio >= target or possible >= IDLE:
        return ""
    return f"busy machine: ratio {ratio:.2f}, and hashing in two threads {possible:.2f}"


def hashing(threads: int) -> None:
    """Hash 256 MB in every thread; the interpreter lock is not held."""
    block = bytes(1 << 25)

    def work(_: int) -> None:
        digest = hashlib.sha256()
        for _ in range(8):
            digest.update(block)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
