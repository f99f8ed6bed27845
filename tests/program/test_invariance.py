"""Answers do not change when the basis is rescaled or the states are renumbered."""

from __future__ import annotations

import numpy as np
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st

import bellweight as bw

powers = st.lists(st.floats(-6.0, 6.0), min_size=8, max_size=8)


class Scaled:
    """A basis function with its columns multiplied by given factors."""

    def __init__(self, basis: bw.bases.Basis, factors: np.ndarray) -> None:
        self.basis = basis
        self.factors = factors

    def __call__(self, states: np.ndarray) -> np.ndarray:
        features = self.basis(states)
        dense = features.toarray() if hasattr(features, "toarray") else features
        return np.asarray(dense) * self.factors


def permuted(model: bw.TabularModel, order: np.ndarray) -> bw.TabularModel:
    """The same model with state order[i] called i; each keeps its vector."""
    place = np.argsort(order)
    rows = np.concatenate(
        [np.arange(model.pair_start[x], model.pair_start[x + 1]) for x in order]
    ).astype(int)
    return bw.TabularModel.from_pairs(
        model.cost[rows],
        model.transition[rows][:, order],
        place[model.pair_state[rows]],
        model.pair_action[rows],
        model.discount,
        model.initial[order],
        state_vectors=model.states[order],
    )


def values_of(result: bw.Result, model: bw.TabularModel, basis: bw.bases.Basis) -> np.ndarray:
    return reference.features_of(model, basis) @ result.coef


@given(model=strategies.models(max_states=8), data=st.data(), exponents=powers)
def test_rescaling_basis_columns_changes_nothing(
    model: bw.TabularModel, data: st.DataObject, exponents: list[float]
) -> None:
    basis = data.draw(strategies.bases_for(model))
    weights = data.draw(strategies.weights_for(model))
    fitted = basis.on(model.states)
    n_basis = reference.features_of(model, basis).shape[1]
    factors = 10.0 ** np.array((exponents * 2)[:n_basis])
    scaled = bw.Custom(Scaled(fitted, factors))
    plain = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    other = bw.solve(model, scaled, bw.Fixed(weights), judge=False)
    scale = reference.cost_scale(model)
    assert plain.status is other.status is bw.Status.CONVERGED
    assert abs(plain.objective - other.objective) <= 1e-9 * scale
    mass = 1.0 / (1.0 - model.discount)
    if unique_values(model, basis, plain):
        np.testing.assert_allclose(
            values_of(other, model, scaled), values_of(plain, model, basis), rtol=0.0,
            atol=1e-8 * scale,
        )  # fmt: skip
        assert abs(plain.cost.mean - other.cost.mean) <= 1e-7 * scale
    # The minimum-norm dual is unique whatever the coefficients are.
    np.testing.assert_allclose(other.dual, plain.dual, rtol=0.0, atol=1e-6 * mass)


def unique_values(model: bw.TabularModel, basis: bw.bases.Basis, result: bw.Result) -> bool:
    """Whether the rows with dual mass determine the coefficients, by a clear margin."""
    rows = reference.bellman_rows(model, reference.features_of(model, basis))
    used = rows[result.dual > 1e-6 / (1.0 - model.discount)]
    if len(used) < rows.shape[1]:
        return False
    lengths = np.linalg.norm(rows, axis=0)
    return bool(np.linalg.svd(used / lengths, compute_uv=False)[-1] > 1e-4)


@given(model=strategies.models(), data=st.data())
def test_renumbering_states_changes_nothing(model: bw.TabularModel, data: st.DataObject) -> None:
    degree = data.draw(st.integers(0, min(3, model.n_states - 1)))
    weights = data.draw(strategies.weights_for(model))
    order = np.random.default_rng(data.draw(strategies.seeds)).permutation(model.n_states)
    basis = bw.Polynomial(degree)
    plain = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    other_model = permuted(model, order)
    other = bw.solve(other_model, basis, bw.Fixed(weights[order]), judge=False)
    scale = reference.cost_scale(model)
    assert abs(plain.objective - other.objective) <= 1e-10 * scale
    np.testing.assert_allclose(
        bw.exact.optimal(other_model).values, bw.exact.optimal(model).values[order], rtol=0.0,
        atol=1e-11 * scale,
    )  # fmt: skip
    if unique_values(model, basis, plain):
        np.testing.assert_allclose(
            values_of(other, other_model, basis), values_of(plain, model, basis)[order], rtol=0.0,
            atol=1e-8 * scale,
        )  # fmt: skip
        assert abs(plain.cost.mean - other.cost.mean) <= 1e-7 * scale


@given(model=strategies.models(max_states=6), data=st.data())
def test_renumbering_states_does_not_change_what_dia_finds(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    order = np.random.default_rng(data.draw(strategies.seeds)).permutation(model.n_states)
    method = bw.DIA(temperature=5.0, smoothing_mass=5.0)
    plain = bw.solve(model, bw.Affine(), method, judge=False)
    other = bw.solve(permuted(model, order), bw.Affine(), method, judge=False)
    assert plain.status is other.status
    if plain.status is bw.Status.CONVERGED:
        np.testing.assert_allclose(other.weights, plain.weights[order], rtol=0.0, atol=1e-6)


@given(problem=strategies.problems(), power=st.integers(-6, 6))
def test_units_of_cost_scale_the_answer(
    problem: tuple[bw.TabularModel, bw.bases.Basis, np.ndarray], power: int
) -> None:
    model, basis, weights = problem
    unit = 10.0**power
    rescaled = bw.TabularModel.from_pairs(
        model.cost * unit,
        model.transition,
        model.pair_state,
        model.pair_action,
        model.discount,
        model.initial,
    )
    plain = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    other = bw.solve(rescaled, basis, bw.Fixed(weights), judge=False)
    scale = reference.cost_scale(model)
    terms = float(np.abs(plain.moments) @ np.abs(plain.coef))
    if abs(plain.objective) > 1e-5 * terms:  # otherwise the audit is a matter of rounding
        assert other.status is plain.status
    assert abs(other.objective / unit - plain.objective) <= 1e-10 * scale
