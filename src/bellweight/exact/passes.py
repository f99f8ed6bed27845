"""Passes over the entries of a table or a chain, compiled: nothing of their size is made.

Sums go through a row from left to right everywhere, so that two passes over the same row give the
same bits. Of a signed index Numba would ask each time whether it counts from the end: indices are
read as unsigned numbers.
"""

from __future__ import annotations

import numpy as np

from bellweight.common.compiled import compiled


@compiled
def improve(  # type: ignore[no-untyped-def]
    indptr, indices, data, cost, pair_start, discount, values, following, pairs
):
    """Write the least quality (S,) of each state and its first pair; return the extreme steps."""
    low, high = np.inf, -np.inf
    for state in range(len(values)):
        best = np.inf
        for pair in range(pair_start[state], pair_start[state + 1]):
            total = 0.0
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
def follow(indptr, indices, data, constant, discount, x, following):  # type: ignore[no-untyped-def]
    """Write constant + discount P x (S,); return the extreme steps from x, their size, the sum."""
    low, high, size, mass = np.inf, -np.inf, 0.0, 0.0
    for i in range(len(x)):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[k] * x[np.uint64(indices[k])]
        found = constant[i] + discount * total
        following[i] = found
        mass += found
        step = found - x[i]
        size += abs(step)
        low, high = min(low, step), max(high, step)
    return low, high, size, mass


@compiled
def follow_pairs(  # type: ignore[no-untyped-def]
    indptr, indices, data, pair_start, chances, constant, discount, x, following
):
    """Do as `follow` does, with the chain of a policy that takes each pair with a chance (N,)."""
    low, high, size, mass = np.inf, -np.inf, 0.0, 0.0
    for state in range(len(x)):
        total = 0.0
        for pair in range(pair_start[state], pair_start[state + 1]):
            if chances[pair] != 0.0:
                ahead = 0.0
                for k in range(np.uint64(indptr[pair]), np.uint64(indptr[pair + 1])):
                    ahead += data[k] * x[np.uint64(indices[k])]
                total += chances[pair] * ahead
        found = constant[state] + discount * total
        following[state] = found
        mass += found
        step = found - x[state]
        size += abs(step)
        low, high = min(low, step), max(high, step)
    return low, high, size, mass


@compiled
def spread_pairs(  # type: ignore[no-untyped-def]
    indptr, indices, data, pair_start, chances, constant, discount, x, following
):
    """Do as `follow_pairs` does, with the transpose: x (S,) flows to the successors."""
    following[:] = constant
    for state in range(len(x)):
        for pair in range(pair_start[state], pair_start[state + 1]):
            flow = discount * x[state] * chances[pair]
            if flow != 0.0:
                for k in range(np.uint64(indptr[pair]), np.uint64(indptr[pair + 1])):
                    following[np.uint64(indices[k])] += flow * data[k]
    low, high, size, mass = np.inf, -np.inf, 0.0, 0.0
    for state in range(len(x)):
        step = following[state] - x[state]
        mass += following[state]
        size += abs(step)
        low, high = min(low, step), max(high, step)
    return low, high, size, mass


@compiled
def sweep(indptr, indices, data, discount, constant, x):  # type: ignore[no-untyped-def]
    """Solve each state's own equation in x (S,), in place: forwards, then backwards."""
    n = len(x)
    for turn in range(2):
        for place in range(n):
            i = place if turn == 0 else n - 1 - place
            ahead, own = 0.0, 0.0
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                j = indices[k]
                if j == i:
                    own += data[k]
                else:
                    ahead += data[k] * x[np.uint64(j)]
            x[i] = (constant[i] + discount * ahead) / (1.0 - discount * own)


@compiled
def orthogonalise(directions, vector, parts):  # type: ignore[no-untyped-def]
    """Take the parts (m,) along m orthonormal directions (m, S) out of a vector, in place.

    One after another (modified Gram-Schmidt). Returns the length that is left.
    """
    for j in range(len(directions)):
        part = _product(directions[j], vector)
        parts[j] = part
        for i in range(len(vector)):
            vector[i] -= part * directions[j, i]
    return np.sqrt(_product(vector, vector))


@compiled
def _product(first, second):  # type: ignore[no-untyped-def]
    """Return the inner product of two vectors: four sums at a time do not wait for each other."""
    n = len(first) // 4 * 4
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(0, n, 4):
        a += first[i] * second[i]
        b += first[i + 1] * second[i + 1]
        c += first[i + 2] * second[i + 2]
        d += first[i + 3] * second[i + 3]
    for i in range(n, len(first)):
        a += first[i] * second[i]
    return (a + b) + (c + d)


@compiled
def reach(indptr, indices):  # type: ignore[no-untyped-def]
    """Return how far the entries of a square matrix reach below and above its diagonal."""
    below, above = np.int64(0), np.int64(0)
    for i in range(len(indptr) - 1):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            offset = np.int64(indices[k]) - i
            if offset > above:
                above = offset
            elif -offset > below:
                below = -offset
    return below, above
