"""Checking the certificate of a tabular model: all its numbers, computed again.

`enclosure.py` evaluates the described values, rows and policies with an error bound on its own
arithmetic. Nothing here uses a row source, a linear program or occupancy code.
"""

from __future__ import annotations

import numpy as np

from bellweight.certificates.certificate import BEYOND, OTHER_POLICY, TOLERANCE, Certificate
from bellweight.certificates.claims import (
    COROLLARY,
    WORDS,
    Check,
    between,
    near,
    possible_reason,
    proven_text,
    same,
    statement,
    unproven,
    without,
)
from bellweight.certificates.enclosure import (
    Described,
    described,
    feasible,
    followed_chain,
    gamma,
    policy_cost,
)
from bellweight.certificates.record import Record
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import FileError
from bellweight.models import TabularModel

_ROUNDED = 2.0**-53  # of a coefficient: what rounding may take from it
_GENEROUS = 32.0  # times the error found here: what a claim may be rounded up by
_FINE = 1.0 / 16.0  # of what is tolerated: errors below this are not looked at more closely


def table_checks(certificate: Certificate, model: TabularModel) -> tuple[list[Check], list[str]]:
    """Compute everything again, and compare; return the checks and what else there is to know."""
    if certificate.kind == "unproven":
        known = certificate.reason.startswith(f"{BEYOND} (")
        return unproven(certificate, known=known, simulation=())
    record = Record(certificate.record)
    coef = record.coefficients()
    chances = _chances(model, record.part("policy"))
    followed = followed_chain(model, chances)
    costs = policy_cost(model, followed)
    cost, error, unit = costs.cost, costs.error, costs.size
    basis = described(model, record.part("basis"), len(coef))
    values = basis.values(coef, _rest(record, coef))
    plain = abs(float(model.initial @ values.plain))
    found = feasible(model, values, _FINE * TOLERANCE * max(abs(cost), plain))
    checks = [
        same("kind", certificate.kind, "exact"),
        same("value_kind", certificate.value_kind, "exact"),
        *without(certificate, "confidence", "episodes", "horizon"),
        same("seed", certificate.seed, 0),
        same("evidence", certificate.evidence, {}),
        *statement(
            certificate, found.value, cost, error, unit, costs.rounding, _GENEROUS * found.rounding
        ),
        *_repair(certificate, model, record, basis, found.value, unit),
    ]
    notes = [proven_text(found.value, cost + error), WORDS]
    loss = _per_state(model, chances * found.residual)
    rounding = _per_state(model, chances * found.error)
    if "weights" in record:
        checks.append(same("reason", certificate.reason, ""))
        own, terms = _corollary(certificate, model, record, basis, chances, loss, rounding)
        checks += terms
        implied = min(own, cost + error - found.value)
        checks.append(_follows(certificate, implied, abs(cost), 2.0 * error))
        return checks, notes
    checks.append(possible_reason(certificate, certificate.reason in ("", OTHER_POLICY)))
    checks += without(certificate, *COROLLARY)
    return checks, [*notes, "record.moments have no weights to be compared with"]


def _rest(record: Record, coef: FloatArray) -> FloatArray | None:
    """Return what rounding takes from the coefficients, where that is recorded."""
    if "rest" not in record:
        return None
    rest = record.numbers("rest", len(coef))
    if (np.abs(rest) > _ROUNDED * np.abs(coef)).any():
        raise FileError("record.rest is more than rounding takes from the coefficients")
    return rest


def _repair(
    certificate: Certificate,
    model: TabularModel,
    record: Record,
    basis: Described,
    value: float,
    unit: float,
) -> list[Check]:
    """Compare what is said of the program's own coefficients, before the repair."""
    values = basis.values(record.numbers("solved", basis.n_basis))
    before = feasible(model, values, np.inf)
    plain = float(model.initial @ values.plain)
    size = float(model.initial @ values.size)
    error = gamma(model.n_states + values.n_terms + 16) * size
    allowed = TOLERANCE * max(unit, abs(value)) + error
    largest = TOLERANCE * before.violation + 2.0 * float(before.error.max())
    return [
        near("violation", certificate.violation, before.violation, largest),
        near("repair", certificate.repair, plain - value, allowed),
    ]


