"""Announce when Numba compiles a model, which takes seconds, and count these seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

_COMPILED_FOR = {
    "bellman_rows": ("the model's rows", 3),
    "slacks": ("the model's rows", 3),
    "rollout": ("the simulation of a policy", 6),
    "occupied_states": ("the simulation of a policy", 6),
    "act": ("the policy", 5),
}
"""What loops are compiled for, and about how many seconds of one core that takes."""


class Compilation(Listener):
    """Listens to Numba's compiler and counts its seconds; loading from the cache does not count.

    `say` is told what is compiled, once for each purpose, and may be None.
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.seconds = 0.0
        self._say = say
        self._said: set[str] = set()
        self._running = 0  # under way: functions compile others, and threads work side by side
        self._began = 0.0
        self._lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        with self._lock:
            if self._running == 0:
                self._began = time.perf_counter()
            self._running += 1
        function = event.data["dispatcher"].py_func
        # Bellweight's own functions are compiled once per installation, in a moment.
        if self._say is not None and not function.__module__.startswith("bellweight."):
            purpose, seconds = _COMPILED_FOR.get(function.__name__, ("the model", 3))
            if purpose not in self._said and self._running == 1:
                self._said.add(purpose)
                self._say(f"compiling {purpose}, about {seconds} s, once ...")

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self.seconds += time.perf_counter() - self._began


_listening: list[Compilation] = []


@contextmanager
def announcing(say: Callable[[str], None] | None) -> Iterator[Compilation]:
    """Announce which part of a model is being compiled, unless it is found compiled on disk.

    Inside another such context this one only counts the seconds: only the outermost one announces.
    """
    heard = Compilation(None if _listening else say)
    _listening.append(heard)
    try:
        with install_listener("numba:compile", heard):
            yield heard
    finally:
        _listening.remove(heard)


def to_stderr(text: str) -> None:
    """Print a line for people, apart from what a script prints."""
    print(text, file=sys.stderr, flush=True)
