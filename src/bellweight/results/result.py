"""What a run found, how it ended, how good it is, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bellweight.backends import Estimate, Visited, backend_of, simulated_occupancy
from bellweight.basis import Basis
from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import PolicyError, Status
from bellweight.display import Column, Table, facts_table, interval_text, number_text
from bellweight.display.charts import Picture
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.presentable import Pictures
from bellweight.evaluation.evaluate import Difference
from bellweight.models import Model
from bellweight.policies import Greedy, Policy, Support
from bellweight.program import Audit
from bellweight.results.base import BaseResult
from bellweight.results.charts import (
    convergence_chart,
    moment_chart,
    policy_charts,
    residual_charts,
    value_charts,
    weight_charts,
)
from bellweight.results.cross_sections import CrossSection, cross_sections
from bellweight.results.judgement import Judgement
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Stop
from bellweight.weights.methods import DIA

_LOOK = Simulation(episodes=1_000)


@files.storable("Phase")
@dataclass(frozen=True, eq=False)
class CyclePhase(files.Changed):
    """One phase of a cycle: its weights, coefficients, dual, greedy policy and cost.

    `is_constant` says that the value function of a linear model is the same in every state, so that
    ties decide the policy.
    """

    coef: FloatArray
    moments: FloatArray
    weights: FloatArray | None
    support: Support
    policy: Greedy
    cost: Estimate
    is_constant: bool = False

    @classmethod
    def from_format_1(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """Put cost and half-width together."""
        width = stored.pop("half_width", None)
        return {**stored, "cost": Estimate(stored["cost"], width or 0.0)}


@files.storable("Result")
@dataclass(frozen=True, eq=False)
class Result(BaseResult, files.Changed):
    """What a run found, how it ended, and how good it is.

    `coef` (K,) belongs to the basis as the user wrote it. `cost` is that of the greedy policy from
    the initial distribution, an estimate: exact on tabular models (half-width 0), elsewhere from
    the simulation that judged it, None where it was not judged. `judgement` tells what acting at
    random and the method's target cost. `lower_bound` is the value of repaired coefficients at the
    initial distribution: every row is proven to hold there in spite of rounding. Its kind,
    `lower_bound_kind`, is `exact`, or `unproven` where there is none, because states cannot be
    enumerated. Where both are exact the optimal cost lies between them. `support` lists where
    the dual has mass; `dual` is the same as an array over the pairs of a tabular model.
    `moments_error` (K,) are the standard errors of simulated moments. `regularisation` is that of
    the program; a lower bound has been repaired for the violation that it allows. `average` is the
    reported iterate of a cycle where that is the average of its `phases`, else None. `generated` is
    the policy that the method generated last, whose occupancy the weights should match; None where
    it generates none. `seconds` is what the run took, without the judgement's own seconds.
    """

    status: Status
    method: Any
    mode: str
    basis: Basis
    names: tuple[str, ...]
    coef: FloatArray
    moments: FloatArray
    weights: FloatArray | None
    support: Support
    dual: FloatArray | None
    policy: Greedy
    objective: float
    lower_bound: float | None
    cost: Estimate | None
    moments_error: FloatArray | None
    history: tuple[HistoryEntry, ...]
    reported_iteration: int
    phases: tuple[CyclePhase, ...]
    warnings: tuple[str, ...]
    stop: Stop
    seed: int
    seconds: float
    model_name: str
    model_size: str
    model_digest: str
    regularisation: float = 0.0
    average: CyclePhase | None = None
    judgement: Judgement | None = None
    generated: Policy | files.Unstored | None = None
    lower_bound_kind: str = "unproven"

    @property
    def is_exact(self) -> bool:
        """Whether occupancies and costs are exact, as on tabular models, and not simulated."""
        return self.dual is not None

    @property
    def fresh_seed(self) -> int:
        """A seed that the run did not use: no policy is judged on the episodes that shaped it."""
        return self.seed + 1

    @property
    def method_name(self) -> str:
        """The name of the method, also of one that a file could not hold."""
        method = self.method
        return method.text if isinstance(method, files.Unstored) else type(method).__name__

    @property
    def audit(self) -> Audit:
        """The audit of the reported program."""
        return self.reported.audit

    @property
    def reported(self) -> HistoryEntry:
        """The history entry of the reported iterate."""
        return self.history[self.reported_iteration]

    def stored_fault(self) -> str:
        n = len(self.names)
        if self.coef.shape[-1:] != (n,) or self.moments.shape[-1:] != (n,):
            return f"coefficients or moments are not those of {n} functions"
        if not 0 <= self.reported_iteration < len(self.history):
            return f"iteration {self.reported_iteration} of {len(self.history)} is reported"
        if self.weights is not None and self.dual is None:
            return "there are weights, but no dual"
        return "" if self.judgement is None else self.judgement.fault

    @classmethod
    def from_format_1(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """Give the cost its error and the bound its kind."""
        cost, judgement = stored["cost"], stored.get("judgement")
        width = 0.0 if judgement is None else judgement.cost.half_width
        kind = "unproven" if stored["lower_bound"] is None else "exact"
        estimate = None if cost is None else Estimate(cost, width)
        return {**stored, "cost": estimate, "lower_bound_kind": kind}

    @property
    def model_text(self) -> str:
        return f"{self.model_name}, {self.model_size}"

    def on(self, model: Model) -> Self:
        return replace(self, policy=replace(self.policy, model=model))

    def table(self) -> Table:
        """Return what was found, how it ended and what to try next, one fact to a row."""
        return facts_table(headline(self), facts(self))

    def records(self) -> Table:
        """Return the history, one row for each iteration."""
        keys = [field.name for field in fields(HistoryEntry) if field.name != "audit"]
        columns = tuple(Column(key, key) for key in keys)
        rows = tuple({key: getattr(record, key) for key in keys} for record in self.history)
        return Table(f"History of {headline(self)}", columns, rows)

    def pictures(self) -> Pictures:
        """Return the pictures by name; those of states need the model."""
        known: Pictures = {"gap": self._gap, "convergence": self._convergence}
        if self.policy.model is None:
            return known
        return {
            **known,
            "weights": self._weights,
            "value": lambda: value_charts(self.visited, self._sections),
            "policy": lambda: policy_charts(self.visited, self._sections),
            "residual": lambda: residual_charts(self.visited, self._sections),
        }

    @cached_property
    def visited(self) -> Visited:
        """What the policy meets in its model: states, values, residuals."""
        if self.policy.model is None:
            raise PolicyError("the result was loaded without its model: Result.load(path, model)")
        return backend_of(self.policy.model).visited(
            self.basis, self.coef, self.moments, self.policy, self.fresh_seed
        )

    @cached_property
    def _sections(self) -> tuple[CrossSection, ...]:
        return cross_sections(self.visited)

    def _gap(self) -> tuple[Picture, ...]:
        if self.cost is None:
            return ()
        mean, width = self.cost.mean, self.cost.half_width or None
        return (gap_chart([Between(self.method_name, mean, width, self.lower_bound)]),)

    def _convergence(self) -> tuple[Picture, ...]:
        return convergence_chart(self.history, exact=self.weights is not None)

    def _weights(self) -> tuple[Picture, ...]:
        if self.weights is not None:
            return weight_charts(self.visited, self.weights)
        model = self.policy.model
        assert model is not None
        found = simulated_occupancy(model, self.policy, self.basis, _LOOK, seed=self.fresh_seed)
        assert found.moments is not None
        assert found.standard_error is not None
        error = found.standard_error
        if self.moments_error is not None:
            error = np.hypot(error, self.moments_error)
        return (moment_chart(self.names, self.moments, found.moments, error),)

    def __str__(self) -> str:
        return "\n".join([headline(self), *(f"{name:<11} {text}" for name, text in facts(self))])


def headline(result: Result) -> str:
    """Return in a line what was solved, and how."""
    name = result.method_name
    size = f"({result.model_size}), {len(result.names)} basis functions"
    return f"{name} on {result.model_name} {size}"


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Tell what was found, how it ended, and what to try next: names and texts."""
    name = result.method_name
    last = result.reported
    yield "status", f"{result.status.name}: {result.status.message}"
    found = result.judgement
    judged = "" if found is None else f"; judged in {found.seconds:.2f} s"
    yield "iterations", f"{len(result.history)} in {result.seconds:.2f} s{judged}"
    if last.sup_norm is not None:
        of = "" if result.weights is not None else "moments of "
        yield "mismatch", f"{last.sup_norm:.2g} between {of}weights and occupancy (sup norm)"
    ratios = [record.step_ratio for record in result.history if record.step_ratio is not None]
    if len(ratios) >= 2:
        # The median: the last ratios of a converged run are those of rounding errors.
        seen = f"observed {float(np.median(ratios)):.2g} per iteration"
        yield "contraction", f"{seen}{_proven_modulus(result)}"
    if last.smoothing_mass is not None:
        yield "smoothing", f"mass {last.smoothing_mass:.3g}, adapted: the weights belong to it"
    if last.noise_ratio is not None:
        yield "noise", f"moments within {last.noise_ratio:.2g} standard errors"
    if last.dual_share is not None:
        alone = " (DIA follows its target)" if name == "DIA" and last.dual_share == 0.0 else ""
        yield "dual mass", f"on {100.0 * last.dual_share:.3g} % of visits{alone}"
    yield from _cost_facts(result)
    if result.regularisation > 0.0:
        states = len(np.unique(result.support.states, axis=0))
        yield (
            "regularised",
            f"by {result.regularisation:g}: the dual has mass in {states:,} states, rows may be "
            f"violated by {last.audit.violation:.3g}",
        )
    if last.columns is not None:
        rounds = sum(record.passes for record in result.history)
        seconds = sum(record.solve_seconds for record in result.history)
        yield (
            "columns",
            f"{last.columns:,} priced in {rounds:,} rounds, {seconds:.2f} s; the last "
            f"round {'proves the optimum' if last.proven else 'was cut short'}; the minimum-norm "
            "dual is the one over these columns",
        )
    yield (
        "audit",
        f"violation {last.audit.violation:.1g}, dual residual {last.audit.dual_residual:.1g}, "
        f"gap {last.audit.gap:.1g}",
    )
    terms = [f"{value:+.6g} {name}" for value, name in zip(result.coef, result.names, strict=True)]
    shown = terms[:6] + (["..."] if len(terms) > 6 else [])
    yield "value", "  ".join(shown)
    for number, phase in enumerate(result.phases, start=1):
        yield f"phase {number}", _phase_text(phase)
    if result.average is not None:
        yield "average", f"{_phase_text(result.average)}; this is the result"
        yield (
            "residual",
            f"{last.sup_norm:.3g} (sup norm), {last.one_norm:.3g} (1-norm) between weights and "
            "occupancy at the average",
        )
    for text in result.warnings:
        yield "warning", text
    yield "next", result.status.remedy or _advice(result)


