"""What `verify` compares: a term that a certificate claims, and what was found for it.

A claim is compared with what was found, never with another claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.certificates.certificate import TOLERANCE, Certificate
from bellweight.certificates.record import Record

COROLLARY = ("greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement")
WORDS = "only the checksum covers record.names, record.method and model_name, which prove nothing"
_FINEST = 2.0**-60  # of numbers that cancel: far less than a double holds of them


@dataclass(frozen=True)
class Check:
    """One term: what the certificate claims and what was found."""

    term: str
    claimed: Any
    found: Any
    passed: bool


def same(term: str, claimed: Any, found: Any) -> Check:
    """Compare a claim that must be found exactly."""
    return Check(term, claimed, found, claimed == found)


def same_digest(term: str, claimed: str, found: str) -> Check:
    """Compare fingerprints, of which the first letters are shown."""
    return Check(term, claimed[:12], found[:12], claimed == found)


def near(term: str, claimed: Any, found: float, allowed: float) -> Check:
    """Compare a claim with what was found; the tolerance is relative to what was found."""
    close = claimed is not None and abs(claimed - found) <= allowed
    return Check(term, claimed, found, bool(close and np.isfinite(found) and np.isfinite(allowed)))


def between(term: str, claimed: Any, found: float, low: float, high: float) -> Check:
    """Compare a claim that is rounded up with what was found, which lies between two limits."""
    allowed = TOLERANCE * abs(found)
    return _within(term, claimed, found, low - allowed, high + allowed)


def _within(term: str, claimed: Any, found: float, low: float, high: float) -> Check:
    close = claimed is not None and low <= claimed <= high
    return Check(term, claimed, found, bool(close and np.isfinite(low) and np.isfinite(high)))


def without(certificate: Certificate, *terms: str) -> list[Check]:
    """Check that terms which cannot be computed here are not claimed either."""
    return [same(term, getattr(certificate, term), None) for term in terms]


def complete(certificate: Certificate, terms: Sequence[str]) -> list[Check]:
    """Check that terms which the statement needs are there."""
    told = {term: getattr(certificate, term) for term in terms}
    return [Check(term, value, "needed", value is not None) for term, value in told.items()]


def possible_reason(certificate: Certificate, known: bool) -> Check:
    """Check that the stated reason is one that `certify` gives."""
    return Check("reason", certificate.reason, "known" if known else "unknown here", known)


def statement(
    certificate: Certificate,
    value: float,
    cost: float,
    error: float,
    unit: float,
    rounding: float,
    lowered: float = 0.0,
) -> list[Check]:
    """Compare what is stated: the optimum is above `value`, the policy costs at most `cost`.

    `error` bounds the error of the cost found here. What claims too much may be off by little, what
    claims less by more: by the rounding of numbers of size `unit`, by `rounding` of the cost, and
    for the value by what it was `lowered` out of caution.
    """
    little = TOLERANCE * max(abs(cost), abs(value)) + _FINEST * unit
    more = TOLERANCE * max(unit, abs(value)) + 2.0 * error + rounding
    bound = cost + error - value
    return [
        _within("value", certificate.value, value, value - more - lowered, value + little),
        _within(
            "cost", certificate.cost, cost + error, cost - error - TOLERANCE * abs(cost),
            cost + error + TOLERANCE * unit + 2.0 * error + rounding,
        ),
        _within(
            "bound", certificate.bound, bound, bound - 2.0 * error - little, bound + more + lowered
        ),
    ]  # fmt: skip


def proven_text(value: float, cost: float, confidence: float | None = None) -> str:
    """Return the sentence on what was proven here."""
    sure = "" if confidence is None else f", with {100.0 * confidence:g} % confidence"
    return (
        f"proven here: the optimum lies between {value:.10g} and {cost:.10g}, so the policy loses "
        f"at most {cost - value:.6g}{sure}"
    )


def unproven(
    certificate: Certificate,
    *,
    known: bool,
    value_kind: str = "unproven",
    simulation: tuple[str, ...] = ("episodes", "horizon"),
) -> tuple[list[Check], list[str]]:
    """Check that no loss is claimed to be proven, and that the stated reason is a possible one.

    `simulation` are the terms that say how the cost was simulated, if it was.
    """
    record = Record(certificate.record)
    record.coefficients()
    record.part("policy").text("kind")
    checks = [
        same("kind", certificate.kind, "unproven"),
        same("value_kind", certificate.value_kind, value_kind),
        *without(certificate, "bound", *COROLLARY, "violation", "confidence"),
        same("repair", certificate.repair, 0.0),
        possible_reason(certificate, known),
        *complete(certificate, simulation),
    ]
    notes = [
        "nothing is proven about the loss, and nothing of that kind is claimed",
        f"{WORDS}, and cost, evidence, episodes, horizon, seed, record.moments and policy, and "
        "value and record.coef where value_kind is unproven: from them nothing follows",
    ]
    return checks, notes
