"""Tables with one entry for each kind of model, and how to look up a model in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from bellweight.common.status import ModelError

Entry = TypeVar("Entry")


def entry_for(model: Any, table: Mapping[type, Entry]) -> Entry:
    """Return the entry of the model's class, or of the class that it is derived from."""
    for kind, entry in table.items():
        if isinstance(model, kind):
            return entry
    names = [kind.__name__ for kind in table]
    raise ModelError(
        f"model is {type(model).__name__}, expected a {', '.join(names[:-1])} or {names[-1]}: "
        "build one with TabularModel.from_arrays, EventModel or LinearBuilder"
    )
