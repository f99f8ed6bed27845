"""Colours that mean one thing on a whole page: one for each policy, one for each action.

Lines take the colours of Okabe and Ito, which people with any colour vision can tell apart, and
three more after them. Actions have colours of their own, so that no action looks like a policy:
distinct ones where actions have no order, from dark to light where they are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

BLACK, BLUE, RED, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
BROWN, VIOLET, OLIVE = "#8C564B", "#7B5EC6", "#8A8A00"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BROWN, VIOLET, OLIVE)
NEUTRAL = "#7A848F"  # what belongs to no policy: bounds, levels to compare with

# Tol's "muted", then lighter and darker kin of the same hues.
_ACTIONS = (
    "#88CCEE", "#CC6677", "#DDCC77", "#117733", "#332288", "#AA4499", "#44AA99", "#999933",
    "#882255", "#BBCCEE", "#EE8866", "#AAAA00", "#77AADD", "#FFAABB", "#6699CC", "#997700",
    "#BBCC33", "#DDDDDD",
)  # fmt: skip
_NUMBERED = re.compile(r"^(\D*?)([+-]?\d+(?:\.\d+)?)(\D*)$")


@dataclass(frozen=True)
class Look:
    """How a series is drawn: its colour, and the places of its dash and its marker."""

    colour: str
    place: int


@dataclass
class Palette:
    """Gives every name one look, in the order in which names are first asked for."""

    _lines: dict[str, Look] = field(default_factory=dict)
    _actions: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> Look:
        """Return the look of a policy, or of another series of this name."""
        place = len(self._lines)
        return self._lines.setdefault(name, Look(COLOURS[place % len(COLOURS)], place))

    def meet_actions(self, names: Iterable[str]) -> None:
        """Choose colours for all actions of a page, before any is drawn."""
        met = list(dict.fromkeys([*self._actions, *names]))
        numbers = _order(met)
        if numbers is not None:
            met = [name for _, name in sorted(zip(numbers, met, strict=True))]
        found = _shades(len(met)) if numbers is not None else _distinct(len(met))
        self._actions = dict(zip(met, found, strict=True))

    def action(self, name: str) -> str:
        """Return the colour of an action."""
        if name not in self._actions:
            self.meet_actions([name])
        return self._actions[name]


def _order(names: Sequence[str]) -> list[float] | None:
    """Return the numbers by which actions are ordered, as in "rate 0.2"; None without an order."""
    found = [_NUMBERED.match(name) for name in names]
    if any(match is None for match in found):
        return None
    words = {(match[1], match[3]) for match in found if match is not None}
    return [float(match[2]) for match in found if match is not None] if len(words) == 1 else None


def _distinct(n: int) -> list[str]:
    return [_ACTIONS[k % len(_ACTIONS)] for k in range(n)]


def _shades(n: int) -> list[str]:
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps["viridis"](np.linspace(0.1, 0.95, n))]
