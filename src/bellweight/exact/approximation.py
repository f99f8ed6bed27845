"""Modified policy iteration with span bounds: where a model forgets quickly, nearly the whole way.

With v' = T v, the optimal values lie between v' + ahead min(v' - v) and v' + ahead max(v' - v),
ahead = discount / (1 - discount) (MacQueen's bounds; Puterman, Markov Decision Processes, sections
6.5 and 6.6). So only the span max - min of the steps must vanish. It does in a few dozen passes on
random graphs, at any discount, and in thousands on grids and chains. Which it is shows in the first
passes.

A round is one pass over all pairs, which improves the policy, and a few over the pairs of that
policy, which cost a fraction of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.common.compiled import compiled
from bellweight.models import TabularModel

_FOLLOWED = 5  # passes over the policy's pairs in a round
_FIRST_ROUNDS = 4  # before which nothing is said about the rate: the policy still changes
_MOST_LEFT = 20  # rounds that may be left at the present rate: otherwise others take over
_NEAR = 1e-9  # relative error with which the policy is taken to be found: it is evaluated anyway


@dataclass(frozen=True, eq=False)
class Approximation:
    """Values (S,) at most `error` from the optimal ones, and whether that is next to nothing."""

    values: FloatArray
    error: float
    is_settled: bool


def approximate(model: TabularModel) -> Approximation:
    """Return what modified policy iteration reaches as long as it is fast."""
    matrix, discount = model.transition, model.discount
    entries = matrix.indptr, matrix.indices, matrix.data, model.cost
    ahead = discount / (1.0 - discount)
    values, following = np.zeros(model.n_states), np.empty(model.n_states)
    pairs = np.zeros(model.n_states, dtype=np.int64)
    known = np.inf
    for n in count(1):
        low, high = improve(*entries, model.pair_start, discount, values, following, pairs)
        # Half-way between the bounds: the constant part of the error is corrected at once.
        values, following = following + 0.5 * ahead * (low + high), values
        error = 0.5 * ahead * (high - low)
        enough = _NEAR * float(np.abs(values).max())
        if not error > enough:
            return Approximation(values, error, is_settled=True)
        if n >= _FIRST_ROUNDS and _MOST_LEFT * np.log(known / error) < np.log(error / enough):
            break
        known = error
        for _ in range(_FOLLOWED):
            low, high = follow(*entries, pairs, discount, values, following)
            values, following = following, values
        values += 0.5 * ahead * (low + high)
    return Approximation(values, error, is_settled=False)


@compiled
def improve(  # type: ignore[no-untyped-def]
    indptr, indices, data, cost, pair_start, discount, values, following, pairs
):
    """Write the least quality (S,) of each state and its pair; return the extreme steps."""
    low, high = np.inf, -np.inf
    for state in range(len(values)):
        best = np.inf
        for pair in range(pair_start[state], pair_start[state + 1]):
            total = 0.0
            # Of a signed index Numba would ask each time whether it counts from the end.
            for k in range(np.uint64(indptr[pair]), np.uint64(indptr[pair + 1])):
                total += data[k] * values[np.uint64(indices[k])]
            quality = cost[pair] + discount * total
            if quality < best:
                best = quality
                pairs[state] = pair
        following[state] = best
        step = best - values[state]
        low, high = min(low, step), max(high, step)
    return low, high


@compiled
def follow(indptr, indices, data, cost, pairs, discount, values, following):  # type: ignore[no-untyped-def]
    """Write the quality (S,) of each state's own pair; return the extreme steps."""
    low, high = np.inf, -np.inf
    for state in range(len(values)):
        pair = pairs[state]
        total = 0.0
        for k in range(np.uint64(indptr[pair]), np.uint64(indptr[pair + 1])):
            total += data[k] * values[np.uint64(indices[k])]
        following[state] = cost[pair] + discount * total
        step = following[state] - values[state]
        low, high = min(low, step), max(high, step)
    return low, high
