"""Measure speed as ratios against a peer in the same run: `make bench`.

    python benchmarks/run.py [names...] [--quick] [--json FILE] [--page FILE] [--base FILE]

Prints one line per figure and exits with 1 when a target is missed. `--quick` takes small sizes of
the benchmarks that have them. `--page` writes a page for people. `--base` compares with an earlier
`--json` instead of with the targets, and exits with 1 when a figure is 20 % worse.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from measure import ENVIRONMENT, HEADER, Line, losses

QUICK_NAMES = (
    "startup",
    "distinct_states",
    "row_passes",
    "growth",
    "tables",
    "workers",
    "billion",
)
NAMES = (
    "alp_full",
    "alp_resolve",
    "exact_optimal",
    "simulation",
    "network",
    "sampled_rows",
    "regularised",
    "policy_generation",
    "clinic",
    "memory",
    *QUICK_NAMES,
)
MOST_LOST = 0.2
PEERS = {  # packages, and their names in prose
    "highspy": "HiGHS", "quantecon": "QuantEcon", "numpy": "NumPy", "scipy": "SciPy",
    "numba": "Numba",
}  # fmt: skip


def main() -> int:
    """Run the benchmarks that the command line names, all by default."""
    parser = argparse.ArgumentParser(description="Measure speed as ratios against a peer.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of: {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or two")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write a page (Markdown)")
    parser.add_argument("--base", type=Path, metavar="FILE", help="figures of an earlier --json")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}, expected some of: {', '.join(NAMES)}")
    settle()
    warn_if_busy()
    print(HEADER, flush=True)
    sections: dict[str, list[Line]] = {}
    base = None if options.base is None else json.loads(options.base.read_text(encoding="utf-8"))
    for name in options.names or (QUICK_NAMES if options.quick else NAMES):
        sections[name] = []
        for line in measured(name, options.quick):
            print(line, flush=True)
            sections[name].append(line)
    lines = [line for found in sections.values() for line in found]
    records = [line.record() for line in lines]
    if options.json is not None:
        report = {"machine": machine(), "lines": records}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if options.page is not None:
        options.page.write_text(page(sections, quick=options.quick), encoding="utf-8")
    if base is not None:
        lost = losses(records, base["lines"], MOST_LOST)
        print("\n".join(f"LOST {text}" for text in lost) or "no figure is 20 % worse")
        return 1 if lost else 0
    return 1 if any(line.verdict == "MISSED" for line in lines) else 0


def measured(name: str, quick: bool = False) -> list[Line]:
    """Run one benchmark in a process of its own: what others leave in memory is not its own.

    One that breaks off misses its target and leaves the others alone.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(figures, name, quick).result()
        except Exception as problem:
            traceback.print_exc()
            return [Line(name, wrong=f"broke off with {type(problem).__name__}: {problem}")]


def figures(name: str, quick: bool) -> list[Line]:
    """Return what a benchmark measures in this process."""
    run = importlib.import_module(name).run
    lines: list[Line] = run(quick=True) if quick and name in QUICK_NAMES else run()
    return lines


def settle() -> None:
    """Start again with the environment of the benchmarks, which only a new process takes up."""
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        environment = {**os.environ, **ENVIRONMENT}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def warn_if_busy() -> None:
    """Say when other programs compete for the machine."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5 * cores:
        text = f"the load is {load:.1f} on {cores} cores before we start: expect noise"
        print(f"warning: {text}", file=sys.stderr)


def page(sections: Mapping[str, Sequence[Line]], *, quick: bool) -> str:
    """Return the figures of each benchmark as a page of the documentation."""
    from billion import recorded  # loads the library

    found = machine()
    versions = ", ".join(f"{name} {found[key]}" for key, name in PEERS.items())
    text = [
        "# Benchmarks",
        "",
        "How fast Bellweight is, beside a peer that does the same work: another library, code",
        "written for one problem only, or the paper. Ours and the peer run on the same machine,",
        "shortly after each other; only the paper's times are those that it prints.",
        "",
        "- **ratio**: how many times faster ours is than the peer. Below 1 the peer is faster.",
        "- **growth**: the exponent of CPU time in the size of the problem. 1 is linear: twice the",
        "  size takes twice as long. 2 is quadratic.",
        "- **growth in plain passes**: the same, where the unit of time is one product of the",
        "  table with a vector. 0 says that larger tables take no more such products.",
        "- **target**: the least ratio, or the most of our figure, that we demand of ourselves.",
        "- **verdict**: `ok` or MISSED, the target. SKIPPED says that nothing could be judged: the",
        "  times were too short to tell from noise, or other work kept the second core busy.",
        "- In brackets stands the case that was measured.",
        "",
        f"`make bench-page{' ARGS=--quick' if quick else ''}` made this page.",
        "",
        f"Machine: {found['processor']}, {found['cores']} cores, {found['platform']}; "
        f"Python {found['python']}, {versions}.",
        "",
        f"Processes that wanted a core when the page was written: {found['load']:.1f}."
        + (" These are small sizes, whose times are noisy." if quick else ""),
        "",
    ]
    for name, lines in sections.items():
        text += section(importlib.import_module(name), lines)
    return "\n".join([*text, *recorded()]).rstrip() + "\n"


def section(benchmark: Any, lines: Sequence[Line]) -> list[str]:
    """Return what one benchmark shows: what it is, a table, and what was measured besides."""
    text = [
        f"## {benchmark.TITLE}",
        "",
        benchmark.__doc__.strip().split("\n\n")[0],
        "",
        "| figure | ours | peer | ratio | target | verdict |",
        "|---|---|---|---|---|---|",
    ]
    remarks = []
    for line in lines:
        unit = "" if line.unit == "exponent" else f" {line.unit}"
        ours, peer = (
            "" if number is None else f"{number:.3g}{unit}" for number in (line.ours, line.peer)
        )
        ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
        target = f"≤ {line.target:g}" if line.limit else f"ratio ≥ {line.target:.2g}"
        target = "" if line.skipped else target
        name = title(benchmark.FIGURES, line.name)
        text.append(f"| {name} | {ours} | {peer} | {ratio} | {target} | {line.verdict} |")
        besides = [*line.notes, line.skipped and f"not measured: {line.skipped}", line.wrong]
        if any(besides):
            remarks.append(f"- {name}: {'; '.join(filter(None, besides))}")
    if not remarks:
        return [*text, ""]
    return [*text, "", '??? note "What was measured"', "", *(f"    {row}" for row in remarks), ""]


def title(figures: Mapping[str, str], name: str) -> str:
    """Return the name of a figure in words; what follows its first word says of which case."""
    first, _, case = name.partition(" ")
    words = figures.get(first, first)
    return f"{words} ({case})" if case else words


def processor() -> str:
    """Return the name of the processor, where the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown processor"
    names = [row.split(":", 1)[1].strip() for row in text.splitlines() if "model name" in row]
    return names[0] if names else "unknown processor"


def machine() -> dict[str, object]:
    """Return what the figures were measured on."""
    return {
        "processor": processor(),
        "load": os.getloadavg()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in PEERS},
    }


if __name__ == "__main__":
    sys.exit(main())
