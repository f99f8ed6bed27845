"""Rings and stars of computers: the program over 2^n states without listing them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

import bellweight as bw
from bellweight.basis import ClippedProducts
from bellweight.models import FactoredModel
from bellweight.problems import computer_network, computer_ring, computer_star
from bellweight.program import AllRows, LocalRows, repaired_locally, solve_alp

FAILURE, INFECTION, REPAIR, BROKEN = 0.05, 0.3, 0.95, 0.2


def listed(listens: list[tuple[int, ...]]) -> bw.TabularModel:
    """The network with all states, written down a second time."""
    n = len(listens)
    states = np.array(list(product((0, 1), repeat=n)))
    fails = np.empty((n + 1, len(states), n))
    for i, near in enumerate(listens):
        ill = states[:, list(near)].sum(axis=1) if near else 0
        fails[:, :, i] = np.where(states[:, i] == 1, 1.0, FAILURE + INFECTION * ill)
        fails[i + 1, :, i] = 1.0 - REPAIR
    chances = np.ones((n + 1, len(states), len(states)))
    for i in range(n):
        chances *= np.where(states[:, i] == 1, fails[:, :, [i]], 1.0 - fails[:, :, [i]])
    transition = sparse.csr_array(np.moveaxis(chances, 0, 1).reshape(-1, len(states)))
    pair_state = np.repeat(np.arange(len(states)), n + 1)
    return bw.TabularModel.from_pairs(
        states.sum(axis=1)[pair_state].astype(float),
        transition,
        pair_state,
        np.tile(np.arange(n + 1), len(states)),
        0.95,
        np.where(states == 1, BROKEN, 1.0 - BROKEN).prod(axis=1),
        state_vectors=states,
    )


def case(kind: str, n: int) -> tuple[FactoredModel, list[tuple[int, ...]], bw.Stacked]:
    if kind == "ring":
        listens = [((i - 1) % n,) for i in range(n)]
        pairs = [((i - 1) % n, i) for i in range(n)]
        model = computer_ring(n, broken=BROKEN, compiled=False)
    else:
        listens = [(), *((0,) for _ in range(n - 1))]
        pairs = [(0, i) for i in range(1, n)]
        model = computer_star(n, broken=BROKEN, compiled=False)
    return model, listens, bw.Stacked(bw.Affine(), ClippedProducts(pairs, [1]))


@pytest.mark.parametrize("kind", ["ring", "star"])
@pytest.mark.parametrize("n", [3, 6, pytest.param(10, marks=pytest.mark.slow)])
def test_agrees_with_enumeration(kind: str, n: int) -> None:
    model, listens, basis = case(kind, n)
    rows = LocalRows().on(model, basis)
    table = listed(listens)
    every = AllRows().on(table, basis)
    assert rows.initial_moments is not None
    assert rows.initial_moments[0] == pytest.approx(every.moments(table.initial), rel=1e-12)
    found = solve_alp(rows, rows.initial_moments[0])
    wanted = solve_alp(every, every.moments(table.initial))
    assert found.objective == pytest.approx(wanted.objective, rel=1e-8)
    bound = repaired_locally(rows, found.coef)
    assert bound is not None
    # Pairs of neighbours see ever less of a larger ring: 45 % of the optimum at ten computers.
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    assert wanted.objective * (1.0 - 1e-8) < bound.value < optimum


def test_a_ring_is_solved_with_its_bound_proven_and_a_gap() -> None:
    model, listens, basis = case("ring", 4)
    table = listed(listens)
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    result = bw.solve(model, basis, bw.Fixed(), judge=False)
    assert result.lower_bound_kind == "exact"
    assert 0.7 * optimum < result.lower_bound < optimum
    assert model.to_tabular().n_states == 16


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ring", "star"])
def test_sixty_computers_are_solved(kind: str) -> None:
    model, _, basis = case(kind, 60)
    rows = LocalRows().on(model, basis)
    assert rows.initial_moments is not None
    found = solve_alp(rows, rows.initial_moments[0])
    bound = repaired_locally(rows, found.coef)
    assert bound is not None
    assert bound.value == pytest.approx(found.objective, rel=1e-8)
    # With n computers and one reboot per step, most of them are down for good.
    assert 0.25 * 60 / 0.05 < bound.value < 60 / 0.05


def test_impossible_networks_are_refused() -> None:
    with pytest.raises(bw.BellweightError, match="expected at most 1"):
        computer_network([(1, 2, 3), (), (), ()], infection=0.4)
    with pytest.raises(bw.BellweightError, match="expected other computers"):
        computer_network([(0,), ()])
    with pytest.raises(bw.BellweightError, match="for a number of computers see computer_ring"):
        computer_network(5)  # type: ignore[arg-type]
