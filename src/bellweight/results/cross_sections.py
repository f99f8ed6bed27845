"""Cross-sections of the states: a line or a plane to draw, the other variables held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.backends import Visited
from bellweight.common.checks import FloatArray, IntArray
from bellweight.display.charts import HeatMap
from bellweight.display.table import capital, short_text

_MOST_POINTS = 2_000
_MOST_CELLS = 60  # along one side of a map
_REAL_POINTS = 400  # along a line of real numbers
_OUTSIDE = 1e-3  # share of the mass that may lie outside of what is shown at first
_LEAST_SHOWN = 10
_PLANES = 2
_FAIR = 0.05  # share of the visits


@dataclass(frozen=True, eq=False)
class CrossSection:
    """Positions x (nx,), for a plane also y (ny,), and the states (nx, or ny * nx) there.

    `places` are the states' numbers in a tabular model, -1 where there is no state. `held` says
    what the other variables are.
    """

    seen: Visited
    x: FloatArray
    x_label: str
    x_range: tuple[float, float]
    states: FloatArray
    places: IntArray | None
    y: FloatArray | None = None
    y_label: str = ""
    held: str = ""

    @property
    def is_line(self) -> bool:
        """Whether there is one variable only."""
        return self.y is None

    def values(self) -> FloatArray:
        """Return the approximate values."""
        if self.places is not None:
            return self.looked_up(self.seen.value)
        return self._shaped(self.seen.values_at(self.states))

    def looked_up(self, numbers: FloatArray) -> FloatArray:
        """Return numbers (S,) of all states of a tabular model at these states."""
        assert self.places is not None
        return self._shaped(np.where(self.places >= 0, numbers[self.places], np.nan))

    def actions(self) -> FloatArray:
        """Return the indices of the actions taken."""
        if self.places is None:
            return self._shaped(self.seen.actions_at(self.states).astype(np.float64))
        there = self.places >= 0
        taken = np.full(len(self.places), np.nan)
        taken[there] = self.seen.actions_at(self.places[there])
        return self._shaped(taken)

    def heat_map(
        self,
        key: str,
        title: str,
        unit: str,
        numbers: FloatArray,
        names: tuple[str, ...] | None = None,
    ) -> HeatMap:
        """Return these numbers (ny, nx) as colours over the plane; the caption ends with `held`."""
        assert self.y is not None
        if names is None:
            low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
            ends = f"from {short_text(low)} to {short_text(high)}"
            alt = f"{capital(unit)} {ends} over {self.x_label} and {self.y_label}."
        else:
            numbers, names, alt = self._used(numbers, names)
        return HeatMap(
            f"{key}-{self.x_label}-{self.y_label}", title, self.x_label, self.y_label,
            self.x, self.y, numbers, unit, alt + self.held, names,
        )  # fmt: skip

    def _used(
        self, numbers: FloatArray, names: tuple[str, ...]
    ) -> tuple[FloatArray, tuple[str, ...], str]:
        """Number the actions that occur, and tell how often they do."""
        known = np.isfinite(numbers)
        used, place, counts = np.unique(
            numbers[known].astype(np.int64), return_inverse=True, return_counts=True
        )
        renumbered = np.full(numbers.shape, np.nan)
        renumbered[known] = place
        shares = 100.0 * counts / counts.sum()
        order = [k for k in np.argsort(-counts, kind="stable")[:8] if shares[k] >= 1.0]
        told = [f"{names[used[k]]} in {shares[k]:.0f} %" for k in order]
        more = len(used) - len(told)
        rest = f", {more} other{'s' * (more > 1)} in the rest" if more else ""
        alt = f"Over {self.x_label} and {self.y_label}: {', '.join(told)} of the cells{rest}."
        return renumbered, tuple(names[k] for k in used), alt

    def _shaped(self, numbers: FloatArray) -> FloatArray:
        return numbers if self.y is None else numbers.reshape(len(self.y), len(self.x))


def cross_sections(seen: Visited) -> tuple[CrossSection, ...]:
    """Return a line for one variable, otherwise planes of the variables that vary most."""
    if seen.backend.acts_by_vectors:
        return ()
    if seen.dimension == 1:
        return (_line(seen),)
    axes = spread(seen)
    pairs = [axes[k : k + 2] for k in range(0, len(axes) - 1, 2)][:_PLANES]
    return tuple(_plane(seen, int(min(pair)), int(max(pair))) for pair in pairs)


def spread(seen: Visited) -> IntArray:
    """Return the variables in falling order of their spread over the visits."""
    mean = seen.share @ seen.states
    return np.argsort(-(seen.share @ (seen.states - mean) ** 2), kind="stable")


def marginal(seen: Visited, axis: int, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the positions along a variable and the mass of each."""
    positions, group = np.unique(seen.states[:, axis], return_inverse=True)
    return positions, np.asarray(np.bincount(group, weights=mass), dtype=np.float64)


