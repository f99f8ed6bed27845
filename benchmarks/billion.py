"""A billion rows of the paper's network through the cutting planes, drawn in blocks, never stored.

    python benchmarks/billion.py [--states 56e6] [--kept rows.json]

Prints the time, the passes, the objective and the peak memory. A run that is cut short goes on with
the rows in the file. Fewer states tell how long a billion rows take: passes hardly grow with the
number of states, and a pass grows in proportion.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import bellweight as bw
from bellweight.program import DrawnRows


def main() -> None:
    """Solve once and print the figures."""
    parser = argparse.ArgumentParser(description="Solve a program with a billion rows.")
    parser.add_argument("--states", type=float, default=56e6, help="each has 18 rows")
    parser.add_argument("--kept", default=None, metavar="FILE", help="rows found so far")
    options = parser.parse_args()
    model, basis = bw.problems.queue_network(), bw.Polynomial(2)
    settings = DrawnRows(int(options.states), seed=1, kept_in=options.kept)
    settings.on(model, basis).rows([0])  # compiles
    began, cpu = time.perf_counter(), time.process_time()
    result = bw.solve(model, basis, bw.Fixed(), rows=settings, judge=False)
    taken, busy = time.perf_counter() - began, time.process_time() - cpu
    unit = 2**20 if sys.platform != "darwin" else 2**30
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(
        f"{18 * settings.states:,} rows: {result.status.name}, objective {result.objective:.6f}, "
        f"{result.reported.passes} passes, {taken:.1f} s ({busy:.1f} s of CPU), {memory:.2f} GB"
    )


if __name__ == "__main__":
    main()
