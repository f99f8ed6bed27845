"""Groups of states, which move with each other: they carry corrections over long distances.

A sweep through the states (`passes.sweep`) corrects what neighbours know of each other; what
reaches over a whole grid takes as many sweeps as the grid is long. So states between which a chain
moves often are grouped in fours, pairs of pairs. The mean of a group's rows, its columns summed, is
a chain of groups with the same discount. The means of a residual go there and are solved for in the
same way, down to a few hundred groups, which are eliminated; the answer of a group is added to each
of its states (Notay, Aggregation-based algebraic multigrid for convection-diffusion equations,
2012). For a transpose the same is done: (I - discount P') x = b in sums of groups.

Where groups have nearly as many transitions as states, as on random graphs, there are none.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray, IntArray
from bellweight.exact.elimination import Band
from bellweight.exact.passes import merge, pair, sweep

_SWEEP = 2.3  # passes in the time of one sweep, forwards and backwards
_FEW = 300  # states that are eliminated
_SHRUNK = 0.4  # of the transitions that groups may be left with
_FURTHER = 1.4  # times their answer: what is constant in each group falls short


class GroupedSweep:
    """Solves x = constant + discount matrix x about: groups of states first, then one sweep.

    It is a linear function of the constant, so GMRES takes it as a preconditioner. `passes` is what
    it costs, in passes over the matrix.
    """

    def __init__(self, matrix: sparse.csr_array, discount: float) -> None:
        self._matrix, self._discount = matrix, discount
        self._group, self._size = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._pivots = 1.0 / (1.0 - discount * matrix.diagonal())
        self._coarser: GroupedSweep | None = None
        self._factors = None
        self.passes = _SWEEP
        if matrix.shape[0] <= _FEW:
            self._factors = Band.as_numbered(matrix).factors(matrix, discount)
            return
        group, size, merged = grouped(matrix)
        share = merged.nnz / max(1, matrix.nnz)
        if share <= _SHRUNK:
            self._group, self._size = group, size
            self._coarser = GroupedSweep(merged, discount)
            self.passes += share * (2.0 * self._coarser.passes + 1.0)

    def __call__(self, constant: FloatArray) -> FloatArray:
        if self._factors is not None:
            return self._factors(constant, False)
        if self._coarser is None:
            x = np.zeros(len(constant))
        else:
            mean = np.bincount(self._group, constant, len(self._size)) / self._size
            x = (_FURTHER * self._coarser._twice(mean))[self._group]
        self.sweep(constant, x)
        return x

    def sweep(self, constant: FloatArray, x: FloatArray) -> None:
        """Solve each state's own equation in x, in place: forwards, then backwards."""
        entries = self._matrix.indptr, self._matrix.indices, self._matrix.data
        sweep(*entries, self._discount, self._pivots, constant, x)

    def _twice(self, constant: FloatArray) -> FloatArray:
        """Return the answer with what it leaves solved for once more."""
        x = self(constant)
        if self._factors is None:
            x += self(constant + self._discount * (self._matrix @ x) - x)
        return x


def grouped(matrix: sparse.csr_array) -> tuple[IntArray, FloatArray, sparse.csr_array]:
    """Return the group of each state (S,), the sizes (G,) and the mean rows of groups (G, G)."""
    group, merged = _paired(matrix)
    again, merged = _paired(merged)
    group = again[group]
    size = np.bincount(group).astype(np.float64)
    merged.data /= np.repeat(size, np.diff(merged.indptr))
    return group, size, merged


def _paired(matrix: sparse.csr_array) -> tuple[IntArray, sparse.csr_array]:
    """Return the pair of each state (S,) and the sums of the rows of pairs, by pairs."""
    n = matrix.shape[0]
    group, members = np.full(n, -1), np.full((2, n), -1)
    back = sparse.csr_array(matrix.T)
    n_groups = pair(
        matrix.indptr, matrix.indices, matrix.data, back.indptr, back.indices, back.data, group,
        members,
    )  # fmt: skip
    kind = matrix.indices.dtype
    starts, columns = np.zeros(n_groups + 1, dtype=kind), np.empty(matrix.nnz, dtype=kind)
    data = np.empty(matrix.nnz)
    places = np.full(n_groups, -1)
    n_entries = merge(
        matrix.indptr, matrix.indices, matrix.data, group, members, places, starts, columns, data
    )
    entries = data[:n_entries].copy(), columns[:n_entries].copy(), starts
    return group, sparse.csr_array(entries, shape=(n_groups, n_groups))
