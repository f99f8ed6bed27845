"""Actions of an event model that are combinations of independent choices, one for each server say.

Where chances are a table, the choices are found from the chances themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray, IntArray


def independent_choices(table: FloatArray, varying: IntArray, *, usable: bool) -> dict[str, Any]:
    """Return the actions as combinations of independent choices, if that is what they are.

    Two events belong to the same choice unless their chances take all combinations of values. The
    actions are combinations when there are exactly as many as choices allow, each once.
    """
    groups = _dependent_groups(table[:, varying]) if usable else []
    options = [np.unique(table[:, varying[group]], axis=0, return_inverse=True) for group in groups]
    sizes = [len(rows) for rows, _ in options]
    strides = np.array([int(np.prod(sizes[g + 1 :])) for g in range(len(sizes))], dtype=np.int64)
    places = sum((place.ravel() * s for (_, place), s in zip(options, strides, strict=True)), 0)
    n_actions = len(table)
    free = bool(groups) and np.array_equal(np.sort(places), np.arange(n_actions))
    if not free:
        groups, options, sizes = [], [], []
        strides, places = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    full = np.zeros((max(1, sum(sizes)), table.shape[1]))
    row = 0
    for group, (rows, _) in zip(groups, options, strict=True):
        full[row : row + len(rows), varying[group]] = rows
        row += len(rows)
    count, event, chance = sparse_lists(full, varying[0] if free else 0)
    return {
        "option_start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "option_count": count,
        "option_event": event,
        "option_chance": chance,
        "stride": strides,
        "combined": np.argsort(places).astype(np.int64),
    }


def _dependent_groups(columns: FloatArray) -> list[IntArray]:
    """Return the columns in groups that depend on each other."""
    from scipy.sparse.csgraph import connected_components

    n = columns.shape[1]
    kinds = [len(np.unique(columns[:, i])) for i in range(n)]
    linked = np.zeros((n, n), dtype=np.bool_)
    for i in range(n):
        for j in range(i):
            pairs = len(np.unique(columns[:, [i, j]], axis=0))
            linked[i, j] = pairs < kinds[i] * kinds[j]
    n_groups, member = connected_components(linked, directed=False)
    return [np.flatnonzero(member == g) for g in range(n_groups)]


def sparse_lists(matrix: Any, spare: int = 0) -> tuple[IntArray, IntArray, Any]:
    """Return for each row the number, the places and the values of its non-zero entries.

    Shorter rows are filled up with zeros in the place `spare`.
    """
    count = (matrix != 0).sum(axis=1).astype(np.int64)
    width = max(1, int(count.max()))
    places = np.full((len(matrix), width), spare, dtype=np.int64)
    values = np.zeros((len(matrix), width), dtype=matrix.dtype)
    for row, entries in enumerate(matrix):
        used = np.flatnonzero(entries)
        places[row, : len(used)] = used
        values[row, : len(used)] = entries[used]
    return count, places, values
