"""One backend for each kind of model: everything that depends on the kind, behind one interface.

A new kind of model is a new file here and a line in `KINDS`. Nothing outside this room and the
models' own files asks what kind of model it has.
"""

from __future__ import annotations

from typing import Any

from bellweight.backends.backend import Backend, Visited
from bellweight.backends.estimate import Estimate
from bellweight.backends.event import EventBackend
from bellweight.backends.factored import FactoredBackend
from bellweight.backends.linear import LinearBackend
from bellweight.backends.setup import (
    Evidence,
    Iterate,
    Outside,
    Point,
    RunSettings,
    Setup,
    Solvable,
)
from bellweight.backends.step import StepBackend
from bellweight.backends.tabular import TabularBackend
from bellweight.basis import Basis
from bellweight.common.status import ArgumentError, BellweightError
from bellweight.models import EventModel, FactoredModel, LinearModel, StepModel, TabularModel
from bellweight.models.kinds import entry_for
from bellweight.policies import Policy
from bellweight.simulation import Occupancy, Simulation

__all__ = [
    "KINDS",
    "Backend",
    "Estimate",
    "Evidence",
    "Iterate",
    "Outside",
    "Point",
    "RunSettings",
    "Setup",
    "Solvable",
    "Visited",
    "backend_of",
    "listed",
    "simulated_occupancy",
]

KINDS: dict[type, Any] = {
    TabularModel: TabularBackend,
    EventModel: EventBackend,
    LinearModel: LinearBackend,
    StepModel: StepBackend,
    FactoredModel: FactoredBackend,
}


def backend_of(model: Any) -> Backend[Any]:
    """Return the backend of a model."""
    found: Backend[Any] = entry_for(model, KINDS)(model)
    return found


def listed(model: Any, message: str, error: type[BellweightError] = ArgumentError) -> TabularModel:
    """Return a model whose states are listed; raise an error with this message otherwise."""
    if not isinstance(model, TabularModel):
        raise error(message)
    return model


def simulated_occupancy(
    model: Any,
    policy: Policy,
    basis: Basis,
    simulation: Simulation | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
) -> Occupancy:
    """Return the estimated moments of a policy's occupancy, with standard errors."""
    settings = simulation or Simulation()
    return backend_of(model).estimated_occupancy(policy, basis, settings, seed, jobs)
