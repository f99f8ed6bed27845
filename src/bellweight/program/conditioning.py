"""Well-conditioned coordinates for a basis.

Coefficients are computed in coordinates that are orthonormal under a reference distribution and
reported in the basis as the user wrote it. With T the (K, rank) transform,

    features in coordinates = features T,   coef = T coef in coordinates,
    moments in coordinates = T' moments.

Only inner products of features matter, so the distribution enters through the K x K triangle of a
streamed QR factorisation. Dependent columns are dropped by one rule: going from left to right, a
column is dropped when it lies in the span of the columns kept before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The transform T (K, rank); None is the identity, which keeps sparse features sparse.

    `spread` (K,) says how far each column of the basis may move when every coordinate moves by one.
    """

    transform: FloatArray | None
    n_basis: int
    spread: FloatArray

    @property
    def rank(self) -> int:
        return self.n_basis if self.transform is None else int(self.transform.shape[1])

    def rows(self, features: Matrix) -> Matrix:
        """Return features or Bellman rows (n, K) in these coordinates, (n, rank)."""
        if self.transform is None:
            return features
        return np.asarray(features @ self.transform)

    def moments(self, moments: FloatArray) -> FloatArray:
        """Return moments (K,) in these coordinates, (rank,)."""
        return moments if self.transform is None else self.transform.T @ moments

    def moment_terms(self, moments: FloatArray) -> FloatArray:
        """Return the size (rank,) of the terms that moments in these coordinates are made of."""
        size = np.abs(moments)
        return size if self.transform is None else np.abs(self.transform).T @ size

    def coef(self, inner: FloatArray) -> FloatArray:
        """Return coefficients (rank,) in the user's basis, (K,)."""
        return inner if self.transform is None else self.transform @ inner


def triangle(blocks: Iterable[FloatArray], n_columns: int) -> FloatArray:
    """Return the triangular factor (K, K) of the stacked blocks, reading one block at a time."""
    factor = np.zeros((n_columns, n_columns))
    for block in blocks:
        factor = np.ascontiguousarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
    return factor


def independent_columns(factor: FloatArray) -> IntArray:
    """Return the columns that are not in the span of the ones kept before them.

    A column also counts as in the span when only coefficients beyond 1 / tolerance would
    distinguish it from the others: several columns may each differ a little, and together hardly at
    all.
    """
    kept: list[int] = []
    directions = np.zeros((factor.shape[0], 0))
    made = np.zeros((0, 0))  # how each direction is made of the kept columns at unit length
    for k in range(factor.shape[1]):
        length = float(np.linalg.norm(factor[:, k]))
        if length == 0.0:
            continue
        column = factor[:, k] / length
        rest = _outside(column, directions)
        size = float(np.linalg.norm(rest))
        if size <= tolerances.DEPENDENT:
            continue
        needed = np.append(-made @ (directions.T @ column), 1.0) / size
        if np.abs(needed).max() * tolerances.DEPENDENT >= 1.0:
            continue
        kept.append(k)
        directions = np.column_stack([directions, rest / size])
        made = np.column_stack([np.vstack([made, np.zeros((1, len(made)))]), needed])
    return np.array(kept, dtype=np.int64)


def least_apart(factor: FloatArray) -> float:
    """Return the smallest part of a column, at unit length, that is outside the span of others."""
    lengths = np.linalg.norm(factor, axis=0)
    if factor.shape[0] < factor.shape[1] or (lengths == 0.0).any():
        return 0.0
    upper = np.linalg.qr(factor / lengths, mode="r")
    return float(np.abs(np.diag(upper)).min())


def combination(factor: FloatArray, kept: IntArray, target: FloatArray) -> FloatArray | None:
    """Return coefficients (K,) that make `target` from the kept columns, or None if none do."""
    lengths = np.linalg.norm(factor[:, kept], axis=0)
    scaled, *_ = np.linalg.lstsq(factor[:, kept] / lengths, target, rcond=None)
    error = np.linalg.norm(factor[:, kept] / lengths @ scaled - target)
    if error > tolerances.SPAN * np.linalg.norm(target):
        return None
    coef = np.zeros(factor.shape[1])
    coef[kept] = scaled / lengths
    return coef


def outside_share(factor: FloatArray, kept: IntArray, column: int) -> float:
    """Return how much of a column is outside the span of the kept ones.

    It is a share of the terms that the column is made of, for rounding is relative to these.
    """
    lengths = np.linalg.norm(factor[:, kept], axis=0)
    span = factor[:, kept] / lengths
    rest, terms = factor[:, column], float(np.linalg.norm(factor[:, column]))
    for place in range(2):
        made = np.linalg.lstsq(span, rest, rcond=None)[0]
        rest = rest - span @ made
        terms += float(np.abs(made).sum()) if place == 0 else 0.0
    return float(np.linalg.norm(rest)) / terms if terms > 0.0 else 0.0


def orthonormal(factor: FloatArray, kept: IntArray) -> Coordinates:
    """Return coordinates whose kept columns are orthonormal under the factor's inner product."""
    lengths = np.linalg.norm(factor[:, kept], axis=0)
    upper = np.linalg.qr(factor[:, kept] / lengths, mode="r")
    transform = np.zeros((factor.shape[1], len(kept)))
    transform[kept] = np.linalg.inv(upper) / lengths[:, None]
    transform *= np.sign(np.diag(upper))
    spread = np.abs((factor @ transform).T @ factor).sum(axis=0)
    return Coordinates(transform, factor.shape[1], spread)


def unchanged(n_basis: int) -> Coordinates:
    """Return the coordinates of the basis as it is."""
    return Coordinates(None, n_basis, np.ones(n_basis))


def _outside(vector: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the part of `vector` outside the span of orthonormal directions, to full precision."""
    for _ in range(2):
        vector = vector - directions @ (directions.T @ vector)
    return vector
