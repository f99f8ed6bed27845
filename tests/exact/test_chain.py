"""Chains of every shape: bands, permuted bands, grids, random graphs, discounts up to 0.9999."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import bellweight as bw
from bellweight.common.checks import FloatArray
from bellweight.exact.chain import Chain
from bellweight.exact.iteration import FixedPoint


def walk(n: int, up: float, down: float) -> sparse.csr_array:
    """A random walk on {0, ..., n - 1}."""
    ahead = np.append(np.full(n - 1, up), 0.0)
    back = np.append(0.0, np.full(n - 1, down))
    stay = 1.0 - ahead - back
    return sparse.csr_array(sparse.diags_array([back[1:], stay, ahead[:-1]], offsets=[-1, 0, 1]))


def torus(side: int, drift: float) -> sparse.csr_array:
    """A walk on a grid that drifts one way in each coordinate, with reflecting walls."""
    line = walk(side, 0.5 - drift, drift)
    one = sparse.eye_array(side)
    return sparse.csr_array(0.5 * sparse.kron(line, one) + 0.5 * sparse.kron(one, line))


def random_graph(n: int, degree: int) -> sparse.csr_array:
    rng = np.random.default_rng(3)
    chances = rng.dirichlet(np.ones(degree), size=n)
    start = np.arange(0, n * degree + 1, degree)
    places = rng.integers(n, size=n * degree)
    return sparse.csr_array((chances.ravel(), places, start), shape=(n, n))


def permuted(matrix: sparse.csr_array) -> sparse.csr_array:
    order = np.random.default_rng(4).permutation(matrix.shape[0])
    return sparse.csr_array(matrix[order][:, order])


SHAPES = {
    "walk": walk(900, 0.2, 0.3),
    "permuted walk": permuted(walk(900, 0.2, 0.3)),
    "slow grid": torus(30, 0.25),
    "drifting grid": torus(30, 0.02),
    "random graph": random_graph(800, 6),
    "cycle": sparse.csr_array(np.roll(np.eye(500), 1, axis=1)),
}


def dense_answer(matrix: sparse.csr_array, discount: float, constant: FloatArray) -> FloatArray:
    system = np.eye(matrix.shape[0]) - discount * matrix.toarray()
    return np.asarray(np.linalg.solve(system, constant))


@pytest.mark.parametrize("discount", [0.01, 0.9, 0.9999])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_occupancies_equal_those_of_dense_algebra(shape: str, discount: float) -> None:
    matrix = SHAPES[shape]
    n = matrix.shape[0]
    rng = np.random.default_rng(5)
    cost, initial = rng.random(n), rng.dirichlet(np.ones(n))
    chain = Chain(matrix, discount)
    values = chain.values(cost)
    assert np.abs(values - dense_answer(matrix, discount, cost)).max() <= 1e-10 * values.max()
    weights = chain.occupancy(initial)
    inflow = (1.0 - discount) * initial
    assert np.abs(weights - dense_answer(matrix.T, discount, inflow)).sum() <= 1e-9
    assert np.abs(chain.residual(weights, inflow, transposed=True)).sum() <= 1e-12


@pytest.mark.parametrize("shape", SHAPES)
def test_iteration_alone_solves_every_shape(shape: str) -> None:
    """Also those that elimination would take over."""
    matrix, discount = SHAPES[shape], 0.99
    cost = np.random.default_rng(6).random(matrix.shape[0])
    x, is_solved = FixedPoint(matrix, discount).solve(cost)
    assert is_solved
    assert np.abs(x - dense_answer(matrix, discount, cost)).max() <= 1e-11 * x.max()


def test_an_iteration_that_takes_too_long_says_so() -> None:
    system = FixedPoint(SHAPES["walk"], 0.9999)
    cost = np.zeros(900)
    cost[-1] = 1.0
    x, is_solved = system.solve(cost, most_passes=50)
    assert not is_solved
    assert system.size(system.residual(x, cost)) > 0.0


def test_a_good_guess_saves_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    system = FixedPoint(SHAPES["slow grid"], 0.99)
    cost = np.random.default_rng(7).random(900)
    x, _ = system.solve(cost)
    _, is_solved = system.solve(cost, guess=x + 1e-13, most_passes=60)
    assert is_solved


def network(side: int, discount: float) -> bw.TabularModel:
    """Two queues in tandem, one server: it serves the first or the second."""
    n = side * side
    first, second = np.divmod(np.arange(n), side)
    entries = []
    for action in (0, 1):
        up = np.where(first < side - 1, np.arange(n) + side, np.arange(n))
        can = (first > 0) & (second < side - 1) if action == 0 else second > 0
        served = np.arange(n) + (1 - side if action == 0 else -1)
        to = [up, np.where(can, served, np.arange(n)), np.arange(n)]
        for chance, following in zip((0.3, 0.6, 0.1), to, strict=True):
            pairs = 2 * np.arange(n) + action
            entries.append((np.full(n, chance), pairs, following))
    data, rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    transition = sparse.csr_array((data, (rows, columns)), shape=(2 * n, n))
    cost = np.repeat(2.0 * first + second, 2)
    initial = np.zeros(n)
    initial[0] = 1.0
    pairs = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    return bw.TabularModel.from_pairs(cost, transition, *pairs, discount, initial)


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.9999])
def test_optimal_values_satisfy_bellmans_equation_and_bound_value_iteration(
    discount: float,
) -> None:
    model = network(30, discount)
    found = bw.exact.optimal(model)
    assert found.residual <= 1e-11 * found.values.max()
    # Value iteration from below never exceeds the optimum; from above it never falls below.
    below, above = np.zeros(model.n_states), np.full(model.n_states, 87.0 / (1.0 - discount))
    for _ in range(300):
        below, above = (
            np.minimum.reduceat(
                model.cost + discount * (model.transition @ values), model.pair_start[:-1]
            )
            for values in (below, above)
        )
    assert (below <= found.values * (1.0 + 1e-12)).all()
    assert (above >= found.values * (1.0 - 1e-12)).all()
    # No action is better than the policy's own against its own values.
    own = bw.exact.policy_value(model, found.policy)
    assert np.abs(own - found.values).max() <= 1e-10 * own.max()


def test_values_far_below_the_largest_are_as_exact_by_iteration() -> None:
    n = 150
    rng = np.random.default_rng(5)
    moves = np.zeros((n, n))
    for _ in range(2):
        moves[np.arange(n), rng.integers(n, size=n)] += 0.5
    moves[0], moves[1] = np.eye(n)[1], np.eye(n)[0]
    cost = np.full(n, 1e12)
    cost[:2] = 3.0, 1.0
    chain = Chain(sparse.csr_array(moves), 0.95)
    values = chain.values(cost)
    assert not chain.is_eliminated
    assert values[:2] == pytest.approx(np.array([3.95, 3.85]) / (1.0 - 0.95**2), rel=1e-13)


def shared_server(side: int, discount: float) -> bw.TabularModel:
    """Two queues beside each other, one server: the second is dearer and served faster."""
    n = side * side
    first, second = np.divmod(np.arange(n), side)
    arrivals = [
        np.where(first < side - 1, np.arange(n) + side, np.arange(n)),
        np.where(second < side - 1, np.arange(n) + 1, np.arange(n)),
    ]
    served = [np.arange(n) - side * (first > 0), np.arange(n) - (second > 0)]
    transition = np.zeros((2, n, n))
    for action, rate in enumerate((0.45, 0.5)):
        moves = (*arrivals, served[action], np.arange(n))
        for to, chance in zip(moves, (0.2, 0.2, rate, 0.6 - rate), strict=True):
            transition[action, np.arange(n), to] += chance
    cost = np.repeat((first + 2.0 * second)[:, None], 2, axis=1)
    return bw.TabularModel.from_arrays(cost, transition, discount, np.eye(n)[0])


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**-500, 2.0**500, 2.0**900])
@pytest.mark.parametrize("is_grid", [False, True])
def test_iterations_do_not_depend_on_the_unit_of_costs(unit: float, is_grid: bool) -> None:
    """The squares of such costs are zero or infinite."""
    rng, side = np.random.default_rng(5), 50
    here = np.arange(side * side)
    x, y = here // side, here % side
    steps = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    grid = [(x + i) % side * side + (y + j) % side for i, j in steps]
    places = np.array(grid) if is_grid else rng.integers(0, side * side, (4, side * side))
    entries = np.full(places.size, 0.25), (np.tile(here, 4), places.ravel())
    system = FixedPoint(sparse.csr_array(entries, shape=(len(here), len(here))), 0.9999)
    cost = rng.random(len(here))
    plain, scaled = system.solve(cost)[0], system.solve(cost * unit)[0]
    np.testing.assert_allclose(scaled / unit, plain, rtol=1e-10)


def test_policies_of_a_slow_grid_are_eliminated_a_few_times_only() -> None:
    """The border between two actions moves far; value iteration moves it between evaluations."""
    model = shared_server(40, 0.9999)
    found = bw.exact.optimal(model)
    assert found.iterations <= 4
    assert found.residual <= 1e-14 * found.values.max()


def test_nothing_is_tried_on_what_rounding_leaves() -> None:
    """Sums of fifty numbers are off by a little more than sums of a few."""
    matrix, n = random_graph(3_000, 50), 3_000
    system = FixedPoint(matrix, 0.9999)
    _, is_solved = system.solve(np.random.default_rng(6).random(n))
    assert is_solved
    assert system.passes <= 30


def test_a_policy_that_stays_is_evaluated_three_times_at_most() -> None:
    n = 10_000
    pairs = np.arange(n), np.zeros(n, dtype=np.int64)
    initial = np.full(n, 1.0 / n)
    cost = np.random.default_rng(8).random(n)
    model = bw.TabularModel.from_pairs(cost, torus(100, 0.2), *pairs, 0.98, initial)
    assert bw.exact.optimal(model).iterations <= 3
