"""The interface behind which everything stands that depends on the kind of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bellweight.backends.setup import Point, RunSettings, Setup
from bellweight.basis import Basis
from bellweight.basis.core import variable_names
from bellweight.common.checks import FloatArray, IntArray
from bellweight.models import Model
from bellweight.models.local import LocalStructure
from bellweight.policies import Policy
from bellweight.policies.states import one_state
from bellweight.program import RowSource
from bellweight.simulation import BLOCK, Episodes, Occupancy, Simulation

AnyModel = TypeVar("AnyModel", bound=Model)

COMPILED_STEPS = 500_000
"""Simulated steps for each judged policy where actions are found by compiled code."""

SLOW_LOOK = 32
"""Episodes of every policy before a race drops any, where a step runs as plain Python."""

DRAWN_STATES = 2_000
VIEWING = 3
"""The branch of a seed for charts, so that they do not reuse the episodes of estimates."""


@dataclass(frozen=True, eq=False)
class Visited:
    """States (n, d) that a policy visits, their share of discounted time (n,), and values there.

    `value` (n,) is the approximate value, on tabular models repaired so that it is a lower bound,
    `residual` (n,) the Bellman residual of the greedy action, and `cost_to_go` (n,) the exact value
    of the policy, where it can be computed. `values_at` answers for other states.
    """

    backend: Backend[Any]
    states: FloatArray
    share: FloatArray
    value: FloatArray
    residual: FloatArray
    cost_to_go: FloatArray | None
    policy: Policy
    values_at: Callable[[FloatArray], FloatArray]

    @property
    def is_sample(self) -> bool:
        """Whether the states were drawn; otherwise they are all that exist."""
        return not self.backend.lists_states

    @property
    def dimension(self) -> int:
        """Number of state variables."""
        return int(self.states.shape[1])

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the state variables."""
        return self.backend.variables

    def state_text(self, place: int) -> str:
        """Return the name of a state, or its variables."""
        return self.backend.state_text(self.states[place], place)

    def action_text(self, place: int) -> str:
        """Return the name of the action taken in a state."""
        where = self.states[place : place + 1] if self.is_sample else np.array([place])
        return self.backend.action_text(self.actions_at(where)[0])

    def actions_at(self, states: Any) -> Any:
        """Return the policy's actions in states: indices (n,), or vectors (n, m).

        The states are vectors (n, d), or places (n,) in the list of a tabular model.
        """
        return self.backend.actions_at(self.policy.on(self.backend.model), states)


