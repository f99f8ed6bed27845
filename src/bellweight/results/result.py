"""What a run found, how it ended, how good it is, and how it is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from bellweight.backends import Estimate, Evidence, Point, Visited, backend_of, simulated_occupancy
from bellweight.basis import Basis
from bellweight.common import files, identity, tolerances
from bellweight.common.checks import BoolArray, FloatArray
from bellweight.common.short import Short
from bellweight.common.status import FileError, PolicyError, Status
from bellweight.display import Column, Table, facts_table, facts_text, number_text, short_text
from bellweight.display.charts import Picture
from bellweight.display.cost_charts import Between
from bellweight.display.presentable import Pictures
from bellweight.models import Model
from bellweight.policies import Greedy, Policy, Support
from bellweight.program import Audit
from bellweight.results.base import BaseResult
from bellweight.results.charts import (
    convergence_chart,
    cost_chart,
    moment_chart,
    policy_charts,
    residual_charts,
    value_charts,
    weight_charts,
)
from bellweight.results.cross_sections import CrossSection, cross_sections
from bellweight.results.gap import Gap, gap_of
from bellweight.results.judgement import Judgement, rival_facts
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Stop
from bellweight.weights.methods import DIA

_LOOK = Simulation(episodes=1_000)
_HARDLY_ANY = 5e-4  # share of visits
_TERMS = 6  # of the value function that are shown


@files.storable("Phase")
@dataclass(frozen=True, eq=False, repr=False)
class CyclePhase(Short, files.Changed):
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
@dataclass(frozen=True, eq=False, repr=False)
class Result(BaseResult, files.Changed):
    """What a run found, how it ended, and how good it is.

    Everything comes from one iterate, the reported one. K basis functions, S states. Where bound
    and cost are exact the optimal cost lies between them.

    Attributes:
        status: how the run ended.
        method: the method with its settings.
        mode: `certified` where convergence is proven, otherwise `practical`.
        basis: the basis, fitted to the model.
        names: those of its functions.
        coef: coefficients (K,) of the basis as the user wrote it.
        moments: averages (K,) of the functions under the weights.
        weights: state-relevance weights (S,), None where states cannot be listed.
        support: where the dual has mass.
        dual: the same as an array over the pairs of a tabular model.
        policy: the greedy policy of the value function.
        objective: of the program.
        lower_bound: what no policy's cost can undercut: the value of repaired coefficients at the
            initial distribution, at which every row is proven to hold in spite of rounding.
        cost: the policy's from the initial distribution, with its error: exact on tabular models
            (half-width 0), elsewhere from the simulation that judged it; None where it was not
            judged.
        moments_error: standard errors (K,) of simulated moments.
        history: one entry for each iteration.
        reported_iteration: which of them is reported.
        phases: of weights that cycle.
        warnings: what to be careful about, in words.
        stop: when it was to stop.
        seed: that decided everything random.
        seconds: that the run took, without compiling and without the judgement's own.
        model_name: of the model.
        model_size: of the model, in words.
        model_digest: tells whether a model is the one that was solved.
        regularisation: of the program; a lower bound has been repaired for what it allows.
        average: the reported iterate of a cycle where that is the average of its phases, else None.
        judgement: what acting at random and the method's target cost.
        generated: the policy that the method generated last, whose occupancy the weights should
            match.
        lower_bound_kind: `exact`, `estimated` where it is proven for a model whose noise has been
            replaced by nodes, or `unproven` where there is none.
        lower_bound_reason: how it is known.
        evidence: what a search over the box of a step model found.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Polynomial(3), bw.DIA())
        >>> result
        <Result: DIA on single queue, CONVERGED, cost 337.96>
        >>> result.policy.action(5)
        2
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
    lower_bound_reason: str = ""
    evidence: Evidence | None = None

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

    def value(self, state: Any) -> float:
        """Return the approximate value of one state, as the policy's `action` takes it.

        It is the value of the coefficients as they are: where rows are proven to hold, the optimal
        cost from this state is not below it, up to rounding.
        """
        if self.policy.model is None:
            raise PolicyError(
                "the result does not know its model: pass Result.load(path, model=model), or use "
                "result.on(model).value(state)"
            )
        point = backend_of(self.policy.model).one_point(state)
        return float((self.basis(point) @ self.coef)[0])

    def gap(
        self,
        model: Model,
        policy: Policy | None = None,
        *,
        episodes: int | None = None,
        confidence: float = 0.95,
        paths: int = 0,
        horizon: int | None = None,
        seed: int | None = None,
        jobs: int | None = None,
        kept_in: str | os.PathLike[str] | None = None,
    ) -> Gap:
        """Return how good the policy is: what it costs at most, and what no policy can save.

        The lower bound is that of `certify`. With `paths`, models whose states are not listed also
        get one by information relaxation on so many paths of `horizon` steps, and the higher of the
        two counts; finished paths are kept in the file `kept_in`, and the same call goes on after
        it was cut short. What is simulated holds with the one-sided `confidence`. `policy` is the
        result's own by default.
        """
        return gap_of(
            model, self, policy, episodes=episodes, confidence=confidence, paths=paths,
            horizon=horizon, seed=seed, jobs=jobs, kept_in=kept_in,
        )  # fmt: skip

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        model: Model | None = None,
        basis: Basis | None = None,
    ) -> Self:
        """Read what `save` wrote; `model` and `basis` must be those it was solved with.

        A file keeps the digest of a `Custom` basis's function, not the function: with `basis` it is
        compared, and put back where the result and its policies need it.
        """
        found = super().load(path, model)
        return found if basis is None else found._with_basis(basis, path)

    def _with_basis(self, basis: Basis, path: str | os.PathLike[str]) -> Self:
        if not isinstance(basis, Basis):
            raise FileError(f"basis is {basis!r}, expected the basis that {path} was solved with")
        states = getattr(self.policy.model, "states", None)
        ways = [basis] if states is None else [basis, basis.on(states)]
        given = next((way for way in ways if identity.same(self.basis, way)), None)
        if given is None:
            lost = identity.first_unstored(self.basis)
            function = "" if lost is None else f", with the function {lost.text}"
            raise FileError(
                f"{path} was solved with another basis ({type(self.basis).__name__} of "
                f"{', '.join(self.names[:3])}{', ...' if len(self.names) > 3 else ''}{function})"
                f"{identity.doubt_of(self.basis, basis)}: load it with the basis it was solved "
                "with, or solve again"
            )
        phases = tuple(
            replace(phase, policy=replace(phase.policy, basis=given)) for phase in self.phases
        )
        generated = self.generated
        if isinstance(generated, Greedy):
            generated = replace(generated, basis=given)
        return replace(
            self, basis=given, policy=replace(self.policy, basis=given), phases=phases,
            generated=generated,
        )  # fmt: skip

    def table(self) -> Table:
        """Return what was found, how it ended and what to try next, one fact to a row."""
        return facts_table(headline(self), facts(self))

    def records(self) -> Table:
        """Return the history, one row for each iteration; the first is number 1, as it is shown."""
        keys = [field.name for field in fields(HistoryEntry) if field.name != "audit"]
        columns = tuple(Column(key, key) for key in keys)
        rows = tuple(
            {key: getattr(record, key) for key in keys} | {"iteration": record.iteration + 1}
            for record in self.history
        )
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
            self.basis, self.coef, Point(self.moments, self.weights), self.policy, self.fresh_seed
        )

    @cached_property
    def _sections(self) -> tuple[CrossSection, ...]:
        return cross_sections(self.visited)

    def _gap(self) -> tuple[Picture, ...]:
        if self.cost is None:
            return ()
        mean, width = self.cost.mean, self.cost.half_width or None
        own = Between(self.method_name, mean, width, self.lower_bound)
        return (cost_chart(own, self.judgement),)

    def _convergence(self) -> tuple[Picture, ...]:
        return convergence_chart(self.history, exact=self.weights is not None)

    def _weights(self) -> tuple[Picture, ...]:
        if self.weights is not None:
            return weight_charts(self.visited, self.weights)
        model = self.policy.model
        assert model is not None
        judged = 0 if self.judgement is None else self.judgement.episodes
        look = replace(_LOOK, episodes=min(_LOOK.episodes, judged or _LOOK.episodes))
        found = simulated_occupancy(model, self.policy, self.basis, look, seed=self.fresh_seed)
        assert found.moments is not None
        assert found.standard_error is not None
        error = found.standard_error
        if self.moments_error is not None:
            error = np.hypot(error, self.moments_error)
        return (moment_chart(self.names, self.moments, found.moments, error),)

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f", cost {self.cost}"
        solved = f"{self.method_name} on {self.model_name}"
        return f"<Result: {solved}, {self.status.name}{cost}>"

    def __str__(self) -> str:
        return facts_text(headline(self), summary(self))


