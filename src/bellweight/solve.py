"""One call: a model, a basis and a method in, a `Result` out.

All fields of a result belong to one iterate: the coefficients, the dual and the policy are those of
the reported weights.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Any, TypeVar, overload

from bellweight.backends import Iterate, Point, Setup
from bellweight.basis import Basis
from bellweight.common import files, identity
from bellweight.common.short import value_text
from bellweight.common.status import ArgumentError, BellweightWarning, Status
from bellweight.models import Model
from bellweight.models.announce import announcing, to_stderr
from bellweight.policies import Policy
from bellweight.program import AllRows, DrawnRows, LocalRows, PricedRows, SampledRows
from bellweight.results import PlanResult, judgement
from bellweight.results.making import result_of
from bellweight.results.result import CyclePhase, Result
from bellweight.simulation import Simulation
from bellweight.weights.loop import HistoryEntry, Method, Outcome, Stop, select_weights
from bellweight.weights.plan import Plan, SolveSettings

__all__ = ["CyclePhase", "Looped", "Result", "Rows", "looped", "run_loop", "solve", "solved"]

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
    settings = SolveSettings(
        model=model, basis=basis, rows=rows, simulation=simulation, stop=stop,
        regularisation=regularisation, seed=seed, jobs=jobs, progress=progress, judge=judge,
    )  # fmt: skip
    if isinstance(method, Method):
        return _warned(_solved(method, settings, resume))
    if resume is not None:
        raise ArgumentError(f"resume is for methods, {type(method).__name__} is a plan")
    with announcing(to_stderr):
        found = method.run(settings)
        if isinstance(found, PlanResult) and judge:
            found = _plan_judged(method, settings, found)
    return _warned(found) if isinstance(found, Result | PlanResult) else found


def solved(method: Method, settings: SolveSettings) -> Result:
    """Return what `solve` does with a method and these arguments: one step of a plan."""
    return _warned(_solved(method, settings))


def _solved(
    method: Method, settings: SolveSettings, resume: Result | str | os.PathLike[str] | None = None
) -> Result:
    began = time.perf_counter()
    with announcing(to_stderr) as compilation:
        setup = settings.setup()
        earlier = _earlier(resume, settings.model, method, setup)
        run = run_loop(setup, method, settings, earlier=earlier)
        seconds = time.perf_counter() - began - compilation.seconds
        seconds += 0.0 if earlier is None else earlier.seconds
        return replace(run, seconds=seconds).result(judge=settings.judge)


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

    def result(self, *, judge: bool = False) -> Result:
        """Return the result, with its lower bound: proving it may take longer than finding it.

        `judge` compares its policy with others, unless the run was interrupted.
        """
        outcome = self.outcome
        found = result_of(self.setup, self.method, outcome, self.stop, self.seed, self.seconds)
        if not judge or outcome.status is Status.INTERRUPTED:
            return found
        judged, notes = judgement.judged(
            self.setup, found.policy, outcome.target, found.cost, found.lower_bound
        )
        cost = found.cost if judged is None else judged.cost
        return replace(found, cost=cost, judgement=judged, warnings=(*found.warnings, *notes))


def run_loop(
    setup: Setup,
    method: Method,
    settings: SolveSettings,
    *,
    stop: Stop | None = None,
    visit: Callable[[Iterate], None] | None = None,
    point: Point | None = None,
    history: tuple[HistoryEntry, ...] = (),
    earlier: Result | None = None,
) -> Looped:
    """Run a method's weight loop, from a point and its history, or from an earlier result.

    `stop` holds where the settings say nothing; `visit` sees every iterate.
    """
    if earlier is not None:
        point = Point(earlier.moments, earlier.weights, earlier.moments_error)
        # The reported iterate is solved again, so its entry is replaced by a fresh one.
        history = earlier.history[: earlier.reported_iteration]
    began = time.perf_counter()
    limits = settings.stop or stop or Stop()
    with announcing(to_stderr) as compilation:
        outcome = select_weights(
            setup, method, limits, point=point, history=history, watch=settings.watch, visit=visit
        )
    seconds = time.perf_counter() - began - compilation.seconds
    return Looped(setup, method, outcome, limits, settings.seed, seconds)


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
    run = run_loop(setup, method, settings, stop=stop, visit=visit)
    if run.outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(run, method=owner or method)


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
