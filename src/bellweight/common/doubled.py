"""Arithmetic with twice the digits: a number is the sum of a high and a low part.

Products are exact up to a relative error of about 1e-31, and sums up to that share of their terms,
from double precision alone: the rounding error of a sum or of a product of two doubles is a double
itself, and is kept (Knuth, Dekker). Every step is one elementwise operation, which all machines
carry out alike, so results are the same to the last bit everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bellweight.common.checks import FloatArray, IntArray

_SPLIT = 134217729.0  # 2^27 + 1 cuts a double into two halves


class Doubled(NamedTuple):
    """Numbers as high + low; the high part is the number rounded to a double."""

    high: FloatArray
    low: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.high.shape

    def at(self, index: Any) -> Doubled:
        """Return some of the numbers, as an index of an array says."""
        return Doubled(self.high[index], self.low[index])

    def scaled(self, factor: FloatArray) -> Doubled:
        """Return the numbers times powers of two, which is exact."""
        return Doubled(self.high * factor, self.low * factor)

    @property
    def transposed(self) -> Doubled:
        return Doubled(self.high.T, self.low.T)

    def __neg__(self) -> Doubled:
        return Doubled(-self.high, -self.low)


def doubled(values: FloatArray) -> Doubled:
    """Return doubles with a low part of zero."""
    high = np.asarray(values, dtype=np.float64)
    return Doubled(high, np.zeros_like(high))


def add(x: Doubled, y: Doubled) -> Doubled:
    """Return x + y."""
    total, error = _two_sum(x.high, y.high)
    return _two_sum_ordered(total, error + (x.low + y.low))


def subtract(x: Doubled, y: Doubled) -> Doubled:
    """Return x - y."""
    return add(x, -y)


def multiply(x: Doubled, y: Doubled) -> Doubled:
    """Return x y."""
    product, error = _two_product(x.high, y.high)
    return _two_sum_ordered(product, error + (x.high * y.low + x.low * y.high))


def divide(x: Doubled, y: Doubled) -> Doubled:
    """Return x / y."""
    first = x.high / y.high
    rest = subtract(x, multiply(doubled(first), y))
    second = rest.high / y.high
    rest = subtract(rest, multiply(doubled(second), y))
    total = _two_sum_ordered(first, second)
    return add(total, doubled(rest.high / y.high))


def product(matrix: Doubled, vector: Doubled) -> Doubled:
    """Return matrix (n, k) times vector (k,)."""
    total = doubled(np.zeros(matrix.shape[0]))
    for k in range(matrix.shape[1]):
        total = add(total, multiply(matrix.at((slice(None), k)), vector.at(k)))
    return total


def dot(x: Doubled, y: Doubled) -> float:
    """Return x' y (n,), rounded to a double."""
    return float(total(multiply(x, y)).high) if len(x.high) else 0.0


def matrix_product(left: Doubled, right: Doubled) -> Doubled:
    """Return left (n, k) times right (k, m)."""
    total = doubled(np.zeros((left.shape[0], right.shape[1])))
    for k in range(left.shape[1]):
        column, row = left.at((slice(None), k, None)), right.at((k, None))
        total = add(total, multiply(column, row))
    return total


def solve_definite(matrix: Doubled, right: Doubled) -> Doubled:
    """Return the solution (n,) of a positive definite system, by elimination along its diagonal."""
    n = len(right.high)
    scale = np.exp2(-np.round(0.5 * np.log2(np.diag(matrix.high))))
    scaled = matrix.scaled(scale[:, None] * scale)
    right = right.scaled(scale)
    work = Doubled(
        np.column_stack([scaled.high, right.high]), np.column_stack([scaled.low, right.low])
    )
    for k in range(n):
        factor = divide(work.at((slice(None), k)), work.at((k, k)))
        factor.high[k] = factor.low[k] = 0.0
        work = subtract(work, multiply(factor.at((slice(None), None)), work.at((k, None))))
    diagonal = np.arange(n)
    return divide(work.at((diagonal, n)), work.at((diagonal, diagonal))).scaled(scale)


def total(terms: Doubled) -> Doubled:
    """Return the sum (...) of terms (n, ...), n > 0, added in pairs."""
    while len(terms.high) > 1:
        half = len(terms.high) // 2
        paired = add(terms.at(slice(half)), terms.at(slice(half, 2 * half)))
        rest = terms.at(slice(2 * half, None))
        terms = stacked(paired, rest)
    return terms.at(0)


def total_by_group(terms: Doubled, starts: IntArray) -> Doubled:
    """Return the sums (n, ...) of consecutive groups of terms; `starts` (n + 1,) cuts them.

    Neighbours are added in pairs until each group is one number.
    """
    counts, starts = np.diff(starts), starts[:-1]
    while counts.max(initial=0) > 1:
        halved = (counts + 1) // 2
        begins = np.cumsum(halved) - halved
        group = np.repeat(np.arange(len(counts)), halved)
        place = 2 * (np.arange(len(group)) - begins[group])
        first, paired = starts[group] + place, np.flatnonzero(place + 1 < counts[group])
        sums = terms.at(first)
        both = add(sums.at(paired), terms.at(first[paired] + 1))
        sums.high[paired], sums.low[paired] = both
        terms, starts, counts = sums, begins, halved
    found = doubled(np.zeros((len(counts), *terms.shape[1:])))
    some = np.flatnonzero(counts)
    found.high[some], found.low[some] = terms.at(starts[some])
    return found


def stacked(first: Doubled, second: Doubled) -> Doubled:
    """Return the numbers of both, one after the other."""
    return Doubled(
        np.concatenate([first.high, second.high]), np.concatenate([first.low, second.low])
    )


def _two_sum(a: FloatArray, b: FloatArray) -> Doubled:
    total = a + b
    part = total - a
    return Doubled(total, (a - (total - part)) + (b - part))


def _two_sum_ordered(a: FloatArray, b: FloatArray) -> Doubled:
    """Return a + b exactly, where a is the larger one."""
    total = a + b
    return Doubled(total, b - (total - a))


def _two_product(a: FloatArray, b: FloatArray) -> Doubled:
    result = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - result) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Doubled(result, error)


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    large = _SPLIT * a
    high = large - (large - a)
    return high, a - high
