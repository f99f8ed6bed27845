"""Making certificates: what is proven on each kind of model.

Coefficients that violate a row by at most v are repaired first (`repair`; on linear models the
constant goes down by v / (1 - discount)), so v must be known over all rows. It is on tabular
models, on models of local parts and in the box of step models that declare enough (`exact`), and on
linear models whose reachable states are priced (`estimated`: the policy's cost is simulated, and
the bound holds with the stated one-sided confidence). Where rows are a sample v is not known
(`unproven`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bellweight.backends import backend_of
from bellweight.certificates.box_check import is_line
from bellweight.certificates.certificate import (
    ALL_STATES,
    BEYOND,
    ENDLESS,
    GROWING,
    NO_BOX,
    OTHER_POLICY,
    PRICING,
    SAMPLED,
    SIMULATED,
    SIMULATED_INITIAL,
    Certificate,
)
from bellweight.certificates.descriptions import (
    box_reason,
    describe_basis,
    describe_local_values,
    describe_policy,
    describe_terms,
    proper,
)
from bellweight.certificates.enclosure import gamma
from bellweight.certificates.exact_cost import flow_rounding, rounded_up_cost
from bellweight.certificates.fields import fault
from bellweight.certificates.reachable_box import reachable_box
from bellweight.certificates.simulated_policy import describe_simulated
from bellweight.certificates.upper_cost import chosen_episodes, upper_cost
from bellweight.certificates.weak_duality import least_slack
from bellweight.common import checks, files, identity, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, BasisError, ModelError, SolverError
from bellweight.common.streams import stream_keys
from bellweight.evaluation.evaluate import evaluate
from bellweight.exact.occupancy import exact_occupancy
from bellweight.models import EventModel, LinearModel, Model, StepModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies import Policy, by_state, checked_probabilities
from bellweight.program import (
    EliminatedRows,
    EventRows,
    LinearRows,
    LocalRows,
    PricedRows,
    Repaired,
    TabularRows,
    growing_row,
    largest_slacks,
    no_bound,
    proof_text,
    repaired,
    repaired_in_box,
    repaired_locally,
)
from bellweight.solve import Result
from bellweight.weights.methods import DIA

_FRESH_STREAM = 2
_FRESH = 5_000  # draws of states on which the violation of sampled rows is looked for
_SHRUNK = (0.0, 1e-12, 1e-10, 1e-8)  # of the coefficients: see `_priced`
_ROUNDINGS = 32  # of a sum beyond those of its terms


def certify(
    model: Model,
    result: Result,
    policy: Policy | None = None,
    *,
    episodes: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
    jobs: int | None = None,
) -> Certificate:
    """Return what is proven about the loss of a policy.

    Args:
        model: the model that was solved.
        result: what `solve` returned for it.
        policy: whose loss it is; the result's own by default.
        episodes: simulated for the cost where states cannot be listed; 10,000 by default, and
            fewer at discounts above 0.993, where they are long.
        confidence: of that cost, one-sided.
        seed: decides the random numbers; by default ones that the run did not use.
        jobs: how many workers simulate; all cores by default.

    Returns:
        The certificate, which prints what is proven and can be saved for `verify`.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Indicator(), bw.Fixed("uniform"))
        >>> bw.certify(queue, result).kind
        'exact'
    """
    if not isinstance(result, Result):
        raise ArgumentError(f"result is {type(result).__name__}, expected what solve returned")
    if result.model_digest != model.digest:
        doubt = identity.doubt(result.model_digest, model.digest)
        raise ArgumentError(
            f"the result belongs to another model{doubt}: pass the model it came from"
        )
    if not np.isfinite(result.coef).all():
        raise ArgumentError("the coefficients are not finite: no bound follows from them")
    if not identity.same(result.basis, result.policy.basis):
        raise ArgumentError(
            "the basis of the result is not the one its policy was found with: solve again"
        )
    if isinstance(model, TabularModel):
        found = _exact(model, result, policy)
        problem = fault(found.content)
        return (_unheld(found, result, problem) if problem else found).sealed()
    simulated = policy or result.policy
    run = _Estimate(
        simulated,
        chosen_episodes(episodes, model, simulated),
        checks.positive(confidence, "confidence", below=1.0),
        result.fresh_seed if seed is None else checks.count(seed, "seed", least=0),
        jobs,
    )
    if isinstance(model, LinearModel):
        return run.linear(model, result).sealed()
    return run.events(model, result).sealed()


def _exact(model: TabularModel, result: Result, policy: Policy | None) -> Certificate:
    rows = TabularRows(model, result.basis)
    if not np.isfinite(rows.values(result.coef)).all():
        raise ArgumentError("the approximate values are not finite: no bound follows from them")
    found = repaired(rows, result.coef, result.moments, result.weights)
    judged = proper(model, policy or result.policy)
    cost = rounded_up_cost(model, judged)
    certificate = Certificate(
        bound=max(0.0, cost - found.value),
        kind="exact",
        reason="" if policy is None else OTHER_POLICY,
        value=found.value,
        cost=cost,
        violation=found.violation,
        repair=found.loss,
        model_name=model.name,
        model_digest=model.digest,
        record=_record(model, result, found, judged),
    )
    generated = generating_policy(result)
    if policy is not None or result.weights is None or generated is None:
        return certificate
    return _with_corollary(certificate, model, rows, result, found, generated)


def _unheld(found: Certificate, result: Result, problem: str) -> Certificate:
    """Return what is left to say where numbers are too large to be held: the policy's cost."""
    kept = {name: entry for name, entry in found.record.items() if name != "rest"}
    return replace(
        found,
        bound=None,
        greedy_bound=None,
        weighted_residual=None,
        residual_sup=None,
        mismatch=None,
        disagreement=None,
        kind="unproven",
        reason=f"{BEYOND} ({problem}): make the basis functions larger",
        value=result.objective,
        value_kind="unproven",
        violation=None,
        repair=0.0,
        record={**kept, "names": [], "coef": [], "solved": [], "moments": []},
    )