def mass_range(positions: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Return the part of an axis with nearly all mass, at least a few positions of it."""
    first, last = _ends(mass)
    last = min(max(last, first + _LEAST_SHOWN), len(positions) - 1)
    return float(positions[max(0, min(first, last - _LEAST_SHOWN))]), float(positions[last])


def shown_range(positions: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Return the part of an axis with nearly all mass, with room around it."""
    first, last = _ends(mass)
    room = max(_LEAST_SHOWN, (last - first) // 2)
    first, last = max(0, first - room), min(len(positions) - 1, last + room)
    return float(positions[first]), float(positions[last])


def _ends(mass: FloatArray) -> tuple[int, int]:
    """Return the first and the last place between which nearly all mass lies."""
    total = np.cumsum(mass) / mass.sum()
    first, last = np.searchsorted(total, [_OUTSIDE / 2.0, 1.0 - _OUTSIDE / 2.0])
    return int(first), min(int(last), len(mass) - 1)


def thin(positions: FloatArray, low: float, high: float) -> IntArray:
    """Return places of at most about 2,000 positions, most of them in the range shown."""
    inside = np.flatnonzero((positions >= low) & (positions <= high))
    # One more on both sides: a line then leaves the picture at its own slope.
    inside = np.arange(max(inside[0] - 1, 0), min(inside[-1] + 2, len(positions)))
    kept = [_strided(np.arange(len(positions)), _MOST_POINTS // 4), _strided(inside, _MOST_POINTS)]
    return np.unique(np.concatenate(kept))


def _line(seen: Visited) -> CrossSection:
    if not seen.is_sample:
        order = np.argsort(seen.states[:, 0], kind="stable")
        positions = seen.states[order, 0]
        low, high = mass_range(positions, seen.share[order])
        kept = order[thin(positions, low, high)]
        states, places = seen.states[kept], kept
    else:
        states, places = _range(seen, 0, _MOST_POINTS)[:, None], None
        low, high = float(states[0, 0]), float(states[-1, 0])
    return CrossSection(seen, states[:, 0], seen.variables[0], (low, high), states, places)


def _plane(seen: Visited, across: int, up: int) -> CrossSection:
    others = np.delete(np.arange(seen.dimension), [across, up])
    base = _base(seen, others)
    if not seen.is_sample:
        there = np.flatnonzero((seen.states[:, others] == base[others]).all(axis=1))
        x, y = (_axis(seen, there, axis) for axis in (across, up))
    else:
        there = None
        x, y = _range(seen, across), _range(seen, up)
    states = np.tile(base, (len(x) * len(y), 1))
    states[:, across], states[:, up] = np.tile(x, len(y)), np.repeat(y, len(x))
    places = None if there is None else _places(seen.states[there], states, there)
    rest = [
        f"{name}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{base[axis]:g}"
        for axis, name in enumerate(seen.variables)
        if axis not in (across, up)
    ]
    return CrossSection(
        seen, x, seen.variables[across], (float(x[0]), float(x[-1])), states, places,
        y, seen.variables[up], f" Held fixed: {', '.join(rest)}." if rest else "",
    )  # fmt: skip


def _base(seen: Visited, others: IntArray) -> FloatArray:
    """Return the state to cut through: the median of a sample, or one with a large plane.

    Among the planes with a fair share of the visits, that with the most states is taken.
    """
    if not seen.is_sample:
        _, plane = np.unique(seen.states[:, others], axis=0, return_inverse=True)
        mass = np.bincount(plane.ravel(), weights=seen.share)
        size = np.where(mass >= min(_FAIR, float(mass.max())), np.bincount(plane.ravel()), 0)
        inside = plane.ravel() == int(np.argmax(size))
        return seen.states[int(np.argmax(np.where(inside, seen.share, -1.0)))]
    order = np.argsort(seen.states, axis=0, kind="stable")
    totals = np.cumsum(seen.share[order], axis=0)
    middle = (totals < 0.5).sum(axis=0)
    return np.take_along_axis(seen.states, np.take_along_axis(order, middle[None], 0), 0)[0]


def _axis(seen: Visited, there: IntArray, axis: int) -> FloatArray:
    positions, mass = marginal(seen, axis, seen.share)
    low, high = shown_range(positions, mass)
    inside = np.unique(seen.states[there, axis])
    return _strided(inside[(inside >= low) & (inside <= high)], _MOST_CELLS)


def _range(seen: Visited, axis: int, most: int = _MOST_CELLS) -> FloatArray:
    """Return positions over nearly all of what a sample visited, whole ones where they are."""
    positions, mass = marginal(seen, axis, seen.share)
    low, high = shown_range(positions, mass)
    least, largest, whole = seen.backend.side(axis)
    if whole:
        high = min(max(high, low + _LEAST_SHOWN), largest)
        return _strided(np.arange(low, high + 1.0), most)
    if low == high:  # one value only: show what is around it
        low, high = max(low - 1.0, least), min(high + 1.0, largest)
    return np.linspace(low, high, min(most, _REAL_POINTS))


def _places(known: FloatArray, wanted: FloatArray, numbers: IntArray) -> IntArray:
    """Return the numbers of wanted states among known ones, -1 where there is none."""
    _, group = np.unique(np.concatenate([known, wanted]), axis=0, return_inverse=True)
    number = np.full(int(group.max()) + 1, -1, dtype=np.int64)
    number[group.ravel()[: len(known)]] = numbers
    return number[group.ravel()[len(known) :]]


def _strided(items: Any, most: int) -> Any:
    return items[:: -(-len(items) // most) or 1]
