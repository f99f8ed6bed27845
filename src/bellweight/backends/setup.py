"""What the weight loop works with: a model, its rows, a warm program.

Between iterations only the moments change, so the program stays warm. Every iteration uses the same
random streams, so the map from moments to moments is deterministic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

from bellweight.backends.estimate import Estimate
from bellweight.basis import Basis
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.models import Model
from bellweight.policies import Greedy, Policy, Support
from bellweight.program import (
    AlpProgram,
    ListedRows,
    PenaltyProgram,
    Repaired,
    RowSource,
    Solution,
    StreamedRows,
)
from bellweight.simulation import Occupancy, Simulation, episode_costs

if TYPE_CHECKING:
    from bellweight.backends.backend import Backend


class Solvable(Protocol):
    """A program of any kind that stays warm from one solve to the next."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""

    def solve(
        self,
        moments: FloatArray,
        reference: FloatArray | None = None,
        until: float | None = None,
    ) -> Solution:
        """Return the audited optimum for these moments (K,), its dual decided.

        Long steps end when `time.perf_counter` reaches `until`.
        """


@dataclass(frozen=True)
class RunSettings:
    """How a run simulates and what its program adds: episodes, random streams, workers."""

    simulation: Simulation = field(default_factory=Simulation)
    seed: int = 0
    jobs: int | None = None
    regularisation: float = 0.0

    def refuse_regularisation(self, where: str, why: str) -> None:
        """Say why a program is not regularised here, if that was asked for."""
        if self.regularisation > 0.0:
            raise ArgumentError(
                f"regularisation is {self.regularisation:g}, expected 0 {where}: {why}"
            )


@files.storable("Outside")
@dataclass(frozen=True)
class Outside:
    """The share of visited states outside the box of a linear model's rows.

    `variable` is the one farthest outside, `reached` its farthest value, `lower` to `upper` its
    box.
    """

    share: float
    variable: str
    reached: float
    lower: float
    upper: float


@files.storable("Evidence")
@dataclass(frozen=True)
class Evidence:
    """What a search found where rows are a sample and expectations may be averages of draws.

    `violation` is the largest one that a search over all states found, at `state` and `action`:
    below zero where no row was found violated. `draws_error` is by how much another set of draws
    moves the objective, None where expectations are no draws.
    """

    violation: float
    state: tuple[float, ...]
    action: str
    draws_error: float | None = None


