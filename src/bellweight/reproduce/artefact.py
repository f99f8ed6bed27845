"""What every reproduced table or figure has in common: settings in, a reproduction out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bellweight.common import checks
from bellweight.common.status import ArgumentError, Status
from bellweight.display import Table
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared
from bellweight.solve import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tell = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is finished."""


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for; None or False where it says nothing.

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
        """Refuse the options that an artefact does not take."""
        for option in ("episodes", "samples", "states", "exact", "quick"):
            if getattr(self, option) not in (None, False) and option not in taken:
                raise ArgumentError(f"--{option} does not go with {name}")


@dataclass(frozen=True)
class Settings:
    """How to reproduce: `episodes` per policy (None: exact values only), seed, workers."""

    episodes: int | None = None
    seed: int = 0
    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.episodes is not None:
            checks.count(self.episodes, "episodes", least=2)
        checks.count(self.seed, "seed", least=0)


def exact_settings(name: str, wanted: Wanted) -> Settings:
    """Return the settings of an artefact that is exact and quick anyway."""
    wanted.only(name, "quick", "exact")
    return Settings(None, wanted.seed, wanted.jobs)


class Reproduction(Protocol):
    """A reproduced table or figure, finished or not; `settings` say how it was computed."""

    settings: Settings

    @property
    def name(self) -> str:
        """The name of the artefact, which is also that of its files."""

    @property
    def complete(self) -> bool:
        """Whether every part is there."""

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that people see."""

    def rows(self) -> Table:
        """Return all numbers as one long table, for CSV; no measured time stands in it."""

    def compared(self) -> tuple[Compared, ...]:
        """Return every number and statement of the paper with its verdict."""

    def times(self) -> tuple[Time, ...]:
        """Return what was measured with a clock."""

    @property
    def caption(self) -> str:
        """What the picture shows, if there is one; it must do for those who cannot see it."""
        return ""

    def figure(self) -> Figure | None:
        """Return the picture, if there is one."""
        return None


class Artefact(Protocol):
    """A module that reproduces one table or figure."""

    EPISODES: int
    """How many episodes are simulated by default."""

    RESUMES: bool
    """Whether a second run goes on with the rows that the first one left in its folder."""

    def settings(self, wanted: Wanted) -> Settings:
        """Return the settings that the command line asks for."""

    def reproduce(
        self,
        settings: Settings,
        tell: Tell = ...,
        keep: Callable[[Reproduction], object] = ...,
    ) -> Reproduction:
        """Compute it; `keep` is called with what is finished so far."""


def ignore(*_: object) -> None:
    """Do nothing: the default of `tell` and `keep`."""


def finished(result: Result) -> Result:
    """Return a result of `solve`, which answers Ctrl-C with half a one: that is passed on."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result
