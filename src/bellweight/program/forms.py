"""A value function as a sum of piecewise linear functions of linear forms of the state.

V(x) = constant + sum over f of v_f(u_f . x): what proofs over a box work with. Kinks of single
coordinates have the coordinates themselves as forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common.checks import FloatArray
from bellweight.models.kernels.layouts import CLIP, COORDINATE, HINGE


@dataclass(frozen=True, eq=False)
class Form:
    """A piecewise linear function of direction . x: its kinks (m,) and slopes (m + 1,)."""

    direction: FloatArray
    kinks: FloatArray
    slopes: FloatArray

    def steepest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the largest absolute slope over intervals (n,)."""
        first = np.searchsorted(self.kinks, low, side="left")
        last = np.searchsorted(self.kinks, high, side="right")
        found = np.abs(self.slopes[first])
        for k in range(1, int((last - first).max(initial=0)) + 1):
            found = np.maximum(found, np.abs(self.slopes[np.minimum(first + k, last)]))
        return np.asarray(found)

    def value(self, points: FloatArray) -> FloatArray:
        """Return its values, up to one constant: that at the first kink is zero."""
        if len(self.kinks) == 0:
            return np.asarray(self.slopes[0] * points)
        rises = np.concatenate([[0.0], np.cumsum(self.slopes[1:-1] * np.diff(self.kinks))])
        place = np.searchsorted(self.kinks, points)
        nearest = np.maximum(place - 1, 0)
        return np.asarray(rises[nearest] + self.slopes[place] * (points - self.kinks[nearest]))


def forms_of(basis: Basis, dimension: int, coef: FloatArray) -> list[Form] | None:
    """Return V as such a sum, with a form for each coordinate first; None where it is none."""
    bends: dict[tuple[float, ...], dict[float, float]] = {}
    slopes: dict[tuple[float, ...], float] = {}  # left of all kinks
    for axis in np.eye(dimension).tolist():
        bends[tuple(axis)], slopes[tuple(axis)] = {}, 0.0
    for term, c in zip(CompiledBasis.of(basis, dimension).terms, coef, strict=True):
        if not term:
            continue
        atom = term[0]
        if len(term) > 1 or atom.kind not in (COORDINATE, HINGE, CLIP):
            return None
        direction, weight = np.zeros(dimension), 1.0
        np.add.at(direction, list(atom.index), atom.weight or 1.0)
        used = np.flatnonzero(direction)
        if len(used) == 1:
            weight = float(direction[used[0]])
            direction = direction / weight
        key = tuple(direction.tolist())
        own = bends.setdefault(key, {})
        slopes.setdefault(key, 0.0)
        if atom.kind == COORDINATE:
            slopes[key] += c
            continue
        # max(w u - k, 0) is flat on the left where w > 0, min(w u, k) on the right.
        kink, rises = atom.number / weight, (atom.kind == HINGE) == (weight > 0.0)
        slopes[key] += 0.0 if rises else c * weight
        change = abs(weight) * c if atom.kind == HINGE else -abs(weight) * c
        own[kink] = own.get(kink, 0.0) + change
    return [_form(key, bends[key], first) for key, first in slopes.items()]


def _form(direction: tuple[float, ...], bends: dict[float, float], first: float) -> Form:
    kinks = np.array(sorted(bends))
    changes = np.array([bends[kink] for kink in sorted(bends)])
    slopes = first + np.concatenate([[0.0], np.cumsum(changes)])
    return Form(np.array(direction), kinks, slopes)


def constant_in(basis: Basis, dimension: int) -> int | None:
    """Return the number of the function that is the constant, None where none is by itself."""
    terms = CompiledBasis.of(basis, dimension).terms
    return terms.index(()) if () in terms else None
