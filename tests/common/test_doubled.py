"""Arithmetic with twice the digits, against fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellweight.common import doubled as dd
from bellweight.common.doubled import Doubled, doubled

NUMBERS = st.floats(-1e30, 1e30).filter(lambda x: x == 0.0 or abs(x) > 1e-30)
ERROR = Fraction(1, 2**98)


def exactly(value: Doubled) -> Fraction:
    return Fraction(float(value.high)) + Fraction(float(value.low))


def split(first: float, second: float) -> Doubled:
    """A number with a low part of its own."""
    return dd.add(doubled(np.array(first)), doubled(np.array(second * 1e-17)))


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_sums_products_and_quotients(a: float, b: float, c: float, d: float) -> None:
    x, y = split(a, b), split(c, d)
    left, right = exactly(x), exactly(y)
    size = abs(left) + abs(right)
    assert abs(exactly(dd.add(x, y)) - (left + right)) <= ERROR * size
    assert abs(exactly(dd.subtract(x, y)) - (left - right)) <= ERROR * size
    assert abs(exactly(dd.multiply(x, y)) - left * right) <= ERROR * abs(left * right)
    if right != 0:
        assert abs(exactly(dd.divide(x, y)) - left / right) <= ERROR * abs(left / right)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_sums_of_groups(counts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(counts)])
    terms = rng.normal(size=starts[-1]) * 10.0 ** rng.integers(-15, 15, starts[-1])
    found = dd.total_by_group(doubled(terms), starts)
    for group, (start, end) in enumerate(pairwise(starts)):
        parts = [Fraction(float(term)) for term in terms[start:end]]
        size = sum((abs(part) for part in parts), Fraction(0))
        error = abs(exactly(found.at(group)) - sum(parts, Fraction(0)))
        assert error <= ERROR * size


def test_products_of_matrices() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(4, 6)), rng.normal(size=(6, 3))
    found = dd.matrix_product(doubled(left), doubled(right))
    column = dd.product(doubled(left), doubled(right[:, 1]))
    for i in range(4):
        true = sum(Fraction(left[i, k]) * Fraction(right[k, 1]) for k in range(6))
        assert abs(exactly(found.at((i, 1))) - true) <= ERROR * 100
        assert abs(exactly(column.at(i)) - true) <= ERROR * 100
    assert dd.dot(doubled(left[0]), doubled(right[:, 1])) == float(
        sum(Fraction(left[0, k]) * Fraction(right[k, 1]) for k in range(6))
    )
