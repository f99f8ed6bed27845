"""The program of the queue, 250,000 rows with 4 unknowns, against HiGHS on all rows at once.

The peer gets what makes the program solvable at all: our well-conditioned coordinates, rows scaled
to largest entry one, and a matrix that is already built. It is tried in the primal and the dual
form, with and without presolve, at default tolerances; the fastest of the four that is right
is the peer and takes turns with ours. Ours starts from the model: features, coordinates, cutting
planes and audit are all in its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import highspy
import numpy as np
from measure import Line, seconds, take_turns

import bellweight as bw
from bellweight.program import AlpProgram, Solution, solve_alp

TITLE = "The whole program at once"
FIGURES = {
    "alp_full": "solving the program of the queue, against HiGHS",
}

OPTIMUM = 352.28  # known independently, to two decimals
AGREEMENT = 1e-6
TIME_LIMIT = 60.0
REPEATS = 5


@dataclass(frozen=True)
class Conditioned:
    """The whole program in well-conditioned coordinates, rows scaled."""

    rows: np.ndarray
    cost: np.ndarray
    moments: np.ndarray


@dataclass(frozen=True)
class Variant:
    """A way to put the program to HiGHS."""

    form: str
    presolve: str

    def __str__(self) -> str:
        return f"{self.form} form{', no presolve' if self.presolve == 'off' else ''}"


def run() -> list[Line]:
    """Return the one line of this benchmark."""
    model = bw.problems.single_queue()
    weights = model.initial

    def ours() -> Solution:
        rows = bw.program.AllRows().on(model, bw.Polynomial(3))
        return solve_alp(rows, rows.moments(weights), weights)

    program = conditioned(model, weights)
    truth = ours().objective
    wrong = "" if abs(truth - OPTIMUM) < 0.01 else f"optimum {truth:.6g}, expected {OPTIMUM}"
    notes, right = [], {}
    for form in ("primal", "dual"):
        for presolve in ("choose", "off"):
            variant = Variant(form, presolve)
            took, optimum = seconds(partial(highs, program, variant))
            if optimum is None:
                notes.append(f"HiGHS, {variant}: no optimum in {took:.1f} s")
            elif abs(optimum - truth) > AGREEMENT * abs(truth):
                notes.append(f"HiGHS, {variant}: {took:.2f} s, WRONG optimum {optimum:.6g}")
            else:
                notes.append(f"HiGHS, {variant}: {took:.2f} s, right optimum {optimum:.6f}")
                right[variant] = took
    if not right:
        return [Line("alp_full", wrong="no variant of the peer is right", notes=tuple(notes))]
    fastest = min(right, key=right.__getitem__)
    (our_time, solution), (peer_time, _) = take_turns(
        REPEATS, ours, partial(highs, program, fastest)
    )
    notes.append(f"peer: {fastest}; ours: {solution.passes} passes, {solution.n_rows} rows kept")
    return [
        Line(
            "alp_full",
            our_time,
            peer=peer_time,
            ratio=peer_time / our_time,
            target=5.0,
            notes=tuple(notes),
            wrong=wrong,
        )
    ]


def conditioned(model: bw.TabularModel, weights: np.ndarray) -> Conditioned:
    """Build the full matrix in our coordinates."""
    rows = bw.program.AllRows().on(model, bw.Polynomial(3))
    coordinates = AlpProgram(rows, weights).coordinates
    raw, cost = rows.rows(np.arange(model.n_pairs))
    inner = coordinates.rows(raw)
    size = np.abs(inner).max(axis=1)
    return Conditioned(
        inner / size[:, None], cost / size, coordinates.moments(rows.moments(weights))
    )


def highs(program: Conditioned, variant: Variant) -> float | None:
    """Return the optimum that HiGHS finds, or None when it finds none in time."""
    n, k = program.rows.shape
    lp = highspy.HighsLp()
    free_low, free_high = -highspy.kHighsInf, highspy.kHighsInf
    if variant.form == "primal":  # max moments' coef  s.t.  rows coef <= cost
        lp.num_col_, lp.num_row_ = k, n
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = program.moments
        lp.col_lower_, lp.col_upper_ = np.full(k, free_low), np.full(k, free_high)
        lp.row_lower_, lp.row_upper_ = np.full(n, free_low), program.cost
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    else:  # min cost' dual  s.t.  rows' dual = moments, dual >= 0
        lp.num_col_, lp.num_row_ = n, k
        lp.col_cost_ = program.cost
        lp.col_lower_, lp.col_upper_ = np.zeros(n), np.full(n, free_high)
        lp.row_lower_ = lp.row_upper_ = program.moments
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.arange(0, n * k + 1, k, dtype=np.int32)
    lp.a_matrix_.index_ = np.tile(np.arange(k, dtype=np.int32), n)
    lp.a_matrix_.value_ = program.rows.ravel()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("presolve", variant.presolve)
    solver.setOptionValue("time_limit", TIME_LIMIT)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(solver.getObjectiveValue())
