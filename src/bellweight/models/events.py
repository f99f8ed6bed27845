"""Models that cannot be enumerated: integer-vector states, finitely many actions and events.

In each step at most one event happens. The user writes small plain functions in place of a
transition matrix: what a step costs, which chance an event has, and what it does to the state.

The functions are compiled with Numba together with the loops of simulation and row generation.
Greedy simulation is several times faster when `probability` does not depend on the state, and
`move` not on the action. Both may also be given as data: `probability` as a table (actions,
events), and `move` as jumps (events, coordinates) that are added to the state. A jump that would
make a coordinate negative does not happen, and no event that would take a coordinate above its
upper bound happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common import checks, identity, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models.choices import independent_choices, sparse_lists
from bellweight.models.compile import Called, Source, Written, model_source, with_optional
from bellweight.models.coupling import shared_places
from bellweight.models.function_checks import (
    arguments_of,
    call_by_name,
    check_in_place,
    naming,
)
from bellweight.models.function_model import (
    ENDLESS,
    FunctionModel,
    action_labels,
    per_coordinate,
)
from bellweight.models.initial import Geometric, PointMass, joint_law, product_moments
from bellweight.models.kernels.layouts import EventData, uniform
from bellweight.models.local import LocalStructure
from bellweight.models.loops import Loops
from bellweight.models.parameters import Parameters
from bellweight.models.scopes import Scopes
from bellweight.models.tabular import TabularModel

_MAX_ENUMERATED = 5_000_000
_CHECKED_STATES = 256
_RAY_LENGTHS = (10, 100, 1_000)

_ARGUMENTS = {
    "cost": ("state", "action", "parameters"),
    "probability": ("state", "action", "event", "parameters"),
    "move": ("state", "action", "event", "parameters"),
    "admissible": ("state", "action", "parameters"),
    "initial": ("state", "u", "parameters"),
}
_OTHERWISE = {"admissible": "return True", "probability": "return 0.0"}


@dataclass(frozen=True, eq=False, kw_only=True)
class EventModel(FunctionModel):
    """A Markov decision process given by functions.

    A function takes any of these arguments, by name and in any order, and no others:

        cost, admissible     state, action, parameters
        probability, move    state, action, event, parameters
        initial              state, u, parameters

    `state` is an array (d,) of integers, `action` and `event` are indices, `u` an array of uniform
    numbers. `move` and `initial` write into `state` and return nothing. Other numbers and arrays
    that a function needs are taken from its module or enclosing function, as they are when the
    model is built. A `Rule` takes `state` and its own `parameters`.

    Args:
        dimension: how many coordinates a state has, d.
        actions: labels, one for each action.
        events: labels, one for each event.
        cost: of a step.
        probability: of an event: a function, or a table (actions, events).
        move: what an event does: a function, or jumps (events, d).
        discount: how much a cost one step later counts, below one.
        initial: a state, `Geometric(decay)`, or a function that fills in the state from
            `initial_draws` uniform numbers; the zero state by default.
        admissible: whether an action may be taken; all by default.
        upper: bounds the coordinates: None, or one number per coordinate, None where there is no
            bound.
        initial_draws: how many uniform numbers `initial` gets.
        parameters: numbers that will change, by name or as an array: in a function
            `parameters["rate"]` is what was given for it, and `model.with_parameters(rate=0.3)`
            compiles nothing.
        cost_growth: by how much the largest absolute cost over the actions can grow in one step at
            most, in expectation. Without it the tail of a simulated cost has no bound.
        compiled: False runs everything as plain Python, slowly.
        name: for people.
        scopes: which coordinates each part looks at, so that bounds can be proven over all states
            (`LocalRows`).

    Examples:
        >>> def cost(state, action):
        ...     return state[0] + 2.0 * action
        >>> def probability(action, event):
        ...     return (0.4, 0.2 + 0.3 * action, 0.4 - 0.3 * action)[event]
        >>> def move(state, event):
        ...     if event == 0:
        ...         state[0] += 1
        ...     elif event == 1 and state[0] > 0:
        ...         state[0] -= 1
        >>> bw.EventModel(
        ...     dimension=1, actions=["slow", "fast"], events=["arrival", "service", "nothing"],
        ...     cost=cost, probability=probability, move=move, discount=0.9, compiled=False,
        ... ).dimension
        1
    """

    dimension: int
    actions: Sequence[str]
    events: Sequence[str]
    cost: Callable[..., float]
    probability: Any
    move: Any
    discount: float
    initial: Any = None
    admissible: Callable[..., bool] | None = None
    upper: Any = None
    initial_draws: int | None = None
    parameters: Any = None
    cost_growth: float | None = None
    compiled: bool = True
    name: str = "event model"
    scopes: Scopes | None = None
    numbers: Parameters = field(init=False, repr=False)
    _given: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        self._take_common(self.dimension, self.parameters)
        put(self, "events", action_labels(self.events, "events"))
        put(self, "upper", self._checked_upper())
        if self._probability_is_table():
            put(self, "probability", self._checked_table())
        if not callable(self.move):
            put(self, "move", self._checked_jumps())
        put(self, "initial", self._checked_initial())
        _ = self.source
        self._check_compiles(self._functions(), _ARGUMENTS)
        from bellweight.models.announce import announcing, to_stderr

        with announcing(to_stderr):
            self._check_start()
        if not isinstance(self.scopes, Scopes | None):
            raise ModelError(
                f"scopes is {self.scopes!r}, expected Scopes(cost=..., chance=..., ...)"
            )
        if self.scopes is not None:
            put(self, "_structure", self.scopes.structure(self))

    @property
    def structure(self) -> LocalStructure | None:
        """The local parts that the model is made of, where `scopes` declare them."""
        return getattr(self, "_structure", None)

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.events)

    @property
    def jumps(self) -> IntArray | None:
        """The jumps (E, d), when moves are given as data."""
        return None if callable(self.move) else self.move

    def far_states(self) -> tuple[str, IntArray]:
        rays = np.vstack([n * np.eye(self.dimension, dtype=np.int64) for n in _RAY_LENGTHS])
        limit = np.where(self.upper < 0, np.iinfo(np.int64).max, self.upper)
        return "along rays", np.unique(np.minimum(rays, limit), axis=0)

    @cached_property
    def _sides(self) -> tuple[list[float], list[float], list[bool]]:
        high = np.where(self.upper < 0, ENDLESS, self.upper).tolist()
        return [0.0] * self.dimension, high, [True] * self.dimension

    @property
    def start(self) -> FloatArray | None:
        fixed = isinstance(self.initial, PointMass)
        return np.array(self.initial.state, dtype=np.float64) if fixed else None

    @cached_property
    def loops(self) -> Loops:
        """The compiled loops."""
        return Loops(
            self.source, self._data, self.discount, tuple(self.actions), self.dimension,
            self.n_events, self.initial_draws or self.dimension,
        )  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything that decides an answer: the user's functions and data."""
        sizes = (self.dimension, self.n_actions, self.n_events, self.initial_draws)
        numbers = (sizes, self.upper, self.discount, self.numbers.numbers)
        given = {role: getattr(self, role) for role in _ARGUMENTS}
        data = {role: value for role, value in given.items() if not callable(value)}
        return identity.digest((self._written.parts, data, numbers))

    @cached_property
    def _written(self) -> Written:
        """The text of the user's functions, read once."""
        called = {
            role: Called(function, _ARGUMENTS[role], _OTHERWISE.get(role, "pass"))
            for role, function in self._functions().items()
        }
        return Written().adding(called, self.numbers.layout)

    def _functions(self) -> dict[str, Any]:
        """Return the function of each role, None where the user gave data."""
        given = {role: getattr(self, role) for role in _ARGUMENTS}
        return {role: value if callable(value) else None for role, value in given.items()}

    def source_with(self, functions: Mapping[str, Called]) -> Source:
        """Return the text of the model with more functions: a policy's rule, a basis's own."""
        takes = {
            role: () if f is None else arguments_of(f, role, _ARGUMENTS[role])
            for role, f in self._functions().items()
        }
        return model_source(
            "events",
            with_optional(self._written, functions),
            {
                "DIMENSION": self.dimension,
                "N_ACTIONS": self.n_actions,
                "N_EVENTS": self.n_events,
                "N_DRAWS": self.initial_draws or self.dimension,
                "N_JUMPS": self._data.jump_at.shape[1],
                "N_CHANCES": self._data.option_event.shape[1],
                "SHARED_MOVES": "action" not in takes["move"],
                "COST_BY_ACTION": "action" in takes["cost"],
                "HAS_ADMISSIBLE": self.admissible is not None,
                "IS_TABLE": not callable(self.probability),
                "HAS_JUMPS": self.jumps is not None,
                "COMBINES": len(self._data.option_start) > 1,
                "HAS_INITIAL": callable(self.initial),
                "HAS_WRITTEN": "functions" in functions,
            },
            compiled=self.compiled,
        )

    @cached_property
    def event_places(self) -> FloatArray | None:
        """Where the chance of each event begins (E,); None where chances are a function."""
        return None if callable(self.probability) else shared_places(self.probability)

    @cached_property
    def _data(self) -> EventData:
        """The numbers that the loops work on; jumps and chances in a sparse layout."""
        is_table = not callable(self.probability)
        jumps = np.zeros((1, 1), dtype=np.int64) if self.jumps is None else self.jumps
        table = self.probability if is_table else np.zeros((1, 1))
        jump_count, jump_at, jump_by = sparse_lists(jumps)
        event_count, event, chance = sparse_lists(table)
        varying = np.flatnonzero(np.ptp(table, axis=0) > 0.0)
        start, decay = np.zeros(self.dimension), 1.0
        if isinstance(self.initial, PointMass):
            start = np.array(self.initial.state, dtype=np.float64)
        elif isinstance(self.initial, Geometric):
            decay = self.initial.decay
        data = EventData(
            parameters=self.numbers.numbers,
            start=start,
            # With a bound b, u is mapped to the share 1 - decay^(b + 1) that lies below it.
            share=np.where(self.upper < 0, 1.0, 1.0 - decay ** (self.upper + 1.0)),
            log_decay=float(np.log(decay)),
            table=table,
            upper=self.upper,
            jump_count=jump_count,
            jump_at=jump_at,
            jump_by=jump_by,
            event_count=event_count,
            event=event,
            chance=chance,
            varying=varying,
            varying_chance=np.ascontiguousarray(table.T[varying]),
            **independent_choices(table, varying, usable=is_table and self._choices_are_free()),
        )
        checked: EventData = uniform(data)
        return checked

    def costs_of(self, states: Any, actions: IntArray) -> FloatArray:
        return self.loops.expand(states, actions)[0]  # compiled with the model, unlike its rows

    def initial_moments(self, words: list[tuple[int, ...]]) -> FloatArray | None:
        """Return the exact expected monomials of the first state, or None if they are not known."""
        if isinstance(self.initial, PointMass | Geometric):
            return product_moments(self.initial.marginals(self.upper), words)
        return None

    def to_tabular(self, initial: Any = None) -> TabularModel:
        """Return the same model with its states enumerated, in lexicographic order.

        Every coordinate needs an upper bound. `initial` (S,) is needed when the model's own initial
        distribution is a function.
        """
        if (self.upper < 0).any():
            coordinate = int(np.argmax(self.upper < 0))
            raise ModelError(f"coordinate {coordinate} has no upper bound: set upper= to enumerate")
        shape = tuple(int(bound) + 1 for bound in self.upper)
        n_states = int(np.prod(np.array(shape, dtype=np.float64)))
        if n_states > _MAX_ENUMERATED:
            raise ModelError(f"{n_states:,} states, expected at most {_MAX_ENUMERATED:,}")
        states = np.stack(np.unravel_index(np.arange(n_states), shape), axis=1).astype(np.int64)
        pair_state, pair_action = np.nonzero(self.admissible_mask(states))
        cost, probability, successors = self.expand(states[pair_state], pair_action)
        successor = np.ravel_multi_index(tuple(np.moveaxis(successors, -1, 0)), shape)
        pair = np.repeat(np.arange(len(pair_state)), self.n_events)
        stay = np.maximum(1.0 - probability.sum(axis=1), 0.0)
        transition = sparse.coo_array(
            (
                np.concatenate([probability.ravel(), stay]),
                (
                    np.concatenate([pair, np.arange(len(pair_state))]),
                    np.concatenate([successor.ravel(), pair_state]),
                ),
            ),
            shape=(len(pair_state), n_states),
        )
        return TabularModel.from_pairs(
            cost, transition, pair_state, pair_action, self.discount,
            self._enumerated_initial(shape) if initial is None else initial,
            state_vectors=states, action_labels=self.actions, name=self.name,
        )  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"EventModel({self.name!r}: dimension {self.dimension}, {self.n_actions} actions, "
            f"{self.n_events} events, discount {self.discount:g})"
        )

    def _enumerated_initial(self, shape: tuple[int, ...]) -> FloatArray:
        if callable(self.initial):
            raise ModelError(
                "initial is a function, whose probabilities are not known: pass "
                "to_tabular(initial=probabilities)"
            )
        known = zip(self.initial.marginals(self.upper), shape, strict=True)
        return joint_law(np.append(law, np.zeros(size - len(law))) for law, size in known)

    def _checked_upper(self) -> IntArray:
        given = per_coordinate(self.upper, "upper", self.dimension)
        bounds = [np.inf if bound is None else bound for bound in given]
        wrong = [bound for bound in bounds if not (bound >= 0 and bound == np.floor(bound))]
        if wrong:
            raise ModelError(f"upper contains {wrong[0]}, expected whole numbers of at least 0")
        return np.array([-1 if bound == np.inf else bound for bound in bounds], dtype=np.int64)

    def _checked_initial(self) -> Any:
        start = (0,) * self.dimension if self.initial is None else self.initial
        if isinstance(start, PointMass):
            start = start.state
        if isinstance(start, Geometric):
            return start
        if callable(start):
            arguments_of(start, "initial", _ARGUMENTS["initial"])
            return start
        state = self.check_states(np.atleast_1d(start)[None], "initial")[0]
        return PointMass(tuple(int(x) for x in state))

    def _choices_are_free(self) -> bool:
        """Return whether actions differ only in the chances of events."""
        named = arguments_of(self.cost, "cost", _ARGUMENTS["cost"])
        return self.admissible is None and "action" not in named

    def _probability_is_table(self) -> bool:
        """Return whether chances are given as data, or by a function that ignores the state."""
        if not callable(self.probability):
            return True
        return "state" not in arguments_of(
            self.probability, "probability", _ARGUMENTS["probability"]
        )

    def _checked_table(self) -> FloatArray:
        shape = (self.n_actions, self.n_events)
        given = self.probability
        if callable(given):
            numbers = {"parameters": self.numbers.given}
            cells = [
                dict(zip(("action", "event"), cell, strict=True)) | numbers
                for cell in np.ndindex(shape)
            ]
            chances = [call_by_name(given, cell) for cell in cells]
            given = np.array(chances, dtype=object).reshape(shape)
        table = checks.float_array(given, "probability", shape)
        wrong = checks.first_index(
            (table < 0.0) | (table.sum(axis=1, keepdims=True) > 1.0 + tolerances.DECLARED)
        )
        if wrong is not None:
            raise ModelError(
                f"the probabilities of action {wrong[0]} ({self.label(wrong[0])}) are negative or "
                f"sum to {table[wrong[0]].sum():.12g}, expected no negative number and a sum of at "
                "most 1"
            )
        return table

    def _checked_jumps(self) -> IntArray:
        shape = (self.n_events, self.dimension)
        jumps = checks.float_array(self.move, "move", shape)
        if (jumps != np.rint(jumps)).any():
            raise ModelError("move holds jumps that are not whole numbers, expected integers")
        return jumps.astype(np.int64)

    def _check_start(self) -> None:
        """Check the first states for mistakes that show there already."""
        states = self.sample_initial(0, _CHECKED_STATES, np.uint64(1))
        n, action = np.nonzero(self.admissible_mask(states))
        _, chance, _ = self.expand(states[n], action)
        if callable(self.initial):
            draws = np.full(self.initial_draws or self.dimension, 0.5)
            given = {"state": states[0], "u": draws, "parameters": self.numbers.given}
            check_in_place(self.initial, "initial", given)
        if not callable(self.move):
            return
        _, first = np.unique(action, return_index=True)
        for pair, event in zip(*np.nonzero(chance[first] > 0.0), strict=True):
            state = states[n[first[pair]]].copy()
            given = {"state": state, "action": int(action[first[pair]]), "event": int(event)}
            given["parameters"] = self.numbers.given
            with naming(state.copy()):
                check_in_place(self.move, "move", given)
