"""Seconds to find a policy for the network, against those the paper tells of a 64-core node.

5,000 constraint states, 4,000 episodes of 1,379 steps per occupancy estimate, compilation apart.
PIA oscillates and never settles; it gets 20 iterations.
"""

from __future__ import annotations

from functools import partial

from measure import Line, seconds

import bellweight as bw
from bellweight.reproduce.network.runs import methods
from bellweight.reproduce.paper import TABLE2_SECONDS

TITLE = "Policies of the network"
FIGURES = {
    "policy": "from nothing to a policy, against the paper's time",
}


def run() -> list[Line]:
    """Return one line per method."""
    model = bw.problems.queue_network()
    rows = bw.SampledRows(bw.sample_states(model, 5_000, seed=3))
    solve = partial(bw.solve, model, bw.Polynomial(2), rows=rows, stop=bw.Stop(max_iterations=20))
    ways = {name: way for name, way in methods().items() if name in TABLE2_SECONDS}
    for method in ways.values():
        solve(method, simulation=bw.Simulation(2), stop=bw.Stop(max_iterations=1))  # compiles
    lines = []
    for name, method in ways.items():
        taken, result = seconds(partial(solve, method, simulation=bw.Simulation(4_000, 1_379)))
        note = f"{len(result.history)} iterations, {result.status.name}"
        paper = TABLE2_SECONDS[name]
        lines.append(Line(f"policy {name}", taken, "s", paper, paper / taken, 100.0, notes=(note,)))
    return lines
