"""Names of a package that are loaded when they are first used.

Importing everything takes seconds, and a program that asks for one name need not wait for the
others. A package says where its names live; type checkers read the same from a block of imports
under `TYPE_CHECKING`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

_waiting: set[str] = set()


def names(package: str, homes: Mapping[str, str], public: Iterable[str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package.

    `homes` says in which modules its names live: module -> the names, with spaces between them.
    Public names without a home are modules of the package themselves.
    """
    home_of = {name: module for module, told in homes.items() for name in told.split()}
    inner = {name: f"{package}.{name}" for name in public if name not in home_of}
    _waiting.update(homes, inner.values())

    def found(name: str) -> Any:
        if name in inner:
            return import_module(inner[name])
        if name not in home_of:
            # With name and module Python adds what was meant, if a name is near.
            module = sys.modules[package]
            text = f"module {package!r} has no attribute {name!r}{_elsewhere(inner, name)}"
            raise AttributeError(text, name=name, obj=module)
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    module = sys.modules[package]
    module.__class__ = _Package
    module.__dict__["_functions"] = {
        name for name, home in home_of.items() if home == f"{package}.{name}"
    }
    return found


def _elsewhere(inner: Mapping[str, str], name: str) -> str:
    """Say in which public module of a package a name lives that the package itself has not."""
    if name.startswith("_"):  # looked for by tools
        return ""
    for place in inner.values():
        if name in getattr(import_module(place), "__all__", ()):
            return f": write {place}.{name}"
    return ""


class _Package(ModuleType):
    """A package in which some modules have the name of the function they hold.

    Importing such a module would put it in the function's place; here the function stays.
    """

    _functions: frozenset[str] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._functions and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


def load_all() -> None:
    """Import every public name that has not been loaded yet, and what it imports."""
    while _waiting:
        import_module(_waiting.pop())
