"""Discounted linear systems too large to factorise: three iterations in turns.

The system is x = constant + discount P x, or the same with P'. The work of every method is counted
in passes over the entries of P:

- *successive approximation*, with the constant part of the error (or the total mass) corrected at
  once, is fast where a chain forgets quickly where it was, as random graphs do.
- a *sweep* goes through the states forwards and backwards and replaces each x_i by the solution of
  its own equation. I - discount P is an M-matrix, so sweeps converge from every start, never slower
  than successive approximation; they are fast where states follow each other in one direction.
- GMRES, preconditioned by groups of states and one sweep (`grouping`), is fast where a chain mixes
  and may stand still where it does not. Where it is slow the groups are improved first.

Which of them is fastest differs from chain to chain, so all are tried and the best one goes on,
until the residual, measured on the system itself, is small enough. In the sup norm an error of x is
at most residual / (1 - discount), in the 1-norm the same holds for P'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import lstsq

from bellweight.common.checks import FloatArray
from bellweight.exact.grouping import SWEEP, GroupedSweep
from bellweight.exact.passes import orthogonalise
from bellweight.exact.table_passes import ChainPasses, MixedPasses, Steps
from bellweight.models import TabularModel

_CYCLE = 30  # the most approximations or sweeps of a turn
_DIRECTIONS = 40  # of GMRES before it starts again
_PART = 0.3  # entries passed in the time that each number of a direction takes, for each other one
_SURE = 0.2  # of the tolerance, because the residual spreads in another way at the end
_LOOKS = 3  # directions between two looks at how far GMRES has come
_EARLY = 9  # directions after which GMRES with good groups
_GAINED = 0.1  # has made the residual no longer than this share
_IMPROVEMENTS = 2  # of its groups, at the most
_RETRY = 8  # turns after which another method is tried again
_NEAR = 1e3  # residuals so many times as large as rounding may be all that can be reached
_CLOSE = 2.0  # residuals so many times as large are the last where a turn no longer halves them
_NO_GAIN = 0.3  # of what a plain pass gains (1 - discount): near rounding, less is nothing
_PROMISES = 0.3, 0.03  # what GMRES and sweeps are expected to gain for each pass at first
_EPSILON = float(np.finfo(np.float64).eps)
_SQUARED = 1e-140  # lengths above this have squares with all digits


_Method = Callable[[FloatArray, FloatArray, float], tuple[FloatArray, float]]


@dataclass(frozen=True, eq=False)
class Known:
    """What a system tells of similar ones.

    That is the presence (S,) of its chain (see `grouping`), and the most that a pass of successive
    approximation gained: the logarithm of how many times smaller it made the residual.
    """

    presence: FloatArray | None = None
    gain: float = np.inf


class FixedPoint:
    """Solves x = constant + discount matrix x for one matrix, a transition matrix or a transpose.

    `is_transposed` says which: it decides the norm in which residuals bound errors. `similar` is
    what is known of a similar system.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        discount: float,
        *,
        is_transposed: bool = False,
        similar: Known | None = None,
    ) -> None:
        self._matrix = matrix
        self._similar = Known() if similar is None else similar
        self._gain = self._similar.gain
        self._improvements = 0
        self._discount = discount
        self._order = 1 if is_transposed else np.inf
        self.passes = 0.0  # of the last answer

    def size(self, vector: FloatArray) -> float:
        """Return the norm of a vector in which a residual bounds the error."""
        return float(np.linalg.norm(vector, self._order))

    def residual(self, x: FloatArray, constant: FloatArray) -> FloatArray:
        """Return constant + discount matrix x - x."""
        return constant + self._discount * (self._matrix @ x) - x

    def solve(
        self,
        constant: FloatArray,
        guess: FloatArray | None = None,
        tol: float = 0.0,
        most_passes: float = np.inf,
    ) -> tuple[FloatArray, bool]:
        """Return x with a residual of at most `tol`, or as small as rounding allows.

        The second answer is False when that takes more than `most_passes` passes over the matrix.
        """
        x = constant / (1.0 - self._discount) if guess is None else np.array(guess)
        methods = self._methods
        gains = [self._gain, *_PROMISES][: len(methods)]
        residual = self.residual(x, constant)
        best, left = x, self.size(residual)
        turn, self.passes = 0, 0.0
        while left > (enough := max(tol, self._rounding(x, constant))):
            expected = np.log(left / enough) / max(*gains, 1e-300)
            if self.passes + (expected if turn >= len(methods) else 0.0) > most_passes:
                return best, False
            is_still = turn > 0 and max(gains) <= _NO_GAIN * (1.0 - self._discount)
            if is_still and left <= _NEAR * enough:
                break
            turn += 1
            # The others are tried again in turn, because what gains most changes on the way.
            retried = turn % _RETRY == 0
            used = turn // _RETRY % len(methods) if retried else int(np.argmax(gains))
            following, passes = methods[used](x, constant, enough)
            after = self.residual(following, constant)
            # GMRES makes the 2-norm smaller, so that is what progress is measured in.
            share = _length(after) / _length(residual)
            gains[used] = -float(np.log(max(share, 1e-300))) / passes
            if used == 0:  # near the end rounding lets no method gain anything
                self._gain = gains[0] if np.isinf(self._gain) else max(self._gain, gains[0])
            if self.size(after) < left:
                best, left = following, self.size(after)
            if share < 1.0:
                x, residual = following, after
            self.passes += passes
            if share > 0.5 and left <= _CLOSE * self._rounding(x, constant):
                break
        return best, True

    @property
    def _methods(self) -> tuple[_Method, ...]:
        return (self._approximations, self._gmres, self._sweeps)

    def _follow(self, x: FloatArray, constant: FloatArray, following: FloatArray) -> Steps:
        """Write constant + discount matrix x; return what the pass tells (see `passes.follow`)."""
        return self._passes.follow(constant, self._discount, x, following)

    @cached_property
    def _passes(self) -> ChainPasses:
        return ChainPasses(self._matrix)

    def _rounding(self, x: FloatArray, constant: FloatArray) -> float:
        """Return the residual below which rounding decides."""
        return 4.0 * _EPSILON * (self.size(x) + self.size(constant))

    def _approximations(
        self, x: FloatArray, constant: FloatArray, tol: float
    ) -> tuple[FloatArray, float]:
        """Return x after a turn of successive approximation, and the number of passes.

        What an approximation leaves of a constant, or of the total mass, takes longest: it is known
        and is corrected at the end of the turn.
        """
        n = 0
        x, following = np.array(x), np.empty(len(x))
        size = np.inf
        while n < _CYCLE and size > tol:
            n += 1
            low, high, moved, mass = self._follow(x, constant, following)
            x, following = following, x
            size = moved if self._order == 1 else 0.5 * (high - low)
        if self._order == 1:
            total = float(constant.sum()) / (1.0 - self._discount)
            return x * (total / mass) if mass * total > 0.0 else x, n
        return x + 0.5 * self._discount / (1.0 - self._discount) * (low + high), n

    def _sweeps(self, x: FloatArray, constant: FloatArray, tol: float) -> tuple[FloatArray, float]:
        """Return x after a turn of sweeps, and what they cost in passes over the matrix."""
        x = np.array(x)
        for _ in range(_CYCLE):
            self._grouped.sweep(constant, x)
        return x, SWEEP * _CYCLE

    def _gmres(self, x: FloatArray, constant: FloatArray, tol: float) -> tuple[FloatArray, float]:
        """Return x after a cycle of GMRES, and what it costs in passes over the matrix.

        Better groups take no longer than ten directions: where many are needed they come first.
        """
        x, cost, is_done = self._cycle(x, constant, tol)
        while not is_done and self._is_improvable:
            self._grouped, self._improvements = self._grouped.improved(), self._improvements + 1
            x, more, is_done = self._cycle(x, constant, tol)
            cost += more
        return x, cost

    def _cycle(
        self, x: FloatArray, constant: FloatArray, tol: float
    ) -> tuple[FloatArray, float, bool]:
        """Return x after one cycle of GMRES, its cost in passes, and whether it came to an end."""
        residual = self.residual(x, constant)
        length = _length(residual)
        tol *= _SURE * length / self.size(residual)  # GMRES knows the 2-norm only
        directions = np.empty((_DIRECTIONS + 1, len(x)))
        directions[0] = residual / length
        products = np.zeros((_DIRECTIONS + 1, _DIRECTIONS))
        shares, parts = np.zeros(0), np.zeros(_DIRECTIONS)
        is_done = False
        for k in range(_DIRECTIONS):
            swept = self._grouped(directions[k])
            image = swept - self._discount * (self._matrix @ swept)
            rest = orthogonalise(directions[: k + 1], image, parts)
            products[: k + 1, k] = parts[: k + 1]
            products[k + 1, k] = rest
            if rest > 0.0:
                np.divide(image, rest, out=directions[k + 1])
            if rest == 0.0 or k % _LOOKS == _LOOKS - 1 or k == _DIRECTIONS - 1:
                shares, left = _least_squares(products[: k + 2, : k + 1], length)
                is_done = rest == 0.0 or left <= tol
                if is_done or (k + 1 == _EARLY and self._is_improvable and left > _GAINED * length):
                    break
        n = len(shares)
        cost = (self._grouped.passes + 1.0) * (n + 1)
        cost += _PART * n * n * len(x) / max(1, self._matrix.nnz)
        return x + self._grouped(shares @ directions[:n]), cost, is_done

    @property
    def known(self) -> Known:
        """What this system tells of similar ones."""
        groups = self.__dict__.get("_grouped")  # which may not have been needed
        return Known(self._similar.presence if groups is None else groups.presence, self._gain)

    @property
    def _is_improvable(self) -> bool:
        return self._improvements < _IMPROVEMENTS and self._grouped.has_groups

    @cached_property
    def _grouped(self) -> GroupedSweep:
        """The preconditioner."""
        return GroupedSweep(
            self._matrix,
            self._discount,
            is_transposed=self._order == 1,
            presence=self._similar.presence,
        )


