"""One call: a model, a basis and a method in, a `Result` out.

All fields of a result belong to one iterate: the coefficients, the dual and the policy are those of
the reported weights.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from itertools import zip_longest
from typing import Any, ParamSpec, Self

import numpy as np

from bellweight import checks, files
from bellweight.alp import Audit
from bellweight.basis import Basis
from bellweight.bench import Bench, Cost, Iterate, Point, SimulatedBench, TabularBench
from bellweight.checks import FloatArray
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.models.compile import announcing
from bellweight.occupancy import Simulation
from bellweight.policy import Greedy, Model, Support
from bellweight.pricing import LinearRows, PricedRows
from bellweight.rows import AllRows, EventRows, SampledRows, TabularRows
from bellweight.selection import Iteration, Method, Outcome, Stop, select_weights
from bellweight.status import ArgumentError, BellweightWarning, FileError, ModelError, Status
from bellweight.weights import DIA

Watch = Callable[[Iteration], None]
Rows = AllRows | SampledRows | PricedRows
_Arguments = ParamSpec("_Arguments")


@files.storable
@dataclass(frozen=True, eq=False)
class Phase:
    """One phase of a cycle: its weights, coefficients, dual, greedy policy and cost.

    `half_width` is the 95 % half-width of a simulated cost, None where the cost is exact.
    `is_constant` says that the value function of a linear model is the same in every state, so that
    ties decide the policy.
    """

    coef: FloatArray
    moments: FloatArray
    weights: FloatArray | None
    support: Support
    policy: Greedy
    cost: float
    half_width: float | None = None
    is_constant: bool = False


@files.storable
@dataclass(frozen=True, eq=False)
class Result:
    """What a run found, how it ended, and how good it is.

    `coef` (K,) belongs to the basis as the user wrote it. `lower_bound` is the approximate value of
    the initial distribution, less what the audit's violation could add to it, and `cost` the exact
    cost of the greedy policy from it: the optimal cost lies between them. Both are None where
    states cannot be enumerated: use `bellweight.evaluate` there. `support` lists where the dual has
    mass; `dual` is the same as an array over the pairs of a tabular model. `moments_error` (K,) are
    the standard errors of simulated moments.
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
    cost: float | None
    moments_error: FloatArray | None
    history: tuple[Iteration, ...]
    reported_iteration: int
    phases: tuple[Phase, ...]
    warnings: tuple[str, ...]
    stop: Stop
    seed: int
    seconds: float
    model_name: str
    model_size: str
    model_digest: str

    @property
    def audit(self) -> Audit:
        """The audit of the reported program."""
        return self.reported.audit

    @property
    def reported(self) -> Iteration:
        """The history entry of the reported iterate."""
        return self.history[self.reported_iteration]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an `.npz` file, whole or not at all."""
        files.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model | None = None) -> Self:
        """Read a result written by `save`; with `model`, check that it is the result's own."""
        result: Self = files.load(path, cls)
        if model is None:
            return result
        if model.digest != result.model_digest:
            raise FileError(
                f"{path} belongs to another model ({result.model_name}, {result.model_size}): load "
                "it with the model it was solved for"
            )
        return replace(result, policy=replace(result.policy, model=model))

    def __str__(self) -> str:
        return summary(self)


def _announced(function: Callable[_Arguments, Result]) -> Callable[_Arguments, Result]:
    """With progress=True, let it be known when the model has to be compiled first."""

    @wraps(function)
    def announced(*args: _Arguments.args, **options: _Arguments.kwargs) -> Result:
        if options.get("progress") is not True:
            return function(*args, **options)
        with announcing(lambda text: print(text, file=sys.stderr, flush=True)):
            return function(*args, **options)

    return announced


