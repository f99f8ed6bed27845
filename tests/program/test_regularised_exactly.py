"""The regularised program on tiny models, against its optimality conditions in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import reference

import bellweight as bw
from bellweight.common.checks import FloatArray
from bellweight.common.doubled import doubled, product, solve_definite, subtract
from bellweight.program import PenaltyProgram


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Return a solution of a system that has one, by elimination in fractions."""
    work = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    pivots: list[int] = []
    for k in range(len(right)):
        done = len(pivots)
        place = next((i for i in range(done, len(work)) if work[i][k] != 0), None)
        if place is None:
            continue
        work[done], work[place] = work[place], work[done]
        work[done] = [value / work[done][k] for value in work[done]]
        for i in range(len(work)):
            if i != done:
                work[i] = [a - work[i][k] * b for a, b in zip(work[i], work[done], strict=True)]
        pivots.append(k)
    assert not any(line[-1] for line in work[len(pivots) :])
    found = [Fraction(0)] * len(right)
    for line, k in zip(work, pivots, strict=False):
        found[k] = line[-1]
    return found


def dot(first: list[Fraction], second: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))


def fractions(numbers: FloatArray) -> list[Fraction]:
    return [Fraction(float(number)) for number in numbers]


class Exactly:
    """The rows, costs and moments of a model as fractions."""

    def __init__(self, model: bw.TabularModel, basis: bw.bases.Basis, weights: FloatArray) -> None:
        features = [fractions(line) for line in reference.features_of(model, basis)]
        columns = [list(column) for column in zip(*features, strict=True)]
        discount = Fraction(model.discount)
        chances = [fractions(line) for line in model.transition.toarray()]
        self.rows = [
            [column[x] - discount * dot(chances[pair], column) for column in columns]
            for pair, x in enumerate(model.pair_state)
        ]
        self.cost = fractions(model.cost)
        self.moments = [dot(fractions(weights), column) for column in columns]

    def excess(self, coef: list[Fraction]) -> list[Fraction]:
        return [dot(row, coef) - c for row, c in zip(self.rows, self.cost, strict=True)]

    def dual(self, used: list[int], delta: float) -> list[Fraction]:
        """Return the dual of the program over some rows, which may be negative there."""
        rows = [self.rows[j] for j in used]
        columns = [list(column) for column in zip(*rows, strict=True)]
        cost, size = [self.cost[j] for j in used], Fraction(delta)
        right = [size * m + dot(c, cost) for m, c in zip(self.moments, columns, strict=True)]
        coef = solved([[dot(a, b) for b in columns] for a in columns], right)
        return [
            value / size
            for value in (dot(row, coef) - c for row, c in zip(rows, cost, strict=True))
        ]


def model_of(seed: int) -> tuple[bw.TabularModel, FloatArray, float]:
    """Return a plain model: few states, whole costs, a start in one state; and a delta."""
    rng = np.random.default_rng(seed)
    n, n_actions = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    discount = float(rng.choice([0.1, 0.9, 0.99, 0.999, 0.9999]))
    state, action = np.repeat(np.arange(n), n_actions), np.tile(np.arange(n_actions), n)
    cost = rng.integers(0, 10, size=len(state)) * 10.0 ** rng.integers(-8, 13)
    rows = np.eye(n)[rng.integers(n, size=len(state))]
    start = np.eye(n)[int(rng.integers(n))]
    model = bw.TabularModel.from_pairs(cost, rows, state, action, discount, start)
    delta = 10.0 ** rng.uniform(-8, 2) * (float(cost.max()) or 1.0) * (1.0 - discount)
    return model, start, float(delta)


SEEDS = [*range(12), 20, 25, 63]


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_models_are_solved(seed: int) -> None:
    model, weights, delta = model_of(seed)
    basis = bw.Polynomial(min(2, model.n_states - 1))
    rows = bw.program.AllRows().on(model, basis)
    found = PenaltyProgram(rows, delta, weights).solve(rows.moments(weights), weights)
    assert found.status is bw.Status.OPTIMAL
    exactly = Exactly(model, basis, weights)
    wanted = exactly.dual(found.keys.tolist(), delta)
    mass = 1.0 / (1.0 - model.discount)
    np.testing.assert_allclose(found.dual, [float(v) for v in wanted], rtol=0.0, atol=1e-9 * mass)
    # Rows without a dual hold, but for the rounding of the coefficients.
    excess = np.delete([float(e) for e in exactly.excess(fractions(found.coef))], found.keys)
    assert excess.max(initial=0.0) <= 1e-13 * mass * np.abs(model.cost).max()


def test_a_program_with_a_constant_is_never_unbounded() -> None:
    model = bw.TabularModel.from_pairs(
        np.array([2.7e8, -3.6e8]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.arange(2),
        np.zeros(2, dtype=np.int64), 0.9999, np.array([1.0, 0.0]),
    )  # fmt: skip
    result = bw.solve(model, bw.Polynomial(1), bw.Fixed("initial"), regularisation=1.0, judge=False)
    assert result.status is bw.Status.CONVERGED
    assert result.dual.sum() == pytest.approx(1e4, rel=1e-9)


@pytest.mark.parametrize(
    ("capacity", "delta"),
    [
        (1_999, 1.0),
        pytest.param(9_999, 1.0, marks=pytest.mark.slow),
        pytest.param(9_999, 1e-4, marks=pytest.mark.slow),
    ],
)
def test_a_long_queue_with_a_high_degree(capacity: int, delta: float) -> None:
    model = bw.problems.single_queue(capacity=capacity)
    rows = bw.program.AllRows().on(model, bw.Polynomial(4))
    program = PenaltyProgram(rows, delta, model.initial)
    found = program.solve(rows.moments(model.initial), model.initial)
    assert found.status is bw.Status.OPTIMAL
    again = program.solve(rows.moments(model.initial), model.initial)
    np.testing.assert_allclose(again.dual, found.dual, rtol=1e-9)


def test_definite_systems_are_solved_with_twice_the_digits() -> None:
    places = np.arange(8)
    matrix = doubled(1.0 / (1.0 + places + places[:, None]))  # its condition is 1e10
    right = doubled(np.ones(8))
    found = solve_definite(matrix, right)
    rest = subtract(product(matrix, found), right).high
    assert np.abs(rest).max() <= 1e-26 * np.abs(found.high).max()
