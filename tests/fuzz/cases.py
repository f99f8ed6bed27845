"""From a number to a case, and from a case to what is wrong with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import bellweight as bw

from . import settings, tabular
from .events import EventCase, event_case
from .judge import judge
from .linear import LinearCase, linear_case
from .program import Findings

FAMILIES = ("tiny",) * 6 + ("medium",) * 2 + ("event", "linear")
RARE = 1_000_000
"""From this number on, states with next to no weight may decide about the cost."""
MADE = {"tiny": tabular.tiny, "medium": tabular.medium, "rare": tabular.rare}


@dataclass(frozen=True, eq=False)
class Case:
    """A model with a basis, a method and settings."""

    number: Any
    family: str
    text: str
    model: Any
    basis: Any
    method: Any
    regularisation: float = 0.0

    def run(self) -> Findings:
        """Solve and check."""
        return judge(self.model, self.basis, self.method, self.regularisation)


def case(number: int) -> Case | EventCase | LinearCase:
    """Return the case of a number."""
    rng = np.random.default_rng([number, 12])
    family = "rare" if number >= RARE else FAMILIES[number % len(FAMILIES)]
    if family == "event":
        return event_case(number, rng)
    if family == "linear":
        return linear_case(number, rng)
    model = MADE[family](rng)
    basis, basis_text = settings.basis(rng, model)
    method, method_text = settings.method(rng, model)
    delta = 0.0
    if rng.random() < 0.08 and not isinstance(basis, bw.Indicator):
        delta = float(10.0 ** rng.uniform(-4.0, 0.0) * np.abs(model.cost).max())
    text = (
        f"{model.n_states} states, {model.n_pairs} pairs, discount {model.discount:.6g}, "
        f"{basis_text}, {method_text}" + (f", regularisation {delta:.3g}" if delta else "")
    )
    return Case(number, family, text, model, basis, method, delta)


def record(number: Any) -> dict[str, Any]:
    """Run a case, named or numbered, and return its line of the record."""
    from .named import NAMED

    began = time.process_time()
    made = case(number) if isinstance(number, int) else NAMED[number]()
    found = made.run()
    return {
        "case": number,
        "family": made.family,
        "text": made.text,
        "wrong": found.wrong,
        "undecided": found.undecided,
        "notes": found.notes,
        "seconds": round(time.process_time() - began, 3),
    }