class Backend(ABC, Generic[AnyModel]):
    """Everything that depends on the kind of a model.

    `lists_states` says that all states are listed, so that costs and occupancies are exact;
    `lists_rows` that the rows of a program are, all or a sample of them; `samples_states` that rows
    come from sampled states; `lists_successors` that what can follow a pair can be listed.
    `acts_by_vectors` says that an action is a vector, not an index; `maximises` that costs are
    minus the rewards that the user gave. `noun` and `usual_basis` are for people.
    """

    lists_states = False
    lists_rows = True
    samples_states = False
    lists_successors = True
    acts_by_vectors = False
    maximises = False
    noun: str
    usual_basis: str

    def __init__(self, model: AnyModel) -> None:
        self.model = model

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the state variables."""
        return tuple(variable_names(self.model.dimension))  # type: ignore[union-attr]

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """The names of all states, where they are listed by name and are no vectors."""
        return None

    @property
    def action_names(self) -> tuple[str, ...]:
        """The names of all actions, or of the variables of an action."""
        return tuple(map(self.action_text, range(self.model.n_actions)))  # type: ignore[union-attr]

    # Programs

    @property
    def structure(self) -> LocalStructure | None:
        """The local parts that the model is made of, where it declares them."""
        return None

    @abstractmethod
    def setup(self, basis: Basis, rows: Any, settings: RunSettings) -> Setup:
        """Return what the weight loop works with; `rows` are those the user chose, or None."""

    @abstractmethod
    def some_rows(self, basis: Basis, states: FloatArray) -> RowSource:
        """Return all rows, or where they are sampled those of some states (n, d)."""

    def searched(self, basis: Basis, coef: FloatArray, seed: int) -> dict[str, float]:
        """Return the largest violations that searches found, by place: evidence, not a proof."""
        return {}

    # Policies

    @abstractmethod
    def episodes(self, policy: Policy) -> Episodes:
        """Lay out the model and a policy for simulation."""

    @abstractmethod
    def estimated_occupancy(
        self, policy: Policy, basis: Basis, simulation: Simulation, seed: int, jobs: int | None
    ) -> Occupancy:
        """Return the moments of a policy's occupancy, estimated by simulation."""

    @abstractmethod
    def tail(self, policy: Policy, horizon: int) -> tuple[float | None, str]:
        """Return a bound on the expected cost after the horizon, or None and the reason."""

    def exact_cost(self, policy: Policy) -> float | None:
        """Return the expected discounted cost of a policy, None where it has to be simulated."""
        return None

    def judging_steps(self, policy: Policy) -> int:
        """Return how many steps to simulate, so that judging a policy takes about a second."""
        return COMPILED_STEPS

    @property
    def is_slow(self) -> bool:
        """Whether a step is simulated as plain Python, a hundred times slower than compiled."""
        return False

    @property
    def first_look(self) -> int:
        """Episodes of every policy of a race before any is dropped."""
        return SLOW_LOOK if self.is_slow else BLOCK

    def why_not_random(self) -> str:
        """Return why acting at random is not possible here, or no text where it is."""
        return ""

    def actions_matter(self) -> bool:
        """Return whether a policy that costs as much as acting at random could be better."""
        return False

    @abstractmethod
    def remedy(self) -> str:
        """Return what to try when a policy is no better than acting at random."""

    # What people see

    @abstractmethod
    def visited(
        self, basis: Basis, coef: FloatArray, point: Point, policy: Policy, seed: int
    ) -> Visited:
        """Return where a greedy policy spends its time, and the values and residuals there."""

    @abstractmethod
    def actions_at(self, policy: Policy, states: Any) -> Any:
        """Return a policy's actions in states (n, d), or in places (n,) of the list of states."""

    def one_point(self, state: Any) -> FloatArray:
        """Return the vector (1, d) of the state whose value is asked for."""
        dimension = self.model.dimension  # type: ignore[union-attr]
        given = one_state(state, dimension, "result.value")
        checked = self.model.check_states(given, "state")  # type: ignore[union-attr]
        return np.asarray(checked, dtype=np.float64)

    def state_text(self, state: Any, place: int) -> str:
        """Return the name of a state (d,) with this place among those visited, or its variables."""
        numbers = ", ".join(f"{number:g}" for number in state)
        return numbers if len(state) == 1 else f"({numbers})"

    def state_label(self, state: Any) -> str | None:
        """Return the label of a state of a dual's support, None where it has none."""
        return None

    def action_text(self, action: Any) -> str:
        """Return the name of an action; of a vector that of its non-zero variables."""
        return self.model.label(int(action))  # type: ignore[union-attr]

    def side(self, axis: int) -> tuple[float, float, bool]:
        """Return the least and the largest value of a state variable, and whether it is whole."""
        return -np.inf, np.inf, True


def values_by(basis: Basis, coef: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the function from states (n, d) to approximate values (n,)."""
    return lambda states: np.asarray(basis(np.asarray(states, dtype=np.float64)) @ coef)


def counted(drawn: FloatArray | IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct ones of drawn states, and their shares."""
    states, counts = np.unique(drawn, axis=0, return_counts=True)
    return states.astype(np.float64), counts / counts.sum()


def growing_tail(discount: float, level: float, growth: float, horizon: int) -> float:
    """Return the discounted sum from the horizon on of costs of at most level + growth t."""
    left = 1.0 - discount
    return discount**horizon * ((level + growth * horizon) / left + growth * discount / left**2)
