"""Checking the certificate of a linear model: its multipliers add up, its policy is simulated."""

from __future__ import annotations

import numpy as np

from bellweight.basis import Affine
from bellweight.certificates.certificate import SIMULATED, TOLERANCE, Certificate
from bellweight.certificates.claims import (
    COROLLARY,
    WORDS,
    Check,
    near,
    proven_text,
    same,
    statement,
    without,
)
from bellweight.certificates.enclosure import gamma
from bellweight.certificates.reachable_box import reachable_box
from bellweight.certificates.record import Record
from bellweight.certificates.weak_duality import least_slack
from bellweight.common.checks import FloatArray
from bellweight.common.status import FileError
from bellweight.evaluation.evaluate import evaluate
from bellweight.models import LinearModel
from bellweight.policies import DualSoftmax, Greedy, Policy, Support, Uniform
from bellweight.program import PricedRows
from bellweight.simulation import one_sided

_MOST_STEPS = 10**10  # simulated steps that a certificate may ask for


def linear_checks(certificate: Certificate, model: LinearModel) -> tuple[list[Check], list[str]]:
    """Add up what the multipliers prove, and simulate again on the certificate's own streams."""
    record = Record(certificate.record)
    coef = record.coefficients(model.dimension + 1)
    solved = record.numbers("solved", model.dimension + 1)
    violation, note = _largest_violation(model, record, coef)
    initial, before = (float(r[0] + model.initial_mean @ r[1:]) for r in (coef, solved))
    size = abs(coef[0]) + float(np.abs(model.initial_mean) @ np.abs(coef[1:]))
    value = initial - violation / (1.0 - model.discount) - gamma(len(coef) + 16) * size
    cost = max(_simulated_cost(certificate, model, record), value)
    unit = abs(cost)
    scale = TOLERANCE * max(unit, abs(value))
    checks = [
        same("kind", certificate.kind, "estimated"),
        same("value_kind", certificate.value_kind, "exact"),
        same("reason", certificate.reason, SIMULATED),
        same("evidence", certificate.evidence, {}),
        *without(certificate, *COROLLARY),
        *statement(certificate, value, cost, 0.0, unit, 0.0),
        near("violation", certificate.violation, violation, scale * (1.0 - model.discount)),
        near("repair", certificate.repair, before - value, scale),
    ]
    notes = [
        proven_text(value, cost, certificate.confidence),
        note,
        "not independent: the box of reachable states, the simulator and its policies are those of "
        "certify, and the random streams are the certificate's own",
        f"{WORDS}, and record.moments, which the statement does not use",
    ]
    return checks, notes


def _largest_violation(
    model: LinearModel, record: Record, coef: FloatArray
) -> tuple[float, str]:  # fmt: skip
    box = reachable_box(model)
    if record.entries.get("multipliers") is not None:
        multipliers = record.numbers("multipliers", len(model.row_upper))
        least = least_slack(model, coef, box, multipliers)
        return max(0.0, -least), "independent: multipliers prove the largest violation"
    rows = PricedRows(lower=box[0], upper=box[1], kernel=False).on(model, Affine())
    note = "not independent: the largest violation comes from the solver that certify uses"
    return rows.largest_violation(coef)[0], note


def _simulated_cost(certificate: Certificate, model: LinearModel, record: Record) -> float:
    """Return the upper confidence limit of the policy's cost over all time."""
    episodes, horizon = certificate.episodes, certificate.horizon
    if episodes is None or horizon is None or certificate.confidence is None:
        raise FileError("episodes, horizon or confidence are missing, so nothing can be simulated")
    if episodes * horizon > _MOST_STEPS:
        raise FileError(
            f"{episodes:,} episodes of {horizon:,} steps are more than {_MOST_STEPS:,} steps, "
            "which are not simulated again"
        )
    policy = _linear_policy(model, record.part("policy"))
    again = evaluate(model, policy, episodes, horizon=horizon, seed=certificate.seed)
    if again.tail_bound is None:
        raise FileError(f"the cost after the horizon is not known: {again.tail_reason}")
    margin = one_sided(again.half_width, again.episodes, certificate.confidence)
    return again.mean + margin + again.tail_bound


def _linear_policy(model: LinearModel, policy: Record) -> Policy:
    """Build the very policy that the certificate is about."""
    kind = policy.text("kind")
    if kind == "uniform":
        return Uniform()
    if kind == "greedy":
        coef = policy.numbers("coef", model.dimension + 1)
        ties = None
        if policy.entries.get("preference") is not None:
            ties = policy.numbers("preference", model.n_action_variables)
        return Greedy(basis=Affine(), coef=coef, preference=ties, model=model)
    if kind != "softmax":
        raise policy.unknown()
    values = policy.numbers("values")
    dual = Support(
        policy.table("states", len(values), model.dimension),
        policy.table("actions", len(values), model.n_action_variables),
        values,
    )
    temperature, extra = policy.number("temperature"), policy.number("smoothing_mass", least=0.0)
    if temperature <= 0.0 or (values < 0.0).any():
        raise FileError("the softmax has a temperature of zero or below, or a negative dual")
    wrong = model.inadmissible(dual.states, dual.actions)
    if wrong is not None:
        raise FileError(f"the softmax takes an action that is not admissible: {wrong[1]}")
    target = _linear_policy(model, policy.part("target"))
    return DualSoftmax(dual, target, temperature, extra)
