"""Nested dissection: an order of states in which sparse elimination fills in little, and how much.

States that separate the rest into two halves come last, and each half is ordered in the same way
(George, 1973). Separators are levels of distances from a state at the border. What the factors of
an order hold is counted on its elimination tree before anything is eliminated (Davis, Direct
Methods for Sparse Linear Systems, chapter 4). Graphs are undirected: rows `start`, `near` of a
symmetric pattern.
"""

from __future__ import annotations

import numpy as np

from bellweight.common.checks import IntArray
from bellweight.common.compiled import inner, unmanaged

_LEAF = 24  # states that are not divided any further


def dissected(start: IntArray, near: IntArray) -> IntArray:
    """Return the order (S,) of nested dissection: states in the order of elimination."""
    n = len(start) - 1
    order = np.arange(n)
    _dissect(start, near, order, np.zeros((6, n + 1), dtype=np.int64))
    return order


@unmanaged
def _dissect(start, near, order, scratch):  # type: ignore[no-untyped-def]
    """Order the states in place. Arrays come from outside, which is faster to compile.

    Parts are stretches of the order that wait to be divided, and a state knows the name of its own.
    """
    queue, part, seen, distance = scratch[0], scratch[1], scratch[2], scratch[3]
    firsts, ends = scratch[4], scratch[5]
    ends[0] = len(order)
    n_waiting, n_parts, n_searches = 1, 1, 0
    while n_waiting > 0:
        n_waiting -= 1
        first, end = firsts[n_waiting], ends[n_waiting]
        if end - first <= _LEAF:
            continue
        n_searches += 1
        name, known = part[order[first]], 0
        for place in range(first, end):
            root = order[place]
            if seen[root] == n_searches:
                continue
            found = _search(start, near, root, name, n_searches, part, seen, distance, queue, known)
            if known > 0 or found < end - first:  # a component of several
                for k in range(known, found):
                    part[queue[k]] = n_parts
                n_parts += 1
                firsts[n_waiting], ends[n_waiting] = first + known, first + found
                n_waiting += 1
            known = found
        for k in range(known):
            order[first + k] = queue[k]
        if part[order[first]] == name:
            n_searches += 1
            # From the state that is farthest away there are more levels, and smaller ones.
            root = queue[known - 1]
            _search(start, near, root, name, n_searches, part, seen, distance, queue, 0)
            middle, last = _divide(start, near, order, first, end, part, distance, queue)
            for k in range(middle, last):
                part[order[k]] = n_parts
            n_parts += 1
            if middle < last:
                firsts[n_waiting], ends[n_waiting] = first, middle
                firsts[n_waiting + 1], ends[n_waiting + 1] = middle, last
                n_waiting += 2


@inner
def _divide(  # type: ignore[no-untyped-def]
    start, near, order, first, end, part, distance, queue
):
    """Put a near half, a far half and their separator in order; return the ends of the halves.

    Of the level between the halves only the states that touch the far one separate. Nothing is
    divided where there are fewer than three levels.
    """
    before, after = _middle(queue, end - first, distance)
    n_separating, place = 0, first
    for k in range(after):
        state = queue[k]
        touches = False
        if k >= before:
            for e in range(start[state], start[state + 1]):
                other = near[e]
                if part[other] == part[state] and distance[other] > distance[state]:
                    touches = True
                    break
        if touches:
            queue[n_separating] = state  # places up to k have been read
            n_separating += 1
        else:
            order[place] = state
            place += 1
    middle = place
    for k in range(after, end - first):
        order[place] = queue[k]
        place += 1
    for k in range(n_separating):
        order[place + k] = queue[k]
        part[queue[k]] = -1
    return middle, place if after > 0 else middle


@inner
def _search(  # type: ignore[no-untyped-def]
    start, near, root, name, mark, part, seen, distance, queue, n_found
):
    """Append the component of a root in its part to the queue, nearest first; return its end."""
    seen[root], distance[root] = mark, 0
    queue[n_found] = root
    place, n_found = n_found, n_found + 1
    while place < n_found:
        state = queue[place]
        place += 1
        for e in range(start[state], start[state + 1]):
            other = near[e]
            if part[other] == name and seen[other] != mark:
                seen[other], distance[other] = mark, distance[state] + 1
                queue[n_found] = other
                n_found += 1
    return n_found


@inner
def _middle(queue, n, distance):  # type: ignore[no-untyped-def]
    """Return the ends of the smallest level in the middle third, or of the one at the half."""
    found_begin, found_end, is_third = 0, 0, False
    last = distance[queue[n - 1]]
    begin = 1  # the root is level 0
    while begin < n and distance[queue[begin]] < last:
        level, end = distance[queue[begin]], begin
        while distance[queue[end]] == level:
            end += 1
        inside = 3 * begin >= n and 3 * end <= 2 * n
        is_smaller = not is_third or end - begin < found_end - found_begin
        if (inside and is_smaller) or (not is_third and 2 * begin <= n):
            found_begin, found_end, is_third = begin, end, inside
        begin = end
    return found_begin, found_end


def filled(start: IntArray, near: IntArray, order: IntArray, most: float) -> tuple[int, float]:
    """Return entries and operations of a factor of elimination in an order, up to `most` entries.

    Row i of the factor has the states on the paths in the elimination tree from those that it has
    in the matrix up to i. Operations are the sum of squares of the lengths of columns.
    """
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    lengths = np.ones(n)
    n_entries = _count(start, near, order, place, np.full((2, n), -1), lengths, most)
    return n_entries, float(lengths @ lengths)


@unmanaged
def _count(start, near, order, place, scratch, lengths, most):  # type: ignore[no-untyped-def]
    """Count the entries of the columns (S,); return their sum."""
    parent, seen = scratch[0], scratch[1]
    n = len(order)
    n_entries = n
    for i in range(n):
        seen[i] = i
        for e in range(start[order[i]], start[order[i] + 1]):
            j = place[near[e]]
            while j < i and seen[j] != i:
                seen[j] = i
                lengths[j] += 1.0
                n_entries += 1
                if parent[j] < 0:
                    parent[j] = i
                j = parent[j]
        if n_entries > most:
            break
    return n_entries
