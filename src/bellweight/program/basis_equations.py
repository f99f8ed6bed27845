"""The equations of a basis of the master program, solved to full precision."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, Matrix
from bellweight.common.threads import one_thread


def sharpen(
    rows: Matrix,
    cost: FloatArray,
    moments: FloatArray,
    coef: FloatArray,
    factored: Factored | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and multipliers of a basis (m, K) to full precision.

    The solver's answer is exact only to its own tolerance. Solving the basis's own equations,
    rows coef = cost and rows' multipliers = moments, leaves rounding errors only. A basis with
    fewer rows than basis functions fixes only part of the coefficients; the rest keeps its value.
    `factored` are dense rows, factored already.
    """
    if rows.shape[0] == 0:
        return coef, np.zeros(0)
    if sparse.issparse(rows):
        return _sharpen_sparse(sparse.csr_array(rows), cost, moments, coef)
    factored = factored or Factored(rows)
    scaled, size = factored.scaled, factored.size
    target = cost / size
    multipliers = np.zeros(len(cost))
    for _ in range(2):
        coef = coef + factored.solved(target - scaled @ coef)
        multipliers = multipliers + factored.solved_transposed(moments - scaled.T @ multipliers)
    return coef, multipliers / size


class Factored:
    """Least squares with the rows (m, K) of a basis and many right sides, transposed included.

    Each row is `scaled` by its `size`, and so are right sides.
    """

    def __init__(self, rows: FloatArray) -> None:
        self.size = np.abs(rows).max(axis=1)
        self.scaled = rows / self.size[:, None]
        with one_thread():
            self._left, values, self._right = np.linalg.svd(self.scaled, full_matrices=False)
        kept = values > tolerances.LEAST_SQUARES * values.max(initial=0.0)
        self._inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)

    @property
    def pseudoinverse(self) -> FloatArray:
        """The matrix (K, m) that `solved` multiplies by."""
        return np.asarray((self._right.T * self._inverse) @ self._left.T)

    def solved(self, right: FloatArray) -> FloatArray:
        """Return the shortest vector (K,) whose product with the matrix is closest to (m,)."""
        return np.asarray((self._inverse * (right @ self._left)) @ self._right)

    def solved_transposed(self, right: FloatArray) -> FloatArray:
        """Return the shortest vector (m,) whose product with the transpose is closest to (K,)."""
        return np.asarray(self._left @ (self._inverse * (self._right @ right)))


def leaving_row(rows: Matrix, multipliers: FloatArray, entering: Matrix) -> int | None:
    """Return which row of a basis (K, K) an entering row (1, K) replaces; None if it cannot.

    The ratio test of the simplex method: the multipliers stay non-negative.
    """
    if sparse.issparse(rows) or rows.shape[0] != rows.shape[1]:
        return None
    size = np.abs(rows).max(axis=1)
    with one_thread():
        share = np.linalg.lstsq((rows / size[:, None]).T, entering[0], rcond=None)[0] / size
    falling = share > tolerances.RATIO * np.abs(share).max()
    if not falling.any():
        return None
    ratio = np.where(falling, np.maximum(multipliers, 0.0) / np.where(falling, share, 1.0), np.inf)
    return int(np.argmin(ratio))


def _sharpen_sparse(
    rows: sparse.csr_array, cost: FloatArray, moments: FloatArray, coef: FloatArray
) -> tuple[FloatArray, FloatArray]:
    if rows.shape[0] != rows.shape[1]:
        dense, multipliers = sharpen(rows.toarray(), cost, moments, coef)
        return dense, multipliers
    factor = sparse.linalg.splu(sparse.csc_matrix(rows))
    multipliers = np.zeros(len(cost))
    for _ in range(2):
        coef = coef + factor.solve(cost - rows @ coef)
        multipliers = multipliers + factor.solve(moments - rows.T @ multipliers, trans="T")
    return coef, multipliers
