"""Checking a certificate: what it states must follow from what is computed here.

Every number is computed again from the model, and a claim is compared with what was found, never
with another claim. A certificate passes only if its statement follows: the optimum is at least
`value`, the policy costs at most `cost` and loses at most `bound`, within `TOLERANCE` of the cost
that was found. Other claims must be found again too; the outcome says what is not checked.

What is independent of the code that made the certificate:

- Tabular models: everything but the arithmetic with twice the digits (`doubled.py`). `enclosure.py`
  evaluates the described values, rows and policies with an error bound on its own arithmetic and
  uses no row source, linear program or occupancy code.
- Linear models: the largest violation, where multipliers prove it (`weak_duality.py`); they may
  come from anywhere. Shared with `certify` are the box of reachable states (`reachable_box.py`) and
  the pricing solver where no multipliers are recorded.
- Event and factored models of local parts: the largest violation over all states, from the recorded
  tables (`local_check.py`). Shared is the structure that the model declares.
- Step models that declare bends in one dimension: the largest violation over the box, from the
  recorded functions (`box_check.py`). With other declarations the code of `certify` is run again.
- Policies of all but tabular models are simulated again on the certificate's own streams, with the
  simulator and the policies that `certify` uses (`simulated_policy.py`). The outcome names each of
  these.
- Unproven certificates state that nothing is proven about the loss; that is checked, and the value
  where it is said to be proven.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.backends import backend_of
from bellweight.basis import Basis
from bellweight.certificates.box_check import is_line, line_value
from bellweight.certificates.certificate import (
    ALL_STATES,
    ENDLESS,
    GROWING,
    NO_BOX,
    PRICING,
    SAMPLED,
    SIMULATED_INITIAL,
    TOLERANCE,
    Certificate,
)
from bellweight.certificates.claims import (
    COROLLARY,
    WORDS,
    Check,
    complete,
    near,
    proven_text,
    same,
    same_digest,
    statement,
    unproven,
    without,
)
from bellweight.certificates.descriptions import box_reason
from bellweight.certificates.fields import checksum, fault, read_fields
from bellweight.certificates.linear_check import linear_checks
from bellweight.certificates.local_check import proof_of
from bellweight.certificates.record import Record
from bellweight.certificates.simulated_policy import check_given, simulated_cost
from bellweight.certificates.table_check import table_checks
from bellweight.certificates.upper_cost import HORIZON
from bellweight.common import files, identity
from bellweight.common.status import ArgumentError, BellweightError, FileError
from bellweight.display import facts_text, number_text
from bellweight.models import LinearModel, Model, StepModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies import Policy
from bellweight.program import EventRows, proof_text, repaired_in_box


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
    if value is None:
        return "nothing"
    return number_text(value) if isinstance(value, float) else str(value)


def verify(
    model: Model,
    certificate: Certificate | str | os.PathLike[str],
    policy: Policy | None = None,
) -> Verification:
    """Compute a certificate again from the model, by other means, and compare term by term.

    Args:
        model: the model that the certificate speaks of.
        certificate: it, or the file of one.
        policy: the one that it is about, where that is a function of the user's own, which no file
            holds.

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
        same_digest("model", certificate.model_digest, model.digest),
        same_digest("checksum", certificate.checksum, checksum(fields)),
    ]
    if not known[0].passed:
        doubt = identity.doubt(certificate.model_digest, model.digest)
        return Verification((replace(known[0], found=f"{known[0].found}{doubt}"),))
    known.append(same("tolerance", certificate.tolerance, TOLERANCE))
    check_given(certificate, policy)
    try:
        with np.errstate(all="ignore"):
            checks, notes = _found(certificate, model, policy)
    except (BellweightError, ValueError, ArithmeticError, LookupError, TypeError, MemoryError) as e:
        text = f"{type(e).__name__}: {e}"
        return Verification((*known, Check("record", "complete", text, passed=False)))
    return Verification((*known, *checks), tuple(notes))


