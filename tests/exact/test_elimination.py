"""Sparse elimination: its order, what it is said to cost beforehand, its answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

from bellweight.exact.chain import Chain
from bellweight.exact.dissection import dissected, filled
from bellweight.exact.elimination import Band, Dissection, cheapest_elimination
from tests.exact.test_chain import permuted, random_graph, torus, walk

GRAPHS = {
    "grid": torus(20, 0.25),
    "permuted grid": permuted(torus(20, 0.25)),
    "random graph": random_graph(150, 3),
    "star": sparse.csr_array(np.vstack([np.full(200, 1 / 200), np.tile(np.eye(200)[0], (199, 1))])),
    "many parts": sparse.block_diag([torus(6, 0.1)] * 5 + [np.eye(1)] * 60, format="csr"),
    "walk": walk(300, 0.2, 0.3),
}


def fill_of_dense_elimination(pattern: sparse.csr_array, order: np.ndarray) -> tuple[int, float]:
    """Eliminate a dense pattern state by state."""
    filled_in = pattern.toarray()[np.ix_(order, order)] != 0.0
    np.fill_diagonal(filled_in, True)
    lengths = []
    for k in range(len(order)):
        below = k + np.flatnonzero(filled_in[k:, k])
        filled_in[np.ix_(below, below)] = True
        lengths.append(len(below))
    return sum(lengths), float(np.square(lengths).sum())


@pytest.mark.parametrize("name", GRAPHS)
def test_what_an_order_fills_in_is_counted_exactly(name: str) -> None:
    matrix = GRAPHS[name]
    pattern = sparse.csr_array(matrix + matrix.T)
    order = dissected(pattern.indptr, pattern.indices)
    assert np.array_equal(np.sort(order), np.arange(matrix.shape[0]))
    for one in (order, np.arange(len(order))):
        counted = filled(pattern.indptr, pattern.indices, one, np.inf)
        assert counted == fill_of_dense_elimination(pattern, one)


def test_counting_ends_where_there_is_too_much() -> None:
    pattern = sparse.csr_array(np.ones((100, 100)))
    n_entries, _ = filled(pattern.indptr, pattern.indices, np.arange(100), 500.0)
    assert 500 < n_entries <= 600


def test_the_factors_of_a_grid_grow_little_faster_than_its_states() -> None:
    """A band would hold eight times as much where the states are four times as many."""
    counts = []
    for side in (40, 80):
        matrix = permuted(torus(side, 0.25))
        pattern = sparse.csr_array(matrix + matrix.T)
        order = dissected(pattern.indptr, pattern.indices)
        counts.append(filled(pattern.indptr, pattern.indices, order, np.inf)[0])
    assert counts[1] <= 5.5 * counts[0]
    assert counts[1] <= 30 * 80**2


def test_a_band_full_of_long_ways_is_not_taken_for_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """As narrow as a grid, but its parts do not fall apart: counting tells."""
    n, width = 4_000, 150
    rng = np.random.default_rng(8)
    columns = np.repeat(np.arange(n), 6) + rng.integers(-width, width + 1, 6 * n)
    entries = np.full(6 * n, 1 / 6), np.clip(columns, 0, n - 1), np.arange(0, 6 * n + 1, 6)
    tangle = sparse.csr_array(entries, shape=(n, n))
    tangle.sum_duplicates()
    grid = torus(63, 0.25)
    cheap = [Dissection.of(m, 1_000.0, Band.as_numbered(m)) for m in (grid, tangle)]
    assert cheap[0] is not None
    assert cheap[1] is None
    chain = Chain(tangle, 0.98)
    chain.values(rng.random(n))
    assert not chain.is_eliminated
    # Nor is anything counted again for a chain that is like this one.
    monkeypatch.setattr(Dissection, "of", None)
    alike = Chain(tangle, 0.98, like=chain)
    alike.values(rng.random(n))
    assert not alike.is_eliminated


def test_sparse_elimination_answers_both_systems() -> None:
    matrix, discount = permuted(torus(100, 0.25)), 0.9999
    assert isinstance(cheapest_elimination(matrix), Dissection)
    rng = np.random.default_rng(9)
    cost, initial = rng.random(10_000), rng.dirichlet(np.ones(10_000))
    other = Chain(torus(63, 0.25), discount)
    other.values(np.ones(63 * 63))
    assert other.is_eliminated
    chain = Chain(matrix, discount, like=other)
    values, weights = chain.values(cost), chain.occupancy(initial)
    assert chain.is_eliminated
    system = sparse.csc_matrix(sparse.eye_array(10_000) - discount * matrix)
    assert np.abs(values - spsolve(system, cost)).max() <= 1e-12 * values.max()
    inflow = (1.0 - discount) * initial
    assert np.abs(weights - spsolve(sparse.csc_matrix(system.T), inflow)).sum() <= 1e-12
    assert np.abs(chain.residual(values, cost, transposed=False)).max() <= 1e-15 * values.max()
