"""Self-guided programs: random features, batch after batch, each no lower than the last.

Pakiman, Nadarajah, Soheili and Lin ("Self-guided approximate linear programs"): cosines with
random frequencies are added to the basis batch by batch, and every program after the first has
guiding rows V_new(x) >= V_old(x) at every state x. The bases are nested, so V_old is feasible for
the new program; values rise at every state, and lower bounds never fall, whatever the weights.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from bellweight.backends import Estimate, Setup, listed
from bellweight.backends.tabular import TabularSetup
from bellweight.basis import Basis, Fourier
from bellweight.basis.composed import stacked_on
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.display import Column, Table, number_text
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.presentable import Pictures
from bellweight.models import Model, TabularModel
from bellweight.plans.relatives.guided_rows import GuidedRows
from bellweight.policies import Policy
from bellweight.program import TabularRows, repaired, repaired_values
from bellweight.results.base import ChosenResult
from bellweight.results.judgement import notes_of
from bellweight.results.result import Result
from bellweight.solve import looped
from bellweight.weights.loop import Method, check_method
from bellweight.weights.methods import Fixed
from bellweight.weights.plan import Plan, SolveSettings

_STANDS_OUT = 1e-3  # of a function's length that must lie outside the span of the others


@files.storable("SelfGuidedResult")
@dataclass(frozen=True, eq=False, repr=False)
class SelfGuidedResult(ChosenResult):
    """What a self-guided run found: one result for each number of functions, in order.

    The first is that of the basis as given. `lower_bound` is the highest bound, that of the last;
    `result` is the one whose greedy policy costs least, of several the one with the highest bound,
    and `policy` and `cost` are its own.
    """

    results: tuple[Result, ...]
    seconds: float

    @property
    def result(self) -> Result:
        """The result whose policy costs least."""
        return min(self.results, key=lambda result: (_cost(result), -_bound(result)))

    @property
    def cost(self) -> Estimate:
        """The exact cost of the policy, from the initial distribution."""
        return Estimate(_cost(self.result))

    def on(self, model: Model) -> Self:
        return replace(self, results=tuple(result.on(model) for result in self.results))

    def stored_fault(self) -> str:
        known = [one.cost is not None and one.lower_bound is not None for one in self.results]
        return "" if known and all(known) else "a result is missing, or has no cost or bound"

    @property
    def lower_bound(self) -> float:
        """The highest lower bound on every policy's cost."""
        return max(_bound(result) for result in self.results)

    def table(self) -> Table:
        """Return one row for each number of functions."""
        rows = [
            {
                "functions": len(result.names),
                "lower_bound": result.lower_bound,
                "cost": _cost(result),
                "status": result.status.name,
            }
            for result in self.results
        ]
        low, high = number_text(self.lower_bound), self.cost
        return Table(
            title=f"Self-guided on {self.results[0].model_name}",
            columns=_COLUMNS,
            rows=tuple(rows),
            notes=(f"The optimal cost lies between {low} and {high}.", *notes_of(self.judgement)),
        )

    def pictures(self) -> Pictures:
        """Return the pictures by name."""
        bars = [
            Between(f"{len(result.names)} functions", _cost(result), low=_bound(result))
            for result in self.results
        ]
        return {"gap": lambda: (gap_chart(bars),)}


