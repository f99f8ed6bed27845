"""Modified policy iteration with span bounds; it is enough where a model mixes quickly.

With v' = T v, the optimal values lie between v' + ahead min(v' - v) and v' + ahead max(v' - v),
ahead = discount / (1 - discount) (MacQueen's bounds; Puterman, Markov Decision Processes, sections
6.5 and 6.6). So only the span max - min of the steps must vanish. It does in a few dozen passes on
random graphs, at any discount, and in thousands on grids and chains. The first passes show which
case it is.

A round is one pass over all pairs, which improves the policy, and a few over the rows of that
policy by themselves, which cost a fraction of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.exact.table_passes import TablePasses
from bellweight.models import TabularModel

_FOLLOWED = 10  # passes over the policy's rows in a round, at the most
_FOLLOWED_SHARE = 1e-3  # of the span of the improvement's steps: enough for this policy
_FIRST_ROUNDS = 4  # before which nothing is said about the rate: the policy still changes
_MOST_LEFT = 20  # rounds that may be left at the present rate: otherwise others take over
_NEAR = 1e-9  # relative error with which the policy is taken to be found: it is evaluated anyway


@dataclass(frozen=True, eq=False)
class Approximation:
    """Values (S,) at most `error` from the optimal ones, and whether that is next to nothing.

    `pairs` (S,) are those of the policy that the last pass found.
    """

    values: FloatArray
    pairs: IntArray
    error: float
    is_settled: bool


def approximate(model: TabularModel) -> Approximation:
    """Return what modified policy iteration reaches as long as it is fast."""
    discount, table = model.discount, TablePasses(model)
    ahead = discount / (1.0 - discount)
    values, following = np.zeros(model.n_states), np.empty(model.n_states)
    pairs = np.zeros(model.n_states, dtype=np.int64)
    followed = np.full(model.n_states, -1)
    known = np.inf
    n = 0
    while True:
        n += 1
        low, high = table.improve(values, following, pairs)
        # Half-way between the bounds: the constant part of the error is corrected at once.
        values, following = following + 0.5 * ahead * (low + high), values
        error = 0.5 * ahead * (high - low)
        enough = _NEAR * max(float(np.abs(values).max()), np.finfo(float).tiny)
        is_settled = not error > enough
        if is_settled or (
            n >= _FIRST_ROUNDS and _MOST_LEFT * np.log(known / error) < np.log(error / enough)
        ):
            return Approximation(values, pairs, error, is_settled)
        known, span = error, high - low
        if not np.array_equal(pairs, followed):
            followed = pairs.copy()
            own, cost = table.chain(pairs), model.cost[pairs]
        for _ in range(_FOLLOWED):
            low, high, _, _ = own.follow(cost, discount, values, following)
            values, following = following, values
            if high - low <= _FOLLOWED_SHARE * span:
                break
        values += 0.5 * ahead * (low + high)
