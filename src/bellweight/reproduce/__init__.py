"""The tables and figures of the paper, computed again: one module for each.

A module listed here offers `settings(wanted) -> Settings` and `reproduce(settings, tell, keep) ->
Reproduction` (see `artefact.py`); the command line does the rest.
"""

from __future__ import annotations

from importlib import import_module

from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Wanted, write
from bellweight.status import ArgumentError

TITLES = {
    "table1": "the single queue under three initial distributions",
    "table2": "the eight-dimensional network, over several constraint samples",
    "table3": "the small clinic, by column generation",
    "table4": "the large clinic, by column generation",
    "table5": "the tiny clinic, polynomials of degree one to four",
    "figure-convergence": "successive differences of the moments on the network",
}
"""What can be reproduced: the name is also that of the module, with underscores."""

__all__ = ["TITLES", "Artefact", "Reproduction", "Settings", "Wanted", "find", "write"]


def find(name: str) -> Artefact:
    """Return the artefact of this name."""
    if name not in TITLES:
        raise ArgumentError(f"{name!r} is not reproduced here, expected one of {', '.join(TITLES)}")
    artefact: Artefact = import_module(f"bellweight.reproduce.{name.replace('-', '_')}")
    return artefact
