"""A billion rows of the paper's network through the cutting planes, drawn in blocks, never stored.

    python benchmarks/billion.py [--states 56e6] [--kept rows.json]

Prints the time, the passes, the objective and the peak memory. A run that is cut short goes on with
the rows in the file. `make bench` runs a million and ten million rows, each in a process of its
own, and says what a billion would take: CPU time for a row and a pass as between the two, passes
that grow with the logarithm of the rows as between the two. That is an estimate, not a run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from measure import Line

import bellweight as bw
from bellweight.program import DrawnRows

ROWS_PER_STATE = 18
ROWS = (1_000_000, 10_000_000)
BILLION = 1_000_000_000
MOST_MINUTES, MOST_MEMORY = 30.0, 1.0


class Run(NamedTuple):
    """What one solve took: CPU and wall seconds, and the peak memory of its process in GB."""

    rows: int
    status: str
    objective: float
    passes: int
    seconds: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows: {self.status}, objective {self.objective:.6f}, {self.passes} "
            f"passes, {self.seconds:.1f} s ({self.cpu:.1f} s of CPU), {self.memory:.2f} GB"
        )


def run(*, quick: bool = False) -> list[Line]:
    """Return the estimates for a billion rows, from smaller runs that are in the notes."""
    few, many = (_in_own_process(rows) for rows in ROWS)
    per_row = (many.cpu - few.cpu) / (many.rows * many.passes - few.rows * few.passes)
    decades = [len(str(n)) - 1 for n in (*ROWS, BILLION)]
    growth = max(0, many.passes - few.passes) / (decades[1] - decades[0])
    passes = many.passes + growth * (decades[2] - decades[1])
    wrong = "" if few.status == many.status == "CONVERGED" else "a run did not converge"
    notes = (
        f"an estimate, not a run: {1e9 * per_row:.0f} ns of CPU for a row and a pass, {passes:.0f} "
        "passes",
        *(f"measured: {one}" for one in (few, many)),
    )
    return [
        Line("billion.estimate", per_row * BILLION * passes / 60.0, "min of CPU",
             target=MOST_MINUTES, limit=True, notes=notes, wrong=wrong),
        Line("billion.memory", many.memory, "GB", target=MOST_MEMORY, limit=True,
             notes=(f"at {many.rows:,} rows; {few.memory:.2f} GB at {few.rows:,}: blocks and the "
                    "rows found, not all rows, so a billion is estimated to take about the same",)),
    ]  # fmt: skip


def _in_own_process(rows: int) -> Run:
    """Solve elsewhere, because the peak of a process's memory is that of all it has done."""
    states = str(-(-rows // ROWS_PER_STATE))
    command = [sys.executable, __file__, "--states", states, "--json"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Run(*json.loads(answer.stdout))


def solved(n_states: int, kept: str | None) -> Run:
    """Solve once, and measure."""
    model, basis = bw.problems.queue_network(), bw.Polynomial(2)
    settings = DrawnRows(n_states, seed=1, kept_in=kept)
    settings.on(model, basis).rows([0])  # compiles
    began, cpu = time.perf_counter(), time.process_time()
    result = bw.solve(model, basis, bw.Fixed(), rows=settings, judge=False)
    taken, busy = time.perf_counter() - began, time.process_time() - cpu
    return Run(
        ROWS_PER_STATE * n_states, result.status.name, float(result.objective),
        result.reported.passes, taken, busy, _peak(),
    )  # fmt: skip


def _peak() -> float:
    """Return the most memory that this process held, in GB.

    Linux counts in `ru_maxrss` what the process that started this one held.
    """
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0]) / 2**20
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Solve once and print the figures."""
    parser = argparse.ArgumentParser(description="Solve a program with a billion rows.")
    parser.add_argument("--states", type=float, default=56e6, help="each has 18 rows")
    parser.add_argument("--kept", default=None, metavar="FILE", help="rows found so far")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    found = solved(int(options.states), options.kept)
    print(json.dumps(found) if options.json else found)


if __name__ == "__main__":
    main()
