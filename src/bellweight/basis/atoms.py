"""What the functions of a basis are made of, as data.

A function is a `Term`, the product of some atoms; no atoms give the constant. An atom looks at the
coordinates `index`, with as many weights and one number: see `models/kernels/layouts.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bellweight.common.status import BasisError
from bellweight.models.kernels.layouts import BUMP, CLIP, COORDINATE, HINGE, SPOT, WAVE, WRITTEN


@dataclass(frozen=True)
class Atom:
    """One factor of a function; `function` is the user's own, whose output `index` it is."""

    kind: int
    index: tuple[int, ...]
    weight: tuple[float, ...] = ()
    number: float = 0.0
    function: Callable[..., Any] | None = field(default=None, hash=True)

    @property
    def key(self) -> Any:
        """What tells this atom from others."""
        return self if self.function is None else (self.function, self.index[0])

    def at(self, coordinate: int) -> Atom:
        """Return this atom of one-dimensional states as one of a coordinate."""
        if self.kind == WRITTEN:
            raise BasisError(
                "a Custom basis of one coordinate cannot run inside compiled loops: write it as a "
                "function of the whole state, or enumerate the model with to_tabular()"
            )
        return replace(self, index=(coordinate,) * len(self.index))


Term = tuple[Atom, ...]


def coordinate(i: int) -> Atom:
    """Return x_i."""
    return Atom(COORDINATE, (i,))


def hinge(coordinates: tuple[int, ...], kink: float) -> Atom:
    """Return max(sum of x_i - kink, 0)."""
    return Atom(HINGE, coordinates, (1.0,) * len(coordinates), float(kink))


def clip(i: int, level: float) -> Atom:
    """Return min(x_i, level)."""
    return Atom(CLIP, (i,), (1.0,), float(level))


def bump(centre: Any, width: float) -> Atom:
    """Return exp(-|x - centre|^2 / (2 width^2))."""
    return Atom(BUMP, tuple(range(len(centre))), tuple(map(float, centre)), float(width))


def wave(frequency: Any, phase: float) -> Atom:
    """Return cos(frequency' x + phase)."""
    return Atom(WAVE, tuple(range(len(frequency))), tuple(map(float, frequency)), float(phase))


def spot(coordinates: tuple[int, ...], state: Any) -> Atom:
    """Return the function that is 1 where these coordinates have these values."""
    return Atom(SPOT, coordinates, tuple(map(float, state)))


def written(function: Callable[..., Any], output: int, outputs: int) -> Atom:
    """Return one of the outputs of a user's function of the state."""
    return Atom(WRITTEN, (output,), (0.0,), float(outputs), function)
