"""Tables of functions of few coordinates, over which factored models take expectations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bellweight.basis.core import variable_names
from bellweight.basis.parts import Part
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import BasisError
from bellweight.models.kernels.layouts import Grids, uniform
from bellweight.models.local import grid

MOST_CELLS = 1 << 16
"""The most combinations of values that functions with the same coordinates are tabulated on."""


def tabulated(parts: Sequence[Part], columns: IntArray, sizes: Sequence[int]) -> Grids:
    """Return the functions of a basis by the coordinates they look at.

    `columns` are the places of the functions in the layout of compiled loops.
    """
    groups: dict[tuple[int, ...], list[Part]] = {}
    for part in parts:
        groups.setdefault(part.scope, []).append(part)
    _check(list(groups), sizes)
    tables, places, counts, cells = [], [], [], []
    for scope, own in groups.items():
        points = grid(scope, sizes).astype(np.float64)
        table = np.hstack([np.asarray(part.features(points)) for part in own])
        tables.append(table)
        places += [columns[k] for part in own for k in part.columns]
        counts.append(table.shape[1])
        cells.append(len(points))
    found: Grids = uniform(
        Grids(
            _sums([len(scope) for scope in groups]),
            np.array([i for scope in groups for i in scope], dtype=np.int64),
            _sums(cells),
            _sums(counts),
            np.array(places, dtype=np.int64),
            _sums([table.size for table in tables]),
            np.concatenate([table.ravel() for table in tables]),
            np.zeros(sum(cells)),
        )
    )
    return found


def contracted(grids: Grids, coef: FloatArray) -> Grids:
    """Return the grids with the value of each cell for coefficients (W,), and without tables."""
    value = np.zeros(len(grids.value))
    for g in range(len(grids.start) - 1):
        own = grids.column[grids.column_start[g] : grids.column_start[g + 1]]
        table = grids.table[grids.table_start[g] : grids.table_start[g + 1]]
        cells = slice(grids.cell_start[g], grids.cell_start[g + 1])
        value[cells] = table.reshape(-1, len(own)) @ coef[own]
    return grids._replace(value=value, table=np.zeros(0))


def _check(scopes: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> None:
    for scope in scopes:
        cells = prod(sizes[i] for i in scope)
        if cells > MOST_CELLS:
            names = variable_names(len(sizes))
            shown = ", ".join(names[i] for i in scope[:6]) + (", ..." if len(scope) > 6 else "")
            raise BasisError(
                f"some functions look at {shown} together, {cells:.2g} combinations of values, "
                f"expected at most {MOST_CELLS:,} for an exact expectation: use functions of fewer "
                "coordinates, such as PiecewiseLinear, Separable, Polynomial or ClippedProducts"
            )


def _sums(counts: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
