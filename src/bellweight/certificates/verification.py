"""Checking a certificate: what it states must follow from what is computed here.

Every number is computed again from the model, and a claim is compared with what was found, never
with another claim. A certificate passes only if its statement follows: the optimum is at least
`value`, the policy costs at most `cost` and loses at most `bound`, within `TOLERANCE` of the cost
that was found. Other claims must be found again too; what is not checked is said.

What is independent of the code that made the certificate:

- Tabular models: everything but the arithmetic with twice the digits (`doubled.py`). `enclosure.py`
  evaluates the described values, rows and policies with an error bound on its own arithmetic and
  uses no row source, linear program or occupancy code.
- Linear models: the largest violation, where multipliers prove it (`weak_duality.py`); they may
  come from anywhere. Shared with `certify` are the box of reachable states (`reachable_box.py`),
  the simulator and its policies, and the pricing solver where no multipliers are recorded. The
  streams are the certificate's own. The outcome names each of them.
- Event and factored models of local parts: the largest violation over all states, from the recorded
  tables (`local_check.py`). Shared is the structure that the model declares; the simulated cost of
  the policy is not checked.
- Step models that declare bends in one dimension: the largest violation over the box, from the
  recorded functions (`box_check.py`). With other declarations rows are only looked at in many
  states, which the outcome says. The simulated cost of the policy is not checked.
- Unproven certificates state that nothing is proven about the loss; that is checked, and the value
  where it is said to be proven.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.backends import backend_of
from bellweight.basis import Affine
from bellweight.certificates.box_check import box_proof_of
from bellweight.certificates.certificate import (
    ALL_STATES,
    ENDLESS,
    GROWING,
    NO_BOX,
    OTHER_POLICY,
    PRICING,
    SAMPLED,
    SIMULATED,
    SIMULATED_INITIAL,
    TOLERANCE,
    Certificate,
)
from bellweight.certificates.descriptions import box_reason
from bellweight.certificates.enclosure import (
    Described,
    course,
    described,
    feasible,
    gamma,
    policy_cost,
)
from bellweight.certificates.fields import checksum, fault, read_fields
from bellweight.certificates.local_check import proof_of
from bellweight.certificates.reachable_box import reachable_box
from bellweight.certificates.record import Record
from bellweight.certificates.upper_cost import HORIZON
from bellweight.certificates.weak_duality import least_slack
from bellweight.common import identity, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, BellweightError, FileError
from bellweight.display import facts_text, number_text
from bellweight.evaluation.evaluate import evaluate
from bellweight.models import LinearModel, Model, StepModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies import DualSoftmax, Greedy, Policy, Support, Uniform
from bellweight.program import PricedRows, proof_text
from bellweight.simulation import one_sided

_GENEROUS = 32.0  # times the error found here: what a claim may be rounded up by
_FINE = 1.0 / 16.0  # of what is tolerated: errors below this are not looked at more closely
_MOST_STEPS = 10**10  # simulated steps that a certificate may ask for
_COROLLARY = ("greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement")
_WORDS = "only the checksum covers record.names, record.method and model_name, which prove nothing"


@dataclass(frozen=True)
class Check:
    """One term: what the certificate claims and what was found."""

    term: str
    claimed: Any
    found: Any
    passed: bool


@dataclass(frozen=True)
class Verification:
    """The outcome of `verify`: every check, whether all passed, and what else there is to know.

    `notes` say what was proven here, what was not checked, and what is not independent.
    """

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        held = sum(check.passed for check in self.checks)
        word = "PASS" if self.passed else "FAIL"
        told = [(word, f"{held} of {len(self.checks)} statements hold when computed again")]
        told += [
            (check.term, f"claimed {_short(check.claimed)}, found {_short(check.found)}")
            for check in self.checks
            if check.passed and check.term in _TOLD
        ]
        told += [
            ("FAIL", f"{check.term}: claimed {check.claimed}, found {check.found}")
            for check in self.checks
            if not check.passed
        ]
        return facts_text("", [*told, *(("note", note) for note in self.notes)])


_TOLD = ("kind", "value", "cost", "bound")


def _short(value: Any) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


def verify(model: Model, certificate: Certificate | str | os.PathLike[str]) -> Verification:
    """Compute a certificate again from the model, by other means, and compare term by term.

    Args:
        model: the model that the certificate speaks of.
        certificate: it, or the file of one.

    Returns:
        The statements with their verdicts; `passed` says whether all hold.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Polynomial(3), bw.DIA())
        >>> bw.verify(queue, bw.certify(queue, result)).passed
        True
    """
    backend_of(model)
    if isinstance(certificate, Certificate):
        fields = certificate.content
    elif isinstance(certificate, str | os.PathLike):
        fields = read_fields(certificate)
    else:
        kind = type(certificate).__name__
        raise ArgumentError(f"certificate is {kind}, expected a Certificate or its file")
    wrong = fault(fields)
    if wrong:
        return Verification((Check("fields", "complete", wrong, passed=False),))
    certificate = Certificate(**fields)
    known = [
        _digests("model", certificate.model_digest, model.digest),
        _digests("checksum", certificate.checksum, checksum(fields)),
    ]
    if not known[0].passed:
        doubt = identity.doubt(certificate.model_digest, model.digest)
        return Verification((replace(known[0], found=f"{known[0].found}{doubt}"),))
    known.append(_same("tolerance", certificate.tolerance, TOLERANCE))
    try:
        with np.errstate(all="ignore"):
            checks, notes = _found(certificate, model)
    except (BellweightError, ValueError, ArithmeticError, LookupError, TypeError, MemoryError) as e:
        text = f"{type(e).__name__}: {e}"
        return Verification((*known, Check("record", "complete", text, passed=False)))
    return Verification((*known, *checks), tuple(notes))


def _found(certificate: Certificate, model: Model) -> tuple[list[Check], list[str]]:
    if isinstance(model, TabularModel):
        return _tabular(certificate, model)
    if not isinstance(model, LinearModel):
        return _simulated(certificate, model)
    if certificate.kind == "unproven":
        told = certificate.reason
        known = told == ENDLESS or told.startswith((f"{HORIZON}: ", f"{PRICING}: "))
        return _unproven(certificate, known=known)
    return _linear(certificate, model)


def _same(term: str, claimed: Any, found: Any) -> Check:
    return Check(term, claimed, found, claimed == found)


def _digests(term: str, claimed: str, found: str) -> Check:
    return Check(term, claimed[:12], found[:12], claimed == found)


def _near(term: str, claimed: Any, found: float, allowed: float) -> Check:
    """Compare a claim with what was found; the tolerance is relative to what was found."""
    close = claimed is not None and abs(claimed - found) <= allowed
    return Check(term, claimed, found, bool(close and np.isfinite(found) and np.isfinite(allowed)))


def _without(certificate: Certificate, *terms: str) -> list[Check]:
    """Check that terms which cannot be computed here are not claimed either."""
    return [_same(term, getattr(certificate, term), None) for term in terms]


def _reason(certificate: Certificate, known: bool) -> Check:
    return Check("reason", certificate.reason, "known" if known else "unknown here", known)


def _statement(
    certificate: Certificate, value: float, cost: float, error: float, unit: float, rounding: float
) -> list[Check]:
    """Compare what is stated: the optimum is above `value`, the policy costs at most `cost`.

    `error` is what the cost may be off here, and `rounding` what it may be off there.
    """
    allowed = TOLERANCE * max(unit, abs(value))
    spare = 2.0 * error + rounding
    return [
        _near("value", certificate.value, value, allowed),
        _near("cost", certificate.cost, cost + error, TOLERANCE * unit + spare),
        _near("bound", certificate.bound, cost + error - value, allowed + spare),
    ]


def _proven(value: float, cost: float, confidence: float | None = None) -> str:
    sure = "" if confidence is None else f", with {100.0 * confidence:g} % confidence"
    return (
        f"proven here: the optimum lies between {value:.10g} and {cost:.10g}, so the policy loses "
        f"at most {cost - value:.6g}{sure}"
    )


def _tabular(certificate: Certificate, model: TabularModel) -> tuple[list[Check], list[str]]:
    record = Record(certificate.record)
    coef = record.numbers("coef")
    record.texts("names", len(coef))
    record.text("method")
    chances = _chances(model, record.part("policy"))
    followed = course(model, chances)
    costs = policy_cost(model, followed)
    cost, error, unit = costs.cost, costs.error, costs.size
    basis = described(model, record.part("basis"), len(coef))
    values = basis.values(coef)
    plain = abs(float(model.initial @ values.plain))
    found = feasible(model, values, _FINE * TOLERANCE * max(unit, plain))
    checks = [
        _same("kind", certificate.kind, "exact"),
        _same("value_kind", certificate.value_kind, "exact"),
        *_without(certificate, "confidence", "episodes", "horizon"),
        _same("seed", certificate.seed, 0),
        _same("evidence", certificate.evidence, {}),
        *_statement(certificate, found.value, cost, error, unit, costs.rounding),
        *_repair(certificate, model, record, basis, found.value, unit),
    ]
    notes = [_proven(found.value, cost + error), _WORDS]
    loss = _per_state(model, chances * found.residual)
    rounding = _per_state(model, chances * found.error)
    if "weights" in record:
        checks.append(_same("reason", certificate.reason, ""))
        own, terms = _corollary(certificate, model, record, basis, chances, loss, rounding)
        checks += terms
        implied = min(own, cost + error - found.value)
        checks.append(_follows(certificate, implied, unit, 2.0 * error))
        return checks, notes
    checks.append(_reason(certificate, certificate.reason in ("", OTHER_POLICY)))
    checks += _without(certificate, *_COROLLARY)
    record.numbers("moments", len(coef))
    return checks, [*notes, "record.moments have no weights to be compared with"]


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
        _near("violation", certificate.violation, before.violation, largest),
        _near("repair", certificate.repair, plain - value, allowed),
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
    if weights.min() < 0.0 or abs(weights.sum() - 1.0) > tolerances.PROBABILITY:
        raise FileError("the weights are not a distribution over the states")
    _check_moments(record, basis, weights)
    generated = _chances(model, record.part("generated"))
    followed = course(model, generated)
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
        _between(
            "weighted_residual", certificate.weighted_residual, weighted,
            weighted - float(weights @ rounding),
            weighted + _GENEROUS * float(weights @ rounding),
        ),
        _between(
            "residual_sup", certificate.residual_sup, largest,
            float((loss - rounding).max()), float((loss + _GENEROUS * rounding).max()),
        ),
        _near("mismatch", certificate.mismatch, mismatch, TOLERANCE + _GENEROUS * off),
        _near("disagreement", certificate.disagreement, disagreement, TOLERANCE + _GENEROUS * off),
        _composed(certificate, model.discount),
    ]  # fmt: skip


def _composition(
    weighted: float, largest: float, mismatch: float, disagreement: float, discount: float
) -> float:
    """Return the corollary's bound, made of its terms."""
    left = 1.0 - discount
    return (weighted + largest * (mismatch + 2.0 * discount * disagreement / left)) / left


