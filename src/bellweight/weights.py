"""Weight selection: Algorithm 1 of the paper, once, for every method.

Each iteration solves the program for the current weights, generates a policy from the answer,
computes the policy's discounted occupancy, and stops when that occupancy equals the weights
(in the sup norm) or else updates the weights. A method supplies three things:

    start      the first weights
    policy     the generator: from an iterate to a policy, or None when the weights are final
    update     the update: from weights and occupancy to the next weights

To try another generator or update, subclass `Iterative` and override `policy` or `update`; with the
convex step of `Iterative.update` the iteration contracts whenever the generator's Lipschitz
constant is small enough (the paper's remark on generalisations).

Between iterations only the moments Phi' weights change, so the program stays warm. The map from
moments to moments is deterministic, hence moments that repeat mean weights that cycle.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellweight import checks, exact, files, tolerances
from bellweight.alp import AlpProgram, AlpSolution, Audit
from bellweight.checks import FloatArray
from bellweight.dual import minimum_norm_dual
from bellweight.models import TabularModel
from bellweight.occupancy import Occupancy, exact_occupancy
from bellweight.policy import DualSoftmax, Greedy, Policy, Support, Uniform
from bellweight.rows import TabularRows
from bellweight.status import ArgumentError, SolverError, Status

_EXACT_TOL = 1e-8


@files.storable
@dataclass(frozen=True)
class Stop:
    """When to stop: sup-norm tolerance, number of iterations, seconds.

    The time limit is looked at between iterations, so the first iteration always completes.
    """

    tol: float = _EXACT_TOL
    max_iterations: int = 100
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        checks.positive(self.tol, "tol")
        checks.count(self.max_iterations, "max_iterations")
        if self.max_seconds is not None:
            checks.positive(self.max_seconds, "max_seconds")


@files.storable
@dataclass(frozen=True)
class Iteration:
    """What happened in one iteration.

    `sup_norm` and `one_norm` are those of occupancy minus weights (None when the method generates
    no policy), `moment_step` the 1-norm between these moments and the ones before (None at first).
    """

    iteration: int
    objective: float
    sup_norm: float | None
    one_norm: float | None
    moment_step: float | None
    audit: Audit
    dual_residual: float
    flow_residual: float | None
    passes: int
    rows: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Iterate:
    """The current weights and everything the program says about them.

    Generators may use `dual` (the minimum-norm dual on its support), `greedy` (the greedy policy,
    computed when asked for), `solution` and `model`.
    """

    bench: Bench
    weights: FloatArray
    moments: FloatArray
    solution: AlpSolution
    dual: Support
    dual_residual: float

    @property
    def model(self) -> TabularModel:
        """The model."""
        return self.bench.model

    @cached_property
    def greedy(self) -> Greedy:
        """The greedy policy of the coefficients, ties decided by the dual."""
        return Greedy.from_values(self.bench.rows, self.solution.coef, self.dual)


@dataclass(frozen=True)
class Method(ABC):
    """A way to choose the weights: immutable settings, no data."""

    @abstractmethod
    def first_weights(self, bench: Bench) -> FloatArray:
        """Return the weights (S,) to begin with."""

    def policy(self, iterate: Iterate) -> Policy | None:
        """Return the policy whose occupancy the weights should match; None: they are final."""
        return None

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        """Return the next weights."""
        return occupancy

    def prepare(self, bench: Bench) -> Method:
        """Return this method with everything resolved that needs the model."""
        return self

    @property
    def mode(self) -> str:
        """`certified` when convergence is proven for these settings, `practical` otherwise."""
        return "practical"


@files.storable
@dataclass(frozen=True, eq=False)
class Fixed(Method):
    """Weights that the user gives: an array (S,), `"initial"` or `"uniform"`."""

    weights: Any = "initial"

    def first_weights(self, bench: Bench) -> FloatArray:
        return bench.named_weights(self.weights, "weights")


@files.storable
@dataclass(frozen=True, eq=False)
class FromPolicy(Method):
    """The occupancy of a given policy; with `Uniform()` the paper's Random."""

    from_policy: Policy = field(default_factory=Uniform)

    def first_weights(self, bench: Bench) -> FloatArray:
        return bench.occupancy(self.from_policy).weights