def _found(
    certificate: Certificate, model: Model, policy: Policy | None
) -> tuple[list[Check], list[str]]:
    if isinstance(model, TabularModel):
        return table_checks(certificate, model)
    if not isinstance(model, LinearModel):
        return _simulated(certificate, model, policy)
    if certificate.kind == "unproven":
        told = certificate.reason
        known = told == ENDLESS or told.startswith((f"{HORIZON}: ", f"{PRICING}: "))
        return unproven(certificate, known=known)
    return linear_checks(certificate, model, policy)


def _simulated(
    certificate: Certificate, model: FunctionModel, policy: Policy | None
) -> tuple[list[Check], list[str]]:
    """Check a model whose costs are simulated: the value, where it is proven, and what is said."""
    told = certificate.reason
    if certificate.kind == "unproven" and certificate.value_kind == "unproven":
        known = told in (SAMPLED, SIMULATED_INITIAL)
        known = known or told.startswith((f"{HORIZON}: ", f"{GROWING}: ", f"{NO_BOX}: "))
        return unproven(certificate, known=known)
    if isinstance(model, StepModel):
        value, notes = _box_value(model, Record(certificate.record))
        kind, reason = proof_text(model)[0], box_reason(model)
    elif model.structure is not None:
        value, notes = _local_value(model, Record(certificate.record))
        kind, reason = "exact", ALL_STATES
    else:
        raise FileError("nothing can be proven of a model that does not say what its parts look at")
    if certificate.kind == "unproven":
        known = told.startswith(f"{HORIZON}: ") or (kind != "exact" and told == reason)
        checks, others = unproven(certificate, known=known, value_kind=kind)
        proven = [
            near("value", certificate.value, value, TOLERANCE * abs(value)),
            same("evidence", certificate.evidence, {}),
        ]
        least = f"proven here: no policy costs less than {value:.10g}"
        return [*proven, *checks], [least, *notes, *others]
    Record(certificate.record).coefficients()
    cost = max(simulated_cost(certificate, model, policy), value)
    return [
        same("kind", certificate.kind, "exact"),
        same("value_kind", certificate.value_kind, kind),
        same("reason", certificate.reason, reason),
        same("evidence", certificate.evidence, {}),
        *without(certificate, *COROLLARY),
        *statement(certificate, value, cost, 0.0, abs(cost), 0.0),
        *complete(certificate, ("violation",)),
    ], [
        proven_text(value, cost, certificate.confidence),
        *notes,
        "not independent: the simulator and its policies are those of certify, and the random "
        "streams are the certificate's own",
        "not checked: violation and repair, which are about the coefficients before",
        f"{WORDS}, and record.moments, which the statement does not use",
    ]


def _local_value(model: FunctionModel, record: Record) -> tuple[float, list[str]]:
    """Search the rows of all states, from the recorded tables alone."""
    assert model.structure is not None
    value = proof_of(model.structure, record).value
    return value, [
        "independent: a search of the recorded tables for each action, in another order",
        "not independent: which coordinates the parts of the model look at is the model's own word",
    ]


def _box_value(model: StepModel, record: Record) -> tuple[float, list[str]]:
    """Judge the rows of a whole box, from the recorded functions."""
    own = "not independent: the model's functions, its nodes of the noise and what it declares"
    if is_line(model):
        return line_value(model, record), [own]
    basis = files.from_plain("record.basis", record.part("basis").entries, Basis)
    rows = EventRows(model, basis, model.check_states(model.spread_states(2)))
    found = repaired_in_box(rows, model, record.numbers("solved", rows.n_basis))
    if found is None:
        raise FileError("the model declares nothing that a bound over its box follows from")
    return found.value, [
        "not independent: the largest violation over the box is found by the code of certify, from "
        "record.solved and record.basis; record.coef is not used",
        own,
    ]