def _with_corollary(
    certificate: Certificate,
    model: TabularModel,
    rows: TabularRows,
    result: Result,
    found: Repaired,
    generated: Policy,
) -> Certificate:
    weights = result.weights
    assert weights is not None
    greedy = checked_probabilities(model, result.policy)
    used, residual = np.flatnonzero(greedy), np.zeros(model.n_pairs)
    left = 1.0 - model.discount
    enough = tolerances.REPAIR_FREE * left * abs(found.value)
    residual[used] = largest_slacks(rows, found.precise, used, enough)
    rounded = 1.0 + gamma(model.n_states + model.n_actions + _ROUNDINGS)
    loss = rounded * by_state(model, greedy * residual)
    followed = exact_occupancy(model, generated)
    occupancy = followed.weights
    assert occupancy is not None
    assert followed.residual is not None
    # The error of the flow balance, rounding included, adds up over all discounted steps.
    uncertain = (followed.residual + flow_rounding(model)) / left
    chances = checked_probabilities(model, generated)
    differ = np.maximum(1.0 - by_state(model, greedy * chances), 0.0)
    weighted, largest = rounded * float(weights @ loss), float(loss.max())
    mismatch = rounded * float(np.abs(occupancy - weights).sum()) + uncertain
    disagreement = rounded * float(occupancy @ differ) + uncertain * float(differ.max())
    total = weighted + largest * (mismatch + 2.0 * model.discount * disagreement / left)
    generator = describe_policy(model, generated)
    return replace(
        certificate,
        greedy_bound=rounded * total / left,
        weighted_residual=weighted,
        residual_sup=largest,
        mismatch=mismatch,
        disagreement=disagreement,
        record={**certificate.record, "weights": weights.tolist(), "generated": generator},
    )


def generating_policy(result: Result) -> Policy | None:
    """Return the policy whose occupancy the weights should match: the greedy one by default.

    None where it is not known: files of earlier versions do not hold it.
    """
    if isinstance(result.generated, files.Unstored):
        raise ArgumentError(
            f"the policy {result.generated.text} was not stored: certify the result before saving "
            "it"
        )
    if result.generated is None:
        return None if isinstance(result.method, DIA) else result.policy
    return result.generated