def _between(term: str, claimed: Any, found: float, low: float, high: float) -> Check:
    """Compare a claim that is rounded up with what was found, which lies between two limits."""
    allowed = TOLERANCE * abs(found)
    close = claimed is not None and low - allowed <= claimed <= high + allowed
    return Check(term, claimed, found, bool(close and np.isfinite(low) and np.isfinite(high)))


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
    return _near("greedy_bound", certificate.greedy_bound, total, TOLERANCE * abs(total))


def _follows(certificate: Certificate, bound: float, unit: float, error: float) -> Check:
    """Check that the loss is at most the corollary's bound.

    It follows from the theorem's bound found here, or from the corollary's own terms. What the
    arithmetic here may be off is no reason to refuse a claim.
    """
    claimed = certificate.greedy_bound
    allowed = TOLERANCE * max(unit, abs(bound)) + error
    implied = claimed is not None and claimed >= bound - allowed
    return Check("loss at most", claimed, f"at most {bound:.6g}", bool(implied))


def _check_moments(record: Record, basis: Described, weights: FloatArray) -> None:
    stated = record.numbers("moments", basis.n_basis)
    found, size = basis.moments(weights)
    wrong = np.flatnonzero(~(np.abs(found - stated) <= 1e-7 * size))
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
    # What is missing from one would count as a cost of zero.
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


