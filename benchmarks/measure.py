"""What the benchmarks share: a line of the table, and timing that is fair on a noisy machine.

Ours and the peer take turns, so that both meet the same disturbances, and the best time of each
counts: noise only ever adds. Standard library only, so that importing this costs no memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any


@dataclass(frozen=True)
class Line:
    """One measured figure with its target.

    `ratio` is how many times better ours is than the peer. The target is a lower bound on the ratio
    or, with `limit`, an upper bound on ours. `wrong` says why the answer itself is not right, which
    misses the target at any speed; `skipped` why nothing was measured.
    """

    name: str
    ours: float | None = None
    unit: str = "s"
    peer: float | None = None
    ratio: float | None = None
    target: float = 0.0
    limit: bool = False
    notes: tuple[str, ...] = ()
    wrong: str = ""
    skipped: str = ""

    @property
    def verdict(self) -> str:
        """Return `ok`, `MISSED` or `SKIPPED`."""
        if self.skipped:
            return "SKIPPED"
        if self.limit:
            met = self.ours is not None and self.ours <= self.target
        else:
            met = self.ratio is not None and self.ratio >= self.target
        return "ok" if met and not self.wrong else "MISSED"

    def __str__(self) -> str:
        ours, peer = (
            "-" if figure is None else f"{figure:.3g} {self.unit}"
            for figure in (self.ours, self.peer)
        )
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f}"
        target = f"<= {self.target:g} {self.unit}" if self.limit else f">= {self.target:g}"
        if self.ours is None:
            target = "-"
        table = f"{self.name:24}{ours:>14}{peer:>14}{ratio:>9}  {target:20}{self.verdict}"
        remarks = [*self.notes]
        if self.wrong:
            remarks.append(f"WRONG: {self.wrong}")
        if self.skipped:
            remarks.append(f"NOT MEASURED: {self.skipped}")
        return "\n".join([table, *(f"    {remark}" for remark in remarks)])

    def record(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {**asdict(self), "verdict": self.verdict}


ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
}
"""One thread for linear algebra; and freed memory stays with the process.

Otherwise every large array costs fresh pages from the system, or not, depending on what ran before
in the same process: that alone speeds sparse factorisation up by half.
"""

HEADER = f"{'name':24}{'ours':>14}{'peer':>14}{'ratio':>9}  {'target':20}"


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long some work takes, and what it returns."""
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def take_turns(repeats: int, *works: Callable[[], Any]) -> list[tuple[float, Any]]:
    """Run the works in turn, several times; return the best time of each, with its answer."""
    rounds = [[seconds(work) for work in works] for _ in range(repeats)]
    return [min(column, key=itemgetter(0)) for column in zip(*rounds, strict=True)]


def exponent(sizes: Sequence[float], taken: Sequence[float]) -> float:
    """Return the slope of the line through the logarithms of sizes and times."""
    x = [math.log(size) for size in sizes]
    y = [math.log(max(one, 1e-9)) for one in taken]
    middle, level = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - middle) ** 2 for a in x)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / spread


MOMENT = 0.1  # seconds: the growth of times that all end sooner is decided by noise


def growth(
    name: str, sizes: Sequence[float], taken: Sequence[float], most: float, unit: str
) -> Line:
    """Return the exponent of CPU times, at most `most`; not judged where all times are moments."""
    found = exponent(sizes, taken)
    pairs = zip(sizes, taken, strict=True)
    times = f"{unit} and CPU seconds: {', '.join(f'{n:,}: {t:.3g} s' for n, t in pairs)}"
    if found > most and max(taken) < MOMENT:
        reason = f"an exponent of {found:.2f}, but of times decided by noise; {times}"
        return Line(name, skipped=reason)
    return Line(name, found, "exponent", target=most, limit=True, notes=(times,))


def losses(lines: list[dict[str, Any]], base: list[dict[str, Any]], most: float) -> list[str]:
    """Return which figures are worse than those of an earlier run by more than a share `most`.

    Ratios may not fall. Figures with an upper limit may not rise by that share of the limit, or of
    themselves where they are above it: far below it they are mostly noise. A figure that is gone is
    a loss, one that a busy machine did not let us measure is not.
    """
    now = {line["name"]: line for line in lines}
    found = []
    for before in base:
        name, after = before["name"], now.get(before["name"])
        if before["verdict"] == "SKIPPED" or (after and after["verdict"] == "SKIPPED"):
            continue
        if after is None:
            found.append(f"{name}: not measured now")
            continue
        kind = "ours" if before["limit"] else "ratio"
        old, new = before[kind], after[kind]
        if old is None:
            continue
        rise, fall = most * max(old, before["target"]), most * old
        if new is None or (new > old + rise if before["limit"] else new < old - fall):
            found.append(f"{name}: {kind} {old:.3g} before, {new if new is None else f'{new:.3g}'}")
    return found
