"""Initial distributions of event models: a state from a few uniform numbers.

An initial distribution is a plain function `initial(state, u)` that fills in the state from uniform
numbers `u`, or one of the two here, which also know their probabilities and their exact moments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError

_LONGEST_LAW = 5_000_000  # as many values as states can be enumerated


@dataclass(frozen=True)
class PointMass:
    """Every episode begins in one state."""

    state: tuple[int, ...]

    def marginals(self, upper: IntArray) -> list[FloatArray]:
        """Return the probabilities of 0, 1, 2, ... for each coordinate."""
        return [np.eye(1, value + 1, value)[0] for value in self.state]


@dataclass(frozen=True)
class Geometric:
    """Independent coordinates with probability proportional to decay^x, up to the bound if any."""

    decay: float = 0.9

    def __post_init__(self) -> None:
        checks.positive(self.decay, "decay", below=1.0)

    def marginals(self, upper: IntArray) -> list[FloatArray]:
        """Return the probabilities of 0, 1, 2, ... for each coordinate, to full precision."""
        endless = int(np.ceil(np.log(1e-40) / np.log(self.decay)))
        lengths = [endless if bound < 0 else min(endless, int(bound)) for bound in upper]
        if max(lengths) > _LONGEST_LAW:
            raise ModelError(
                f"Geometric(decay={self.decay!r}) spreads over {max(lengths):.2g} values, expected "
                f"at most {_LONGEST_LAW:.0e} where exact moments are needed: lower the decay, or "
                "pass initial as a function of (state, u), whose moments are simulated"
            )
        laws = {n: self.decay ** np.arange(n + 1, dtype=np.float64) for n in set(lengths)}
        return [laws[n] / laws[n].sum() for n in lengths]


def clipped_law(
    law: PointMass | Geometric, coordinate: int, limit: int, size: int
) -> tuple[FloatArray, float]:
    """Return the chances (size,) of a coordinate's values, the last standing for all beyond it.

    Also how far beyond the last value the coordinate is on average; `limit` is its largest value,
    -1 where there is none.
    """
    last = size - 1
    if isinstance(law, PointMass):
        value = law.state[coordinate]
        return np.eye(1, size, min(value, last))[0], float(max(value - last, 0))
    chances = law.decay ** np.arange(size, dtype=np.float64)
    if limit >= 0:
        return chances / chances.sum(), 0.0
    chances[:last] *= 1.0 - law.decay
    return chances, float(chances[last]) * law.decay / (1.0 - law.decay)


def joint_law(laws: Iterable[FloatArray]) -> FloatArray:
    """Return the chances of all states of independent coordinates, the last running fastest."""
    chances = np.ones(1)
    for law in laws:
        chances = np.outer(chances, law).ravel()
    return chances


def product_moments(laws: list[FloatArray], words: list[tuple[int, ...]]) -> FloatArray:
    """Return the expected monomials under independent coordinates."""
    degree = max(len(word) for word in words)
    powers = [
        [float(law @ np.arange(len(law), dtype=np.float64) ** p) for p in range(degree + 1)]
        for law in laws
    ]
    return np.array([np.prod([powers[i][word.count(i)] for i in set(word)]) for word in words])
