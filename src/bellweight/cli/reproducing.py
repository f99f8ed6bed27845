"""`bellweight reproduce`: what to compute, what to keep, and what to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellweight.cli import exits, parse
from bellweight.cli.app import Jobs, JsonFile, Seed, command
from bellweight.cli.output import (
    Interrupted,
    check_folder,
    check_writable,
    console,
    say,
    write_document,
)
from bellweight.cli.progress import Progress
from bellweight.common.status import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

    from bellweight.display import Table
    from bellweight.reproduce import Artefact, Reproduction, Settings


@command(
    "bellweight reproduce table1",
    "bellweight reproduce all --quick --out reproduction",
    short="Compute the paper's tables and figures again",
)
def reproduce(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Of the paper: all, table1 to table5, figure-queue, figure-occupancy, "
            "figure-network or figure-convergence.",
        ),
    ],
    episodes: Annotated[
        int | None, typer.Option(min=2, help="Per policy (table2: and sample), or per estimate.")
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="table1, table5: exact values only, no simulation.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version of it; all in a few minutes.")
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="table2: samples of constraint states; 5 by default."),
    ] = None,
    states: Annotated[
        str | None,
        typer.Option(help="How many constraint states, as in 5000,20000."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write NAME.json, .csv, .txt and .tex there, pictures and index.html; all "
            "and table2 go on from there. all: reproduction, or reproduction-quick, by default.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: JsonFile = None,
) -> int:
    """Compute a table or figure of the paper again, or all, beside the paper's own numbers."""
    check_writable(json)
    check_folder(out)
    words: dict[str, Any] = {
        "episodes": episodes,
        "samples": samples,
        "states": parse.whole_numbers(states, "--states"),
        "exact": exact,
        "quick": quick,
        "seed": seed,
        "jobs": jobs,
    }
    compute = _everything if name == "all" else _one
    with Progress(name, context.obj) as progress:
        outcome = compute(name, out, words, progress)
    outcome.show(console(json))
    write_document(json, outcome.document)
    return exits.DONE


@dataclass(frozen=True)
class Outcome:
    """What to print, and the same as JSON."""

    tables: tuple[Table, ...]
    lines: tuple[str, ...]
    document: dict[str, Any]

    def show(self, screen: Console) -> None:
        """Print the tables, and where the files are."""
        from bellweight.display.screen import print_table

        for table in self.tables:
            print_table(screen, table)
            say(screen, "")
        for line in self.lines:
            say(screen, line)


def _one(name: str, out: Path | None, words: Mapping[str, Any], progress: Progress) -> Outcome:
    """Compute one table or figure."""
    from bellweight.reproduce import folder, index, times

    artefact, settings = _prepared(name, **words, folder=out)
    if out is not None:
        folder.make(out)
        # Its own file is written again; the page needs the others, so they must be readable.
        index.documents(out, ignoring=name)
    found, written = _computed(artefact, settings, out, progress)
    lines = []
    if out is not None:
        names = [path.name for path in (*written, index.write_index(out))]
        lines.append(f"written to {out}: {', '.join(names)}")
    elif found.caption:
        lines.append("give --out DIR for the picture, as PNG and PDF")
    timed = [times.table({name: found.times()})] if found.times() else []
    return Outcome((*found.tables(), *timed), tuple(lines), folder.document(found))


def _everything(
    name: str, out: Path | None, words: Mapping[str, Any], progress: Progress
) -> Outcome:
    """Compute all tables and figures that the folder lacks; Ctrl-C says what is there."""
    from bellweight.reproduce import Wanted, folder, index
    from bellweight.reproduce import everything as reproductions

    place = out or reproductions.default_folder(bool(words["quick"]))
    wanted = Wanted(**words, folder=place)
    try:
        wanted.only(name, "quick")
    except ArgumentError as problem:
        raise parse.usage(f"--{problem}") from None
    folder.make(place)
    steps = reproductions.plan(wanted)
    try:
        reproductions.run(steps, place, progress.tell)
    except KeyboardInterrupt:
        there = ", ".join(index.documents(place)) or "nothing yet"
        raise Interrupted(f"{place} holds {there}; the same command goes on from there") from None
    found = index.documents(place)
    kept = [step.name for step in steps if step.finished]
    lines = [f"finished before, not computed again: {', '.join(kept)}"] if kept else []
    lines.append(f"written to {place}: open {place / 'index.html'}")
    counts = {entry: index.counts(document) for entry, document in found.items()}
    return Outcome(
        (index.summary_table(found),), tuple(lines), {"folder": str(place), "verdicts": counts}
    )


def _prepared(name: str, **words: Any) -> tuple[Artefact, Settings]:
    """Return what to reproduce and how; what it does not take is wrong usage."""
    from bellweight import reproduce as reproductions

    artefact = reproductions.find(name)
    try:
        return artefact, artefact.settings(reproductions.Wanted(**words))
    except ArgumentError as problem:  # it begins with the name of the option
        raise parse.usage(f"--{problem}") from None


def _computed(
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
        more = "; the same command goes on from there" if artefact.resumes else ""
        raise Interrupted(f"what was finished is in {out}{more}") from None
    return found, written
