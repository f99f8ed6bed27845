"""The chain that `verify` follows: another way to the same numbers, in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import bellweight as bw
from bellweight.certificates.enclosure import followed_chain, policy_cost
from bellweight.exact.occupancy import exact_occupancy

N_STATES, N_ACTIONS, N_SUCCESSORS = 2_000, 10, 10


@pytest.fixture(scope="module")
def table() -> bw.TabularModel:
    rng = np.random.default_rng(2)
    n_pairs = N_STATES * N_ACTIONS
    places = rng.integers(N_STATES, size=n_pairs * N_SUCCESSORS)
    chances = rng.dirichlet(np.ones(N_SUCCESSORS), size=n_pairs).ravel()
    starts = np.arange(0, len(places) + 1, N_SUCCESSORS)
    transition = sparse.csr_array((chances, places, starts), shape=(n_pairs, N_STATES))
    transition.sum_duplicates()
    pairs = np.repeat(np.arange(N_STATES), N_ACTIONS), np.tile(np.arange(N_ACTIONS), N_STATES)
    initial = np.full(N_STATES, 1.0 / N_STATES)
    return bw.TabularModel.from_pairs(rng.random(n_pairs), transition, *pairs, 0.9, initial)


def mixed(table: bw.TabularModel, n_used: int) -> np.ndarray:
    """Chances of a policy that takes the first few actions."""
    chances = np.random.default_rng(3).random((N_STATES, N_ACTIONS))
    chances[:, n_used:] = 0.0
    return (chances / chances.sum(axis=1, keepdims=True)).ravel()


@pytest.mark.parametrize("n_used", [1, 3, 10])
def test_cost_and_occupancy_are_those_of_the_exact_methods(
    table: bw.TabularModel, n_used: int
) -> None:
    chances = mixed(table, n_used)
    policy = bw.TablePolicy(chances.reshape(N_STATES, N_ACTIONS), model=table)
    followed = followed_chain(table, chances)
    wanted = exact_occupancy(table, policy).weights
    assert np.abs(followed.occupancy - wanted).sum() <= followed.occupancy_error + 1e-13
    assert followed.occupancy_error <= 1e-10
    found = policy_cost(table, followed)
    exact = table.initial @ bw.exact.policy_value(table, policy)
    assert found.cost == pytest.approx(exact, rel=1e-13)
    assert found.error <= 1e-10


def test_no_matrix_of_a_mixture_is_made(table: bw.TabularModel) -> None:
    matrix = table.transition
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    chances = mixed(table, N_ACTIONS)
    tracemalloc.start()
    followed_chain(table, chances)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most <= 0.6 * size
