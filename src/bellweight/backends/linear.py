"""Linear models: vectors in a box, rows found by pricing, actions found by optimisation."""

from __future__ import annotations

from dataclasses import dataclass
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
from bellweight.backends.setup import Outside, Point, RunSettings
from bellweight.backends.simulated import SimulatedSetup
from bellweight.basis import Basis
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, PolicyError
from bellweight.common.streams import Keys, stream_keys
from bellweight.models import LinearModel
from bellweight.policies import Policy, Uniform
from bellweight.policies.actor import Actor, acts_on, needs_generator
from bellweight.policies.linear_actions import GreedyChooser
from bellweight.policies.states import one_state, several_states
from bellweight.program import LinearRows, PricedRows
from bellweight.simulation import (
    LinearRollout,
    Occupancy,
    Simulation,
    Task,
    default_horizon,
    estimated_occupancy,
    run_blocks,
)

SOLVED_STEPS = 25_000
"""Steps to judge by where a solver finds actions: this over the squared number of variables."""

_FEWEST_SOLVED, _MOST_SOLVED = 200, 4_000
_EPISODES = 200  # from which visited states are drawn


class LinearSetup(SimulatedSetup):
    """Rows found by pricing."""

    rows: LinearRows

    @property
    def backend(self) -> LinearBackend:
        return LinearBackend(self.rows.model)

    @property
    def size_text(self) -> str:
        model = self.rows.model
        counts = f"{model.dimension} state and {model.n_action_variables} action variables"
        return f"{counts}, discount {model.discount:g}"

    @property
    def n_columns(self) -> int:
        return self.rows.n_pairs

    def initial_point(self) -> Point:
        return Point(np.append(1.0, self.rows.model.initial_mean))

    def is_constant(self, coef: FloatArray) -> bool:
        return self.rows.is_constant(coef)

    def episode_costs(
        self, policy: Policy, episodes: int, horizon: int, seed: int
    ) -> tuple[FloatArray, Outside | None]:
        rollout = _WatchedRollout(self.backend.episodes(policy), self.rows.box)
        task = Task(rollout.block, horizon, stream_keys(seed))
        blocks = run_blocks(task, 0, episodes, self.jobs)
        seen = BoxWatch(self.rows.box)
        for _, watch in blocks:
            seen.join(watch)
        costs = np.concatenate([block[0] for block in blocks])
        return costs, seen.outside(self.rows.model.state_names)


class BoxWatch:
    """Counts the visited states that lie outside a box, and how far out they are."""

    def __init__(self, box: tuple[FloatArray, FloatArray]) -> None:
        self.low, self.high = box
        self.visits = self.left = 0
        self.least, self.most = np.array(self.low), np.array(self.high)

    def see(self, states: FloatArray) -> None:
        """Look at states (n, d)."""
        beyond = (states < self.low) | (states > self.high)
        self.visits += len(states)
        self.left += int(beyond.any(axis=1).sum())
        self.least = np.minimum(self.least, states.min(axis=0))
        self.most = np.maximum(self.most, states.max(axis=0))

    def join(self, other: BoxWatch) -> None:
        """Add what another watch of the same box has seen."""
        self.visits += other.visits
        self.left += other.left
        self.least = np.minimum(self.least, other.least)
        self.most = np.maximum(self.most, other.most)

    def outside(self, names: tuple[str, ...]) -> Outside | None:
        """Return how far states left the box, None where none did; `names` are the variables'."""
        if self.left == 0:
            return None
        below, above = self.low - self.least, self.most - self.high
        k = int(np.argmax(np.maximum(below, above)))
        reached = self.most[k] if above[k] >= below[k] else self.least[k]
        numbers = (float(reached), float(self.low[k]), float(self.high[k]))
        return Outside(self.left / self.visits, names[k], *numbers)


@dataclass(frozen=True, eq=False)
class _WatchedRollout:
    """A linear model's rollout that also tells which visited states are outside the box."""

    rollout: LinearRollout
    box: tuple[FloatArray, FloatArray]

    def block(self, first: int, last: int, horizon: int, keys: Keys) -> tuple[FloatArray, BoxWatch]:
        watch = BoxWatch(self.box)
        return self.rollout.watched(first, last, horizon, keys, watch.see), watch