@dataclass(frozen=True, eq=False, kw_only=True)
class Iterative(Method):
    """A method that iterates: convex steps from `start` towards the occupancy of its policy.

    `start` is `"initial"`, `"uniform"`, an array (S,), or another method whose weights are taken.
    """

    step_size: float = 1.0
    start: Any = "initial"

    def __post_init__(self) -> None:
        checks.positive(self.step_size, "step_size", below=1.0, closed=True)

    def first_weights(self, bench: Bench) -> FloatArray:
        if isinstance(self.start, Method):
            return select_weights(bench, self.start, Stop()).iterate.weights
        return bench.named_weights(self.start, "start")

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        # A convex step keeps the weights on the simplex (eq. dia_weight_update).
        return (1.0 - self.step_size) * weights + self.step_size * occupancy


@files.storable
@dataclass(frozen=True, eq=False, kw_only=True)
class PIA(Iterative):
    """The primal iterative algorithm: the generator is the greedy policy. It may cycle."""

    def policy(self, iterate: Iterate) -> Policy:
        return iterate.greedy


@files.storable
@dataclass(frozen=True, eq=False, kw_only=True)
class DIA(Iterative):
    """The dual iterative algorithm: the generator is the target-guided softmax of the dual.

    `target` is a policy, or a method whose greedy policy is taken. `smoothing_mass` and
    `temperature` are the paper's epsilon and tau.
    """

    target: Policy | Method = field(default_factory=Uniform)
    temperature: float = 0.1
    smoothing_mass: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(self.temperature, "temperature")
        checks.positive(self.smoothing_mass, "smoothing_mass")
        if not isinstance(self.target, Policy | Method):
            raise ArgumentError(
                f"target is {self.target!r}, expected a policy such as Uniform(), or a method such "
                "as Fixed(weights) whose greedy policy is the target"
            )

    def prepare(self, bench: Bench) -> DIA:
        if isinstance(self.target, Policy):
            return self
        return replace(self, target=select_weights(bench, self.target, Stop()).iterate.greedy)

    def policy(self, iterate: Iterate) -> Policy:
        assert isinstance(self.target, Policy)
        return DualSoftmax(iterate.dual, self.target, self.temperature, self.smoothing_mass)


