"""What backends of models without listed states share: weights are known by their moments.

Models given by functions (event, step and factored models) share nearly everything: compiled
episodes, and rows at sampled states or, where their parts are local, of all states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

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
from bellweight.backends.estimate import Estimate
from bellweight.backends.setup import Point, RunSettings, Setup
from bellweight.basis import Basis
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError, BasisError, ModelError
from bellweight.common.streams import stream_keys
from bellweight.models.function_model import FunctionModel
from bellweight.models.local import LocalStructure
from bellweight.policies import Policy, Support, Uniform
from bellweight.policies.actor import Actor, acts_on, needs_generator
from bellweight.policies.states import one_state, several_states
from bellweight.program import (
    DrawnRows,
    EliminatedRows,
    EventRows,
    LocalRows,
    Repaired,
    SampledRows,
    StreamedRows,
    repaired_locally,
)
from bellweight.simulation import (
    EventRollout,
    Occupancy,
    Simulation,
    distinct_states,
    episode_costs,
    estimated_occupancy,
    mean_and_half_width,
)

AnyFunctionModel = TypeVar("AnyFunctionModel", bound=FunctionModel)

PLAIN_STEPS = 5_000
"""Steps to judge a policy by, where a model runs as plain Python."""

USUAL_STATES = 2_000
"""Sampled states, where the user does not say which."""

_WHICH_ROWS = (
    "pass rows=SampledRows(sample_states(model, 5000)), rows=LocalRows() where the model declares "
    "its scopes and the basis has functions of few coordinates, or enumerate it with to_tabular()"
)


class SimulatedSetup(Setup):
    """Occupancies by simulation, always on the same random streams."""

    @abstractmethod
    def initial_point(self) -> Point:
        """Return the moments of the initial distribution."""

    def occupancy(self, policy: Policy) -> Occupancy:
        return self.backend.estimated_occupancy(
            policy, self.basis, self.simulation, self.seed, self.jobs
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
        return self.initial_point()

    def cost(self, policy: Policy) -> Estimate:
        horizon = self.simulation.steps(self.model.discount)
        rollout = self.backend.episodes(policy)
        costs = episode_costs(rollout, 0, self.simulation.episodes, horizon, self.seed, self.jobs)
        return Estimate(*mean_and_half_width(costs))

    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
        return occupancy.dual_share


class FunctionSetup(SimulatedSetup):
    """A model given by functions."""

    def __init__(self, rows: Any, settings: RunSettings | None, backend: Backend[Any]) -> None:
        super().__init__(rows, settings)
        self._backend = backend

    @property
    def backend(self) -> Backend[Any]:
        return self._backend

    @property
    def size_text(self) -> str:
        n = self.rows.model.dimension
        dimensions = "1 dimension" if n == 1 else f"{n} dimensions"
        return f"{dimensions}, {self._rows_text}, discount {self.rows.model.discount:g}"

    @property
    @abstractmethod
    def _rows_text(self) -> str:
        """The rows in words."""

    def initial_point(self) -> Point:
        model = self.rows.model
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
            words = self.basis.words(self.rows.model.dimension)
        except BasisError:
            return None
        return self.rows.model.initial_moments(words)


class SampledSetup(FunctionSetup):
    """Rows at sampled states."""

    rows: EventRows

    @property
    def listed_rows(self) -> EventRows:
        return self.rows

    @property
    def sampled_states(self) -> Any:
        return self.rows.states

    @property
    def _rows_text(self) -> str:
        rows = self.rows
        usual = f" (by default, at {len(rows.states):,} states {rows.origin})"
        return f"{rows.n_pairs:,} sampled rows{usual if rows.origin else ''}"


class StreamedSetup(FunctionSetup):
    """Rows of states that are drawn anew in every pass: they are not listed."""

    rows: StreamedRows

    @property
    def _rows_text(self) -> str:
        return f"{self.rows.n_pairs:,} rows drawn anew in every pass"


class LocalSetup(FunctionSetup):
    """Rows of all states, found by elimination, so that bounds are proven."""

    rows: EliminatedRows

    @property
    def _rows_text(self) -> str:
        return f"all states, by elimination over up to {self.rows.width} variables"

    @property
    def n_columns(self) -> int:
        return self.rows.n_pairs

    def proof(self) -> tuple[str, str]:
        return "exact", "elimination has searched the rows of all states, rounding included"

    def initial_point(self) -> Point:
        exactly = self.rows.initial_moments
        return super().initial_point() if exactly is None else Point(exactly[0])

    def proven(self, coef: FloatArray, point: Point) -> Repaired | None:
        return repaired_locally(self.rows, coef)

    def lower_bound(self, pieces: Sequence[tuple[FloatArray, Point]]) -> float | None:
        found = [self.proven(coef, point) for coef, point in pieces]
        values = [bound.value for bound in found if bound is not None]
        return max(values) if values else None


class FunctionBackend(Backend[AnyFunctionModel]):
    """Compiled episodes; rows come from sampled states, or from all where parts are local."""

    samples_states = True
    sampled_setup: type[SampledSetup] = SampledSetup

    @property
    def structure(self) -> LocalStructure | None:
        return self.model.structure

    def setup(self, basis: Basis, rows: Any, settings: RunSettings) -> FunctionSetup:
        if rows is None:
            rows = self._usual_rows(basis, settings.seed)
        if isinstance(rows, LocalRows):
            settings.refuse_regularisation(
                "with LocalRows()",
                "it needs all rows, and elimination finds them one by one; use SampledRows(states)",
            )
            return LocalSetup(rows.on(self.model, basis), settings, self)
        if isinstance(rows, DrawnRows):
            settings.refuse_regularisation(
                "with DrawnRows", "it needs numbers for every row; use SampledRows(states)"
            )
            return StreamedSetup(rows.on(self.model, basis), settings, self)
        if not isinstance(rows, SampledRows):
            raise ArgumentError(f"the states of {self.noun} cannot be enumerated: {_WHICH_ROWS}")
        return self.sampled_setup(rows.on(self.model, basis), settings, self)

    def _usual_states(self, seed: int) -> SampledRows:
        """Return rows at states that acting at random leads to."""
        states = distinct_states(self.model, USUAL_STATES, Uniform(), seed=seed)[0]
        return SampledRows(states, "where acting at random leads")

    def _usual_rows(self, basis: Basis, seed: int) -> LocalRows | SampledRows:
        """Return the rows of all states where elimination finds them, otherwise sampled ones."""
        if self.structure is None:
            return self._usual_states(seed)
        try:
            LocalRows().on(self.model, basis)
        except (BasisError, ModelError):
            return self._usual_states(seed)
        return LocalRows()

    def some_rows(self, basis: Basis, states: FloatArray) -> EventRows:
        return EventRows(self.model, basis, self.model.check_states(states))

    def searched(self, basis: Basis, coef: FloatArray, seed: int) -> dict[str, float]:
        place, states = self.model.far_states()
        return {place: self.some_rows(basis, states).separate(coef, 0.0).violation}

    def episodes(self, policy: Policy) -> EventRollout:
        return EventRollout.of(self.model, policy.compiled(self.model))

    def estimated_occupancy(
        self, policy: Policy, basis: Basis, simulation: Simulation, seed: int, jobs: int | None
    ) -> Occupancy:
        form = policy.compiled(self.model)
        rollout = EventRollout.of(self.model, form, basis)
        return estimated_occupancy(
            rollout, self.model.discount, simulation, knows_dual=form.knows_dual, seed=seed,
            jobs=jobs,
        )  # fmt: skip

    def tail(self, policy: Policy, horizon: int) -> tuple[float | None, str]:
        model = self.model
        if model.cost_growth is None:
            return None, "the model declares no cost_growth"
        mean, width = mean_and_half_width(model.first_costs)
        reason = "with 95 % confidence, as the first costs are estimated" if width > 0.0 else ""
        level = mean + 2.0 * width
        return growing_tail(model.discount, level, model.cost_growth, horizon), reason

    @property
    def is_slow(self) -> bool:
        return not self.model.compiled

    def judging_steps(self, policy: Policy) -> int:
        return PLAIN_STEPS if self.is_slow else COMPILED_STEPS

    def remedy(self) -> str:
        return (
            "try another basis, other weights (another method, or another target of DIA), more "
            "constraint states, or let Auto() choose"
        )

    def visited(
        self, basis: Basis, coef: FloatArray, point: Point, policy: Policy, seed: int
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
        return policy.actions(states, np.random.default_rng(0))

    def side(self, axis: int) -> tuple[float, float, bool]:
        return self.model.side(axis)


@acts_on(FunctionModel)
class FunctionActor(Actor):
    """Acts by the compiled loops."""

    def __init__(self, policy: Policy, model: FunctionModel) -> None:
        self.policy = policy
        self.model = model
        self.compiled = policy.compiled(model)

    def one(self, state: Any, rng: np.random.Generator | None) -> int:
        given = one_state(state, self.model.dimension)
        vector = given[0]
        if not self.model.is_state(vector) or (rng is None and self.compiled.draws_in(vector)):
            return int(self._chosen(given, rng)[0])  # raises the error that explains it
        return self._act(vector, 0.0 if rng is None else rng.random())

    @cached_property
    def _act(self) -> Callable[[Any, float], int]:
        return self.compiled.loops.acting(self.compiled.acting)

    def several(self, states: Any, rng: np.random.Generator | None) -> IntArray:
        return self._chosen(several_states(states, self.model.dimension), rng)

    def _chosen(self, states: Any, rng: np.random.Generator | None) -> IntArray:
        if len(states) == 0:
            return np.zeros(0, dtype=np.int64)
        vectors = self.model.check_states(states, "state")
        if rng is None:
            drawn = next((x for x in vectors if self.compiled.draws_in(x)), None)
            if drawn is not None:
                raise needs_generator(self.policy, f" in state {drawn.tolist()}")
        u = np.zeros(len(vectors)) if rng is None else rng.random(len(vectors))
        return self.compiled.loops.act(vectors, u, self.compiled.acting)
