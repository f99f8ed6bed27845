"""Tabular models of every shape and size, for growth tables: grids of queues, random graphs."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import bellweight as bw

DISCOUNT = 0.98


def grid(dimension: int, n_states: int) -> bw.TabularModel:
    """Return queues with one server that is assigned to one of them; about n_states states."""
    side = max(2, round(n_states ** (1.0 / dimension)))
    shape = (side,) * dimension
    n = side**dimension
    states = np.stack(np.unravel_index(np.arange(n), shape), axis=1)
    strides = side ** np.arange(dimension - 1, -1, -1)
    numbers = np.arange(n)
    after = np.empty((n, dimension, dimension + 2), dtype=np.int64)
    chance = np.empty(after.shape)
    for i in range(dimension):  # arrivals, lost where the queue is full
        after[:, :, i] = np.where(states[:, i] < side - 1, numbers + strides[i], numbers)[:, None]
        chance[:, :, i] = 0.4 / dimension
    for action in range(dimension):
        served = np.where(states[:, action] > 0, numbers - strides[action], numbers)
        after[:, action, dimension] = served
        chance[:, action, dimension] = 0.45 + 0.1 * action / dimension
        after[:, action, dimension + 1] = numbers
        chance[:, action, dimension + 1] = 0.15 - 0.1 * action / dimension
    cost = np.repeat(states @ (1.0 + np.arange(dimension)), dimension).astype(np.float64)
    return _model(cost, after, chance, states.astype(np.float64))


def random_graph(
    n_states: int, n_actions: int = 5, n_successors: int = 10, seed: int = 0
) -> bw.TabularModel:
    """Return a model with random costs and successors, and three random numbers per state."""
    rng = np.random.default_rng(seed)
    shape = (n_states, n_actions, n_successors)
    after = rng.integers(n_states, size=shape)
    chance = rng.random(shape)
    chance /= chance.sum(axis=2, keepdims=True)
    return _model(rng.random(n_states * n_actions), after, chance, rng.random((n_states, 3)))


def _model(
    cost: np.ndarray, after: np.ndarray, chance: np.ndarray, vectors: np.ndarray
) -> bw.TabularModel:
    n_states, n_actions, width = after.shape
    n_pairs = n_states * n_actions
    starts = np.arange(0, n_pairs * width + 1, width)
    entries = (chance.ravel(), after.ravel(), starts)
    transition = sparse.csr_array(entries, shape=(n_pairs, n_states))
    transition.sum_duplicates()
    return bw.TabularModel.from_pairs(
        cost, transition, np.repeat(np.arange(n_states), n_actions),
        np.tile(np.arange(n_actions), n_states), DISCOUNT, np.full(n_states, 1.0 / n_states),
        state_vectors=vectors,
    )  # fmt: skip
