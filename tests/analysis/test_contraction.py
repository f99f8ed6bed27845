"""Lipschitz constants, certified settings and moduli, against search and against the theorems."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import strategies

import bellweight as bw
from bellweight.analysis import contraction, dual_pieces
from bellweight.analysis.dual_pieces import half_diameter
from bellweight.backends.tabular import TabularSetup
from bellweight.display import to_text
from bellweight.program import AllRows, AlpProgram, TabularRows

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
KINDS = ["ties", "normal", "mixed scale", "positive", "sparse"]


def small_problem(seed: int) -> tuple[bw.TabularModel, bw.bases.Basis]:
    """A random model with at most 30 rows and 2 to 4 basis functions; a third are degenerate."""
    rng = np.random.default_rng(seed)
    n, n_actions = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    allowed = rng.random((n, n_actions)) < 0.8
    allowed[np.arange(n), rng.integers(n_actions, size=n)] = True
    state, action = np.nonzero(allowed)
    rounded = bool(rng.integers(2))
    model = bw.TabularModel.from_pairs(
        strategies.random_costs(rng, KINDS[seed % 5], len(state)),
        np.array([strategies.random_row(rng, n, int(x), rounded=rounded) for x in state]),
        state,
        action,
        float(rng.choice([0.1, 0.5, 0.9, 0.99])),
        strategies.random_distribution(rng, n),
    )
    if seed % 3 == 0 and model.n_pairs <= 15:
        model = strategies.with_duplicate_actions(model)
    degree = int(rng.integers(1, min(3, n - 1) + 1))
    groups = np.concatenate([np.arange(degree + 1), rng.integers(degree + 1, size=n - degree - 1)])
    features = strategies.RandomFeatures(n, degree, seed)
    bases = [bw.Polynomial(degree), bw.Indicator(groups), bw.Custom(features)]
    return model, bases[int(rng.integers(3))]


class Duals:
    """The minimum-norm dual (N,) of weights, by the cutting-plane program."""

    def __init__(self, model: bw.TabularModel, basis: bw.bases.Basis) -> None:
        self.rows = AllRows().on(model, basis)
        self.program = AlpProgram(self.rows)

    def __call__(self, weights: FloatArray) -> FloatArray:
        found = self.program.solve(self.rows.moments(weights), weights)
        dual = np.zeros(self.rows.n_pairs)
        dual[found.keys] = found.dual
        return dual

    def ratio(self, first: FloatArray, second: FloatArray) -> float:
        return float(np.abs(self(first) - self(second)).sum() / np.abs(first - second).sum())


def moved(weights: FloatArray, states: tuple[int, int], length: float) -> FloatArray:
    other = weights.copy()
    other[states[0]] += length
    other[states[1]] -= length
    return other


def searched(duals: Duals, piece: contraction.Piece, seed: int) -> tuple[float, float]:
    """The largest ratio of random pairs of weights, and the largest at the named weights."""
    rng = np.random.default_rng(seed)
    n = duals.rows.model.n_states
    random = 0.0
    for _ in range(12):
        weights = 0.99 * strategies.random_distribution(rng, n) + 0.01 / n
        far = strategies.random_distribution(rng, n, positive=True)
        x, y = (int(i) for i in rng.choice(n, size=2, replace=False))
        near = moved(weights, (x, y), 1e-3 / n)
        random = max(random, duals.ratio(weights, far), duals.ratio(weights, near))
    if piece.weights is None:
        return random, 0.0
    room = 0.5 * float(piece.weights.min())
    steps = [room * share for share in (1.0, 1e-1, 1e-2, 1e-3)]
    at = max(duals.ratio(piece.weights, moved(piece.weights, piece.states, h)) for h in steps)
    return random, at


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3, 4))]
)
def test_the_enumerated_constant_is_never_below_and_close_to_what_search_finds(block: int) -> None:
    for seed in range(12 * block, 12 * block + 12):
        model, basis = small_problem(seed)
        assert model.n_pairs <= 30
        piece = contraction.steepest_piece(model, basis)
        random, at = searched(Duals(model, basis), piece, seed)
        rounding = 1e-7 / (1.0 - model.discount)
        assert max(random, at) <= piece.slope * (1.0 + 1e-6) + rounding, seed
        assert piece.slope <= 2.0 * max(random, at) + rounding, seed
        if piece.attained:
            # Not only within twice: the constant is attained where it says.
            assert at == pytest.approx(piece.slope, rel=1e-4, abs=rounding), seed


@pytest.mark.parametrize("seed", range(15))
def test_the_sampled_constant_is_a_lower_bound(seed: int) -> None:
    model, basis = small_problem(seed)
    bound = contraction.dual_lipschitz(model, basis)
    low = contraction.sampled_dual_lipschitz(model, basis, 2, seed)
    assert 0.0 <= low <= bound * (1.0 + 1e-6) + 1e-7 / (1.0 - model.discount)


def basis_bound(model: bw.TabularModel, basis: bw.bases.Basis) -> float:
    """Steepest nonsingular basis among rows tight at any vertex, listed the slow way."""
    features = reference.features_of(model, basis)
    rows = reference.bellman_rows(model, features)
    k, steepest = features.shape[1], 0.0
    for subset in combinations(range(model.n_pairs), k):
        matrix = rows[list(subset)]
        if np.linalg.cond(matrix) > 1e10:
            continue
        coef = np.linalg.solve(matrix, model.cost[list(subset)])
        if (rows @ coef <= model.cost + 1e-8 * (1.0 + np.abs(model.cost).max())).all():
            points = np.linalg.solve(matrix.T, features.T).T
            pairwise = np.abs(points[:, None, :] - points[None, :, :]).sum(axis=2)
            steepest = max(steepest, 0.5 * float(pairwise.max()))
    return steepest


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_piece_is_steeper_than_the_steepest_basis(seed: int) -> None:
    model, basis = small_problem(seed)
    exact = contraction.dual_lipschitz(model, basis)
    assert exact <= basis_bound(model, basis) * (1.0 + 1e-9) + 1e-12


def test_a_single_vertex_where_every_row_is_tight() -> None:
    # Without costs the only vertex is zero, and every support is decided by the norm alone.
    rng = np.random.default_rng(3)
    transition = np.array([[strategies.random_row(rng, 7, x) for x in range(7)] for _ in range(3)])
    model = bw.TabularModel.from_arrays(np.zeros((7, 3)), transition, 0.9, np.full(7, 1 / 7))
    basis = bw.Polynomial(3)
    piece = contraction.steepest_piece(model, basis)
    random, at = searched(Duals(model, basis), piece, 3)
    assert piece.vertices == 1
    assert random <= piece.slope * (1.0 + 1e-6)
    assert at == pytest.approx(piece.slope, rel=1e-4)


def test_rows_too_close_to_tell_give_an_upper_bound_that_says_so() -> None:
    # The second action of each state is dearer by far less than can be told from a tie.
    cost = np.array([[1.0, 1.0 + 2e-11], [2.0, 2.0 + 2e-11], [4.0, 4.0 + 2e-11]])
    transition = np.array([np.eye(3), np.roll(np.eye(3), 1, axis=1)])
    cost[:, 1] += 0.9 * (np.array([1.0, 2.0, 4.0]) - np.array([2.0, 4.0, 1.0])) / 0.1
    model = bw.TabularModel.from_arrays(cost, transition, 0.9, np.full(3, 1 / 3))
    basis = bw.Indicator()
    piece = contraction.steepest_piece(model, basis)
    assert not piece.attained
    assert piece.weights is None
    assert contraction.sampled_dual_lipschitz(model, basis, 5, 1) <= piece.slope


def test_disjoint_supports_make_the_constant_large() -> None:
    found = 0
    for seed in range(30):
        model, basis = small_problem(seed)
        duals = Duals(model, basis)
        corners = [duals(np.eye(model.n_states)[x]) > 0.0 for x in range(model.n_states)]
        if any(not (one & two).any() for one, two in combinations(corners, 2)):
            found += 1
            bound = contraction.dual_lipschitz(model, basis)
            assert bound >= (1.0 - 1e-9) / (1.0 - model.discount)
    assert found >= 3


def test_a_basis_of_the_constant_alone_never_moves() -> None:
    model, _ = small_problem(1)
    assert contraction.dual_lipschitz(model, bw.Polynomial(0)) == pytest.approx(0.0, abs=1e-12)
    method = bw.DIA.certified(lipschitz=0.0, discount=model.discount)
    assert (method.mode, method.modulus) == ("certified", 0.0)
    assert bw.solve(model, bw.Polynomial(0), method).mode == "certified"


def test_dependent_basis_functions_do_not_count(two_states: bw.TabularModel) -> None:
    assert contraction.dual_lipschitz(two_states, bw.Polynomial(3)) == pytest.approx(
        contraction.dual_lipschitz(two_states, bw.Polynomial(1))
    )


def test_the_enumeration_refuses_what_it_cannot_do(small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=r"make 608,685 sets of rows.*limit of 1,000"):
        contraction.dual_lipschitz(small_queue, bw.Polynomial(2), limit=1_000)
    with pytest.raises(bw.errors.ArgumentError, match=r"function 1 .* has a bound"):
        contraction.dual_lipschitz(small_queue, bw.Polynomial(1, lower=[-np.inf, 0.0]))
    with pytest.raises(bw.errors.ModelError, match="expected a TabularModel"):
        contraction.dual_lipschitz(None, bw.Polynomial(1))  # type: ignore[arg-type]
    with pytest.raises(bw.errors.ArgumentError, match="expected a basis"):
        contraction.dual_lipschitz(small_queue, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(12))
def test_the_local_jacobian_is_the_change_of_the_dual(seed: int) -> None:
    model, basis = small_problem(seed)
    duals = Duals(model, basis)
    rng = np.random.default_rng(seed)
    weights = strategies.random_distribution(rng, model.n_states, positive=True)
    local = contraction.local_jacobian(model, basis, weights)
    assert local.exact
    if local.interior:
        assert local.slope <= contraction.dual_lipschitz(model, basis) * (1.0 + 1e-9) + 1e-9
        x, y = local.states
        other = moved(weights, (x, y), 1e-7)
        features = reference.features_of(model, basis)
        change = (duals(other) - duals(weights))[local.keys]
        wanted = local.matrix @ (features[x] - features[y]) * 1e-7
        np.testing.assert_allclose(change, wanted, atol=1e-10 / (1.0 - model.discount))


def test_the_local_jacobian_keeps_an_active_bound_active(two_states: bw.TabularModel) -> None:
    free = bw.solve(two_states, bw.Polynomial(1), bw.Fixed("uniform")).coef
    basis = bw.Polynomial(1, upper=[np.inf, 0.5 * free[1]])
    local = contraction.local_jacobian(two_states, basis, [0.5, 0.5])
    # With the slope at its bound only the constant is free, and the total mass does not change.
    assert local.interior
    assert local.slope == pytest.approx(0.0, abs=1e-9)


def test_the_local_jacobian_of_a_larger_model() -> None:
    queue = bw.problems.single_queue(capacity=3_000)
    local = contraction.local_jacobian(queue, bw.Polynomial(2), queue.initial)
    assert local.matrix.shape == (len(local.keys), 3)
    assert np.isfinite(local.slope)


@pytest.mark.parametrize("shape", [(40, 3), (12, 9), (25, 1)])
def test_three_ways_to_a_diameter(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(shape[0]).normal(size=shape)
    wanted = 0.5 * max(float(np.abs(a - b).sum()) for a in points for b in points)
    half, states, exact = half_diameter(points)
    assert exact
    assert half == pytest.approx(wanted)
    assert 0.5 * np.abs(points[states[0]] - points[states[1]]).sum() == pytest.approx(wanted)
    monkeypatch.setattr(dual_pieces, "_PAIRWISE", 1)
    half, _, exact = half_diameter(points)
    assert not exact
    assert 0.5 * wanted <= half <= wanted * (1.0 + 1e-12)


def one_step(setup: TabularSetup, method: bw.DIA, weights: FloatArray) -> FloatArray:
    iterate = setup.iterate(setup.point_of(weights))
    occupancy = setup.occupancy(method.generate(iterate)).weights
    return method.update(weights, occupancy)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 8))]
)
def test_certified_iterates_obey_the_proven_rate_from_everywhere(seed: int) -> None:
    model, basis = small_problem(seed)
    bound = contraction.dual_lipschitz(model, basis)
    step_size = (1.0, 0.6)[seed % 2]
    method = bw.DIA.certified(lipschitz=bound, discount=model.discount, step_size=step_size)
    assert method.modulus is not None
    setup = TabularSetup(TabularRows(model, basis))
    limit = bw.solve(model, basis, method, stop=bw.Stop(tol=1e-12)).weights
    assert limit is not None
    rng = np.random.default_rng(seed)
    for start in range(10):
        weights = strategies.random_distribution(rng, model.n_states)
        first = float(np.abs(weights - limit).sum())
        if start < 2:
            for m in range(1, 7):
                weights = one_step(setup, method, weights)
                distance = float(np.abs(weights - limit).sum())
                assert distance <= method.modulus**m * first + 1e-9, (seed, m)
        again = bw.solve(
            model,
            basis,
            bw.DIA.certified(
                lipschitz=bound, discount=model.discount, step_size=step_size, start=weights
            ),
            stop=bw.Stop(tol=1e-11),
        )
        assert again.status is bw.Status.CONVERGED
        np.testing.assert_allclose(again.weights, limit, atol=1e-8)
        ratios = [r.step_ratio for r in again.history if r.one_norm and r.one_norm > 1e-9]
        assert all(ratio is None or ratio <= method.modulus + 1e-6 for ratio in ratios)


@pytest.mark.parametrize("discount", [0.1, 0.9, 0.98, 0.995])
@pytest.mark.parametrize("lipschitz", [0.5, 1.0, 50.0])
def test_certified_settings_satisfy_the_conditions(discount: float, lipschitz: float) -> None:
    for step_size, modulus, split in ((1.0, 0.9, 0.5), (0.3, 0.99, 0.9), (0.8, 0.2, 0.05)):
        found = contraction.certified_settings(
            lipschitz, discount, step_size=step_size, modulus=modulus, split=split
        )
        # Eq. epsilon_tau_conditions, as the paper writes it.
        floor = 2.0 * discount * lipschitz / (1.0 - discount)
        assert found.smoothing_mass > floor
        room = (1.0 - discount) * found.smoothing_mass - 2.0 * discount * lipschitz
        assert found.temperature > discount * lipschitz * found.smoothing_mass / (2.0 * room)
        assert found.modulus == pytest.approx(1.0 - step_size + step_size * modulus)
        count = found.iterations_to(1e-6)
        assert (
            2.0 * found.modulus**count <= 1e-6 * (1.0 + 1e-9) < 2.0 * found.modulus ** (count - 1)
        )
        mass = 1.0 / (1.0 - discount)
        assert found.dual_share == pytest.approx(mass / (mass + found.smoothing_mass))


def test_the_price_of_a_certificate() -> None:
    # With disjoint supports the dual gets at most 1 % of the policy at discount 0.98.
    for discount, share in ((0.98, 0.0102), (0.995, 0.0025)):
        best = contraction.certified_settings(
            1.0 / (1.0 - discount), discount, modulus=0.999999, split=0.999999
        )
        assert best.dual_share == pytest.approx(share, rel=0.02)


def test_settings_that_make_no_sense_are_refused() -> None:
    for bad in (-1.0, float("nan"), float("inf"), True):
        with pytest.raises(bw.errors.ArgumentError, match="lipschitz"):
            contraction.certified_settings(bad, 0.9)
    with pytest.raises(bw.BellweightError, match="discount"):
        contraction.certified_settings(1.0, 1.0)
    with pytest.raises(bw.errors.ArgumentError, match="modulus"):
        contraction.certified_settings(1.0, 0.9, modulus=1.0)
    with pytest.raises(bw.errors.ArgumentError, match="both lipschitz and discount"):
        bw.DIA(lipschitz=1.0)


class AnotherGenerator(bw.DIA):
    """DIA with a generator of its own, for which nothing is proven."""

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        return iterate.greedy


def test_the_mode_is_earned_not_named() -> None:
    certified = bw.DIA.certified(lipschitz=2.0, discount=0.5)
    settings = {
        "temperature": certified.temperature,
        "smoothing_mass": certified.smoothing_mass,
    }
    assert certified.mode == "certified"
    assert certified.modulus == pytest.approx(0.9)
    assert bw.DIA(**settings).mode == "practical"
    assert bw.DIA().mode == bw.PIA().mode == bw.Fixed().mode == "practical"
    declared = {"lipschitz": 2.0, "discount": 0.5}
    assert bw.DIA(**settings, **declared).mode == "certified"
    assert bw.DIA(**declared).mode == "practical"
    assert AnotherGenerator(**settings, **declared).mode == "practical"


def test_certified_settings_stay_with_their_model(two_states: bw.TabularModel) -> None:
    other = bw.DIA.certified(lipschitz=2.0, discount=0.6)
    with pytest.raises(
        bw.errors.ArgumentError, match=r"certified for discount 0.6, the model has 0.5"
    ):
        bw.solve(two_states, bw.Polynomial(1), other)
    with pytest.raises(bw.errors.ArgumentError, match="certified for discount"):
        bw.solve(two_states, bw.Polynomial(1), bw.PIA(start=other))
    clinic = bw.problems.scheduling("small")
    with pytest.raises(bw.errors.ArgumentError, match="exact occupancies"):
        bw.solve(clinic, bw.Affine(), bw.DIA.certified(lipschitz=2.0, discount=clinic.discount))


def test_a_file_keeps_the_mode(two_states: bw.TabularModel, tmp_path: Path) -> None:
    basis = bw.Polynomial(1)
    bound = contraction.dual_lipschitz(two_states, basis)
    method = bw.DIA.certified(lipschitz=bound, discount=two_states.discount)
    result = bw.solve(two_states, basis, method)
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz", model=two_states)
    assert result.mode == loaded.mode == loaded.method.mode == "certified"
    assert repr(loaded.method) == repr(method)
    assert loaded.history == result.history
    resumed = bw.solve(two_states, basis, method, resume=loaded)
    assert resumed.status is bw.Status.CONVERGED


def test_the_summary_shows_the_contraction(small_queue: bw.TabularModel) -> None:
    result = bw.solve(small_queue, bw.Polynomial(2), bw.DIA())
    ratios = [record.step_ratio for record in result.history]
    norms = [record.one_norm for record in result.history]
    assert ratios[0] is None
    assert ratios[1:] == [two / one for one, two in pairwise(norms)]
    assert len(ratios) >= 3
    assert f"observed {np.median(ratios[1:]):.2g} per iteration" in to_text(result.table())
    assert "contraction" not in str(bw.solve(small_queue, bw.Polynomial(2), bw.Fixed()))


def test_the_modulus_of_the_remark() -> None:
    assert contraction.contracts(0.5, 0.2, 0.5) == pytest.approx(0.1)
    assert contraction.contracts(0.5, 0.2, 0.5, (0.7, 0.3)) == pytest.approx(0.73)
    assert contraction.contracts(np.inf, 0.0, 0.5) == 0.0
    found = contraction.certified_settings(3.0, 0.9, step_size=0.4)
    policy = contraction.softmax_lipschitz(found.temperature, found.smoothing_mass)
    assert contraction.contracts(policy, 3.0, 0.9, (0.6, 0.4)) == pytest.approx(found.modulus)
    with pytest.raises(bw.errors.ArgumentError, match="pair"):
        contraction.contracts(1.0, 1.0, 0.5, 0.3)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_a_policy_rule_is_seen_to_obey_its_constant(seed: int) -> None:
    model, basis = small_problem(seed)

    def softmax(dual: bw.policies.Support) -> bw.policies.Policy:
        return bw.policies.DualSoftmax(dual, bw.Uniform(), temperature=0.5, smoothing_mass=1.0)

    seen = contraction.sampled_policy_lipschitz(softmax, model, basis, 5, seed)
    assert seen <= contraction.softmax_lipschitz(0.5, 1.0) * (1.0 + 1e-6)
    nothing = contraction.sampled_policy_lipschitz(lambda _: bw.Uniform(), model, basis, 2, seed)
    assert nothing == 0.0


def test_a_rule_that_mixes_states_has_no_constant() -> None:
    model = bw.TabularModel.from_arrays(
        cost=[[0.0, 1.0], [3.0, 1.0], [2.0, 2.5]],
        transition=[np.eye(3), np.roll(np.eye(3), 1, axis=1)],
        discount=0.9,
        initial=[0.2, 0.3, 0.5],
    )

    def elsewhere(dual: bw.policies.Support) -> bw.policies.Policy:
        # The policy of state 1, which never has dual mass here, follows that of state 0.
        share = 0.05 * float(dual.values[dual.states == 0].sum())
        return bw.TablePolicy([[0.5, 0.5], [share, 1.0 - share], [0.5, 0.5]])

    assert contraction.sampled_policy_lipschitz(elsewhere, model, bw.Polynomial(1), 3, 0) == np.inf


class Damped(bw.weights.IterativeMethod):
    """A user's own method: a fixed mixture of the normalised dual and a uniform policy."""

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        return bw.policies.DualSoftmax(
            iterate.dual, bw.Uniform(), temperature=50.0, smoothing_mass=100.0
        )


def test_a_method_of_ones_own_contracts_as_the_remark_says() -> None:
    model, basis = small_problem(4)
    bound = contraction.dual_lipschitz(model, basis)
    method = Damped(step_size=0.5)
    policy = contraction.softmax_lipschitz(50.0, 100.0)
    modulus = contraction.contracts(policy, bound, model.discount, (0.5, 0.5))
    assert modulus < 1.0
    result = bw.solve(model, basis, method)
    assert result.status is bw.Status.CONVERGED
    seen = [r.step_ratio for r in result.history if r.step_ratio is not None and r.one_norm > 1e-9]
    assert seen
    assert max(seen) <= modulus + 1e-6
