"""Groups of states: their chain, and how far it carries a correction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

from bellweight.common.checks import FloatArray
from bellweight.exact.grouping import GroupedSweep, Groups
from bellweight.exact.iteration import FixedPoint
from tests.exact.test_chain import permuted, random_graph, shared_server, torus

PARTS = pytest.mark.parametrize("is_transposed", [False, True])


def system_of(matrix: sparse.csr_array, discount: float, is_transposed: bool) -> FixedPoint:
    turned = sparse.csr_array(matrix.T) if is_transposed else matrix
    return FixedPoint(turned, discount, is_transposed=is_transposed)


def constant_of(n: int, discount: float, is_transposed: bool) -> FloatArray:
    numbers = np.random.default_rng(1).random(n)
    return (1.0 - discount) * numbers / numbers.sum() if is_transposed else numbers


@PARTS
def test_pairs_make_a_chain_of_the_same_mass(is_transposed: bool) -> None:
    matrix = permuted(torus(20, 0.1))
    turned = sparse.csr_array(matrix.T) if is_transposed else matrix
    presence = np.random.default_rng(2).random(400)
    pairs = Groups.pairs(turned, sparse.csr_array(turned.T), presence, is_transposed)
    assert np.bincount(pairs.group).max() == 2
    assert pairs.presence.sum() == pytest.approx(presence.sum())
    np.testing.assert_allclose(np.bincount(pairs.group, pairs.share), 1.0)
    # Rows of the chain sum to one, of a transpose the columns.
    np.testing.assert_allclose(pairs.matrix.sum(axis=0 if is_transposed else 1), 1.0)
    dense = np.zeros((len(pairs.presence), 400))
    dense[pairs.group, np.arange(400)] = 1.0
    weighted = dense * pairs.share
    before, after = (dense, weighted.T) if is_transposed else (weighted, dense.T)
    np.testing.assert_allclose(pairs.matrix.toarray(), before @ turned.toarray() @ after)
    numbers = np.random.default_rng(3).random(len(pairs.presence))
    np.testing.assert_allclose(pairs.gathered(pairs.spread(numbers)), numbers)


@PARTS
def test_it_is_linear_and_close(is_transposed: bool) -> None:
    matrix, discount = torus(60, 0.25), 0.9999
    turned = sparse.csr_array(matrix.T) if is_transposed else matrix
    solve = GroupedSweep(turned, discount, is_transposed=is_transposed)
    rng = np.random.default_rng(4)
    first, second = rng.random(3600), rng.random(3600)
    together = solve(first - 2.0 * second)
    assert (
        np.abs(together - solve(first) + 2.0 * solve(second)).max() <= 1e-9 * np.abs(together).max()
    )
    left = first - solve(first) + discount * (turned @ solve(first))
    assert np.abs(left).sum() <= 0.3 * first.sum()


@PARTS
def test_a_longer_grid_takes_few_more_passes(is_transposed: bool) -> None:
    """Sweeps alone take 750 passes on the shorter one, and do not end on the longer one."""
    taken = []
    for side in (30, 240):
        system = system_of(torus(side, 0.22), 0.9999, is_transposed)
        constant = constant_of(side * side, 0.9999, is_transposed)
        _, is_solved = system.solve(constant)
        assert is_solved
        taken.append(system.passes)
    assert taken[1] <= 3.0 * taken[0] <= 600


@PARTS
def test_groups_drift_as_their_states_do(is_transposed: bool) -> None:
    """The second queue is served first: where it is empty, which is often, the first moves back."""
    model = shared_server(60, 0.9999)
    second = np.arange(3600) % 60
    pairs = 2 * np.arange(3600) + (second > 0)
    system = system_of(model.transition[pairs], 0.9999, is_transposed)
    _, is_solved = system.solve(constant_of(3600, 0.9999, is_transposed), most_passes=600)
    assert is_solved


def served_first(side: int) -> sparse.csr_array:
    """Two queues, one server: the first is served where the second is empty."""
    n = side * side
    first, second = np.divmod(np.arange(n), side)
    up = np.arange(n) + side * (first < side - 1), np.arange(n) + (second < side - 1)
    down = np.arange(n) - np.where(second > 0, 1, side * (first > 0))
    rate = np.where(second > 0, 0.5, 0.45)
    chances = np.concatenate([np.full(2 * n, 0.2), rate, 0.6 - rate])
    places = np.tile(np.arange(n), 4), np.concatenate([*up, down, np.arange(n)])
    return sparse.csr_array((chances, places), shape=(n, n))


@PARTS
def test_queues_served_in_turn_take_as_many_passes_at_any_length(is_transposed: bool) -> None:
    """Most of the time is spent beside a wall, and how much is known from far away only."""
    taken = []
    for side in (80, 320):
        system = system_of(served_first(side), 0.9999, is_transposed)
        n = side * side
        constant = np.eye(1, n, n - 1)[0] if is_transposed else 1.0 + np.arange(n) // side
        assert system.solve(constant.astype(np.float64))[1]
        taken.append(system.passes)
    assert taken[1] <= 1.7 * taken[0]


@PARTS
def test_improved_groups_know_where_the_chain_is(is_transposed: bool) -> None:
    matrix, discount = served_first(60), 0.9999
    turned = sparse.csr_array(matrix.T) if is_transposed else matrix
    solve = GroupedSweep(turned, discount, is_transposed=is_transposed)
    inflow = np.full(3600, 1.0 - discount)
    exact = spsolve(sparse.csc_array(sparse.eye_array(3600) - discount * matrix.T), inflow)
    before = np.abs(solve.presence - exact).sum()
    for _ in range(6):
        solve = solve.improved()
    assert np.abs(solve.presence - exact).sum() <= 0.01 * before
    assert (solve.presence >= inflow).all()


def test_a_similar_system_begins_with_what_is_known() -> None:
    matrix, constant = served_first(160), 1.0 + np.arange(25_600) // 160
    first = FixedPoint(matrix, 0.9999)
    values, _ = first.solve(constant)
    second = FixedPoint(matrix, 0.9999, similar=first.known)
    again, is_solved = second.solve(constant)
    assert is_solved
    assert second.passes <= 0.8 * first.passes
    np.testing.assert_allclose(again, values, rtol=1e-11)


def test_a_random_graph_has_no_groups() -> None:
    solve = GroupedSweep(random_graph(800, 6), 0.9, is_transposed=False)
    assert solve.passes == GroupedSweep(random_graph(2_000, 6), 0.9, is_transposed=False).passes
