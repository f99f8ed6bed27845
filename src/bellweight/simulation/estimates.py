"""Means of simulated episodes, and how far they may be off."""

from __future__ import annotations

from scipy.special import stdtrit

from bellweight.common.checks import FloatArray

CONFIDENCE = 0.95


def mean_and_half_width(sample: FloatArray) -> tuple[float, float]:
    """Return the mean of a sample and its 95 % half-width (Student's t)."""
    quantile = float(stdtrit(len(sample) - 1, 0.5 + CONFIDENCE / 2.0))
    return float(sample.mean()), quantile * float(sample.std(ddof=1)) / len(sample) ** 0.5


def one_sided(half_width: float, n: int, confidence: float) -> float:
    """Return how far the one-sided limit of a mean lies from it, from the 95 % half-width."""
    share = stdtrit(n - 1, confidence) / stdtrit(n - 1, 0.5 + CONFIDENCE / 2.0)
    return half_width * float(share)
