"""Single functions with a place of their own, and bases made of them.

    Hinge(coordinates, kink)   max(x_i + x_j + ... - kink, 0): bends where a sum passes the kink
    StateIndicator(state)      1 in one state and 0 elsewhere

A basis can be enriched with them one by one; `Located` makes a basis of a list of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np

from bellweight.basis.atoms import Atom, Term, hinge, spot
from bellweight.basis.composed import stacked_on
from bellweight.basis.core import Basis, variable_names
from bellweight.basis.parts import Part
from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import BasisError


@files.storable("Hinge")
@dataclass(frozen=True)
class Hinge:
    """The function max(sum of x_i over `coordinates` - kink, 0), coordinates counted from 0."""

    coordinates: tuple[int, ...]
    kink: float

    def __post_init__(self) -> None:
        given = self.coordinates
        listed = isinstance(given, Sequence)
        if not listed or not all(isinstance(i, int | np.integer) for i in given):
            raise BasisError(f"coordinates is {given!r}, expected whole numbers such as (0, 1)")
        object.__setattr__(self, "coordinates", tuple(given))

    def __call__(self, states: FloatArray) -> FloatArray:
        """Map states (n, d) to values (n,)."""
        total = states[:, list(self.coordinates)].sum(axis=1)
        return np.asarray(np.maximum(total - self.kink, 0.0))

    def atom(self) -> Atom:
        """Return the function as compiled loops take it."""
        return hinge(self.coordinates, self.kink)

    def name(self, dimension: int) -> str:
        """Return the function as people write it."""
        variables = variable_names(dimension)
        total = " + ".join(variables[i] for i in self.coordinates)
        if self.kink == 0.0:
            return f"max({total}, 0)"
        return f"max({total} {'+' if self.kink < 0.0 else '-'} {abs(self.kink):g}, 0)"

    def part(self, column: int) -> Part:
        """Return the function as a part of a basis.

        Once one coordinate exceeds the kink the sum does too, as coordinates are not negative, and
        the hinge is affine there.
        """
        kink = self.kink
        scope = tuple(sorted(set(self.coordinates)))
        times = np.array([self.coordinates.count(i) for i in scope], dtype=np.float64)
        tail = max(0, ceil(kink))
        return Part(
            (column,),
            scope,
            lambda points: np.maximum(points @ times - kink, 0.0)[:, None],
            (tail,) * len(scope),
        )

    def check(self, dimension: int) -> None:
        """Complain about coordinates that states of this dimension lack."""
        wrong = [i for i in self.coordinates if not 0 <= i < dimension]
        if wrong or not self.coordinates:
            raise BasisError(
                f"a Hinge has coordinates {self.coordinates}, expected some of 0 to {dimension - 1}"
            )


@files.storable("Spot")
@dataclass(frozen=True)
class StateIndicator:
    """The function that is 1 in the state with this vector and 0 elsewhere."""

    state: tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.state, str) or np.ndim(self.state) != 1:
            raise BasisError(f"state is {self.state!r}, expected a vector such as (0, 3)")

    def __call__(self, states: FloatArray) -> FloatArray:
        """Map states (n, d) to values (n,)."""
        return np.asarray((states == np.array(self.state)).all(axis=1), dtype=np.float64)

    def atom(self) -> Atom:
        """Return the function as compiled loops take it."""
        return spot(tuple(range(len(self.state))), self.state)

    def name(self, dimension: int) -> str:
        """Return the function as people write it."""
        place = ", ".join(f"{number:g}" for number in self.state)
        return f"[x = {place}]" if dimension == 1 else f"[x = ({place})]"

    def part(self, column: int) -> Part:
        """Return the function as a part of a basis; beyond its state it is zero."""
        place = np.array(self.state)
        tails = tuple(max(0, floor(number) + 1) for number in self.state)
        return Part(
            (column,),
            tuple(range(len(place))),
            lambda points: (points == place).all(axis=1)[:, None].astype(np.float64),
            tails,
        )

    def check(self, dimension: int) -> None:
        """Complain about a state of another dimension."""
        if len(self.state) != dimension:
            raise BasisError(
                f"a StateIndicator has state {self.state}, expected {dimension} coordinates"
            )


Function = Hinge | StateIndicator


@files.storable("Located")
@dataclass(frozen=True, repr=False)
class Located(Basis):
    """Hinges and indicators of states, without the constant: to be stacked on another basis."""

    functions: Any

    def __post_init__(self) -> None:
        given = self.functions
        if not isinstance(given, Sequence) or not all(
            isinstance(f, Hinge | StateIndicator) for f in given
        ):
            raise BasisError(
                f"functions is {given!r}, expected a list of Hinge(...) and StateIndicator(...)"
            )
        object.__setattr__(self, "functions", tuple(given))

    def on(self, states: FloatArray) -> Located:
        for function in self.functions:
            function.check(states.shape[1])
        return self

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        features = np.empty((len(points), len(self.functions)))
        for k, function in enumerate(self.functions):
            features[:, k] = function(points)
        return features

    def terms(self, dimension: int) -> list[Term]:
        return [(function.atom(),) for function in self.functions]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        return tuple(function.name(dimension) for function in self.functions)

    def parts(self, dimension: int) -> list[Part]:
        return [function.part(k) for k, function in enumerate(self.functions)]


def extended(basis: Basis, functions: Sequence[Function], dimension: int) -> Basis:
    """Return a basis with functions added, its bounds kept and theirs infinite."""
    if not functions:
        return basis
    return stacked_on(basis, Located(functions), dimension)
