"""Modified policy iteration with span bounds: its bound holds, and it stops where it is slow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import bellweight as bw
from bellweight.exact.approximation import approximate


def random_model(discount: float, n_states: int = 200, n_actions: int = 3) -> bw.TabularModel:
    rng = np.random.default_rng(8)
    n_pairs = n_states * n_actions
    chances = rng.dirichlet(np.ones(6), size=n_pairs)
    places = rng.integers(n_states, size=n_pairs * 6)
    entries = (chances.ravel(), (np.repeat(np.arange(n_pairs), 6), places))
    return bw.TabularModel.from_pairs(
        rng.random(n_pairs), sparse.csr_array(entries, shape=(n_pairs, n_states)),
        np.repeat(np.arange(n_states), n_actions), np.tile(np.arange(n_actions), n_states),
        discount, np.full(n_states, 1.0 / n_states),
    )  # fmt: skip


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.9999])
def test_a_random_graph_is_settled_within_the_bound(discount: float) -> None:
    model = random_model(discount)
    found = approximate(model)
    assert found.is_settled
    exact = bw.exact.optimal(model)
    size = float(np.abs(exact.values).max())
    assert found.error <= 1e-9 * size
    assert np.abs(found.values - exact.values).max() <= found.error + 1e-13 * size
    assert exact.residual <= 1e-13 * size


def test_a_chain_is_left_to_others_and_the_bound_holds() -> None:
    model = bw.problems.single_queue(capacity=400)
    found = approximate(model)
    assert not found.is_settled
    values = bw.exact.optimal(model).values
    assert np.abs(found.values - values).max() <= found.error * (1.0 + 1e-12)
