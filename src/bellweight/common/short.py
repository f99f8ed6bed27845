"""Short texts for objects: what a person types to make them, without dumps of arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import sparse

_LONGEST = 120
_FEW = 6  # entries of a list or array that are shown


class Short:
    """A class whose `repr` is its name and the settings that differ from the defaults."""

    def __repr__(self) -> str:
        return call_text(self)


def call_text(thing: Any) -> str:
    """Return the call that makes a dataclass: `DIA(temperature=0.5)`; defaults are left out."""
    given = []
    for field in dataclasses.fields(thing):
        if not field.repr or not field.init:
            continue
        value = getattr(thing, field.name)
        if not _is_default(field, value):
            given.append(f"{field.name}={value_text(value)}")
    return cut(f"{type(thing).__name__}({', '.join(given)})")


def vector_text(vector: Any) -> str:
    """Return a vector to six digits: 16 of them tell nobody more."""
    return f"[{', '.join(f'{value:.6g}' for value in np.asarray(vector).tolist())}]"


def value_text(value: Any) -> str:
    """Return a value in a few words; of arrays only the shape where they are long."""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if sparse.issparse(value) or (isinstance(value, np.ndarray) and value.size > _FEW):
        return f"array {'x'.join(map(str, value.shape))}"
    if isinstance(value, np.ndarray):
        return str([value_text(item) for item in value.ravel().tolist()]).replace("'", "")
    if isinstance(value, tuple | list) and len(value) > _FEW:
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, tuple | list):
        inner = ", ".join(map(value_text, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return f"{{{', '.join(map(str, value))}}}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return cut(repr(value))


def cut(text: str) -> str:
    """Return a text on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 4]} ..."


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        usual = field.default
    elif field.default_factory is not dataclasses.MISSING:
        usual = field.default_factory()
    else:
        return False
    if value is usual:
        return True
    same = type(value) is type(usual) and not isinstance(value, np.ndarray)
    return same and repr(value) == repr(usual)
