"""Event models: vectors of whole numbers, rows at sampled states, everything else simulated."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.backends.backend import (
    COMPILED_STEPS,
    DRAWN_STATES,
    VIEWING,
    Backend,
    Visited,
    counted,
    growing_tail,
    values_by,
)
from bellweight.backends.setup import Point
from bellweight.backends.simulated import SimulatedSetup
from bellweight.basis import Basis
from bellweight.basis.core import variable_names
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, BasisError
from bellweight.common.streams import stream_keys
from bellweight.models import EventModel
from bellweight.policies.policy import Greedy, Policy, Support
from bellweight.program.rows import BellmanRows, EventRows, SampledRows
from bellweight.simulation.episodes import EventRollout, mean_and_half_width
from bellweight.simulation.occupancy import Occupancy, Simulation, estimated_occupancy

PLAIN_STEPS = 5_000
"""Steps to judge a policy by, where a model runs as plain Python."""

_TAIL_SAMPLE = 20_000


class EventSetup(SimulatedSetup):
    """Rows at sampled states."""

    rows: EventRows

    @property
    def model(self) -> EventModel:  # type: ignore[override]
        return self.rows.model

    @property
    def backend(self) -> EventBackend:
        return EventBackend(self.model)

    @property
    def basis(self) -> Basis:
        return self.rows.basis

    @property
    def listed_rows(self) -> BellmanRows:
        return self.rows

    @property
    def size_text(self) -> str:
        sampled = f"{self.model.dimension} dimensions, {self.rows.n_pairs:,} sampled rows"
        return f"{sampled}, discount {self.model.discount:g}"

    def greedy(self, coef: FloatArray, dual: Support | None = None) -> Greedy:
        return Greedy(basis=self.basis, coef=coef, dual=dual, model=self.model)

    def initial_point(self) -> Point:
        model = self.model
        if model.start is not None:
            return Point(np.asarray(self.basis(model.start[None, :]))[0])
        exactly = self._exact_initial_moments()
        if exactly is not None:
            return Point(exactly)
        n = self.simulation.episodes
        states = model.sample_initial(0, n, stream_keys(self.seed)[0])
        features = self.basis(states.astype(np.float64))
        return Point(
            features.mean(axis=0), standard_error=features.std(axis=0, ddof=1) / np.sqrt(n)
        )

    def _exact_initial_moments(self) -> FloatArray | None:
        try:
            words = self.basis.words(self.model.dimension)
        except BasisError:
            return None
        return self.model.initial_moments(words)


class EventBackend(Backend):
    """Compiled episodes; rows come from sampled states."""

    samples_states = True
    noun = "an event model"
    usual_basis = "poly:2"

    def __init__(self, model: EventModel) -> None:
        self._model = model

    @property
    def model(self) -> EventModel:
        return self._model

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(variable_names(self._model.dimension))

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(self._model.label(action) for action in range(self._model.n_actions))

    def setup(
        self,
        basis: Basis,
        rows: Any,
        simulation: Simulation,
        seed: int,
        jobs: int | None,
        regularisation: float,
    ) -> EventSetup:
        if not isinstance(rows, SampledRows):
            raise ArgumentError(
                "an event model's states cannot be enumerated: pass "
                "rows=SampledRows(sample_states(model, 5000)), or enumerate it with to_tabular()"
            )
        bound = rows.on(self._model, basis)
        return EventSetup(bound, simulation, seed, jobs, regularisation)

    def some_rows(self, basis: Basis, states: FloatArray) -> EventRows:
        return EventRows(self._model, basis, states.astype(np.int64))

    def episodes(self, policy: Policy) -> EventRollout:
        return EventRollout.of(self._model, policy.program(self._model))

    def estimated_occupancy(
        self, policy: Policy, basis: Basis, simulation: Simulation, seed: int, jobs: int | None
    ) -> Occupancy:
        program = policy.program(self._model)
        rollout = EventRollout.of(self._model, program, basis)
        return estimated_occupancy(
            rollout, self._model.discount, simulation, knows_dual=program.knows_dual, seed=seed,
            jobs=jobs,
        )  # fmt: skip

    def tail(self, policy: Policy, horizon: int) -> tuple[float | None, str]:
        model = self._model
        if model.cost_growth is None:
            return None, "the model declares no cost_growth"
        states = model.sample_initial(0, _TAIL_SAMPLE, stream_keys(0)[0])
        mask = model.admissible_mask(states)
        number, action = np.nonzero(mask)
        cost = np.full(mask.shape, -np.inf)
        cost[mask] = np.abs(model.expand(states[number], action)[0])
        mean, width = mean_and_half_width(cost.max(axis=1))
        reason = "with 95 % confidence: the first costs are estimated" if width > 0.0 else ""
        level = mean + 2.0 * width
        return growing_tail(model.discount, level, model.cost_growth, horizon), reason

    def judging_steps(self, policy: Policy) -> int:
        return COMPILED_STEPS if self._model.compiled else PLAIN_STEPS

    def remedy(self) -> str:
        return (
            "try another basis, other weights (another method, or another target of DIA), more "
            "constraint states, or let Auto() choose"
        )

    def visited(
        self, basis: Basis, coef: FloatArray, moments: FloatArray, policy: Policy, seed: int
    ) -> Visited:
        rollout = self.episodes(policy)
        drawn = rollout.state_block(0, DRAWN_STATES, 0, stream_keys(seed, VIEWING))
        states, share = counted(drawn)
        rows = self.some_rows(basis, states)
        slack, value = rows.slacks(coef, slice(0, len(states)))
        return Visited(
            backend=self,
            states=states,
            share=share,
            value=value,
            residual=np.minimum.reduceat(slack, rows.pair_start[:-1]),
            cost_to_go=None,
            policy=policy,
            values_at=values_by(rows.basis, coef),
        )

    def actions_at(self, policy: Policy, states: Any) -> Any:
        return policy.actions(states.astype(np.int64), np.random.default_rng(0))

    def action_text(self, action: Any) -> str:
        return self._model.label(int(action))

    def limit(self, axis: int) -> float:
        upper = self._model.upper[axis]
        return float(upper) if upper >= 0 else np.inf