def _simulated(certificate: Certificate, model: FunctionModel) -> tuple[list[Check], list[str]]:
    """Check a model whose costs are simulated: the value, where it is proven, and what is said."""
    told = certificate.reason
    if certificate.kind == "unproven" and certificate.value_kind == "unproven":
        known = told in (SAMPLED, SIMULATED_INITIAL)
        known = known or told.startswith((f"{HORIZON}: ", f"{GROWING}: ", f"{NO_BOX}: "))
        return _unproven(certificate, known=known)
    if isinstance(model, StepModel):
        value, notes = _box_value(model, Record(certificate.record))
        kind, reason = proof_text(model)[0], box_reason(model)
    elif model.structure is not None:
        value, notes = _local_value(model, Record(certificate.record))
        kind, reason = "exact", ALL_STATES
    else:
        raise FileError("nothing can be proven of a model that does not say what its parts look at")
    scale = TOLERANCE * max(abs(value), abs(certificate.cost))
    proven = [
        _near("value", certificate.value, value, scale),
        _same("evidence", certificate.evidence, {}),
    ]
    if certificate.kind == "unproven":
        known = told.startswith(f"{HORIZON}: ") or (kind != "exact" and told == reason)
        checks, others = _unproven(certificate, known=known, value_kind=kind)
        return [*proven, *checks], [*notes, *others]
    record = Record(certificate.record)
    coef = record.numbers("coef")
    record.texts("names", len(coef))
    record.text("method")
    record.numbers("moments", len(coef))
    checks = [
        _same("kind", certificate.kind, "exact"),
        _same("value_kind", certificate.value_kind, kind),
        _same("reason", certificate.reason, reason),
        *_without(certificate, *_COROLLARY),
        _near("bound", certificate.bound, certificate.cost - value, scale),
        *_complete(certificate, ("confidence", "episodes", "horizon", "violation")),
    ]
    return [*proven, *checks], [
        *notes,
        "not checked: the policy's cost, which is simulated, and violation and repair, which are "
        "about the coefficients before",
        f"{_WORDS}, and record.moments, which the statement does not use",
    ]


