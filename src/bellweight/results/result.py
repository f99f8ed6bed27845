"""What a run found: a file that knows its model, and pictures of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bellweight.backends import Estimate, Evidence, Point, Visited, backend_of, simulated_occupancy
from bellweight.basis import Basis
from bellweight.common import files, identity
from bellweight.common.checks import FloatArray
from bellweight.common.short import Short
from bellweight.common.status import FileError, PolicyError, Status
from bellweight.display import Column, Table, facts_table, facts_text
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
from bellweight.results.judgement import Judgement
from bellweight.results.summary import facts, headline, summary
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Stop

_LOOK = Simulation(episodes=1_000)


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
        return self._with_policies(model=model)

    def _with_policies(self, **changes: Any) -> Self:
        """Return the same with some fields of all greedy policies replaced: also of the phases."""

        def changed(phase: CyclePhase) -> CyclePhase:
            return replace(phase, policy=replace(phase.policy, **changes))

        generated = self.generated
        if isinstance(generated, Greedy):
            generated = replace(generated, **changes)
        return replace(
            self,
            policy=replace(self.policy, **changes),
            phases=tuple(map(changed, self.phases)),
            average=None if self.average is None else changed(self.average),
            generated=generated,
        )

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
        return replace(self._with_policies(basis=given), basis=given)

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