def _record(model: TabularModel, result: Result, found: Repaired, policy: Policy) -> dict[str, Any]:
    """Return what somebody else needs to compute the certificate again.

    `coef` are the coefficients that the certificate is about, with what rounding takes from them
    as `rest` where that matters; `solved` are those that the program ended with.
    """
    rest = {} if found.rest is None else {"rest": found.rest.tolist()}
    return {
        "basis": describe_basis(model, result.basis),
        "names": list(result.names),
        "coef": found.coef.tolist(),
        **rest,
        "solved": result.coef.tolist(),
        "moments": result.moments.tolist(),
        "method": repr(result.method),
        "policy": describe_policy(model, policy),
    }


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Certificates from simulated costs."""

    policy: Policy
    episodes: int
    confidence: float
    seed: int
    jobs: int | None

    def linear(self, model: LinearModel, result: Result) -> Certificate:
        """Price over all states that can be reached, and simulate the cost."""
        box, told = reachable_box(model), describe_simulated(self.policy)
        rows = PricedRows(lower=box[0], upper=box[1], kernel=False).on(model, result.basis)
        try:
            priced = _priced(rows, result.coef)
        except SolverError as problem:
            return self._unproven(model, result, f"{PRICING}: {problem}", told)
        if not np.isfinite(priced.violation):
            return self._unproven(model, result, ENDLESS, told)
        cost, horizon, reason = self._upper_cost(model)
        if reason:
            return self._unproven(model, result, reason, told)
        before = float(result.coef[0] + model.initial_mean @ result.coef[1:])
        initial = float(priced.coef[0] + model.initial_mean @ priced.coef[1:])
        value = initial - priced.violation / (1.0 - model.discount)
        terms = np.abs(np.append(1.0, model.initial_mean)) @ np.abs(priced.coef) + abs(value)
        value -= (len(priced.coef) + 2) * np.finfo(float).eps * float(terms)
        cost = max(cost, value)  # no policy costs less, whatever was simulated
        record = {**_plain_record(result, told), "coef": priced.coef.tolist()}
        return Certificate(
            bound=cost - value, kind="estimated", reason=SIMULATED, value=value, cost=cost,
            violation=priced.violation, repair=before - value,
            confidence=self.confidence, model_name=model.name, model_digest=model.digest,
            seed=self.seed, episodes=self.episodes, horizon=horizon,
            record={**record, "solved": result.coef.tolist(), "multipliers": priced.multipliers},
        )  # fmt: skip

    def events(self, model: FunctionModel, result: Result) -> Certificate:
        """Prove the rows of all states where that is possible; elsewhere say what is missing."""
        if model.structure is not None:
            try:
                rows = LocalRows().on(cast("EventModel", model), result.basis)
            except (BasisError, ModelError):
                return self._sampled(model, result, SAMPLED)
            return self._local(model, result, rows)
        if isinstance(model, StepModel):
            return self._boxed(model, result)
        return self._sampled(model, result, SAMPLED)

    def _local(self, model: FunctionModel, result: Result, rows: EliminatedRows) -> Certificate:
        """Prove the rows of all states, and simulate the cost."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = repaired_locally(rows, result.coef)
        if found is None:
            told = SIMULATED_INITIAL
            if rows.initial_moments is not None:
                if not rows.structure.endless:
                    raise ArgumentError("the coefficients are too large: nothing can be proven")
                told = f"{GROWING}: {growing_row(rows, result.coef)}: use LocalRows()"
            return self._unproven(model, result, told, _NOT_RECORDED)
        recorded = {"tables": describe_local_values(rows, found.coef)}
        return self._proven(model, result, found, ALL_STATES, recorded)

    def _boxed(self, model: StepModel, result: Result) -> Certificate:
        """Prove the rows of a whole box from what the model declares, and simulate the cost."""
        rows = EventRows(model, result.basis, model.check_states(model.spread_states(2)))
        found = repaired_in_box(rows, model, result.coef)
        if found is None:
            why = no_bound(rows, model)
            return self._sampled(model, result, f"{NO_BOX}: {why}" if why else SAMPLED)
        recorded: dict[str, Any] = (
            {"terms": describe_terms(rows.basis, model.dimension)}
            if is_line(model)
            else {"basis": files.to_plain(result.basis), "solved": result.coef.tolist()}
        )
        kind, reason = proof_text(model)[0], box_reason(model)
        if kind == "exact":
            return self._proven(model, result, found, reason, recorded)
        return self._only_value(model, result, found, reason, kind, recorded)

    def _proven(
        self,
        model: FunctionModel,
        result: Result,
        found: Repaired,
        reason: str,
        recorded: dict[str, Any],
    ) -> Certificate:
        """Return the certificate of rows that are proven, with the cost simulated."""
        cost, horizon, unknown = self._upper_cost(model)
        if unknown:
            return self._only_value(model, result, found, unknown, "exact", recorded)
        cost = max(cost, found.value)  # no policy costs less, whatever was simulated
        told = describe_simulated(self.policy)
        record = {**_plain_record(result, told), "coef": found.coef.tolist()}
        return Certificate(
            bound=cost - found.value, kind="exact", reason=reason, value=found.value, cost=cost,
            violation=found.violation, repair=found.loss,
            confidence=self.confidence, model_name=model.name, model_digest=model.digest,
            seed=self.seed, episodes=self.episodes, horizon=horizon,
            record={**record, **recorded},
        )  # fmt: skip

    def _only_value(
        self,
        model: FunctionModel,
        result: Result,
        found: Repaired,
        reason: str,
        kind: str,
        recorded: dict[str, Any],
    ) -> Certificate:
        """Return a proven value of some kind, where nothing is proven about the policy's loss."""
        plain = self._unproven(model, result, reason, _NOT_RECORDED)
        record = {**plain.record, "coef": found.coef.tolist(), **recorded}
        return replace(plain, value=found.value, value_kind=kind, record=record)

    def _sampled(self, model: FunctionModel, result: Result, reason: str) -> Certificate:
        """Say what is missing, and what violation was found on fresh states and by a search."""
        found = self._unproven(model, result, reason, _NOT_RECORDED)
        # A small model has fewer states than this: then all that turn up are looked at.
        drawn = model.sample_initial(0, _FRESH, stream_keys(self.seed, _FRESH_STREAM)[0])
        fresh = np.unique(drawn, axis=0)
        searched = backend_of(model).searched(result.basis, result.coef, self.seed)
        evidence = {"on fresh states": _violation(model, result, fresh), **searched}
        return replace(found, evidence=evidence)

    def _upper_cost(self, model: FunctionModel | LinearModel) -> tuple[float, int | None, str]:
        return upper_cost(
            model, self.policy, self.episodes, self.confidence, seed=self.seed, jobs=self.jobs
        )

    def _unproven(
        self, model: FunctionModel | LinearModel, result: Result, reason: str, told: dict[str, Any]
    ) -> Certificate:
        cost = evaluate(model, self.policy, self.episodes, seed=self.seed, jobs=self.jobs)
        return Certificate(
            bound=None, kind="unproven", reason=reason, value=result.objective,
            value_kind="unproven", cost=cost.mean, violation=None, model_name=model.name,
            model_digest=model.digest, seed=self.seed, episodes=self.episodes, horizon=cost.horizon,
            record=_plain_record(result, told),
        )  # fmt: skip


