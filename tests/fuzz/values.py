"""Values of policies and optimal values, enclosed: rounding is corrected with exact residuals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from .rational import UndecidedError, integers

Floats = NDArray[np.float64]
Vector = list[Fraction]

_CORRECTIONS = 4
_IMPROVEMENTS = 500


@dataclass(frozen=True, eq=False)
class Exactly:
    """The numbers of a model as fractions."""

    model: Any
    cost: Vector
    discount: Fraction
    initial: Vector
    chances: list[list[tuple[int, Fraction]]]

    @classmethod
    def of(cls, model: Any) -> Exactly:
        moves = model.transition
        chances = [
            [(int(j), Fraction(float(p))) for j, p in zip(indices, data, strict=True)]
            for indices, data in (
                (moves.indices[a:b], moves.data[a:b])
                for a, b in zip(moves.indptr[:-1], moves.indptr[1:], strict=True)
            )
        ]
        return cls(
            model,
            [Fraction(float(c)) for c in model.cost],
            Fraction(model.discount),
            [Fraction(float(p)) for p in model.initial],
            chances,
        )

    def quality(self, pair: int, values: Vector) -> Fraction:
        """Return cost plus discounted next value."""
        following = sum((p * values[j] for j, p in self.chances[pair]), Fraction(0))
        return self.cost[pair] + self.discount * following

    def at_start(self, values: Vector) -> Fraction:
        """Return the value of the initial distribution."""
        return sum((p * v for p, v in zip(self.initial, values, strict=True) if p), Fraction(0))


def policy_values(exactly: Exactly, pairs: list[int]) -> Vector:
    """Return the values of the policy that takes these pairs, to some forty digits."""
    model = exactly.model
    matrix = sparse.eye_array(model.n_states) - model.discount * model.transition[pairs]
    factors = splu(sparse.csc_array(matrix))
    values: Vector = [Fraction(0)] * model.n_states
    for _ in range(_CORRECTIONS):
        left = [exactly.quality(pair, values) - v for pair, v in zip(pairs, values, strict=True)]
        size = max((abs(rest) for rest in left), default=Fraction(0))
        if size == 0:
            break
        # The residual is scaled to one before it is rounded: nothing is lost to its size.
        step = factors.solve(np.array([float(rest / size) for rest in left]))
        shift = Fraction(float(size))
        values = [v + shift * Fraction(float(s)) for v, s in zip(values, step, strict=True)]
    return values


def optimal_values(exactly: Exactly) -> tuple[Vector, Fraction]:
    """Return optimal values and how far from optimal they can be, by policy iteration."""
    model = exactly.model
    starts = model.pair_start
    pairs = [int(start) for start in starts[:-1]]
    for _ in range(_IMPROVEMENTS):
        values = policy_values(exactly, pairs)
        best, following = [], []
        for x, old in enumerate(pairs):
            options = range(starts[x], starts[x + 1])
            qualities = {pair: exactly.quality(pair, values) for pair in options}
            least = min(qualities, key=lambda pair: qualities[pair])
            kept = qualities[old] <= qualities[least]
            best.append(qualities[least])
            following.append(old if kept else int(least))
        gaps = [q - v for q, v in zip(best, values, strict=True)]
        off = max(abs(gap) for gap in gaps) / (1 - _factor(exactly))
        size = max(abs(v) for v in values)
        if following == pairs or off <= size / 10**25:
            if off > size / 10**20:
                raise UndecidedError(f"optimal values known to {float(off / size):.1g} only")
            return values, off
        pairs = following
    raise UndecidedError("policy iteration did not end")


def _factor(exactly: Exactly) -> Fraction:
    """Return the contraction of the Bellman operator: rows may sum to a little more than one."""
    most = max(sum((p for _, p in row), Fraction(0)) for row in exactly.chances)
    return exactly.discount * max(most, Fraction(1))


def approximate_values(features: Floats, coef: Floats) -> Vector:
    """Return features coef without rounding."""
    numbers, shared = integers(coef)
    table, scale = integers(features)
    return [Fraction(int(value), shared * scale) for value in table @ numbers]
