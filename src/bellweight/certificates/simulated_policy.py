"""Policies of models whose costs are simulated: as plain data, and their cost computed again."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.backends import backend_of
from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.certificates.certificate import Certificate
from bellweight.certificates.record import Record
from bellweight.common import files, identity
from bellweight.common.short import value_text
from bellweight.common.status import ArgumentError, FileError
from bellweight.evaluation.evaluate import evaluate
from bellweight.policies import DualSoftmax, Greedy, Policy, Support, Uniform
from bellweight.simulation import one_sided

_MOST_STEPS = 10**10  # simulated steps that a certificate may ask for
_OWN = "own"

AnyModel = Any
"""A model whose costs are simulated: linear, or one that is given by functions."""


def describe_support(dual: Support) -> dict[str, Any]:
    """Return where a dual has mass."""
    parts = {"states": dual.states, "actions": dual.actions, "values": dual.values}
    return {name: np.asarray(part).tolist() for name, part in parts.items()}


def describe_simulated(policy: Policy) -> dict[str, Any]:
    """Return a policy with all that decides its actions, or the digest of one that no file holds.

    Where two actions are equally good, a greedy policy prefers one by its dual or, on linear
    models, by its preference.
    """
    if isinstance(policy, Uniform):
        return {"kind": "uniform"}
    if isinstance(policy, Greedy):
        basis = files.to_plain(policy.basis)
        if files.is_whole(basis):
            ties, dual = policy.preference, policy.dual
            return {
                "kind": "greedy",
                "basis": basis,
                "coef": np.asarray(policy.coef).tolist(),
                "preference": None if ties is None else np.asarray(ties).tolist(),
                "dual": None if dual is None else describe_support(dual),
            }
    target = describe_simulated(policy.target) if isinstance(policy, DualSoftmax) else {}
    if isinstance(policy, DualSoftmax) and target["kind"] != _OWN:
        return {
            "kind": "softmax",
            "target": target,
            **describe_support(policy.dual),
            "temperature": float(policy.temperature),
            "smoothing_mass": float(policy.smoothing_mass),
            "extend": None if policy.extend is None else float(policy.extend),
        }
    text = f"a {type(policy).__name__} with functions of its own"
    return {"kind": _OWN, "text": text, "digest": identity.digest(policy)}


def simulated_cost(certificate: Certificate, model: AnyModel, given: Policy | None) -> float:
    """Return the upper confidence limit of the policy's cost over all time, simulated again.

    `given` is the policy where the certificate does not hold it.
    """
    episodes, horizon = certificate.episodes, certificate.horizon
    if episodes is None or horizon is None or certificate.confidence is None:
        raise FileError("episodes, horizon or confidence are missing, so nothing can be simulated")
    if episodes * horizon > _MOST_STEPS:
        raise FileError(
            f"{episodes:,} episodes of {horizon:,} steps are more than {_MOST_STEPS:,} steps, "
            "which are not simulated again"
        )
    policy = _the_policy(model, Record(certificate.record).part("policy"), given)
    again = evaluate(model, policy, episodes, horizon=horizon, seed=certificate.seed)
    if again.tail_bound is None:
        raise FileError(f"the cost after the horizon is not known: {again.tail_reason}")
    margin = one_sided(again.half_width, again.episodes, certificate.confidence)
    return again.mean + margin + again.tail_bound


def check_given(certificate: Certificate, policy: Policy | None) -> None:
    """Refuse a policy where the certificate holds its own, and what is no policy."""
    if policy is None:
        return
    if not isinstance(policy, Policy):
        raise ArgumentError(f"policy is {value_text(policy)}, expected a policy")
    told = certificate.record.get("policy")
    if not isinstance(told, dict) or told.get("kind") != _OWN:
        raise ArgumentError("policy is given, but the certificate holds its own: leave it out")


def _the_policy(model: AnyModel, policy: Record, given: Policy | None) -> Policy:
    """Return the very policy that the certificate is about."""
    if policy.text("kind") != _OWN:
        return _read_policy(model, policy)
    if given is None:
        raise FileError(
            f"the policy is {policy.text('text')}, which a certificate cannot hold: give it, as in "
            "verify(model, certificate, policy)"
        )
    if identity.digest(given) != policy.text("digest"):
        raise FileError("the given policy is not the one that the certificate is about")
    return given


def _read_policy(model: AnyModel, policy: Record) -> Policy:
    kind = policy.text("kind")
    if kind == "uniform":
        return Uniform()
    if kind == "greedy":
        return _greedy(model, policy)
    if kind != "softmax":
        raise policy.unknown()
    temperature, extra = policy.number("temperature"), policy.number("smoothing_mass", least=0.0)
    if temperature <= 0.0:
        raise FileError("the softmax has a temperature of zero or below")
    radius = None
    if policy.entries.get("extend") is not None:
        radius = policy.number("extend", least=0.0)
    target = _read_policy(model, policy.part("target"))
    return DualSoftmax(_support(model, policy), target, temperature, extra, radius)


def _greedy(model: AnyModel, policy: Record) -> Greedy:
    told, several = policy.part("basis"), policy.entries.get("coef")
    basis = files.from_plain(told.where, told.entries, Basis)
    width = len(CompiledBasis.of(basis, model.dimension).terms)
    rows = isinstance(several, list) and bool(several) and isinstance(several[0], list)
    coef = policy.table("coef", None, width) if rows else policy.numbers("coef", width)
    ties = dual = None
    if policy.entries.get("preference") is not None:
        ties = policy.numbers("preference", len(backend_of(model).action_names))
    if policy.entries.get("dual") is not None:
        dual = _support(model, policy.part("dual"))
    return Greedy(basis=basis, coef=coef, dual=dual, preference=ties, model=model)


def _support(model: AnyModel, record: Record) -> Support:
    values = record.numbers("values")
    states = record.table("states", len(values), model.dimension)
    if (values < 0.0).any():
        raise FileError(f"{record.where}.values has a negative dual")
    if not backend_of(model).acts_by_vectors:
        indices = record.whole("actions", len(values), model.n_actions)
        return Support(model.check_states(states), indices, values)
    vectors = record.table("actions", len(values), model.n_action_variables)
    wrong = model.inadmissible(states, vectors)
    if wrong is not None:
        raise FileError(f"the softmax takes an action that is not admissible: {wrong[1]}")
    return Support(states, vectors, values)
