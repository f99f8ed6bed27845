"""Random tabular models, tiny and medium: what teachers begin with, and what strains arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import bellweight as bw

Floats = NDArray[np.float64]
Rng = np.random.Generator

DISCOUNTS = (0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)


def pick(rng: Rng, options: Any) -> Any:
    """Return one of several options."""
    return options[int(rng.integers(len(options)))]


def discount(rng: Rng) -> float:
    """Return a discount: a round one, or any."""
    if rng.random() < 0.7:
        return float(pick(rng, DISCOUNTS))
    return float(1.0 - 10.0 ** rng.uniform(-4.0, -0.01))


def tiny(rng: Rng) -> bw.TabularModel:
    """Return a model of 2 to 6 states with 1 to 3 actions."""
    n_states, n_actions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    allowed = np.ones((n_states, n_actions), dtype=bool)
    if rng.random() < 0.4:
        allowed = rng.random((n_states, n_actions)) < 0.6
        allowed[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
    state, action = np.nonzero(allowed)
    kind = pick(rng, ("certain", "certain", "dyadic", "random", "thirds", "periodic", "mixed"))
    rows = np.array([_row(rng, kind, int(x), n_states) for x in state])
    return bw.TabularModel.from_pairs(
        costs(rng, len(state)), rows, state, action, discount(rng), law(rng, n_states)
    )


def rare(rng: Rng) -> bw.TabularModel:
    """Return a model in which states with next to no weight may decide about the cost."""
    n, n_actions = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    state = np.repeat(np.arange(n), n_actions)
    kinds = ("certain", "dyadic", "random", "thirds")
    rows = np.array([_row(rng, pick(rng, kinds), x, n) for x in state.tolist()])
    if rng.random() < 0.4:
        rows = rows * 10.0 ** rng.uniform(-18.0, 0.0, size=rows.shape)
        rows = rows / rows.sum(axis=1, keepdims=True)
    cost = rng.uniform(0.0, 10.0, len(state)) * 10.0 ** rng.uniform(-8.0, 12.0, len(state))
    small = rng.random(n) < 0.5
    small[0] &= not small.all()
    mass = np.where(small, 10.0 ** rng.uniform(-19.0, -8.0, n), rng.dirichlet(np.ones(n)))
    return bw.TabularModel.from_pairs(
        cost, rows, state, np.tile(np.arange(n_actions), n), discount(rng), mass / mass.sum()
    )


def _row(rng: Rng, kind: str, x: int, n: int) -> Floats:
    """Return a transition row of one kind; one in six stays where it is."""
    row = np.zeros(n)
    if kind == "mixed":
        kind = pick(rng, ("certain", "dyadic", "random", "thirds"))
    if kind == "periodic":
        row[(x + 1) % n] = 1.0
        if rng.random() < 0.2:
            row[:] = np.eye(n)[int(rng.integers(n))]
    elif rng.random() < 1 / 6:
        row[x] = 1.0
    elif kind == "certain":
        row[int(rng.integers(n))] = 1.0
    elif kind == "dyadic":
        np.add.at(row, rng.integers(n, size=4), 0.25)
    elif kind == "thirds":
        np.add.at(row, rng.integers(n, size=3), 1.0 / 3.0)
    else:
        reached = rng.choice(n, size=int(rng.integers(1, min(n, 4) + 1)), replace=False)
        row[reached] = rng.dirichlet(np.ones(len(reached)))
    return row


def costs(rng: Rng, size: int) -> Floats:
    """Return costs of one kind: ties, zeros, signs, one scale, or scales mixed in one model."""
    kind = pick(rng, ("whole", "whole", "ties", "zero", "signed", "normal", "scaled", "mixed"))
    if kind == "whole":
        return rng.integers(0, 10, size=size).astype(float)
    if kind == "ties":
        return rng.integers(-1, 2, size=size).astype(float)
    if kind == "zero":
        return np.where(rng.random(size) < 0.7, 0.0, rng.integers(-2, 6, size=size)).astype(float)
    if kind == "signed":
        return rng.integers(-9, 10, size=size).astype(float)
    if kind == "normal":
        return rng.normal(size=size)
    if kind == "scaled":
        return rng.integers(-2, 10, size=size) * 10.0 ** rng.integers(-8, 13)
    return rng.uniform(0.0, 10.0, size=size) * 10.0 ** rng.uniform(-8.0, 12.0, size=size)


def law(rng: Rng, n: int) -> Floats:
    """Return a distribution: a point mass, even, with zeros, or with entries of 1e-14 to 1e-19."""
    kind = pick(rng, ("point", "point", "even", "random", "zeros", "specks", "specks", "decay"))
    if kind == "point":
        return np.eye(n)[int(rng.integers(n))]
    if kind == "even":
        return np.full(n, 1.0 / n)
    if kind == "decay":
        mass = float(rng.uniform(0.05, 0.999)) ** np.arange(n)
        return (mass / mass.sum())[:: pick(rng, (1, -1))].copy()
    mass = rng.dirichlet(np.ones(n))
    if kind == "random":
        return mass
    small = rng.random(n) < 0.5
    if small.all():
        small[int(rng.integers(n))] = False
    specks = 10.0 ** rng.uniform(-19.0, -14.0, size=n)
    mass = np.where(small, 0.0, mass)
    mass = mass / mass.sum()
    return np.where(small, specks, mass) if kind == "specks" else mass


def medium(rng: Rng) -> bw.TabularModel:
    """Return a chain, a grid or a random graph of 10 to 200 states."""
    kind = pick(rng, ("chain", "chain", "grid", "graph"))
    if kind == "chain":
        return _chain(rng)
    if kind == "grid":
        return _grid(rng)
    n, n_actions = int(rng.integers(10, 121)), int(rng.integers(1, 4))
    state = np.repeat(np.arange(n), n_actions)
    rows = np.array([_row(rng, pick(rng, ("certain", "random", "dyadic")), x, n) for x in state])
    return bw.TabularModel.from_pairs(
        costs(rng, len(state)), rows, state, np.tile(np.arange(n_actions), n), discount(rng),
        law(rng, n),
    )  # fmt: skip


def _chain(rng: Rng) -> bw.TabularModel:
    """Return a queue: up with one probability, down with that of the action."""
    n = int(rng.integers(10, 201))
    n_rates = int(rng.integers(1, 5))
    up = float(rng.uniform(0.05, 0.45))
    rates = np.sort(rng.uniform(0.0, 1.0 - up, size=n_rates))
    state, action = np.repeat(np.arange(n), n_rates), np.tile(np.arange(n_rates), n)
    rows = np.zeros((len(state), n))
    pair = np.arange(len(state))
    np.add.at(rows, (pair, np.minimum(state + 1, n - 1)), up)
    np.add.at(rows, (pair, np.maximum(state - 1, 0)), rates[action])
    np.add.at(rows, (pair, state), 1.0 - up - rates[action])
    cost = (state.astype(float) ** pick(rng, (1, 2)) + 60.0 * rates[action] ** 3) * 10.0 ** (
        pick(rng, (0, 0, 0, -8, 6, 12))
    )
    if rng.random() < 0.2:
        cost = costs(rng, len(state))
    return bw.TabularModel.from_pairs(cost, rows, state, action, discount(rng), law(rng, n))


def _grid(rng: Rng) -> bw.TabularModel:
    """Return a walk on a grid of two coordinates with four directions, some of them noisy."""
    width, height = (int(side) for side in rng.integers(3, 13, size=2))
    steps = ((1, 0), (-1, 0), (0, 1), (0, -1))
    noise = float(pick(rng, (0.0, 0.25, 0.1)))
    vectors = np.array([(i, j) for i in range(width) for j in range(height)], dtype=float)
    state, action = np.repeat(np.arange(len(vectors)), 4), np.tile(np.arange(4), len(vectors))
    rows = np.zeros((len(state), len(vectors)))
    for pair, (x, a) in enumerate(zip(state, action, strict=True)):
        i, j = np.clip(vectors[x] + steps[a], 0, (width - 1, height - 1)).astype(int)
        rows[pair, i * height + j] += 1.0 - noise
        rows[pair, x] += noise
    goal = int(rng.integers(len(vectors)))
    cost = np.where(state == goal, 0.0, 1.0) if rng.random() < 0.5 else costs(rng, len(state))
    scale = pick(rng, (1.0, 1.0, 1e-3, 100.0))
    return bw.TabularModel.from_pairs(
        cost, rows, state, action, discount(rng), law(rng, len(vectors)),
        state_vectors=vectors * scale,
    )  # fmt: skip
