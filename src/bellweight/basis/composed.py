"""Bases made of other bases: sums and products over coordinates, and bases side by side.

A function named 1 is the constant; it is written once and stands first. Other functions that
depend on earlier ones are found, dropped and reported by the solver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Self

import numpy as np

from bellweight.basis.atoms import Term
from bellweight.basis.core import Basis, Indicator, variable_names
from bellweight.basis.parts import Part, constant_part, moved
from bellweight.common import files
from bellweight.common.checks import FloatArray, dense
from bellweight.common.status import BasisError

_MOST_PRODUCTS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class _PerCoordinate(Basis):
    """One-dimensional bases, one for each coordinate; a single one serves them all."""

    bases: Any

    def __post_init__(self) -> None:
        single = isinstance(self.bases, Basis)
        members = _members((self.bases,) if single else self.bases, type(self).__name__)
        object.__setattr__(self, "bases", self.bases if single else members)

    def on(self, states: FloatArray) -> Self:
        # A coordinate takes the same value in many states; the basis sees each value once.
        columns = (np.unique(column)[:, None] for column in states.T)
        members = zip(self._each(states.shape[1]), columns, strict=True)
        return replace(self, bases=tuple(basis.on(values) for basis, values in members))

    def _each(self, dimension: int) -> tuple[Basis, ...]:
        if isinstance(self.bases, Basis):
            return (self.bases,) * dimension
        if len(self.bases) != dimension:
            raise BasisError(
                f"{type(self).__name__} has {len(self.bases)} bases for states with {dimension} "
                "coordinates: give one for each coordinate, or one for all"
            )
        return tuple(self.bases)

    def _features(self, states: FloatArray) -> list[FloatArray]:
        points = np.asarray(states, dtype=np.float64)
        return [dense(b(points[:, [i]])) for i, b in enumerate(self._each(points.shape[1]))]

    def _terms(self, dimension: int) -> list[list[Term]]:
        """Return the functions of each coordinate."""
        return [
            [tuple(atom.at(i) for atom in term) for term in _line_terms(basis)]
            for i, basis in enumerate(self._each(dimension))
        ]

    def _names(self, dimension: int) -> list[tuple[str, ...]]:
        variables = variable_names(dimension)
        each = zip(variables, self._each(dimension), strict=True)
        return [tuple(_renamed(name, x) for name in basis.function_names(1)) for x, basis in each]


@files.storable("Separable")
@dataclass(frozen=True, eq=False, repr=False)
class Separable(_PerCoordinate):
    """The constant and the functions of a one-dimensional basis of each coordinate: sums f_i(x_i).

    Args:
        bases: one basis for all coordinates, as in `Separable(Polynomial(3))`, which has no mixed
            terms; or one for each, as in `Separable([Polynomial(2), Radial(5)])`.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Separable(bw.Polynomial(2))(np.array([[3.0, 4.0]])).shape
        (1, 5)
    """

    def __call__(self, states: FloatArray) -> FloatArray:
        names = self._names(np.shape(states)[1])
        parts = zip(self._features(states), names, strict=True)
        rest = [features[:, _not_constant(own)] for features, own in parts]
        return np.hstack([np.ones((len(states), 1)), *rest])

    def terms(self, dimension: int) -> list[Term]:
        parts = zip(self._terms(dimension), self._names(dimension), strict=True)
        return [(), *(own[k] for own, names in parts for k in _not_constant(names))]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        return ("1", *(name for own in self._names(dimension) for name in own if name != "1"))

    def parts(self, dimension: int) -> list[Part]:
        parts, first = [constant_part(0)], 1
        for i, basis in enumerate(self._each(dimension)):
            kept = _not_constant(basis.function_names(1))
            places = {column: first + j for j, column in enumerate(kept)}
            parts += [part.placed((i,)) for part in moved(basis.parts(1), places)]
            first += len(kept)
        return parts


@files.storable("Product")
@dataclass(frozen=True, eq=False, repr=False)
class Product(_PerCoordinate):
    """All products f_1(x_1) ... f_d(x_d) of functions of one-dimensional bases.

    The last coordinate's function changes fastest. The number of functions is the product of those
    of the coordinates, so this is for few coordinates; `Separable` grows slowly.

    Args:
        bases: one basis for all coordinates, or one for each.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Product(bw.Polynomial(1))(np.array([[3.0, 4.0]])).shape
        (1, 4)
    """

    def __call__(self, states: FloatArray) -> FloatArray:
        parts = self._features(states)
        _check_size([part.shape[1] for part in parts])
        features = np.ones((len(states), 1))
        for part in parts:
            features = (features[:, :, None] * part[:, None, :]).reshape(len(part), -1)
        return features

    def terms(self, dimension: int) -> list[Term]:
        parts = self._terms(dimension)
        _check_size([len(part) for part in parts])
        terms: list[Term] = [()]
        for part in parts:
            terms = [first + second for first in terms for second in part]
        return terms

    def function_names(self, dimension: int) -> tuple[str, ...]:
        parts = self._names(dimension)
        _check_size([len(part) for part in parts])
        names = ["1"]
        for part in parts:
            names = [_product_name(first, second) for first in names for second in part]
        return tuple(names)

    def parts(self, dimension: int) -> list[Part]:
        factors = [_factors(basis, i) for i, basis in enumerate(self._each(dimension))]
        _check_size([len(own) for own in factors])
        return [
            _product_part(column, [f for f in combination if f is not None])
            for column, combination in enumerate(product(*factors))
        ]


@files.storable("Stacked")
@dataclass(frozen=True, eq=False, init=False, repr=False)
class Stacked(Basis):
    """The functions of several bases side by side.

    Args:
        members: the bases, as in `Stacked(Affine(), Radial(9))`.
        bases: the same as a list, by name.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Stacked(bw.Affine(), bw.PiecewiseLinear([2]))
        Stacked(bases=(Affine(), PiecewiseLinear(kinks=(2,))))
    """

    bases: tuple[Basis, ...]

    def __init__(
        self,
        *members: Basis,
        bases: Sequence[Basis] | None = None,
        lower: Any = None,
        upper: Any = None,
    ) -> None:
        given = _members(members if bases is None else bases, "Stacked")
        object.__setattr__(self, "bases", given)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def on(self, states: FloatArray) -> Stacked:
        fitted = [basis.on(states) for basis in self.bases]
        return Stacked(*fitted, lower=self.lower, upper=self.upper)

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        wanted = self._wanted(points.shape[1])
        return np.hstack([dense(b(points))[:, w] for b, w in zip(self.bases, wanted, strict=True)])

    def terms(self, dimension: int) -> list[Term]:
        members = zip(self.bases, self._wanted(dimension), strict=True)
        listed = [(basis.terms(dimension), columns) for basis, columns in members]
        return [terms[k] for terms, columns in listed for k in columns]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        members = zip(self.bases, self._wanted(dimension), strict=True)
        named = [(basis.function_names(dimension), columns) for basis, columns in members]
        return tuple(names[k] for names, columns in named for k in columns)

    def parts(self, dimension: int) -> list[Part]:
        parts, first = [], 0
        for basis, columns in zip(self.bases, self._wanted(dimension), strict=True):
            places = {column: first + j for j, column in enumerate(columns)}
            parts += moved(basis.parts(dimension), places)
            first += len(columns)
        return parts

    def _wanted(self, dimension: int) -> list[list[int]]:
        """Return which functions of each basis are taken: all but repetitions of the constant."""
        names = [basis.function_names(dimension) for basis in self.bases]
        seen, wanted = False, []
        for own in names:
            wanted.append(_not_constant(own) if seen else list(range(len(own))))
            seen = seen or "1" in own
        return wanted


@dataclass(frozen=True, eq=False)
class _Factor:
    """A function of one coordinate in a product: its tail, and whether it still grows there."""

    coordinate: int
    function: Callable[[FloatArray], FloatArray]
    tail: int | None
    grows: bool


def _factors(basis: Basis, coordinate: int) -> list[_Factor | None]:
    """Return the functions of a one-dimensional basis, None for the constant."""
    found: dict[int, _Factor | None] = {}
    for part in basis.parts(1):
        for j, column in enumerate(part.columns):
            if not part.scope or basis.function_names(1)[column] == "1":
                found[column] = None
                continue
            own, tail = part.picked([j], [column]).features, part.tails[0]
            ends = [[0.0], [1.0]] if tail is None else [[tail], [tail + 1.0]]
            at_end = own(np.array(ends))[:, 0]
            found[column] = _Factor(coordinate, own, tail, bool(at_end[0] != at_end[1]))
    return [found[column] for column in sorted(found)]


def _product_part(column: int, factors: list[_Factor]) -> Part:
    """Return a product of functions of one coordinate each; two growing ones are not affine."""
    if not factors:
        return constant_part(column)
    affine = sum(factor.grows for factor in factors) <= 1

    def features(points: FloatArray) -> FloatArray:
        columns = [factor.function(points[:, [j]]) for j, factor in enumerate(factors)]
        return np.asarray(prod(columns[1:], start=columns[0]))

    scope = tuple(factor.coordinate for factor in factors)
    tails = tuple(factor.tail if affine else None for factor in factors)
    return Part((column,), scope, features, tails)


def _members(bases: Any, owner: str) -> tuple[Basis, ...]:
    if not isinstance(bases, Sequence) or len(bases) == 0:
        raise BasisError(f"{owner} got {bases!r}, expected a basis or a list of bases")
    for k, member in enumerate(bases):
        if not isinstance(member, Basis):
            raise BasisError(
                f"basis {k} of {owner} is {member!r}, expected a basis such as Polynomial(2)"
            )
        if member.lower is not None or member.upper is not None:
            raise BasisError(
                f"basis {k} of {owner} has bounds of its own, which would be lost: give them to "
                f"{owner}(..., lower=, upper=), one for each function or one for all"
            )
    return tuple(bases)


def _check_size(counts: list[int]) -> None:
    if prod(counts) > _MOST_PRODUCTS:
        shown = " x ".join(map(str, counts))
        raise BasisError(
            f"a Product of {shown} = {prod(counts)} functions is beyond {_MOST_PRODUCTS}: use "
            "fewer functions per coordinate, or Separable"
        )


def _line_terms(basis: Basis) -> list[Term]:
    """Return the functions of a basis of one coordinate."""
    return basis.spots() if isinstance(basis, Indicator) else basis.terms(1)


def _not_constant(names: Sequence[str]) -> list[int]:
    return [k for k, name in enumerate(names) if name != "1"]


def _renamed(name: str, variable: str) -> str:
    """Return a function's name with x replaced by the name of its coordinate."""
    if name == "1" or variable == "x":
        return name
    renamed = re.sub(r"\bx\b", variable, name)
    return renamed if renamed != name else f"{name} of {variable}"


def _product_name(first: str, second: str) -> str:
    kept = [name for name in (first, second) if name != "1"]
    return " * ".join(kept) or "1"


def stacked_on(basis: Basis, added: Basis, dimension: int) -> Stacked:
    """Return a basis with another one's functions added, its bounds kept and theirs infinite."""
    if basis.lower is None and basis.upper is None:
        return Stacked(basis, added)
    low, high = basis.bounds(len(basis.function_names(dimension)))
    together = Stacked(replace(basis, lower=None, upper=None), added)
    # A second constant is left out of a stack.
    free = np.full(len(together.function_names(dimension)) - len(low), np.inf)
    return replace(together, lower=np.append(low, -free), upper=np.append(high, free))
