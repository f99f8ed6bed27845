"""How far from optimal can a policy be? Certificates, and what is proven about them.

With feasible coefficients r, J' = Phi r lies below the optimal values, and the Bellman residual
s(x, a) = cost(x, a) + discount E[J'(next)] - J'(x) is not negative. For any stationary policy pi,

    0 <= initial' (J^pi - J*) <= occupancy' s^pi / (1 - discount) = initial' (J^pi - J')

(thm. residual_certificate): `bound`. For the greedy policy u of the coefficients, with weights c,
the occupancy F(c) of the policy pi_c that the method generates from them, the mismatch
R = ||F(c) - c||_1 and the disagreement D = sum_x F(c)(x) [1 - pi_c(u(x) | x)],

    initial' (J^u - J*) <= (c' s^u + sup s^u [R + 2 discount D / (1 - discount)]) / (1 - discount)

(cor. greedy_certificate): `greedy_bound`, with its terms. Coefficients that violate a row by at
most v are repaired first (`repair`; on linear models the constant goes down by v / (1 - discount)),
and v is known where every row is known. That is so on tabular models (`exact`), on linear models
whose reachable states are priced (`estimated`: the policy's cost is simulated, and the bound holds
with the stated one-sided confidence), and not where rows are a sample (`unproven`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, cast

import numpy as np

from bellweight.backends import backend_of
from bellweight.certificates.descriptions import (
    describe_basis,
    describe_linear_policy,
    describe_local_values,
    describe_policy,
    proper,
)
from bellweight.certificates.enclosure import gamma
from bellweight.certificates.fields import FORMAT, HEADER, checksum, fault, read_fields
from bellweight.certificates.reachable_box import reachable_box
from bellweight.certificates.upper_cost import upper_cost
from bellweight.certificates.weak_duality import least_slack
from bellweight.common import checks, files, identity, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.short import value_text
from bellweight.common.status import (
    ArgumentError,
    BasisError,
    FileError,
    ModelError,
    SolverError,
)
from bellweight.common.streams import stream_keys
from bellweight.display import Column, Table, facts_text, number_text
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.presentable import Pictures, Presentable
from bellweight.evaluation.evaluate import evaluate
from bellweight.exact.occupancy import exact_occupancy
from bellweight.exact.values import policy_value
from bellweight.models import EventModel, LinearModel, Model, TabularModel
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
    repaired,
    repaired_locally,
)
from bellweight.results.gap import Gap
from bellweight.solve import Result
from bellweight.weights.methods import DIA

TOLERANCE = 1e-8
"""How far a claimed number may be from the one a verifier finds, relative to the cost found."""

OTHER_POLICY = "the corollary is about the result's own policy"
SIMULATED = "the cost is simulated; weights of single states are not known"
PRICING = "pricing over all reachable states"
ENDLESS = "the violation grows without limit over the states that can be reached"
SAMPLED = (
    "rows are a sample, so the largest violation over all states is not known: what was found on "
    "fresh states is evidence, not a bound"
)
ALL_STATES = "no policy costs less than the value, over all states; the policy's cost is simulated"
GROWING = "the violation of rows grows without limit along an endless coordinate"
SIMULATED_INITIAL = "the initial law is a function, so the value under it is only estimated"
_PROOF = {
    "exact": "every row of every state holds, rounding included, and the cost is exact",
    "local": "elimination has searched the rows of all states, rounding included; the policy's "
    "cost is simulated",
    "priced": "the rows of all states that can be reached were priced; the policy's cost is "
    "simulated",
}
_ADVICE = {
    "exact": "more basis functions (Enriched()), or a better policy (DIA(), PIA(), Auto())",
    "local": "kinks at more values, ClippedProducts of pairs (RaisedBound() adds both), a better "
    "policy, more episodes",
    "priced": "a better policy, or more episodes",
    "unproven": "LocalRows() where the parts of the model are local, or information relaxation: "
    "result.gap(model, paths=200)",
}
_FRESH_STREAM = 2
_FRESH = 5_000  # draws of states on which the violation of sampled rows is looked for
_SHRUNK = (0.0, 1e-12, 1e-10, 1e-8)  # of the coefficients: see `_priced`
_CLOSE = 1e-9  # of the largest coefficient: what multipliers may add to a violation
_ROUNDINGS = 32  # of a sum beyond those of its terms
_MUCH = 0.01  # of the value: a repair that takes more is told in words

_COST = "expected discounted cost of the policy"
_COST_LIMIT = "upper confidence limit of the policy's cost"
_VALUE = "no policy costs less than this"
_UNPROVEN_VALUE = "objective of the program under its weights, not a bound"
_COROLLARY = ("greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement")


def _term_text(value: float) -> str:
    """Return a number of a certificate; of one that is all but zero the size is enough."""
    return number_text(value) if value == 0.0 or 1e-3 <= abs(value) < 1e9 else f"{value:.2g}"


_COLUMNS = (
    Column("meaning", "statement", right=False),
    Column("value", "value", _term_text),
    Column("term", "", None),
)


@dataclass(frozen=True, repr=False)
class Certificate(Presentable):
    """What is known about a policy's loss; a term that is not available is None.

    The optimal cost lies between `value` and `cost`. Where an `exact` certificate has a
    `confidence`, the value is proven over all states and the policy's cost is simulated, so that
    the loss holds with this confidence.

    Attributes:
        bound: what the policy loses at most.
        greedy_bound: a looser bound on the greedy policy's loss, from the four terms that follow.
        weighted_residual: the greedy policy's residual under the weights.
        residual_sup: the largest residual of that policy.
        mismatch: between the weights and the occupancy of the policy that the method generates.
        disagreement: between that policy and the greedy one.
        kind: `exact`, `estimated` (with one-sided `confidence`) or `unproven`.
        reason: why something is missing.
        value: the approximate initial value after repair, a lower bound on the optimal cost unless
            unproven.
        cost: the policy's; its upper confidence limit when estimated.
        violation: the largest one of the program's own coefficients.
        repair: what its repair took from the value.
        confidence: with which an estimated loss holds.
        evidence: violations found where rows are a sample, which are no bound.
        model_name: of the model.
        model_digest: tells whether a model is the one that was certified.
        tolerance: relative, by which numbers may differ when they are computed again.
        seed: of the simulation.
        episodes: of the simulation.
        horizon: of the simulation.
        record: what a verifier needs.
        checksum: tells whether anything was changed since.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> found = bw.certify(queue, bw.solve(queue, bw.Polynomial(3), bw.DIA()))
        >>> bool(found.value <= queue.initial @ bw.exact.optimal(queue).values <= found.cost)
        True
    """

    bound: float | None
    greedy_bound: float | None
    weighted_residual: float | None
    residual_sup: float | None
    mismatch: float | None
    disagreement: float | None
    kind: str
    reason: str
    value: float
    cost: float
    violation: float | None
    repair: float = 0.0
    confidence: float | None = None
    evidence: dict[str, float] = field(default_factory=dict)
    model_name: str = ""
    model_digest: str = ""
    tolerance: float = TOLERANCE
    seed: int = 0
    episodes: int | None = None
    horizon: int | None = None
    record: dict[str, Any] = field(default_factory=dict, repr=False)
    checksum: str = field(default="", repr=False)

    @property
    def relative(self) -> float | None:
        """The bound as a share of the policy's cost."""
        return None if self.bound is None or self.cost == 0.0 else self.bound / abs(self.cost)

    @property
    def gap(self) -> Gap:
        """What the policy costs at most, what no policy can save, and how that is known."""
        told = (self.cost, self.value if self.bound is not None else None)
        if self.bound is None:
            return Gap(*told, "unproven", self.reason, _ADVICE["unproven"])
        if self.confidence is None:
            return Gap(*told, "exact", _PROOF["exact"], _ADVICE["exact"])
        way = "local" if self.kind == "exact" else "priced"
        return Gap(*told, "estimated", _PROOF[way], _ADVICE[way], self.confidence)

    @property
    def content(self) -> dict[str, Any]:
        """The fields by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def sealed(self) -> Self:
        """Return the certificate with its checksum; refuse a field that is not allowed."""
        problem = fault(self.content)
        if problem:
            raise ArgumentError(f"no certificate can be made: {problem}")
        return replace(self, checksum=checksum(self.content))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as JSON, whole or not at all."""
        problem = fault(self.content)
        if problem:
            raise ArgumentError(f"the certificate cannot be saved: {problem}")
        files.write_json(path, {HEADER: FORMAT, **self.content})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a certificate written by `save`; nothing in it is trusted: see `verify`."""
        document = read_fields(path)
        wrong = fault(document)
        if wrong:
            raise FileError(f"{path} is damaged ({wrong}): make the certificate again")
        return cls(**document)

    def table(self) -> Table:
        """Return what is proven, one statement to a row; `corollary` has the other terms."""
        told = self.gap
        notes = [f"{self.kind.capitalize()}: {self.reason or told.proof}."]
        notes += [f"Repair: {self._repair_text}."] if self._repair_text else []
        shown = [term for term in self._terms() if term not in _COROLLARY]
        return Table("What is proven about the loss", _COLUMNS, self._rows(shown), tuple(notes))

    def corollary(self) -> Table:
        """Return the corollary's bound and its terms; without rows where it is not known."""
        return Table("The corollary's bound and its terms", _COLUMNS, self._rows(_COROLLARY))

    def records(self) -> Table:
        """Return all terms by name."""
        columns = tuple(Column(key, key) for key in ("term", "value", "meaning"))
        return Table("Terms of the certificate", columns, self._rows(self._terms(), known=False))

    def _rows(self, terms: Iterable[str], *, known: bool = True) -> tuple[dict[str, Any], ...]:
        found = self._terms()
        return tuple(
            {"term": term, "value": found[term][0], "meaning": found[term][1]}
            for term in terms
            if not known or found[term][0] is not None
        )

    @property
    def _repair_text(self) -> str:
        """A sentence on what the repair cost, where that is more than a small share."""
        if self.bound is None or self.repair <= _MUCH * abs(self.value):
            return ""
        share = "" if self.value == 0.0 else f" ({100.0 * self.repair / abs(self.value):.3g} %)"
        return f"mending violated rows took {number_text(self.repair)} from the value{share}"

    def pictures(self) -> Pictures:
        """Return where the optimal cost can lie."""
        low = None if self.bound is None else self.value
        return {"gap": lambda: (gap_chart([Between("policy", self.cost, low=low)]),)}

    def _terms(self) -> dict[str, tuple[float | None, str]]:
        found: dict[str, tuple[float | None, str]] = {
            "bound": (self.bound, "the policy costs at most this much more than the best one"),
            "cost": (self.cost, _COST if self.confidence is None else _COST_LIMIT),
            "value": (self.value, _VALUE if self.bound is not None else _UNPROVEN_VALUE),
            "confidence": (self.confidence, "confidence that this holds, as costs are simulated"),
            "violation": (self.violation, "largest violation of a row before repair"),
            "repair": (self.repair, "what the repair took from the lower bound"),
            "greedy_bound": (self.greedy_bound, "the corollary's bound on the loss"),
            "weighted_residual": (self.weighted_residual, "residual, weighted as the program was"),
            "residual_sup": (self.residual_sup, "largest residual of the greedy action anywhere"),
            "mismatch": (self.mismatch, "mismatch between weights and occupancy, 1-norm"),
            "disagreement": (self.disagreement, "disagreement of generated and greedy policy"),
        }
        return found | {
            f"violation {where}": (size, f"violation found {where}, which proves nothing")
            for where, size in self.evidence.items()
        }

    def __repr__(self) -> str:
        return f"<Certificate: {self.kind}, {value_text(self.bound)} lost at most>"

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        told = [("certificate", f"{self.kind}{reason}")]
        told += [("repair", self._repair_text)] if self._repair_text else []
        lines = [facts_text("", told), str(self.gap)]
        found = ", ".join(f"{size:.3g} {where}" for where, size in self.evidence.items())
        if found:
            lines.append(facts_text("", [("evidence", f"the largest violation found is {found}")]))
        return "\n".join(lines)


