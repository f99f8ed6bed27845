"""How CPU time grows with the number of transitions, for the exact methods and DIA.

Grids of 2, 3, 4 and 6 dimensions and random graphs, at two discounts. The exponent is that of a
line through the logarithms of CPU seconds and transitions. Memory is slower than cache, so plain
products of the table with a vector have an exponent above 1 themselves: it stands beside each
figure, and the growth of the time in units of such a product is a figure of its own, which says
whether a method does more work for each transition. The peers of `exact.optimal`
are value iteration in NumPy with span bounds and QuantEcon's methods, the fastest of them. They
stop at an error just above what rounding leaves of the values; ours ends where rounding decides. A
peer that needs many times as long is not waited for. QuantEcon's policy iteration factorises, so it
runs on small grids only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from measure import MOMENT, Line, exponent, growth
from numba import njit
from quantecon.markov import DiscreteDP
from scipy import sparse
from shapes import grid, random_graph

import bellweight as bw
from bellweight.exact.occupancy import exact_occupancy

TITLE = "Growth with the size of a table"
FIGURES = {
    "optimal.peer": "exact optimum, against the fastest peer",
    "optimal": "growth of the exact optimum",
    "value": "growth of the value of a policy",
    "occupancy": "growth of the occupancy of a policy",
    "optimal.passes": "growth of the exact optimum, in plain passes",
    "value.passes": "growth of the value of a policy, in plain passes",
    "occupancy.passes": "growth of the occupancy of a policy, in plain passes",
    "DIA": "growth of DIA",
}

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PEER_SIZES = (10_000, 100_000)
QUICK_SIZES = (300, 1_000, 3_000)
DISCOUNTS = (0.98, 0.9999)
MOST_GROWTH = 1.15
MOST_MORE_PASSES = 0.15  # the same, where memory is as fast as cache
PASSED = 20_000_000  # transitions of the plain passes that are timed together
MOST_FLOW = 1e-10  # residual of the flow balance of an occupancy
ACCURACY = 2e-14  # of the peers, relative to the largest value, times the expected steps
PATIENCE = 5.0  # times our CPU seconds that a peer may take
# States up to which a peer factorises.
FACTORISED = {"grid of 2 dimensions": 100_000, "grid of 3 dimensions": 10_000}
REPEATED = 0.1  # seconds below which a time is the best of three
SHAPES: dict[str, Callable[[int], bw.TabularModel]] = {
    **{f"grid of {d} dimensions": partial(grid, d) for d in (2, 3, 4, 6)},
    "random graph": random_graph,
}

Peer = Callable[[], np.ndarray | None]


def run(*, quick: bool = False) -> list[Line]:
    """Return for each shape and discount the growth of each method, and the ratio to the peers."""
    lines = []
    sizes, peer_sizes = (QUICK_SIZES, QUICK_SIZES[-1:]) if quick else (SIZES, PEER_SIZES)
    for name, make in SHAPES.items():
        for discount in DISCOUNTS:
            tag = f"{name}, discount {discount}"
            found: dict[str, list[float]] = {}
            counts = []
            for n in sizes:
                model = replace(make(n), discount=discount)
                if n == sizes[0]:
                    _measured(model)  # compiles
                measured = _measured(model)
                counts.append(model.transition.nnz)
                for work, seconds in measured.items():
                    found.setdefault(work, []).append(seconds)
                if n in peer_sizes:
                    lines.append(against_peers(name, f"optimal.peer {tag},", model))
            lines += _growth(tag, counts, found)
    return lines


def _measured(model: bw.TabularModel) -> dict[str, float]:
    """Return the CPU seconds of each method, and of a product of the table with a vector."""
    flow: list[float] = []
    works: dict[str, Callable[[], Any]] = {
        "optimal": lambda: bw.exact.optimal(model),
        "value": lambda: bw.exact.policy_value(model, bw.Uniform()),
        "occupancy": lambda: flow.append(exact_occupancy(model, bw.Uniform()).residual),
        "DIA": lambda: bw.solve(model, bw.Polynomial(2), bw.DIA(), judge=False),
    }
    taken = {name: _cpu(work)[0] for name, work in works.items()}
    assert max(flow) <= MOST_FLOW
    return {**taken, "pass": _plain_pass(model.transition)}


def _plain_pass(matrix: sparse.csr_array) -> float:
    """Return the CPU seconds of one product with a vector, without the cost of calling it."""
    turns, ones, found = max(1, PASSED // matrix.nnz), *np.ones((2, max(matrix.shape)))
    _multiplied(matrix.indptr, matrix.indices, matrix.data, ones, found, 1)  # compiles
    taken, _ = _cpu(
        lambda: _multiplied(matrix.indptr, matrix.indices, matrix.data, ones, found, turns)
    )
    return taken / turns


@njit
def _multiplied(indptr, indices, data, vector, found, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        for row in range(len(indptr) - 1):
            total = 0.0
            for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                total += data[k] * vector[np.uint64(indices[k])]
            found[row] = total


def _growth(tag: str, counts: list[int], found: dict[str, list[float]]) -> list[Line]:
    """Return the exponents in the number of transitions, with the times in the notes."""
    passes = found.pop("pass")
    note = f"of one plain pass over the table the exponent is {exponent(counts, passes):.2f}"
    lines = []
    for work, taken in found.items():
        line = growth(f"{work} {tag}", counts, taken, MOST_GROWTH, "transitions")
        lines.append(replace(line, notes=(*line.notes, note)))
        if work != "DIA":  # most of which is a linear program
            lines.append(_growth_in_passes(f"{work}.passes {tag}", counts, taken, passes))
    return lines


def _growth_in_passes(
    name: str, counts: list[int], taken: list[float], passes: list[float]
) -> Line:
    """Return the exponent of the times in units of a plain pass over a table of the same size."""
    units = [seconds / unit for seconds, unit in zip(taken, passes, strict=True)]
    found = exponent(counts, units)
    pairs = ", ".join(f"{n:,}: {unit:,.0f}" for n, unit in zip(counts, units, strict=True))
    note = f"transitions, and plain passes over the table that take as long: {pairs}"
    if found > MOST_MORE_PASSES and max(taken) < MOMENT:
        return Line(
            name, skipped=f"an exponent of {found:.2f}, but of times decided by noise; {note}"
        )
    return Line(name, found, "exponent", target=MOST_MORE_PASSES, limit=True, notes=(note,))


def against_peers(shape: str, name: str, model: bw.TabularModel) -> Line:
    """Compare `exact.optimal` with the fastest peer that ends in time."""
    ours, found = _cpu(lambda: bw.exact.optimal(model))
    budget, size = 1.0 + PATIENCE * ours, float(np.abs(found.values).max())
    peers: dict[str, Peer] = {"NumPy value iteration": partial(value_iteration, model, budget)}
    for method in ("modified_policy_iteration", "value_iteration", "policy_iteration"):
        if method != "policy_iteration" or model.n_states <= 1.1 * FACTORISED.get(shape, 0):
            peers[f"QuantEcon {method.replace('_', ' ')}"] = _quantecon(model, method, budget)
    notes, times, apart = [], [], 0.0
    for label, peer in peers.items():
        taken, values = _cpu(peer)
        if values is None:
            notes.append(f"{label}: not done in {budget:.3g} s")
            continue
        times.append(taken)
        apart = max(apart, float(np.abs(found.values - values).max()) / size)
        notes.append(f"{label}: {taken:.3g} s")
    accuracy = ACCURACY / (1.0 - model.discount)
    notes.append(f"values agree to {apart:.1e}, the peers' accuracy is {accuracy:.0e}")
    best = min(times, default=budget)
    return Line(f"{name} {model.n_states:,} states", ours, "s", best, best / ours, 1.0, False,
                tuple(notes), "" if apart <= 10 * accuracy else "the values differ")  # fmt: skip


def value_iteration(model: bw.TabularModel, budget: float) -> np.ndarray | None:
    """Return the optimal values to the accuracy of this page, by plain NumPy, if there is time."""
    values, starts = np.zeros(model.n_states), model.pair_start[:-1]
    ahead = 0.5 * model.discount / (1.0 - model.discount)
    accuracy, until = ACCURACY / (1.0 - model.discount), time.process_time() + budget
    while time.process_time() < until:
        quality = model.cost + model.discount * (model.transition @ values)
        following = np.minimum.reduceat(quality, starts)
        step, values = following - values, following
        if ahead * np.ptp(step) <= accuracy * np.abs(values).max():
            return np.asarray(values + ahead * (step.max() + step.min()))
    return None


def _quantecon(model: bw.TabularModel, method: str, budget: float) -> Peer:
    """Return one of QuantEcon's methods, its model built, with the iterations that fit."""
    peer = DiscreteDP(
        -model.cost, sparse.csr_matrix(model.transition), model.discount, model.pair_state,
        model.pair_action,
    )  # fmt: skip
    # No cost is anywhere near zero on all these models: their average is the scale of values.
    epsilon = ACCURACY * float(np.abs(model.cost).mean()) / (1.0 - model.discount) ** 2
    most = 1_000
    if method != "policy_iteration":
        few = partial(peer.solve, method, epsilon=epsilon, max_iter=3)
        few()  # compiles
        most = max(4, int(3 * budget / max(_cpu(few)[0], 1e-6)))

    def solve() -> np.ndarray | None:
        answer = peer.solve(method, epsilon=epsilon, max_iter=most)
        return None if answer.num_iter >= most else -answer.v

    return solve


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds, which other programs on the machine disturb least, and the answer.

    What takes little time is repeated, and the best time counts.
    """
    best, answer, turns = np.inf, None, 0
    while turns == 0 or (turns < 3 and best < REPEATED):
        began = time.process_time()
        answer = work()
        best, turns = min(best, time.process_time() - began), turns + 1
    return best, answer
