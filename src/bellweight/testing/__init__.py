"""Conformance checks that users run on their own models, bases and policies.

    bw.testing.check_model(model)
    bw.testing.check_basis(model, basis)
    bw.testing.check_policy(model, policy)

Each looks for what the solver relies on and raises the matching error, which says what is wrong,
where, what was found and what to do. Otherwise it returns a short report of what was looked at,
with notes on what is allowed but worth knowing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.backends import backend_of
from bellweight.basis import Basis
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, dense, first_index
from bellweight.common.status import BasisError, PolicyError
from bellweight.models import (
    EventModel,
    FactoredModel,
    LinearModel,
    Model,
    StepModel,
    TabularModel,
)
from bellweight.models.kinds import entry_for
from bellweight.policies import Policy
from bellweight.program import conditioning
from bellweight.testing.event import check_event_policy, check_events, visited_states
from bellweight.testing.factored import check_factors
from bellweight.testing.linear import LinearSample, check_linear, check_linear_policy
from bellweight.testing.report import Report
from bellweight.testing.step import check_steps
from bellweight.testing.tabular import check_tabular, check_tabular_policy

__all__ = ["Report", "check_basis", "check_model", "check_policy"]

_SAMPLE = 512


@dataclass(frozen=True)
class _Kind:
    """How models of a kind and their policies are checked, and states to try a basis on."""

    model: Callable[[Any], Report]
    policy: Callable[[Policy, Any, str], Report]
    points: Callable[[Any], FloatArray]


def _given_by_functions(check: Callable[[Any], Report]) -> _Kind:
    return _Kind(check, check_event_policy, lambda model: visited_states(model).astype(np.float64))


_KINDS = {
    TabularModel: _Kind(check_tabular, check_tabular_policy, lambda model: model.states),
    EventModel: _given_by_functions(check_events),
    StepModel: _given_by_functions(check_steps),
    FactoredModel: _given_by_functions(check_factors),
    LinearModel: _Kind(check_linear, check_linear_policy, lambda model: LinearSample(model).states),
}


def check_model(model: Model) -> Report:
    """Check that a model is one: data or functions, values, kernels, and for data its file."""
    return entry_for(model, _KINDS).model(model)


def check_basis(model: Model, basis: Basis) -> Report:
    """Check that a basis suits a model: shapes, repeatability, bounds, the constant in its span."""
    if not isinstance(basis, Basis):
        raise BasisError(f"basis is {basis!r}, expected a basis such as Polynomial(3)")
    check_model(model)
    points = entry_for(model, _KINDS).points(model)
    _check_functions(basis.on(points.copy()), points)
    rows = backend_of(model).some_rows(basis, points)
    rows.constant()
    names = rows.names
    if len(names) != rows.n_basis:
        raise BasisError(f"{len(names)} names for {rows.n_basis} functions: give one name for each")
    notes = []
    if not rows.is_sparse:
        kept = conditioning.independent_columns(rows.triangle(None))
        dropped = [names[k] for k in np.setdiff1d(np.arange(rows.n_basis), kept)]
        if dropped:
            notes.append(
                f"depends on earlier functions and will be dropped: {', '.join(dropped[:5])}"
            )
    checked = (
        f"{rows.n_basis} functions, finite in {len(points):,} states",
        "the same for one state as for many, and when called again; states are left alone",
        "the constant is in the span",
        "names and bounds",
    )
    return Report(f"{type(basis).__name__} on {model.name}", checked, tuple(notes))


def check_policy(model: Model, policy: Policy) -> Report:
    """Check that a policy acts on a model: a distribution in every state, admissible actions."""
    if not isinstance(policy, Policy):
        raise PolicyError(
            f"policy is {policy!r}, expected a bellweight policy: use TablePolicy or Rule"
        )
    check_model(model)
    return entry_for(model, _KINDS).policy(
        policy, model, f"{type(policy).__name__} on {model.name}"
    )


def _check_functions(basis: Basis, points: FloatArray) -> None:
    """Check that the functions treat each state by itself, repeatably, and leave it alone."""
    given = points.copy()
    whole = dense(basis(given))
    if not np.array_equal(given, points):
        x = int(np.argmax((given != points).any(axis=1)))
        raise BasisError(
            f"the basis changes the states it is given: state {points[x].tolist()} became "
            f"{given[x].tolist()}: work on a copy"
        )
    some = np.unique(np.linspace(0, len(points) - 1, _SAMPLE).astype(np.int64))
    pieces = np.vstack([dense(basis(points[x : x + 1])) for x in some])
    again = dense(basis(points[some]))
    for found, how in ((again, "when asked again"), (pieces, "when asked for alone")):
        if found.shape != (len(some), whole.shape[1]):
            raise BasisError(
                f"the basis returns shape {found.shape} for {len(some)} states {how}, expected "
                f"({len(some)}, {whole.shape[1]}): one row per state, the same columns always"
            )
        wrong = first_index(
            ~np.isclose(found, whole[some], rtol=tolerances.REPEATED, atol=0.0, equal_nan=True)
        )
        if wrong is not None:
            x, k = some[wrong[0]], wrong[1]
            raise BasisError(
                f"basis function {k} at state {points[x].tolist()} is {whole[x, k]} at first and "
                f"{found[wrong]} {how}, expected the same: let each row depend on its state only"
            )
