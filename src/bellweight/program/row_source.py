"""Row sources: given coefficients, which Bellman rows are violated?

A Bellman row of the pair (x, a) is phi(x) - discount E[phi(next)] with the pair's cost on the
right. A row source is a settings object (`AllRows()`, `SampledRows(states)`); `on(model, basis)`
binds it. The bound source answers one question in one search (`separate`) and hands out rows on
demand; the matrix of all rows is stored only where it is small.

**A new row source** is one file with the settings object and a subclass of `RowSource`; the loop
does not change. It sets `model`, `basis`, `discount`, `names`, `lower` and `upper`, and answers:

    rows(keys)      the rows and costs of some keys, the same whenever they are asked for
    separate(coef)  the keys of the rows that coefficients violate most, and whether the search was
                    complete (`proven`); against zero costs while the program looks for rows that
                    bound it
    seeds(weights)  the keys to start with: a few that tell the functions apart are enough
    triangle(...)   the factor of the features that makes the program's coordinates
    constant()      the coefficients of the constant function
    support_of(...) the states and actions of keys, for the dual's support

Keys are whole numbers from zero on. Where rows are listed (`listed_rows`), a key is a place in the
list of all pairs. Where a search finds rows, among infinitely many perhaps, a key is a place in the
pool of those found so far (`priced_rows`, `local_rows`): the pool grows in `separate` and `seeds`,
keeps every row that it has handed out, and `n_pairs` is its size. Rows that belong to no pair, such
as slopes along an endless coordinate or bounds on values, are rows like others to the program;
`are_pairs` leaves them out of the dual's support. What can be computed with twice the digits
(`exact_rows`, `exact_moments`, `violated`) makes answers more precise, and is not needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix, dense
from bellweight.common.doubled import Doubled, doubled
from bellweight.program.conditioning import Coordinates
from bellweight.program.independent_functions import IndependentFunctions

MOST_CLOSE = 8  # times the number taken per block


@dataclass(frozen=True, eq=False)
class Separation:
    """The answer of one pass over the rows at given coefficients.

    `close` holds the keys of the rows with the smallest relative slack, violated ones first, and
    `close_size` the scale that each is relative to; `near` the keys of all rows that may be tight,
    which need not be complete where a row is violated by more than rounding could explain;
    `violation` is the largest violation in original units, or a bound on it when the search for it
    was cut short (`proven` is off).
    """

    close: IntArray
    close_size: FloatArray
    near: IntArray
    violation: float
    proven: bool = True


class RowSource(ABC):
    """What a program needs to know about its rows.

    `model` and `basis` are those it is bound to, the basis fitted to the states; `names` (K,) are
    the basis functions', `lower` and `upper` (K,) the bounds on their coefficients.
    """

    model: Any
    basis: Basis
    discount: float
    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    is_complete = False  # whether all states are listed, so that no move leads outside
    untold = ""  # which functions the states do not tell apart: why a program may be unbounded

    @property
    @abstractmethod
    def n_basis(self) -> int:
        """Number of basis functions, K."""

    @property
    @abstractmethod
    def is_sparse(self) -> bool:
        """Whether the features are sparse, in which case they are used as they are."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of rows there are, or that were found so far."""

    @abstractmethod
    def rows(self, keys: IntArray) -> tuple[Matrix, FloatArray]:
        """Return the rows (n, K) and costs (n,) of some keys."""

    def exact_rows(self, keys: IntArray) -> Doubled:
        """Return the rows (n, K) of some keys to twice the digits, where that is known."""
        return doubled(dense(self.rows(keys)[0]))

    def exact_moments(self, weights: FloatArray) -> Doubled | None:
        """Return Phi' weights (K,) to twice the digits, or None where weights are no vector."""
        return None

    @property
    def largest_cost(self) -> float:
        """The largest cost of a pair, without its sign; zero where that is not known."""
        return 0.0

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

    @cached_property
    def functions(self) -> IndependentFunctions:
        """Which basis functions are independent; found once, for all programs of these rows."""
        self.constant()  # raises where there is none
        factor = None if self.is_sparse else self.span()
        return IndependentFunctions(self.names, self.lower, self.upper, factor)

    def coordinates(self, reference: FloatArray | None) -> Coordinates:
        """Return coordinates that are orthonormal under weights, even ones by default."""
        if reference is None or self.is_sparse:
            return self.functions.coordinates(self.functions.factor)
        return self.functions.coordinates(self.triangle(reference))

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
        """Return which rows (n,) are those of pairs; others have no part in the dual's support."""
        return np.ones(len(keys), dtype=np.bool_)
