"""One call: a model, a basis and a method in, a `Result` out.

All fields of a result belong to one iterate: the coefficients, the dual and the policy are those of
the reported weights.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any, TypeVar, overload

import numpy as np

from bellweight.backends import Estimate, Evidence, Iterate, Point, Setup, backend_of, setup_of
from bellweight.basis import Basis
from bellweight.common import checks, files, identity, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.short import value_text
from bellweight.common.status import (
    ArgumentError,
    BellweightWarning,
    Status,
)
from bellweight.models import Model
from bellweight.models.announce import announcing, to_stderr
from bellweight.policies import Policy
from bellweight.program import (
    AllRows,
    DrawnRows,
    LocalRows,
    PricedRows,
    Repaired,
    SampledRows,
    cost_unit,
)
from bellweight.program.doubts import given_up
from bellweight.results import PlanResult, judgement
from bellweight.results.result import CyclePhase, Result
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Method, Outcome, Stop, select_weights
from bellweight.weights.plan import Plan, SolveSettings

__all__ = [
    "CyclePhase",
    "Looped",
    "Result",
    "Rows",
    "judged",
    "looped",
    "result_of",
    "solve",
    "watch_of",
]

_HUGE = 1e9  # a coefficient so many times as large as the objective is warned of
_MUCH = 0.01  # of the bound: a repair that takes more is warned of
Watch = Callable[[HistoryEntry], None]
Rows = AllRows | SampledRows | DrawnRows | PricedRows | LocalRows
Found = TypeVar("Found")
Warned = TypeVar("Warned", bound="Result | PlanResult")


@overload
def solve(
    model: Model, basis: Basis, method: Method, *, rows: Rows | None = ...,
    simulation: Simulation | None = ..., stop: Stop | None = ..., regularisation: float = ...,
    seed: int = ..., jobs: int | None = ..., progress: bool | Watch = ...,
    resume: Result | str | os.PathLike[str] | None = ..., judge: bool = ...,
) -> Result: ...  # fmt: skip


@overload
def solve(
    model: Model, basis: Basis, method: Plan[Found], *, rows: Rows | None = ...,
    simulation: Simulation | None = ..., stop: Stop | None = ..., regularisation: float = ...,
    seed: int = ..., jobs: int | None = ..., progress: bool | Watch = ..., resume: None = ...,
    judge: bool = ...,
) -> Found: ...  # fmt: skip


def solve(
    model: Model,
    basis: Basis,
    method: Method | Plan[Any],
    *,
    rows: Rows | None = None,
    simulation: Simulation | None = None,
    stop: Stop | None = None,
    regularisation: float = 0.0,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | Watch = False,
    resume: Result | str | os.PathLike[str] | None = None,
    judge: bool = True,
) -> Any:
    """Choose weights, solve the program, and return a `Result`; or carry out a plan.

    Args:
        model: a tabular, event, step or linear model.
        basis: the functions of which the value function is a sum, such as `Polynomial(3)`.
        method: how the weights are chosen, such as `DIA()`; or a plan, such as `Auto()`, which
            makes several solves with these arguments and returns what it says.
        rows: the Bellman rows of models whose states are not listed. An event or step model takes
            `SampledRows(states)`, or `program.DrawnRows(n)` where they are too many to be
            stored; an event model also `LocalRows()` where it declares its scopes
            and the basis has functions of few coordinates: then all states count. Without it one
            of the two is taken, and the result says which.
        simulation: how occupancies are estimated; on tabular models everything is exact.
        stop: when the iteration ends.
        regularisation: adds that much times ||dual||^2 / 2 to the dual program: its dual spreads
            over more states, and rows may be violated by what the audit reports.
        seed: decides everything random.
        jobs: how many workers simulate; all cores by default.
        progress: True for a line per iteration, or a function of each `HistoryEntry`.
        resume: a result, or the file of one, of the same model, basis and method: it is continued
            from its weights.
        judge: whether the policy is compared with acting at random and with the method's target,
            exactly on tabular models and elsewhere by about a second of simulation:
            `result.judgement`. A policy that is no better is warned of.

    Compilation is announced on stderr and not counted in `result.seconds`.

    Returns:
        A `Result`, or what the plan returns.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Polynomial(3), bw.DIA())
        >>> result.status.name
        'CONVERGED'
    """
    if not isinstance(method, Method | Plan):
        told = value_text(method)
        raise ArgumentError(f"method is {told}, expected a method such as DIA() or Fixed()")
    if stop is not None and not isinstance(stop, Stop):
        raise ArgumentError(f"stop is {stop!r}, expected Stop(tol=..., max_iterations=...)")
    if progress is not True and progress is not False and not callable(progress):
        raise ArgumentError(f"progress is {progress!r}, expected True, False or a function")
    if judge is not True and judge is not False:
        raise ArgumentError(f"judge is {judge!r}, expected True or False")
    began = time.perf_counter()
    seed = checks.count(seed, "seed", least=0)
    if isinstance(method, Plan):
        backend_of(model)
        if not isinstance(basis, Basis):
            told = value_text(basis)
            raise ArgumentError(f"basis is {told}, expected a basis such as Polynomial(3)")
        checks.at_least_zero(regularisation, "regularisation")
        if resume is not None:
            raise ArgumentError(f"resume is for methods, {type(method).__name__} is a plan")
        settings = SolveSettings(
            model=model, basis=basis, rows=rows, simulation=simulation, stop=stop,
            regularisation=regularisation, seed=seed, jobs=jobs, progress=progress, judge=judge,
        )  # fmt: skip
        with announcing(to_stderr):
            found = method.run(settings)
            if isinstance(found, PlanResult) and judge:
                found = _plan_judged(method, settings, found)
        return _warned(found) if isinstance(found, Result | PlanResult) else found
    with announcing(to_stderr) as compilation:
        setup = setup_of(model, basis, rows, simulation, seed, jobs, regularisation)
        earlier = _earlier(resume, model, method, setup)
        limits = stop or Stop()
        outcome = select_weights(
            setup,
            method,
            limits,
            point=None if earlier is None else _reached(earlier),
            # The reported iterate is solved again, so its entry is replaced by a fresh one.
            history=() if earlier is None else earlier.history[: earlier.reported_iteration],
            watch=watch_of(progress),
        )
        seconds = time.perf_counter() - began - compilation.seconds
        seconds += 0.0 if earlier is None else earlier.seconds
        result = result_of(setup, method, outcome, limits, seed, seconds)
        return _warned(judged(setup, outcome, result) if judge else result)


def judged(setup: Setup, outcome: Outcome, result: Result) -> Result:
    """Return a result with its policy judged; one that was interrupted is left as it is."""
    if result.status is Status.INTERRUPTED:
        return result
    found, notes = judgement.judged(
        setup, result.policy, outcome.target, result.cost, result.lower_bound
    )
    cost = result.cost if found is None else found.cost
    return replace(result, cost=cost, judgement=found, warnings=(*result.warnings, *notes))


def _plan_judged(plan: Plan[Any], settings: SolveSettings, result: PlanResult) -> PlanResult:
    """Return what a plan found with its policy judged."""
    setup = settings.setup()
    target = plan.target(setup)
    bound: float | None = getattr(result, "lower_bound", None)  # not every plan proves one
    found, notes = judgement.judged(setup, result.policy, target, result.cost, bound)
    return replace(result, judgement=found, warnings=(*result.warnings, *notes))


def _warned(result: Warned) -> Warned:
    for note in result.warnings:
        warnings.warn(note, BellweightWarning, stacklevel=3)
    return result


def watch_of(progress: bool | Watch) -> Watch | None:
    """Return what to do after each iteration; True is a line for each."""
    return _print_iteration if progress is True else (progress or None)


def _reached(result: Result) -> Point:
    return Point(result.moments, result.weights, result.moments_error)


@dataclass(frozen=True, eq=False)
class Looped:
    """A finished run of the weight loop, of which nothing is proven yet."""

    setup: Setup
    method: Method | Plan[Any]
    outcome: Outcome
    stop: Stop
    seed: int
    seconds: float

    @property
    def policy(self) -> Policy:
        return self.outcome.iterate.greedy

    def result(self) -> Result:
        """Return the result, with its lower bound: proving it may take longer than finding it."""
        return result_of(self.setup, self.method, self.outcome, self.stop, self.seed, self.seconds)


def looped(
    setup: Setup,
    method: Method,
    settings: SolveSettings,
    *,
    owner: Plan[Any] | None = None,
    stop: Stop | None = None,
    visit: Callable[[Iterate], None] | None = None,
) -> Looped:
    """Run a method's weight loop as part of a plan, `owner` if the result is to name it.

    Ctrl-C is passed on.
    """
    began = time.perf_counter()
    limits = settings.stop or stop or Stop()
    with announcing(to_stderr) as compilation:
        watch = watch_of(settings.progress)
        outcome = select_weights(setup, method, limits, watch=watch, visit=visit)
    if outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - began - compilation.seconds
    return Looped(setup, owner or method, outcome, limits, settings.seed, seconds)


def _earlier(
    resume: Result | str | os.PathLike[str] | None,
    model: Model,
    method: Method,
    setup: Setup,
) -> Result | None:
    if resume is None:
        return None
    if not isinstance(resume, Result | str | os.PathLike):
        raise ArgumentError(f"resume is {resume!r}, expected a Result or the path of a saved one")
    earlier = resume if isinstance(resume, Result) else Result.load(resume, model=model)
    if earlier.model_digest != model.digest:
        doubt = identity.doubt(earlier.model_digest, model.digest)
        raise ArgumentError(
            f"resume is the result of another model{doubt}: pass the model it came from"
        )
    if earlier.names != setup.rows.names:
        raise ArgumentError(
            f"resume has {len(earlier.names)} basis functions, the basis {len(setup.rows.names)}; "
            f"{_first_difference(earlier.names, setup.rows.names)}: use the same basis"
        )
    basis = setup.basis
    if not identity.same(earlier.basis, basis):
        raise ArgumentError(
            f"resume was solved with another basis, though its functions have the same names"
            f"{identity.doubt_of(earlier.basis, basis)}: use the same basis"
        )
    if not identity.same(earlier.method, method):
        raise ArgumentError(
            f"resume is a result of {_difference(earlier.method, method)}"
            f"{identity.doubt_of(earlier.method, method)}: use the same method and settings, or "
            "start=Fixed(result.weights)"
        )
    if earlier.regularisation != setup.regularisation:
        raise ArgumentError(
            f"resume was solved with regularisation={earlier.regularisation:g}: use the same"
        )
    if not setup.is_exact and earlier.seed != setup.seed:
        raise ArgumentError(f"resume was simulated with seed={earlier.seed}: use the same seed")
    return earlier


def _difference(earlier: Any, method: Method) -> str:
    """Return how two methods, not the same, differ."""
    kind = type(method).__name__
    if isinstance(earlier, files.Unstored):
        return f"{earlier.text}, the method is {method!r}"
    if type(earlier) is not type(method):
        return f"{type(earlier).__name__}, the method is {kind}"
    names = [f.name for f in fields(method) if f.compare]
    name = next(n for n in names if not identity.same(getattr(earlier, n), getattr(method, n)))
    before, now = repr(getattr(earlier, name)), repr(getattr(method, name))
    shown = f"{before}, the method has {now}" if before != now else f"{before} of other values"
    return f"{kind} with {name}={shown}"


def _first_difference(earlier: tuple[str, ...], names: tuple[str, ...]) -> str:
    """Return where two lists of names, not the same, first differ."""
    pairs = zip_longest(earlier, names, fillvalue="missing")
    k, (before, now) = next((k, pair) for k, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"function {k} is {before} in resume, {now} in the basis"


def result_of(
    setup: Setup,
    method: Method | Plan[Any],
    outcome: Outcome,
    stop: Stop,
    seed: int,
    seconds: float,
) -> Result:
    """Return what a run of the loop found."""
    iterate, model = outcome.iterate, setup.model
    coef = iterate.solution.coef
    bound = setup.proven(coef, iterate.moments)
    evidence = setup.evidence(iterate.solution, iterate.dual)
    dual = setup.over_pairs(iterate.dual)
    return Result(
        status=outcome.status,
        method=method,
        mode=method.mode if isinstance(method, Method) else "practical",
        basis=setup.basis,
        names=setup.rows.names,
        coef=_frozen(coef),
        moments=_frozen(iterate.moments),
        weights=None if iterate.weights is None else _frozen(iterate.weights),
        support=iterate.dual,
        dual=None if dual is None else _frozen(dual),
        policy=iterate.greedy,
        objective=iterate.solution.objective,
        lower_bound=None if bound is None else bound.value,
        lower_bound_kind="unproven" if bound is None else setup.proof()[0],
        lower_bound_reason=setup.why_unproven() if bound is None else setup.proof()[1],
        evidence=evidence,
        cost=setup.cost(iterate.greedy) if setup.is_exact else None,
        moments_error=iterate.point.standard_error,
        history=outcome.history,
        reported_iteration=outcome.reported,
        phases=tuple(_phase(setup, *phase) for phase in _paired(outcome)),
        warnings=(*_notes(setup, iterate, bound), *_draws_note(iterate, evidence)),
        stop=stop,
        seed=seed,
        seconds=seconds,
        model_name=model.name,
        model_size=setup.size_text,
        model_digest=model.digest,
        regularisation=setup.regularisation,
        average=_average(setup, outcome),
        generated=outcome.generated,
    )


def _average(setup: Setup, outcome: Outcome) -> CyclePhase | None:
    cost = outcome.average_cost
    return None if cost is None else _phase(setup, outcome.iterate, cost)


def _paired(outcome: Outcome) -> Iterator[tuple[Iterate, Estimate]]:
    return zip(outcome.phases, outcome.phase_costs, strict=True)


def _phase(setup: Setup, phase: Iterate, cost: Estimate) -> CyclePhase:
    return CyclePhase(
        coef=_frozen(phase.solution.coef),
        moments=_frozen(phase.moments),
        weights=None if phase.weights is None else _frozen(phase.weights),
        support=phase.dual,
        policy=phase.greedy,
        cost=cost,
        is_constant=setup.is_constant(phase.solution.coef),
    )


def _notes(setup: Setup, iterate: Iterate, bound: Repaired | None) -> tuple[str, ...]:
    notes = []
    if bound is not None and _took_much(setup, iterate, bound):
        notes.append(
            f"the lower bound is {bound.loss:.3g} below the value of the coefficients: that is "
            f"what it takes to make every row hold {setup.repair_advice}"
        )
    if setup.rows.untold:
        notes.append(
            f"{setup.rows.untold}: what the program says of states beyond the sample rests on the "
            "few that these lead to; add constraint states"
        )
    dropped = setup.program().dropped
    if dropped:
        shown = ", ".join(dropped[:5]) + (", ..." if len(dropped) > 5 else "")
        note = (
            f"{len(dropped)} of {setup.rows.n_basis} basis functions depend on earlier ones and "
            f"were dropped (coefficient zero): {shown}"
        )
        notes.append(note)
    doubts = iterate.solution.doubts
    if doubts:
        notes.append("; ".join(doubts))
    elif iterate.solution.given_up > 0.0:
        notes.append(given_up(iterate.solution.given_up))
    if iterate.solution.status is Status.INACCURATE:
        largest = float(np.abs(iterate.solution.coef).max())
        if largest > _HUGE * abs(iterate.solution.objective):
            notes.append(
                f"the program wants coefficients up to {largest:.1e}, which rounding spoils: some "
                "functions hardly differ, or are next to zero, where the weights are; put bounds "
                "on the coefficients (lower=, upper=), spread the weights, or use fewer functions"
            )
    if setup.is_constant(iterate.solution.coef):
        notes.append(
            "the value function is the same in every state: the policy looks at the cost of one "
            "step only and ties decide the rest, so its cost says little; try other weights, or "
            "bellweight.evaluation.compare_ties(model, result.policy) for the range"
        )
    if not iterate.solution.proven:
        notes.append(
            f"pricing was cut short by its time limit: rows may be violated by up to "
            f"{iterate.solution.audit.violation:.3g}, so the program is not proven solved"
        )
    return tuple(notes)


def _draws_note(iterate: Iterate, evidence: Evidence | None) -> tuple[str, ...]:
    """Return a warning where the draws that stand for a law decide much of the answer."""
    error = None if evidence is None else evidence.draws_error
    if error is None or error <= _MUCH * abs(iterate.solution.objective):
        return ()
    return (
        f"expectations are averages of draws, and another set of draws moves the objective by "
        f"about {error:.3g}: use more draws (draws=), or give the law of the noise",
    )


def _took_much(setup: Setup, iterate: Iterate, bound: Repaired) -> bool:
    """Return whether a repair cost much; programs that allow violations expect it to."""
    rows = setup.listed_rows
    least = 0.0 if rows is None else tolerances.SAME_COST * cost_unit(rows.pair_cost)
    scale = max(abs(bound.value), least)
    return not iterate.solution.allows_violations and bound.loss > _MUCH * scale


def _frozen(array: FloatArray) -> FloatArray:
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


def _print_iteration(record: HistoryEntry) -> None:
    gap = "" if record.sup_norm is None else f"  mismatch {record.sup_norm:.3g}"
    print(
        f"iteration {record.iteration:3d}  objective {record.objective:.8g}{gap}  "
        f"{record.seconds:.2f} s",
        flush=True,
    )
