"""Checking a certificate: computed again from the model by other, simpler means.

Nothing here uses the row sources, the solvers or the occupancy code. Values come from exponents and
coefficients, costs and occupancies from plain iteration of their defining equations, the softmax
from its formula state by state. A certificate passes when every term it claims is found again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight import identity
from bellweight.basis import Affine
from bellweight.certificate import Certificate
from bellweight.checks import FloatArray, IntArray
from bellweight.evaluate import evaluate
from bellweight.models import LinearModel, TabularModel
from bellweight.policy import Greedy, Model
from bellweight.pricing import PricedRows
from bellweight.reach import reachable_box
from bellweight.simulate import one_sided
from bellweight.status import BellweightError, FileError

_SWEEPS = 200_000


@dataclass(frozen=True)
class Check:
    """One term: what the certificate claims and what was found."""

    term: str
    claimed: Any
    found: Any
    passed: bool


@dataclass(frozen=True)
class Verification:
    """The outcome of `verify`: every check, and whether all of them passed."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        lines = ["PASS" if self.passed else "FAIL"]
        for check in self.checks:
            word = "ok  " if check.passed else "FAIL"
            lines.append(f"{word}  {check.term}: claimed {check.claimed}, found {check.found}")
        return "\n".join(lines)


def verify(certificate: Certificate | str | os.PathLike[str], model: Model) -> Verification:
    """Compute a certificate again from the model and compare term by term."""
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    same = Check(
        "model", certificate.model_digest[:12], model.digest[:12],
        certificate.model_digest == model.digest,
    )  # fmt: skip
    doubt = identity.doubt(certificate.model_digest, model.digest)
    if not same.passed and doubt:
        same = replace(same, found=f"{same.found}{doubt}")
    if not same.passed:
        return Verification((same,))
    try:
        if isinstance(model, TabularModel):
            found = _tabular(certificate, model)
        elif isinstance(model, LinearModel):
            found = _linear(certificate, model)
        else:
            found = {"bound": None}
    except (KeyError, TypeError, ValueError, IndexError, BellweightError) as problem:
        text = f"{type(problem).__name__}: {problem}"
        return Verification((same, Check("record", "complete", text, passed=False)))
    terms = tuple(_compared(certificate, term, value) for term, value in found.items())
    return Verification((same, *terms))


def _compared(certificate: Certificate, term: str, found: Any) -> Check:
    claimed = getattr(certificate, term)
    if claimed is None or found is None or isinstance(found, str):
        return Check(term, claimed, found, claimed == found)
    scale = max(1.0, abs(certificate.cost), abs(certificate.value))
    if term == "greedy_bound":
        scale = max(scale, abs(float(found)))
    if term in ("mismatch", "disagreement"):
        scale = 1.0
    close = abs(float(claimed) - float(found)) <= 1e-7 * scale
    return Check(term, claimed, float(found), bool(np.isfinite(found) and close))


def _tabular(certificate: Certificate, model: TabularModel) -> dict[str, Any]:
    record = certificate.record
    coef = np.array(record["coef"], dtype=np.float64)
    values = _values(model, record["basis"], coef)
    slack = model.cost + model.discount * (model.transition @ values) - values[model.pair_state]
    violation = max(0.0, -float(slack.min()))
    values = values - violation / (1.0 - model.discount)
    slack = slack + violation
    policy = _chances(model, record["policy"])
    cost = float(model.initial @ _policy_values(model, policy))
    value = float(model.initial @ values)
    loss = _per_state(model, policy * slack)
    left = 1.0 - model.discount
    found: dict[str, Any] = {
        "kind": "exact",
        "violation": violation,
        "value": value,
        "cost": cost,
        "bound": float(_occupancy(model, policy) @ loss) / left,
    }
    if "weights" not in record:
        return {**found, "greedy_bound": None}
    weights = np.array(record["weights"], dtype=np.float64)
    moments = _moments(model, record["basis"], weights, len(coef))
    stated = np.array(record["moments"], dtype=np.float64)
    if not np.allclose(moments, stated, rtol=1e-7, atol=1e-9 * np.abs(stated).max()):
        raise FileError("the moments are not those of the weights")
    generated = _chances(model, record["generated"])
    occupancy = _occupancy(model, generated)
    mismatch = float(np.abs(occupancy - weights).sum())
    agreement = _per_state(model, policy * generated)
    disagreement = float(occupancy @ (1.0 - agreement))
    weighted, largest = float(weights @ loss), float(loss.max())
    bracket = mismatch + 2.0 * model.discount * disagreement / left
    return {
        **found,
        "weighted_residual": weighted,
        "residual_sup": largest,
        "mismatch": mismatch,
        "disagreement": disagreement,
        "greedy_bound": (weighted + largest * bracket) / left,
    }


