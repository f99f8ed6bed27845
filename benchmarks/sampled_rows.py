"""A program of 90,000 rows with 45 unknowns, by adding rows as needed, against HiGHS on all rows.

The peer gets the program in our well-conditioned coordinates, rows scaled, in the primal form; the
faster of its runs with and without presolve counts. The second line changes the objective, from the
moments of the initial distribution to those of the uniform policy: ours goes on warm; the peer is
one solve of the full program, and what it takes from its own optimal basis is in the note.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from measure import Line, seconds

import bellweight as bw
from bellweight.backends import simulated_occupancy
from bellweight.program import AlpProgram

TITLE = "Row generation"
FIGURES = {
    "sampled_rows": "the first solve, against HiGHS on all rows",
    "sampled_rows.changed": "a solve with another objective, against HiGHS on all rows",
}

STATES = 5_000


def run() -> list[Line]:
    """Return the two lines of this benchmark."""
    model = bw.problems.queue_network()
    basis = bw.Polynomial(2)
    states = bw.sample_states(model, STATES, seed=3)
    rows = bw.SampledRows(states).on(model, basis)
    moments = model.initial_moments(basis.words(8))
    occupancy = simulated_occupancy(model, bw.Uniform(), basis, bw.Simulation(2_000), seed=1)
    assert moments is not None
    assert occupancy.moments is not None
    cold, solution = min((seconds(lambda: _cold(rows, moments)) for _ in range(3)), key=_time)
    warm, second = min((_warm(rows, moments, occupancy.moments) for _ in range(3)), key=_time)
    peers = [_Peer(AlpProgram(rows), rows, presolve) for presolve in ("on", "off")]
    peer_cold, objective = min((peer.solve(moments) for peer in peers), key=_time)
    peer_warm, next_objective = min((peer.solve(occupancy.moments) for peer in peers), key=_time)
    return [
        Line("sampled_rows", cold, "s", peer_cold, peer_cold / cold, 10.0,
             notes=(f"{rows.n_pairs:,} x {rows.n_basis}; {solution.passes} passes, "
                    f"{solution.n_rows} rows in the master",),
             wrong=_compared(solution.objective, objective)),
        Line("sampled_rows.changed", warm, "s", peer_cold, peer_cold / warm, 50.0,
             notes=(f"after a change of objective; {second.passes} passes; "
                    f"HiGHS warm takes {peer_warm:.3g} s",),
             wrong=_compared(second.objective, next_objective)),
    ]  # fmt: skip


def _time(measured: tuple[float, Any]) -> float:
    return measured[0]


def _cold(rows: Any, moments: np.ndarray) -> Any:
    return AlpProgram(rows).solve(moments)


def _warm(rows: Any, first: np.ndarray, second: np.ndarray) -> tuple[float, Any]:
    program = AlpProgram(rows)
    program.solve(first)
    return seconds(lambda: program.solve(second))


def _compared(ours: float, peer: float) -> str:
    return "" if abs(ours - peer) <= 1e-6 * abs(ours) else f"ours {ours:.9g}, HiGHS {peer:.9g}"


class _Peer:
    """HiGHS on the whole program in the primal form, kept warm."""

    def __init__(self, program: AlpProgram, rows: Any, presolve: str) -> None:
        raw, cost = rows.rows(np.arange(rows.n_pairs))
        matrix = program.coordinates.rows(raw)
        size = np.abs(matrix).max(axis=1)
        self.coordinates = program.coordinates
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("presolve", presolve)
        n, k = matrix.shape
        infinity = np.full(k, highspy.kHighsInf)
        self.solver.addVars(k, -infinity, infinity)
        self.solver.addRows(
            n, np.full(n, -highspy.kHighsInf), cost / size, n * k,
            np.arange(0, n * k, k, dtype=np.int32),
            np.tile(np.arange(k, dtype=np.int32), n),
            (matrix / size[:, None]).ravel(),
        )  # fmt: skip

    def solve(self, moments: np.ndarray) -> tuple[float, float]:
        """Return seconds and objective."""
        inner = self.coordinates.moments(moments)
        index = np.arange(len(inner), dtype=np.int32)
        self.solver.changeColsCost(len(inner), index, -inner)
        taken, _ = seconds(self.solver.run)
        return taken, -float(self.solver.getObjectiveValue())
