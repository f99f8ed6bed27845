"""The tables and figures of the paper, computed again: one module for each.

A module listed here offers `settings(wanted) -> Settings` and `reproduce(settings, tell, keep) ->
Reproduction` (see `artefact.py`); the command line does the rest.
"""

from __future__ import annotations

from importlib import import_module

from bellweight.common.status import ArgumentError
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Wanted
from bellweight.reproduce.folder import write

TITLES = {
    "table1": "the single queue under three initial distributions",
    "table2": "the eight-dimensional network, over several constraint samples",
    "table3": "the small clinic, by column generation",
    "table4": "the large clinic, by column generation",
    "table5": "the tiny clinic, polynomials of degree one to four",
    "figure-queue": "the single queue: approximate and true cost-to-go, and the actions",
    "figure-occupancy": "the single queue: where each policy spends its time",
    "figure-network": "the eight-dimensional network: queues, routes and servers",
    "figure-convergence": "successive differences of the moments on the network",
    "beyond": "policies that beat the paper's best, on many constraint samples",
}
"""What can be reproduced: the name is also that of the module, with underscores."""

PAPER = tuple(name for name in TITLES if name != "beyond")
"""What the paper has; the rest is ours."""

ABOUT = {
    "table1": "One queue: a controller picks how fast to serve, and faster service costs more. "
    "Seven ways to find a rule, judged from three starting points: few jobs, none, or a full "
    "queue. Lower costs are better.",
    "table2": "Eight queues with three shared servers. The states are too many to list, so the "
    "program sees a random sample of them, and the sample matters: every method runs on several. "
    "Simple rules of thumb stand below the methods.",
    "table3": "A clinic books patients of three urgencies over 30 days; 10 appointments a day. "
    "Four ways to choose the weights, and what the booking rule costs.",
    "table4": "The same clinic with 60 appointments a day.",
    "table5": "A clinic small enough to solve exactly, with richer and richer approximations: "
    "polynomials of degree one to four.",
    "figure-queue": "The single queue of Table 1: where the approximations are good, what the "
    "rules cost from each queue length, and how fast they serve.",
    "figure-occupancy": "The single queue of Table 1: where each rule spends its time.",
    "figure-network": "The network of Table 2.",
    "figure-convergence": "The network of Table 2: how far the weights still move from one "
    "iteration to the next. Zero means that they have settled.",
    "beyond": "The network of Table 2 again, and what Bellweight adds to the paper: a program that "
    "depends less on the sample of states, states drawn from where a good rule goes, a race of "
    "many candidates, bases that grow, relatives of the method. None of it is in the paper.",
}
"""The same for somebody who has not read the paper."""

__all__ = [
    "ABOUT",
    "PAPER",
    "TITLES",
    "Artefact",
    "Reproduction",
    "Settings",
    "Wanted",
    "find",
    "write",
]


def find(name: str) -> Artefact:
    """Return the artefact of this name."""
    if name not in TITLES:
        known = ", ".join(TITLES)
        raise ArgumentError(f"{name!r} is not reproduced here, expected one of {known}, or all")
    artefact: Artefact = import_module(f"bellweight.reproduce.{name.replace('-', '_')}")
    return artefact