_NOT_RECORDED = {"kind": "unknown", "reason": "nothing is proven about the policy"}


def _plain_record(result: Result, told: dict[str, Any]) -> dict[str, Any]:
    """Return what a certificate records of a simulated policy, described as `told`."""
    return {
        "names": list(result.names),
        "coef": result.coef.tolist(),
        "moments": result.moments.tolist(),
        "method": repr(result.method),
        "policy": told,
    }


@dataclass(frozen=True, eq=False)
class _Priced:
    """Coefficients, their largest violation over all reachable states, and what proves it."""

    coef: FloatArray
    violation: float
    multipliers: list[float] | None


def _priced(rows: LinearRows, coef: FloatArray) -> _Priced:
    """Return the largest violation with multipliers that prove it, if any do.

    On an endless side a reduced price below zero by rounding would be a violation without limit. A
    slightly smaller value function has room there: the slack of (1 - share) coef is that of coef
    plus a share of the cost.
    """
    violation = rows.largest_violation(coef)[0]
    if not np.isfinite(violation):
        return _Priced(coef, violation, None)
    multipliers = rows.multipliers(coef)
    assert multipliers is not None
    allowed = violation + tolerances.MULTIPLIERS * float(np.abs(coef).max())
    proven = np.inf
    for share in _SHRUNK:
        smaller, factors = (1.0 - share) * coef, (1.0 - share) * multipliers
        proven = max(0.0, -least_slack(rows.model, smaller, rows.box, factors))
        if proven <= allowed:
            return _Priced(smaller, proven, factors.tolist())
    # Whole numbers may violate less than their relaxation: then the solver's answer is taken.
    return _Priced(coef, violation if np.isfinite(proven) else np.inf, None)


def _violation(model: FunctionModel, result: Result, states: Any) -> float:
    rows = EventRows(model, result.basis, model.check_states(states))
    return rows.separate(result.coef, 0.0).violation
