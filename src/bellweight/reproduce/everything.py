"""All tables and figures of the paper, one after the other, into one folder.

What an earlier run with the same settings and the same code finished there is not computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bellweight.reproduce import CONTENTS, find, folder
from bellweight.reproduce.artefact import Artefact, Settings, Tell, Wanted, ignore
from bellweight.reproduce.index import write_index

NAME = "all"


@dataclass(frozen=True)
class Step:
    """One artefact of the run; `finished` says that the folder holds it already."""

    name: str
    artefact: Artefact
    settings: Settings
    seconds: float
    finished: bool


def default_folder(quick: bool) -> Path:
    """Return where files go if nothing is said."""
    return Path("reproduction-quick" if quick else "reproduction")


def plan(wanted: Wanted) -> tuple[Step, ...]:
    """Return what is to be done; complain about a folder that other settings have used."""
    wanted.only(NAME, "quick")
    assert wanted.folder is not None
    steps = []
    for name, entry in CONTENTS.items():
        artefact = find(name)
        settings = artefact.settings(wanted)
        document = folder.written(name, wanted.folder)
        if document is not None:
            folder.check_same(name, wanted.folder, document, settings)
        seconds = entry.seconds[0 if wanted.quick else 1]
        finished = folder.is_finished(document, wanted.folder)
        steps.append(Step(name, artefact, settings, seconds, finished))
    return tuple(steps)


def run(steps: Sequence[Step], place: Path, tell: Tell = ignore) -> None:
    """Compute what is not finished, each written as soon as it is, and the page after each."""
    total = sum(step.seconds for step in steps if not step.finished)
    done = 0.0
    for number, step in enumerate(steps, 1):
        if step.finished:
            continue
        prefix = f"{number} of {len(steps)}: {step.name}"
        tell(prefix, done / total)
        step.artefact.reproduce(
            step.settings,
            _told(tell, prefix, done / total, step.seconds / total),
            lambda so_far: folder.write(so_far, place),
        )
        write_index(place)
        done += step.seconds
    write_index(place)


def _told(tell: Tell, prefix: str, before: float, part: float) -> Tell:
    """Return a `tell` for one step, whose share is that of the whole run."""

    def told(text: str, share: float) -> None:
        tell(f"{prefix}, {text}", before + part * share)

    return told
