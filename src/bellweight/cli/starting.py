"""`bellweight new`: a file to begin with."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from bellweight.common.status import FileError


class Kind(StrEnum):
    """The kinds of models."""

    tabular = "tabular"
    event = "event"
    step = "step"
    linear = "linear"


def write_starter(kind: Kind, path: Path) -> None:
    """Write the commented model of a kind; a file that is there stays."""
    if path.suffix != ".py":
        raise FileError(f"cannot write {path}: expected the name of a Python file, as in {kind}.py")
    if path.exists():
        raise FileError(f"cannot write {path}: it exists: choose another name")
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: the folder {path.parent} does not exist: make it")
    text = (files("bellweight.cli.starters") / f"{kind}.py").read_text(encoding="utf-8")
    text = text.replace("  # type: ignore[no-untyped-def]", "")
    path.write_text(text.replace("THIS_FILE", str(path)), encoding="utf-8")
