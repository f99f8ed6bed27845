"""What every reproduced table or figure has in common: settings in, a reproduction out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellweight.common import checks
from bellweight.common.status import ArgumentError
from bellweight.display import Table
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tell = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is finished."""


def ignore(*_: object) -> None:
    """Do nothing: the default of `tell` and `keep`."""


@dataclass(frozen=True)
class Wanted:
    """What is asked for, None or False where nothing is said: the command line's options.

    `folder` is where the files go, and where an earlier run may have left finished rows.
    """

    episodes: int | None = None
    samples: int | None = None
    states: tuple[int, ...] | None = None
    exact: bool = False
    quick: bool = False
    folder: Path | None = None
    seed: int = 0
    jobs: int | None = None

    def only(self, name: str, *taken: str) -> None:
        """Refuse the options that an artefact does not take; the error begins with the option."""
        for option in ("episodes", "samples", "states", "exact", "quick"):
            if getattr(self, option) not in (None, False) and option not in taken:
                raise ArgumentError(f"{option} does not go with {name}")


@dataclass(frozen=True)
class Settings:
    """How to reproduce: `episodes` per policy (None: exact values only), seed, workers, folder."""

    episodes: int | None = None
    seed: int = 0
    jobs: int | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.episodes is not None:
            checks.count(self.episodes, "episodes", least=2)
        checks.count(self.seed, "seed", least=0)


@dataclass(frozen=True)
class Reproduction(ABC):
    """A reproduced table or figure, finished or not.

    `settings` say how it was computed, `seconds` how long that took. The files have its `name`.
    """

    settings: Settings = field(kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    name: str = field(default="", kw_only=True)

    @property
    def complete(self) -> bool:
        """Whether every part is there."""
        return True

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return what this one has to say as JSON; `folder.document` adds what all of them have."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """Return the tables that people see."""

    @abstractmethod
    def rows(self) -> Table:
        """Return all numbers as one long table, for CSV, without any measured time."""

    @abstractmethod
    def compared(self) -> tuple[Compared, ...]:
        """Return every number and statement of the paper with its verdict."""

    def times(self) -> tuple[Time, ...]:
        """Return what was measured with a clock."""
        return ()

    @property
    def caption(self) -> str:
        """What the picture shows, if there is one, also for those who cannot see it."""
        return ""

    def figure(self) -> Figure | None:
        """Return the picture, if there is one."""
        return None


@dataclass(frozen=True)
class Artefact:
    """How one table or figure is computed.

    `steps(settings, tell)` yields what is finished so far, after each part, and the whole at the
    end. `full` and `quick` are its settings, `takes` the fields of `Wanted` that change them.
    If it `resumes`, a second run goes on with what the first one left in its folder.
    """

    name: str
    steps: Callable[[Any, Tell], Iterator[Reproduction]]
    full: Settings = Settings()
    quick: Settings = Settings()
    takes: tuple[str, ...] = ("exact", "quick")
    resumes: bool = False

    def settings(self, wanted: Wanted) -> Settings:
        """Return the settings that are asked for; an error begins with the option it is about."""
        wanted.only(self.name, *self.takes)
        if wanted.exact and wanted.episodes is not None:
            raise ArgumentError("exact does not go with episodes: give one of the two, not both")
        usual = self.quick if wanted.quick else self.full
        asked = {name: getattr(wanted, name) for name in ("episodes", "samples", "states")}
        given = {name: value for name, value in asked.items() if value is not None}
        if "states" in given and isinstance(getattr(usual, "states", ()), int):
            if len(given["states"]) != 1:
                raise ArgumentError(f"states takes one number with {self.name}")
            given["states"] = given["states"][0]
        if wanted.exact:
            given["episodes"] = None
        place = replace(usual, seed=wanted.seed, jobs=wanted.jobs, folder=wanted.folder)
        return replace(place, **given)

    def reproduce(
        self,
        settings: Settings,
        tell: Tell = ignore,
        keep: Callable[[Reproduction], object] = ignore,
    ) -> Reproduction:
        """Compute it; `keep` is called with what is finished, after each part and at the end."""
        began = time.perf_counter()
        parts: list[Reproduction] = []
        for part in self.steps(settings, tell):
            # An earlier run that this one goes on with has seconds of its own.
            seconds = part.seconds + time.perf_counter() - began
            parts.append(replace(part, name=self.name, seconds=seconds))
            keep(parts[-1])
        return parts[-1]
