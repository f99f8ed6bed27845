"""Small event models to test with, and their transition laws written out naively.

Compiling a model takes seconds, so the compiled ones are few and made once. Random models run as
plain Python (`compiled=False`): the text of the loops is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bellweight as bw
from bellweight.problems.queue_network import QueueNetwork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NETWORK = QueueNetwork(
    arrivals=(0.12, 0.0, 0.1, 0.0),
    services=(0.35, 0.3, 0.4, 0.25),
    routes=(1, None, 3, None),
    groups=((0, 3), (1, 2)),
)
"""Two routes of two queues, two servers that each work on one queue of either route."""

NETWORK_CAP = 4


@cache
def network() -> bw.EventModel:
    """The network with at most four jobs per queue, given as data: 625 states, 4 actions."""
    return NETWORK.model(discount=0.9, decay=0.6, upper=NETWORK_CAP)


@cache
def network_as_functions() -> bw.EventModel:
    """The same network written as functions that take everything they could depend on."""
    return functions_of(network(), cost_growth=None)


@cache
def line() -> bw.EventModel:
    """Two queues in a row, unbounded, one server: written as functions, with costs per action."""

    def cost(state: Any, action: Any) -> float:
        return state[0] + 2.0 * state[1] + 0.5 * (action == 2)

    def probability(action: Any, event: Any) -> float:
        if event == 0:
            return 0.2
        return 0.45 if event == action else 0.0

    def move(state: Any, event: Any) -> None:
        if event == 0:
            state[0] += 1
        elif event == 1:
            state[0] -= 1
            state[1] += 1
        else:
            state[1] -= 1

    def admissible(state: Any, action: Any) -> bool:
        return action == 0 or state[action - 1] > 0

    return bw.EventModel(
        dimension=2, actions=["rest", "first", "second"], events=["arrival", "first", "second"],
        cost=cost, probability=probability, move=move, admissible=admissible, discount=0.95,
        initial=bw.models.Geometric(0.7), cost_growth=0.65, name="line",
    )  # fmt: skip


def line_truth(cap: int) -> Truth:
    """The line written out up to a bound; rows of states below the bound are those of the line."""
    steps = np.array([[1, 0], [-1, 1], [0, -1]])
    return truth(
        (cap, cap), 3, 3,
        lambda state, action: float(state[0] + 2.0 * state[1] + 0.5 * (action == 2)),
        lambda state, action, event: 0.2 if event == 0 else 0.45 * (event == action),
        lambda state, action, event: state + steps[event],
        lambda state, action: bool(action == 0 or state[action - 1] > 0),
    )  # fmt: skip


def functions_of(model: bw.EventModel, **options: Any) -> bw.EventModel:
    """Return a model given as data in the form of functions that hide that they are data."""
    table, jumps = np.array(model.probability), np.array(model.move)
    dimension = model.dimension

    def cost(state: Any, action: Any) -> float:
        total = 0.0 * action
        for i in range(dimension):
            total += state[i]
        return total

    def probability(state: Any, action: Any, event: Any) -> float:
        return table[action, event] + 0.0 * state[0]

    def move(state: Any, action: Any, event: Any) -> None:
        if action < 0:
            return
        for i in range(dimension):
            if state[i] + jumps[event, i] < 0:
                return
        for i in range(dimension):
            state[i] += jumps[event, i]

    given = {
        "dimension": dimension, "actions": model.actions, "events": model.events, "cost": cost,
        "probability": probability, "move": move, "discount": model.discount,
        "initial": model.initial, "upper": model.upper.tolist(), "name": "as functions",
    }  # fmt: skip
    return bw.EventModel(**{**given, **options})


@dataclass(frozen=True)
class Truth:
    """A model written out: states (S, d), admissible (S, A), cost (S, A), transition (S, A, S)."""

    states: IntArray
    admissible: NDArray[np.bool_]
    cost: FloatArray
    transition: FloatArray

    def qualities(self, values: FloatArray, discount: float) -> FloatArray:
        """Cost plus discounted next value (S, A), infinite where inadmissible."""
        quality = self.cost + discount * self.transition @ values
        return np.where(self.admissible, quality, np.inf)

    def greedy(
        self, values: FloatArray, discount: float, mass: FloatArray | None = None
    ) -> list[int]:
        """The greedy actions: ties to the larger mass (S, A), then to the lowest action."""
        chosen = []
        scale = 1e-11 * (1.0 + np.abs(values).max() + np.abs(self.cost).max())
        for x, quality in enumerate(self.qualities(values, discount)):
            tied = np.flatnonzero(quality <= quality.min() + scale)
            held = np.zeros(len(tied)) if mass is None else mass[x, tied]
            chosen.append(int(tied[np.flatnonzero(held >= held.max() * (1.0 - 1e-8))[0]]))
        return chosen


def truth(
    upper: tuple[int, ...],
    n_actions: int,
    n_events: int,
    cost: Callable[[IntArray, int], float],
    probability: Callable[[IntArray, int, int], float],
    after: Callable[[IntArray, int, int], Any],
    admissible: Callable[[IntArray, int], bool] = lambda state, action: True,
) -> Truth:
    """Enumerate a model from functions; `after` gives the state an event leads to."""
    states = np.array(list(product(*(range(bound + 1) for bound in upper))), dtype=np.int64)
    number = {tuple(state): x for x, state in enumerate(states.tolist())}
    shape = (len(states), n_actions)
    allowed, costs = np.zeros(shape, dtype=bool), np.zeros(shape)
    transition = np.zeros((*shape, len(states)))
    for x, action in product(range(len(states)), range(n_actions)):
        allowed[x, action] = admissible(states[x], action)
        if not allowed[x, action]:
            continue
        costs[x, action] = cost(states[x], action)
        transition[x, action, x] = 1.0
        for event in range(n_events):
            chance = probability(states[x], action, event)
            if chance > 0.0:
                reached = number.get(tuple(int(i) for i in after(states[x], action, event)), x)
                transition[x, action, x] -= chance
                transition[x, action, reached] += chance
    return Truth(states, allowed, costs, transition)


def truth_of_jumps(model: bw.EventModel, weights: FloatArray) -> Truth:
    """Enumerate a model given as data whose cost is weights' state."""
    table, jumps = np.array(model.probability), np.array(model.move)

    def after(state: IntArray, action: int, event: int) -> Any:
        landed = state + jumps[event]
        return landed if (landed >= 0).all() else state

    return truth(
        tuple(int(bound) for bound in model.upper),
        model.n_actions,
        model.n_events,
        lambda state, action: float(weights @ state),
        lambda state, action, event: float(table[action, event]),
        after,
    )


