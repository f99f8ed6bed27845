"""Bases for value functions that polynomials fit badly: kinks, bumps and waves.

    PiecewiseLinear    1,  x_i,  max(x_i - kink, 0)
    Radial             1,  exp(-|x - centre|^2 / (2 width^2))
    Fourier            1,  cos(frequency' x + phase)

What a setting leaves open (where kinks and centres lie, how wide a bump is) is fitted by
`on(states)` from the states alone, so it is the same for every method and every weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
import scipy

from bellweight.basis.atoms import Term, bump, coordinate, hinge, wave
from bellweight.basis.core import Basis, unfitted, variable_names
from bellweight.basis.parts import Part, constant_part
from bellweight.common import checks, files
from bellweight.common.checks import FloatArray
from bellweight.common.status import BasisError


@files.storable("PiecewiseLinear")
@dataclass(frozen=True, repr=False)
class PiecewiseLinear(Basis):
    """The constant, each coordinate, and max(x_i - kink, 0) for each of its kinks.

    Args:
        kinks: one increasing list for all coordinates, one list for each, or a number of kinks,
            which `on(states)` spaces evenly strictly between a coordinate's smallest and largest
            value.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.PiecewiseLinear([2, 5])(np.array([[3.0]]))
        array([[1., 3., 1., 0.]])
    """

    kinks: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinks", _kinks(self.kinks))

    def on(self, states: FloatArray) -> PiecewiseLinear:
        if not isinstance(self.kinks, int):
            self._per_coordinate(states.shape[1])
            return self
        inside = np.arange(1, self.kinks + 1) / (self.kinks + 1)
        low, high = states.min(axis=0), states.max(axis=0)
        fitted = [
            (a + (b - a) * inside).tolist() if b > a else [] for a, b in zip(low, high, strict=True)
        ]
        return replace(self, kinks=fitted)

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        hinges = [
            np.maximum(points[:, [i]] - np.array(own)[None, :], 0.0)
            for i, own in enumerate(self._per_coordinate(points.shape[1]))
        ]
        return np.hstack([np.ones((len(points), 1)), points, *hinges])

    def terms(self, dimension: int) -> list[Term]:
        kinks = enumerate(self._per_coordinate(dimension))
        hinges = [(hinge((i,), kink),) for i, own in kinks for kink in own]
        return [(), *((coordinate(i),) for i in range(dimension)), *hinges]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        variables = variable_names(dimension)
        hinges = [
            f"max({x} {'+' if kink < 0.0 else '-'} {abs(kink):g}, 0)"
            for x, own in zip(variables, self._per_coordinate(dimension), strict=True)
            for kink in own
        ]
        return ("1", *variables, *hinges)

    def parts(self, dimension: int) -> list[Part]:
        parts, first = [constant_part(0)], 1 + dimension
        for i, own in enumerate(self._per_coordinate(dimension)):
            columns = (1 + i, *range(first, first + len(own)))
            first += len(own)
            tail = max(0, ceil(max(own, default=0.0)))
            parts.append(Part(columns, (i,), _line_and_hinges(own), (tail,)))
        return parts

    def _per_coordinate(self, dimension: int) -> tuple[tuple[float, ...], ...]:
        if isinstance(self.kinks, int):
            raise unfitted(self)
        if not self.kinks or not isinstance(self.kinks[0], tuple):
            return (self.kinks,) * dimension
        if len(self.kinks) != dimension:
            raise BasisError(
                f"kinks has {len(self.kinks)} lists for states with {dimension} coordinates: give "
                "one list for each coordinate, or one list for all"
            )
        return tuple(self.kinks)


@files.storable("Radial")
@dataclass(frozen=True, eq=False, repr=False)
class Radial(Basis):
    """The constant and a Gaussian bump exp(-|x - centre|^2 / (2 width^2)) for each centre.

    Distances are Euclidean: scale coordinates of different units, or use `Product(Radial(...))`.
    With many bumps and weights on few states put bounds on the coefficients, as in
    `Radial(10, lower=-1e8, upper=1e8)`: far bumps are so small where the weights are that the
    program may need coefficients too large for double precision.

    Args:
        centres: the centres (m, d), or how many are drawn from the model's states, without
            repetition.
        width: of a bump; by default the median distance from a centre to the nearest other one.
        seed: decides which centres are drawn.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Radial(4)
        Radial(centres=4)
    """

    centres: Any
    width: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width is not None and not _is_positive(self.width):
            raise BasisError(
                f"width is {self.width!r}, expected a number above 0: leave it out for the "
                "distance between neighbouring centres"
            )
        _whole(self.seed, "seed", 0)
        if _is_whole(self.centres):
            _whole(self.centres, "centres", 1)
            return
        centres = checks.float_array(self.centres, "centres", (-1, -1), BasisError)
        if len(np.unique(centres, axis=0)) < max(len(centres), 1):
            raise BasisError(
                f"centres has {len(centres)} rows, expected at least one, all different: remove "
                "repetitions"
            )
        object.__setattr__(self, "centres", centres)

    def on(self, states: FloatArray) -> Radial:
        centres = self.centres
        if isinstance(centres, int | np.integer):
            distinct = np.unique(states, axis=0)
            if centres > len(distinct):
                raise BasisError(
                    f"centres is {centres}, but the model has only {len(distinct)} distinct state "
                    "vectors: ask for fewer, or use Indicator()"
                )
            drawn = np.random.default_rng(self.seed).choice(len(distinct), centres, replace=False)
            centres = distinct[np.sort(drawn)]
        fitted = replace(self, centres=centres, width=self.width or _spacing(centres))
        fitted._check(states.shape[1])
        return fitted

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        self._check(points.shape[1])
        assert self.width is not None
        distance = scipy.spatial.distance.cdist(
            points / self.width, self.centres / self.width, "sqeuclidean"
        )
        bumps = np.exp(-0.5 * distance)
        return np.column_stack([np.ones(len(points)), bumps])

    def terms(self, dimension: int) -> list[Term]:
        self._check(dimension)
        assert self.width is not None
        return [(), *((bump(centre, self.width),) for centre in self.centres)]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        self._check(dimension)
        places = (", ".join(f"{number:g}" for number in centre) for centre in self.centres)
        return ("1", *(f"bump at ({place})" for place in places))

    def _check(self, dimension: int) -> None:
        if _is_whole(self.centres) or self.width is None:
            raise unfitted(self)
        if self.centres.shape[1] != dimension:
            raise BasisError(
                f"centres has shape {self.centres.shape}, expected (m, {dimension}): give each "
                f"centre the {dimension} coordinates of a state"
            )


@files.storable("Fourier")
@dataclass(frozen=True, eq=False, repr=False)
class Fourier(Basis):
    """The constant and cosines cos(frequency' x + phase); once fitted, they stay.

    Args:
        n: how many cosines; without a seed, how many for each coordinate.
        seed: with a seed, frequencies are normal with deviation 1 / scale and phases uniform:
            random features of a Gaussian kernel. With None the cosines are those of each coordinate
            on its own, cos(k pi (x_i - low) / (high - low)) for k = 1..n.
        scale: the width of that kernel, one number or one per coordinate; by default each
            coordinate's standard deviation.
        frequencies: the frequencies (n, d) of a fitted basis; `on(states)` fills them in.
        phases: the phases (n,) of a fitted basis.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Fourier(5, seed=1)
        Fourier(n=5, seed=1)
    """

    n: int
    seed: int | None = 0
    scale: Any = None
    frequencies: FloatArray | None = field(default=None, repr=False)
    phases: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _whole(self.n, "n", 1)
        if self.seed is not None:
            _whole(self.seed, "seed", 0)
        if self.scale is None:
            return
        if self.seed is None:
            raise BasisError(
                f"scale is {self.scale!r} but seed is None: the cosines of each coordinate take "
                "their scale from the states; leave scale out, or give a seed"
            )
        shape = () if np.ndim(self.scale) == 0 else (-1,)
        scale = checks.float_array(self.scale, "scale", shape, BasisError)
        if not (scale > 0.0).all():
            raise BasisError(f"scale is {self.scale!r}, expected numbers above 0")

    def on(self, states: FloatArray) -> Fourier:
        if self.frequencies is not None:
            self._fitted(states.shape[1])
            return self
        frequencies, phases = self._regular(states) if self.seed is None else self._random(states)
        return replace(self, frequencies=frequencies, phases=phases)

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        frequencies, phases = self._fitted(points.shape[1])
        waves = np.cos(points @ frequencies.T + phases)
        return np.column_stack([np.ones(len(points)), waves])

    def terms(self, dimension: int) -> list[Term]:
        frequencies, phases = self._fitted(dimension)
        return [(), *((wave(f, b),) for f, b in zip(frequencies, phases, strict=True))]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        frequencies, _ = self._fitted(dimension)
        if self.seed is not None:
            return ("1", *(f"cos(w{k + 1} x + b{k + 1})" for k in range(self.n)))
        variables = variable_names(dimension)
        moving = [int(i) for i in np.argmax(frequencies, axis=1)]
        return ("1", *(f"cos({j % self.n + 1} {variables[i]})" for j, i in enumerate(moving)))

    def _random(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        dimension = states.shape[1]
        deviation = states.std(axis=0)
        scale = np.where(deviation > 0.0, deviation, 1.0) if self.scale is None else self.scale
        if np.ndim(scale) == 1 and len(scale) != dimension:
            raise BasisError(
                f"scale has {len(scale)} numbers for states with {dimension} coordinates: give one "
                "for each coordinate, or one for all"
            )
        rng = np.random.default_rng(self.seed)
        frequencies = rng.normal(size=(self.n, dimension)) / np.asarray(scale)
        return frequencies, rng.uniform(0.0, 2.0 * np.pi, size=self.n)

    def _regular(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        low, high = states.min(axis=0), states.max(axis=0)
        moving = np.flatnonzero(high > low)
        frequencies = np.zeros((len(moving) * self.n, states.shape[1]))
        for place, i in enumerate(moving):
            rows = slice(place * self.n, (place + 1) * self.n)
            frequencies[rows, i] = np.pi * np.arange(1, self.n + 1) / (high[i] - low[i])
        return frequencies, -frequencies @ low

    def _fitted(self, dimension: int) -> tuple[FloatArray, FloatArray]:
        if self.frequencies is None or self.phases is None:
            raise unfitted(self)
        if self.frequencies.shape[1] != dimension:
            raise BasisError(
                f"the basis was fitted to states with {self.frequencies.shape[1]} coordinates, got "
                f"{dimension}: call on(states) with the states of this model"
            )
        return self.frequencies, self.phases


def _kinks(kinks: Any) -> int | tuple[float, ...] | tuple[tuple[float, ...], ...]:
    """Return kinks as a number, one tuple, or one tuple for each coordinate, checked."""
    if _is_whole(kinks):
        return _whole(kinks, "kinks", 1)
    if not isinstance(kinks, Sequence | np.ndarray) or isinstance(kinks, str):
        raise BasisError(
            f"kinks is {kinks!r}, expected a list of numbers, a list for each coordinate, or how "
            "many to place"
        )
    if len(kinks) and all(isinstance(own, Sequence | np.ndarray) for own in kinks):
        return tuple(_increasing(own, f"kinks[{i}]") for i, own in enumerate(kinks))
    return _increasing(kinks, "kinks")


def _increasing(numbers: Any, name: str) -> tuple[float, ...]:
    array = checks.float_array(numbers, name, (-1,), BasisError)
    wrong = checks.first_index(np.diff(array) <= 0.0)
    if wrong is not None:
        k = wrong[0]
        raise BasisError(
            f"{name}[{k + 1}] is {array[k + 1]:g} after {array[k]:g}, expected increasing numbers: "
            "sort them and remove repetitions"
        )
    return tuple(array.tolist())


def _line_and_hinges(kinks: tuple[float, ...]) -> Callable[[FloatArray], FloatArray]:
    """Return the function from points (n, 1) to x and max(x - kink, 0) for each kink."""
    shifts = np.array(kinks)[None, :]
    return lambda points: np.hstack([points, np.maximum(points - shifts, 0.0)])


def _spacing(centres: FloatArray) -> float:
    """Return the median distance from a centre to the nearest other one.

    Bumps much wider than that are so much alike that only huge coefficients tell them apart.
    """
    if len(centres) < 2:
        raise BasisError("one centre has no distance to others: give a width")
    nearest, _ = scipy.spatial.KDTree(centres).query(centres, k=2)
    return float(np.median(nearest[:, 1]))


def _whole(value: Any, name: str, least: int) -> int:
    if not _is_whole(value) or value < least:
        raise BasisError(f"{name} is {value!r}, expected a whole number of at least {least}")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0.0 < value < np.inf)
