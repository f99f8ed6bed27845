"""Which functions of a basis are independent, their bounds, and coordinates for them.

Functions that depend on earlier ones are dropped by a stated rule; the others are made orthonormal
under a reference. Found once for each row source, and shared by all its programs.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.common.status import BasisError, SolverError, Status
from bellweight.program import conditioning
from bellweight.program.conditioning import Coordinates

_TOLD = 1e-4  # a reference that tells functions apart so much worse than all states do is mixed
_UNIFORM_SHARE = 1e-6  # added to a reference that does not tell all basis functions apart


class IndependentFunctions:
    """The functions of a basis that do not depend on earlier ones.

    `names` (K,), `lower` and `upper` (K,) are those of all functions. `factor` (m, K) is the
    triangle of their features under even weights; None where features are sparse: then all
    functions are independent, and are used as they are.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        lower: FloatArray,
        upper: FloatArray,
        factor: FloatArray | None,
    ) -> None:
        self.names, self.lower, self.upper = names, lower, upper
        self.factor = factor
        self.kept = (
            np.arange(len(names)) if factor is None else conditioning.independent_columns(factor)
        )
        self._apart = 0.0 if factor is None else conditioning.least_apart(factor[:, self.kept])
        self._made = self._combinations()
        self._check_dropped()
        self.above, self.below = self._bounded(upper), self._bounded(lower)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return tuple(np.delete(np.array(self.names, dtype=object), self.kept))

    @cached_property
    def are_distinct(self) -> BoolArray:
        """Which functions (K,) were dropped although they differ from the kept ones.

        The difference is small, and more than rounding of the functions' values explains.
        """
        distinct = np.zeros(len(self.names), dtype=np.bool_)
        if self.factor is not None:
            for k in np.setdiff1d(np.arange(len(self.names)), self.kept):
                share = conditioning.outside_share(self.factor, self.kept, int(k))
                distinct[k] = share > tolerances.DISTINCT
        return distinct

    def coordinates(self, factor: FloatArray | None) -> Coordinates:
        """Return coordinates orthonormal under the factor (m, K); sparse features stay sparse."""
        if self.factor is None or factor is None:
            return conditioning.unchanged(len(self.names))
        if conditioning.least_apart(factor[:, self.kept]) < _TOLD * self._apart:
            factor = np.vstack([factor, np.sqrt(_UNIFORM_SHARE) * self.factor])
        return conditioning.orthonormal(factor, self.kept)

    def bounds(self, coordinates: Coordinates) -> tuple[Matrix, FloatArray]:
        """Return the finite coefficient bounds as rows: coef <= upper and -coef <= -lower."""
        transform = coordinates.transform
        cost = np.concatenate([self.upper[self.above], -self.lower[self.below]])
        if transform is None:
            selector = sparse.identity(len(self.names), format="csr")
            return sparse.vstack([selector[self.above], -selector[self.below]], format="csr"), cost
        return np.vstack([transform[self.above], -transform[self.below]]), cost

    @property
    def raw_bounds(self) -> FloatArray:
        """The finite coefficient bounds as rows (b, K) over the functions themselves."""
        return _unit_rows(len(self.names), self.above, self.below)

    def check_reachable(self, moments: FloatArray) -> None:
        """Refuse moments that tell a dropped function from those it depends on: no row does."""
        for k, made in self._made.items():
            assert self.factor is not None
            size = np.linalg.norm(self.factor[:, k]) + np.abs(made) @ np.abs(moments)
            size += abs(moments[k])
            if abs(moments[k] - made @ moments) > tolerances.CLEAR_GROWTH * size:
                raise SolverError(
                    Status.UNBOUNDED,
                    f"the weights tell basis function {k} ({self.names[k]}) from earlier "
                    "ones, the rows do not",
                )

    def check_unbounded(self, functions: IntArray) -> None:
        """Refuse bounds on functions that were dropped and are to be brought back."""
        bounded = np.isfinite(self.lower[functions]) | np.isfinite(self.upper[functions])
        if bounded.any():
            k = int(functions[np.argmax(bounded)])
            raise BasisError(
                f"basis function {k} ({self.names[k]}) nearly depends on earlier ones, and has "
                "bounds: leave out the function or its bounds"
            )

    def _combinations(self) -> dict[int, FloatArray]:
        """Return for each dropped function the coefficients (K,) that make it from kept ones."""
        factor = self.factor
        if factor is None:
            return {}
        dropped = np.setdiff1d(np.arange(len(self.names)), self.kept)
        made = {int(k): conditioning.combination(factor, self.kept, factor[:, k]) for k in dropped}
        return {k: coef for k, coef in made.items() if coef is not None}

    def _bounded(self, bound: FloatArray) -> IntArray:
        """Return the kept coefficients with a finite bound."""
        return self.kept[np.isfinite(bound[self.kept])]

    def _check_dropped(self) -> None:
        """Refuse bounds that exclude the zero that a dropped basis function gets."""
        outside = (self.lower > 0.0) | (self.upper < 0.0)
        outside[self.kept] = False
        if outside.any():
            k = int(np.argmax(outside))
            raise BasisError(
                f"basis function {k} ({self.names[k]}) depends on earlier ones and is dropped, so "
                f"its coefficient is 0, outside its bounds [{self.lower[k]:g}, {self.upper[k]:g}]: "
                "drop the function or widen the bounds"
            )
        self._check_shared_bounds()

    def _check_shared_bounds(self) -> None:
        """Refuse bounds on a kept function that a dropped one depends on: dropping would matter."""
        factor = self.factor
        bounded = np.isfinite(self.lower) | np.isfinite(self.upper)
        if factor is None or not bounded[self.kept].any():
            return
        lengths = np.linalg.norm(factor, axis=0)
        for j, made in self._made.items():
            used = np.abs(made) * lengths
            shared = np.flatnonzero(bounded & (used > tolerances.SPAN * lengths[j]))
            if len(shared):
                raise BasisError(
                    f"basis function {j} ({self.names[j]}) depends on function {shared[0]} "
                    f"({self.names[shared[0]]}), which has bounds, so dropping it would change the "
                    "program: leave one of the two out of the basis"
                )


def coefficient_bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the finite bounds on all coefficients as rows (b, K), with costs (b,)."""
    above, below = (np.flatnonzero(np.isfinite(bound)) for bound in (upper, lower))
    return _unit_rows(len(lower), above, below), np.concatenate([upper[above], -lower[below]])


def _unit_rows(n_basis: int, above: IntArray, below: IntArray) -> FloatArray:
    """Return rows that are 1 at each function in `above`, then -1 at each in `below`."""
    rows = np.zeros((len(above) + len(below), n_basis))
    rows[np.arange(len(above)), above] = 1.0
    rows[len(above) + np.arange(len(below)), below] = -1.0
    return rows
