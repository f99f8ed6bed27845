"""Linear systems of the chain that a policy induces: (I - discount P) x = b and its transpose.

Three uses, one solver: values of a policy, occupancies, policy iteration. A chain whose states can
be ordered in a narrow band is solved by banded elimination, any other by sparse LU, and a chain too
large for that by successive approximation with GMRES as accelerator. Whatever the route, the
residual is measured on the original system and iterated down: a solver's word is not evidence.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import solve_banded
from scipy.sparse.linalg import LinearOperator, SuperLU, gmres, splu

from bellweight.common.checks import FloatArray

_MAX_BAND = 64
_MAX_DIRECT = 200_000
_REFINEMENTS = 3
_GMRES_RESTART = 40


class Chain:
    """The transition matrix of a policy (S, S), with solvers for the discounted systems."""

    def __init__(self, transition: sparse.csr_array, discount: float) -> None:
        self.transition = transition
        self.discount = discount
        self._band = _bandwidths(transition)
        self._factor: SuperLU | None = None
        self._bands: dict[bool, FloatArray] = {}
        self._transposed: sparse.csr_array | None = None

    def values(self, cost: FloatArray) -> FloatArray:
        """Return x with x = cost + discount P x."""
        return self._solve(cost, transposed=False)

    def occupancy(self, initial: FloatArray) -> FloatArray:
        """Return x with x = (1 - discount) initial + discount P' x."""
        return self._solve((1.0 - self.discount) * initial, transposed=True)

    def residual(self, x: FloatArray, constant: FloatArray, *, transposed: bool) -> FloatArray:
        """Return constant + discount P x - x, or the same with P'."""
        return constant + self.discount * (self._matrix(transposed) @ x) - x

    def _solve(self, constant: FloatArray, *, transposed: bool) -> FloatArray:
        x = self._approximate(constant, transposed)
        best, smallest = x, np.inf
        for _ in range(_REFINEMENTS):
            residual = self.residual(x, constant, transposed=transposed)
            size = float(np.abs(residual).sum())
            if not size < smallest:
                break
            best, smallest = x, size
            x = x + self._approximate(residual, transposed)
        return best

    def _approximate(self, constant: FloatArray, transposed: bool) -> FloatArray:
        if max(self._band) <= _MAX_BAND:
            return self._banded(constant, transposed)
        if len(constant) <= _MAX_DIRECT:
            return self._direct(constant, transposed)
        return self._iterate(constant, transposed)

    def _banded(self, constant: FloatArray, transposed: bool) -> FloatArray:
        below, above = reversed(self._band) if transposed else self._band
        if transposed not in self._bands:
            self._bands[transposed] = self._system_bands(below, above, transposed)
        return np.asarray(
            solve_banded((below, above), self._bands[transposed], constant, check_finite=False)
        )

    def _system_bands(self, below: int, above: int, transposed: bool) -> FloatArray:
        """Return I - discount P, or its transpose, as diagonals (below + above + 1, S)."""
        matrix = self._matrix(transposed)
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        bands = np.zeros((below + above + 1, matrix.shape[0]))
        # A plain assignment: products of sparse matrices hold every entry once.
        bands[above + row - matrix.indices, matrix.indices] = -self.discount * matrix.data
        bands[above] += 1.0
        return bands

    def _direct(self, constant: FloatArray, transposed: bool) -> FloatArray:
        if self._factor is None:
            system = sparse.identity(len(constant), format="csc") - self.discount * self.transition
            self._factor = splu(sparse.csc_matrix(system))
        return np.asarray(self._factor.solve(constant, trans="T" if transposed else "N"))

    def _iterate(self, constant: FloatArray, transposed: bool) -> FloatArray:
        """Solve by GMRES, then by plain iteration, which contracts by the discount each time."""
        matrix = self._matrix(transposed)
        n = len(constant)
        operator = LinearOperator((n, n), matvec=lambda x: x - self.discount * (matrix @ x))
        scale = float(np.abs(constant).sum()) or 1.0
        x, _ = gmres(operator, constant, rtol=1e-13, restart=_GMRES_RESTART, maxiter=25)
        for _ in range(int(np.ceil(np.log(1e-15) / np.log(self.discount)))):
            following = constant + self.discount * (matrix @ x)
            change = float(np.abs(following - x).sum())
            x = following
            if change <= 1e-14 * scale:
                break
        return np.asarray(x)

    def _matrix(self, transposed: bool) -> sparse.csr_array:
        if not transposed:
            return self.transition
        if self._transposed is None:
            self._transposed = sparse.csr_array(self.transition.T)
        return self._transposed


def _bandwidths(matrix: sparse.csr_array) -> tuple[int, int]:
    """Return how far below and above the diagonal the entries reach."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    if len(rows) == 0:
        return 0, 0
    offsets = matrix.indices - rows
    return max(0, int(-offsets.min())), max(0, int(offsets.max()))
