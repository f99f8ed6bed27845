"""Plans: recipes made of several solves, which `solve` runs like a method.

A method chooses weights for one program. A plan may solve many programs, on other rows or with
other bases, and returns a result class of its own; every such result has a `policy`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bellweight.backends import Setup, setup_of
from bellweight.basis import Basis
from bellweight.common.short import Short
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Stop

Found_co = TypeVar("Found_co", covariant=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class SolveSettings:
    """What the caller of `solve` asked for, besides the plan: its arguments, as given.

    `judge` applies to what the plan returns; the solves inside it are not judged.
    """

    model: Model
    basis: Basis
    rows: Any = None
    simulation: Simulation | None = None
    stop: Stop | None = None
    regularisation: float = 0.0
    seed: int = 0
    jobs: int | None = None
    progress: bool | Callable[[HistoryEntry], None] = False
    judge: bool = True

    @property
    def horizon(self) -> int | None:
        """Steps of a simulated episode, None where the default is to be taken."""
        return None if self.simulation is None else self.simulation.horizon

    def setup(self) -> Setup:
        """Return rows and one warm program, which several runs can share."""
        return setup_of(
            self.model,
            self.basis,
            self.rows,
            self.simulation,
            self.seed,
            self.jobs,
            self.regularisation,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Short, ABC, Generic[Found_co]):
    """A recipe of several solves: immutable settings, no data."""

    @abstractmethod
    def run(self, settings: SolveSettings) -> Found_co:
        """Carry out the plan."""

    def target(self, setup: Setup) -> Policy | None:
        """Return the policy that the plan's method aims at, to judge what was found against it."""
        return None
