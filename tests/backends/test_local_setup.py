"""Every method runs on the rows of all states; occupancies are simulated."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.basis import ClippedProducts
from bellweight.problems.queue_network import QueueNetwork

BASIS = bw.Stacked(bw.PiecewiseLinear([1, 3]), ClippedProducts([(0, 1)], [2]))
METHODS = [bw.Fixed(), bw.FromPolicy(bw.Uniform()), bw.PIA(), bw.DIA(target=bw.Uniform())]


@pytest.fixture(scope="module")
def model() -> bw.EventModel:
    net = QueueNetwork([0.2, 0.0], [0.4, 0.35], routes=(1, None), groups=((0, 1),))
    return net.model(discount=0.9, initial="geometric", decay=0.6)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_method_runs(model: bw.EventModel, method) -> None:
    result = bw.solve(
        model, BASIS, method, rows=bw.LocalRows(), seed=1, judge=False,
        simulation=bw.Simulation(episodes=500), stop=bw.Stop(max_iterations=4),
    )  # fmt: skip
    assert np.isfinite(result.objective)
    assert result.lower_bound is not None
    highest = bw.solve(model, BASIS, bw.Fixed(), judge=False).lower_bound
    assert highest is not None
    # Weights other than the initial law prove a bound, too, but no higher one.
    assert result.lower_bound <= highest + 1e-9 * abs(highest)
    assert (result.support.values > 0.0).all()
    assert model.check_states(result.support.states) is not None


def test_the_greedy_policy_is_judged_and_certified(model: bw.EventModel) -> None:
    result = bw.solve(model, BASIS, bw.Fixed(), seed=1)
    certificate = bw.certify(model, result, episodes=500)
    assert certificate.kind == "exact"
    assert certificate.value == result.lower_bound
    assert certificate.bound is not None
    assert certificate.bound > 0.0
    assert "no policy costs less than" in str(certificate)
    assert bw.verify(model, certificate).passed
