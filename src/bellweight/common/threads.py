"""Linear algebra on one thread, for small matrices and for parts of large ones.

Products of some hundred numbers are done before a second thread has woken, and on a busy machine
threads that wait for each other take a hundred times as long. Sums of many numbers are added in
another order on each number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Return what limits threads; finding the libraries that have them takes a while."""
    return ThreadpoolController()


class _Inside:
    """Those who are in the context now: the limit is the process's, so the last one lifts it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = 0
        self.limit: AbstractContextManager[object] | None = None

    def enter(self) -> None:
        with self.lock:
            if self.count == 0:
                self.limit = _controller().limit(limits=1)
                self.limit.__enter__()
            self.count += 1

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0 and self.limit is not None:
                self.limit.__exit__(None, None, None)
                self.limit = None


_inside = _Inside()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for linear algebra, in all threads of this process, until the last leaves."""
    _inside.enter()
    try:
        yield
    finally:
        _inside.leave()
