"""The folder of a reproduction: what is written there, and what an earlier run left.

The JSON document of an artefact holds everything that the page needs, so the page can be made from
the folder alone, and a run that was cut goes on without computing finished parts again.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellweight.common import files
from bellweight.common.status import ArgumentError, FileError
from bellweight.display import Table, to_csv, to_latex, to_text
from bellweight.display.markup import latex
from bellweight.report.document import plain
from bellweight.reproduce.artefact import Reproduction, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PICTURES = ("png", "pdf")
_NOT_DECISIVE = ("jobs", "folder")


def write(reproduction: Reproduction, folder: Path) -> tuple[Path, ...]:
    """Write NAME.json, .csv, .txt, .tex and pictures into a folder, each whole or not at all."""
    make(folder)
    stem = folder / reproduction.name
    tables = reproduction.tables()
    text = "\n".join(to_text(table) for table in tables)
    others = (
        files.write_text(stem.with_suffix(".csv"), to_csv(reproduction.rows())),
        files.write_text(stem.with_suffix(".txt"), text),
        files.write_text(stem.with_suffix(".tex"), _latex(reproduction, tables)),
        *_pictures(reproduction.figure(), stem),
    )
    # Last, as it says that the others are there.
    named = {**document(reproduction), "files": [path.name for path in others]}
    return files.write_json(stem.with_suffix(".json"), named), *others


def is_finished(document: Mapping[str, Any] | None, folder: Path) -> bool:
    """Whether a document is that of a finished artefact, and all its files are there."""
    if document is None or document.get("complete") is not True:
        return False
    return all((folder / str(name)).is_file() for name in document.get("files", ["missing"]))


def document(reproduction: Reproduction) -> dict[str, Any]:
    """Return everything as JSON: what the artefact has to say, and what all of them share."""
    return {
        **reproduction.document(),
        "name": reproduction.name,
        "complete": reproduction.complete,
        "seconds": reproduction.seconds,
        "settings": identity(reproduction.settings),
        "caption": reproduction.caption,
        "compared": plain(reproduction.compared()),
        "tables": [_shown(table) for table in reproduction.tables()],
        "times": plain(reproduction.times()),
    }


def identity(settings: Settings) -> dict[str, Any]:
    """Return everything that decides the numbers, as JSON."""
    named = plain(settings)
    decisive = {key: named[key] for key in named if key not in _NOT_DECISIVE}
    return {**decisive, "code": code_version()}


def written(name: str, folder: Path | None) -> dict[str, Any] | None:
    """Return the document that `write` left in a folder, or None."""
    if folder is None or not (path := folder / f"{name}.json").exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise FileError(f"cannot read {path}: {problem.strerror}") from None
    except files.DAMAGE:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("settings"), dict):
        raise FileError(f"{path} is damaged: delete it, or name another folder")
    return found


def earlier(name: str, ours: Settings) -> dict[str, Any] | None:
    """Return what an earlier run with the same settings left in their folder, or None."""
    document = written(name, ours.folder)
    if document is not None:
        check_same(name, ours.folder, document, ours)
    return document


@contextmanager
def reading(name: str, folder: Path | None) -> Iterator[None]:
    """Say which file is damaged if something in a document is missing or of another type."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise FileError(
            f"{folder}/{name}.json is damaged: delete it, or name another folder"
        ) from None


def check_same(name: str, folder: Path | None, document: Mapping[str, Any], ours: Settings) -> None:
    """Complain about a document that other settings or other code left."""
    theirs = document["settings"]
    place = f"{folder}/{name}.json"
    for key, value in identity(ours).items():
        if key != "code" and theirs.get(key) != value:
            raise ArgumentError(
                f"{place} was computed with {key} {theirs.get(key)}, here {key} is {value}: name "
                "another folder, delete the file to start afresh, or repeat the settings to go on"
            )
    if theirs.get("code") != code_version():
        raise ArgumentError(
            f"{place} was computed by another version of Bellweight: name another folder, or "
            "delete the file to start afresh"
        )


def make(folder: Path) -> None:
    """Make the folder and try to write there, so that hours of work are never lost at the end."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise FileError(f"cannot make the folder {folder}: {problem.strerror}") from None
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise FileError(f"cannot write into the folder {folder}: {problem.strerror}") from None


@cache
def code_version() -> str:
    """Return a fingerprint of all source: rows of different code must not be mixed."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        digest.update(str(path.relative_to(home)).encode() + path.read_bytes())
    return digest.hexdigest()


def _shown(table: Table) -> dict[str, Any]:
    """Return a table as people see it, for the page."""
    return {
        "title": table.title,
        "columns": [{"heading": column.heading, "right": column.right} for column in table.shown],
        "cells": table.cells(),
        "notes": list(table.notes),
    }


def _latex(reproduction: Reproduction, tables: tuple[Table, ...]) -> str:
    seed = reproduction.settings.seed
    parts = [f"% bellweight reproduce {reproduction.name}, seed {seed}; needs booktabs, graphicx\n"]
    if reproduction.caption:
        lines = (
            r"\begin{figure}",
            r"\centering",
            rf"\includegraphics[width=\linewidth]{{{reproduction.name}}}",
            rf"\caption{{{latex(reproduction.caption)}}}",
            r"\end{figure}",
        )
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, *(to_latex(table) for table in tables)])


def _pictures(figure: Figure | None, stem: Path) -> tuple[Path, ...]:
    if figure is None:
        return ()
    paths = []
    for kind in _PICTURES:
        # No date inside: the same numbers give the same file.
        dated = {"CreationDate": None} if kind == "pdf" else {}
        draw = partial(figure.savefig, format=kind, metadata=dated)
        paths.append(files.write_whole(stem.with_suffix(f".{kind}"), draw))
    return tuple(paths)