def _phase_text(phase: CyclePhase) -> str:
    mean, width = phase.cost.mean, phase.cost.half_width
    error = f" +- {number_text(width)}" if width else ""
    ties = " (constant value: decided by ties)" if phase.is_constant else ""
    return f"cost {number_text(mean)}{error}{ties}"


def _cost_facts(result: Result) -> Iterator[tuple[str, str]]:
    if result.cost is None:
        return
    if result.is_exact:
        yield "cost", f"{result.cost} (greedy policy, exact, over all time)"
    elif result.judgement is not None:
        yield "cost", f"{result.cost} (greedy policy, {_simulated(result.judgement)})"
    if result.judgement is not None:
        yield from _rivals(result.judgement)
    if result.is_exact and result.lower_bound is not None:
        gap = max(0.0, result.cost.mean - result.lower_bound)
        yield "optimum", f"between {number_text(result.lower_bound)} and {result.cost}"
        yield "loss", f"at most {number_text(gap)} ({_share(gap, result.cost.mean)})"


def _simulated(found: Judgement) -> str:
    tail = "" if found.tail_bound is None else f", tail at most {found.tail_bound:,.3g}"
    return f"{found.episodes:,} episodes of {found.horizon:,} steps{tail}"


def _rivals(found: Judgement) -> Iterator[tuple[str, str]]:
    """Tell what acting at random and the target cost, and how the policy compares."""
    if found.random is None:
        yield "at random", f"not known: {found.random_reason}"
    else:
        also = ", also the target" if found.target_is_random else ""
        yield "at random", f"{found.random}{also}; {_compared(found.minus_random)}"
    if found.target is not None:
        yield "target", f"{found.target}; {_compared(found.minus_target)}"


def _compared(gap: Difference | None) -> str:
    assert gap is not None
    if gap.is_clear:
        apart = interval_text(abs(gap.mean), gap.half_width)
        return f"the policy costs {apart} {'less' if gap.mean < 0.0 else 'more'}"
    if gap.mean == gap.half_width == 0.0:
        return "the policy costs the same"
    apart = interval_text(gap.mean, gap.half_width, sign="+")
    return f"the difference, {apart}, is within noise"


def _proven_modulus(result: Result) -> str:
    certified = isinstance(result.method, DIA) and result.method.modulus is not None
    return f", at most {result.method.modulus:.2g} proven" if certified else ""


def _advice(result: Result) -> str:
    if result.cost is None:
        return "bellweight.evaluate(model, result.policy) tells what the policy costs"
    if not result.is_exact or result.lower_bound is None:
        return "bellweight.compare(model, ...) compares the policy with those you know"
    if result.cost.mean - result.lower_bound <= 1e-3 * abs(result.cost.mean):
        return "nothing: the policy is within 0.1 % of optimal"
    return "a richer basis may tighten the bound; result.policy.action(state) acts"


def _share(gap: float, cost: float) -> str:
    return f"{100.0 * gap / abs(cost):.3g} %" if cost else "cost is zero"
