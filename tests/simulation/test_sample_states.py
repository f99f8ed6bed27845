"""States for rows: from the initial law, an occupancy, a grid, a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import Interval, Law


def step(state: Any, action: int, noise: Any) -> Any:
    return min(max(state[0] - noise[0], 0.0), 4.0), (state[1] + action) % 3


def cost(state: Any) -> float:
    return state[0]


@pytest.fixture(scope="module")
def model() -> bw.StepModel:
    return bw.StepModel(
        dimension=2, actions=2, step=step, cost=cost, discount=0.8, lower=0, upper=[4, 2],
        noise=Law([-1.0, 0.4], [0.4, 0.6]), initial=[Interval(1.0, 2.0), 0], compiled=False,
        integer=[False, True],
    )  # fmt: skip


def test_each_way_gives_states_of_its_own(model: bw.StepModel) -> None:
    first = bw.sample_states(model, 30)
    assert ((first[:, 0] >= 1.0) & (first[:, 0] <= 2.0) & (first[:, 1] == 0.0)).all()
    later = bw.sample_states(model, 30, bw.Uniform())
    np.testing.assert_array_equal(later, bw.sample_states(model, 30, bw.Uniform(), how="occupancy"))
    assert len(np.unique(later[:, 1])) > 1
    grid = bw.sample_states(model, 33, how="grid")
    wanted = [(x, y) for x in np.linspace(0.0, 4.0, 11) for y in range(3)]
    np.testing.assert_allclose(grid, wanted)
    spread = bw.sample_states(model, 200, how="sequence")
    assert len(np.unique(spread, axis=0)) == len(spread) == 200
    # Low discrepancy: every fifth of the box holds its share of the points.
    counts = np.histogram(spread[4:, 0], bins=5, range=(0.0, 4.0))[0]
    assert (np.abs(counts / counts.sum() - 0.2) < 0.03).all()
    assert not np.array_equal(spread, bw.sample_states(model, 200, how="sequence", seed=1))


def test_what_does_not_fit_is_refused(model: bw.StepModel) -> None:
    with pytest.raises(bw.BellweightError, match="how"):
        bw.sample_states(model, 5, how="everywhere")
    with pytest.raises(bw.BellweightError, match=r"'occupancy', expected a policy"):
        bw.sample_states(model, 5, how="occupancy")
    with pytest.raises(bw.BellweightError, match=r"'grid', expected no policy"):
        bw.sample_states(model, 5, bw.Uniform(), how="grid")