@_announced
def solve(
    model: Model,
    basis: Basis,
    method: Method,
    *,
    rows: Rows | None = None,
    simulation: Simulation | None = None,
    stop: Stop | None = None,
    regularisation: float = 0.0,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | Watch = False,
    resume: Result | str | os.PathLike[str] | None = None,
) -> Result:
    """Choose weights, solve the program, and return a `Result`.

    `resume` continues a result (or a saved one) of the same model, basis and method from its
    weights. `progress` is True for a line per iteration, or a function of each `Iteration`. An
    event model needs `rows=SampledRows(states)`; its occupancies are simulated as `simulation`,
    `seed` and `jobs` say. On tabular models everything is exact and these do not matter.
    """
    if not isinstance(method, Method):
        raise ArgumentError(f"method is {method!r}, expected a method such as DIA() or Fixed()")
    if stop is not None and not isinstance(stop, Stop):
        raise ArgumentError(f"stop is {stop!r}, expected Stop(tol=..., max_iterations=...)")
    if regularisation != 0.0:
        raise ArgumentError(
            f"regularisation is {regularisation}, expected 0: regularised programs are not "
            "available in this version"
        )
    began = time.perf_counter()
    seed = checks.count(seed, "seed", least=0)
    bench = bench_of(model, basis, rows, simulation, seed, jobs)
    earlier = _earlier(resume, model, method, bench)
    limits = stop or Stop()
    outcome = select_weights(
        bench,
        method,
        limits,
        point=None if earlier is None else _reached(earlier),
        # The reported iterate is solved again, so its entry is replaced by a fresh one.
        history=() if earlier is None else earlier.history[: earlier.reported_iteration],
        watch=_print_iteration if progress is True else (progress or None),
    )
    seconds = time.perf_counter() - began + (0.0 if earlier is None else earlier.seconds)
    return _result(bench, method, outcome, limits, seed, seconds)


def _reached(result: Result) -> Point:
    return Point(result.moments, result.weights, result.moments_error)


def summary(result: Result) -> str:
    """Return a few lines that say what was found, how it ended, and what to try next."""
    name = type(result.method).__name__
    last = result.reported
    lines = [
        f"{name} on {result.model_name} ({result.model_size}), {len(result.names)} basis functions",
        f"status      {result.status.name}: {result.status.message}",
        f"iterations  {len(result.history)} in {result.seconds:.2f} s",
    ]
    if last.sup_norm is not None:
        lines.append(f"mismatch    {last.sup_norm:.2g} between weights and occupancy (sup norm)")
    ratios = [record.step_ratio for record in result.history if record.step_ratio is not None]
    if len(ratios) >= 2:
        # The median: the last ratios of a converged run are those of rounding errors.
        seen = f"observed {float(np.median(ratios)):.2g} per iteration"
        lines.append(f"contraction {seen}{_proven_modulus(result)}")
    if last.noise_ratio is not None:
        lines.append(f"noise       moments within {last.noise_ratio:.2g} standard errors")
    if last.dual_share is not None:
        alone = " (DIA follows its target)" if name == "DIA" and last.dual_share == 0.0 else ""
        lines.append(f"dual mass   on {100.0 * last.dual_share:.3g} % of visits{alone}")
    if result.cost is not None and result.lower_bound is not None:
        gap = max(0.0, result.cost - result.lower_bound)
        low, high = _number(result.lower_bound), _number(result.cost)
        lines.append(f"cost        {high} (greedy policy, exact, over all time)")
        lines.append(f"optimum     between {low} and {high}")
        lines.append(f"loss        at most {_number(gap)} ({_share(gap, result.cost)})")
    if last.columns is not None:
        rounds = sum(record.passes for record in result.history)
        seconds = sum(record.solve_seconds for record in result.history)
        lines.append(
            f"columns     {last.columns:,} priced in {rounds:,} rounds, {seconds:.2f} s; the last "
            f"round {'proves the optimum' if last.proven else 'was cut short'}; the minimum-norm "
            "dual is the one over these columns"
        )
    lines.append(
        f"audit       violation {last.audit.violation:.1g}, dual residual "
        f"{last.audit.dual_residual:.1g}, gap {last.audit.gap:.1g}"
    )
    terms = [f"{value:+.6g} {name}" for value, name in zip(result.coef, result.names, strict=True)]
    shown = terms[:6] + (["..."] if len(terms) > 6 else [])
    lines.append(f"value       {'  '.join(shown)}")
    for number, phase in enumerate(result.phases, start=1):
        width = "" if phase.half_width is None else f" +- {_number(phase.half_width)}"
        ties = " (constant value: decided by ties)" if phase.is_constant else ""
        lines.append(f"phase {number:<5} cost {_number(phase.cost)}{width}{ties}")
    lines.extend(f"warning     {text}" for text in result.warnings)
    lines.append(f"next        {result.status.remedy or _advice(result)}")
    return "\n".join(lines)


