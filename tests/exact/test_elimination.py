"""Elimination in a band: the order of states, what it is said to cost, its answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

from bellweight.exact.chain import Chain
from bellweight.exact.elimination import Band, cheapest_elimination
from tests.exact.test_chain import permuted, random_graph, torus, walk


def test_a_walk_is_put_in_order() -> None:
    matrix = permuted(walk(900, 0.2, 0.3))
    found = cheapest_elimination(matrix)
    assert found is not None
    assert max(found.below, found.above) <= 2
    assert found.passes < 0.01 * Band.as_numbered(matrix).passes


def test_what_is_too_large_for_the_memory_is_not_eliminated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bellweight.exact.elimination._MAX_ENTRIES", 10_000)
    assert cheapest_elimination(random_graph(800, 6)) is None


def test_elimination_answers_both_systems() -> None:
    matrix, discount = permuted(torus(30, 0.25)), 0.9999
    found = cheapest_elimination(matrix)
    assert found is not None
    solve = found.factors(matrix, discount)
    rng = np.random.default_rng(9)
    cost = rng.random(900)
    system = sparse.csc_matrix(sparse.eye_array(900) - discount * matrix)
    for transposed, exact in ((False, system), (True, sparse.csc_matrix(system.T))):
        wanted = spsolve(exact, cost)
        assert np.abs(solve(cost, transposed) - wanted).max() <= 1e-11 * wanted.max()


def test_a_chain_like_one_that_was_eliminated_is_eliminated() -> None:
    walked = Chain(walk(900, 0.2, 0.3), 0.9999)
    walked.values(np.ones(900))
    assert walked.is_eliminated
    alike = Chain(permuted(walk(900, 0.3, 0.2)), 0.9999, like=walked)
    alike.values(np.ones(900))
    assert alike.is_eliminated