def headline(result: Result) -> str:
    """Return in a line what was solved, and how."""
    name = result.method_name
    size = f"({result.model_size}), {len(result.names)} basis functions"
    return f"{name} on {result.model_name} {size}"


def summary(result: Result) -> Iterator[tuple[str, str]]:
    """Tell on one screen what was found, how good it is, and what to try next."""
    last = result.reported
    yield "status", f"{result.status.name}: {result.status.message}"
    yield from _cost_facts(result)
    yield from _bound_facts(result)
    yield "weights", _weights_text(result)
    if last.dual_share is not None and result.method_name == "DIA":
        yield "dual", dual_text(last.dual_share)
    if last.smoothing_mass is not None:
        yield "smoothing", f"mass {last.smoothing_mass:.3g}, adapted to the weights"
    if result.regularisation > 0.0:
        yield "regularised", _regularised_text(result)
    yield from _ending(result)


def _ending(result: Result) -> Iterator[tuple[str, str]]:
    """Tell the value function, the phases of a cycle, the warnings and what to try next."""
    yield "value", value_text(result)
    yield from _phases(result)
    for text in result.warnings:
        yield "warning", text
    yield "next", result.status.remedy or _advice(result)


def dual_text(share: float) -> str:
    """Say what the share of visits with dual mass means for DIA."""
    if share < _HARDLY_ANY:
        return (
            "no visited state has dual mass: DIA follows its target here, and its weights are "
            "those of the target's occupancy"
        )
    if share > 1.0 - _HARDLY_ANY:
        return "decides on all visits"
    return f"decides on {100.0 * share:.3g} % of visits; on the others DIA follows its target"


