"""What row sources that search share: the pool of the rows found so far.

There are too many rows to list them, or infinitely many. A row's key is its place in the pool.
"""

from __future__ import annotations

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.program.row_source import MOST_CLOSE, RowSource, Separation


class PooledRows(RowSource):
    """A row source with a pool, which holds rows (n, K) and their costs (n,); at first none.

    A subclass sets `names` and `discount` first.
    """

    def __init__(self) -> None:
        self._matrix, self._cost = np.zeros((0, self.n_basis)), np.zeros(0)

    @property
    def n_basis(self) -> int:
        return len(self.names)

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def n_pairs(self) -> int:
        """Number of rows found so far."""
        return len(self._cost)

    def rows(self, keys: IntArray) -> tuple[FloatArray, FloatArray]:
        return self._matrix[keys], self._cost[keys]

    def _extend(self, rows: FloatArray, cost: FloatArray) -> None:
        """Take rows (n, K) with their costs (n,) into the pool."""
        self._matrix = np.vstack([self._matrix, rows])
        self._cost = np.append(self._cost, cost)

    def _slacks(self, coef: FloatArray, *, homogeneous: bool) -> tuple[FloatArray, FloatArray]:
        """Return the slacks (n,) of all rows in the pool, and the costs that they are made of."""
        cost = np.zeros(self.n_pairs) if homogeneous else self._cost
        return cost - self._matrix @ coef, cost

    def _separation(
        self,
        slack: FloatArray,
        cost: FloatArray,
        values: FloatArray,
        unit: float,
        violation: float,
        *,
        proven: bool = True,
    ) -> Separation:
        """Return the answer of a search from slacks and costs (n,) of the rows in the pool.

        `values` (n,) are those of the rows' states, and `violation` is the largest one.
        """
        level = (1.0 - self.discount) * np.abs(values)
        size = np.abs(cost) + level + unit
        size = np.where(size > 0.0, size, 1.0)
        order = np.argsort(slack / size, kind="stable")[: MOST_CLOSE * self.n_basis]
        near = np.flatnonzero(slack <= tolerances.NEAR * (size + level / (1.0 - self.discount)))
        return Separation(
            close=order.astype(np.int64),
            close_size=size[order],
            near=near,
            violation=max(0.0, violation),
            proven=proven,
        )
