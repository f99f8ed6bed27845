"""What conformance checks share: what they return, and that a model survives its file."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bellweight.common.status import ModelError
from bellweight.models import LinearModel, TabularModel

SavedModel = TypeVar("SavedModel", LinearModel, TabularModel)


@dataclass(frozen=True)
class Report:
    """What was checked and found in order, with notes on what is allowed but worth knowing."""

    subject: str
    checked: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.subject}: in order", *(f"  checked  {text}" for text in self.checked)]
        return "\n".join([*lines, *(f"  note     {text}" for text in self.notes)])


def read_back(model: SavedModel) -> SavedModel:
    """Return a model as its file gives it back, or say that it is another one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        loaded = type(model).load(path)
    if loaded.digest != replace(model).digest:
        raise ModelError("the model changes when saved and loaded: check its subclass")
    return loaded
