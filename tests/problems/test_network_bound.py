"""The paper's eight-queue network: a proven bound over all of its infinitely many states."""

from __future__ import annotations

import pytest

import bellweight as bw


@pytest.mark.slow
def test_no_policy_of_the_network_costs_less_than_12150() -> None:
    model = bw.problems.queue_network()
    basis = bw.PiecewiseLinear([1, 2, 3, 5, 8, 12, 18])
    result = bw.solve(model, basis, bw.Fixed(), rows=bw.LocalRows(), judge=False)
    assert result.lower_bound is not None
    assert 12_150.0 < result.lower_bound < 13_050.0
    assert result.lower_bound == pytest.approx(result.objective, rel=1e-8)
