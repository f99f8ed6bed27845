"""What a second worker gains, and whether the machine had a second core to give.

Hashing in two threads, which has no serial part at all, takes turns with ours. Where it gains
little, other work keeps the machine busy, and a small gain of ours says nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from measure import Line, take_turns

IDLE = 1.85  # gain of two hashing threads below which the machine is too busy to judge


def two_against_one(
    name: str,
    repeats: int,
    two: Callable[[], Any],
    one: Callable[[], Any],
    target: float,
    differ: Callable[[Any, Any], str],
) -> Line:
    """Return how many times as fast two workers are; `differ` says how their answers differ."""
    if (os.cpu_count() or 1) < 2:
        return Line(name, skipped="there is only one core")
    (taken, found), (alone, expected), (two_hashing, _), (one_hashing, _) = take_turns(
        repeats, two, one, partial(hashing, 2), partial(hashing, 1)
    )
    ratio, possible = alone / taken, 2.0 * one_hashing / two_hashing
    wrong = differ(found, expected)
    if ratio < target and possible < IDLE and not wrong:
        reason = f"busy machine: ratio {ratio:.2f}, and hashing in two threads {possible:.2f}"
        return Line(name, skipped=reason)
    notes = (
        f"efficiency {ratio / 2:.0%} of two workers, of hashing {possible / 2:.0%}; load "
        f"{os.getloadavg()[0]:.1f}",
    )
    return Line(name, taken, "s", alone, ratio, target, notes=notes, wrong=wrong)


def hashing(threads: int) -> None:
    """Hash 256 MB in every thread; the interpreter lock is not held."""
    block = bytes(1 << 25)

    def work(_: int) -> None:
        digest = hashlib.sha256()
        for _ in range(8):
            digest.update(block)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
