"""The search for rows of least relative slack, state by state.

A row is compared with its scale: its cost, its value per step and a unit (`layouts.Scale`). Where
terms cancel, a violation or a slack of the size of their rounding error is none, so scales of such
rows get a share of the terms' size, up to `most` times their own.

Most states have no row worth keeping: one look at their least slack tells (`edge_of`). What is kept
of a scan are the rows that are closest to violated, or most violated, in `place` with their
`relative` slack and `size`, and the keys of rows that may be tight in `near`. Where a row is
violated by more than rounding could ever explain, the coefficients are no answer, and near rows are
not listed: they could be most of the rows.

`counts` holds the number of closest rows, the place of the worst of them, the number of near rows,
and whether a row is clearly violated.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: PLR0912

import numpy as np

from bellweight.common.compiled import unmanaged

N_FOUND, WORST, N_NEAR, CLEAR = range(4)
SURE = 1e-11  # share of its terms that rounding cannot take from a row


@unmanaged
def edge_of(low, high, here, scale, relative, counts):
    """Return the slack above which no row of a state is worth keeping.

    `low` and `high` bound the sizes of the costs of its rows, and `here` is its value.
    """
    if counts[N_FOUND] < len(relative):
        return np.inf
    level, worst = (1.0 - scale.discount) * abs(here) + scale.unit, relative[counts[WORST]]
    edge = worst * (level + (high if worst >= 0.0 else low))
    if counts[CLEAR] == 0:
        edge = max(edge, scale.nearness * (high + level + abs(here)) + scale.rounded)
    return edge


@unmanaged
def keep_row(key, slack, paid, here, terms, scale, place, relative, size, near, counts):
    """Keep a row if it is among the closest so far, or may be tight.

    `terms` is the size of its terms, negative where it is not known. Where it is needed then, the
    answer is False and nothing is kept.
    """
    own = abs(paid) + (1.0 - scale.discount) * abs(here) + scale.unit
    full = counts[N_FOUND] == len(place)
    close = scale.nearness * (own + abs(here))
    listed = counts[CLEAR] == 0
    if slack < -scale.feasibility * own:
        # Its relative slack without its terms is lower still: is even that above the others?
        if not listed and full and slack >= relative[counts[WORST]] * own:
            return True
        if terms < 0.0:
            return False
        if slack < -2.0 * scale.feasibility * scale.most * own and slack < -SURE * terms:
            counts[CLEAR] = 1
            counts[N_NEAR] = 0
            listed = False
        own += min(scale.rounding / scale.feasibility * terms, scale.most * own)
    if listed:
        allowed = close
        if close < slack <= close + scale.rounded:
            if terms < 0.0:
                return False
            allowed += scale.rounding * terms
        if slack <= allowed:
            near[counts[N_NEAR]] = key
            counts[N_NEAR] += 1
    # A row without cost or value has no scale of its own: 0 / 0 must not hide other rows.
    own = own if own > 0.0 else 1.0
    worst = counts[WORST]
    if not full:
        worst = counts[N_FOUND]
        counts[N_FOUND] += 1
    elif not slack < relative[worst] * own:
        return True
    place[worst], relative[worst], size[worst] = key, slack / own, own
    if counts[N_FOUND] == len(place):
        largest = relative[worst]
        for k in range(len(place)):
            if relative[k] > largest:
                worst, largest = k, relative[k]
    counts[WORST] = worst
    return True
