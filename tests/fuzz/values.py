"""Values of policies and optimal values, enclosed: rounding is corrected with exact residuals.

Vectors are integers over one power of two, so that sums and products are exact and quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from .rational import Integers, UndecidedError, integers

Floats = NDArray[np.float64]

_CORRECTIONS = 4
_IMPROVEMENTS = 500


@dataclass(frozen=True, eq=False)
class Numbers:
    """A vector of fractions: integers over a power of two."""

    parts: Integers
    scale: int

    @classmethod
    def of(cls, floats: Any) -> Numbers:
        return cls(*integers(floats))

    def __getitem__(self, place: Any) -> Numbers:
        return Numbers(self.parts[place], self.scale)

    def __add__(self, other: Numbers) -> Numbers:
        scale = max(self.scale, other.scale)
        first, second = self.parts * (scale // self.scale), other.parts * (scale // other.scale)
        return Numbers(first + second, scale)

    def __neg__(self) -> Numbers:
        return Numbers(-self.parts, self.scale)

    def __sub__(self, other: Numbers) -> Numbers:
        return self + -other

    def __matmul__(self, other: Numbers) -> Fraction:
        return Fraction(int(self.parts @ other.parts), self.scale * other.scale)

    def sizes(self) -> Numbers:
        """Return the absolute values."""
        return Numbers(np.abs(self.parts), self.scale)

    def fraction(self, place: int) -> Fraction:
        """Return one entry."""
        return Fraction(int(self.parts[place]), self.scale)

    def floats(self) -> Floats:
        """Return the entries, rounded."""
        return np.array([int(part) / self.scale for part in self.parts])


@dataclass(frozen=True, eq=False)
class Exactly:
    """The numbers of a model without rounding."""

    model: Any
    cost: Numbers
    initial: Numbers
    chances: Integers
    scale: int

    @classmethod
    def of(cls, model: Any) -> Exactly:
        chances, scale = integers(model.transition.data)
        discount, below = integers([model.discount])
        return cls(
            model, Numbers.of(model.cost), Numbers.of(model.initial), chances * discount[0],
            scale * below,
        )  # fmt: skip

    def qualities(self, values: Numbers) -> Numbers:
        """Return cost plus discounted next value of every pair."""
        moves = self.model.transition
        terms = self.chances * values.parts[moves.indices]
        # Every row has an entry, because its chances sum to one.
        following = np.add.reduceat(terms, moves.indptr[:-1])
        return self.cost + Numbers(following, self.scale * values.scale)

    def factor(self) -> Fraction:
        """Return the contraction of the Bellman operator: rows may sum to a little over one."""
        most = np.add.reduceat(self.chances, self.model.transition.indptr[:-1]).max()
        return max(Fraction(int(most), self.scale), Fraction(self.model.discount))


def policy_values(exactly: Exactly, pairs: Any) -> Numbers:
    """Return the values of the policy that takes these pairs, to some forty digits."""
    model = exactly.model
    matrix = sparse.eye_array(model.n_states) - model.discount * model.transition[pairs]
    factors = splu(sparse.csc_array(matrix))
    values = Numbers.of(np.zeros(model.n_states))
    for _ in range(_CORRECTIONS):
        left = exactly.qualities(values)[pairs] - values
        size = max(abs(int(part)) for part in left.parts)
        if size == 0:
            break
        # The residual is scaled to one before it is rounded: nothing is lost to its size.
        step = Numbers.of(factors.solve(np.array([int(part) / size for part in left.parts])))
        values = values + _rounded(Numbers(step.parts * size, step.scale * left.scale))
    return values


def _rounded(step: Numbers) -> Numbers:
    """Return a correction with some two hundred bits, so that numbers do not grow."""
    extra = max(abs(int(part)) for part in step.parts).bit_length() - 200
    if extra <= 0 or step.scale.bit_length() <= extra:
        return step
    return Numbers(step.parts >> extra, step.scale >> extra)


def optimal_values(exactly: Exactly) -> tuple[Numbers, Fraction]:
    """Return optimal values and how far from optimal they can be, by policy iteration."""
    model = exactly.model
    starts = model.pair_start
    pairs = np.array(starts[:-1])
    for _ in range(_IMPROVEMENTS):
        values = policy_values(exactly, pairs)
        quality = exactly.qualities(values)
        least = np.minimum.reduceat(quality.parts, starts[:-1])
        better = quality.parts[pairs] > least
        gaps = Numbers(least, quality.scale) - values
        worst = max(abs(int(part)) for part in gaps.parts)
        off = Fraction(worst, gaps.scale) / (1 - exactly.factor())
        size = Fraction(max(abs(int(part)) for part in values.parts), values.scale)
        if not better.any() or off <= size / 10**25:
            if off > size / 10**20:
                raise UndecidedError(f"optimal values known to {float(off / size):.1g} only")
            return values, off
        cheapest = np.flatnonzero(quality.parts == least[model.pair_state])
        first = cheapest[np.searchsorted(model.pair_state[cheapest], np.flatnonzero(better))]
        pairs = pairs.copy()
        pairs[better] = first
    raise UndecidedError("policy iteration did not end")


def approximate_values(features: Floats, coef: Floats) -> Numbers:
    """Return features coef without rounding."""
    numbers, shared = integers(coef)
    table, scale = integers(features)
    return Numbers(table @ numbers, shared * scale)
