"""The interface of episodes on every kind of model: a model and a policy, ready to simulate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from bellweight.common.checks import FloatArray
from bellweight.common.streams import Keys


class Episodes(Protocol):
    """What can be simulated in blocks of episodes."""

    def block(self, first: int, last: int, horizon: int, keys: Keys) -> FloatArray:
        """Return the discounted costs of episodes first, ..., last - 1."""
        ...


class FeatureRollout(ABC):
    """A model and a policy whose episodes give costs, features and visits to the dual."""

    @abstractmethod
    def _run(
        self, first: int, last: int, horizon: int, keys: Keys
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return costs (n,), summed features (n, K) and discounted visits with dual mass (n,)."""

    def block(self, first: int, last: int, horizon: int, keys: Keys) -> FloatArray:
        """Return the discounted costs of episodes first, ..., last - 1."""
        return self._run(first, last, horizon, keys)[0]

    def moment_block(
        self, first: int, last: int, horizon: int, keys: Keys
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the mean and summed squared deviations of features, and the dual hits."""
        _, sums, hits = self._run(first, last, horizon, keys)
        mean = sums.mean(axis=0)
        return mean, ((sums - mean) ** 2).sum(axis=0), float(hits.sum())
