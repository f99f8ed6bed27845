"""The compiled scan of slacks, and the slacks of tables. Importing this file loads Numba."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: PLR0912, PLR0915

import numpy as np

from bellweight.common.compiled import unmanaged


@unmanaged
def expected_next(indptr, indices, data, values, expected):
    """Write the expected values (n,) after rows of transitions, left to right as SciPy does.

    Unlike SciPy it leaves other threads alone.
    """
    for row in range(len(expected)):
        total = 0.0
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            total += data[k] * values[np.uint64(indices[k])]
        expected[row] = total


@unmanaged
def scan(slack, cost, value, starts, scale, limits, terms, place, relative, size, near):
    """Find the rows of least relative slack and those that may be tight.

    The scale of a row is its cost, its value per step and `unit`. Where terms cancel, a violation
    or a slack of the size of their rounding error is none, so scales of such rows get a share of
    the terms' size, up to `most` times their own; the first answer is False where that is needed
    and `terms` is empty. They are those of each row, or of each state where all its rows have the
    same. Returns also how many places and near rows were written, and the largest violation.
    """
    feasibility, nearness, rounding, most = limits
    n_found, n_near, violation, worst = 0, 0, -np.inf, 0
    by_state = len(terms) == len(value)
    for state in range(len(value)):
        level, size_here = (1.0 - scale.discount) * abs(value[state]), abs(value[state])
        least, low, high = np.inf, np.inf, 0.0
        first, last = starts[state], starts[state + 1]
        if scale.homogeneous:
            low = 0.0
            for row in range(first, last):
                s = slack[row] - cost[row]
                least = s if s < least else least
        else:
            for row in range(first, last):
                s, paid = slack[row], abs(cost[row])
                least = s if s < least else least
                low = paid if paid < low else low
                high = paid if paid > high else high
        violation = max(violation, -least)
        # Most rows are neither near nor among the closest: one look at the slack is enough.
        edge = np.inf
        if n_found == len(place):
            of = level + scale.unit + (high if relative[worst] >= 0.0 else low)
            edge = nearness * (high + level + scale.unit + size_here) + scale.rounded
            edge = max(edge, relative[worst] * of)
        if least > edge:
            continue
        for row in range(first, last):
            s, paid = slack[row], cost[row]
            if scale.homogeneous:
                s -= paid
                paid = 0.0
            if s > edge:
                continue
            of = abs(paid) + level + scale.unit
            allowed = 0.0
            if s < -feasibility * of:
                if len(terms) == 0:
                    return False, 0, 0, 0.0
                size_of_terms = terms[state if by_state else row]
                of += min(rounding / feasibility * size_of_terms, most * of)
            close = nearness * (of + size_here)
            if close < s <= close + scale.rounded:
                if len(terms) == 0:
                    return False, 0, 0, 0.0
                allowed = rounding * terms[state if by_state else row]
            if s <= close + allowed:
                near[n_near] = row
                n_near += 1
            # A row without cost or value has no scale of its own: 0 / 0 must not hide other rows.
            of = of if of > 0.0 else 1.0
            if n_found < len(place):
                worst = n_found
                n_found += 1
            elif not s < relative[worst] * of:
                continue
            place[worst], relative[worst], size[worst] = row, s / of, of
            if n_found == len(place):
                for k in range(n_found):
                    if relative[k] > relative[worst]:
                        worst = k
    return True, n_found, n_near, violation
