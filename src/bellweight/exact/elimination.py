"""Elimination of the states of a chain in a band, and what it costs.

Costs are in passes over the entries of the chain's matrix, so that they compare with iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee

from bellweight.common.checks import FloatArray, IntArray
from bellweight.exact.passes import reach

_MAX_ORDERED = 1 << 21  # transitions up to which a better ordering is looked for
_MAX_ENTRIES = 1 << 27  # that elimination may store, 1 GB

Factors = Callable[[FloatArray, bool], FloatArray]
"""From a constant (S,), and whether the system is transposed, to the answer of elimination."""


@dataclass(frozen=True, eq=False)
class Band:
    """An ordering of states and how far the entries reach below and above the diagonal.

    Elimination in this order fills nothing outside the band. `n_entries` is what it stores, and
    `passes` what it costs in passes over the matrix, about.
    """

    order: IntArray
    below: int
    above: int
    n_entries: int
    passes: float

    @classmethod
    def of(cls, matrix: sparse.csr_array, order: IntArray, below: int, above: int) -> Band:
        """Say what elimination costs in an order in which the entries reach that far."""
        widest = max(below, above)
        n_entries = len(order) * (3 * widest + 1)
        # Blocked elimination does about five times as many operations a second as a sparse product.
        passes = 0.2 * len(order) * widest * (below + above) / max(1, matrix.nnz)
        return cls(order, below, above, n_entries, passes)

    @classmethod
    def as_numbered(cls, matrix: sparse.csr_array) -> Band:
        """Return the band of the states as they are numbered."""
        return cls.of(matrix, np.arange(matrix.shape[0]), *reach(matrix.indptr, matrix.indices))

    @classmethod
    def reordered(cls, matrix: sparse.csr_array) -> Band:
        """Return the band of the order of Cuthill and McKee."""
        order = reverse_cuthill_mckee(sparse.csr_matrix(matrix))
        rows, columns = _places(matrix, order)
        offsets = columns - rows
        return cls.of(matrix, order, -int(offsets.min(initial=0)), int(offsets.max(initial=0)))

    def factors(self, matrix: sparse.csr_array, discount: float) -> Factors:
        """Eliminate in the band; the factors serve both systems."""
        found, pivots, problem = lapack.dgbtrf(
            self._diagonals(matrix, discount), self.below, self.above, overwrite_ab=True
        )
        assert problem == 0  # rows are diagonally dominant

        def solve(constant: FloatArray, transposed: bool) -> FloatArray:
            x = np.empty(len(constant))
            x[self.order], _ = lapack.dgbtrs(
                found, self.below, self.above, constant[self.order], pivots, trans=int(transposed)
            )
            return x

        return solve

    def _diagonals(self, matrix: sparse.csr_array, discount: float) -> FloatArray:
        """Return I - discount P as diagonals, below those that row exchanges may fill."""
        row, column = _places(matrix, self.order)
        diagonals = np.zeros((2 * self.below + self.above + 1, len(self.order)), order="F")
        # A plain assignment: products of sparse matrices hold every entry once.
        diagonals[self.below + self.above + row - column, column] = -discount * matrix.data
        diagonals[self.below + self.above] += 1.0
        return diagonals


def cheapest_elimination(matrix: sparse.csr_array) -> Band | None:
    """Return the cheapest elimination that is known, None where all take too much memory."""
    band = Band.as_numbered(matrix)
    if matrix.nnz <= _MAX_ORDERED:
        band = min(band, Band.reordered(matrix), key=lambda one: one.passes)
    return band if band.n_entries <= _MAX_ENTRIES else None


def _places(matrix: sparse.csr_array, order: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the entries of a matrix whose states are put in an order."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    rows = np.repeat(position, np.diff(matrix.indptr))
    return rows, position[matrix.indices]