class Bench:
    """A model, its rows and a warm program: what the loop works with."""

    def __init__(self, rows: TabularRows) -> None:
        self.rows = rows
        self.model = rows.model
        self._program: AlpProgram | None = None

    def program(self, reference: FloatArray | None = None) -> AlpProgram:
        """Return the program, built around the first weights it is asked for."""
        if self._program is None:
            self._program = AlpProgram(self.rows, reference)
        return self._program

    def iterate(self, weights: FloatArray) -> Iterate:
        """Solve the program for some weights and select the minimum-norm dual."""
        moments = self.rows.moments(weights)
        solution = self.program(weights).solve(moments, weights)
        dual = minimum_norm_dual(solution)
        model = self.model
        support = Support(model.pair_state[dual.keys], model.pair_action[dual.keys], dual.values)
        return Iterate(self, weights, moments, solution, support, dual.residual)

    def occupancy(self, policy: Policy) -> Occupancy:
        """Return the discounted occupancy of a policy."""
        return exact_occupancy(self.model, policy)

    def cost(self, policy: Policy) -> float:
        """Return the expected discounted cost of a policy from the initial distribution."""
        return float(self.model.initial @ exact.policy_value(self.model, policy))

    def named_weights(self, weights: Any, name: str) -> FloatArray:
        """Return weights given as an array or by name."""
        model = self.model
        if isinstance(weights, str):
            checks.one_of(weights, name, ("initial", "uniform"))
            if weights == "initial":
                return model.initial
            return np.full(model.n_states, 1.0 / model.n_states)
        return checks.distribution(weights, name, model.n_states, model.state_name, ArgumentError)


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended: the iterate to report, the history, and all phases of a cycle."""

    status: Status
    iterate: Iterate
    history: tuple[Iteration, ...]
    phases: tuple[Iterate, ...] = ()


def select_weights(
    bench: Bench,
    method: Method,
    stop: Stop,
    *,
    weights: FloatArray | None = None,
    history: tuple[Iteration, ...] = (),
    watch: Callable[[Iteration], None] | None = None,
) -> Outcome:
    """Run Algorithm 1; `weights` and `history` are those of a run to go on with."""
    run = _Run(bench, method, stop, list(history), watch)
    try:
        return run.until_stopped(weights)
    except SolverError as problem:
        raise SolverError(problem.status, problem.detail, run.history) from problem
    except KeyboardInterrupt:
        if run.last is None:
            raise
        return Outcome(Status.INTERRUPTED, run.last, tuple(run.history))


class _Run:
    """The state of one run of the loop."""

    def __init__(
        self,
        bench: Bench,
        method: Method,
        stop: Stop,
        history: list[Iteration],
        watch: Callable[[Iteration], None] | None,
    ) -> None:
        self.bench = bench
        self.method = method
        self.stop = stop
        self.history = history
        self.last: Iterate | None = None
        self._watch = watch
        self._began = time.perf_counter()
        self._trail: list[FloatArray] = []

    def until_stopped(self, weights: FloatArray | None) -> Outcome:
        method = self.method.prepare(self.bench)
        if weights is None:
            weights = method.first_weights(self.bench)
        while True:
            iterate, occupancy, record = self._step(method, weights)
            self.last = iterate
            status = self._status(record)
            if status is not None:
                return self._outcome(status, iterate)
            assert occupancy is not None
            following = method.update(weights, occupancy.weights)
            period = self._period(iterate.moments)
            if period is not None:
                return self._cycle(method, following, period)
            weights = following

    def _step(
        self, method: Method, weights: FloatArray
    ) -> tuple[Iterate, Occupancy | None, Iteration]:
        began = time.perf_counter()
        iterate = self.bench.iterate(weights)
        policy = method.policy(iterate)
        occupancy = None if policy is None else self.bench.occupancy(policy)
        gap = None if occupancy is None else np.abs(occupancy.weights - weights)
        before = self.last.moments if self.last is not None else None
        solution = iterate.solution
        record = Iteration(
            iteration=len(self.history),
            objective=solution.objective,
            sup_norm=None if gap is None else float(gap.max()),
            one_norm=None if gap is None else float(gap.sum()),
            moment_step=None if before is None else float(np.abs(iterate.moments - before).sum()),
            audit=solution.audit,
            dual_residual=iterate.dual_residual,
            flow_residual=None if occupancy is None else occupancy.residual,
            passes=solution.passes,
            rows=solution.n_rows,
            seconds=time.perf_counter() - began,
        )
        self.history.append(record)
        if self._watch is not None:
            self._watch(record)
        return iterate, occupancy, record

    def _status(self, record: Iteration) -> Status | None:
        if record.sup_norm is None or record.sup_norm <= self.stop.tol:
            return Status.CONVERGED
        if len(self.history) >= self.stop.max_iterations:
            return Status.ITERATION_LIMIT
        limit = self.stop.max_seconds
        if limit is not None and time.perf_counter() - self._began >= limit:
            return Status.TIME_LIMIT
        return None

    def _outcome(self, status: Status, iterate: Iterate) -> Outcome:
        if iterate.solution.status is Status.INACCURATE:
            status = Status.INACCURATE
        return Outcome(status, iterate, tuple(self.history))

    def _period(self, moments: FloatArray) -> int | None:
        """Return the period with which the moments repeat, or None.

        They repeat with period p when the last p of them equal the p before, up to a small part of
        the distance they travel in between.
        """
        self._trail.append(moments)
        n = len(self._trail)
        if n < 4:
            return None
        trail = np.array(self._trail)
        trail /= np.maximum(np.abs(trail).max(axis=0), np.finfo(float).tiny)
        for period in range(2, n // 2 + 1):
            recent, earlier = trail[n - period :], trail[n - 2 * period : n - period]
            travelled = np.abs(np.diff(trail[n - period - 1 :], axis=0)).max()
            if np.abs(recent - earlier).max() <= tolerances.CYCLE * travelled:
                return period
        return None

    def _cycle(self, method: Method, weights: FloatArray, period: int) -> Outcome:
        """Go once round the cycle, keep every phase, and report the one of lowest cost."""
        phases = []
        for _ in range(period):
            iterate, occupancy, _ = self._step(method, weights)
            self.last = iterate
            phases.append(iterate)
            assert occupancy is not None
            weights = method.update(weights, occupancy.weights)
        costs = [self.bench.cost(phase.greedy) for phase in phases]
        best = phases[int(np.argmin(costs))]
        outcome = self._outcome(Status.CYCLING, best)
        return replace(outcome, phases=tuple(phases))
