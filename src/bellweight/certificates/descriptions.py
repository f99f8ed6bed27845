"""Bases and policies as plain data, so that a certificate can be checked by somebody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bellweight.basis import Basis, Indicator
from bellweight.basis.compiled import CompiledBasis
from bellweight.certificates.simulated_policy import describe_support
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, dense
from bellweight.common.status import BasisError
from bellweight.models import StepModel, TabularModel
from bellweight.models.kernels.layouts import CLIP, COORDINATE, HINGE
from bellweight.models.local import grid
from bellweight.policies import (
    DualSoftmax,
    Policy,
    TablePolicy,
    Uniform,
    by_state,
    checked_probabilities,
)
from bellweight.program import EliminatedRows, proof_text

_MOST_ENTRIES = 2_000_000


def describe_basis(model: TabularModel, basis: Basis) -> dict[str, Any]:
    """Return monomials as exponents, groups as numbers, anything else as its features."""
    if isinstance(basis, Indicator):
        groups = basis.on(model.states).groups
        return {"kind": "groups", "groups": np.asarray(groups).tolist()}
    dimension = model.states.shape[1]
    try:
        words = basis.words(dimension)
    except BasisError:
        features = dense(basis.on(model.states)(model.states))
        if features.size > _MOST_ENTRIES:
            reason = f"the features have {features.size:,} entries, too many to be recorded"
            return {"kind": "unknown", "reason": reason}
        return {"kind": "features", "features": features.tolist()}
    exponents = [[word.count(i) for i in range(dimension)] for word in words]
    return {"kind": "monomials", "exponents": exponents}


def describe_local_values(rows: EliminatedRows, coef: FloatArray) -> list[dict[str, Any]]:
    """Return the value function of coefficients as tables of a few coordinates each."""
    tables: dict[tuple[int, ...], FloatArray] = {}
    for part in rows.parts:
        points = grid(part.scope, rows.sizes).astype(np.float64)
        own = part.features(points) @ coef[list(part.columns)]
        tables[part.scope] = tables.get(part.scope, np.zeros(len(own))) + own
    return [
        {
            "scope": list(scope),
            "sizes": [int(rows.sizes[v]) for v in scope],
            "values": values.tolist(),
        }
        for scope, values in tables.items()
    ]


_TERMS = {COORDINATE: "coordinate", HINGE: "hinge", CLIP: "clip"}


def describe_terms(basis: Basis, dimension: int) -> list[dict[str, Any]]:
    """Return piecewise linear functions as plain data, the constant without a coordinate.

    With u = sum over j of weight_j x[index_j]: `coordinate` is u, `hinge` max(u - number, 0) and
    `clip` min(u, number).
    """
    found = []
    for term in CompiledBasis.of(basis, dimension).terms:
        if not term:
            found.append({"kind": "constant", "index": [], "weight": [], "number": 0.0})
            continue
        atom = term[0]
        weight = [float(w) for w in atom.weight] or [1.0] * len(atom.index)
        found.append({
            "kind": _TERMS[atom.kind], "index": [int(i) for i in atom.index], "weight": weight,
            "number": float(atom.number),
        })  # fmt: skip
    return found


def box_reason(model: StepModel) -> str:
    """Return what is proven of a step model over its box, and of which model."""
    kind, how = proof_text(model)
    least = f"no policy costs less than the value, {how}"
    if kind == "exact":
        return f"{least}; the policy's cost is simulated"
    return f"{least}; the policy's cost is simulated with the law itself"


def proper(model: TabularModel, policy: Policy) -> Policy:
    """Return a policy whose probabilities sum to one up to rounding; eight digits are allowed.

    What is missing of one would count as time without costs, for 1 / (1 - discount) steps.
    """
    chances = checked_probabilities(model, policy)
    totals = by_state(model, chances)
    if np.abs(totals - 1.0).max() <= tolerances.SUMS:
        return policy
    matrix = np.zeros((model.n_states, model.n_actions))
    matrix[model.pair_state, model.pair_action] = chances / totals[model.pair_state]
    return TablePolicy(matrix)


def describe_policy(model: TabularModel, policy: Policy) -> dict[str, Any]:
    """Return a policy as actions by state, as the softmax of a dual, or as probabilities."""
    if isinstance(policy, Uniform):
        return {"kind": "uniform"}
    if isinstance(policy, DualSoftmax):
        dual = policy.extended_dual(model)
        return {
            "kind": "softmax",
            "target": describe_policy(model, policy.target),
            **describe_support(replace(dual, states=dual.indices(model))),
            "temperature": float(policy.temperature),
            "smoothing_mass": float(policy.smoothing_mass),
        }
    chances = checked_probabilities(model, policy)
    certain = np.flatnonzero(chances >= 1.0)
    if len(certain) == model.n_states:
        return {"kind": "actions", "actions": model.pair_action[certain].tolist()}
    return {"kind": "probabilities", "chances": chances.tolist()}
