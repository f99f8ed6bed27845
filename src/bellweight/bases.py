"""Bases, by the name that users know: everything public of the room `basis`."""

from bellweight.basis import *  # noqa: F403
from bellweight.basis import __all__  # noqa: F401