@cache
def network_truth() -> Truth:
    """The network written out."""
    return truth_of_jumps(network(), np.ones(4))


def random_grid(seed: int, **options: Any) -> tuple[bw.EventModel, Truth]:
    """A model without structure on a small grid: every event leads anywhere, or out of bounds."""
    rng = np.random.default_rng(seed)
    upper = tuple(int(n) for n in rng.integers(1, 4, size=2))
    width, n = upper[1] + 1, (upper[0] + 1) * (upper[1] + 1)
    n_actions, n_events = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    costs = rng.integers(-3, 9, size=(n, n_actions)) / 2.0
    # Eighths: sums and products of small dyadic numbers are exact, so that ties are exact too.
    chances = rng.multinomial(8, np.ones(n_events + 1) / (n_events + 1), size=(n, n_actions)) / 8.0
    targets = rng.integers(0, 5, size=(n, n_actions, n_events, 2))
    # In some states the last action does what the first one does: a tie.
    twins = rng.random(n) < 0.4
    for numbers in (costs, chances, targets):
        numbers[twins, -1] = numbers[twins, 0]
    open_to = rng.random((n, n_actions)) < 0.7
    open_to[np.arange(n), rng.integers(n_actions, size=n)] = True

    def cost(state: Any, action: Any) -> float:
        return costs[state[0] * width + state[1], action]

    def probability(state: Any, action: Any, event: Any) -> float:
        return chances[state[0] * width + state[1], action, event]

    def move(state: Any, action: Any, event: Any) -> None:
        place = state[0] * width + state[1]
        state[0] = targets[place, action, event, 0]
        state[1] = targets[place, action, event, 1]

    def admissible(state: Any, action: Any) -> bool:
        return open_to[state[0] * width + state[1], action]

    given = {
        "dimension": 2, "actions": n_actions, "events": n_events, "cost": cost,
        "probability": probability, "move": move, "admissible": admissible, "discount": 0.875,
        "upper": upper, "initial": bw.models.Geometric(0.5), "compiled": False,
    }  # fmt: skip
    model = bw.EventModel(**{**given, **options})
    written_out = truth(
        upper,
        n_actions,
        n_events,
        cost,
        probability,
        lambda state, action, event: targets[state[0] * width + state[1], action, event],
        admissible,
    )
    return model, written_out


def random_jumps(seed: int) -> tuple[bw.EventModel, Truth]:
    """A model given as data, with jumps of several coordinates, some of them out of bounds."""
    rng = np.random.default_rng(seed)
    dimension = int(rng.integers(1, 4))
    upper = [int(bound) for bound in rng.integers(1, 4, size=dimension)]
    if seed % 2:
        # All combinations of two independent choices, each with a pair of events of its own.
        first, second = (rng.multinomial(8, [0.3, 0.3, 0.4], size=3) / 16.0 for _ in range(2))
        table = np.array([[*a[:2], *b[:2]] for a in first for b in second[:2]])
    else:
        n_actions, n_events = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        table = rng.multinomial(8, np.ones(n_events + 1) / (n_events + 1), size=n_actions) / 8.0
        table = table[:, :n_events]
    n_actions, n_events = table.shape
    jumps = rng.integers(-2, 3, size=(n_events, dimension))
    weights = rng.integers(0, 5, size=dimension).astype(float)

    def cost(state: Any) -> float:
        total = 0.0
        for i in range(dimension):
            total += weights[i] * state[i]
        return total

    model = bw.EventModel(
        dimension=dimension, actions=n_actions, events=n_events, cost=cost, probability=table,
        move=jumps, discount=0.875, upper=upper, initial=bw.models.Geometric(0.5), compiled=False,
    )  # fmt: skip
    return model, truth_of_jumps(model, weights)


def random_support(
    rng: np.random.Generator, written_out: Truth, n_states: int
) -> bw.policies.Support:
    """A dual on admissible pairs of some states, with equal masses here and there."""
    chosen = rng.choice(len(written_out.states), size=n_states, replace=False)
    states, actions = [], []
    for x in chosen:
        for action in np.flatnonzero(written_out.admissible[x]):
            if rng.random() < 0.8:
                states.append(written_out.states[x])
                actions.append(int(action))
    values = rng.integers(1, 4, size=len(states)) / 4.0
    return bw.policies.Support(np.array(states), np.array(actions), values)


def mass_of(support: bw.policies.Support, written_out: Truth) -> FloatArray:
    """The dual as a matrix (S, A)."""
    mass = np.zeros(written_out.admissible.shape)
    for state, action, value in zip(support.states, support.actions, support.values, strict=True):
        x = int(np.flatnonzero((written_out.states == state).all(axis=1))[0])
        mass[x, action] += value
    return mass
