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
from bellweight.certificates.simulated_policy import simulated_cost
from bellweight.certificates.weak_duality import least_slack
from bellweight.common.checks import FloatArray
from bellweight.models import LinearModel
from bellweight.policies import Policy
from bellweight.program import PricedRows


def linear_checks(
    certificate: Certificate, model: LinearModel, policy: Policy | None
) -> tuple[list[Check], list[str]]:
    """Add up what the multipliers prove, and simulate again on the certificate's own streams."""
    record = Record(certificate.record)
    coef = record.coefficients(model.dimension + 1)
    solved = record.numbers("solved", model.dimension + 1)
    violation, note = _largest_violation(model, record, coef)
    initial, before = (float(r[0] + model.initial_mean @ r[1:]) for r in (coef, solved))
    size = abs(coef[0]) + float(np.abs(model.initial_mean) @ np.abs(coef[1:]))
    value = initial - violation / (1.0 - model.discount) - gamma(len(coef) + 16) * size
    cost = max(simulated_cost(certificate, model, policy), value)
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
