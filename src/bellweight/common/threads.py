"""Linear algebra on one thread, for small matrices.

Products of some hundred numbers are done before a second thread has woken, and on a busy machine
threads that wait for each other take a hundred times as long.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Return what limits threads; finding the libraries that have them takes a while."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which linear algebra uses one thread."""
    found: AbstractContextManager[object] = _controller().limit(limits=1)
    return found
