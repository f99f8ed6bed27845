"""How far from optimal can a policy be? Certificates, and what is proven about them.

With feasible coefficients r, J' = Phi r lies below the optimal values, and the Bellman residual
s(x, a) = cost(x, a) + discount E[J'(next)] - J'(x) is not negative. For any stationary policy pi,

    0 <= initial' (J^pi - J*) <= occupancy' s^pi / (1 - discount) = initial' (J^pi - J')

(thm. residual_certificate): `bound`. For the greedy policy u of the coefficients, with weights c,
the occupancy F(c) of the policy pi_c that the method generates from them, the mismatch
R = ||F(c) - c||_1 and the disagreement D = sum_x F(c)(x) [1 - pi_c(u(x) | x)],

    initial' (J^u - J*) <= (c' s^u + sup s^u [R + 2 discount D / (1 - discount)]) / (1 - discount)

(cor. greedy_certificate): `greedy_bound`, with its terms. `certifying` says where they are known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from bellweight.certificates.fields import FORMAT, HEADER, checksum, fault, read_fields
from bellweight.common import files, tolerances
from bellweight.common.short import value_text
from bellweight.common.status import ArgumentError, FileError
from bellweight.display import Column, Table, facts_text, number_text
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.presentable import Pictures, Presentable
from bellweight.results.gap import Gap

TOLERANCE = tolerances.VERIFIED
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
NO_BOX = "nothing is proven over the box"
GROWING = "the violation of rows grows without limit along an endless coordinate"
BEYOND = "the coefficients are beyond what a certificate may hold"
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
    "box": "a basis with more functions, rows at more states, a better policy, more episodes",
    "unproven": "LocalRows() where the parts of the model are local, lipschitz= or bends= of a "
    "step model, or information relaxation: result.gap(model, paths=200)",
}
_MUCH = 0.01  # of the value: a repair that takes more is told in words

_COST = "expected discounted cost of the policy"
_COST_LIMIT = "upper confidence limit of the policy's cost"
_VALUE = {
    "exact": "no policy costs less than this",
    "estimated": "no policy costs less than this in the model with its nodes or draws of the noise",
    "unproven": "objective of the program under its weights, not a bound",
}
_COROLLARY = ("greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement")


def _term_text(value: float) -> str:
    """Return a number of a certificate; two digits of one that is tiny or huge."""
    return number_text(value) if value == 0.0 or 1e-3 <= abs(value) < 1e9 else f"{value:.2g}"


_COLUMNS = (
    Column("meaning", "statement", right=False),
    Column("value", "value", _term_text),
    Column("term", "", None),
)


@dataclass(frozen=True, repr=False, kw_only=True)
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
            `value_kind` is `unproven`.
        value_kind: `exact`, `estimated` where it is proven for a model whose noise has been
            replaced by nodes or draws, or `unproven`. It may be proven where the loss is not.
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
    greedy_bound: float | None = None
    weighted_residual: float | None = None
    residual_sup: float | None = None
    mismatch: float | None = None
    disagreement: float | None = None
    kind: str
    reason: str
    value: float
    cost: float
    violation: float | None
    value_kind: str = "exact"
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
        if self.value_kind == "unproven":
            return Gap(self.cost, None, "unproven", self.reason, _ADVICE["unproven"])
        told = (self.cost, self.value)
        if self.bound is None:
            return Gap(*told, "unproven", self.reason, _ADVICE["box"], None, self.value_kind)
        if self.confidence is None:
            return Gap(*told, "exact", _PROOF["exact"], _ADVICE["exact"])
        way = {ALL_STATES: "local", SIMULATED: "priced"}.get(self.reason, "box")
        proof = _PROOF.get(way, self.reason)
        return Gap(*told, "estimated", proof, _ADVICE[way], self.confidence)

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
        low = None if self.value_kind == "unproven" else self.value
        return {"gap": lambda: (gap_chart([Between("policy", self.cost, low=low)]),)}

    def _terms(self) -> dict[str, tuple[float | None, str]]:
        found: dict[str, tuple[float | None, str]] = {
            "bound": (self.bound, "the policy costs at most this much more than the best one"),
            "cost": (self.cost, _COST if self.confidence is None else _COST_LIMIT),
            "value": (self.value, _VALUE[self.value_kind]),
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
        said = self.reason == self.gap.proof  # below, as the proof
        reason = f": {self.reason}" if self.reason and not said else ""
        told = [("certificate", f"{self.kind}{reason}")]
        told += [("repair", self._repair_text)] if self._repair_text else []
        lines = [facts_text("", told), str(self.gap)]
        found = ", ".join(f"{size:.3g} {where}" for where, size in self.evidence.items())
        if found:
            lines.append(facts_text("", [("evidence", f"the largest violation found is {found}")]))
        return "\n".join(lines)
