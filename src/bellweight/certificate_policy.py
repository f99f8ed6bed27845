"""Bases and policies as plain data, so that a certificate can be checked by somebody else."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bellweight.basis import Basis, Indicator
from bellweight.models import TabularModel
from bellweight.policy import DualSoftmax, Policy, Uniform, checked_probabilities
from bellweight.status import BasisError

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
        features = basis.on(model.states)(model.states)
        dense = features.toarray() if sparse.issparse(features) else np.asarray(features)
        if dense.size > _MOST_ENTRIES:
            return {"kind": "unknown"}
        return {"kind": "features", "features": dense.tolist()}
    exponents = [[word.count(i) for i in range(dimension)] for word in words]
    return {"kind": "monomials", "exponents": exponents}


def describe_policy(model: TabularModel, policy: Policy) -> dict[str, Any]:
    """Return a policy as actions by state, as the softmax of a dual, or as probabilities."""
    if isinstance(policy, Uniform):
        return {"kind": "uniform"}
    if isinstance(policy, DualSoftmax):
        dual = policy.reaching(model)
        return {
            "kind": "softmax",
            "target": describe_policy(model, policy.target),
            "states": dual.indices(model).tolist(),
            "actions": dual.actions.tolist(),
            "values": dual.values.tolist(),
            "temperature": policy.temperature,
            "smoothing_mass": policy.smoothing_mass,
        }
    chances = checked_probabilities(model, policy)
    certain = np.flatnonzero(chances >= 1.0)
    if len(certain) == model.n_states:
        return {"kind": "actions", "actions": model.pair_action[certain].tolist()}
    return {"kind": "probabilities", "chances": chances.tolist()}
