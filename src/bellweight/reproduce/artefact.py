"""What every reproduced table has in common: settings in, a reproduction out, three files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bellweight import checks, files
from bellweight.report import Table, to_csv, to_text
from bellweight.status import FileError

Tell = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is finished."""


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


class Reproduction(Protocol):
    """A reproduced table or figure, finished or not."""

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
        """Return all numbers as one long table, for CSV."""


class Artefact(Protocol):
    """A module that reproduces one table or figure."""

    EPISODES: int
    """How many episodes the paper simulated."""

    def reproduce(
        self,
        settings: Settings,
        tell: Tell = ...,
        keep: Callable[[Reproduction], object] = ...,
    ) -> Reproduction:
        """Compute it; `keep` is called with what is finished so far."""


def ignore(*_: object) -> None:
    """Do nothing: the default of `tell` and `keep`."""


def write(reproduction: Reproduction, folder: Path) -> tuple[Path, ...]:
    """Write NAME.json, NAME.csv and NAME.txt into a folder, each whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise FileError(f"cannot make the folder {folder}: {problem.strerror}") from None
    stem = folder / reproduction.name
    text = "\n".join(to_text(table) for table in reproduction.tables())
    return (
        files.write_json(stem.with_suffix(".json"), reproduction.document()),
        _write(stem.with_suffix(".csv"), to_csv(reproduction.rows())),
        _write(stem.with_suffix(".txt"), text),
    )


def _write(path: Path, text: str) -> Path:
    content = text.encode()

    def write_content(stream: Any) -> None:
        stream.write(content)

    return files.write_whole(path, write_content)
