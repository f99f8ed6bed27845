"""What every reproduced table or figure has in common: settings in, a reproduction out, files."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bellweight import checks, files
from bellweight.display import Table, to_csv, to_text
from bellweight.status import ArgumentError, FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tell = Callable[[str, float], None]
"""Called with what is being done and the share of the work that is finished."""

_PICTURES = ("png", "pdf")


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

    @property
    def has_figure(self) -> bool:
        """Whether there is a picture."""
        return False

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


def write(reproduction: Reproduction, folder: Path) -> tuple[Path, ...]:
    """Write NAME.json, .csv and .txt into a folder, and pictures, each whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise FileError(f"cannot make the folder {folder}: {problem.strerror}") from None
    stem = folder / reproduction.name
    text = "\n".join(to_text(table) for table in reproduction.tables())
    return (
        files.write_json(stem.with_suffix(".json"), reproduction.document()),
        _write(stem.with_suffix(".csv"), to_csv(reproduction.rows()).encode()),
        _write(stem.with_suffix(".txt"), text.encode()),
        *_pictures(reproduction.figure(), stem),
    )


def written(name: str, folder: Path | None) -> dict[str, Any] | None:
    """Return the document that `write` left in a folder, or None."""
    if folder is None or not (path := folder / f"{name}.json").exists():
        return None
    try:
        document = json.loads(path.read_text())
    except OSError as problem:
        raise FileError(f"cannot read {path}: {problem.strerror}") from None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise FileError(f"{path} is damaged: delete it, or name another folder")
    return document


@cache
def code_version() -> str:
    """Return a fingerprint of all source: rows of different code must not be mixed."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        digest.update(str(path.relative_to(home)).encode() + path.read_bytes())
    return digest.hexdigest()


def _pictures(figure: Figure | None, stem: Path) -> tuple[Path, ...]:
    if figure is None:
        return ()
    paths = []
    for kind in _PICTURES:
        stream = io.BytesIO()
        # No date inside: the same numbers give the same file.
        dated = {"CreationDate": None} if kind == "pdf" else {}
        figure.savefig(stream, format=kind, metadata=dated)
        paths.append(_write(stem.with_suffix(f".{kind}"), stream.getvalue()))
    return tuple(paths)


def _write(path: Path, content: bytes) -> Path:
    def write_content(stream: Any) -> None:
        stream.write(content)

    return files.write_whole(path, write_content)
