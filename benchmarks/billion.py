"""A program with a billion rows: they are drawn in blocks, in every pass again, and never stored.

    python benchmarks/billion.py [--states 56e6] [--kept rows.json] [--record billion.json]

Prints the time, the passes, the objective and the peak memory. A run that is cut short goes on with
the rows in the file; `--record` adds what each run took to a list, and the page of benchmarks shows
the list that is kept beside this file. `make bench` runs a million and ten million rows, each in a
process of its own, and says what a billion would take: CPU time for a row and a pass as between the
two, passes that grow with the logarithm of the rows as between the two. That is an estimate, not a
run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import Line

import bellweight as bw
from bellweight.program import DrawnRows

TITLE = "A billion rows"
FIGURES = {
    "billion.estimate": "estimated CPU time of a billion rows",
    "billion.memory": "memory of the largest run",
}

ROWS_PER_STATE = 18
ROWS = (1_000_000, 10_000_000)
BILLION = 1_000_000_000
MOST_MINUTES, MOST_MEMORY = 30.0, 1.0
RECORD = Path(__file__).with_name("billion.json")


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


def solved(n_states: int, kept: str | None, record: Path | None = None) -> Run:
    """Solve once, and measure; with a record, runs that are cut short are measured as well."""
    model, basis = bw.problems.queue_network(), bw.Polynomial(2)
    settings = DrawnRows(n_states, seed=1, kept_in=kept)
    DrawnRows(2, seed=1).on(model, basis).separate(np.zeros(45), 1.0)  # compiles
    before = settings.on(model, basis)
    began, cpu = time.perf_counter(), time.process_time()
    status, objective, passes = "INTERRUPTED", math.nan, 0
    try:
        result = bw.solve(model, basis, bw.Fixed(), rows=settings, judge=False)
        status, objective = result.status.name, float(result.objective)
        passes = result.reported.passes
    except KeyboardInterrupt:
        if record is None:
            raise
        passes = settings.on(model, basis).passes - before.passes
    taken, busy = time.perf_counter() - began, time.process_time() - cpu
    run = Run(ROWS_PER_STATE * n_states, status, objective, passes, taken, busy, _peak())
    if record is not None:
        _add(record, run)
    return run


def _add(record: Path, run: Run) -> None:
    """Add a run to a record, with the machine and how busy it was."""
    from run import machine

    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    entry = {**run._asdict(), "threads": os.cpu_count(), "machine": machine()}
    if not math.isfinite(run.objective):
        entry["objective"] = None
    record.write_text(json.dumps([*known, entry], indent=2) + "\n", encoding="utf-8")


def recorded() -> list[str]:
    """Return the lines of the page about the runs that were recorded, none if there are none."""
    if not RECORD.exists():
        return []
    entries = json.loads(RECORD.read_text(encoding="utf-8"))
    last = entries[-1]
    on = last["machine"]
    rows = f"{last['rows']:,}"
    lines = [
        f"## {rows} rows, once",
        "",
        f"The program of the eight-queue network with 45 quadratic functions over {rows}",
        f"rows: {last['rows'] // ROWS_PER_STATE:,} drawn states with {ROWS_PER_STATE} actions,",
        "drawn anew in every pass and never stored. It was run once by",
        "`python benchmarks/billion.py --kept rows.json --record benchmarks/billion.json`,",
        "interrupted on purpose and started again with the same file; these figures are not",
        "remade with the page.",
        "",
        f"Machine: {on['processor']}, {on['cores']} cores, {on['platform']}.",
        "",
        "| run | passes | wall time | CPU time | threads | peak memory | load | objective |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        objective = "" if entry["objective"] is None else f"{entry['objective']:.6f}"
        lines.append(
            f"| {entry['status']} | {entry['passes']} | {entry['seconds'] / 60:.1f} min | "
            f"{entry['cpu'] / 60:.1f} min | {entry['threads']} | {entry['memory']:.2f} GB | "
            f"{entry['machine']['load']:.1f} | {objective} |"
        )
    total = {name: sum(entry[name] for entry in entries) for name in ("passes", "seconds", "cpu")}
    lines.append(
        f"| together | {total['passes']} | {total['seconds'] / 60:.1f} min | "
        f"{total['cpu'] / 60:.1f} min | | | | |"
    )
    return [*lines, ""]


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
    parser.add_argument("--record", type=Path, metavar="FILE", help="add the figures to this list")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    found = solved(int(options.states), options.kept, options.record)
    print(json.dumps(found) if options.json else found)


if __name__ == "__main__":
    main()
