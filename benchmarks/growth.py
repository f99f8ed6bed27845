"""How the exact methods and DIA grow with the number of transitions, beside their peers.

Grids of 2, 3, 4 and 6 dimensions and random graphs. The exponent is that of a line through the
logarithms of CPU seconds and transitions. The peers of `exact.optimal` are value iteration in NumPy
with span bounds and QuantEcon's modified policy iteration, the faster of the two; they stop at a
relative error of 1e-12, ours where rounding decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Line, exponent
from quantecon.markov import DiscreteDP
from scipy import sparse
from shapes import grid, random_graph

import bellweight as bw
from bellweight.exact.occupancy import exact_occupancy

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (300, 1_000, 3_000)
MOST_GROWTH = 1.15
ACCURACY = 1e-12  # of the peers, relative; ours ends where rounding decides
SHAPES: dict[str, Callable[[int], bw.TabularModel]] = {
    **{f"grid-{d}": (lambda n, d=d: grid(d, n)) for d in (2, 3, 4, 6)},
    "random": random_graph,
}


def run(*, quick: bool = False) -> list[Line]:
    """Return for each shape the growth of each method, and the ratio to the peers."""
    lines = []
    for name, make in SHAPES.items():
        models = [make(n) for n in (QUICK_SIZES if quick else SIZES)]
        bw.exact.optimal(models[0])  # compiles
        lines += _optimal(name, models)
        for what, work in (("value", _value), ("occupancy", _occupancy), ("DIA", _dia)):
            lines.append(_growth(f"{what} {name}", work, models))
    return lines


def _optimal(name: str, models: list[bw.TabularModel]) -> list[Line]:
    line = _growth(f"optimal {name}", bw.exact.optimal, models)
    model = models[-1]
    ours, found = _cpu(lambda: bw.exact.optimal(model))
    numpy_time, values = _cpu(lambda: value_iteration(model))
    peer = DiscreteDP(
        -model.cost, sparse.csr_matrix(model.transition), model.discount, model.pair_state,
        model.pair_action,
    )  # fmt: skip
    epsilon = ACCURACY * float(np.abs(found.values).max())
    peer_time, theirs = _cpu(
        lambda: peer.solve("modified_policy_iteration", epsilon=epsilon, max_iter=100_000)
    )
    size = float(np.abs(found.values).max())
    apart = max(float(np.abs(found.values - v).max()) for v in (values, -theirs.v)) / size
    best = min(numpy_time, peer_time)
    notes = (f"NumPy {numpy_time:.3g} s, QuantEcon {peer_time:.3g} s; values agree to {apart:.1e}",)
    wrong = "" if apart <= 10 * ACCURACY else "the values differ"
    return [line, Line(f"optimal.peer {name}", ours, "s", best, best / ours, 1.0, False, notes,
                       wrong)]  # fmt: skip


def value_iteration(model: bw.TabularModel) -> np.ndarray:
    """Return the optimal values to the accuracy of this page, by plain NumPy."""
    values, starts = np.zeros(model.n_states), model.pair_start[:-1]
    ahead = 0.5 * model.discount / (1.0 - model.discount)
    while True:
        quality = model.cost + model.discount * (model.transition @ values)
        following = np.minimum.reduceat(quality, starts)
        step, values = following - values, following
        if ahead * np.ptp(step) <= ACCURACY * np.abs(values).max():
            return np.asarray(values + ahead * (step.max() + step.min()))


def _value(model: bw.TabularModel) -> Any:
    return bw.exact.policy_value(model, bw.Uniform())


def _occupancy(model: bw.TabularModel) -> Any:
    return exact_occupancy(model, bw.Uniform())


def _dia(model: bw.TabularModel) -> Any:
    return bw.solve(model, bw.Polynomial(2), bw.DIA(), judge=False)


def _growth(name: str, work: Callable[[bw.TabularModel], Any], models: list[Any]) -> Line:
    """Return the exponent in the number of transitions, with the times in the note."""
    taken = [_cpu(lambda m=m: work(m))[0] for m in models]
    sizes = [m.transition.nnz for m in models]
    times = ", ".join(f"{n:,}: {t:.3g} s" for n, t in zip(sizes, taken, strict=True))
    return Line(name, exponent(sizes, taken), "exponent", target=MOST_GROWTH, limit=True,
                notes=(f"transitions and seconds: {times}",))  # fmt: skip


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds, which other programs on the machine disturb least, and the answer."""
    began = time.process_time()
    answer = work()
    return time.process_time() - began, answer
