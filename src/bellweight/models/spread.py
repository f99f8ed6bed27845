"""States that fill a box evenly: a grid, or a low-discrepancy sequence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from bellweight.common.checks import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Box:
    """A finite box: bounds (d,), and which coordinates are whole numbers (d,)."""

    low: FloatArray
    high: FloatArray
    whole: BoolArray

    def sequence(self, n: int, seed: int = 0) -> FloatArray:
        """Return at most n distinct points: corners, then a scrambled Sobol sequence.

        Whole coordinates are rounded; where that leaves fewer than n distinct points, there are
        fewer.
        """
        from scipy.stats.qmc import Sobol

        dimension = len(self.low)
        series = Sobol(dimension, seed=np.random.default_rng(seed))
        inside = series.random_base2(int(np.ceil(np.log2(max(n, 2)))))
        corners = product((0.0, 1.0), repeat=dimension)
        return self._at(np.vstack([np.array(list(islice(corners, n // 2 or 1))), inside]))[:n]

    def grid(self, n: int) -> FloatArray:
        """Return the points of the finest even grid that has at most n, equally many along each
        axis.

        A coordinate with few whole values leaves more points to the others.
        """
        counts = np.where(self.whole, np.floor(self.high) - np.ceil(self.low) + 1.0, np.inf)
        sizes = np.ones(len(counts))
        while True:
            more = np.where(sizes < counts, sizes + 1.0, sizes)
            if np.prod(more) > n or (more == sizes).all():
                break
            sizes = more
        for i in range(len(sizes)):  # what is left over goes to single coordinates
            while sizes[i] < counts[i] and np.prod(sizes) / sizes[i] * (sizes[i] + 1.0) <= n:
                sizes[i] += 1.0
        axes = [np.linspace(0.0, 1.0, int(k)) if k > 1 else np.array([0.5]) for k in sizes]
        return self._at(np.array(list(product(*axes))))

    def _at(self, shares: FloatArray) -> FloatArray:
        """Return the distinct points at shares (n, d) of the sides, in the order given."""
        # The sum may be rounded to a number beyond the side.
        points = np.clip(self.low + (self.high - self.low) * shares, self.low, self.high)
        whole = np.clip(np.rint(points), np.ceil(self.low), np.floor(self.high))
        found = np.where(self.whole, whole, points)
        first = np.unique(found, axis=0, return_index=True)[1]
        return np.asarray(found[np.sort(first)])