def value_text(result: Result) -> str:
    """Return the approximate cost-to-go as a sum, its first terms."""
    terms = zip(result.coef, result.names, terms_that_matter(result), strict=True)
    shown = [_term(value, name) for value, name, matters in terms if matters]
    if len(shown) > _TERMS:
        shown = [*shown[:_TERMS], f"+ ... ({len(shown) - _TERMS} more)"]
    text = " ".join(shown).removeprefix("+ ")
    return f"-{text[2:]}" if text.startswith("- ") else text or "0"


def terms_that_matter(result: Result) -> BoolArray:
    """Return which terms (K,) are more than what rounding left of a zero.

    Looked at where rows are tight, and on average: a tiny coefficient of a high power may matter.
    """
    states, model = result.support.states, result.policy.model
    if states.ndim == 1 and model is not None and len(states) > 0:
        points = backend_of(model).one_point
        states = np.vstack([points(state) for state in states])
    if states.ndim == 1 or identity.first_unstored(result.basis) is not None:
        return result.coef != 0.0
    found = result.basis(np.asarray(states, dtype=np.float64))
    if sparse.issparse(found):
        return result.coef != 0.0
    features = np.vstack([result.moments, found])
    sizes = np.abs(features * result.coef)
    matters: BoolArray = (sizes > tolerances.NO_TERM * sizes.max(axis=1, keepdims=True)).any(axis=0)
    return matters


def _term(value: float, name: str) -> str:
    sign = "-" if value < 0.0 else "+"
    return f"{sign} {short_text(abs(value))}" + ("" if name == "1" else f" {name}")


def _weights_text(result: Result) -> str:
    n = len(result.history)
    last = result.reported
    took = f"{n} iteration{'s' if n > 1 else ''} in {result.seconds:.2g} s"
    if last.noise_ratio is not None:
        error = "" if last.noise_ratio == 0.0 else f" within {last.noise_ratio:.2g} standard errors"
        return f"{took}; they agree with what was simulated{error}"
    if last.sup_norm is None:
        return f"as given; solved in {result.seconds:.2g} s"
    if last.sup_norm == 0.0:
        return f"{took}; they are the occupancy of the policy that they lead to"
    return f"{took}; they differ from the occupancy by {last.sup_norm:.2g} at most"


def _regularised_text(result: Result) -> str:
    states = len(np.unique(result.support.states, axis=0))
    return (
        f"by {result.regularisation:g}: the dual has mass in {states:,} states, rows may be "
        f"violated by {result.audit.violation:.3g}"
    )


