"""Bases that bend, bases made of others, and high degrees: what holds for every one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import bellweight as bw
from bellweight.basis.compiled import CompiledBasis
from bellweight.common import files
from bellweight.models.kernels.features import fill_atoms, fill_products

RICH = {
    "kinks": bw.PiecewiseLinear(3),
    "given kinks": bw.PiecewiseLinear([0.5, 2.0]),
    "kinks per coordinate": bw.PiecewiseLinear([[0.5], [], [1.0, 2.5]]),
    "radial": bw.Radial(4, seed=2),
    "given centres": bw.Radial([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]], width=1.5),
    "random cosines": bw.Fourier(6, seed=3),
    "scaled cosines": bw.Fourier(6, seed=3, scale=[1.0, 2.0, 3.0]),
    "regular cosines": bw.Fourier(2, seed=None),
    "separable": bw.Separable(bw.Polynomial(3)),
    "separable radial": bw.Separable([bw.Radial(2), bw.Affine(), bw.Indicator()]),
    "product": bw.Product([bw.Affine(), bw.PiecewiseLinear(1), bw.Polynomial(2)]),
    "stacked": bw.Stacked(bw.Affine(), bw.Radial(3), bw.Fourier(2)),
}
GRID = np.array(list(np.ndindex(4, 3, 5)), dtype=float)
every = pytest.mark.parametrize("basis", RICH.values(), ids=RICH.keys())
METHODS = [bw.Fixed("initial"), bw.Fixed("uniform"), bw.FromPolicy(), bw.DIA(target=bw.Uniform())]


@every
def test_a_rich_basis_keeps_its_promises(basis: bw.bases.Basis, tmp_path: Path) -> None:
    fitted = basis.on(GRID)
    features = fitted(GRID)
    names = fitted.function_names(3)
    assert np.isfinite(features).all()
    assert features.shape == (len(GRID), len(names))
    assert len(set(names)) == len(names)
    assert names[0] == "1"
    assert np.array_equal(features[:, 0], np.ones(len(GRID)))
    for x in (0, 17, 59):
        np.testing.assert_allclose(fitted(GRID[[x]])[0], features[x], rtol=0.0, atol=1e-14)
    again = files.load(files.save(tmp_path / "basis.npz", fitted), type(basis))
    assert np.array_equal(again(GRID), features)
    assert again.function_names(3) == names
    unfitted = files.load(files.save(tmp_path / "basis.npz", basis), type(basis))
    assert np.array_equal(unfitted.on(GRID)(GRID), features)
    compiled = CompiledBasis.of(fitted, 3)
    functions = compiled.functions
    wide = np.zeros((len(GRID), compiled.n_functions))
    atoms = np.zeros(3 + len(functions.kind))
    for x, state in enumerate(GRID):
        fill_atoms(state, functions, atoms)
        fill_products(functions, atoms, wide[x])
    np.testing.assert_allclose(compiled.of_basis(wide), features, rtol=1e-13, atol=1e-13)


def test_functions_are_what_their_names_say() -> None:
    point = np.array([[2.0, -1.0]])
    kinks = bw.PiecewiseLinear([[0.5, 3.0], [-2.0]])
    assert kinks.function_names(2) == (
        "1",
        "x1",
        "x2",
        "max(x1 - 0.5, 0)",
        "max(x1 - 3, 0)",
        "max(x2 + 2, 0)",
    )
    assert kinks(point)[0].tolist() == [1.0, 2.0, -1.0, 1.5, 0.0, 1.0]
    bump = bw.Radial([[2.0, 1.0]], width=2.0)
    assert bump.function_names(2) == ("1", "bump at (2, 1)")
    np.testing.assert_allclose(bump(point)[0], [1.0, np.exp(-0.5)])
    wave = bw.Fourier(2, seed=None).on(np.array([[0.0, -1.0], [4.0, -1.0]]))
    assert wave.function_names(2) == ("1", "cos(1 x1)", "cos(2 x1)")
    np.testing.assert_allclose(wave(point)[0], [1.0, 0.0, -1.0], atol=1e-15)
    sums = bw.Separable([bw.Polynomial(2), bw.PiecewiseLinear([0.0])])
    assert sums.function_names(2) == ("1", "x1", "x1^2", "x2", "max(x2 - 0, 0)")
    assert sums(point)[0].tolist() == [1.0, 2.0, 4.0, -1.0, 0.0]
    tensor = bw.Product([bw.Polynomial(2), bw.Affine()])
    assert tensor.function_names(2) == ("1", "x2", "x1", "x1 * x2", "x1^2", "x1^2 * x2")
    assert tensor(point)[0].tolist() == [1.0, -1.0, 2.0, -2.0, 4.0, -4.0]
    both = bw.Stacked(bw.Affine(), bw.Polynomial(2))
    assert both.function_names(2) == ("1", "x1", "x2", "x1", "x2", "x1^2", "x1 x2", "x2^2")
    assert both(point)[0].tolist() == [1.0, 2.0, -1.0, 2.0, -1.0, 4.0, -2.0, 1.0]


def test_what_is_left_open_is_fitted_to_the_states() -> None:
    assert bw.PiecewiseLinear(3).on(GRID).kinks[2] == (1.0, 2.0, 3.0)
    flat = np.column_stack([GRID[:, 0], np.ones(len(GRID))])
    assert bw.PiecewiseLinear(2).on(flat).kinks == ((1.0, 2.0), ())
    radial = bw.Radial(10, seed=1).on(GRID)
    assert len(np.unique(radial.centres, axis=0)) == 10
    distances = np.linalg.norm(radial.centres[:, None] - radial.centres[None], axis=2)
    nearest = (distances + np.diag(np.full(10, np.inf))).min(axis=1)
    assert radial.width == pytest.approx(np.median(nearest))
    assert not np.array_equal(radial.centres, bw.Radial(10, seed=2).on(GRID).centres)
    assert not np.array_equal(bw.Fourier(3, seed=1).on(GRID)(GRID), bw.Fourier(3).on(GRID)(GRID))


def test_random_cosines_approach_the_gaussian_kernel() -> None:
    features = bw.Fourier(20_000, seed=5, scale=2.0).on(GRID)(GRID[:8])[:, 1:]
    distance = np.linalg.norm(GRID[:8, None] - GRID[None, :8], axis=2)
    kernel = 2.0 * features @ features.T / features.shape[1]
    np.testing.assert_allclose(kernel, np.exp(-0.5 * (distance / 2.0) ** 2), atol=0.05)


@st.composite
def rich_bases(draw: st.DrawFn, n_states: int) -> bw.bases.Basis:
    """A basis of a one-dimensional model, with independent functions or not."""
    size, seed = draw(st.integers(1, 4)), draw(strategies.seeds)
    bend = draw(
        st.sampled_from(
            [
                bw.PiecewiseLinear(size),
                bw.Radial(min(size, n_states), width=draw(st.floats(0.3, 10.0)), seed=seed),
                bw.Fourier(size, seed=seed),
                bw.Fourier(size, seed=None),
            ]
        )
    )
    outer = draw(st.sampled_from(["plain", "separable", "product", "stacked"]))
    wrapped = {"separable": bw.Separable, "product": bw.Product}
    if outer == "stacked":
        return bw.Stacked(bw.Affine(), bend)
    return wrapped[outer](bend) if outer in wrapped else bend


@pytest.mark.filterwarnings("ignore::bellweight.errors.BellweightWarning")
@settings(max_examples=60)
@given(model=strategies.models(), data=st.data())
def test_approximate_values_stay_below_the_optimum(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    basis = data.draw(rich_bases(model.n_states))
    weights = data.draw(strategies.weights_for(model))
    result = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    assert result.status is bw.Status.CONVERGED
    scale = reference.cost_scale(model)
    values = result.basis.on(model.states)(model.states) @ result.coef
    assert (values <= bw.exact.optimal(model).values + 1e-8 * scale).all()


@pytest.mark.filterwarnings("ignore::bellweight.errors.BellweightWarning")
@settings(max_examples=40)
@given(model=strategies.models(), data=st.data())
def test_a_kink_at_every_state_gives_exact_values(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    weights = data.draw(strategies.weights_for(model, positive=True))
    basis = bw.PiecewiseLinear(model.states[:, 0])
    result = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    scale = reference.cost_scale(model)
    exact = bw.exact.optimal(model).values
    np.testing.assert_allclose(basis(model.states) @ result.coef, exact, atol=1e-7 * scale, rtol=0)


def test_rich_results_come_back_from_files(tmp_path: Path) -> None:
    queue = bw.problems.single_queue(capacity=60)
    result = bw.solve(queue, bw.Stacked(bw.PiecewiseLinear(4), bw.Radial(3)), bw.DIA())
    result.save(tmp_path / "queue.npz")
    again = bw.Result.load(tmp_path / "queue.npz", model=queue)
    assert again.names == result.names
    assert [again.policy.action(x) for x in range(61)] == [
        result.policy.action(x) for x in range(61)
    ]


def test_a_basis_that_only_lists_can_use_says_so() -> None:
    network = bw.problems.queue_network()
    states = np.zeros((1, network.dimension), dtype=int)
    with pytest.raises(bw.errors.BasisError, match=r"Indicator cannot run inside"):
        bw.solve(network, bw.Indicator(), bw.Fixed(), rows=bw.SampledRows(states))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: bw.PiecewiseLinear(0), r"kinks is 0, expected a whole number of at least 1"),
        (lambda: bw.PiecewiseLinear("a"), r"kinks is 'a', expected a list of numbers"),
        (lambda: bw.PiecewiseLinear([1.0, 1.0]), r"kinks\[1\] is 1 after 1, expected increasing"),
        (lambda: bw.PiecewiseLinear([[0], [2, 1]]), r"kinks\[1\]\[1\] is 1 after 2"),
        (lambda: bw.PiecewiseLinear([np.nan]), r"kinks\[0\] is nan, expected a finite number"),
        (lambda: bw.PiecewiseLinear([[0.0]]).on(GRID), r"1 lists for states with 3 coordinates"),
        (lambda: bw.PiecewiseLinear(2)(GRID), r"a PiecewiseLinear must know the states"),
        (lambda: bw.Radial(0), r"centres is 0, expected a whole number"),
        (lambda: bw.Radial([1.0, 2.0]), r"centres has shape \(2,\)"),
        (lambda: bw.Radial([[1.0], [1.0]]), r"all different: remove repetitions"),
        (lambda: bw.Radial(3, width=0.0), r"width is 0.0, expected a number above 0"),
        (lambda: bw.Radial(3, seed=-1), r"seed is -1, expected a whole number"),
        (lambda: bw.Radial(99).on(GRID), r"only 60 distinct state vectors: ask for fewer"),
        (lambda: bw.Radial(1).on(GRID), r"one centre has no distance to others: give a width"),
        (lambda: bw.Radial([[1.0]], 1.0)(GRID), r"centres has shape \(1, 1\), expected \(m, 3\)"),
        (lambda: bw.Radial(3).function_names(3), r"a Radial must know the states"),
        (lambda: bw.Fourier(0), r"n is 0, expected a whole number"),
        (lambda: bw.Fourier(3, scale=-1.0), r"scale is -1.0, expected numbers above 0"),
        (lambda: bw.Fourier(3, None, 1.0), r"scale is 1.0 but seed is None"),
        (lambda: bw.Fourier(3, scale=[1.0]).on(GRID), r"scale has 1 numbers for states with 3"),
        (lambda: bw.Fourier(3)(GRID), r"a Fourier must know the states"),
        (lambda: bw.Fourier(3).on(GRID)(GRID[:, :2]), r"fitted to states with 3 .* got 2"),
        (lambda: bw.Separable(3), r"Separable got 3, expected a basis or a list"),
        (lambda: bw.Product([bw.Affine(), 3]), r"basis 1 of Product is 3, expected a basis"),
        (lambda: bw.Product([bw.Affine()])(GRID), r"Product has 1 bases for states with 3"),
        (lambda: bw.Product(bw.Polynomial(40))(GRID), r"41 x 41 x 41 = 68921 functions is beyond"),
        (bw.Stacked, r"Stacked got \(\), expected a basis"),
        (lambda: bw.Stacked(bw.Affine(lower=0.0)), r"basis 0 of Stacked has bounds of its own"),
    ],
)
def test_bad_settings_are_refused(build: Any, message: str) -> None:
    with pytest.raises(bw.errors.BasisError, match=message):
        build()


def test_bounds_hold() -> None:
    queue = bw.problems.single_queue(capacity=60)
    free = [-np.inf, -np.inf, 0.0, 0.0, 0.0]
    convex = bw.solve(queue, bw.PiecewiseLinear(3, lower=free), bw.Fixed("uniform"))
    plain = bw.solve(queue, bw.PiecewiseLinear(3), bw.Fixed("uniform"))
    assert (convex.coef[2:] >= -1e-9).all()
    assert convex.objective <= plain.objective * (1.0 + 1e-9)


@pytest.fixture(scope="module")
def clinic() -> bw.TabularModel:
    return bw.problems.scheduling("tiny").to_tabular(clip=True)


@pytest.mark.filterwarnings("ignore::bellweight.errors.BellweightWarning")
@pytest.mark.parametrize(
    "method",
    [pytest.param(method, marks=pytest.mark.slow) for method in METHODS[:-1]] + [METHODS[-1]],
    ids=["initial", "uniform", "policy", "dia"],
)
def test_degree_six_in_four_variables_is_solved(clinic: bw.TabularModel, method: Any) -> None:
    result = bw.solve(clinic, bw.Polynomial(6), method)
    assert result.status is bw.Status.CONVERGED
    assert result.audit.passed
    values = bw.Polynomial(6)(clinic.states) @ result.coef
    optimal = bw.exact.optimal(clinic).values
    assert (values <= optimal + 1e-8 * optimal.max()).all()
    # Degree six spans more than degree two, and the exact values bound both.
    low = clinic_objective(clinic, 2, result)
    assert low < result.objective <= result.weights @ optimal * (1.0 + 1e-9)


def clinic_objective(clinic: bw.TabularModel, degree: int, result: bw.Result) -> float:
    """The objective of a lower degree under the weights of a result."""
    return bw.solve(clinic, bw.Polynomial(degree), bw.Fixed(result.weights)).objective


@pytest.mark.parametrize("capacity", [20, 300, 49_999])
@pytest.mark.parametrize("method", METHODS, ids=["initial", "uniform", "policy", "dia"])
def test_degree_ten_in_one_variable_is_solved(capacity: int, method: Any) -> None:
    queue = bw.problems.single_queue(capacity=capacity)
    result = bw.solve(queue, bw.Polynomial(10), method)
    assert result.status is bw.Status.CONVERGED
    assert result.audit.passed
    optimal = bw.exact.optimal(queue).values
    assert result.objective <= result.weights @ optimal * (1.0 + 1e-9)
    lower = bw.solve(queue, bw.Polynomial(6), bw.Fixed(result.weights))
    assert lower.objective <= result.objective * (1.0 + 1e-9)


@pytest.mark.filterwarnings("ignore::bellweight.errors.BellweightWarning")
def test_another_basis_of_the_same_span_gives_the_same_answer(clinic: bw.TabularModel) -> None:
    low, high = clinic.states.min(axis=0), clinic.states.max(axis=0)

    def centred(states: np.ndarray) -> np.ndarray:
        return bw.Polynomial(4)((2.0 * states - low - high) / (high - low))

    raw = bw.solve(clinic, bw.Polynomial(4), bw.Fixed())
    same = bw.solve(clinic, bw.Custom(centred), bw.Fixed())
    assert raw.objective == pytest.approx(same.objective, rel=1e-9)


def test_bumps_that_can_hardly_be_told_apart_do_not_make_the_program_look_unbounded() -> None:
    queue = bw.problems.single_queue(capacity=200)
    with (
        pytest.warns(bw.errors.BellweightWarning, match=r"rounding spoils .*\(given up: about"),
        pytest.warns(bw.errors.BellweightWarning, match="coefficients up to .* rounding spoils"),
        pytest.warns(bw.errors.BellweightWarning, match="depend on earlier ones"),
    ):
        result = bw.solve(queue, bw.Radial(16, width=70.0, seed=1), bw.Fixed("initial"))
    best = float(queue.initial @ bw.exact.optimal(queue).values)
    assert result.lower_bound is not None
    assert result.lower_bound <= best <= result.cost.mean * (1.0 + 1e-12)


def test_moments_far_below_the_others_do_not_spoil_the_dual() -> None:
    levels = 200
    wear = np.arange(levels)
    stay = np.eye(levels)
    worse = 0.7 * stay + 0.3 * np.roll(stay, 1, axis=1)
    worse[-1] = stay[-1]
    machine = bw.TabularModel.from_arrays(
        cost=np.column_stack([0.2 * wear, np.full(levels, 40.0), np.full(levels, 60.0)]),
        transition=np.array([worse, stay[wear // 2], stay[np.zeros(levels, dtype=int)]]),
        discount=0.99,
        initial=stay[0],
    )
    rule = bw.TablePolicy(np.where(wear < 30, 0, 2))
    basis = bw.PiecewiseLinear([5, 10, 15, 20, 30, 60])
    result = bw.solve(machine, basis, bw.DIA(target=rule))
    # Wear beyond 60 is visited with a share of 1e-10, and basis functions live there alone.
    assert result.status is bw.Status.CONVERGED
    assert result.dual.sum() == pytest.approx(100.0, rel=1e-7)
