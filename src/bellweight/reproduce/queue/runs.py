"""The single queue of the paper: its initial distributions, and a policy for each row of Table 1.

Settings as in the paper: cubic basis, start at the initial distribution, step 1, tolerance 1e-8,
temperature = smoothing_mass = 0.1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bellweight import exact
from bellweight.basis import Polynomial
from bellweight.models import TabularModel
from bellweight.policies import Policy
from bellweight.problems.single_queue import geometric
from bellweight.reproduce.runs import solved
from bellweight.solve import Result
from bellweight.weights.loop import Method, Stop
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy

TITLES = {
    "geometric": "Geometric",
    "empty": "Empty-System",
    "reverse": "Reverse-Geometric",
}
"""The paper's names of the initial distributions."""

OPTIMAL = "Optimal"


@dataclass(frozen=True)
class Found:
    """A policy, how it was found, and how long that took; no method found the optimal one."""

    name: str
    policy: Policy
    result: Result | None
    seconds: float


def methods(n_states: int) -> dict[str, Method]:
    """Return the methods by the name of their row."""
    low = Fixed(geometric(n_states, 0.9))
    return {
        "Fixed 0.9": low,
        "Fixed 0.999": Fixed(geometric(n_states, 0.999)),
        "PIA": PIA(),
        "DIA (Random)": DIA(temperature=0.1, smoothing_mass=0.1),
        "DIA (0.9)": DIA(target=low, temperature=0.1, smoothing_mass=0.1),
        "Random": FromPolicy(),
    }


def policies(model: TabularModel) -> Iterator[Found]:
    """Find the policies one by one, the optimal one first."""
    began = time.perf_counter()
    best = exact.optimal(model)
    yield Found(OPTIMAL, best.policy, None, time.perf_counter() - began)
    for name, method in methods(model.n_states).items():
        result = solved(model, Polynomial(3), method, stop=Stop(tol=1e-8))
        yield Found(name, result.policy, result, result.seconds)
