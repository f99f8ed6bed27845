"""Peak memory and time of `bellweight reproduce table1 --exact`, as a user runs it.

The kernel counts the memory of the process that starts a command as the command's own until the
command is loaded, so a small process in between, this very file run as a script, starts it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import ENVIRONMENT, Line

TITLE = "Memory of a reproduction"
FIGURES = {
    "memory.peak": "most memory held at once",
    "memory.seconds": "time of the whole command",
}

ARGUMENTS = ("reproduce", "table1", "--exact")
MOST_MEMORY = 1.0  # GB
MOST_SECONDS = 60.0


def run() -> list[Line]:
    """Return a line for the memory and one for the time."""
    command = [str(Path(sys.executable).with_name("bellweight")), *ARGUMENTS]
    if not exists(command):
        reason = f"`bellweight {' '.join(ARGUMENTS)}` does not exist"
        return [Line("memory.peak", skipped=reason), Line("memory.seconds", skipped=reason)]
    usual = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    launched = subprocess.run(
        [sys.executable, __file__, *command], env=usual, check=True, stdout=subprocess.PIPE
    )
    code, took, peak = json.loads(launched.stdout)
    wrong = f"the command ended with {code}" if code else ""
    return [
        Line("memory.peak", peak / 1e9, "GB", target=MOST_MEMORY, limit=True, wrong=wrong),
        Line("memory.seconds", took, target=MOST_SECONDS, limit=True, wrong=wrong),
    ]


def exists(command: list[str]) -> bool:
    """Return whether the command is known with all its options."""
    try:
        asked = subprocess.run([*command, "--help"], check=False, capture_output=True)
    except FileNotFoundError:
        return False
    return asked.returncode == 0


def launch(command: list[str]) -> None:
    """Run a command; print its exit code, its seconds and its peak memory in bytes."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024
    print(json.dumps([os.waitstatus_to_exitcode(status), took, unit * usage.ru_maxrss]))


if __name__ == "__main__":
    launch(sys.argv[1:])