class MixedFixedPoint(FixedPoint):
    """The same for the chain of a policy that mixes actions, by passes over the pairs of its table.

    No matrix is made, which may be as large as the table's; successive approximation needs none.
    """

    def __init__(
        self, model: TabularModel, chances: FloatArray, *, is_transposed: bool = False
    ) -> None:
        super().__init__(model.transition, model.discount, is_transposed=is_transposed)
        mixed = MixedPasses(model, chances)
        self._run = mixed.spread if is_transposed else mixed.follow

    def residual(self, x: FloatArray, constant: FloatArray) -> FloatArray:
        following = np.empty(len(x))
        self._follow(x, constant, following)
        return following - x

    @property
    def _methods(self) -> tuple[_Method, ...]:
        return (self._approximations,)

    def _follow(self, x: FloatArray, constant: FloatArray, following: FloatArray) -> Steps:
        return self._run(constant, self._discount, x, following)


def _least_squares(products: FloatArray, length: float) -> tuple[FloatArray, float]:
    """Return the shares of the directions that leave least of the first, and the length left."""
    wanted = np.zeros(len(products))
    wanted[0] = length
    with np.errstate(over="ignore"):  # it squares what is left, which is not used
        shares = np.asarray(lstsq(products, wanted)[0], dtype=np.float64)
    return shares, _length(wanted - products @ shares)


def _length(vector: FloatArray) -> float:
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(vector))
    if _SQUARED < length < np.inf:
        return length
    largest = float(np.abs(vector).max())  # squares of very large or very small numbers are lost
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0.0 else 0.0