def _proven_modulus(result: Result) -> str:
    certified = isinstance(result.method, DIA) and result.method.modulus is not None
    return f", at most {result.method.modulus:.2g} proven" if certified else ""


def _advice(result: Result) -> str:
    if result.cost is None or result.lower_bound is None:
        return "bellweight.evaluate(model, result.policy) tells what the policy costs"
    if result.cost - result.lower_bound <= 1e-3 * abs(result.cost):
        return "nothing: the policy is within 0.1 % of optimal"
    return "a richer basis may tighten the bound; result.policy.action(state) acts"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) >= 1_000.0 else f"{value:.6g}"


def _share(gap: float, cost: float) -> str:
    return f"{100.0 * gap / abs(cost):.3g} %" if cost else "cost is zero"


def bench_of(
    model: Model,
    basis: Basis,
    rows: Rows | None = None,
    simulation: Simulation | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> Bench:
    """Return what several runs on one model and basis can share: rows and one warm program."""
    if not isinstance(model, TabularModel | EventModel | LinearModel):
        raise ModelError(
            f"model is {type(model).__name__}, expected a TabularModel, EventModel or LinearModel"
        )
    if not isinstance(basis, Basis):
        raise ArgumentError(f"basis is {basis!r}, expected a basis such as Polynomial(3)")
    simulation = simulation or Simulation()
    if isinstance(model, TabularModel):
        if rows is not None and not isinstance(rows, AllRows):
            raise ArgumentError(f"rows is {rows!r}, expected AllRows() for a tabular model")
        return TabularBench((rows or AllRows()).on(model, basis))
    if isinstance(model, LinearModel):
        if rows is not None and not isinstance(rows, PricedRows):
            raise ArgumentError(f"rows is {rows!r}, expected PricedRows() for a linear model")
        return SimulatedBench((rows or PricedRows()).on(model, basis), simulation, seed, jobs)
    if not isinstance(rows, SampledRows):
        raise ArgumentError(
            "an event model's states cannot be enumerated: pass "
            "rows=SampledRows(sample_states(model, 5000)), or enumerate it with to_tabular()"
        )
    return SimulatedBench(rows.on(model, basis), simulation, seed, jobs)


def _earlier(
    resume: Result | str | os.PathLike[str] | None,
    model: Model,
    method: Method,
    bench: Bench,
) -> Result | None:
    if resume is None:
        return None
    if not isinstance(resume, Result | str | os.PathLike):
        raise ArgumentError(f"resume is {resume!r}, expected a Result or the path of a saved one")
    earlier = resume if isinstance(resume, Result) else Result.load(resume, model=model)
    if earlier.model_digest != model.digest:
        raise ArgumentError("resume is the result of another model: pass the model it came from")
    if earlier.names != bench.rows.names:
        raise ArgumentError(
            f"resume has {len(earlier.names)} basis functions, the basis {len(bench.rows.names)}; "
            f"{_first_difference(earlier.names, bench.rows.names)}: use the same basis"
        )
    known = not isinstance(earlier.method, files.Unstored)
    if known and type(earlier.method).__name__ != type(method).__name__:
        raise ArgumentError(
            f"resume is a result of {type(earlier.method).__name__}, the method is "
            f"{type(method).__name__}: use the same method, or start=Fixed(result.weights)"
        )
    if known and repr(earlier.method) != repr(method):
        raise ArgumentError(
            f"resume is a result of {earlier.method!r}, the method is {method!r}: use the same "
            "settings, or start=Fixed(result.weights)"
        )
    if isinstance(bench, SimulatedBench) and earlier.seed != bench.seed:
        raise ArgumentError(f"resume was simulated with seed={earlier.seed}: use the same seed")
    return earlier


def _first_difference(earlier: tuple[str, ...], names: tuple[str, ...]) -> str:
    """Return where two lists of names, not the same, first differ."""
    pairs = zip_longest(earlier, names, fillvalue="missing")
    k, (before, now) = next((k, pair) for k, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"function {k} is {before} in resume, {now} in the basis"


def _result(
    bench: Bench, method: Method, outcome: Outcome, stop: Stop, seed: int, seconds: float
) -> Result:
    iterate, model = outcome.iterate, bench.model
    coef = iterate.solution.coef
    notes = _notes(bench, iterate)
    for note in notes:
        warnings.warn(note, BellweightWarning, stacklevel=3)
    tabular = model if isinstance(model, TabularModel) else None
    return Result(
        status=outcome.status,
        method=method,
        mode=method.mode,
        basis=_basis(bench),
        names=bench.rows.names,
        coef=_frozen(coef),
        moments=_frozen(iterate.moments),
        weights=None if iterate.weights is None else _frozen(iterate.weights),
        support=iterate.dual,
        dual=None if tabular is None else _frozen(iterate.dual.over_pairs(tabular)),
        policy=iterate.greedy,
        objective=iterate.solution.objective,
        lower_bound=_lower_bound(bench, iterate),
        cost=None if tabular is None else bench.cost(iterate.greedy).mean,
        moments_error=iterate.point.standard_error,
        history=outcome.history,
        reported_iteration=outcome.reported,
        phases=tuple(_phase(bench, *phase) for phase in _paired(outcome)),
        warnings=notes,
        stop=stop,
        seed=seed,
        seconds=seconds,
        model_name=model.name,
        model_size=_size(bench),
        model_digest=model.digest,
    )


def _lower_bound(bench: Bench, iterate: Iterate) -> float | None:
    """Return the approximate initial value, shifted down until every row holds."""
    model, rows, solution = bench.model, bench.rows, iterate.solution
    if not isinstance(model, TabularModel) or not isinstance(rows, TabularRows):
        return None
    shift = solution.audit.violation / (1.0 - model.discount)
    return float(rows.moments(model.initial) @ solution.coef) - shift


def _basis(bench: Bench) -> Basis:
    rows = bench.rows
    assert isinstance(rows, TabularRows | EventRows | LinearRows)
    return rows.basis


def _size(bench: Bench) -> str:
    model, rows = bench.model, bench.rows
    if isinstance(model, TabularModel):
        counts = f"{model.n_states:,} states, {model.n_pairs:,} pairs"
        counts += ", costs are minus rewards" if model.sense == "max" else ""
    elif isinstance(model, LinearModel):
        counts = f"{model.dimension} state and {model.n_action_variables} action variables"
    else:
        assert isinstance(rows, EventRows)
        counts = f"{model.dimension} dimensions, {rows.n_pairs:,} sampled rows"
    return f"{counts}, discount {model.discount:g}"


def _paired(outcome: Outcome) -> Iterator[tuple[Iterate, Cost]]:
    return zip(outcome.phases, outcome.phase_costs, strict=True)


def _phase(bench: Bench, phase: Iterate, cost: Cost) -> Phase:
    return Phase(
        coef=_frozen(phase.solution.coef),
        moments=_frozen(phase.moments),
        weights=None if phase.weights is None else _frozen(phase.weights),
        support=phase.dual,
        policy=phase.greedy,
        cost=cost.mean,
        half_width=cost.half_width,
        is_constant=_is_constant(bench, phase),
    )


def _notes(bench: Bench, iterate: Iterate) -> tuple[str, ...]:
    notes = []
    dropped = bench.program().dropped
    if dropped:
        shown = ", ".join(dropped[:5]) + (", ..." if len(dropped) > 5 else "")
        notes.append(
            f"{len(dropped)} of {bench.rows.n_basis} basis functions depend on earlier ones and "
            f"were dropped (coefficient zero): {shown}"
        )
    if _is_constant(bench, iterate):
        notes.append(
            "the value function is the same in every state: the policy looks at the cost of one "
            "step only and ties decide the rest, so its cost says little; try other weights, or "
            "bellweight.compare_ties(model, result.policy) for the range"
        )
    if not iterate.solution.proven:
        notes.append(
            f"pricing was cut short by its time limit: rows may be violated by up to "
            f"{iterate.solution.audit.violation:.3g}, so the program is not proven solved"
        )
    return tuple(notes)


def _is_constant(bench: Bench, iterate: Iterate) -> bool:
    rows = bench.rows
    return isinstance(rows, LinearRows) and rows.is_constant(iterate.solution.coef)


def _frozen(array: FloatArray) -> FloatArray:
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


def _print_iteration(record: Iteration) -> None:
    gap = "" if record.sup_norm is None else f"  mismatch {record.sup_norm:.3g}"
    print(
        f"iteration {record.iteration:3d}  objective {record.objective:.8g}{gap}  "
        f"{record.seconds:.2f} s",
        flush=True,
    )
