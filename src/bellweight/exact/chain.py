"""Linear systems of the chain that a policy induces: (I - discount P) x = b and its transpose.

Three uses, one solver: values of a policy, occupancies, policy iteration. A chain whose states can
be ordered in a narrow band is solved by banded elimination. Elsewhere elimination fills in (on
grids and random graphs without limit), so a chain is solved by iteration (`iteration`), whose
passes cost what the chain has transitions; where that takes longer than elimination in the best
known band, elimination takes over. In every case the residual is measured on the original system
and iterated down: a solver's answer alone is not evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee

from bellweight.common.checks import FloatArray, IntArray
from bellweight.exact.iteration import FixedPoint, MixedFixedPoint
from bellweight.exact.passes import reach
from bellweight.models import TabularModel

_CHEAP_PASSES = 1_000  # elimination that costs no more than so many passes is done at once
_FEW_PASSES = 100  # over a table, for which no matrix of the chain is made
_MAX_ORDERED = 1 << 21  # transitions up to which a better ordering is looked for
_MAX_ENTRIES = 1 << 27  # that elimination may store, 1 GB
_REFINEMENTS = 3
_ROUGH = 1e-12  # residuals of an iteration that are more than this share of an equation's terms


class Chain:
    """The transition matrix of a policy (S, S), with solvers for the discounted systems."""

    def __init__(
        self, transition: sparse.csr_array | Callable[[], sparse.csr_array], discount: float
    ) -> None:
        self._given = transition
        self.discount = discount
        self._band: Band | None = None  # in which elimination was done
        self._factors: tuple[FloatArray, IntArray] | None = None

    @cached_property
    def transition(self) -> sparse.csr_array:
        """The matrix (S, S), made when it is first needed."""
        return self._given() if callable(self._given) else self._given

    @property
    def is_eliminated(self) -> bool:
        """Whether answers come from elimination: as exact as they can be, whatever is asked for."""
        return self._band is not None

    def values(
        self, cost: FloatArray, guess: FloatArray | None = None, tol: float = 0.0
    ) -> FloatArray:
        """Return x with x = cost + discount P x.

        `guess` (S,) is where an iteration begins, and `tol` the residual with which it may end.
        """
        return self._solve(cost, guess, tol, transposed=False)

    def occupancy(self, initial: FloatArray, guess: FloatArray | None = None) -> FloatArray:
        """Return x with x = (1 - discount) initial + discount P' x."""
        inflow = (1.0 - self.discount) * initial
        return self._solve(inflow, guess, 0.0, transposed=True)

    def residual(self, x: FloatArray, constant: FloatArray, *, transposed: bool) -> FloatArray:
        """Return constant + discount P x - x, or the same with P'."""
        return self._system(transposed).residual(x, constant)

    def _solve(
        self, constant: FloatArray, guess: FloatArray | None, tol: float, *, transposed: bool
    ) -> FloatArray:
        cheap = self._natural if self._natural.passes <= _CHEAP_PASSES else None
        if (band := self._band or cheap) is not None:
            return self._eliminated(band, constant, transposed)
        system = self._system(transposed)
        x, is_solved = system.solve(constant, guess, tol, _CHEAP_PASSES)
        if not is_solved:
            # No more work on iterating than elimination would take: twice the better of the two.
            band = self._narrowest
            most = np.inf if band is None else band.passes
            x, is_solved = system.solve(constant, x, tol, most)
            if band is not None and not is_solved:
                return self._eliminated(band, constant, transposed)
        return x if transposed or tol > 0.0 else self._iterated_again(system, x, constant)

    def _iterated_again(
        self, system: FixedPoint, x: FloatArray, constant: FloatArray
    ) -> FloatArray:
        """Return values that an iteration found, corrected where they are rough in some states."""

        def solve(residual: FloatArray) -> FloatArray:
            return system.solve(residual, None, 0.0, _CHEAP_PASSES)[0]

        return self._refined(x, constant, solve, _ROUGH, transposed=False)

    def _eliminated(self, band: Band, constant: FloatArray, transposed: bool) -> FloatArray:
        """Return the answer of elimination in a band, corrected by what it leaves."""
        return self._refined(
            self._banded(band, constant, transposed),
            constant,
            lambda residual: self._banded(band, residual, transposed),
            0.0,
            transposed=transposed,
        )

    def _refined(
        self,
        x: FloatArray,
        constant: FloatArray,
        solve: Callable[[FloatArray], FloatArray],
        enough: float,
        *,
        transposed: bool,
    ) -> FloatArray:
        """Return x corrected by what it leaves, until that is no more than enough."""
        best, smallest = x, np.inf
        for _ in range(_REFINEMENTS):
            residual = self.residual(x, constant, transposed=transposed)
            off = self._off(residual, x, constant, transposed)
            if not off < smallest:
                break
            best, smallest = x, off
            if off <= enough:
                break
            x = x + solve(residual)
        return best

    def _off(
        self, residual: FloatArray, x: FloatArray, constant: FloatArray, transposed: bool
    ) -> float:
        """Return what a residual is judged by.

        For values, the largest share of its own equation's terms: solvers leave errors relative to
        the largest value, and states whose values are small beside it are to be as exact. An
        occupancy has mass one, and is judged by the whole.
        """
        if transposed:
            return float(np.abs(residual).sum())
        size = self.residual(np.abs(x), np.abs(constant), transposed=False) + 2.0 * np.abs(x)
        return float(np.max(np.abs(residual) / np.where(size > 0.0, size, 1.0)))

    @cached_property
    def _natural(self) -> Band:
        """The band of the states as they are numbered."""
        below, above = reach(self.transition.indptr, self.transition.indices)
        return Band.of(self.transition, np.arange(self.transition.shape[0]), below, above)

    @cached_property
    def _narrowest(self) -> Band | None:
        """The narrowest band that is known, None where it is too wide for the memory."""
        found = self._natural
        if self.transition.nnz <= _MAX_ORDERED:
            order = reverse_cuthill_mckee(sparse.csr_matrix(self.transition))
            rows, columns = _places(self.transition, order)
            offsets = columns - rows
            widths = -int(offsets.min(initial=0)), int(offsets.max(initial=0))
            other = Band.of(self.transition, order, *widths)
            found = min(found, other, key=lambda band: band.passes)
        return found if found.n_entries <= _MAX_ENTRIES else None

    def _banded(self, band: Band, constant: FloatArray, transposed: bool) -> FloatArray:
        """Return the answer of elimination, whose factors serve both systems and are kept."""
        if self._factors is None:
            self._band = band
            diagonals = self._diagonals(band)
            factors, pivots, problem = lapack.dgbtrf(
                diagonals, band.below, band.above, overwrite_ab=True
            )
            assert problem == 0  # rows are diagonally dominant
            self._factors = factors, pivots
        x = np.empty(len(constant))
        x[band.order], _ = lapack.dgbtrs(
            self._factors[0], band.below, band.above, constant[band.order], self._factors[1],
            trans=int(transposed),
        )  # fmt: skip
        return x

    def _diagonals(self, band: Band) -> FloatArray:
        """Return I - discount P as diagonals, below those that row exchanges may fill."""
        row, column = _places(self.transition, band.order)
        diagonals = np.zeros((2 * band.below + band.above + 1, len(band.order)), order="F")
        # A plain assignment: products of sparse matrices hold every entry once.
        diagonals[band.below + band.above + row - column, column] = (
            -self.discount * self.transition.data
        )
        diagonals[band.below + band.above] += 1.0
        return diagonals

    def _system(self, transposed: bool) -> FixedPoint:
        return self._backward if transposed else self._forward

    @cached_property
    def _forward(self) -> FixedPoint:
        return FixedPoint(self.transition, self.discount)

    @cached_property
    def _backward(self) -> FixedPoint:
        transposed = sparse.csr_array(self.transition.T)
        return FixedPoint(transposed, self.discount, is_transposed=True)


