"""The coordinates in which a program is solved, and which basis functions take part in it.

Functions that depend on earlier ones are dropped by a stated rule; the others are made orthonormal
under a reference. Every program of a row source uses the same frame.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.status import BasisError, SolverError, Status
from bellweight.program import conditioning
from bellweight.program.conditioning import Coordinates
from bellweight.program.row_source import RowSource

CLEAR_GROWTH = 1e-7
"""Relative growth along a direction that cannot be rounding."""

_TOLD = 1e-4  # a reference that tells functions apart so much worse than all states do is mixed
_UNIFORM_SHARE = 1e-6  # added to a reference that does not tell all basis functions apart


class Frame:
    """Which functions of a basis are kept, their bounds, and coordinates for them."""

    def __init__(self, rows: RowSource) -> None:
        self.rows = rows
        rows.constant()  # raises where there is none
        self._uniform = None if rows.is_sparse else rows.span()
        self.kept = (
            np.arange(rows.n_basis)
            if self._uniform is None
            else conditioning.independent_columns(self._uniform)
        )
        self._told = (
            0.0 if self._uniform is None else conditioning.least_apart(self._uniform[:, self.kept])
        )
        self._made = self._combinations()
        self._check_dropped()
        self.above, self.below = self._bounded(rows.upper), self._bounded(rows.lower)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return tuple(np.delete(np.array(self.rows.names, dtype=object), self.kept))

    def factor(self, reference: FloatArray | None) -> FloatArray | None:
        """Return the triangle (m, K) of a reference (S,), or of all states alike."""
        if reference is None or self._uniform is None:
            return self._uniform
        return self.rows.triangle(reference)

    def coordinates(self, factor: FloatArray | None) -> Coordinates:
        """Return coordinates orthonormal under the factor (m, K); sparse features stay sparse."""
        if self._uniform is None or factor is None:
            return conditioning.unchanged(self.rows.n_basis)
        if conditioning.least_apart(factor[:, self.kept]) < _TOLD * self._told:
            factor = np.vstack([factor, np.sqrt(_UNIFORM_SHARE) * self._uniform])
        return conditioning.orthonormal(factor, self.kept)

    def bounds(self, coordinates: Coordinates) -> tuple[Matrix, FloatArray]:
        """Return the finite coefficient bounds as rows: coef <= upper and -coef <= -lower."""
        rows, transform = self.rows, coordinates.transform
        cost = np.concatenate([rows.upper[self.above], -rows.lower[self.below]])
        if transform is None:
            selector = sparse.identity(rows.n_basis, format="csr")
            return sparse.vstack([selector[self.above], -selector[self.below]], format="csr"), cost
        return np.vstack([transform[self.above], -transform[self.below]]), cost

    @property
    def raw_bounds(self) -> FloatArray:
        """The finite coefficient bounds as rows (b, K) over the functions themselves."""
        return _unit_rows(self.rows.n_basis, self.above, self.below)

    def check_reachable(self, moments: FloatArray) -> None:
        """Refuse moments that tell a dropped function from the ones it is made of: no row does."""
        for k, made in self._made.items():
            assert self._uniform is not None
            size = np.linalg.norm(self._uniform[:, k]) + np.abs(made) @ np.abs(moments)
            if abs(moments[k] - made @ moments) > CLEAR_GROWTH * (size + abs(moments[k])):
                raise SolverError(
                    Status.UNBOUNDED,
                    f"the weights tell basis function {k} ({self.rows.names[k]}) from earlier "
                    "ones, the rows do not",
                )

    def check_unbounded(self, functions: IntArray) -> None:
        """Refuse bounds on functions that were dropped and are to be brought back."""
        rows = self.rows
        bounded = np.isfinite(rows.lower[functions]) | np.isfinite(rows.upper[functions])
        if bounded.any():
            k = int(functions[np.argmax(bounded)])
            raise BasisError(
                f"basis function {k} ({rows.names[k]}) nearly depends on earlier ones, and has "
                "bounds: leave out the function or its bounds"
            )

    def _combinations(self) -> dict[int, FloatArray]:
        """Return for each dropped function the coefficients (K,) that make it from kept ones."""
        factor = self._uniform
        if factor is None:
            return {}
        dropped = np.setdiff1d(np.arange(self.rows.n_basis), self.kept)
        made = {int(k): conditioning.combination(factor, self.kept, factor[:, k]) for k in dropped}
        return {k: coef for k, coef in made.items() if coef is not None}

    def _bounded(self, bound: FloatArray) -> IntArray:
        """Return the kept coefficients with a finite bound."""
        return self.kept[np.isfinite(bound[self.kept])]

    def _check_dropped(self) -> None:
        """Refuse bounds that exclude the zero that a dropped basis function gets."""
        rows = self.rows
        outside = (rows.lower > 0.0) | (rows.upper < 0.0)
        outside[self.kept] = False
        if outside.any():
            k = int(np.argmax(outside))
            raise BasisError(
                f"basis function {k} ({rows.names[k]}) depends on earlier ones and is dropped, so "
                f"its coefficient is 0, outside its bounds [{rows.lower[k]:g}, {rows.upper[k]:g}]: "
                "drop the function or widen the bounds"
            )
        self._check_shared_bounds()

    def _check_shared_bounds(self) -> None:
        """Refuse bounds on a kept function that a dropped one could take over from."""
        rows, factor = self.rows, self._uniform
        bounded = np.isfinite(rows.lower) | np.isfinite(rows.upper)
        if factor is None or not bounded[self.kept].any():
            return
        lengths = np.linalg.norm(factor, axis=0)
        for j, made in self._made.items():
            used = np.abs(made) * lengths
            shared = np.flatnonzero(bounded & (used > 1e-9 * lengths[j]))
            if len(shared):
                raise BasisError(
                    f"basis function {j} ({rows.names[j]}) depends on function {shared[0]} "
                    f"({rows.names[shared[0]]}), which has bounds, so dropping it would change the "
                    "program: leave one of the two out of the basis"
                )


def coefficient_bounds(rows: RowSource) -> tuple[FloatArray, FloatArray]:
    """Return all finite coefficient bounds as rows (b, K) over the functions, with costs (b,)."""
    above, below = (np.flatnonzero(np.isfinite(bound)) for bound in (rows.upper, rows.lower))
    cost = np.concatenate([rows.upper[above], -rows.lower[below]])
    return _unit_rows(rows.n_basis, above, below), cost


def _unit_rows(n_basis: int, above: IntArray, below: IntArray) -> FloatArray:
    """Return rows that are 1 at each function in `above`, then -1 at each in `below`."""
    rows = np.zeros((len(above) + len(below), n_basis))
    rows[np.arange(len(above)), above] = 1.0
    rows[len(above) + np.arange(len(below)), below] = -1.0
    return rows
