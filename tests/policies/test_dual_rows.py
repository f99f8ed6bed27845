"""The one layout of the dual softmax, against the formula written out state by state."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import bellweight as bw
from bellweight.common.compiled import pick, running_sums
from bellweight.policies.dual_rows import DualRows

duals = st.floats(0.0, 50.0) | st.just(-math.inf)
a_state = st.lists(duals, min_size=1, max_size=5).filter(lambda y: max(y) > 0.0)
segments = st.lists(a_state, max_size=6)


def laid_out(given_duals: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *(len(y) for y in given_duals)])
    return np.array([x for y in given_duals for x in y], dtype=np.float64), starts


@given(segments, st.floats(0.05, 20.0), st.floats(0.01, 10.0))
def test_rows_are_the_formula(
    given_duals: list[list[float]], temperature: float, smoothing_mass: float
) -> None:
    flat, starts = laid_out(given_duals)
    rows = DualRows.of(flat, starts, temperature, smoothing_mass)
    target = np.linspace(0.0, 1.0, len(flat))
    mixed = rows.mixed_with(target)
    for k, y in enumerate(given_duals):
        here = slice(starts[k], starts[k + 1])
        weights = [math.exp((x - max(y)) / temperature) for x in y]
        chances = [w / math.fsum(weights) for w in weights]
        mass = math.fsum(x for x in y if x > -math.inf)
        share = mass / (mass + smoothing_mass)
        np.testing.assert_allclose(rows.chances[here], chances, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(rows.share[k], share, rtol=1e-12)
        wanted = [share * c + (1 - share) * t for c, t in zip(chances, target[here], strict=True)]
        np.testing.assert_allclose(mixed[here], wanted, rtol=1e-12, atol=1e-300)


@given(segments, st.floats(0.05, 20.0))
def test_no_draw_falls_off_the_end_or_on_an_action_without_a_chance(
    given_duals: list[list[float]], temperature: float
) -> None:
    rows = DualRows.of(*laid_out(given_duals), temperature, 1.0)
    sums = rows.sums
    for first, last in pairwise(rows.starts):
        for u in (0.0, 0.3, 0.999, np.nextafter(1.0, 0.0)):
            assert rows.chances[pick(u, sums, first, last)] > 0.0
        running = np.cumsum(rows.chances[first:last])
        finite = np.isfinite(sums[first:last])
        np.testing.assert_allclose(sums[first:last][finite], running[finite], rtol=1e-12)
        assert not rows.chances[first:last][~finite][1:].any()


def test_sums_of_a_late_segment_have_all_their_digits() -> None:
    """Sums that run over everything, then subtracted, would lose the tenth digit here."""
    n = 100_000
    sums = running_sums(np.tile([0.1, 0.9], n), np.arange(0, 2 * n + 1, 2))
    assert (sums[::2] == 0.1).all()
    assert np.isinf(sums[1::2]).all()


def test_a_support_is_grouped_by_state_whatever_its_order() -> None:
    states = np.array([[2, 1], [0, 3], [2, 1], [0, 3], [5, 0]])
    support = bw.policies.Support(states, np.array([1, 0, 0, 2, 1]), np.arange(1.0, 6.0))
    found, dual = support.over_actions(3)
    np.testing.assert_array_equal(found, [[0, 3], [2, 1], [5, 0]])
    np.testing.assert_array_equal(dual, [[2, 0, 4], [3, 1, 0], [0, 5, 0]])
    distinct, order, starts = support.by_state()
    for k, (first, last) in enumerate(pairwise(starts)):
        assert (states[order[first:last]] == distinct[k]).all()
    assert sorted(order) == list(range(5))
