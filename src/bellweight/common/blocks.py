"""Long arrays in pieces, for work that would need memory for all of it at once."""

from __future__ import annotations

from collections.abc import Iterator


def blocks(n: int, size: int) -> Iterator[slice]:
    """Yield n places in slices of `size`, or of one where that is less."""
    step = max(1, size)
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