@dataclass(frozen=True, eq=False)
class Point:
    """Weights of the loop: their moments (K,) and, where states are listed, the weights (S,)."""

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

    Generators may use `dual` (the decided dual on its support), `greedy` (the greedy policy,
    computed when asked for), `solution` and `model`.
    """

    setup: Setup
    point: Point
    solution: Solution
    dual: Support

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
        return self.setup.model

    @cached_property
    def greedy(self) -> Greedy:
        """The greedy policy of the coefficients, ties decided by the dual."""
        return self.setup.greedy(self.solution.coef, self.dual)


class Setup(ABC):
    """A model, its rows, how it is simulated, and a warm program.

    `is_exact` says that occupancies and costs are computed, and weights are vectors over states;
    otherwise they are simulated, and weights are known by their moments.
    """

    rows: RowSource
    is_exact: bool = False
    repair_advice: str = (
        "in spite of rounding; use a lower degree or fewer functions that look alike for a bound "
        "that keeps more"
    )

    def __init__(self, rows: RowSource, settings: RunSettings | None = None) -> None:
        given = settings or RunSettings()
        self.rows = rows
        self.simulation = given.simulation
        self.seed = given.seed
        self.jobs = given.jobs
        if isinstance(rows, ListedRows | StreamedRows):
            rows.jobs = given.jobs
        self.regularisation = given.regularisation
        self._program: Solvable | None = None
        self._others: dict[float, Self] = {}  # by regularisation, shared by all of them

    @property
    def model(self) -> Model:
        """The model that the rows are of."""
        found: Model = self.rows.model
        return found

    @property
    def basis(self) -> Basis:
        """The basis, fitted to the states."""
        return self.rows.basis

    @property
    @abstractmethod
    def backend(self) -> Backend[Any]:
        """The backend of the model."""

    @property
    def listed_rows(self) -> ListedRows | None:
        """The rows, where all of them are listed."""
        return None

    @property
    def sampled_states(self) -> Any:
        """The states (n, d) that rows come from, None where they come from all states."""
        return None

    @property
    @abstractmethod
    def size_text(self) -> str:
        """How large the model and its program are, in words."""

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

    def greedy(self, coef: FloatArray, dual: Support | None = None) -> Greedy:
        """Return the greedy policy of coefficients; without a dual, ties go to lower actions."""
        return Greedy(basis=self.basis, coef=coef, dual=dual, model=self.model)

    @abstractmethod
    def cost(self, policy: Policy) -> Estimate:
        """Return the expected discounted cost of a policy from the initial distribution."""

    def episode_costs(
        self, policy: Policy, episodes: int, horizon: int, seed: int
    ) -> tuple[FloatArray, Outside | None]:
        """Return the costs (n,) of simulated episodes, and how far they leave the rows' box."""
        rollout = self.backend.episodes(policy)
        return episode_costs(rollout, 0, episodes, horizon, seed, self.jobs), None

    @abstractmethod
    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
        """Return the share of a policy's occupancy in states with dual mass, lent mass included."""

    def over_pairs(self, dual: Support) -> FloatArray | None:
        """Return a dual as an array (N,) over all pairs, where they are listed."""
        return None

    def proven(self, coef: FloatArray, point: Point) -> Repaired | None:
        """Return coefficients at which all rows are proven to hold, where all rows are known."""
        return None

    def proof(self) -> tuple[str, str]:
        """Return the kind of a proven bound, `exact` or `estimated`, and how it is known."""
        return "exact", "every row of every state holds, rounding included"

    def why_unproven(self) -> str:
        """Return why there is no bound, where a user has declared something for one."""
        return ""

    def evidence(self, solution: Solution, dual: Support) -> Evidence | None:
        """Return what a search found, where rows are a sample of the states of a box."""
        return None

    def lower_bound(self, pieces: Sequence[tuple[FloatArray, Point]]) -> float | None:
        """Return a proven bound on the optimal cost, where there is one.

        It is the value of the largest of several value functions, given by their coefficients and
        weights.
        """
        return None

    def is_constant(self, coef: FloatArray) -> bool:
        """Return whether coefficients give a value that is the same in every state."""
        return False

    @property
    def n_columns(self) -> int | None:
        """Number of pairs that pricing has found, None where rows are listed."""
        return None

    def using(self, program: Solvable) -> Self:
        """Return this setup with another program of its rows."""
        other = copy(self)
        other._program = program
        return other

    def regularised(self, delta: float) -> Self:
        """Return a setup with the same rows and another regularisation: one for each delta."""
        if self.listed_rows is None:
            raise ArgumentError(
                f"regularisation is {delta:g}, expected 0 where rows are not listed: it needs all "
                "of them; use SampledRows(states), or to_tabular() where states are few"
            )
        if delta not in self._others:
            other = copy(self)
            other.regularisation, other._program = delta, None
            self._others[delta] = other
        return self._others[delta]

    def program(self, reference: FloatArray | None = None) -> Solvable:
        """Return the program, built around the first weights it is asked for."""
        if self._program is None and self.regularisation > 0.0:
            assert self.listed_rows is not None
            self._program = PenaltyProgram(self.listed_rows, self.regularisation, reference)
        elif self._program is None:
            self._program = AlpProgram(self.rows, reference)
        return self._program

    def iterate(self, point: Point, until: float | None = None) -> Iterate:
        """Solve the program for some weights; rows that belong to no pair are not in the support.

        Long steps end when `time.perf_counter` reaches `until`.
        """
        solution = self.program(point.weights).solve(point.moments, point.weights, until)
        pairs = self.rows.are_pairs(solution.keys)
        states, actions = self.rows.support_of(solution.keys[pairs])
        return Iterate(self, point, solution, Support(states, actions, solution.dual[pairs]))

    def checked_moments(self, moments: Any) -> FloatArray:
        """Return moments (K,) given by the user; that of the constant must be 1."""
        given = checks.float_array(moments, "moments", (self.rows.n_basis,), ArgumentError)
        total = float(given @ self.rows.constant())
        if abs(total - 1.0) > tolerances.PROBABILITY:
            raise ArgumentError(
                f"moments give the constant function {total:.12g}, expected 1: use the moments of "
                "weights that sum to one"
            )
        return given
