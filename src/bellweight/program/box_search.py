"""The most violated row that a search over the whole state space finds: evidence, not a proof.

Rows of sampled states say nothing about states in between. The search begins at states spread over
the box, keeps those whose worst row is worst, and moves each along one coordinate after the other,
by steps that halve where nothing is gained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.models.step import StepModel
from bellweight.program.sampled_rows import EventRows

_TERMS = 40_000_000  # of expectations that a search adds up at most
_PLAIN_TERMS = 20_000  # where the model runs as plain Python
_MOST_STARTS, _FEWEST_STARTS = 2_048, 16
_KEPT, _PLAIN_KEPT = 16, 4  # states that are moved
_ROUNDS, _PLAIN_ROUNDS = 12, 8  # of moves along all coordinates


@dataclass(frozen=True)
class WorstRow:
    """A row with its violation, negative where it holds: a state (d,) and an action."""

    violation: float
    state: tuple[float, ...]
    action: int


def worst_row(rows: EventRows, model: StepModel, coef: FloatArray, seed: int = 0) -> WorstRow:
    """Return the most violated row found at coefficients (K,), over the whole box."""
    n_starts = _starts(model, rows.n_basis)
    states = model.spread_states(n_starts, seed)
    sizes, actions = _worst(rows, coef, states)
    kept, rounds = (_KEPT, _ROUNDS) if model.compiled else (_PLAIN_KEPT, _PLAIN_ROUNDS)
    best = np.argsort(-sizes, kind="stable")[:kept]
    states, sizes, actions = states[best], sizes[best], actions[best]
    low, high = model.finite_box()
    steps = np.tile((high - low) / 8.0, (len(states), 1))
    for _ in range(rounds):
        gained = np.zeros(len(states), dtype=np.bool_)
        for axis in range(model.dimension):
            for side in (-1.0, 1.0):
                moved = _moved(model, states, steps, axis, side, low, high)
                other, chosen = _worst(rows, coef, moved)
                better = other > sizes
                states = np.where(better[:, None], moved, states)
                sizes, actions = np.where(better, other, sizes), np.where(better, chosen, actions)
                gained |= better
        steps[~gained] *= 0.5
    worst = int(np.argmax(sizes))
    place = tuple(float(value) for value in states[worst])
    return WorstRow(float(sizes[worst]), place, int(actions[worst]))


def _starts(model: StepModel, n_basis: int) -> int:
    """Return how many states to begin at, so that the search takes about a second."""
    work = model.n_actions * model.n_nodes * n_basis
    limit = _TERMS if model.compiled else _PLAIN_TERMS
    moves = _KEPT * 2 * model.dimension * _ROUNDS
    return int(np.clip(limit // work - moves, _FEWEST_STARTS, _MOST_STARTS))


def _moved(
    model: StepModel,
    states: FloatArray,
    steps: FloatArray,
    axis: int,
    side: float,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    moved = states.astype(np.float64)
    length = steps[:, axis]
    if model.integer[axis]:
        length = np.maximum(np.rint(length), 1.0)
    moved[:, axis] = np.clip(moved[:, axis] + side * length, low[axis], high[axis])
    return np.asarray(model.check_states(moved))


def _worst(rows: EventRows, coef: FloatArray, states: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest violation (n,) of a row of each state, and its action (n,)."""
    slack = rows.slacks_at(states, coef)
    actions = np.argmin(slack, axis=1)
    return -slack[np.arange(len(states)), actions], actions.astype(np.int64)
