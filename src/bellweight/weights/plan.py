"""Plans: recipes made of several solves, which `solve` runs like a method.

A method chooses weights for one program. A plan may solve many programs, on other rows or with
other bases, and returns a result class of its own; every such result has a `policy`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bellweight.backends import RunSettings, Setup, backend_of
from bellweight.basis import Basis
from bellweight.common import checks
from bellweight.common.short import Short, value_text
from bellweight.common.status import ArgumentError
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Stop

Found_co = TypeVar("Found_co", covariant=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class SolveSettings:
    """What the caller of `solve` asked for, besides the method or plan: its arguments, checked.

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

    def __post_init__(self) -> None:
        backend_of(self.model)
        if not isinstance(self.basis, Basis):
            told = value_text(self.basis)
            raise ArgumentError(f"basis is {told}, expected a basis such as Polynomial(3)")
        if self.simulation is not None and not isinstance(self.simulation, Simulation):
            told = value_text(self.simulation)
            raise ArgumentError(
                f"simulation is {told}, expected Simulation(episodes=..., horizon=...)"
            )
        if self.stop is not None and not isinstance(self.stop, Stop):
            raise ArgumentError(
                f"stop is {self.stop!r}, expected Stop(tol=..., max_iterations=...)"
            )
        checks.at_least_zero(self.regularisation, "regularisation")
        if self.jobs is not None:
            checks.count(self.jobs, "jobs")
        object.__setattr__(self, "seed", checks.count(self.seed, "seed", least=0))
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise ArgumentError(
                f"progress is {self.progress!r}, expected True, False or a function"
            )
        if not isinstance(self.judge, bool):
            raise ArgumentError(f"judge is {self.judge!r}, expected True or False")

    @property
    def watch(self) -> Callable[[HistoryEntry], None] | None:
        """What is told of each iteration: with `progress=True` a line for each is printed."""
        return _print_iteration if self.progress is True else self.progress or None

    def say(self, text: str) -> None:
        """Print a line of a plan where progress was asked for."""
        if self.progress is True:
            print(text, flush=True)

    def is_over(self, began: float) -> bool:
        """Return whether the seconds of `stop` have passed since a plan began (`perf_counter`)."""
        limit = None if self.stop is None else self.stop.max_seconds
        return limit is not None and time.perf_counter() - began >= limit

    @property
    def horizon(self) -> int | None:
        """Steps of a simulated episode, None where the default is to be taken."""
        return None if self.simulation is None else self.simulation.horizon

    def setup(self) -> Setup:
        """Return rows and one warm program, which several runs can share."""
        settings = RunSettings(
            self.simulation or Simulation(), self.seed, self.jobs, self.regularisation
        )
        return backend_of(self.model).setup(self.basis, self.rows, settings)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Short, ABC, Generic[Found_co]):
    """A recipe of several solves: immutable settings, no data."""

    @abstractmethod
    def run(self, settings: SolveSettings) -> Found_co:
        """Carry out the plan."""

    def target(self, setup: Setup) -> Policy | None:
        """Return the policy that the plan's method aims at, to judge what was found against it."""
        return None


def _print_iteration(record: HistoryEntry) -> None:
    gap = "" if record.sup_norm is None else f"  mismatch {record.sup_norm:.3g}"
    print(
        f"iteration {record.iteration:3d}  objective {record.objective:.8g}{gap}  "
        f"{record.seconds:.2f} s",
        flush=True,
    )
