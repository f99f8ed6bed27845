"""Tabular models: all states are listed, and everything is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellweight import exact
from bellweight.backends.backend import Backend, Visited, values_by
from bellweight.backends.estimate import Estimate
from bellweight.backends.setup import Point, RunSettings, Setup, Solvable
from bellweight.backends.state_program import StateProgram
from bellweight.basis import Basis
from bellweight.basis.core import variable_names
from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError
from bellweight.common.workers import limited
from bellweight.exact.occupancy import exact_occupancy, policy_chain
from bellweight.models import TabularModel
from bellweight.policies import DualSoftmax, Greedy, Policy, Support, Uniform, checked_probabilities
from bellweight.policies.actor import Actor, AnyPolicy, acts_on, needs_generator
from bellweight.policies.states import one_index, several_indices
from bellweight.program import (
    AllRows,
    ListedRows,
    Repaired,
    TabularRows,
    largest_value,
    repaired,
    repaired_values,
)
from bellweight.simulation import Occupancy, Simulation, TabularRollout


class TabularSetup(Setup):
    """Weights are vectors over the states; occupancies and costs are computed."""

    rows: TabularRows
    is_exact = True

    @property
    def backend(self) -> TabularBackend:
        return TabularBackend(self.rows.model)

    @property
    def listed_rows(self) -> ListedRows:
        return self.rows

    @property
    def size_text(self) -> str:
        model = self.rows.model
        sense = ", costs are minus rewards" if model.sense == "max" else ""
        counts = f"{model.n_states:,} states, {model.n_pairs:,} pairs{sense}"
        return f"{counts}, discount {model.discount:g}"

    def program(self, reference: FloatArray | None = None) -> Solvable:
        if self._program is None and not self.regularisation and StateProgram.fits(self.rows):
            self._program = StateProgram(self.rows)
        return super().program(reference)

    def occupancy(self, policy: Policy) -> Occupancy:
        with limited(self.jobs):
            return exact_occupancy(self.rows.model, policy)

    def occupied(self, occupancy: Occupancy) -> Point:
        assert occupancy.weights is not None
        return self.point_of(occupancy.weights)

    def point_of(self, vector: FloatArray, standard_error: FloatArray | None = None) -> Point:
        return Point(self.rows.moments(vector), vector)

    def named_point(self, weights: Any, name: str) -> Point:
        model = self.rows.model
        if isinstance(weights, str):
            checks.one_of(weights, name, ("initial", "uniform"))
            even = np.full(model.n_states, 1.0 / model.n_states)
            return self.point_of(model.initial if weights == "initial" else even)
        given = checks.distribution(weights, name, model.n_states, model.state_name, ArgumentError)
        return self.point_of(given)

    def greedy(self, coef: FloatArray, dual: Support | None = None) -> Greedy:
        return Greedy.from_values(self.rows, coef, dual)

    def cost(self, policy: Policy) -> Estimate:
        with limited(self.jobs):
            return Estimate(self.backend.exact_cost(policy))

    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
        assert occupancy.weights is not None
        if isinstance(policy, DualSoftmax):
            dual = policy.extended_dual(self.rows.model)
        return float(occupancy.weights[np.unique(dual.states)].sum())

    def over_pairs(self, dual: Support) -> FloatArray:
        return dual.over_pairs(self.rows.model)

    def proven(self, coef: FloatArray, point: Point) -> Repaired:
        return repaired(self.rows, coef, point.moments, point.weights)

    def lower_bound(self, pieces: Sequence[tuple[FloatArray, Point]]) -> float:
        return largest_value(self.rows, [self.proven(coef, point) for coef, point in pieces])


class TabularBackend(Backend[TabularModel]):
    """Listed states: exact values and occupancies."""

    lists_states = True
    noun = "a tabular model"
    usual_basis = "poly:3"

    def __init__(self, model: TabularModel) -> None:
        super().__init__(model)
        self.maximises = model.sense == "max"

    @property
    def variables(self) -> tuple[str, ...]:
        if self.model.state_vectors is None:
            return ("state",)
        return tuple(variable_names(self.model.states.shape[1]))

    @property
    def state_names(self) -> tuple[str, ...] | None:
        return self.model.state_labels if self.model.state_vectors is None else None

    def setup(self, basis: Basis, rows: Any, settings: RunSettings) -> TabularSetup:
        if rows is not None and not isinstance(rows, AllRows):
            raise ArgumentError(f"rows is {rows!r}, expected AllRows() for a tabular model")
        bound = (rows or AllRows()).on(self.model, basis)
        return TabularSetup(bound, settings)

    def some_rows(self, basis: Basis, states: FloatArray) -> TabularRows:
        return TabularRows(self.model, basis)

    def episodes(self, policy: Policy) -> TabularRollout:
        return TabularRollout.of(self.model, policy)

    def estimated_occupancy(
        self, policy: Policy, basis: Basis, simulation: Simulation, seed: int, jobs: int | None
    ) -> Occupancy:
        raise ArgumentError("the occupancy of a tabular model is computed, not estimated")

    def tail(self, policy: Policy, horizon: int) -> tuple[float | None, str]:
        """Return |discount^horizon E[value of the state reached]|."""
        model = self.model
        chain, cost = policy_chain(model, policy)
        values: Any = chain.values(cost)
        for _ in range(horizon):
            values = model.discount * (chain.transition @ values)
        return abs(float(model.initial @ values)), ""

    def exact_cost(self, policy: Policy) -> float:
        return float(self.model.initial @ exact.policy_value(self.model, policy))

    def actions_matter(self) -> bool:
        """Return whether some action is better than a random one in a state that is reached."""
        model = self.model
        values = exact.policy_value(model, Uniform())
        ahead = model.cost + model.discount * (model.transition @ values)
        better = ahead < values[model.pair_state] - tolerances.SAME_COST * np.abs(values).max()
        reached = exact_occupancy(model, Uniform()).weights
        assert reached is not None
        return bool((better & (reached[model.pair_state] > 0.0)).any())

    def remedy(self) -> str:
        return (
            "try another basis, other weights (another method, or another target of DIA), or let "
            "Auto() choose"
        )

    def visited(
        self, basis: Basis, coef: FloatArray, point: Point, policy: Policy, seed: int
    ) -> Visited:
        model = self.model
        rows = TabularRows(model, basis)
        # Repaired where rows are violated, because the values are shown as lower bounds.
        value = repaired_values(rows, repaired(rows, coef, point.moments, point.weights))
        occupancy = exact_occupancy(model, policy).weights
        assert occupancy is not None
        return Visited(
            backend=self,
            states=model.states,
            share=occupancy,
            value=value,
            residual=np.minimum.reduceat(exact.residuals(model, value), model.pair_start[:-1]),
            cost_to_go=exact.policy_value(model, policy),
            policy=policy,
            values_at=values_by(rows.basis, coef),
        )

    def actions_at(self, policy: Policy, states: Any) -> Any:
        # Greedy policies are tables here; a state is its place in the list.
        return policy.actions(np.ravel(states).astype(np.int64))

    def one_point(self, state: Any) -> FloatArray:
        return np.asarray(self.model.states[[self.model.check_state(one_index(state))]])

    def state_text(self, state: Any, place: int) -> str:
        labels = self.model.state_labels
        return labels[place] if labels else super().state_text(state, place)

    def state_label(self, state: Any) -> str | None:
        names = self.model.state_labels
        return None if names is None else names[state]


@acts_on(TabularModel)
class TabularActor(Actor):
    """Acts by a table of probabilities over all pairs."""

    def __init__(self, policy: Policy, model: TabularModel) -> None:
        self.policy = policy
        self.model = model
        self.chances = checked_probabilities(model, policy)

    @staticmethod
    def bound(policy: AnyPolicy, model: TabularModel) -> AnyPolicy:
        return policy.tabulated(model)

    def one(self, state: Any, rng: np.random.Generator | None) -> int:
        model = self.model
        index = model.check_state(one_index(state))
        chances = self.chances[model.pair_start[index] : model.pair_start[index + 1]]
        best = int(np.argmax(chances))
        if chances[best] < 1.0 - tolerances.PROBABILITY:
            if rng is None:
                raise needs_generator(self.policy, f" in {model.state_name(index)}")
            sums = np.cumsum(chances)
            best = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        return int(model.admissible_actions(index)[best])

    def several(self, states: Any, rng: np.random.Generator | None) -> IntArray:
        return np.array([self.one(state, rng) for state in several_indices(states)], dtype=np.int64)
