"""Seconds to choose the weights of two clinics, against the paper's, and to simulate a policy.

2,048 episodes of 688 steps per occupancy estimate, compilation apart.
"""

from __future__ import annotations

import warnings
from functools import partial

from measure import Line, seconds

import bellweight as bw
from bellweight.reproduce.clinic.tables_3_4 import basis_of, methods
from bellweight.reproduce.paper import CLINIC_TABLES

TITLE = "The clinics"
FIGURES = {
    "small": "small clinic",
    "large": "large clinic",
}

TARGETS = {
    "small": {"Fixed": 1.0, "Random": 5.0, "PIA": 30.0, "DIA (Random)": 20.0},
    "large": {"Fixed": 1.0, "Random": 5.0, "PIA": 30.0, "DIA (Random)": 10.0},
}
PAPER = {table.size: table.seconds for table in CLINIC_TABLES.values()}
FEW_SECONDS = 6.0


def run() -> list[Line]:
    """Return one line per clinic and method, and one for the simulation of each clinic."""
    warnings.simplefilter("ignore", bw.errors.BellweightWarning)
    lines = []
    for size, targets in TARGETS.items():
        model = bw.problems.scheduling(size)
        solve = partial(bw.solve, model, basis_of(model))
        compiled = solve(bw.DIA(), simulation=bw.Simulation(2))
        bw.evaluate(model, compiled.policy, 2, horizon=2)
        for name, method in methods().items():
            taken, result = seconds(partial(solve, method, simulation=bw.Simulation(2_048, 688)))
            paper = PAPER[size][name]
            note = f"{result.status.name}, {len(result.history)} iterations"
            lines.append(
                Line(f"{size} {name}", taken, "s", paper, paper / taken, targets[name],
                     notes=(note,))
            )  # fmt: skip
        act = partial(bw.evaluate, model, compiled.policy, 11_000, horizon=688)
        taken, _ = seconds(act)
        lines.append(
            Line(f"{size} greedy steps", taken, "s", target=FEW_SECONDS, limit=True,
                 notes=(f"{11_000 * 688 / taken / 1e6:.1f} million steps a second",))
        )  # fmt: skip
    return lines
