"""Every method runs on the rows of all states; occupancies are simulated."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.queue_network import QueueNetwork

METHODS = [bw.Fixed(), bw.FromPolicy(bw.Uniform()), bw.PIA(), bw.DIA(target=bw.Uniform())]


@pytest.fixture(scope="module")
def model() -> bw.EventModel:
    net = QueueNetwork([0.2, 0.0], [0.4, 0.35], routes=(1, None), groups=((0, 1),))
    return net.model(discount=0.9, initial="geometric", decay=0.6)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_method_runs(model: bw.EventModel, method) -> None:
    result = bw.solve(
        model, bw.Affine(), method, rows=bw.LocalRows(), seed=1, judge=False,
        simulation=bw.Simulation(episodes=500), stop=bw.Stop(max_iterations=4),
    )  # fmt: skip
    assert np.isfinite(result.objective)
    assert result.lower_bound is not None
    highest = bw.solve(model, bw.Affine(), bw.Fixed(), judge=False).lower_bound
    assert highest is not None
    # Weights other than the initial law prove a bound, too, but no higher one.
    assert result.lower_bound <= highest + 1e-9 * abs(highest)
    assert (result.support.values > 0.0).all()
    assert model.check_states(result.support.states) is not None
