"""Weight selection: Algorithm 1 of the paper, once, for every method.

Each iteration solves the program for the current weights, generates a policy from the answer,
computes the policy's discounted occupancy, and stops when that occupancy equals the weights
(in the sup norm) or else updates the weights. A method supplies three things:

    start      the first weights
    generate   the generator: from an iterate to a policy, or None when the weights are final
    update     the update: from weights and occupancy to the next weights

To try another generator or update, subclass `Iterative` and override `generate` or `update`; with
the convex step of `Iterative.update` the iteration contracts whenever the generator's Lipschitz
constant is small enough (the paper's remark on generalisations).

A `Bench` does the work for a kind of model: exactly on tabular models, by simulation on others,
where weights are known only by their moments Phi' weights. Between iterations only the
moments change, so the program stays warm. The map from moments to moments is deterministic (every
iteration uses the same random streams), hence moments that repeat mean weights that cycle.
"""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from bellweight import checks, exact, files, tolerances
from bellweight.alp import AlpProgram, AlpSolution, Audit
from bellweight.checks import FloatArray
from bellweight.dual import minimum_norm_dual
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.moduli import certified_settings, checked_lipschitz, contracts, softmax_lipschitz
from bellweight.occupancy import Occupancy, Simulation, exact_occupancy, simulated_occupancy
from bellweight.policy import DualSoftmax, Greedy, Model, Policy, Support, Uniform
from bellweight.pricing import LinearRows
from bellweight.rows import EventRows, RowSource, TabularRows
from bellweight.simulate import episode_costs, mean_and_half_width, rollout_of
from bellweight.status import ArgumentError, BellweightWarning, SolverError, Status
from bellweight.streams import stream_keys

_EXACT_TOL = 1e-8


@files.storable
@dataclass(frozen=True)
class Stop:
    """When to stop: sup-norm tolerance, number of iterations of this run, seconds.

    The default tolerance is 1e-8 where occupancies are exact, and the noise of the estimate where
    they are simulated: every moment within one standard error. The time limit is looked at between
    iterations, so the first iteration always completes.
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


@files.storable
@dataclass(frozen=True)
class Iteration:
    """What happened in one iteration.

    `sup_norm` and `one_norm` are those of occupancy minus weights, or of their moments where states
    cannot be enumerated (None when the method generates no policy); `moment_step` is the 1-norm
    between these moments and the ones before (None at first); `noise_ratio` the largest difference
    of moments in standard errors (None where nothing is simulated); `dual_share` the share of
    the occupancy in states with dual mass. `passes` counts the searches for violated rows, `rows`
    those in the program, and `solve_seconds` its share of `seconds`; `columns` counts the pairs
    that pricing has found (None where rows are listed), and `proven` says that the last search was
    complete. `step_ratio` is this `one_norm` over the one before: the contraction that is seen
    (None at first).
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


@dataclass(frozen=True)
class Cost:
    """An expected cost: exact, or the mean of episodes with its 95 % half-width."""

    mean: float
    half_width: float | None = None


@dataclass(frozen=True, eq=False)
class Point:
    """Weights as the loop sees them: their moments (K,) and, where they exist, the weights (S,)."""

    moments: FloatArray
    weights: FloatArray | None = None
    standard_error: FloatArray | None = None

    @property
    def vector(self) -> FloatArray:
        """What updates and norms apply to: the weights, or else the moments."""
        return self.moments if self.weights is None else self.weights


@dataclass(frozen=True, eq=False)
class Iterate:
    """The current weights and everything the program says about them.

    Generators may use `dual` (the minimum-norm dual on its support), `greedy` (the greedy policy,
    computed when asked for), `solution` and `model`.
    """

    bench: Bench
    point: Point
    solution: AlpSolution
    dual: Support
    dual_residual: float

    @property
    def weights(self) -> FloatArray | None:
        """The weights (S,), or None where states cannot be enumerated."""
        return self.point.weights

    @property
    def moments(self) -> FloatArray:
        """The moments Phi' weights (K,)."""
        return self.point.moments

    @property
    def model(self) -> Model:
        """The model."""
        return self.bench.model

    @cached_property
    def greedy(self) -> Greedy:
        """The greedy policy of the coefficients, ties decided by the dual."""
        return self.bench.greedy(self.solution.coef, self.dual)


