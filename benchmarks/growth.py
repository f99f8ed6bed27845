"""How the exact methods and DIA grow with the number of transitions, beside their peers.

Grids of 2, 3, 4 and 6 dimensions and random graphs, at two discounts. The exponent is that of a
line through the logarithms of CPU seconds and transitions; that of a plain product of the table
with a vector stands beside it, because memory is slower than cache. The peers of `exact.optimal`
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
from measure import Line, exponent, growth
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
    "DIA": "growth of DIA",
}

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PEER_SIZES = (10_000, 100_000)
QUICK_SIZES = (300, 1_000, 3_000)
DISCOUNTS = (0.98, 0.9999)
MOST_GROWTH = 1.15
MOST_FLOW = 1e-10  # residual of the flow balance of an occupancy
ACCURACY = 2e-14  # of the peers, relative to the largest value, times the expected steps
PATIENCE = 5.0  # times our CPU seconds that a peer may take
FACTORISED = {"grid-2": 100_000, "grid-3": 10_000}  # states up to which a peer factorises
REPEATED = 0.1  # seconds below which a time is the best of three
SHAPES: dict[str, Callable[[int], bw.TabularModel]] = {
    **{f"grid-{d}": partial(grid, d) for d in (2, 3, 4, 6)},
    "random": random_graph,
}

Peer = Callable[[], np.ndarray | None]


def run(*, quick: bool = False) -> list[Line]:
    """Return for each shape and discount the growth of each method, and the ratio to the peers."""
    lines = []
    sizes, peer_sizes = (QUICK_SIZES, QUICK_SIZES[-1:]) if quick else (SIZES, PEER_SIZES)
    for name, make in SHAPES.items():
        for discount in DISCOUNTS:
            tag = f"{name} {discount}"
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
                    lines.append(against_peers(name, f"optimal.peer {tag}", model))
            lines += _growth(tag, counts, found)
    return lines


def _measured(model: bw.TabularModel) -> dict[str, float]:
    """Return the CPU seconds of each method, and of a product of the table with a vector."""
    ones, flow = np.ones(model.n_states), []
    works: dict[str, Callable[[], Any]] = {
        "optimal": lambda: bw.exact.optimal(model),
        "value": lambda: bw.exact.policy_value(model, bw.Uniform()),
        "occupancy": lambda: flow.append(exact_occupancy(model, bw.Uniform()).residual),
        "DIA": lambda: bw.solve(model, bw.Polynomial(2), bw.DIA(), judge=False),
        "pass": lambda: model.transition @ ones,
    }
    taken = {name: _cpu(work)[0] for name, work in works.items()}
    assert max(flow) <= MOST_FLOW
    return taken


def _growth(tag: str, counts: list[int], found: dict[str, list[float]]) -> list[Line]:
    """Return the exponents in the number of transitions, with the times in the notes."""
    plain = exponent(counts, found.pop("pass"))
    note = f"one plain pass: exponent {plain:.2f}"
    lines = []
    for work, taken in found.items():
        line = growth(f"{work} {tag}", counts, taken, MOST_GROWTH, "transitions")
        lines.append(replace(line, notes=(*line.notes, note)))
    return lines


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
    return Line(f"{name} {model.n_states:,}", ours, "s", best, best / ours, 1.0, False,
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
