"""Rows of all states found by elimination: the same program as with every row listed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellweight as bw
from bellweight.basis import ClippedProducts, Hinge, Located
from bellweight.models import Scopes
from bellweight.problems.queue_network import QueueNetwork
from bellweight.program import AlpProgram, EliminatedRows, LocalRows, solve_alp
from bellweight.program.local_repair import violation_bounds

TANDEM = {"routes": (1, None), "groups": ((0, 1),)}
RE_ENTRANT = {"routes": (1, 2, None), "groups": ((0, 2), (1,))}


def network(rng: np.random.Generator, shape: dict, upper: int | None) -> bw.EventModel:
    n = len(shape["routes"])
    rates = rng.uniform(0.2, 1.0, 2 * n)
    rates[1:n] *= rng.integers(0, 2, n - 1)
    rates /= rates.sum() * 1.1
    net = QueueNetwork(rates[:n].tolist(), rates[n:].tolist(), **shape)
    return net.model(discount=0.9, initial="geometric", decay=0.6, upper=upper, compiled=False)


def basis_of(rng: np.random.Generator, dimension: int) -> bw.Stacked:
    kinks = sorted(rng.choice(np.arange(1, 5), 2, replace=False).tolist())
    pairs = ClippedProducts([(0, 1)], [int(rng.integers(1, 4))])
    hinge = Located([Hinge((0, dimension - 1), float(rng.integers(1, 4)))])
    return bw.Stacked(bw.PiecewiseLinear(kinks), pairs, hinge)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), shape=st.sampled_from([TANDEM, RE_ENTRANT]))
def test_equals_the_program_on_all_listed_rows(seed: int, shape: dict) -> None:
    rng = np.random.default_rng(seed)
    model = network(rng, shape, upper=5)
    basis = basis_of(rng, model.dimension)
    listed = bw.program.AllRows().on(model.to_tabular(), basis)
    weights = rng.dirichlet(np.ones(listed.model.n_states))
    moments = listed.moments(weights)
    local = LocalRows().on(model, basis)
    found, wanted = solve_alp(local, moments), solve_alp(listed, moments)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-8, abs=1e-8)
    coef = rng.normal(size=listed.n_basis)
    slack = np.concatenate([part for _, part in listed.all_slacks(coef)])
    assert violation_bounds(local, coef).violation == pytest.approx(-slack.min(), abs=1e-9)


def box_rows(rows: EliminatedRows, model: bw.EventModel, coef: np.ndarray, top: int) -> float:
    """The largest violation on all states up to a value, from the model itself."""
    states = np.array(list(product(range(top + 1), repeat=model.dimension)))
    worst = -np.inf
    for action in range(model.n_actions):
        cost, chance, after = model.expand(states, np.full(len(states), action))
        here = rows.basis(states.astype(float)) @ coef
        ahead = (1.0 - chance.sum(axis=1)) * here
        for event in range(model.n_events):
            ahead += chance[:, event] * (rows.basis(after[:, event].astype(float)) @ coef)
        worst = max(worst, float((here - model.discount * ahead - cost).max()))
    return worst


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_endless_queues_have_no_worse_row_in_a_large_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = network(rng, TANDEM, upper=None)
    rows = LocalRows().on(model, basis_of(rng, 2))
    assert rows.initial_moments is not None
    solution = AlpProgram(rows).solve(rows.initial_moments[0])
    bounds = violation_bounds(rows, solution.coef)
    worst = box_rows(rows, model, solution.coef, top=20)
    size = abs(solution.objective)
    assert worst <= bounds.violation <= 1e-9 * size
    assert all(slope <= 1e-9 * size for slope in bounds.slopes.values())
    # Elsewhere the worst row is found, too, on the grid or along a slope that grows.
    coef = solution.coef + 0.01 * rng.normal(size=rows.n_basis)
    bounds = violation_bounds(rows, coef)
    inside = box_rows(rows, model, coef, top=max(rows.sizes[:2]) - 1)
    assert bounds.violation == pytest.approx(inside, abs=1e-9)
    if all(slope <= 0.0 for slope in bounds.slopes.values()):
        assert box_rows(rows, model, coef, top=20) <= bounds.violation


def test_the_bound_is_below_every_truncation() -> None:
    net = QueueNetwork([0.1, 0.0], [0.3, 0.4], **TANDEM)
    options = {"discount": 0.9, "initial": "empty", "compiled": False}
    result = bw.solve(
        net.model(**options), bw.PiecewiseLinear([1, 2, 4]), bw.Fixed(), rows=LocalRows(),
        judge=False,
    )  # fmt: skip
    assert result.lower_bound is not None
    for upper in (4, 8, 16):
        table = net.model(upper=upper, **options).to_tabular()
        optimum = float(table.initial @ bw.exact.optimal(table).values)
        assert result.lower_bound <= optimum
    assert result.lower_bound == pytest.approx(result.objective, rel=1e-9)
    assert result.lower_bound >= 0.9 * optimum


def test_two_runs_give_the_same_bits() -> None:
    def run() -> np.ndarray:
        model = network(np.random.default_rng(3), RE_ENTRANT, upper=None)
        result = bw.solve(
            model, bw.PiecewiseLinear([1, 3]), bw.Fixed(), rows=LocalRows(), judge=False
        )
        return np.append(result.coef, result.lower_bound)

    assert run().tobytes() == run().tobytes()


def test_a_basis_without_affine_tails_is_refused() -> None:
    model = network(np.random.default_rng(0), TANDEM, upper=None)
    with pytest.raises(bw.BellweightError, match=r"x1\^2.*not affine for large x1"):
        LocalRows().on(model, bw.Separable(bw.Polynomial(2)))
    assert LocalRows().on(
        network(np.random.default_rng(0), TANDEM, upper=3), bw.Polynomial(2)
    ).sizes == (4, 4, 2)


def test_a_table_beyond_memory_names_its_group() -> None:
    net = QueueNetwork([0.1] + [0.0] * 7, [0.05] * 8, (1, 2, 3, 4, 5, 6, 7, None), [range(8)])
    model = net.model(compiled=False)
    basis = bw.Stacked(bw.PiecewiseLinear([9]), ClippedProducts([tuple(range(8))], [1]))
    with pytest.raises(bw.BellweightError, match="over x1, x2, x3"):
        LocalRows().on(model, basis)


def test_wrong_scopes_are_refused_with_the_place() -> None:
    def both(state: np.ndarray) -> float:
        return float(state[0] * state[1])

    def square(state: np.ndarray) -> float:
        return float(state[0] ** 2)

    def model(scopes: Scopes, cost: object = both) -> bw.EventModel:
        return bw.EventModel(
            dimension=2, actions=1, events=2, cost=cost, probability=[[0.3, 0.4]],
            move=[[1, 0], [-1, 1]], discount=0.9, compiled=False, scopes=scopes,
        )  # fmt: skip

    with pytest.raises(bw.BellweightError, match=r"scopes.cost.*as in state"):
        model(Scopes(cost=[(0,), (1,)]))
    with pytest.raises(bw.BellweightError, match=r"scopes.tail\[0\] is 1.*not affine"):
        model(Scopes(cost=[(0,)]), cost=square)
    with pytest.raises(bw.BellweightError, match="coordinates from 0 to 1"):
        model(Scopes(cost=[(0, 2)]))