def _local_value(model: FunctionModel, record: Record) -> tuple[float, list[str]]:
    """Search the rows of all states by plain loops, from the recorded tables alone."""
    assert model.structure is not None
    value = proof_of(model.structure, record).value
    return value, [
        f"proven here: over all states, no policy costs less than {value:.10g}",
        "independent: plain loops over the recorded tables, in another order, with exact sums",
        "not independent: which coordinates the parts of the model look at is the model's own word",
    ]


def _box_value(model: StepModel, record: Record) -> tuple[float, list[str]]:
    """Look at the rows of a box, from the recorded functions alone."""
    found = box_proof_of(model, record)
    own = "not independent: the model's functions, its nodes of the noise and what it declares"
    if found.complete:
        return found.value, [
            f"proven here: over the whole box, no policy costs less than {found.value:.10g}",
            own,
        ]
    return found.value, [
        "not proven here: rows were looked at in many states of the box, and those between follow "
        "from what the model declares by the code of certify",
        own,
    ]


def _linear(certificate: Certificate, model: LinearModel) -> tuple[list[Check], list[str]]:
    """Add up what the multipliers prove, and simulate again on the certificate's own streams."""
    record = Record(certificate.record)
    coef = record.numbers("coef", model.dimension + 1)
    solved = record.numbers("solved", model.dimension + 1)
    record.texts("names", len(coef))
    record.text("method")
    record.numbers("moments", len(coef))
    violation, note = _largest_violation(model, record, coef)
    initial, before = (float(r[0] + model.initial_mean @ r[1:]) for r in (coef, solved))
    size = abs(coef[0]) + float(np.abs(model.initial_mean) @ np.abs(coef[1:]))
    value = initial - violation / (1.0 - model.discount) - gamma(len(coef) + 16) * size
    cost = _simulated_cost(certificate, model, record)
    unit = abs(cost)
    scale = TOLERANCE * max(unit, abs(value))
    checks = [
        _same("kind", certificate.kind, "estimated"),
        _same("value_kind", certificate.value_kind, "exact"),
        _same("reason", certificate.reason, SIMULATED),
        _same("evidence", certificate.evidence, {}),
        *_without(certificate, *_COROLLARY),
        *_statement(certificate, value, cost, 0.0, unit, 0.0),
        _near("violation", certificate.violation, violation, scale * (1.0 - model.discount)),
        _near("repair", certificate.repair, before - value, scale),
    ]
    notes = [
        _proven(value, cost, certificate.confidence),
        note,
        "not independent: the box of reachable states, the simulator and its policies are those of "
        "certify, and the random streams are the certificate's own",
        f"{_WORDS}, and record.moments, which the statement does not use",
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


def _unproven(
    certificate: Certificate, *, known: bool, value_kind: str = "unproven"
) -> tuple[list[Check], list[str]]:
    """Check that no loss is claimed to be proven, and that the stated reason is a possible one."""
    record = Record(certificate.record)
    coef = record.numbers("coef")
    record.texts("names", len(coef))
    record.numbers("moments", len(coef))
    record.text("method")
    record.part("policy").text("kind")
    checks = [
        _same("kind", certificate.kind, "unproven"),
        _same("value_kind", certificate.value_kind, value_kind),
        *_without(certificate, "bound", *_COROLLARY, "violation", "confidence"),
        _same("repair", certificate.repair, 0.0),
        _reason(certificate, known),
        *_complete(certificate, ("episodes", "horizon")),
    ]
    notes = [
        "nothing is proven about the loss, and nothing of that kind is claimed",
        f"{_WORDS}, and cost, evidence, episodes, horizon, seed, record.moments and policy, and "
        "value and record.coef where value_kind is unproven: from them nothing follows",
    ]
    return checks, notes


def _complete(certificate: Certificate, terms: Sequence[str]) -> list[Check]:
    told = {term: getattr(certificate, term) for term in terms}
    return [Check(term, value, "needed", value is not None) for term, value in told.items()]
