"""Weights that go round in a circle, found by their moments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray


def period_of(moments: Sequence[FloatArray]) -> int | None:
    """Return the period with which the moments (K,) of a run's iterates repeat at its end, or None.

    They repeat with period p when the last p of them equal the p before, up to a small part of
    the distance they travel in between.
    """
    n = len(moments)
    if n < 4:
        return None
    trail = np.array(moments)
    trail /= np.maximum(np.abs(trail).max(axis=0), np.finfo(float).tiny)
    distance = np.abs(trail - trail[-1]).max(axis=1)
    step = distance[-2]
    for period in range(2, n // 2 + 1):
        # Look closer only if the last moments have occurred before.
        if distance[n - 1 - period] <= step:
            recent, earlier = trail[n - period :], trail[n - 2 * period : n - period]
            travelled = np.abs(np.diff(trail[n - period - 1 :], axis=0)).max()
            # Moments that stand still are no cycle: the weights may still be changing.
            moved = travelled > tolerances.ROUNDING
            if moved and np.abs(recent - earlier).max() <= tolerances.CYCLE * travelled:
                return period
    return None
