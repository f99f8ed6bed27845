"""Beyond the paper where the optimum is known: bases that grow, relatives, steps."""

from __future__ import annotations

import time
from typing import Any

from bellweight import exact
from bellweight.basis import Affine, Polynomial
from bellweight.models import TabularModel
from bellweight.plans.enrichment import Enriched
from bellweight.plans.relatives import PointwiseMaximum, SelfGuided, SmoothedALP
from bellweight.problems import scheduling, single_queue
from bellweight.reproduce.runs import solved, without_warnings
from bellweight.solve import solve
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy
from bellweight.weights.steps import Adaptive, Anderson
from studies.beyond.network import Entry

QUEUE = "single queue, empty system"
CLINIC = "tiny clinic"
_CAPACITY = 199  # of the queue on which relatives are compared


def models() -> dict[str, TabularModel]:
    """Return the models on which bases grow."""
    return {QUEUE: single_queue(initial="empty"), CLINIC: scheduling("tiny").to_tabular(clip=True)}


def optimal_cost(model: TabularModel) -> float:
    """Return the optimal cost from the initial distribution."""
    return float(model.initial @ exact.optimal(model).values)


def bases() -> list[Entry]:
    """Return how far a basis of degree one gets by growing."""
    found = []
    for name, model in models().items():
        began = time.perf_counter()
        grown = solve(model, Polynomial(1), Enriched())
        optimum = optimal_cost(model)
        needed = next(
            (r.total for r in grown.rounds if r.cost.mean <= optimum * (1.0 + 1e-6)), None
        )
        numbers = {
            "start": grown.rounds[0].cost.mean,
            "cost": grown.cost.mean,
            "optimum": optimum,
            "added": len(grown.added),
            "needed": needed,
            "lower_bound": grown.lower_bound,
            "seconds": time.perf_counter() - began,
        }
        found.append(Entry("basis", None, name, numbers))
    return found


def relatives() -> list[Entry]:
    """Return relatives on a queue whose optimum is known."""
    model, basis = single_queue(capacity=_CAPACITY), Polynomial(2)
    plans: dict[str, Any] = {
        "Plain ALP": Fixed("initial"),
        "Smoothed ALP, budget 1": SmoothedALP(budget=1.0, weights=DIA()),
        "Pointwise maximum of three": PointwiseMaximum(
            methods=[Fixed("initial"), Fixed("uniform"), FromPolicy()]
        ),
        "Self-guided, 30 random features": SelfGuided(features=10, batches=3),
    }
    optimum, found = optimal_cost(model), []
    for name, plan in plans.items():
        with without_warnings():
            answer = solve(model, basis, plan, judge=False)
        numbers = {"cost": answer.cost.mean, "lower_bound": answer.lower_bound, "optimum": optimum}
        found.append(Entry("small relatives", None, name, numbers))
    return found


def steps() -> list[Entry]:
    """Return how the weight iteration goes with other steps, and what averaging a cycle gives."""
    queue, clinic = single_queue(capacity=999), models()[CLINIC]
    runs: dict[str, tuple[TabularModel, Any, Any]] = {
        "DIA on the queue, step 0.5": (queue, Polynomial(3), DIA(step_size=0.5)),
        "DIA on the queue, adaptive from 0.5": (
            queue, Polynomial(3), DIA(step_size=Adaptive(first=0.5))),
        "DIA on the queue, Anderson at 0.5": (
            queue, Polynomial(3), DIA(step_size=Anderson(step_size=0.5))),
        "PIA on the tiny clinic, best phase": (clinic, Affine(), PIA()),
        "PIA on the tiny clinic, average": (clinic, Affine(), PIA(cycles="average")),
        "PIA on the tiny clinic, adaptive": (clinic, Affine(), PIA(step_size=Adaptive())),
        "DIA on the tiny clinic": (clinic, Affine(), DIA()),
    }  # fmt: skip
    found = []
    for name, (model, basis, method) in runs.items():
        result = solved(model, basis, method)
        numbers = {
            "iterations": len(result.history),
            "status": result.status.name,
            "residual": result.reported.one_norm,
            "cost": result.cost and result.cost.mean,
        }
        found.append(Entry("steps", None, name, numbers))
    return found