@files.storable("SelfGuided")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SelfGuided(Plan[SelfGuidedResult]):
    """Add random features while they help, each program guided by the one before.

    Every batch adds `features` cosines with random frequencies, those of a Gaussian kernel whose
    width is `bandwidth` (one number, one per coordinate, or by default each coordinate's standard
    deviation), drawn by `seed`. At most `batches` are added to the basis given to `solve`. The run
    ends earlier when a batch neither raises the bound nor lowers the cost by more than `tol`,
    relative to the cost, or when bound and cost are that close. `weights` chooses the weights of
    every program. For tabular models, on which bounds and costs are exact.
    """

    features: int
    batches: int
    bandwidth: Any = None
    seed: int = 0
    weights: Method = field(default_factory=Fixed)
    tol: float = 1e-6

    def __post_init__(self) -> None:
        checks.count(self.features, "features")
        checks.count(self.batches, "batches")
        checks.count(self.seed, "seed", least=0)
        checks.positive(self.tol, "tol")
        check_method(self.weights, "weights")
        Fourier(self.features, seed=0, scale=self.bandwidth)  # says what is wrong with a bandwidth

    def run(self, settings: SolveSettings) -> SelfGuidedResult:
        """Solve for growing bases; return a result for each."""
        began = time.perf_counter()
        model = _checked(settings)
        plain = settings.setup()
        results = [looped(plain, self.weights, settings, owner=self).result()]
        seeds = np.random.default_rng(self.seed).integers(2**31, size=self.batches)
        waves: list[Fourier] = []
        for seed in seeds:
            if self._is_done(results):
                break
            batch = Fourier(self.features, seed=int(seed), scale=self.bandwidth).on(model.states)
            telling = _telling(model, results[-1].basis, batch)
            if telling is None:
                break
            waves.append(telling)
            basis = stacked_on(settings.basis, _together(waves), model.states.shape[1])
            rows = GuidedRows(model, basis, _feasible_values(model, results[-1]))
            results.append(looped(TabularSetup(rows), self.weights, settings, owner=self).result())
        found = SelfGuidedResult(tuple(results), time.perf_counter() - began)
        return replace(found, warnings=found.result.warnings)

    def target(self, setup: Setup) -> Policy | None:
        return self.weights.prepare(setup).target_policy

    def _is_done(self, results: list[Result]) -> bool:
        """Return whether nothing is left to gain, or the last batch gained nothing."""
        *earlier, last = results
        least = min(_cost(result) for result in results)
        edge = self.tol * abs(least)
        if not earlier or least - _bound(last) <= edge:
            return least - _bound(last) <= edge
        saved = min(_cost(result) for result in earlier) - _cost(last)
        return max(_bound(last) - _bound(earlier[-1]), saved) <= edge


def _checked(settings: SolveSettings) -> TabularModel:
    model = listed(
        settings.model,
        f"SelfGuided got {type(settings.model).__name__}, expected a TabularModel: it needs the "
        "value of every state, and compiled loops know polynomials only; use to_tabular()",
    )
    if settings.regularisation != 0.0:
        raise ArgumentError(
            f"regularisation is {settings.regularisation!r}, expected 0: guiding rows must hold, "
            "and a regularised program violates rows"
        )
    return model


def _telling(model: TabularModel, basis: Basis, batch: Fourier) -> Fourier | None:
    """Return the waves of a batch that are independent of the basis, or None.

    A function that is nearly in the span of others adds rounding errors, not values.
    """
    known = checks.dense(basis(model.states))
    length = np.linalg.norm(known, axis=0)
    span, _ = np.linalg.qr(known[:, length > 0.0] / length[length > 0.0])
    chosen = []
    for k, column in enumerate(batch(model.states)[:, 1:].T):
        rest = column - span @ (span.T @ column)
        size = float(np.linalg.norm(rest))
        if size > _STANDS_OUT * np.linalg.norm(column):
            span = np.column_stack([span, rest / size])
            chosen.append(k)
    if not chosen:
        return None
    assert batch.frequencies is not None
    assert batch.phases is not None
    frequencies, phases = batch.frequencies[chosen], batch.phases[chosen]
    return replace(batch, n=len(chosen), frequencies=frequencies, phases=phases)


def _together(waves: list[Fourier]) -> Fourier:
    """Return fitted waves as one basis, so that their functions are numbered through."""
    frequencies = np.vstack([wave.frequencies for wave in waves if wave.frequencies is not None])
    phases = np.concatenate([wave.phases for wave in waves if wave.phases is not None])
    return replace(waves[0], n=len(phases), frequencies=frequencies, phases=phases)


def _feasible_values(model: TabularModel, result: Result) -> FloatArray:
    """Return the values (S,) of a result, repaired so that every row holds, and rounded down.

    Otherwise rounding could leave the next program, whose rows are near those of this one, without
    any feasible coefficients.
    """
    rows = TabularRows(model, result.basis)
    found = repaired(rows, result.coef, result.moments, result.weights)
    return repaired_values(rows, found) - tolerances.ROUNDING * rows.value_terms(found.coef)


def _cost(result: Result) -> float:
    assert result.cost is not None
    return result.cost.mean


def _bound(result: Result) -> float:
    assert result.lower_bound is not None
    return result.lower_bound


_COLUMNS = (
    Column("functions", "functions"),
    Column("lower_bound", "lower bound", number_text),
    Column("cost", "cost", number_text),
    Column("status", "status", right=False),
)
