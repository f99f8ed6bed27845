"""Measure speed as ratios against a peer in the same run: `make bench`.

    python benchmarks/run.py [names...] [--json FILE]

Prints one line per figure and exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import traceback
from importlib.metadata import version
from pathlib import Path

from measure import ENVIRONMENT, HEADER, Line

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
)
PEERS = ("highspy", "quantecon", "numpy", "scipy", "numba")


def main() -> int:
    """Run the benchmarks that the command line names, all by default."""
    parser = argparse.ArgumentParser(description="Measure speed as ratios against a peer.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of: {', '.join(NAMES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}, expected some of: {', '.join(NAMES)}")
    settle()
    warn_if_busy()
    print(HEADER, flush=True)
    lines: list[Line] = []
    for name in options.names or NAMES:
        for line in measured(name):
            print(line, flush=True)
            lines.append(line)
    if options.json is not None:
        report = {"machine": machine(), "lines": [line.record() for line in lines]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if any(line.verdict == "MISSED" for line in lines) else 0


def measured(name: str) -> list[Line]:
    """Run one benchmark; one that breaks off misses its target and leaves the others alone."""
    try:
        lines: list[Line] = importlib.import_module(name).run()
    except Exception as problem:
        traceback.print_exc()
        return [Line(name, wrong=f"broke off with {type(problem).__name__}: {problem}")]
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


def machine() -> dict[str, object]:
    """Return what the figures were measured on."""
    return {
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in PEERS},
    }


if __name__ == "__main__":
    sys.exit(main())
