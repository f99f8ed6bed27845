"""Whether there is memory for what is about to be made, where that is known beforehand.

A system that has promised more memory than it has ends processes without a word; an error before
says what was too large.
"""

from __future__ import annotations

from pathlib import Path

from bellweight.common.status import ModelError

_SYSTEM = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup")


def free() -> float:
    """Return the bytes of memory that can be had, infinity where the system does not say."""
    try:
        known = _numbers(_SYSTEM)
        left = 1024.0 * (known["MemAvailable:"] + known["SwapFree:"])
    except (OSError, ValueError, KeyError):
        return float("inf")
    try:
        most = int((_CONTAINER / "memory.max").read_text(encoding="ascii"))
        used = int((_CONTAINER / "memory.current").read_text(encoding="ascii"))
        # What is kept of files gives way.
        used -= _numbers(_CONTAINER / "memory.stat")["file"]
    except (OSError, ValueError, KeyError):  # no container, or one without a limit
        return left
    return min(left, float(most - used))


def check_fits(n_bytes: float, what: str) -> None:
    """Raise where something takes more bytes than are free."""
    left = free()
    if n_bytes > left:
        raise ModelError(
            f"{what} would take {n_bytes / 1e9:.3g} GB, and {left / 1e9:.3g} GB of memory are "
            "free: put states together, leave out states that are never reached, or describe the "
            "model by its steps (EventModel, StepModel), whose rows are not stored"
        )


def _numbers(file: Path) -> dict[str, int]:
    """Return the numbers of a file of lines `name number ...`."""
    lines = [line.split() for line in file.read_text(encoding="ascii").splitlines()]
    return {words[0]: int(words[1]) for words in lines}
