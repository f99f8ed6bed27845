"""Cases that failed once, each by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import bellweight as bw

from . import tabular
from .cases import Case
from .settings import Listed

METHODS = {"fixed": bw.Fixed(), "uniform": bw.Fixed("uniform"), "pia": bw.PIA(), "dia": bw.DIA()}


def _specks(size: float) -> Case:
    """Four states, weights of which two are tiny, as they come out of a computation."""
    first = [[0, 1 / 3, 1 / 3, 1 / 3], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
    second = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1 / 2, 1 / 2], [0, 0, 0, 1]]
    weights = np.array([size, 0.5, 3.0 * size, 0.5 - 4.0 * size])
    model = bw.TabularModel.from_arrays(
        [[1.0, 2.0], [3.0, 1.0], [2.0, 5.0], [1.0, 0.0]],
        np.array([first, second], dtype=float), 0.95, weights,
    )  # fmt: skip
    return _case(f"specks of {size:g}", model, bw.Polynomial(3), bw.Fixed(weights))


def _certain(
    successors: tuple[int, ...], cost: tuple[float, ...], discount: float, degree: int, method: str
) -> Case:
    """One action, certain moves, a start in one state."""
    n = len(successors)
    model = bw.TabularModel.from_pairs(
        np.array(cost, dtype=float), np.eye(n)[list(successors)], np.arange(n),
        np.zeros(n, dtype=int), discount, np.eye(n)[0],
    )  # fmt: skip
    name = f"next states {successors}, degree {degree}, {method}"
    return _case(name, model, bw.Polynomial(degree), METHODS[method])


def _kinks(n_states: int, count: int, initial: str) -> Case:
    """A queue of five service rates, kinks on geometric spacing."""
    model = bw.problems.single_queue(
        n_states - 1, arrival=0.2, services=(0.0, 0.2, 0.4, 0.6, 0.8), initial=initial
    )
    kinks = np.geomspace(2.0, n_states - 2.0, count)
    name = f"{count} geometric kinks on {n_states} states, {initial}"
    return _case(name, model, bw.PiecewiseLinear(kinks.tolist()), bw.Fixed())


def _radial(method: str) -> Case:
    """The bumps that the command line offers, on the queue with 5,000 states."""
    model = bw.problems.single_queue(4_999)
    return _case(f"Radial(6), {method}", model, bw.Radial(6), METHODS[method])


def _nearly(size: float, method: str) -> Case:
    """A column that is the sum of two others but for a small share."""
    n = 6
    rng = np.random.default_rng(5)
    table = rng.normal(size=(n, 2))
    made = table.sum(axis=1) * (1.0 + size * rng.normal(size=n))
    state = np.repeat(np.arange(n), 2)
    rows = rng.dirichlet(np.ones(n), size=2 * n)
    model = bw.TabularModel.from_pairs(
        rng.uniform(0.0, 10.0, size=2 * n), rows, state, np.tile([0, 1], n), 0.9, np.full(n, 1 / n)
    )
    columns = np.column_stack([np.ones(n), table, made])
    name = f"nearly dependent by {size:g}, {method}"
    return _case(name, model, bw.Custom(Listed(model.states, columns)), METHODS[method])


def _shortest() -> Case:
    """Every row of two states is tight, and a third state has hardly any weight."""
    after = [0, 0, 2, 1, 1, 2]
    weights = np.array([2.35477422e-17, 0.499956192, 0.500043808])
    model = bw.TabularModel.from_pairs(
        [1.0, 1.0, -1.0, -1.0, -1.0, -1.0], np.eye(3)[after], np.repeat(np.arange(3), 2),
        np.tile([0, 1], 3), 0.999825, np.array([2.35477422e-17, 1.36649982e-17, 1.0]),
    )  # fmt: skip
    basis = bw.Radial(np.arange(3.0)[:, None], 1.0)
    return _case("shortest dual", model, basis, bw.Fixed(weights))


def _unseen() -> Case:
    """The dual misses an equation by 1e-10 of its terms: mass that is missing where costs are."""
    model = tabular.rare(np.random.default_rng([20, 777]))
    return _case("unseen costs", model, bw.Polynomial(7), bw.Fixed())


def _degree(degree: int, initial: str) -> Case:
    """The paper's queue, a tenth of it, with polynomials of high degree."""
    model = bw.problems.single_queue(4_999, initial=initial)
    return _case(f"degree {degree}, {initial}", model, bw.Polynomial(degree), bw.Fixed())


def _case(name: str, model: Any, basis: Any, method: Any) -> Case:
    return Case(name, "named", name, model, basis, method)


NAMED: dict[str, Callable[[], Case]] = {}
for _size in (1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19):
    NAMED[f"specks-{_size:g}"] = partial(_specks, _size)
for _method in METHODS:
    NAMED[f"3310-{_method}"] = partial(_certain, (3, 3, 1, 0), (5, 5, 2, 4), 0.999, 2, _method)
    for _degrees in (1, 2):
        NAMED[f"112-{_degrees}-{_method}"] = partial(
            _certain, (1, 1, 2), (4, 9, 8), 0.9999, _degrees, _method
        )
for _states, _count in ((2_000, 15), (4_000, 15), (4_000, 18)):
    for _law in ("empty", "geometric"):
        NAMED[f"kinks-{_states}-{_count}-{_law}"] = partial(_kinks, _states, _count, _law)
for _method in METHODS:
    NAMED[f"radial-{_method}"] = partial(_radial, _method)
for _size in (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14):
    for _method in ("fixed", "dia"):
        NAMED[f"nearly-{_size:g}-{_method}"] = partial(_nearly, _size, _method)
NAMED["shortest-dual"] = _shortest
NAMED["unseen-costs"] = _unseen
for _degrees in (6, 8, 10):
    for _law in ("empty", "geometric", "reverse"):
        NAMED[f"degree-{_degrees}-{_law}"] = partial(_degree, _degrees, _law)

LONG = tuple(name for name in NAMED if name.startswith(("kinks", "radial", "degree")))
"""Named cases that take seconds."""
