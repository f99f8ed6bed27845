"""The tables and figures of the paper, computed again, in one folder for each problem.

A module here computes one table or figure: its `ARTEFACTS` say how (see `artefact.py`). `CONTENTS`
lists them all; the command line finds, runs and writes them by that list.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from bellweight.common.status import ArgumentError
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Wanted
from bellweight.reproduce.folder import write


@dataclass(frozen=True)
class Entry:
    """A table or figure in the list: its title, what it is about, and its module.

    `about` is for somebody who has not read the paper. `seconds` are about those that it takes on
    two cores, quick and in full: they only serve to say how much is left.
    """

    title: str
    about: str
    module: str
    seconds: tuple[float, float]


CONTENTS = {
    "table1": Entry(
        "the single queue under three initial distributions",
        "One queue: a controller picks how fast to serve, and faster service costs more. Seven "
        "ways to find a rule, judged from three starting points: few jobs, none, or a full queue. "
        "Lower costs are better.",
        "queue.table1",
        (20.0, 75.0),
    ),
    "table2": Entry(
        "the eight-dimensional network, over several constraint samples",
        "Eight queues with three shared servers. The states are too many to list, so the program "
        "sees a random sample of them, and the sample matters: every method runs on several. "
        "Simple rules of thumb stand below the methods.",
        "network.table2",
        (80.0, 1_200.0),
    ),
    "table3": Entry(
        "the small clinic, by column generation",
        "A clinic books patients of three urgencies over 30 days; 10 appointments a day. Four ways "
        "to choose the weights, and what the booking rule costs.",
        "clinic.tables_3_4",
        (20.0, 50.0),
    ),
    "table4": Entry(
        "the large clinic, by column generation",
        "The same clinic with 60 appointments a day.",
        "clinic.tables_3_4",
        (20.0, 75.0),
    ),
    "table5": Entry(
        "the tiny clinic, polynomials of degree one to four",
        "A clinic small enough to solve exactly, with richer and richer approximations: "
        "polynomials of degree one to four.",
        "clinic.table5",
        (5.0, 10.0),
    ),
    "figure-queue": Entry(
        "the single queue: approximate and true cost-to-go, and the actions",
        "The single queue of Table 1: where the approximations are good, what the rules cost from "
        "each queue length, and how fast they serve.",
        "queue.figure_queue",
        (9.0, 9.0),
    ),
    "figure-occupancy": Entry(
        "the single queue: where each policy spends its time",
        "The single queue of Table 1: where each rule spends its time.",
        "queue.figure_occupancy",
        (8.0, 8.0),
    ),
    "figure-network": Entry(
        "the eight-dimensional network: queues, routes and servers",
        "The network of Table 2.",
        "network.figure_network",
        (1.0, 1.0),
    ),
    "figure-convergence": Entry(
        "successive differences of the moments on the network",
        "The network of Table 2: how far the weights still move from one iteration to the next. "
        "Zero means that they have settled.",
        "network.figure_convergence",
        (10.0, 28.0),
    ),
}
"""Everything that can be reproduced, in the order of the paper."""

__all__ = [
    "CONTENTS",
    "Artefact",
    "Entry",
    "Reproduction",
    "Settings",
    "Wanted",
    "find",
    "write",
]


def find(name: str) -> Artefact:
    """Return the artefact of this name."""
    if name not in CONTENTS:
        known = ", ".join(CONTENTS)
        raise ArgumentError(f"{name!r} is not reproduced here, expected one of {known}, or all")
    module = import_module(f"bellweight.reproduce.{CONTENTS[name].module}")
    artefacts: tuple[Artefact, ...] = module.ARTEFACTS
    return next(artefact for artefact in artefacts if artefact.name == name)
