"""The weight loop: Algorithm 1 of the paper, once, for every method.

Each iteration solves the program for the current weights, generates a policy from the answer,
computes the policy's discounted occupancy, and stops when that occupancy equals the weights
(in the sup norm) or else updates the weights. The map from moments to moments is deterministic
(`setup.py`), hence moments that repeat mean weights that cycle.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.backends import Estimate, Iterate, Point, Setup
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.short import Short
from bellweight.common.status import ArgumentError, ModelError, SolverError, Status
from bellweight.policies import Policy
from bellweight.program import Audit
from bellweight.weights.cycles import period_of
from bellweight.weights.steps import Step, Stepper


@files.storable("Stop")
@dataclass(frozen=True, repr=False)
class Stop(Short):
    """When to stop.

    Args:
        tol: the largest difference between weights and occupancy. By default 1e-8 where occupancies
            are exact; where they are simulated, every moment within one standard error.
        max_iterations: of this run.
        max_seconds: checked between iterations, so the first one always completes.

    Examples:
        >>> bw.Stop(max_iterations=20, max_seconds=60)
        Stop(max_iterations=20, max_seconds=60)
    """

    tol: float | None = None
    max_iterations: int = 100
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.tol is not None:
            checks.positive(self.tol, "tol")
        checks.count(self.max_iterations, "max_iterations")
        if self.max_seconds is not None:
            checks.positive(self.max_seconds, "max_seconds")


@files.storable("Iteration")
@dataclass(frozen=True)
class HistoryEntry:
    """What happened in one iteration.

    `sup_norm` and `one_norm` are those of occupancy minus weights, or of their moments where states
    cannot be enumerated (None when the method generates no policy); `moment_step` is the 1-norm
    between these moments and the ones before (None at first); `noise_ratio` the largest difference
    of moments in standard errors (None where nothing is simulated); `dual_share` the share of the
    occupancy in states with dual mass. `passes` counts the searches for violated rows, `rows` those
    in the program, and `solve_seconds` its share of `seconds`; `columns` counts the pairs that
    pricing has found (None where rows are listed), and `proven` says that the last search was
    complete. `step_ratio` is this `one_norm` divided by the one before: the observed contraction
    (None at first). `step_size` is that of the step to the next iterate, `accelerated` whether by
    an accelerated step (both None where a method's own update decides), and `smoothing_mass` the
    one of this iterate's policy where the steps adapt it.
    """

    iteration: int
    objective: float
    sup_norm: float | None
    one_norm: float | None
    moment_step: float | None
    audit: Audit
    dual_residual: float
    flow_residual: float | None
    noise_ratio: float | None
    dual_share: float | None
    passes: int
    rows: int
    seconds: float
    solve_seconds: float = 0.0
    columns: int | None = None
    proven: bool = True
    step_ratio: float | None = None
    step_size: float | None = None
    smoothing_mass: float | None = None
    accelerated: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Method(Short, ABC):
    """A way to choose the weights: immutable settings, no data."""

    @abstractmethod
    def first(self, setup: Setup) -> Point:
        """Return the weights to begin with."""

    def generate(self, iterate: Iterate) -> Policy | None:
        """Return the policy whose occupancy the weights should match, or None if they are final."""
        return None

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        """Return the next weights, or the next moments where states cannot be enumerated."""
        return occupancy

    def stepper(self) -> Stepper | None:
        """Return the rule for the steps of one run, or None where `update` decides."""
        return None

    def smoothed(self, smoothing_mass: float) -> Method:
        """Return this method with another smoothing, itself where it has none."""
        return self

    def prepare(self, setup: Setup) -> Method:
        """Return this method with everything resolved that needs the model."""
        return self

    @property
    def target_policy(self) -> Policy | None:
        """The target policy of a prepared method, for comparison; None where it has none."""
        return None

    @property
    def averages_cycles(self) -> bool:
        """Whether a cycle is reported by the average of its phases, not by its cheapest phase."""
        return False

    @property
    def mode(self) -> str:
        """`certified` when convergence is proven for these settings, `practical` otherwise."""
        return "practical"


def check_method(value: Any, name: str) -> None:
    """Raise an error where a value is no method."""
    if not isinstance(value, Method):
        raise ArgumentError(
            f"{name} is {value!r}, expected a method such as DIA() or Fixed(weights)"
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended: the iterate to report, the history, and all phases of a cycle.

    `reported` is the place of the reported iterate in the history. `average_cost` is that of the
    reported iterate where it is the average of the phases. `target` is the method's target policy,
    None where it has none. `generated` is the policy that the method generated from the reported
    iterate, whose occupancy the weights should match; None where it generates none.
    """

    status: Status
    iterate: Iterate
    history: tuple[HistoryEntry, ...]
    reported: int
    phases: tuple[Iterate, ...] = ()
    phase_costs: tuple[Estimate, ...] = ()
    average_cost: Estimate | None = None
    target: Policy | None = None
    generated: Policy | None = None


def select_weights(
    setup: Setup,
    method: Method,
    stop: Stop,
    *,
    point: Point | None = None,
    history: tuple[HistoryEntry, ...] = (),
    watch: Callable[[HistoryEntry], None] | None = None,
    visit: Callable[[Iterate], None] | None = None,
) -> Outcome:
    """Run Algorithm 1; `point` and `history` are those of a run to go on with.

    `watch` sees the record of each iteration, `visit` the iterate itself.
    """
    run = _Run(setup, method, stop, list(history), watch, visit)
    try:
        outcome = run.until_stopped(point)
    except SolverError as problem:
        raise SolverError(problem.status, problem.detail, run.history) from problem
    except ModelError as problem:
        problem.history = tuple(run.history)
        raise
    except KeyboardInterrupt:
        if run.last is None:
            raise
        place = len(run.history) - 1
        outcome = Outcome(Status.INTERRUPTED, run.last, tuple(run.history), place)
    generated = run.generated.get(outcome.reported)
    return replace(outcome, target=run.target, generated=generated)


class _Run:
    """The state of one run of the loop."""

    def __init__(
        self,
        setup: Setup,
        method: Method,
        stop: Stop,
        history: list[HistoryEntry],
        watch: Callable[[HistoryEntry], None] | None,
        visit: Callable[[Iterate], None] | None,
    ) -> None:
        self.setup = setup
        self.method = method
        self.stop = stop
        self.history = history
        self.last: Iterate | None = None
        self.target: Policy | None = None
        self.generated: dict[int, Policy] = {}  # by place in the history
        self._watch = watch
        self._visit = visit
        self._began = time.perf_counter()
        self._before = len(history)
        self._trail: list[FloatArray] = []
        self._stepper: Stepper | None = None
        self._leaving: Step | None = None

    def until_stopped(self, point: Point | None) -> Outcome:
        method = self.method.prepare(self.setup)
        self.target = method.target_policy
        if point is None:
            point = method.first(self.setup)
        self._stepper = method.stepper()
        while True:
            try:
                iterate, occupied, record = self._step(method, point)
            except SolverError as problem:
                if problem.status is not Status.TIME_LIMIT or self.last is None:
                    raise
                return self._outcome(Status.TIME_LIMIT, self.last)
            status = self._status(record)
            if status is not None:
                return self._outcome(status, iterate)
            assert occupied is not None
            point = self._updated(method, iterate.point, occupied)
            self._trail.append(iterate.moments)
            period = period_of(self._trail)
            if period is not None:
                return self._cycle(method, point, period)

    def _step(self, method: Method, point: Point) -> tuple[Iterate, Point | None, HistoryEntry]:
        began = time.perf_counter()
        iterate = self._solved(point)
        mass = None if self._stepper is None else self._stepper.smoothing_mass
        policy = (method if mass is None else method.smoothed(mass)).generate(iterate)
        occupancy = occupied = share = None
        if policy is not None:
            self.generated[len(self.history)] = policy
            occupancy = self.setup.occupancy(policy)
            occupied = self.setup.occupied(occupancy)
            share = self.setup.dual_share(occupancy, iterate.dual, policy)
        leaving = self._leaving = self._step_from(iterate.point, occupied)
        solution = iterate.solution
        record = HistoryEntry(
            iteration=len(self.history),
            objective=solution.objective,
            audit=solution.audit,
            dual_residual=solution.dual_residual,
            flow_residual=None if occupancy is None else occupancy.residual,
            dual_share=share,
            passes=solution.passes,
            rows=solution.n_rows,
            seconds=time.perf_counter() - began,
            solve_seconds=solution.seconds,
            columns=self.setup.n_columns,
            proven=solution.proven,
            step_size=None if leaving is None else leaving.step_size,
            smoothing_mass=mass,
            accelerated=None if leaving is None else leaving.accelerated,
            **self._distances(iterate, occupied),
        )
        if self.history and self.history[-1].smoothing_mass != mass:
            # Another smoothing is another map, so earlier moments do not count for a cycle.
            self._trail.clear()
        # Both come before the caller's function, which may raise an interrupt.
        self.history.append(record)
        self.last = iterate
        if self._visit is not None:
            self._visit(iterate)
        if self._watch is not None:
            self._watch(record)
        return iterate, occupied, record

    def _distances(self, iterate: Iterate, occupied: Point | None) -> dict[str, float | None]:
        """Return how far an occupancy is from the weights, and these from the ones before."""
        names = ("sup_norm", "one_norm", "moment_step", "noise_ratio", "step_ratio")
        found: dict[str, float | None] = dict.fromkeys(names)
        if self.last is not None:
            step = np.abs(iterate.moments - self.last.moments)
            found["moment_step"] = float(step.sum())
        if occupied is None:
            return found
        gap = np.abs(occupied.vector - iterate.point.vector)
        norm, before = float(gap.sum()), self.history[-1].one_norm if self.history else None
        found |= {"sup_norm": float(gap.max()), "one_norm": norm}
        found["noise_ratio"] = _noise_ratio(iterate.point, occupied)
        found["step_ratio"] = norm / before if before else None
        return found

    def _solved(self, point: Point) -> Iterate:
        """Solve the program, or take back the step that led to one without a solution."""
        try:
            return self.setup.iterate(point, self._until)
        except SolverError as problem:
            is_late = problem.status is Status.TIME_LIMIT
            instead = None if self._stepper is None or is_late else self._stepper.retreat()
            if instead is None:
                raise
            earlier = self.setup.point_of(instead.vector, instead.standard_error)
            return self.setup.iterate(earlier, self._until)

    @property
    def _until(self) -> float | None:
        """When the time limit is reached."""
        limit = self.stop.max_seconds
        return None if limit is None else self._began + limit

    def _step_from(self, point: Point, occupied: Point | None) -> Step | None:
        if self._stepper is None or occupied is None:
            return None
        return self._stepper.leave(point, occupied)

    def _updated(self, method: Method, point: Point, occupied: Point) -> Point:
        if self._leaving is not None:
            return self.setup.point_of(self._leaving.vector, self._leaving.standard_error)
        following = method.update(point.vector, occupied.vector)
        error = occupied.standard_error
        if error is not None and point.standard_error is not None:
            # The streams are the same, so errors of a mixture add up at most.
            error = method.update(point.standard_error, error)
        return self.setup.point_of(following, error)

    def _status(self, record: HistoryEntry) -> Status | None:
        if record.sup_norm is None or self._settled(record):
            return Status.CONVERGED
        if len(self.history) - self._before >= self.stop.max_iterations:
            return Status.ITERATION_LIMIT
        if self._until is not None and time.perf_counter() >= self._until:
            return Status.TIME_LIMIT
        return None

    def _settled(self, record: HistoryEntry) -> bool:
        assert record.sup_norm is not None
        if self.stop.tol is None and record.noise_ratio is not None:
            return record.noise_ratio <= 1.0
        return record.sup_norm <= (
            tolerances.STATIONARY if self.stop.tol is None else self.stop.tol
        )

    def _outcome(self, status: Status, iterate: Iterate) -> Outcome:
        if iterate.solution.status is not Status.OPTIMAL:
            status = iterate.solution.status
        return Outcome(status, iterate, tuple(self.history), len(self.history) - 1)

    def _cycle(self, method: Method, point: Point, period: int) -> Outcome:
        """Go once round the cycle, keep every phase, and report the cheapest or the average."""
        phases = []
        for _ in range(period):
            iterate, occupied, _ = self._step(method, point)
            phases.append(iterate)
            assert occupied is not None
            point = self._updated(method, iterate.point, occupied)
        costs = tuple(self.setup.cost(phase.greedy) for phase in phases)
        if method.averages_cycles:
            iterate, _, _ = self._step(method, self._average(phases))
            outcome = self._outcome(Status.CYCLING, iterate)
            cost = self.setup.cost(iterate.greedy)
            return replace(outcome, phases=tuple(phases), phase_costs=costs, average_cost=cost)
        best = int(np.argmin([cost.mean for cost in costs]))
        outcome = self._outcome(Status.CYCLING, phases[best])
        place = len(self.history) - period + best
        return replace(outcome, phases=tuple(phases), phase_costs=costs, reported=place)

    def _average(self, phases: list[Iterate]) -> Point:
        points = [phase.point for phase in phases]
        errors = [point.standard_error for point in points if point.standard_error is not None]
        # The streams are the same, so errors of a mixture add up at most.
        error = np.mean(errors, axis=0) if len(errors) == len(points) else None
        return self.setup.point_of(np.mean([point.vector for point in points], axis=0), error)


def _noise_ratio(point: Point, occupied: Point) -> float | None:
    """Return the largest change of a moment in standard errors of the estimate."""
    if occupied.standard_error is None:
        return None
    gap = np.abs(occupied.moments - point.moments)
    # A moment without noise, such as that of the constant, must meet the exact tolerance.
    size = np.maximum(np.abs(occupied.moments), np.abs(point.moments))
    error = np.maximum(occupied.standard_error, tolerances.STATIONARY * size)
    return float(np.max(gap[error > 0.0] / error[error > 0.0], initial=0.0))
