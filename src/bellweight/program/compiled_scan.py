"""The compiled scan of slacks, and the slacks of tables. Importing this file loads Numba."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import unmanaged
from bellweight.models.kernels.closest import edge_of, keep_row


@unmanaged
def table_slacks(starts, indptr, indices, data, values, discount, cost, here, slack):
    """Write cost + discount E[values next] - here of the pairs (n,) of some states.

    Those of state s are starts[s]:starts[s + 1]; `here` has one number for each state. Expected
    values are added from left to right as SciPy does, which holds up other threads.
    """
    first = starts[0]
    for state in range(len(here)):
        for row in range(starts[state], starts[state + 1]):
            total = 0.0
            for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                total += data[k] * values[np.uint64(indices[k])]
            slack[row - first] = cost[row - first] + discount * total - here[state]


@unmanaged
def table_rows(keys, indptr, indices, data, states, features, discount, rows):
    """Add to `rows` (n, K) phi(x) - discount E[phi(next)] of some pairs, given all features (S, K).

    The pairs are those of `states` (n,).

    The order of operations is that of SciPy's products, whose overhead this spares few rows.
    """
    n_basis = features.shape[1]
    for n in range(len(keys)):
        key = np.uint64(keys[n])
        for j in range(np.uint64(indptr[key]), np.uint64(indptr[key + np.uint64(1)])):
            chance, state = data[j], np.uint64(indices[j])
            for k in range(n_basis):
                rows[n, k] += chance * features[state, k]
        here = np.uint64(states[n])
        for k in range(n_basis):
            rows[n, k] = features[here, k] - discount * rows[n, k]


@unmanaged
def scan(slack, cost, value, starts, scale, terms, place, relative, size, near, counts):
    """Find the rows of least relative slack and those that may be tight; see `kernels/closest`.

    `terms` are the sizes of the terms of each row, or of each state where all its rows have the
    same; the first answer is False where that is needed and `terms` is empty. The second is the
    largest violation.
    """
    violation = -np.inf
    by_state = len(terms) == len(value)
    for state in range(len(value)):
        here = value[state]
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
        edge = edge_of(low, high, here, scale, relative, counts)
        if least > edge:
            continue
        for row in range(first, last):
            s, paid = slack[row], cost[row]
            if scale.homogeneous:
                s -= paid
                paid = 0.0
            if s > edge:
                continue
            known = -1.0 if len(terms) == 0 else terms[state if by_state else row]
            if not keep_row(row, s, paid, here, known, scale, place, relative, size, near, counts):
                return False, 0.0
    return True, violation
