"""Hypothesis strategies: random small models, bases and weights.

The structure of an example (sizes, discount, kinds of costs and transitions) is drawn by
Hypothesis, so that it shrinks; the numbers inside come from a NumPy generator whose seed is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import bellweight as bw

FloatArray = NDArray[np.float64]

seeds = st.integers(min_value=0, max_value=2**32 - 1)
discounts = st.sampled_from([0.1, 0.5, 0.9, 0.95, 0.99])
cost_kinds = st.sampled_from(["ties", "normal", "mixed scale", "positive", "sparse"])


@st.composite
def models(
    draw: st.DrawFn, max_states: int = 12, max_actions: int = 4, min_actions: int = 1
) -> bw.TabularModel:
    """A model of 2 to 12 states with state-dependent actions and sparse transitions."""
    n_states = draw(st.integers(2, max_states))
    n_actions = draw(st.integers(min_actions, max_actions))
    every_action = draw(st.booleans())
    rounded = draw(st.booleans())
    kind = draw(cost_kinds)
    discount = draw(discounts)
    rng = np.random.default_rng(draw(seeds))
    allowed = np.ones((n_states, n_actions), dtype=bool)
    if not every_action:
        allowed = rng.random((n_states, n_actions)) < 0.6
        allowed[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
    state, action = np.nonzero(allowed)
    return bw.TabularModel.from_pairs(
        random_costs(rng, kind, len(state)),
        np.array([random_row(rng, n_states, int(x), rounded=rounded) for x in state]),
        state,
        action,
        discount,
        random_distribution(rng, n_states),
    )


def random_costs(rng: np.random.Generator, kind: str, size: int) -> FloatArray:
    """Costs of one kind: small whole numbers make ties, mixed scales strain the numerics."""
    if kind == "ties":
        return rng.integers(-2, 3, size=size).astype(float)
    if kind == "mixed scale":
        return rng.normal(size=size) * 10.0 ** rng.uniform(-2.0, 3.0, size=size)
    if kind == "positive":
        return rng.uniform(0.0, 100.0, size=size)
    if kind == "sparse":
        return np.where(rng.random(size) < 0.7, 0.0, rng.normal(size=size))
    return rng.normal(size=size)


def random_row(
    rng: np.random.Generator, n_states: int, state: int, *, rounded: bool = False
) -> FloatArray:
    """A sparse transition row; one in eight is absorbing, one in four contains a self loop."""
    row = np.zeros(n_states)
    if rng.random() < 0.125:
        row[state] = 1.0
        return row
    reached = rng.choice(n_states, size=rng.integers(1, min(n_states, 4) + 1), replace=False)
    if rng.random() < 0.25:
        reached = np.union1d(reached, [state])
    if rounded:
        np.add.at(row, rng.choice(reached, size=4), 0.25)
        return row
    row[reached] = rng.dirichlet(np.ones(len(reached)))
    return row


def random_distribution(rng: np.random.Generator, n: int, *, positive: bool = False) -> FloatArray:
    """A probability vector; unless `positive`, about a third of its entries are zero."""
    mass = rng.dirichlet(np.ones(n))
    if positive:
        return 0.5 * mass + 0.5 / n
    mass[rng.random(n) < 1 / 3] = 0.0
    if not mass.any():
        mass[rng.integers(n)] = 1.0
    return mass / mass.sum()


@st.composite
def weights_for(draw: st.DrawFn, model: bw.TabularModel, *, positive: bool = False) -> FloatArray:
    """Random weights over the states of a model."""
    rng = np.random.default_rng(draw(seeds))
    return random_distribution(rng, model.n_states, positive=positive)


class RandomFeatures:
    """A constant and random functions of the state index: a basis without structure."""

    def __init__(self, n_states: int, n_features: int, seed: int) -> None:
        table = np.random.default_rng(seed).normal(size=(n_states, n_features))
        self.table = np.column_stack([np.ones(n_states), table])

    def __call__(self, states: FloatArray) -> FloatArray:
        return self.table[states[:, 0].astype(int)]


@st.composite
def bases_for(draw: st.DrawFn, model: bw.TabularModel) -> bw.bases.Basis:
    """A basis with independent columns whose span contains the constant."""
    kind = draw(st.sampled_from(["polynomial", "affine", "indicator", "groups", "random"]))
    n = model.n_states
    if kind == "polynomial":
        return bw.Polynomial(draw(st.integers(0, min(3, n - 1))))
    if kind == "affine":
        return bw.Affine()
    if kind == "indicator":
        return bw.Indicator()
    rng = np.random.default_rng(draw(seeds))
    if kind == "groups":
        n_groups = draw(st.integers(1, n))
        groups = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=n - n_groups)])
        return bw.Indicator(rng.permutation(groups))
    return bw.Custom(
        RandomFeatures(n, draw(st.integers(0, min(4, n - 1))), int(rng.integers(2**32)))
    )


@st.composite
def problems(
    draw: st.DrawFn, /, **options: Any
) -> tuple[bw.TabularModel, bw.bases.Basis, FloatArray]:
    """A model with a basis and weights that fit it."""
    model = draw(models(**options))
    return model, draw(bases_for(model)), draw(weights_for(model))


@st.composite
def policies_for(draw: st.DrawFn, model: bw.TabularModel) -> bw.policies.Policy:
    """A policy: uniform, deterministic, or randomised with some zero probabilities."""
    kind = draw(st.sampled_from(["uniform", "deterministic", "randomised"]))
    if kind == "uniform":
        return bw.Uniform()
    rng = np.random.default_rng(draw(seeds))
    if kind == "deterministic":
        actions = [int(rng.choice(model.admissible_actions(x))) for x in range(model.n_states)]
        return bw.TablePolicy(np.array(actions))
    table = np.zeros((model.n_states, model.n_actions))
    for x in range(model.n_states):
        admissible = model.admissible_actions(x)
        table[x, admissible] = random_distribution(rng, len(admissible))
    return bw.TablePolicy(table)


@st.composite
def degenerate_models(draw: st.DrawFn, max_states: int = 6) -> bw.TabularModel:
    """A model in which several duals are optimal: duplicate actions, or two mirrored halves."""
    base = draw(models(max_states=max_states, max_actions=2))
    if draw(st.booleans()):
        return with_duplicate_actions(base)
    return with_mirror_image(base)


def with_duplicate_actions(model: bw.TabularModel) -> bw.TabularModel:
    """Every action of every state twice."""
    rows = np.repeat(np.arange(model.n_pairs), 2)
    action = 2 * np.repeat(model.pair_action, 2) + np.tile([0, 1], model.n_pairs)
    order = np.lexsort((action, model.pair_state[rows]))
    return bw.TabularModel.from_pairs(
        model.cost[rows][order],
        model.transition[rows[order]],
        model.pair_state[rows][order],
        action[order],
        model.discount,
        model.initial,
        state_vectors=model.state_vectors,
    )


def with_mirror_image(model: bw.TabularModel) -> bw.TabularModel:
    """Two copies of a model side by side that look the same to every basis.

    A step leads into either copy with probability one half; both copies of a state have the same
    state vector, so that no basis function tells them apart.
    """
    dense = model.transition.toarray()
    half = np.hstack([dense, dense]) / 2.0
    vectors = np.arange(model.n_states, dtype=float)
    return bw.TabularModel.from_pairs(
        np.concatenate([model.cost, model.cost]),
        np.vstack([half, half]),
        np.concatenate([model.pair_state, model.pair_state + model.n_states]),
        np.concatenate([model.pair_action, model.pair_action]),
        model.discount,
        np.concatenate([model.initial, model.initial]) / 2.0,
        state_vectors=np.concatenate([vectors, vectors]),
    )
