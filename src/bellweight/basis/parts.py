"""A basis taken apart: functions of a few coordinates each, and from where on they are affine.

A part is a group of functions with one scope T, the coordinates they look at. Along coordinates
that have no largest value its functions f must become affine: there is a tail value m_i for each
such coordinate i of T with

    f(x) = f(c) + sum over i with x_i > m_i of (x_i - m_i) (f(c + e_i) - f(c)),   c = min(x, m).

So beyond the tail values f grows along each coordinate with a slope that depends on the other
coordinates' values up to their tails only. Hinges max(x - k, 0), clipped coordinates min(x, k) and
their products, and hinges of sums have such tails; the product of two coordinates has not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellweight.common.checks import FloatArray


@dataclass(frozen=True, eq=False)
class Part:
    """Functions of the coordinates in `scope`.

    `columns` are their places among the functions of the basis; `features` maps points
    (n, len(scope)) to values (n, len(columns)); `tails` has for each coordinate of the scope the
    value from which on all of them are affine, None where there is none.
    """

    columns: tuple[int, ...]
    scope: tuple[int, ...]
    features: Callable[[FloatArray], FloatArray]
    tails: tuple[int | None, ...]

    def picked(self, columns: Sequence[int], places: Sequence[int]) -> Part:
        """Return some of the functions, by number within the part, with new places."""
        chosen, inner = list(columns), self.features
        return replace(
            self, columns=tuple(places), features=lambda points: inner(points)[:, chosen]
        )

    def placed(self, scope: Sequence[int]) -> Part:
        """Return the same functions of other coordinates."""
        return replace(self, scope=tuple(scope))


def constant_part(column: int) -> Part:
    """Return the constant function one, which looks at no coordinate."""
    return Part((column,), (), lambda points: np.ones((len(points), 1)), ())


def moved(parts: Sequence[Part], places: dict[int, int]) -> list[Part]:
    """Return parts with their columns moved to new places; columns without a place are left out."""
    found = []
    for part in parts:
        kept = [j for j, column in enumerate(part.columns) if column in places]
        if kept:
            found.append(part.picked(kept, [places[part.columns[j]] for j in kept]))
    return found
