"""Products of clipped coordinates over small groups: what sums of single functions leave out.

    ClippedProducts(groups=[(0, 1), (1, 2)], levels=[1, 3])

has for each group the functions min(x_i, a) min(x_j, b) for all a and b among the levels. They are
bounded, so they are feasible on endless queues too. With the levels 1, ..., m and functions of
single coordinates beside them, they span every table of the group's values up to m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bellweight.basis.atoms import Term, clip
from bellweight.basis.core import Basis, variable_names
from bellweight.basis.parts import Part
from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import BasisError


@files.storable("ClippedProducts")
@dataclass(frozen=True, repr=False)
class ClippedProducts(Basis):
    """All products of min(x_i, level) over the coordinates of each group, without the constant.

    `groups` lists groups of coordinates, counted from 0; `levels` are whole numbers above 0. To be
    stacked on another basis, as in `Stacked(PiecewiseLinear(...), ClippedProducts(...))`.
    """

    groups: Any
    levels: Any = (1,)

    def __post_init__(self) -> None:
        groups = tuple(tuple(group) for group in _listed(self.groups, "groups"))
        for group in groups:
            whole = all(isinstance(i, int | np.integer) and i >= 0 for i in group)
            if not group or not whole or len(set(group)) < len(group):
                raise BasisError(f"groups has {group!r}, expected different coordinates from 0 on")
        levels = _listed(self.levels, "levels")
        if not levels or any(not isinstance(k, int | np.integer) or k < 1 for k in levels):
            raise BasisError(f"levels is {self.levels!r}, expected whole numbers above 0")
        sorted_groups = tuple(tuple(sorted(int(i) for i in group)) for group in groups)
        object.__setattr__(self, "groups", sorted_groups)
        object.__setattr__(self, "levels", tuple(sorted({int(k) for k in levels})))

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        parts = self.parts(points.shape[1])
        if not parts:
            return np.zeros((len(points), 0))
        return np.hstack([part.features(points[:, list(part.scope)]) for part in parts])

    def function_names(self, dimension: int) -> tuple[str, ...]:
        self._check(dimension)
        variables = variable_names(dimension)
        clipped = self._clipped()
        return tuple(" * ".join(f"min({variables[i]}, {k})" for i, k in own) for own in clipped)

    def terms(self, dimension: int) -> list[Term]:
        self._check(dimension)
        return [tuple(clip(i, k) for i, k in own) for own in self._clipped()]

    def parts(self, dimension: int) -> list[Part]:
        self._check(dimension)
        parts, first = [], 0
        for group in self.groups:
            levels = np.array(list(product(self.levels, repeat=len(group))), dtype=np.float64)
            columns = tuple(range(first, first + len(levels)))
            first += len(levels)
            tails = (self.levels[-1],) * len(group)
            parts.append(Part(columns, group, _Clip(levels), tails))
        return parts

    def _clipped(self) -> list[list[tuple[int, int]]]:
        """Return for each function its coordinates with their levels."""
        return [
            list(zip(group, levels, strict=True))
            for group in self.groups
            for levels in product(self.levels, repeat=len(group))
        ]

    def _check(self, dimension: int) -> None:
        for group in self.groups:
            if max(group) >= dimension:
                raise BasisError(
                    f"groups has {group}, expected coordinates from 0 to {dimension - 1}"
                )


@dataclass(frozen=True, eq=False)
class _Clip:
    """The function from points (n, m) to products (n, c) of coordinates clipped at levels."""

    levels: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        return np.prod(np.minimum(points[:, None, :], self.levels), axis=2)


def _listed(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise BasisError(f"{name} is {value!r}, expected a list")
    return tuple(value)
