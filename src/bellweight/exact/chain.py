"""Linear systems of the chain that a policy induces: (I - discount P) x = b and its transpose.

Three uses, one solver: values of a policy, occupancies, policy iteration. Elimination is quick in a
narrow band only, and what it costs is known beforehand (`elimination`). Where it is dear, a chain
is solved by iteration (`iteration`), whose passes cost what the chain has transitions; where that
takes longer than elimination would, elimination takes over. In every case
the residual is measured on the original system and iterated down: a solver's answer alone is not
evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray
from bellweight.exact.elimination import Band, Factors, cheapest_elimination
from bellweight.exact.iteration import FixedPoint, Known, MixedFixedPoint
from bellweight.models import TabularModel
from bellweight.models.tabular import compact

_QUICK_PASSES = 300  # elimination that costs no more than so many passes is done at once
_CHEAP_PASSES = 1_000  # of an iteration before other ways are looked for
_FEW_PASSES = 100  # for which of a table no matrix is made
_DIGITS = 36.0  # logarithm of what rounding leaves of an error
_REFINEMENTS = 3
_ROUGH = 1e-12  # residuals of an iteration that are more than this share of an equation's terms


class Chain:
    """The transition matrix of a policy (S, S), with solvers for the discounted systems.

    `like` is the chain of a similar policy, which was solved: where it was eliminated iterations
    are not tried, and what it found of its states is where this one begins.
    """

    def __init__(
        self,
        transition: sparse.csr_array | Callable[[], sparse.csr_array],
        discount: float,
        *,
        like: Chain | None = None,
    ) -> None:
        self._given = transition
        self.discount = discount
        self._is_slow = like is not None and like.is_eliminated
        self._told = None if like is None else like._tells
        self._way: Band | None = None  # that was taken
        self._factors: Factors | None = None

    @cached_property
    def transition(self) -> sparse.csr_array:
        """The matrix (S, S), made when it is first needed."""
        return self._given() if callable(self._given) else self._given

    @property
    def is_eliminated(self) -> bool:
        """Whether answers come from elimination: as exact as they can be, whatever is asked for."""
        return self._factors is not None

    @property
    def passes(self) -> float:
        """What values cost, in passes over the matrix."""
        return self._forward.passes if self._way is None else self._way.passes

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
        if self._factors is None and (way := self._at_once) is not None:
            self._eliminate(way)
        if self._factors is not None:
            return self._eliminated(self._factors, constant, transposed)
        system = self._system(transposed)
        x, is_solved = system.solve(constant, guess, tol, _CHEAP_PASSES)
        if not is_solved:
            # No more work on iterating than elimination would take: twice the better of the two.
            way = self._cheapest
            most = np.inf if way is None else way.passes
            x, is_solved = system.solve(constant, x, tol, most)
            if way is not None and not is_solved:
                return self._eliminated(self._eliminate(way), constant, transposed)
        return x if transposed or tol > 0.0 else self._iterated_again(system, x, constant)

    def _iterated_again(
        self, system: FixedPoint, x: FloatArray, constant: FloatArray
    ) -> FloatArray:
        """Return values that an iteration found, corrected where they are rough in some states."""

        def solve(residual: FloatArray) -> FloatArray:
            return system.solve(residual, None, 0.0, _CHEAP_PASSES)[0]

        return self._refined(x, constant, solve, _ROUGH, transposed=False)

    def _eliminate(self, way: Band) -> Factors:
        self._way, self._factors = way, way.factors(self.transition, self.discount)
        return self._factors

    def _eliminated(self, factors: Factors, constant: FloatArray, transposed: bool) -> FloatArray:
        """Return the answer of elimination, corrected by what it leaves."""
        return self._refined(
            factors(constant, transposed),
            constant,
            lambda residual: factors(residual, transposed),
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
        size = self._size(x, constant, transposed)
        for _ in range(_REFINEMENTS):
            residual = self.residual(x, constant, transposed=transposed)
            shares = np.abs(residual) / size
            off = float(shares.sum() if transposed else shares.max())
            if not off < smallest:
                break
            best, smallest = x, off
            if off <= enough:
                break
            x = x + solve(residual)
        return best

    def _size(self, x: FloatArray, constant: FloatArray, transposed: bool) -> FloatArray | float:
        """Return what residuals are judged by.

        For values, each by its own equation's terms (S,): solvers leave errors relative to the
        largest value, and states whose values are small beside it are to be as exact. An occupancy
        has mass one, and is judged by the whole.
        """
        if transposed:
            return 1.0
        size = self.residual(np.abs(x), np.abs(constant), transposed=False) + 2.0 * np.abs(x)
        return np.where(size > 0.0, size, 1.0)

    @cached_property
    def _at_once(self) -> Band | None:
        """The elimination that is done before any iteration is tried."""
        if self._is_slow:
            return self._cheapest
        # Plain iteration takes no longer than this, whatever the chain.
        most = min(_QUICK_PASSES, _DIGITS / (1.0 - self.discount))
        band = Band.as_numbered(self.transition)
        return band if band.passes <= most else None

    @cached_property
    def _cheapest(self) -> Band | None:
        """The cheapest elimination that is known, None where all are too large for the memory."""
        return cheapest_elimination(self.transition)

    def _known(self, transposed: bool) -> Known | None:
        """Return what is known of a system beforehand."""
        return None if transposed else self._told

    @property
    def _tells(self) -> Known | None:
        """What is known of the system of values afterwards."""
        system = self.__dict__.get("_forward")  # which may not have been needed
        return self._told if system is None else system.known

    def _system(self, transposed: bool) -> FixedPoint:
        return self._backward if transposed else self._forward

    @cached_property
    def _forward(self) -> FixedPoint:
        return FixedPoint(self.transition, self.discount, similar=self._known(False))

    @cached_property
    def _backward(self) -> FixedPoint:
        transposed = sparse.csr_array(self.transition.T)
        return FixedPoint(transposed, self.discount, is_transposed=True, similar=self._known(True))


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

    def _known(self, transposed: bool) -> Known | None:
        return self._mixed[transposed].known

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
    # In 32 bits where they fit: the product has indices of the wider of the two types.
    starts, used = compact(np.searchsorted(used, model.pair_start)), compact(used)
    shape = (model.n_states, model.n_pairs)
    mixer = sparse.csr_array((chances[used], used, starts), shape=shape)
    return sparse.csr_array(mixer @ model.transition)