def certify(
    model: Model,
    result: Result,
    policy: Policy | None = None,
    *,
    episodes: int = 10_000,
    confidence: float = 0.95,
    seed: int | None = None,
    jobs: int | None = None,
) -> Certificate:
    """Return what is proven about the loss of a policy.

    Args:
        model: the model that was solved.
        result: what `solve` returned for it.
        policy: whose loss it is; the result's own by default.
        episodes: simulated for the cost where states cannot be listed.
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
    if not identity.same(result.basis, result.policy.basis):
        raise ArgumentError(
            "the basis of the result is not the one its policy was found with: solve again"
        )
    if isinstance(model, TabularModel):
        return _exact(model, result, policy).sealed()
    run = _Estimate(
        policy or result.policy,
        checks.count(episodes, "episodes", least=2),
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
    found = repaired(rows, result.coef, result.moments)
    judged = proper(model, policy or result.policy)
    cost = float(model.initial @ policy_value(model, judged))
    certificate = Certificate(
        bound=max(0.0, cost - found.value),
        greedy_bound=None,
        weighted_residual=None,
        residual_sup=None,
        mismatch=None,
        disagreement=None,
        kind="exact",
        reason="" if policy is None else OTHER_POLICY,
        value=found.value,
        cost=cost,
        violation=found.violation,
        repair=found.loss,
        model_name=model.name,
        model_digest=model.digest,
        record=_record(model, result, found.coef, judged),
    )
    generated = generating_policy(result)
    if policy is not None or result.weights is None or generated is None:
        return certificate
    return _with_corollary(certificate, model, rows, result, found, generated)


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
    residual[used] = largest_slacks(rows, found.coef, used, enough)
    rounded = 1.0 + gamma(model.n_states + model.n_actions + _ROUNDINGS)
    loss = rounded * by_state(model, greedy * residual)
    followed = exact_occupancy(model, generated)
    occupancy = followed.weights
    assert occupancy is not None
    assert followed.residual is not None
    # What the flow balance misses, and what that was computed with, passes through every step.
    uncertain = (followed.residual + _flow_rounding(model)) / left
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


def _flow_rounding(model: TabularModel) -> float:
    """Return a bound on the rounding of an occupancy's flow balance, in the 1-norm.

    Each state's flow is a sum over the pairs that lead there; the occupancy has mass one.
    """
    entering = np.bincount(model.transition.indices, minlength=model.n_states)
    most = int(entering.max(initial=0)) + model.n_actions
    return 4.0 * gamma(most + _ROUNDINGS)


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


def _record(
    model: TabularModel, result: Result, coef: FloatArray, policy: Policy
) -> dict[str, Any]:
    """Return what somebody else needs to compute the certificate again.

    `coef` are the coefficients that the certificate is about, `solved` those that the program
    ended with.
    """
    return {
        "basis": describe_basis(model, result.basis),
        "names": list(result.names),
        "coef": coef.tolist(),
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
        box, told = reachable_box(model), describe_linear_policy(self.policy)
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
        record = {**_plain_record(result, told), "coef": priced.coef.tolist()}
        return Certificate(
            bound=cost - value, greedy_bound=None, weighted_residual=None, residual_sup=None,
            mismatch=None, disagreement=None, kind="estimated", reason=SIMULATED,
            value=value, cost=cost, violation=priced.violation, repair=before - value,
            confidence=self.confidence, model_name=model.name, model_digest=model.digest,
            seed=self.seed, episodes=self.episodes, horizon=horizon,
            record={**record, "solved": result.coef.tolist(), "multipliers": priced.multipliers},
        )  # fmt: skip

    def events(self, model: FunctionModel, result: Result) -> Certificate:
        """Search the rows of all states where parts are local; elsewhere say what is missing."""
        if model.structure is not None:
            try:
                rows = LocalRows().on(cast("EventModel", model), result.basis)
            except (BasisError, ModelError):
                return self._sampled(model, result)
            return self._local(model, result, rows)
        return self._sampled(model, result)

    def _local(self, model: FunctionModel, result: Result, rows: EliminatedRows) -> Certificate:
        """Prove the rows of all states, and simulate the cost."""
        found = repaired_locally(rows, result.coef)
        if found is None:
            told = SIMULATED_INITIAL
            if rows.initial_moments is not None:
                told = f"{GROWING}: {growing_row(rows, result.coef)}: use LocalRows()"
            return self._unproven(model, result, told, _NOT_RECORDED)
        cost, horizon, reason = self._upper_cost(model)
        if reason:
            return self._unproven(model, result, reason, _NOT_RECORDED)
        record = {**_plain_record(result, _NOT_RECORDED), "coef": found.coef.tolist()}
        return Certificate(
            bound=cost - found.value, greedy_bound=None, weighted_residual=None, residual_sup=None,
            mismatch=None, disagreement=None, kind="exact", reason=ALL_STATES,
            value=found.value, cost=cost, violation=found.violation, repair=found.loss,
            confidence=self.confidence, model_name=model.name, model_digest=model.digest,
            seed=self.seed, episodes=self.episodes, horizon=horizon,
            record={**record, "tables": describe_local_values(rows, found.coef)},
        )  # fmt: skip

    def _sampled(self, model: FunctionModel, result: Result) -> Certificate:
        """Say what is missing, and what violation was found on fresh states and by a search."""
        found = self._unproven(model, result, SAMPLED, _NOT_RECORDED)
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
            bound=None, greedy_bound=None, weighted_residual=None, residual_sup=None, mismatch=None,
            disagreement=None, kind="unproven", reason=reason, value=result.objective,
            cost=cost.mean, violation=None, model_name=model.name, model_digest=model.digest,
            seed=self.seed, episodes=self.episodes, horizon=cost.horizon,
            record=_plain_record(result, told),
        )  # fmt: skip


_NOT_RECORDED = {"kind": "unknown", "reason": "policies of event models are not recorded"}


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
    allowed = violation + _CLOSE * float(np.abs(coef).max())
    proven = np.inf
    for share in _SHRUNK:
        smaller, factors = (1.0 - share) * coef, (1.0 - share) * multipliers
        proven = max(0.0, -least_slack(rows.model, smaller, rows.box, factors))
        if proven <= allowed:
            return _Priced(smaller, proven, factors.tolist())
    # Whole numbers may violate less than their relaxation: then the solver's word has to do.
    return _Priced(coef, violation if np.isfinite(proven) else np.inf, None)


def _violation(model: FunctionModel, result: Result, states: Any) -> float:
    rows = EventRows(model, result.basis, model.check_states(states))
    return rows.separate(result.coef, 0.0).violation