class MixedChain(Chain):
    """The chain of a policy that mixes actions of a large table, given by its chances (N,).

    Its matrix may be as large as the table's, so it is made only where passes over the table
    converge slowly.
    """

    def __init__(self, model: TabularModel, chances: FloatArray) -> None:
        super().__init__(lambda: mixed_rows(model, chances), model.discount)
        self._mixed = {
            transposed: MixedFixedPoint(model, chances, is_transposed=transposed)
            for transposed in (False, True)
        }

    def residual(self, x: FloatArray, constant: FloatArray, *, transposed: bool) -> FloatArray:
        return self._mixed[transposed].residual(x, constant)

    def _solve(
        self, constant: FloatArray, guess: FloatArray | None, tol: float, *, transposed: bool
    ) -> FloatArray:
        system = self._mixed[transposed]
        x, is_solved = system.solve(constant, guess, tol, _FEW_PASSES)
        if not is_solved:
            return super()._solve(constant, x, tol, transposed=transposed)
        return x if transposed or tol > 0.0 else self._iterated_again(system, x, constant)


def mixed_rows(model: TabularModel, chances: FloatArray) -> sparse.csr_array:
    """Return the transition matrix (S, S) of a policy given by its chances (N,)."""
    used = np.flatnonzero(chances)
    if len(used) == model.n_states and (chances[used] == 1.0).all():
        return model.transition[used]
    starts = np.searchsorted(used, model.pair_start)
    shape = (model.n_states, model.n_pairs)
    mixer = sparse.csr_array((chances[used], used, starts), shape=shape)
    return sparse.csr_array(mixer @ model.transition)


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


def _places(matrix: sparse.csr_array, order: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the entries of a matrix whose states are put in an order."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    rows = np.repeat(position, np.diff(matrix.indptr))
    return rows, position[matrix.indices]
