"""Row sources: given coefficients, which Bellman rows are violated?

A Bellman row of the pair (x, a) is phi(x) - discount E[phi(next)] with the pair's cost on the
right. A row source is a settings object (`AllRows()`, `SampledRows(states)`); `on(model, basis)`
binds it. The bound source answers one question in one streamed pass (`separate`) and hands out rows
on demand; the matrix of all rows is stored only where it is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.common.doubled import Doubled, doubled

MOST_CLOSE = 8  # times the number taken per block
NEAR = 1e-9  # rows this close to tight are looked at again with full precision


@dataclass(frozen=True, eq=False)
class Separation:
    """The answer of one pass over the rows at given coefficients.

    `close` holds the keys of the rows with the smallest relative slack, violated ones first, and
    `close_size` the scale that each is relative to; `near` the keys of all rows that may be tight;
    `violation` is the largest violation in original units, or a bound on it when the search for it
    was cut short (`proven` is off).
    """

    close: IntArray
    close_size: FloatArray
    near: IntArray
    violation: float
    proven: bool = True


class RowSource(ABC):
    """What a program needs to know about its rows."""

    discount: float
    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    is_complete = False  # whether all states are listed, so that no move leads outside

    @property
    @abstractmethod
    def n_basis(self) -> int:
        """Number of basis functions, K."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of rows there are, or that were found so far."""

    @property
    @abstractmethod
    def is_sparse(self) -> bool:
        """Whether the features are sparse, in which case they are used as they are."""

    @abstractmethod
    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        """Return the rows (n, K) and costs (n,) of some pairs."""

    def exact_rows(self, keys: IntArray) -> Doubled:
        """Return the rows (n, K) of some pairs to twice the digits, where that is known."""
        rows = self.rows(keys)[0]
        return doubled(rows.toarray() if sparse.issparse(rows) else np.asarray(rows))

    def exact_moments(self, weights: FloatArray) -> Doubled | None:
        """Return Phi' weights (K,) to twice the digits, or None where weights are no vector."""
        return None

    @property
    def even_moments(self) -> Doubled | None:
        """The moments (K,) of even weights on all states, or None where states are not listed."""
        return None

    def violated(self, coef: Doubled, unit: float, *, homogeneous: bool = False) -> IntArray:
        """Return the keys of rows that coefficients with twice the digits violate most, or may."""
        return self.separate(coef.high, unit, homogeneous=homogeneous).close

    @abstractmethod
    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        """Find the rows that coefficients violate most; with `homogeneous`, against zero costs."""

    @abstractmethod
    def seeds(self, weights: FloatArray | None) -> IntArray:
        """Return keys to start the program with."""

    @abstractmethod
    def triangle(self, weights: FloatArray | None) -> FloatArray:
        """Return the triangular factor of the features under weights, even ones by default."""

    def span(self) -> FloatArray:
        """Return the triangular factor that decides which functions depend on earlier ones."""
        return self.triangle(None)

    @abstractmethod
    def constant(self) -> FloatArray:
        """Return coefficients (K,) of the constant function one."""

    @abstractmethod
    def support_of(self, keys: IntArray) -> tuple[Any, Any]:
        """Return the states, indices or vectors, and the actions of some pairs."""

    def are_pairs(self, keys: IntArray) -> BoolArray:
        """Return which rows are those of pairs: all, where none of another kind stand beside."""
        return np.ones(len(keys), dtype=np.bool_)
