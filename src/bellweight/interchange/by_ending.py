"""Model files by their endings: which function reads and writes each."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from bellweight.common import files
from bellweight.common.status import ArgumentError, ModelError
from bellweight.interchange.csv_files import read_csv, write_csv
from bellweight.interchange.drn import read_drn, write_drn
from bellweight.interchange.prism import read_prism, write_prism
from bellweight.models import TabularModel


def _save(model: Any, path: Any) -> None:
    if not isinstance(model, files.Saved):
        raise ModelError(
            f"model is {type(model).__name__}, made of functions that a file cannot hold: keep the "
            "Python code that makes it, or list its states by model.to_tabular()"
        )
    model.save(path)


READERS: dict[str, Callable[..., TabularModel]] = {
    ".csv": read_csv,
    ".tra": read_prism,
    ".drn": read_drn,
}
"""What reads files of other packages."""

WRITERS: dict[str, Callable[[Any, Any], Any]] = {
    ".csv": write_csv,
    ".tra": write_prism,
    ".drn": write_drn,
    ".npz": _save,
}
"""What writes a model."""


def ending_of(path: str | os.PathLike[str]) -> str:
    """Return the ending that says what a file is; M.CSV is a file .csv."""
    return files.path_of(path).suffix.lower()


def read_model(path: str | os.PathLike[str], **options: Any) -> TabularModel:
    """Return the model of a file `.csv`, `.tra` or `.drn`; `options` are those of its reader.

    All of them need `discount`.
    """
    ending = ending_of(path)
    if ending not in READERS:
        unpack = ": unpack it with gunzip" if ending == ".gz" else ""
        raise ArgumentError(f"{path} ends in {ending!r}, expected {', '.join(READERS)}{unpack}")
    known = [name for name in inspect.signature(READERS[ending]).parameters if name != "path"]
    for name in options:
        if name not in known:
            raise ArgumentError(f"{name} is no option of {ending}, expected {', '.join(known)}")
    if "discount" not in options:
        raise ArgumentError(f"{path} holds no discount: give discount, such as discount=0.95")
    return READERS[ending](path, **options)


def write_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file `.csv`, `.tra`, `.drn` or Bellweight's own `.npz`."""
    ending = ending_of(path)
    if ending not in WRITERS:
        raise ArgumentError(f"{path} ends in {ending!r}, expected {', '.join(WRITERS)}")
    WRITERS[ending](model, path)
