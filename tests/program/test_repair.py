"""Bounds that survive rounding: proven in exact arithmetic, and close to what was found."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import bellweight as bw
from bellweight.common.doubled import Doubled, dot, doubled
from bellweight.program import AllRows, Repaired, TabularRows, largest_value, repaired
from bellweight.program.alp import AlpProgram
from bellweight.program.attempt import Attempt
from bellweight.program.auditing import Auditor
from bellweight.program.row_source import Separation


def exact_slack(rows: TabularRows, found: Repaired, pair: int) -> Fraction:
    """Return the slack of a row in fractions, from features, chances and costs as doubles."""
    model = rows.model
    coef = [Fraction(float(c)) + Fraction(float(r)) for c, r in zip(*found.precise, strict=True)]

    def value(state: int) -> Fraction:
        features = rows.features(np.array([state]))
        features = (features.toarray() if sparse.issparse(features) else np.asarray(features))[0]
        parts = zip(features, coef, strict=True)
        return sum((Fraction(float(f)) * c for f, c in parts), Fraction(0))

    entries = slice(model.transition.indptr[pair], model.transition.indptr[pair + 1])
    ahead = sum(
        (
            Fraction(float(p)) * value(int(y))
            for p, y in zip(
                model.transition.data[entries], model.transition.indices[entries], strict=True
            )
        ),
        Fraction(0),
    )
    here = value(int(model.pair_state[pair]))
    return Fraction(float(model.cost[pair])) + Fraction(model.discount) * ahead - here


@pytest.mark.parametrize("initial", ["empty", "geometric", "reverse"])
@pytest.mark.parametrize("degree", [2, 4, 6, 8])
def test_high_degrees_keep_their_bound(degree: int, initial: str) -> None:
    model = bw.problems.single_queue(capacity=4_999, initial=initial)
    result = bw.solve(model, bw.Polynomial(degree), bw.Fixed("initial"))
    assert result.status is bw.Status.CONVERGED
    assert result.lower_bound == pytest.approx(result.objective, rel=1e-4)
    optimum = float(model.initial @ bw.exact.optimal(model).values)
    assert result.lower_bound <= optimum
    certificate = bw.certify(model, result)
    assert certificate.value == result.lower_bound
    assert bw.verify(model, certificate).passed


def test_the_bound_of_the_paper_s_queue() -> None:
    queue = bw.problems.single_queue(initial="empty")
    result = bw.solve(queue, bw.Polynomial(6), bw.DIA())
    assert result.lower_bound == pytest.approx(113.148, abs=2e-3)


def test_a_bound_does_not_depend_on_the_rounding_of_moments() -> None:
    """Rounded moments, times coefficients of 1e10, would make a program with another optimum."""
    model = bw.problems.single_queue(capacity=4_999, initial="reverse")
    result = bw.solve(model, bw.Polynomial(7), bw.DIA(), judge=False)
    rows = AllRows().on(model, result.basis)
    value = dot(rows.initial_moments, doubled(result.coef))
    assert result.lower_bound == pytest.approx(value, rel=3e-7)
    for way in (-np.inf, np.inf):
        moments = np.nextafter(result.moments, way)
        found = repaired(rows, result.coef, moments, result.weights)
        assert found.value == result.lower_bound


def test_repaired_rows_hold_in_fractions() -> None:
    model = bw.problems.single_queue(capacity=4_999, initial="empty")
    rows = AllRows().on(model, bw.Polynomial(6))
    result = bw.solve(model, bw.Polynomial(6), bw.Fixed("initial"))
    found = repaired(rows, result.coef, result.moments)
    slack = np.concatenate([block for _, block in rows.all_slacks(found.coef)])
    size = rows.all_terms(found.coef)
    for pair in np.argsort(slack / size)[:200]:
        assert exact_slack(rows, found, int(pair)) >= 0


@settings(max_examples=60)
@given(strategies.problems())
def test_a_repaired_bound_is_proven_in_fractions(problem: strategies.Problem) -> None:
    model, basis, weights = problem
    result = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    rows = AllRows().on(model, result.basis)
    found = repaired(rows, result.coef, result.moments)
    assert all(exact_slack(rows, found, pair) >= 0 for pair in range(model.n_pairs))
    best = float(model.initial @ bw.exact.optimal(model).values)
    assert found.value <= best + 1e-9 * (1.0 + abs(best))


@given(st.integers(0, 200))
def test_a_shift_is_the_repair_of_what_is_no_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = bw.problems.single_queue(capacity=20, discount=0.9)
    rows = AllRows().on(model, bw.Polynomial(2))
    coef = rng.normal(size=3) * [10.0, 1.0, 0.1]
    found = repaired(rows, coef, rows.moments(model.initial))
    assert all(exact_slack(rows, found, pair) >= 0 for pair in range(model.n_pairs))


def test_a_repair_that_takes_much_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bw.problems.single_queue(capacity=200, initial="empty")
    monkeypatch.setattr(sys.modules["bellweight.results.making"], "_MUCH", 1e-12)
    with pytest.warns(bw.errors.BellweightWarning, match="it takes to make every row hold"):
        bw.solve(model, bw.Polynomial(3), bw.Fixed("initial"), judge=False)


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_of_several_functions_is_rounded_down(seed: int) -> None:
    """Values near one, made of terms near 1e12: in plain digits they are off by 1e-4."""
    n, rng = 30, np.random.default_rng(seed)
    points, initial = np.sort(rng.uniform(0.99, 1.0, n)), rng.dirichlet(np.ones(n))
    basis = bw.Custom(lambda states: np.vander(points[states[:, 0].astype(int)], 5))
    model = bw.TabularModel.from_arrays(np.ones((n, 1)), np.eye(n)[None], 0.5, initial)
    rows = AllRows().on(model, basis)
    coef = 1e12 * np.array([1.0, -4.0, 6.0, -4.0, 1.0])  # 1e12 (1 - x)^4
    found = [Repaired(share * coef, -np.inf, 0.0, 0.0) for share in (1.0, 0.7)]
    each = [
        [sum(f * Fraction(c) for f, c in zip(map(Fraction, row), one.coef, strict=True))
         for row in np.vander(points, 5).tolist()]
        for one in found
    ]  # fmt: skip
    largest = [max(values) for values in zip(*each, strict=True)]
    truth = sum(Fraction(p) * v for p, v in zip(initial, largest, strict=True))
    assert truth - Fraction(1) <= Fraction(largest_value(rows, found)) <= truth


def test_a_spoilt_repair_is_not_below_what_costs_alone_prove() -> None:
    moves, cost = np.array([np.eye(2), np.eye(2)[::-1]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    model = bw.TabularModel.from_arrays(cost, moves, 0.9, np.array([1.0, 0.0]))
    rows = AllRows().on(model, bw.Polynomial(1))
    found = repaired(rows, np.array([0.0, -1e120]), np.array([1.0, 0.5]))
    assert found.value >= -1e-12


def test_rows_are_looked_at_where_the_coefficients_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    corrected, scan = Attempt._corrected, Auditor.scan

    def far(self: Attempt, coef: np.ndarray, positions: np.ndarray) -> Doubled:
        found = corrected(self, coef, positions)
        return Doubled(1.5 * found.high, found.low)

    def spied(self: Auditor, moments: np.ndarray, coef: np.ndarray) -> Separation:
        seen.append(coef)
        return scan(self, moments, coef)

    monkeypatch.setattr(Attempt, "_corrected", far)
    monkeypatch.setattr(Auditor, "scan", spied)
    monkeypatch.setattr(AlpProgram, "_can_be_precise", False)
    model = bw.problems.single_queue(capacity=20)
    rows = AllRows().on(model, bw.Polynomial(2))
    found = AlpProgram(rows).solve(rows.moments(model.initial), model.initial)
    assert found.status is bw.Status.INACCURATE
    assert any(np.array_equal(coef, found.coef) for coef in seen)


def test_functions_that_all_but_vanish_where_the_weights_are() -> None:
    features = np.array([[1.0, 0.0], [1.0, 1e-136], [1.0, 1e-272], [1.0, 1.0]])
    moves = np.array([np.eye(4)[[3, 3, 1, 1]], np.eye(4)[[1, 1, 0, 3]]])
    cost = np.array([[2.0, 3.0], [-1.0, 0.0], [2.0, 0.0], [2.0, -2.0]])
    model = bw.TabularModel.from_arrays(cost, moves, 0.9, np.array([0.25, 0.25, 0.5, 0.0]))
    basis = bw.Custom(lambda states: features[states[:, 0].astype(int)])
    result = bw.solve(model, basis, bw.Fixed("initial"), judge=False)
    assert result.objective == pytest.approx(-19.0)
    assert result.lower_bound == pytest.approx(-19.0)
    assert result.audit.violation <= 1e-12
