"""The regularised program of the network, 90,000 rows with 45 unknowns, by Newton steps.

The unit of time is one pass over the rows, measured in the same run: the first line says how many
a step takes, the second how many steps there are from cold. The third holds the dual of a small
regularisation against the minimum-norm dual of the linear program.
"""

from __future__ import annotations

import numpy as np
from measure import Line, seconds

import bellweight as bw
from bellweight.backends import simulated_occupancy
from bellweight.program import AlpProgram, EventRows, PenaltyProgram

TITLE = "The regularised program"
FIGURES = {
    "regularised.step": "a Newton step, in passes over the rows",
    "regularised.steps": "Newton steps from cold",
    "regularised.limit": "distance to the minimum-norm dual, where the regularisation is small",
}

STATES = 5_000
DELTA = 1.0
SMALL = 1e-6


def run() -> list[Line]:
    """Return the three lines of this benchmark."""
    model = bw.problems.queue_network()
    basis = bw.Polynomial(2)
    rows = bw.SampledRows(bw.sample_states(model, STATES, seed=3)).on(model, basis)
    moments = simulated_occupancy(model, bw.Uniform(), basis, bw.Simulation(2_000), seed=1).moments
    assert moments is not None
    solve = [seconds(lambda: PenaltyProgram(rows, DELTA).solve(moments)) for _ in range(3)]
    taken, found = min(solve, key=lambda measured: measured[0])
    one = min(seconds(lambda: _pass(rows, found.coef))[0] for _ in range(20))
    step = taken / found.rounds
    size = f"{rows.n_pairs:,} x {rows.n_basis}, delta {DELTA:g}"
    return [
        Line("regularised.step", step / one, "passes", target=5.0, limit=True,
             notes=(f"{size}: {taken:.3g} s in all, a pass takes {one:.3g} s",)),
        Line("regularised.steps", found.rounds, "steps", target=40.0, limit=True,
             notes=(f"from cold; dual on {len(found.keys):,} rows",)),
        Line("regularised.limit", _error(rows, moments), "", target=1e-6, limit=True,
             notes=(f"delta {SMALL:g} against the minimum-norm dual, relative",)),
    ]  # fmt: skip


def _pass(rows: EventRows, coef: np.ndarray) -> float:
    return min(float(slack.min()) for _, slack in rows.all_slacks(coef))


def _error(rows: EventRows, moments: np.ndarray) -> float:
    exact = AlpProgram(rows).solve(moments)
    found = PenaltyProgram(rows, SMALL).solve(moments)
    duals = np.zeros((2, rows.n_pairs))
    duals[0, exact.keys], duals[1, found.keys] = exact.dual, found.dual
    return float(np.abs(duals[0] - duals[1]).max() / duals[0].max())
