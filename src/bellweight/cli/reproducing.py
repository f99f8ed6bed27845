"""The parts of `bellweight reproduce`: what to compute, what to keep, and what to show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bellweight.cli import parse
from bellweight.cli.output import Interrupted, say
from bellweight.cli.progress import Progress
from bellweight.status import ArgumentError

if TYPE_CHECKING:
    from bellweight.reproduce import Artefact, Reproduction, Settings


def prepare(name: str, **words: Any) -> tuple[Artefact, Settings]:
    """Return what to reproduce and how; what it does not take is wrong usage."""
    from bellweight import reproduce as reproductions

    try:
        artefact = reproductions.find(name)
        return artefact, artefact.settings(reproductions.Wanted(**words))
    except ArgumentError as problem:
        raise parse.usage(str(problem)) from None


def run(
    artefact: Artefact, settings: Settings, out: Path | None, progress: Progress
) -> tuple[Reproduction, tuple[Path, ...]]:
    """Compute it, writing what is finished into the folder; Ctrl-C says what is there."""
    from bellweight import reproduce as reproductions

    written: tuple[Path, ...] = ()

    def keep(so_far: Reproduction) -> None:
        nonlocal written
        if out is not None:
            written = reproductions.write(so_far, out)

    try:
        found = artefact.reproduce(settings, progress.tell, keep)
    except KeyboardInterrupt:
        if not written:
            raise Interrupted from None
        more = "; the same command goes on from there" if artefact.RESUMES else ""
        raise Interrupted(f"what was finished is in {out}{more}") from None
    keep(found)
    return found, written


def show(screen: Console, found: Reproduction, out: Path | None, written: tuple[Path, ...]) -> None:
    """Print the tables, and where the files are."""
    from bellweight.display.screen import print_table

    for table in found.tables():
        print_table(screen, table)
        say(screen, "")
    if out is not None:
        say(screen, f"written to {out}: {', '.join(path.name for path in written)}")
    elif found.has_figure:
        say(screen, "give --out DIR for the picture, as PNG and PDF")
