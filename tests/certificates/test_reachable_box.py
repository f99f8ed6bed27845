"""The box of states that a linear model can reach: it holds every step, however long the chain."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates.reachable_box import reachable_box


def chain(n: int, *, walk: bool) -> bw.LinearModel:
    """Each variable hands its value to the next; the first one walks off, or is drawn afresh."""
    hand_over = np.eye(n, k=-1)
    hand_over[0, 0] = float(walk)
    first = bw.models.Independent([bw.Law([0.0, 3.0], [0.5, 0.5])])
    into_first = np.zeros((n, 1))
    into_first[0, 0] = 1.0
    return bw.LinearModel(
        state_cost=np.ones(n),
        action_cost=[1.0],
        next_state=hand_over,
        next_action=np.zeros((n, 1)),
        noise=first,
        noise_matrix=into_first,
        initial=bw.models.Independent([bw.Law([0.0], [1.0])] * n),
        discount=0.9,
        state_upper=2.0,
        action_upper=1.0,
    )


@pytest.mark.parametrize("n", [10, 198, 250, 400])
def test_an_endless_walk_has_no_finite_box(n: int) -> None:
    lower, upper = reachable_box(chain(n, walk=True))
    assert (lower == 0.0).all()
    assert np.isinf(upper).all()


@pytest.mark.parametrize("n", [10, 198, 250, 400])
def test_what_moves_through_a_chain_stops_at_its_end(n: int) -> None:
    # The 3 is beyond the model's own box and needs as many steps as there are variables.
    lower, upper = reachable_box(chain(n, walk=False))
    assert (lower == 0.0).all()
    assert (upper == 3.0).all()