@dataclass(frozen=True, eq=False)
class Method(ABC):
    """A way to choose the weights: immutable settings, no data."""

    @abstractmethod
    def first(self, bench: Bench) -> Point:
        """Return the weights to begin with."""

    def generate(self, iterate: Iterate) -> Policy | None:
        """Return the policy whose occupancy the weights should match; None: they are final."""
        return None

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        """Return the next weights, or the next moments where states cannot be enumerated."""
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
    """Weights that the user gives: an array (S,), `"initial"` or `"uniform"`.

    Where states cannot be enumerated, `moments` (K,) takes the place of an array.
    """

    weights: Any = "initial"
    moments: Any = None

    def first(self, bench: Bench) -> Point:
        if self.moments is not None:
            if not isinstance(self.weights, str) or self.weights != "initial":
                raise ArgumentError("give Fixed weights or moments, not both")
            return Point(bench.checked_moments(self.moments))
        return bench.named_point(self.weights, "weights")


@files.storable
@dataclass(frozen=True, eq=False)
class FromPolicy(Method):
    """The occupancy of a given policy; with `Uniform()` the paper's Random."""

    policy: Policy = field(default_factory=Uniform)

    def first(self, bench: Bench) -> Point:
        return bench.occupied(bench.occupancy(self.policy))


@dataclass(frozen=True, eq=False, kw_only=True)
class Iterative(Method):
    """A method that iterates: convex steps from `start` towards the occupancy of its policy.

    `start` is `"initial"`, `"uniform"`, an array (S,), or another method whose weights are taken.
    """

    step_size: float = 1.0
    start: Any = "initial"

    def __post_init__(self) -> None:
        checks.positive(self.step_size, "step_size", below=1.0, closed=True)

    def first(self, bench: Bench) -> Point:
        if isinstance(self.start, Method):
            point = _finished(bench, self.start, "start").point
            if point.weights is None and isinstance(bench, TabularBench):
                raise ArgumentError(
                    "start gives moments only, expected weights on a tabular model: use "
                    "Fixed(weights)"
                )
            return point
        return bench.named_point(self.start, "start")

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        # A convex step keeps the weights on the simplex (eq. dia_weight_update).
        return (1.0 - self.step_size) * weights + self.step_size * occupancy


@files.storable
@dataclass(frozen=True, eq=False, kw_only=True)
class PIA(Iterative):
    """The primal iterative algorithm: the generator is the greedy policy. It may cycle."""

    def generate(self, iterate: Iterate) -> Policy:
        return iterate.greedy


