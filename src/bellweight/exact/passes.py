"""Passes over the entries of a table or a chain, compiled: nothing of their size is made.

Sums go through a row from left to right everywhere, so that two passes over the same row give the
same bits. Of a signed index Numba would ask each time whether it counts from the end: indices are
read as unsigned numbers.

`here` (s,) are the numbers of the states that a matrix has rows of, among those of all states that
it has columns of: a block of them, or all.
"""

from __future__ import annotations

import numpy as np

from bellweight.common.compiled import compiled, unmanaged


@compiled
def improve(  # type: ignore[no-untyped-def]
    indptr, indices, data, cost, pair_start, discount, values, here, following, pairs
):
    """Write the least quality (s,) of each state and its first pair; return the extreme steps."""
    low, high = np.inf, -np.inf
    for state in range(len(here)):
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
        step = best - here[state]
        low, high = min(low, step), max(high, step)
    return low, high


@compiled
def follow(  # type: ignore[no-untyped-def]
    indptr, indices, data, constant, discount, x, here, following
):
    """Write constant + discount P x (s,); return the extreme steps from x, their size, the sum."""
    low, high, size, mass = np.inf, -np.inf, 0.0, 0.0
    for i in range(len(here)):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[k] * x[np.uint64(indices[k])]
        found = constant[i] + discount * total
        following[i] = found
        mass += found
        step = found - here[i]
        size += abs(step)
        low, high = min(low, step), max(high, step)
    return low, high, size, mass


@compiled
def follow_pairs(  # type: ignore[no-untyped-def]
    indptr, indices, data, pair_start, chances, constant, discount, x, here, following
):
    """Do as `follow` does, with the chain of a policy that takes each pair with a chance (n,)."""
    low, high, size, mass = np.inf, -np.inf, 0.0, 0.0
    for state in range(len(here)):
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
        step = found - here[state]
        size += abs(step)
        low, high = min(low, step), max(high, step)
    return low, high, size, mass


@compiled
def spread_pairs(  # type: ignore[no-untyped-def]
    indptr, indices, data, pair_start, chances, discount, here, first, flowing
):
    """Let x (s,) flow to the successors: add it to `flowing`, which begins with state `first`."""
    offset = np.uint64(first)
    for state in range(len(here)):
        for pair in range(pair_start[state], pair_start[state + 1]):
            flow = discount * here[state] * chances[pair]
            if flow != 0.0:
                for k in range(np.uint64(indptr[pair]), np.uint64(indptr[pair + 1])):
                    flowing[np.uint64(indices[k]) - offset] += flow * data[k]


@compiled
def steps_to(following, x):  # type: ignore[no-untyped-def]
    """Return what `follow` returns of a pass from x (S,) that has been written."""
    low, high, size, mass = np.inf, -np.inf, 0.0, 0.0
    for state in range(len(x)):
        step = following[state] - x[state]
        mass += following[state]
        size += abs(step)
        low, high = min(low, step), max(high, step)
    return low, high, size, mass


@compiled
def sweep(indptr, indices, data, discount, pivots, constant, x):  # type: ignore[no-untyped-def]
    """Solve each state's own equation in x (S,), in place: forwards, then backwards.

    `pivots` (S,) are 1 / (1 - discount p) with the chances p to stay. A state that has just been
    changed is most often the next one's neighbour: rows are read towards it, so that no other
    number waits for it.
    """
    n = len(x)
    for i in range(n):
        total = constant[i]
        end = np.uint64(indptr[i + 1])
        for back in range(np.uint64(1), end - np.uint64(indptr[i]) + np.uint64(1)):
            j = indices[end - back]
            if j != i:
                total += discount * data[end - back] * x[np.uint64(j)]
        x[i] = pivots[i] * total
    for place in range(n):
        i = n - 1 - place
        total = constant[i]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = indices[k]
            if j != i:
                total += discount * data[k] * x[np.uint64(j)]
        x[i] = pivots[i] * total


@unmanaged
def pair(  # type: ignore[no-untyped-def]
    indptr, indices, data, back_indptr, back_indices, back_data, group, members
):
    """Pair each state with the free one that it moves to, or is reached from, most often.

    Writes the pair of each state (S,), -1 before, and the states of each (2, S); returns how many.
    """
    n_groups = 0
    for i in range(len(group)):
        if group[i] >= 0:
            continue
        most, other = 0.0, -1
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = indices[k]
            if data[k] > most and j != i and group[np.uint64(j)] < 0:
                most, other = data[k], j
        for k in range(np.uint64(back_indptr[i]), np.uint64(back_indptr[i + 1])):
            j = back_indices[k]
            if back_data[k] > most and j != i and group[np.uint64(j)] < 0:
                most, other = back_data[k], j
        group[i], members[0, n_groups] = n_groups, i
        if other >= 0:
            group[other], members[1, n_groups] = n_groups, other
        n_groups += 1
    return n_groups


@unmanaged
def merge(  # type: ignore[no-untyped-def]
    indptr, indices, data, down, up, group, members, places, starts, columns, sums
):
    """Write the sums of entries times down[row] up[column] by pairs, a CSR matrix; return how many.

    `places` (G,) says where a column stands in the row that is written, and is -1 before.
    """
    n = 0
    for g in range(len(places)):
        first = n
        for m in range(2):
            i = members[m, g]
            if i < 0:
                break
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                j = np.uint64(indices[k])
                column = group[j]
                place = places[column]
                if place < first:
                    place = n
                    places[column], columns[n], sums[n] = n, column, 0.0
                    n += 1
                sums[place] += down[i] * data[k] * up[j]
        starts[g + 1] = n
    return n


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
