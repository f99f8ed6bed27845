"""The terms that rows of models made of local parts are sums of, and the grid they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellweight.basis import Part
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import BasisError
from bellweight.models.local import LocalStructure, Table, grid, tabulated

_UNIT = 2.0**-53
_SPARE = 8.0  # so that the rows also hold when they are added up in another order


def gamma(n: float) -> float:
    """Return the bound on the relative error of n operations, with room for other orders."""
    return _SPARE * n * _UNIT / (1.0 - _SPARE * n * _UNIT)


@dataclass(frozen=True, eq=False)
class Term:
    """Part of a row: columns (c,) get factor x chance x features at each point."""

    columns: IntArray
    factor: float
    chance: Table | None
    features: Table

    @property
    def scope(self) -> tuple[int, ...]:
        """The variables that the term looks at."""
        seen = () if self.chance is None else self.chance.scope
        return tuple(sorted({*self.features.scope, *seen}))

    def table(self, coef: FloatArray) -> Table:
        """Return the term's value for coefficients (K,), as a table."""
        values = Table(
            self.features.scope, self.factor * (self.features.values @ coef[self.columns])
        )
        if self.chance is None:
            return values
        scope = self.scope
        return Table(scope, self.chance.over(scope) * values.over(scope))

    def add_to(self, rows: FloatArray, points: IntArray) -> None:
        """Add the term to rows (n, K) at points (n, v)."""
        share = self.factor * self.features.at(points)
        rows[:, self.columns] += (
            share if self.chance is None else share * self.chance.at(points)[:, None]
        )


def row_terms(
    structure: LocalStructure, parts: Sequence[Part], sizes: Sequence[int], *, size: bool = False
) -> list[Term]:
    """Return the terms of a row: (1 - discount) f - discount (E[f(next)] - f) for functions f.

    With `size`, what rounding is relative to.
    """
    factor = structure.discount if size else -structure.discount
    terms = []
    for part in parts:
        columns = np.array(part.columns)
        here = part.features(grid(part.scope, sizes).astype(np.float64))
        own = tabulated(part.scope, sizes, np.abs(here) if size else here)
        terms.append(Term(columns, 1.0 - structure.discount, None, own))
        drifts = structure.drifts(part.scope, part.features, sizes, size=size)
        terms += [Term(columns, factor, drift.chance, drift.features) for drift in drifts]
    return terms


def grid_sizes(
    structure: LocalStructure, parts: Sequence[Part], names: Sequence[str]
) -> tuple[int, ...]:
    """Return the number of values of each variable: up to one beyond M along endless ones."""
    last = np.array(structure.limits)
    for i in structure.endless:
        last[i] = structure.tails[i] + 1
    for part in parts:
        for i, tail in zip(part.scope, part.tails, strict=True):
            if structure.limits[i] >= 0:
                continue
            if tail is None:
                raise BasisError(
                    f"basis function {part.columns[0]} ({names[part.columns[0]]}) is not affine "
                    f"for large x{i + 1}, which has no upper bound: use functions such as "
                    "PiecewiseLinear(kinks) and ClippedProducts(groups, levels), or give the model "
                    "an upper bound"
                )
            last[i] = max(last[i], tail + structure.falls[i] + 1)
    return (*(int(value) + 1 for value in last), *structure.choices)


def law_moments(
    structure: LocalStructure, parts: Sequence[Part], sizes: Sequence[int], n_basis: int
) -> tuple[FloatArray, FloatArray] | None:
    """Return the moments (K,) of the initial law, and bounds on their errors; None if not known."""
    laws = [structure.initial_law(i, sizes[i]) for i in range(structure.dimension)]
    known = [law for law in laws if law is not None]
    if len(known) < len(laws):
        return None
    endless = set(structure.endless)
    moments, terms = np.zeros(n_basis), np.zeros(n_basis)
    longest = 0
    for part in parts:
        columns, points = list(part.columns), grid(part.scope, sizes)
        features = tabulated(part.scope, sizes, part.features(points.astype(np.float64)))
        moments[columns] = _expected(features, endless, known)
        terms[columns] = _expected(features, endless, known, size=True)
        longest = max(longest, len(points))
    # Chances of a geometric law are powers, right to a few digits more than their exponent.
    return moments, gamma(longest + 2 * max(sizes) + 64) * terms


def _expected(
    features: Table, endless: set[int], laws: list[tuple[FloatArray, float]], *, size: bool = False
) -> FloatArray:
    """Return the expected values (c,) of a part's functions, or of the terms' sizes."""
    scope, table = features.scope, features.values
    expected = np.zeros(table.shape[-1])
    for beyond in (None, *(axis for axis, i in enumerate(scope) if i in endless)):
        values = np.abs(table) if size else table
        # Axes are summed over from the last; the coordinate beyond its end has its slope.
        for axis in reversed(range(len(scope))):
            chances, excess = laws[scope[axis]]
            if axis == beyond:
                ends = np.moveaxis(values, axis, 0)
                values = excess * (ends[-1] + ends[-2] if size else ends[-1] - ends[-2])
            else:
                values = np.tensordot(values, chances, axes=(axis, 0))
        expected = expected + values
    return expected