@files.storable
@dataclass(frozen=True, eq=False, kw_only=True)
class DIA(Iterative):
    """The dual iterative algorithm: the generator is the target-guided softmax of the dual.

    `target` is a policy, or a method whose greedy policy is taken. `smoothing_mass` and
    `temperature` are the paper's epsilon and tau. `lipschitz`, an upper bound on the Lipschitz
    constant of the dual, and `discount` declare the model that the settings were chosen for: when
    they satisfy eq. epsilon_tau_conditions, convergence is proven and the mode is `certified`.
    """

    target: Policy | Method = field(default_factory=Uniform)
    temperature: float = 0.1
    smoothing_mass: float = 0.1
    lipschitz: float | None = None
    discount: float | None = None

    @classmethod
    def certified(
        cls,
        *,
        lipschitz: float,
        discount: float,
        target: Policy | Method | None = None,
        step_size: float = 1.0,
        start: Any = "initial",
        modulus: float = 0.9,
        split: float = 0.5,
    ) -> Self:
        """Return settings for which convergence is proven: nearly the target policy, as a rule.

        `lipschitz` comes from `contraction.dual_lipschitz`; `modulus` and `split` are those of
        `contraction.certified_settings`, which also tells the price.
        """
        found = certified_settings(
            lipschitz, discount, step_size=step_size, modulus=modulus, split=split
        )
        return cls(
            target=Uniform() if target is None else target,
            temperature=found.temperature,
            smoothing_mass=found.smoothing_mass,
            step_size=step_size,
            start=start,
            lipschitz=found.lipschitz,
            discount=found.discount,
        )

    @classmethod
    def practical(cls, **settings: Any) -> Self:
        """Return settings as given, the plain constructor: good in practice, nothing proven."""
        declared = [name for name in ("lipschitz", "discount") if name in settings]
        if declared:
            raise ArgumentError(f"{declared[0]} belongs to DIA.certified(...), not to practical")
        return cls(**settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive(self.temperature, "temperature")
        checks.positive(self.smoothing_mass, "smoothing_mass")
        if (self.lipschitz is None) != (self.discount is None):
            raise ArgumentError("give DIA both lipschitz and discount, or neither")
        if self.lipschitz is not None:
            checked_lipschitz(self.lipschitz, "lipschitz")
            checks.discount_factor(self.discount)
        if not isinstance(self.target, Policy | Method):
            raise ArgumentError(
                f"target is {self.target!r}, expected a policy such as Uniform(), or a method such "
                "as Fixed(weights) whose greedy policy is the target"
            )

    @property
    def modulus(self) -> float | None:
        """The proven factor per iteration, below one; None where there is none."""
        # The proof is that of this class's own generator and update.
        changed = (
            type(self).generate is not DIA.generate or type(self).update is not Iterative.update
        )
        if self.lipschitz is None or self.discount is None or changed:
            return None
        policy = softmax_lipschitz(self.temperature, self.smoothing_mass)
        update = (1.0 - self.step_size, self.step_size)
        modulus = contracts(policy, self.lipschitz, self.discount, update)
        return modulus if modulus < 1.0 else None

    @property
    def mode(self) -> str:
        return "practical" if self.modulus is None else "certified"

    def prepare(self, bench: Bench) -> DIA:
        if self.mode == "certified":
            self._check_certified(bench)
        if isinstance(self.target, Policy):
            return self
        return replace(self, target=_finished(bench, self.target, "target").greedy)

    def generate(self, iterate: Iterate) -> Policy:
        assert isinstance(self.target, Policy)
        return DualSoftmax(iterate.dual, self.target, self.temperature, self.smoothing_mass)

    def _check_certified(self, bench: Bench) -> None:
        """Refuse a model that the certified settings do not belong to."""
        if not isinstance(bench, TabularBench):
            raise ArgumentError(
                "certified settings are proven for exact occupancies, which only a TabularModel "
                "has: use DIA.practical(...) with the same temperature and smoothing_mass"
            )
        if bench.model.discount != self.discount:
            raise ArgumentError(
                f"the settings are certified for discount {self.discount}, the model has "
                f"{bench.model.discount}: use DIA.certified(lipschitz=..., "
                f"discount={bench.model.discount})"
            )


class Bench(ABC):
    """A model, its rows and a warm program: what the loop works with."""

    model: Model
    rows: RowSource

    def __init__(self) -> None:
        self._program: AlpProgram | None = None

    @abstractmethod
    def occupancy(self, policy: Policy) -> Occupancy:
        """Return the discounted occupancy of a policy."""

    @abstractmethod
    def occupied(self, occupancy: Occupancy) -> Point:
        """Return an occupancy as weights."""

    @abstractmethod
    def named_point(self, weights: Any, name: str) -> Point:
        """Return weights given as an array or by name."""

    @abstractmethod
    def point_of(self, vector: FloatArray, standard_error: FloatArray | None = None) -> Point:
        """Return the point with this vector of weights, or of moments."""

    @abstractmethod
    def greedy(self, coef: FloatArray, dual: Support) -> Greedy:
        """Return the greedy policy of coefficients."""

    @abstractmethod
    def cost(self, policy: Policy) -> Cost:
        """Return the expected discounted cost of a policy from the initial distribution."""

    @abstractmethod
    def dual_share(self, occupancy: Occupancy, dual: Support) -> float | None:
        """Return the share of an occupancy in states with dual mass."""

    @property
    def n_columns(self) -> int | None:
        """Number of pairs that pricing has found, None where rows are listed."""
        return None

    def program(self, reference: FloatArray | None = None) -> AlpProgram:
        """Return the program, built around the first weights it is asked for."""
        if self._program is None:
            self._program = AlpProgram(self.rows, reference)
        return self._program

    def iterate(self, point: Point) -> Iterate:
        """Solve the program for some weights and select the minimum-norm dual."""
        solution = self.program(point.weights).solve(point.moments, point.weights)
        dual = minimum_norm_dual(solution)
        if dual.residual > tolerances.DUAL:
            inexact = solution.status is Status.OPTIMAL
            solution = replace(solution, status=Status.INACCURATE) if inexact else solution
        support = Support(*self.rows.support_of(dual.keys), dual.values)
        return Iterate(self, point, solution, support, dual.residual)

    def checked_moments(self, moments: Any) -> FloatArray:
        """Return moments (K,) given by the user: those of a distribution, so 1 gives 1."""
        given = checks.float_array(moments, "moments", (self.rows.n_basis,), ArgumentError)
        total = float(given @ self.rows.constant())
        if abs(total - 1.0) > tolerances.PROBABILITY:
            raise ArgumentError(
                f"moments give the constant function {total:.12g}, expected 1: use the moments of "
                "weights that sum to one"
            )
        return given


class TabularBench(Bench):
    """Everything exact."""

    def __init__(self, rows: TabularRows) -> None:
        super().__init__()
        self.rows: TabularRows = rows
        self.model: TabularModel = rows.model

    def occupancy(self, policy: Policy) -> Occupancy:
        return exact_occupancy(self.model, policy)

    def occupied(self, occupancy: Occupancy) -> Point:
        assert occupancy.weights is not None
        return self.point_of(occupancy.weights)

    def point_of(self, vector: FloatArray, standard_error: FloatArray | None = None) -> Point:
        return Point(self.rows.moments(vector), vector)

    def named_point(self, weights: Any, name: str) -> Point:
        model = self.model
        if isinstance(weights, str):
            checks.one_of(weights, name, ("initial", "uniform"))
            even = np.full(model.n_states, 1.0 / model.n_states)
            return self.point_of(model.initial if weights == "initial" else even)
        given = checks.distribution(weights, name, model.n_states, model.state_name, ArgumentError)
        return self.point_of(given)

    def greedy(self, coef: FloatArray, dual: Support) -> Greedy:
        return Greedy.from_values(self.rows, coef, dual)

    def cost(self, policy: Policy) -> Cost:
        return Cost(float(self.model.initial @ exact.policy_value(self.model, policy)))

    def dual_share(self, occupancy: Occupancy, dual: Support) -> float | None:
        assert occupancy.weights is not None
        return float(occupancy.weights[np.unique(dual.states)].sum())


class SimulatedBench(Bench):
    """Occupancies by simulation, always on the same random streams; weights known by moments."""

    model: EventModel | LinearModel
    rows: EventRows | LinearRows

    def __init__(
        self,
        rows: EventRows | LinearRows,
        simulation: Simulation,
        seed: int,
        jobs: int | None = None,
    ) -> None:
        super().__init__()
        self.rows = rows
        self.model = rows.model
        self.simulation = simulation
        self.seed = seed
        self.jobs = jobs

    def occupancy(self, policy: Policy) -> Occupancy:
        return simulated_occupancy(
            self.model, policy, self.rows.basis, self.simulation, seed=self.seed, jobs=self.jobs
        )

    def occupied(self, occupancy: Occupancy) -> Point:
        assert occupancy.moments is not None
        return Point(occupancy.moments, standard_error=occupancy.standard_error)

    def point_of(self, vector: FloatArray, standard_error: FloatArray | None = None) -> Point:
        return Point(vector, standard_error=standard_error)

    def named_point(self, weights: Any, name: str) -> Point:
        if not isinstance(weights, str) or weights != "initial":
            raise ArgumentError(
                f'{name} is {weights!r}, expected "initial" for a model whose states cannot be '
                "enumerated: use Fixed(moments=...) or FromPolicy(policy)"
            )
        return self._initial_point()

    def greedy(self, coef: FloatArray, dual: Support) -> Greedy:
        return Greedy(basis=self.rows.basis, coef=coef, dual=dual, model=self.model)

    def cost(self, policy: Policy) -> Cost:
        rollout = rollout_of(self.model, policy)
        horizon = self.simulation.steps(self.model.discount)
        episodes = self.simulation.episodes
        costs = episode_costs(rollout, 0, episodes, horizon, self.seed, self.jobs)
        return Cost(*mean_and_half_width(costs))

    def dual_share(self, occupancy: Occupancy, dual: Support) -> float | None:
        return occupancy.dual_share

    @property
    def n_columns(self) -> int | None:
        return self.rows.n_pairs if isinstance(self.rows, LinearRows) else None

    def _initial_point(self) -> Point:
        model = self.model
        if isinstance(model, LinearModel):
            return Point(np.append(1.0, model.initial_mean))
        exactly = model.initial_moments(self.rows.basis.words(model.dimension))
        if exactly is not None:
            return Point(exactly)
        n = self.simulation.episodes
        states = model.sample_initial(0, n, stream_keys(self.seed)[0])
        features = self.rows.basis(states.astype(np.float64))
        return Point(
            features.mean(axis=0), standard_error=features.std(axis=0, ddof=1) / np.sqrt(n)
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended: the iterate to report, the history, and all phases of a cycle.

    `reported` is the place of the reported iterate in the history.
    """

    status: Status
    iterate: Iterate
    history: tuple[Iteration, ...]
    reported: int
    phases: tuple[Iterate, ...] = ()
    phase_costs: tuple[Cost, ...] = ()


def select_weights(
    bench: Bench,
    method: Method,
    stop: Stop,
    *,
    point: Point | None = None,
    history: tuple[Iteration, ...] = (),
    watch: Callable[[Iteration], None] | None = None,
) -> Outcome:
    """Run Algorithm 1; `point` and `history` are those of a run to go on with."""
    run = _Run(bench, method, stop, list(history), watch)
    try:
        return run.until_stopped(point)
    except SolverError as problem:
        raise SolverError(problem.status, problem.detail, run.history) from problem
    except KeyboardInterrupt:
        if run.last is None:
            raise
        return Outcome(Status.INTERRUPTED, run.last, tuple(run.history), len(run.history) - 1)


def _finished(bench: Bench, method: Method, role: str) -> Iterate:
    """Run a method that another one needs as its start or target."""
    outcome = select_weights(bench, method, Stop())
    if outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if not outcome.status.is_success:
        warnings.warn(
            f"the {role}, {type(method).__name__}, ended as {outcome.status.name} and is used as "
            f"it is: {outcome.status.message}",
            BellweightWarning,
            stacklevel=2,
        )
    return outcome.iterate


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
        self._before = len(history)
        self._trail: list[FloatArray] = []

    def until_stopped(self, point: Point | None) -> Outcome:
        method = self.method.prepare(self.bench)
        if point is None:
            point = method.first(self.bench)
        while True:
            iterate, occupied, record = self._step(method, point)
            status = self._status(record)
            if status is not None:
                return self._outcome(status, iterate)
            assert occupied is not None
            point = self._updated(method, point, occupied)
            period = self._period(iterate.moments)
            if period is not None:
                return self._cycle(method, point, period)

    def _step(self, method: Method, point: Point) -> tuple[Iterate, Point | None, Iteration]:
        began = time.perf_counter()
        iterate = self.bench.iterate(point)
        policy = method.generate(iterate)
        occupancy = None if policy is None else self.bench.occupancy(policy)
        occupied = None if occupancy is None else self.bench.occupied(occupancy)
        gap = None if occupied is None else np.abs(occupied.vector - point.vector)
        before = self.last.moments if self.last is not None else None
        one_norm = None if gap is None else float(gap.sum())
        solution = iterate.solution
        share = None if occupancy is None else self.bench.dual_share(occupancy, iterate.dual)
        record = Iteration(
            iteration=len(self.history),
            objective=solution.objective,
            sup_norm=None if gap is None else float(gap.max()),
            one_norm=one_norm,
            moment_step=None if before is None else float(np.abs(iterate.moments - before).sum()),
            audit=solution.audit,
            dual_residual=iterate.dual_residual,
            flow_residual=None if occupancy is None else occupancy.residual,
            noise_ratio=None if occupied is None else _noise_ratio(point, occupied),
            dual_share=share,
            passes=solution.passes,
            rows=solution.n_rows,
            seconds=time.perf_counter() - began,
            solve_seconds=solution.seconds,
            columns=self.bench.n_columns,
            proven=solution.proven,
            step_ratio=self._step_ratio(one_norm),
        )
        # Both before the caller's function runs, which may interrupt.
        self.history.append(record)
        self.last = iterate
        if self._watch is not None:
            self._watch(record)
        return iterate, occupied, record

    def _step_ratio(self, one_norm: float | None) -> float | None:
        before = self.history[-1].one_norm if self.history else None
        return one_norm / before if one_norm is not None and before else None

    def _updated(self, method: Method, point: Point, occupied: Point) -> Point:
        following = method.update(point.vector, occupied.vector)
        error = occupied.standard_error
        if error is not None and point.standard_error is not None:
            # The streams are the same, so errors of a mixture add up at most.
            error = method.update(point.standard_error, error)
        return self.bench.point_of(following, error)

    def _status(self, record: Iteration) -> Status | None:
        if record.sup_norm is None or self._settled(record):
            return Status.CONVERGED
        if len(self.history) - self._before >= self.stop.max_iterations:
            return Status.ITERATION_LIMIT
        limit = self.stop.max_seconds
        if limit is not None and time.perf_counter() - self._began >= limit:
            return Status.TIME_LIMIT
        return None

    def _settled(self, record: Iteration) -> bool:
        assert record.sup_norm is not None
        if self.stop.tol is None and record.noise_ratio is not None:
            return record.noise_ratio <= 1.0
        return record.sup_norm <= (_EXACT_TOL if self.stop.tol is None else self.stop.tol)

    def _outcome(self, status: Status, iterate: Iterate) -> Outcome:
        if iterate.solution.status is not Status.OPTIMAL:
            status = iterate.solution.status
        return Outcome(status, iterate, tuple(self.history), len(self.history) - 1)

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
        distance = np.abs(trail - trail[-1]).max(axis=1)
        step = distance[-2]
        for period in range(2, n // 2 + 1):
            # Only a return of the last moments is worth a closer look.
            if distance[n - 1 - period] <= step:
                recent, earlier = trail[n - period :], trail[n - 2 * period : n - period]
                travelled = np.abs(np.diff(trail[n - period - 1 :], axis=0)).max()
                # Moments that stand still are no cycle: the weights may still be on their way.
                moved = travelled > tolerances.ROUNDING
                if moved and np.abs(recent - earlier).max() <= tolerances.CYCLE * travelled:
                    return period
        return None

    def _cycle(self, method: Method, point: Point, period: int) -> Outcome:
        """Go once round the cycle, keep every phase, and report the one of lowest cost."""
        phases = []
        for _ in range(period):
            iterate, occupied, _ = self._step(method, point)
            phases.append(iterate)
            assert occupied is not None
            point = self._updated(method, point, occupied)
        costs = tuple(self.bench.cost(phase.greedy) for phase in phases)
        best = int(np.argmin([cost.mean for cost in costs]))
        outcome = self._outcome(Status.CYCLING, phases[best])
        place = len(self.history) - period + best
        return replace(outcome, phases=tuple(phases), phase_costs=costs, reported=place)


def _noise_ratio(point: Point, occupied: Point) -> float | None:
    """Return the largest change of a moment in standard errors of the estimate."""
    if occupied.standard_error is None:
        return None
    gap = np.abs(occupied.moments - point.moments)
    # A moment without noise, such as that of the constant, is held to the exact tolerance.
    size = np.maximum(np.abs(occupied.moments), np.abs(point.moments))
    error = np.maximum(occupied.standard_error, _EXACT_TOL * size)
    return float(np.max(gap[error > 0.0] / error[error > 0.0], initial=0.0))
