"""What the weight loop works with: a kind of model, its rows, a warm program.

A `Bench` does the work exactly on tabular models and by simulation on others, where weights are
known only by their moments Phi' weights. Between iterations only the moments change, so the program
stays warm. Every iteration uses the same random streams, so the map from moments to moments is
deterministic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, Status
from bellweight.common.streams import stream_keys
from bellweight.evaluation import exact
from bellweight.evaluation.occupancy import (
    Occupancy,
    Simulation,
    exact_occupancy,
    simulated_occupancy,
)
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.policies.policy import DualSoftmax, Greedy, Model, Policy, Support
from bellweight.program.alp import AlpProgram
from bellweight.program.minimum_norm import minimum_norm_dual
from bellweight.program.priced_rows import LinearRows
from bellweight.program.regularised import PenaltyProgram
from bellweight.program.rows import BellmanRows, EventRows, RowSource, TabularRows
from bellweight.program.solution import AlpSolution, DecidedSolution
from bellweight.simulation.episodes import episode_costs, mean_and_half_width, rollout_of


class Solvable(Protocol):
    """A program that stays warm from one solve to the next, of whatever kind."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""

    def solve(
        self, moments: FloatArray, reference: FloatArray | None = None
    ) -> AlpSolution | DecidedSolution:
        """Return the audited optimum for these moments (K,)."""


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
    solution: AlpSolution | DecidedSolution
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


class Bench(ABC):
    """A model, its rows and a warm program: what the loop works with."""

    model: Model
    rows: RowSource

    def __init__(self, regularisation: float = 0.0) -> None:
        self.regularisation = regularisation
        self._program: Solvable | None = None

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
    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
        """Return the share of a policy's occupancy in states with dual mass, lent mass included."""

    @property
    def n_columns(self) -> int | None:
        """Number of pairs that pricing has found, None where rows are listed."""
        return None

    def using(self, program: Solvable) -> Self:
        """Return this bench with another program of its rows."""
        other = copy(self)
        other._program = program
        return other

    def regularised(self, delta: float) -> Self:
        """Return this bench with another regularisation and the same rows."""
        other = copy(self)
        other.regularisation, other._program = delta, None
        return other

    def program(self, reference: FloatArray | None = None) -> Solvable:
        """Return the program, built around the first weights it is asked for."""
        if self._program is None and self.regularisation > 0.0:
            assert isinstance(self.rows, BellmanRows)
            self._program = PenaltyProgram(self.rows, self.regularisation, reference)
        elif self._program is None:
            self._program = AlpProgram(self.rows, reference)
        return self._program

    def iterate(self, point: Point) -> Iterate:
        """Solve the program for some weights; its dual is the one of smallest norm."""
        solution = self.program(point.weights).solve(point.moments, point.weights)
        if isinstance(solution, DecidedSolution):
            keys, values, residual = solution.keys, solution.dual, solution.audit.dual_residual
        else:
            dual = minimum_norm_dual(solution)
            keys, values, residual = dual.keys, dual.values, dual.residual
        if residual > tolerances.DUAL and solution.status is Status.OPTIMAL:
            solution = replace(solution, status=Status.INACCURATE)
        pairs = self.rows.are_pairs(keys)
        support = Support(*self.rows.support_of(keys[pairs]), values[pairs])
        return Iterate(self, point, solution, support, residual)

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

    def __init__(self, rows: TabularRows, regularisation: float = 0.0) -> None:
        super().__init__(regularisation)
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

    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
        assert occupancy.weights is not None
        if isinstance(policy, DualSoftmax):
            dual = policy.reaching(self.model)
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
        regularisation: float = 0.0,
    ) -> None:
        super().__init__(regularisation)
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

    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
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