def _corollary(
    certificate: Certificate,
    model: TabularModel,
    record: Record,
    basis: Described,
    chances: FloatArray,
    loss: FloatArray,
    rounding: FloatArray,
) -> tuple[float, list[Check]]:
    """Compare the terms of the corollary, and how the claimed bound is made of them.

    The first is the corollary's bound with every term rounded up here.
    """
    weights = record.numbers("weights", model.n_states)
    # What rows may miss of a sum of one an occupancy misses in every step.
    allowed = tolerances.PROBABILITY / (1.0 - model.discount)
    if weights.min() < 0.0 or abs(weights.sum() - 1.0) > allowed:
        raise FileError("the weights are not a distribution over the states")
    _check_moments(record, basis, weights)
    generated = _chances(model, record.part("generated"))
    followed = followed_chain(model, generated)
    occupancy = followed.occupancy
    mismatch = float(np.abs(occupancy - weights).sum())
    differ = np.maximum(1.0 - _per_state(model, chances * generated), 0.0)
    disagreement = float(occupancy @ differ)
    weighted, largest = float(weights @ loss), float(loss.max())
    share, off = 1.0 + gamma(model.n_states + 16), followed.occupancy_error
    own = _composition(
        share * float(weights @ np.maximum(loss + rounding, 0.0)),
        float((loss + rounding).max()),
        share * mismatch + off,
        share * disagreement + off * float(differ.max()),
        model.discount,
    )
    # An occupancy has mass one: that is the scale of the two terms that are made of it.
    return share * own, [
        between(
            "weighted_residual", certificate.weighted_residual, weighted,
            weighted - float(weights @ rounding),
            weighted + _GENEROUS * float(weights @ rounding),
        ),
        between(
            "residual_sup", certificate.residual_sup, largest,
            float((loss - rounding).max()), float((loss + _GENEROUS * rounding).max()),
        ),
        near("mismatch", certificate.mismatch, mismatch, TOLERANCE + _GENEROUS * off),
        near("disagreement", certificate.disagreement, disagreement, TOLERANCE + _GENEROUS * off),
        _composed(certificate, model.discount),
    ]  # fmt: skip


def _composition(
    weighted: float, largest: float, mismatch: float, disagreement: float, discount: float
) -> float:
    """Return the corollary's bound, made of its terms."""
    left = 1.0 - discount
    return (weighted + largest * (mismatch + 2.0 * discount * disagreement / left)) / left


def _composed(certificate: Certificate, discount: float) -> Check:
    """Compare the corollary's bound with the sum of its terms, each of which is checked alone."""
    terms = [
        certificate.weighted_residual,
        certificate.residual_sup,
        certificate.mismatch,
        certificate.disagreement,
    ]
    if any(term is None for term in terms):
        return Check("greedy_bound", certificate.greedy_bound, "terms are missing", passed=False)
    weighted, largest, mismatch, disagreement = (float(term or 0.0) for term in terms)
    total = _composition(weighted, largest, mismatch, disagreement, discount)
    return near("greedy_bound", certificate.greedy_bound, total, TOLERANCE * abs(total))


def _follows(certificate: Certificate, bound: float, unit: float, error: float) -> Check:
    """Check that the loss is at most the corollary's bound.

    It follows from the theorem's bound found here, or from the corollary's own terms. The error of
    the arithmetic here is allowed for.
    """
    claimed = certificate.greedy_bound
    allowed = TOLERANCE * max(unit, abs(bound)) + error
    implied = claimed is not None and claimed >= bound - allowed
    return Check("loss at most", claimed, f"at most {bound:.6g}", bool(implied))


def _check_moments(record: Record, basis: Described, weights: FloatArray) -> None:
    stated = record.numbers("moments", basis.n_basis)
    found, size = basis.moments(weights)
    wrong = np.flatnonzero(~(np.abs(found - stated) <= tolerances.MOMENTS_VERIFIED * size))
    if len(wrong) > 0:
        k = wrong[0]
        raise FileError(
            f"record.moments[{k}] is {stated[k]:.6g}, but the weights have {found[k]:.6g}"
        )


def _chances(model: TabularModel, policy: Record) -> FloatArray:
    """Return the probability of each pair's action, checked to be a distribution."""
    kind = policy.text("kind")
    counts = np.diff(model.pair_start)
    if kind == "uniform":
        return np.repeat(1.0 / counts, counts)
    if kind == "actions":
        actions = policy.whole("actions", model.n_states, model.n_actions)
        chances = (model.pair_action == actions[model.pair_state]).astype(np.float64)
    elif kind == "probabilities":
        chances = policy.numbers("chances", model.n_pairs)
    elif kind == "softmax":
        chances = _softmax(model, policy)
    else:
        raise policy.unknown()
    totals = _per_state(model, chances)
    if not (chances.min() >= 0.0 and np.abs(totals - 1.0).max() <= tolerances.PROBABILITY):
        raise FileError("the policy is not a distribution over admissible actions in every state")
    # Missing probability would count as a cost of zero.
    return chances / totals[model.pair_state]


def _softmax(model: TabularModel, policy: Record) -> FloatArray:
    chances = _chances(model, policy.part("target")).copy()
    values = policy.numbers("values")
    states = policy.whole("states", len(values), model.n_states)
    actions = policy.whole("actions", len(values), model.n_actions)
    temperature, extra = policy.number("temperature"), policy.number("smoothing_mass", least=0.0)
    if temperature <= 0.0 or (values < 0.0).any():
        raise FileError("the softmax has a temperature of zero or below, or a negative dual")
    dual: dict[int, dict[int, float]] = {}
    for x, a, value in zip(states.tolist(), actions.tolist(), values.tolist(), strict=True):
        dual.setdefault(x, {})[a] = value
    for x, by_action in dual.items():
        pairs = slice(model.pair_start[x], model.pair_start[x + 1])
        part = np.array([by_action.get(int(a), 0.0) for a in model.pair_action[pairs]])
        share = part.sum() / (part.sum() + extra)
        weight = np.exp((part - part.max()) / temperature)
        chances[pairs] = share * weight / weight.sum() + (1.0 - share) * chances[pairs]
    return chances


def _per_state(model: TabularModel, values: FloatArray) -> FloatArray:
    return np.bincount(model.pair_state, weights=values, minlength=model.n_states).astype(float)
