"""What is checked of every linear program, whatever the kind of model behind it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bellweight as bw

from .rational import Exact, Rows, UndecidedError, least_norm
from .values import Numbers

Floats = NDArray[np.float64]

OBJECTIVE = 1e-6
SUMS = 1e-9  # share of the terms of a sum by which rounding may move it
DUAL = 1e-6


@dataclass
class Findings:
    """What is wrong with a result, and what could not be decided."""

    wrong: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def check(self, holds: bool, kind: str, text: str) -> None:
        """Note something wrong unless it holds."""
        if not holds:
            self.wrong.append((kind, text))


@dataclass(frozen=True, eq=False)
class Listed:
    """A program with every row listed: costs, moments, and what counts as zero."""

    rows: Rows
    cost: Numbers
    moments: list[Fraction]
    discount: float
    zero: float


def typical(cost: Floats) -> float:
    """Return the size of a typical cost, one where all are zero."""
    return float(np.median(np.abs(cost[cost != 0.0]))) if np.any(cost) else 1.0


def solved(found: Findings, model: Any, basis: Any, method: Any, **options: Any) -> Any:
    """Return the result, or None after noting the error, whatever it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", bw.errors.BellweightWarning)
            return bw.solve(model, basis, method, **options)
    except bw.errors.SolverError as problem:
        found.check(False, f"error {problem.status.name}", str(problem)[:300])
    except bw.BellweightError as problem:
        found.check(False, f"error {type(problem).__name__}", str(problem)[:300])
    except Exception as problem:
        found.check(False, f"bare {type(problem).__name__}", str(problem)[:300])
    return None


def largest_error(truth: Exact, zero: float) -> float:
    """Return how far the objective of a run that says it solved the program may be off."""
    return OBJECTIVE * abs(float(truth.objective)) + SUMS * float(truth.size) + zero


def check_objective(found: Findings, result: Any, truth: Exact, zero: float) -> None:
    """A run that says it solved the program has its objective."""
    size, objective = float(truth.size), float(truth.objective)
    off = float(Fraction(result.objective) - truth.objective)
    if result.status.name == "INACCURATE" or abs(off) <= largest_error(truth, zero):
        return
    dropped = [text for text in result.warnings if "dropped" in text]
    kind = "objective, dropped" if dropped and off < 0.0 else "objective"
    text = f"{result.objective:.12g}, true {objective:.12g} (terms {size:.3g}); {dropped}"
    found.check(False, kind, text)


def check_dual(found: Findings, result: Any, listed: Listed, dual: Floats, truth: Exact) -> None:
    """The dual is feasible, optimal and the shortest."""
    mass = 1.0 / (1.0 - listed.discount)
    off = abs(float(dual.sum()) - mass) / mass
    prefix = "INACCURATE " if result.status.name == "INACCURATE" else ""
    found.check(bool(dual.min() >= 0.0), f"{prefix}dual sign", f"{dual.min():.3g}")
    found.check(off <= DUAL, f"{prefix}dual mass", f"off by {off:.3g} relative")
    worst = equation_error(listed, dual)
    found.check(worst <= DUAL, f"{prefix}dual equations", f"off by {worst:.3g} relative")
    used = np.flatnonzero(dual)
    cost, values = listed.cost[used], Numbers.of(dual[used])
    reached, size = cost @ values, float(cost.sizes() @ values)
    gap = abs(float(reached - truth.objective))
    allowed = OBJECTIVE * abs(float(truth.objective)) + 1e-8 * (size + float(truth.size))
    text = f"off by {gap:.3g} of {size:.3g}"
    found.check(gap <= allowed + listed.zero, f"{prefix}dual objective", text)
    try:
        shortest = least_norm(truth)
    except UndecidedError as problem:
        found.notes.append(str(problem))
        return
    norm = float(np.linalg.norm([float(value) for value in shortest.values()]))
    longer = float(np.linalg.norm(dual)) / norm - 1.0
    found.check(longer <= DUAL, f"{prefix}dual norm", f"longer by {longer:.3g} relative")


def equation_error(listed: Listed, dual: Floats) -> float:
    """Return the largest error of rows' dual = moments, relative to the terms of an equation."""
    used = np.flatnonzero(dual)
    values = Numbers.of(dual[used])
    worst = 0.0
    for k, scale in enumerate(listed.rows.scales):
        column = listed.rows.columns[used, k]
        reached = Fraction(int(column @ values.parts), values.scale) / scale
        terms = Fraction(int(np.abs(column) @ values.parts), values.scale) / scale
        largest = max((abs(int(part)) for part in listed.rows.columns[:, k]), default=0)
        size = float(terms) + abs(float(listed.moments[k])) + float(Fraction(largest) / scale)
        error = abs(float(reached - listed.moments[k]))
        worst = max(worst, error / size if size else 0.0)
    return worst