def _values(model: TabularModel, basis: dict[str, Any], coef: FloatArray) -> FloatArray:
    if basis["kind"] == "groups":
        return np.asarray(coef[np.array(basis["groups"])])
    if basis["kind"] == "features":
        return np.asarray(np.array(basis["features"]) @ coef)
    values = np.zeros(model.n_states)
    for exponents, factor in zip(basis["exponents"], coef, strict=True):
        values += factor * np.prod(model.states ** np.array(exponents), axis=1)
    return values


def _moments(
    model: TabularModel, basis: dict[str, Any], weights: FloatArray, n_basis: int
) -> FloatArray:
    return np.array([weights @ _values(model, basis, unit) for unit in np.eye(n_basis)])


def _chances(model: TabularModel, policy: dict[str, Any]) -> FloatArray:
    """Return the probability of each pair's action, checked to be a distribution."""
    kind = policy["kind"]
    if kind == "uniform":
        counts = np.diff(model.pair_start)
        return np.repeat(1.0 / counts, counts)
    if kind == "actions":
        actions = np.array(policy["actions"])
        chances = (model.pair_action == actions[model.pair_state]).astype(np.float64)
    elif kind == "probabilities":
        chances = np.array(policy["chances"], dtype=np.float64)
    else:
        chances = _softmax(model, policy)
    if chances.min() < 0.0 or np.abs(_per_state(model, chances) - 1.0).max() > 1e-8:
        raise FileError("the policy is not a distribution over admissible actions in every state")
    return chances


def _softmax(model: TabularModel, policy: dict[str, Any]) -> FloatArray:
    chances = _chances(model, policy["target"]).copy()
    dual: dict[int, dict[int, float]] = {}
    for x, a, value in zip(policy["states"], policy["actions"], policy["values"], strict=True):
        dual.setdefault(x, {})[a] = value
    for x, by_action in dual.items():
        pairs = slice(model.pair_start[x], model.pair_start[x + 1])
        part = np.array([by_action.get(int(a), 0.0) for a in model.pair_action[pairs]])
        share = part.sum() / (part.sum() + policy["smoothing_mass"])
        weight = np.exp((part - part.max()) / policy["temperature"])
        chances[pairs] = share * weight / weight.sum() + (1.0 - share) * chances[pairs]
    return chances


def _policy_values(model: TabularModel, policy: FloatArray) -> FloatArray:
    """Iterate J = g + discount P J until it stands still."""
    values = np.zeros(model.n_states)
    for _ in range(_SWEEPS):
        following = _per_state(
            model, policy * (model.cost + model.discount * (model.transition @ values))
        )
        step = np.abs(following - values).max()
        values = following
        if step <= 1e-15 * max(1.0, np.abs(values).max()):
            break
    return values


def _occupancy(model: TabularModel, policy: FloatArray) -> FloatArray:
    """Iterate mu = (1 - discount) initial + discount P' mu until it stands still."""
    used = np.flatnonzero(policy)
    flows = model.transition[used].T.tocsr()
    source: IntArray = model.pair_state[used]
    occupancy = np.array(model.initial)
    for _ in range(_SWEEPS):
        following = (1.0 - model.discount) * model.initial + model.discount * (
            flows @ (policy[used] * occupancy[source])
        )
        step = np.abs(following - occupancy).sum()
        occupancy = following
        if step <= 1e-15:
            break
    return occupancy


def _per_state(model: TabularModel, values: FloatArray) -> FloatArray:
    return np.bincount(model.pair_state, weights=values, minlength=model.n_states).astype(float)


def _linear(certificate: Certificate, model: LinearModel) -> dict[str, Any]:
    """Price with the general solver and simulate again on the certificate's own streams."""
    if certificate.kind != "estimated":
        return {"bound": None}
    coef = np.array(certificate.record["coef"], dtype=np.float64)
    lower, upper = reachable_box(model)
    rows = PricedRows(lower=lower, upper=upper, kernel=False).on(model, Affine())
    violation = rows.largest_violation(coef)[0]
    value = float(coef[0] + model.initial_mean @ coef[1:]) - violation / (1.0 - model.discount)
    if certificate.record["policy"]["kind"] != "greedy":
        raise FileError("the policy is not described, so its cost cannot be simulated again")
    policy = Greedy(basis=Affine(), coef=coef, model=model)
    again = evaluate(
        model, policy, certificate.episodes, horizon=certificate.horizon, seed=certificate.seed
    )
    confidence = 0.95 if certificate.confidence is None else certificate.confidence
    margin = one_sided(again.half_width, again.episodes, confidence)
    cost = again.mean + margin + (again.tail_bound or 0.0)
    return {"kind": "estimated", "violation": violation, "value": value, "cost": cost,
            "bound": cost - value}  # fmt: skip
