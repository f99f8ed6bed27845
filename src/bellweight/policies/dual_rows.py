"""The softmax of a dual, laid out once for tables, compiled loops and linear models.

In a state with duals y (A,) and mass m = sum(y), the policy follows

    exp(y_a / temperature) / sum_b exp(y_b / temperature)   with share m / (m + smoothing_mass),

and its target with the rest (eq. target_guided_softmax_policy).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.compiled import running_sums


@dataclass(frozen=True, eq=False)
class DualRows:
    """The softmax in each of m states; state k has the actions starts[k] to starts[k + 1] - 1.

    `chances` (n,) are the probabilities of the softmax, `share` (m,) says how often it is followed.
    """

    starts: IntArray
    chances: FloatArray
    share: FloatArray

    @classmethod
    def of(
        cls, duals: FloatArray, starts: IntArray, temperature: float, smoothing_mass: float
    ) -> DualRows:
        """Lay out duals (n,) by state; minus infinity marks an action that is not admissible."""
        first, counts = starts[:-1], np.diff(starts)
        # Subtracting the largest exponent of the state keeps the exponentials from overflowing.
        highest = np.maximum.reduceat(duals, first)
        weight = np.exp((duals - np.repeat(highest, counts)) / temperature)
        chances = weight / np.repeat(np.add.reduceat(weight, first), counts)
        mass = np.add.reduceat(np.where(np.isneginf(duals), 0.0, duals), first)
        return cls(starts, chances, mass / (mass + smoothing_mass))

    @property
    def sums(self) -> FloatArray:
        """The running sums (n,) of the chances of each state, to draw from."""
        found: FloatArray = running_sums(self.chances, self.starts)
        return found

    def mixed_with(self, target: FloatArray) -> FloatArray:
        """Return the probabilities (n,) of the policy, given those of its target (n,)."""
        share = np.repeat(self.share, np.diff(self.starts))
        return np.asarray(share * self.chances + (1.0 - share) * target)