def _phases(result: Result) -> Iterator[tuple[str, str]]:
    last = result.reported
    for number, phase in enumerate(result.phases, start=1):
        yield f"phase {number}", _phase_text(phase)
    if result.average is not None:
        yield "average", f"{_phase_text(result.average)}; this is the result"
        yield (
            "residual",
            f"{last.sup_norm:.3g} (sup norm), {last.one_norm:.3g} (1-norm) between weights and "
            "occupancy at the average",
        )


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield all facts as names with texts, numerical details included."""
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
        yield "smoothing", f"mass {last.smoothing_mass:.3g}, adapted to the weights"
    if last.noise_ratio is not None:
        yield "noise", f"moments within {last.noise_ratio:.2g} standard errors"
    if last.dual_share is not None:
        meaning = f": {dual_text(last.dual_share)}" if name == "DIA" else ""
        yield "dual mass", f"on {100.0 * last.dual_share:.3g} % of visits{meaning}"
    yield from _cost_facts(result)
    if result.regularisation > 0.0:
        yield "regularised", _regularised_text(result)
    if last.columns is not None:
        rounds = sum(record.passes for record in result.history)
        seconds = sum(record.solve_seconds for record in result.history)
        yield (
            "columns",
            f"{last.columns:,} priced in {rounds:,} rounds, {seconds:.2f} s; the last "
            f"round {'proves the optimum' if last.proven else 'was cut short'}; the minimum-norm "
            "dual is the one over these columns",
        )
    yield from _bound_facts(result)
    yield (
        "audit",
        f"violation {last.audit.violation:.1g}, dual residual {last.audit.dual_residual:.1g}, "
        f"gap {last.audit.gap:.1g}",
    )
    yield from _ending(result)


def _bound_facts(result: Result) -> Iterator[tuple[str, str]]:
    """Tell the proven bound of a simulated model, and what a search found between its rows."""
    if result.lower_bound is not None and not result.is_exact:
        told = f"{result.lower_bound_kind}: {result.lower_bound_reason}"
        yield "bound", f"no policy costs less than {number_text(result.lower_bound)} ({told})"
    elif result.lower_bound_reason and result.lower_bound is None:
        yield "bound", f"none is proven from what is declared: {result.lower_bound_reason}"
    found = result.evidence
    if found is None:
        return
    place = ", ".join(f"{value:.6g}" for value in found.state)
    if found.violation > 0.0:
        told = (
            f"a search over the whole box found rows violated by up to {found.violation:.3g}, most"
        )
    else:
        told = f"a search over the whole box found no violated row; {-found.violation:.3g} is left"
    yield "search", f"{told} at ({place}) with {found.action}"
    if found.draws_error is not None:
        yield "draws", f"another set of draws moves the objective by about {found.draws_error:.3g}"


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
        yield from rival_facts(result.judgement)
    if result.is_exact and result.lower_bound is not None:
        gap = max(0.0, result.cost.mean - result.lower_bound)
        yield "optimum", f"between {number_text(result.lower_bound)} and {result.cost}"
        most = f"at most {short_text(gap, 3)} ({_share(gap, result.cost.mean)})"
        tiny = gap <= tolerances.SAME_COST * abs(result.cost.mean)
        yield "loss", "none beyond rounding" if tiny else most


def _simulated(found: Judgement) -> str:
    tail = "" if found.tail_bound is None else f", tail at most {short_text(found.tail_bound, 3)}"
    if found.tail_bound is not None and found.tail_bound > abs(found.cost.mean):
        tail = ", the bound on its tail is of no use"
    return f"{found.episodes:,} episodes of {found.horizon:,} steps{tail}"


def _proven_modulus(result: Result) -> str:
    certified = isinstance(result.method, DIA) and result.method.modulus is not None
    return f", at most {result.method.modulus:.2g} proven" if certified else ""


def _advice(result: Result) -> str:
    if result.cost is None:
        return "bellweight.evaluate(model, result.policy) tells what the policy costs"
    known = result.lower_bound if result.is_exact else None
    nearly = tolerances.NEARLY_OPTIMAL * abs(result.cost.mean)
    if known is not None and result.cost.mean - known <= nearly:
        return "nothing: the policy is within 0.1 % of optimal"
    if result.judgement is not None and result.judgement.is_no_better:
        return "bellweight.solve(model, basis, bellweight.Auto()) tries other methods"
    if known is None:
        return "bellweight.compare(model, ...) compares the policy with those you know"
    return "a richer basis may tighten the bound; result.policy.action(state) acts"


def _share(gap: float, cost: float) -> str:
    return f"{100.0 * gap / abs(cost):.3g} %" if cost else "cost is zero"
