"""Packages that are not always installed, and data frames made with them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bellweight.common import checks
from bellweight.common.status import BellweightError

EXTRAS = {
    "gymnasium": "gymnasium",
    "pandas": "pandas",
    "polars": "polars",
    "quantecon": "quantecon",
}
"""The extra of Bellweight that installs each optional package."""


class MissingPackageError(BellweightError, ImportError):
    """An optional package is needed and not installed."""


def package(name: str) -> Any:
    """Return an optional package, or say how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name != name:
            raise
        raise MissingPackageError(
            f"this needs the package {name}, which is not installed: "
            f"pip install 'bellweight[{EXTRAS[name]}]'"
        ) from None


def is_installed(name: str) -> bool:
    """Return whether a package can be imported."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def data_frame(columns: Any, kind: str | None = None) -> Any:
    """Return columns as a frame of pandas or Polars, or as a plain dictionary (`"columns"`).

    Columns are a mapping, or an iterable of names and columns, which are the frame's from then on.
    None stands for pandas where it is installed, and for the plain dictionary where it is not.
    """
    if kind is None:
        kind = "pandas" if is_installed("pandas") else "columns"
    checks.one_of(kind, "kind", ("pandas", "polars", "columns"))
    items = columns.items() if isinstance(columns, Mapping) else columns
    if kind == "columns":
        return dict(items)
    if kind == "pandas":
        return package(kind).DataFrame(dict(items), copy=False)
    polars = package(kind)
    # Polars copies: each column is let go before the next is made.
    return polars.DataFrame([polars.Series(name, column) for name, column in items])