class LinearBackend(Backend[LinearModel]):
    """Episodes that take each step together; actions are vectors."""

    lists_rows = False
    acts_by_vectors = True
    noun = "a linear model"
    usual_basis = "affine"

    @property
    def variables(self) -> tuple[str, ...]:
        return self.model.state_names

    @property
    def action_names(self) -> tuple[str, ...]:
        return self.model.action_names

    def setup(self, basis: Basis, rows: Any, settings: RunSettings) -> LinearSetup:
        if rows is not None and not isinstance(rows, PricedRows):
            raise ArgumentError(f"rows is {rows!r}, expected PricedRows() for a linear model")
        settings.refuse_regularisation(
            "for a linear model",
            "it needs all rows, and pricing finds them one by one; to_tabular() lists them where "
            "they are few",
        )
        return LinearSetup((rows or PricedRows()).on(self.model, basis), settings)

    def some_rows(self, basis: Basis, states: FloatArray) -> LinearRows:
        return PricedRows().on(self.model, basis)

    def episodes(self, policy: Policy) -> LinearRollout:
        return LinearRollout(self.model, policy.chooser(self.model))

    def estimated_occupancy(
        self, policy: Policy, basis: Basis, simulation: Simulation, seed: int, jobs: int | None
    ) -> Occupancy:
        chooser = policy.chooser(self.model)
        rollout = LinearRollout(self.model, chooser)
        return estimated_occupancy(
            rollout, self.model.discount, simulation, knows_dual=chooser.knows_dual, seed=seed,
            jobs=jobs,
        )  # fmt: skip

    def tail(self, policy: Policy, horizon: int) -> tuple[float | None, str]:
        model = self.model
        if model.first_cost is None or model.cost_growth is None:
            return None, "the model declares no first_cost and cost_growth"
        return growing_tail(model.discount, model.first_cost, model.cost_growth, horizon), ""

    def judging_steps(self, policy: Policy) -> int:
        chooser = policy.chooser(self.model)
        if not isinstance(chooser, GreedyChooser) or chooser.kernel() is not None:
            return COMPILED_STEPS
        wanted = SOLVED_STEPS // self.model.n_action_variables**2
        return min(max(wanted, _FEWEST_SOLVED), _MOST_SOLVED)

    def why_not_random(self) -> str:
        try:
            Uniform().chooser(self.model).worker()
        except PolicyError as problem:
            return str(problem)
        return ""

    def remedy(self) -> str:
        return (
            "try other weights (another method, or another target of DIA), bounds on the "
            "coefficients such as Affine(lower=0.0), or Auto(); "
            "bellweight.evaluation.compare_ties(model, result.policy) tells whether ties decide it"
        )

    def visited(
        self, basis: Basis, coef: FloatArray, point: Point, policy: Policy, seed: int
    ) -> Visited:
        model = self.model
        horizon = default_horizon(model.discount)
        paths = self.episodes(policy).states(0, _EPISODES, horizon, stream_keys(seed, VIEWING))
        rng = np.random.default_rng([seed, VIEWING])
        chance = model.discount ** np.arange(horizon)
        steps = rng.choice(horizon, size=DRAWN_STATES, p=chance / chance.sum())
        states, share = counted(paths[steps, rng.integers(_EPISODES, size=DRAWN_STATES)])
        values = values_by(basis, coef)
        actions = self.actions_at(policy, states)
        following = values(model.expected_next(states, actions))
        value = values(states)
        return Visited(
            backend=self,
            states=states,
            share=share,
            value=value,
            residual=model.cost(states, actions) + model.discount * following - value,
            cost_to_go=None,
            policy=policy,
            values_at=values,
        )

    def actions_at(self, policy: Policy, states: Any) -> Any:
        choose = policy.chooser(self.model).worker()
        return choose(np.ascontiguousarray(states), np.zeros(len(states), np.uint64), 0)[0]

    def state_text(self, state: Any, place: int) -> str:
        return self.model.state_text(state)

    def state_label(self, state: Any) -> str | None:
        return _variables(self.model.state_names, state)

    def action_text(self, action: Any) -> str:
        return _variables(self.model.action_names, action)


@acts_on(LinearModel)
class LinearActor(Actor):
    """Acts by vectors, which a kernel or the general solver finds."""

    def __init__(self, policy: Policy, model: LinearModel) -> None:
        self.policy = policy
        self.model = model
        self.chooser = policy.chooser(model)
        self.choose = self.chooser.worker()

    def one(self, state: Any, rng: np.random.Generator | None) -> Any:
        return self._chosen(one_state(state, self.model.dimension), rng)[0]

    def several(self, states: Any, rng: np.random.Generator | None) -> Any:
        return self._chosen(several_states(states, self.model.dimension), rng)

    def _chosen(self, states: Any, rng: np.random.Generator | None) -> Any:
        model, n = self.model, len(states)
        if n == 0:
            return np.zeros((0, model.n_action_variables))
        vectors = model.check_states(states, "state")
        if self.chooser.is_random and rng is None:
            raise needs_generator(self.policy)
        keys = np.zeros(n, np.uint64) if rng is None else rng.integers(1 << 63, size=n, dtype="u8")
        # A copy: the worker may use its buffer again.
        chosen = self.choose(vectors, keys, 0)[0]
        return np.array(chosen, dtype=np.int64 if model.integer_actions.all() else np.float64)


def _variables(names: tuple[str, ...], values: Any) -> str:
    """Return the non-zero variables with their values."""
    numbers = np.asarray(values).tolist()
    parts = [f"{name} = {value:g}" for name, value in zip(names, numbers, strict=True) if value]
    return ", ".join(parts) or "all zero"
