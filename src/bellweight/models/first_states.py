"""Where episodes of a step model begin: a state, laws of its coordinates, a sampler, or a function.

A state with a fraction is refused where `integer=` declares its coordinate whole: nothing is
rounded in silence.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import BoolArray, FloatArray
from bellweight.common.status import ModelError
from bellweight.models.laws import Law
from bellweight.models.noise import AnyLaw, Sampler, law_list


def draws_itself(initial: Any) -> bool:
    """Return whether the initial state comes from a sampler, which takes a generator `rng`."""
    if not callable(initial):
        return False
    names = list(inspect.signature(initial).parameters)
    return len(names) > 0 and names[0] == "rng"


def coordinate_laws(given: Any, dimension: int) -> tuple[AnyLaw, ...]:
    """Return the laws of the first state's coordinates, zero where none is given."""
    laws = law_list(np.zeros(dimension) if given is None else given, "initial")
    if len(laws) != dimension:
        raise ModelError(
            f"initial has {len(laws)} coordinates, expected {dimension}: give a state, or one law "
            "for each coordinate"
        )
    return laws


def first_laws(initial: Any, whole: BoolArray) -> tuple[AnyLaw, ...]:
    """Return the laws of the first state's coordinates; meaningless where it is a function."""
    laws = coordinate_laws(None if callable(initial) else initial, len(whole))
    for i in np.flatnonzero(whole):
        law = laws[i]
        if not isinstance(law, Law) or (law.values != np.floor(law.values)).any():
            found = f"{law.values[0]:g}" if isinstance(law, Law) and len(law.values) == 1 else law
            raise ModelError(
                f"initial[{i}] is {found}, but integer= declares coordinate {i} whole: give whole "
                "numbers, or a Law of them"
            )
    return laws


@dataclass(frozen=True, eq=False)
class FirstStates:
    """First states from the user's sampler, each of the right length and whole where it must be."""

    sampler: Sampler
    whole: BoolArray

    def drawn(self, first: int, last: int, key: np.uint64) -> FloatArray:
        """Return the first states (n, d) of episodes first, ..., last - 1."""
        states = self.sampler.starts(first, last, key)
        if states.shape[1] != len(self.whole):
            raise ModelError(
                f"the initial sampler returned {states.shape[1]} numbers, expected "
                f"{len(self.whole)}: one for each coordinate of a state"
            )
        broken = checks.first_index(self.whole & (states != np.floor(states)))
        if broken is not None:
            raise ModelError(
                f"the initial sampler returned {states[broken[0]].tolist()}, but integer= declares "
                f"coordinate {broken[1]} whole: round it in the sampler"
            )
        return states
