"""Models that cannot be enumerated: integer-vector states, finitely many actions and events.

In each step at most one event happens. The user writes small plain functions, each taking only the
arguments it depends on, in place of a transition matrix:

    cost(state, action)                  a number
    probability(state, action, event)    the chance of an event; the rest is "nothing happens"
    move(state, action, event)           changes `state` in place
    admissible(state, action)            whether an action may be taken (default: always)

The functions are compiled with Numba together with the loops of simulation and row generation.
Greedy simulation is several times faster when `probability` does not depend on the state, and
`move` not on the action. Both may also be given as data: `probability` as a table (actions,
events), and `move` as jumps (events, coordinates) that are added to the state. A jump that would
make a coordinate negative does not happen, and no event that would take a coordinate above its
upper bound happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bellweight.common import checks, identity
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models import compile
from bellweight.models.compile import Source, Written
from bellweight.models.initial import Geometric, PointMass, product_moments
from bellweight.models.local import LocalStructure
from bellweight.models.scopes import Scopes
from bellweight.models.tabular import TabularModel

_MAX_ENUMERATED = 5_000_000
_CHECKED_STATES = 256

_ARGUMENTS = {
    "cost": ("state", "action"),
    "probability": ("state", "action", "event"),
    "move": ("state", "action", "event"),
    "admissible": ("state", "action"),
    "initial": ("state", "u"),
    "rule": ("state", "parameters"),
}
_OTHERWISE = {"admissible": "return True", "rule": "return -1"}


@dataclass(frozen=True, eq=False, kw_only=True)
class EventModel:
    """A Markov decision process given by functions.

    A function takes any of these arguments, by name and in any order, and no others:

        cost, admissible     state, action
        probability, move    state, action, event
        initial              state, u

    `state` is an array (d,) of integers, `action` and `event` are indices, `u` an array of uniform
    numbers. `move` and `initial` write into `state` and return nothing. Other numbers and arrays
    that a function needs are taken from its module or enclosing function, as they are when the
    model is built; a `Rule` takes `state` and its own `parameters`.

    `actions` and `events` are labels, one for each. `upper` bounds the coordinates (None, or one
    number per coordinate, None where there is no bound). `initial` is a state, `Geometric(decay)`,
    or a function `initial(state, u)` that fills in the state from `initial_draws` uniform numbers.
    `cost_growth` declares by how much the largest absolute cost over the actions can grow in one
    step at most, in expectation; without it the tail of a simulated cost has no bound.
    `scopes` declare which coordinates each part looks at, so that bounds can be proven over all
    states (`LocalRows`). `compiled=False` runs everything as plain Python, slowly.
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
    cost_growth: float | None = None
    compiled: bool = True
    name: str = "event model"
    scopes: Scopes | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "dimension", checks.count(self.dimension, "dimension"))
        put(self, "actions", _labels(self.actions, "actions"))
        put(self, "events", _labels(self.events, "events"))
        put(self, "discount", checks.discount_factor(self.discount))
        put(self, "upper", self._checked_upper())
        if self.cost_growth is not None and not 0.0 <= self.cost_growth < np.inf:
            raise ModelError(f"cost_growth is {self.cost_growth}, expected a number of at least 0")
        if self._probability_is_table():
            put(self, "probability", self._checked_table())
        if not callable(self.move):
            put(self, "move", self._checked_jumps())
        put(self, "initial", self._checked_initial())
        for role, function in self._functions().items():
            if function is not None:
                compile.arguments_of(function, role, _ARGUMENTS[role])
        _ = self.source
        self._check_compiles(self.source, self._functions())
        self._check_start()
        if self.scopes is not None:
            put(self, "_structure", self.scopes.structure(self))

    @property
    def structure(self) -> LocalStructure | None:
        """The local parts that the model is made of, where `scopes` declare them."""
        return getattr(self, "_structure", None)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.events)

    @property
    def jumps(self) -> IntArray | None:
        """The jumps (E, d), when moves are given as data."""
        return None if callable(self.move) else self.move

    def label(self, action: int) -> str:
        """Return the name of an action."""
        return str(self.actions[action])

    @cached_property
    def source(self) -> Source:
        """The text of the compiled model."""
        return self.source_with(None)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything that decides an answer: the user's functions and data."""
        sizes = (self.dimension, self.n_actions, self.n_events, self.initial_draws)
        numbers = (sizes, self.upper, self.discount)
        data = {role: given for role, given in self._given().items() if not callable(given)}
        return identity.digest((self._own.parts, data, numbers))

    @cached_property
    def _own(self) -> Written:
        """The text of the user's own functions, read once."""
        own = {role: given for role, given in self._given().items() if callable(given)}
        return Written().adding(_called(own))

    @cached_property
    def _written(self) -> Written:
        """The text of all functions: also those that stand for data."""
        given = self._given()
        others = {r: f for r, f in self._functions().items() if not callable(given[r])}
        return self._own.adding(_called(others))

    def _given(self) -> dict[str, Any]:
        """Return what the user gave for each role: a function or data."""
        return {role: getattr(self, role) for role in _ARGUMENTS if role != "rule"}

    def source_with(self, rule: Callable[..., int] | None) -> Source:
        """Return the text of the model together with a decision rule of the user's."""
        move = self._functions()["move"]
        shared = "action" not in compile.arguments_of(move, "move", _ARGUMENTS["move"])
        by_action = "action" in compile.arguments_of(self.cost, "cost", _ARGUMENTS["cost"])
        return compile.model_source(
            self._written.adding(_called({"rule": rule})),
            {
                "DIMENSION": self.dimension,
                "N_ACTIONS": self.n_actions,
                "N_EVENTS": self.n_events,
                "N_DRAWS": self.initial_draws or self.dimension,
                "SHARED_MOVES": shared,
                "COST_BY_ACTION": by_action,
                "UPPER": self.upper,
                **self._plain_data(),
            },
            compiled=self.compiled,
        )

    def rule_source(self, rule: Callable[..., int]) -> Source:
        """Return the text of the model with a decision rule, or say why it does not compile."""
        source = self.source_with(rule)
        self._check_compiles(source, {"rule": rule})
        return source

    def _functions(self) -> dict[str, Any]:
        """Return the function of each role; data take the form of functions too."""
        table, jumps = self.probability, self.move

        def probability(action: int, event: int) -> float:
            return float(table[action, event])

        def move(state: Any, event: int) -> None:
            for i in range(jumps.shape[1]):
                if state[i] + jumps[event, i] < 0:
                    return
            for i in range(jumps.shape[1]):
                state[i] += jumps[event, i]

        return {
            "cost": self.cost,
            "probability": table if callable(table) else probability,
            "move": jumps if callable(jumps) else move,
            "admissible": self.admissible,
            "initial": self._sampler,
        }

    def _plain_data(self) -> dict[str, Any]:
        """Return jumps and chances in the sparse layout of the loops, where they are data."""
        is_table = not callable(self.probability)
        jumps = np.zeros((1, 1), dtype=np.int64) if self.jumps is None else self.jumps
        table = self.probability if is_table else np.zeros((1, 1))
        jump_count, jump_at, jump_by = _sparse_lists(jumps)
        event_count, event, chance = _sparse_lists(table)
        varying = np.flatnonzero(np.ptp(table, axis=0) > 0.0)
        return {
            "IS_TABLE": is_table,
            "HAS_JUMPS": self.jumps is not None,
            "JUMP_COUNT": jump_count,
            "JUMP_AT": jump_at,
            "JUMP_BY": jump_by,
            "EVENT_COUNT": event_count,
            "EVENT": event,
            "CHANCE": chance,
            "VARYING": varying,
            "VARYING_CHANCE": np.ascontiguousarray(table.T[varying]),
            **_independent_choices(table, varying, usable=is_table and self._choices_are_free()),
        }

    @property
    def kernels(self) -> ModuleType:
        """The compiled loops."""
        return self.source.load()

    def check_states(self, states: Any, name: str = "states") -> IntArray:
        """Return states as an integer array (n, d), or say why they are not states."""
        raw = np.asarray(states)
        if raw.ndim == 1:
            raw = raw[None, :]
        if raw.ndim != 2 or raw.shape[1] != self.dimension or len(raw) == 0:
            raise ModelError(f"{name} has shape {raw.shape}, expected (n, {self.dimension})")
        if raw.dtype.kind not in "biuf":
            raise ModelError(f"{name} holds entries of type {raw.dtype}, expected whole numbers")
        with np.errstate(invalid="ignore"):  # NaN and infinity differ from what they become
            whole = np.ascontiguousarray(raw, dtype=np.int64)
        wrong = checks.first_index(
            (whole != raw) | (whole < 0) | ((self.upper >= 0) & (whole > self.upper))
        )
        if wrong is not None:
            raise ModelError(
                f"{name}[{wrong[0]}] is {raw[wrong[0]].tolist()}, expected whole numbers of at "
                "least 0 and within the bounds"
            )
        return whole

    def fault(self, code: int, state: Any, action: int) -> ModelError:
        """Return the error for a fault that a compiled loop met."""
        return fault_error(self.kernels, self.actions, code, state, action)

    def admissible_mask(self, states: IntArray) -> checks.BoolArray:
        """Return which actions are admissible in which states, (n, A)."""
        mask = np.zeros((len(states), self.n_actions), dtype=np.bool_)
        where = np.zeros(self.dimension, dtype=np.int64)
        with compile.naming(where):
            self.kernels.allowed(states, mask, where)
        empty = checks.first_index(np.asarray(~mask.any(axis=1)))
        if empty is not None:
            raise self.fault(self.kernels.NO_ACTION, states[empty[0]], -1)
        return mask

    def expand(
        self, states: IntArray, actions: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return cost (n,), event probabilities (n, E), successors (n, E, d) of some pairs."""
        n = len(states)
        cost, probability = np.zeros(n), np.zeros((n, self.n_events))
        successors = np.zeros((n, self.n_events, self.dimension), dtype=np.int64)
        where = np.zeros(self.dimension, dtype=np.int64)
        with compile.naming(where):
            code, action = self.kernels.expand(
                states, actions, cost, probability, successors, where
            )
        if code:
            raise self.fault(code, where, action)
        return cost, probability, successors

    def sample_initial(self, first: int, last: int, key: np.uint64) -> IntArray:
        """Return the first states of episodes first, ..., last - 1."""
        states = np.zeros((last - first, self.dimension), dtype=np.int64)
        where = np.zeros(self.dimension, dtype=np.int64)
        with compile.naming(where):
            outside = self.kernels.initial_states(first, last, key, states, where)
        if outside:
            raise ModelError(f"initial gives the state {where.tolist()}, outside the state space")
        return states

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

    @cached_property
    def _sampler(self) -> Any:
        return self.initial if callable(self.initial) else self.initial.sampler(self.upper)

    def _enumerated_initial(self, shape: tuple[int, ...]) -> FloatArray:
        if callable(self.initial):
            raise ModelError(
                "initial is a function, whose probabilities are not known: pass "
                "to_tabular(initial=probabilities)"
            )
        mass = np.ones(())
        for law, size in zip(self.initial.marginals(self.upper), shape, strict=True):
            mass = np.multiply.outer(mass, np.append(law, np.zeros(size - len(law))))
        return mass.ravel()

    def _checked_upper(self) -> IntArray:
        given: list[Any] = [None] if self.upper is None else list(np.atleast_1d(self.upper))
        given = given * self.dimension if len(given) == 1 else given
        if len(given) != self.dimension:
            raise ModelError(f"upper has {len(given)} entries, expected {self.dimension}")
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
            compile.arguments_of(start, "initial", _ARGUMENTS["initial"])
            return start
        state = self.check_states(start, "initial")[0]
        return PointMass(tuple(int(x) for x in state))

    def _check_compiles(self, source: Source, functions: dict[str, Any]) -> None:
        """Compile the user's functions one by one, unless that was done before."""
        if not self.compiled or source.is_cached:
            return
        state, numbers = np.zeros(self.dimension, dtype=np.int64), np.zeros(1)
        examples = {"state": state, "action": 0, "event": 0, "u": numbers, "parameters": numbers}
        for role, function in functions.items():
            if function is not None:
                names = compile.arguments_of(function, role, _ARGUMENTS[role])
                compile.check_compiles(function, role, tuple(examples[name] for name in names))

    def _choices_are_free(self) -> bool:
        """Return whether actions differ only in the chances of events."""
        named = compile.arguments_of(self.cost, "cost", _ARGUMENTS["cost"])
        return self.admissible is None and "action" not in named

    def _probability_is_table(self) -> bool:
        """Return whether chances are given as data, or by a function that ignores the state."""
        if not callable(self.probability):
            return True
        return "state" not in compile.arguments_of(
            self.probability, "probability", _ARGUMENTS["probability"]
        )

    def _checked_table(self) -> FloatArray:
        shape = (self.n_actions, self.n_events)
        given = self.probability
        if callable(given):
            named = compile.arguments_of(given, "probability", _ARGUMENTS["probability"])
            cells = [
                dict(zip(("action", "event"), cell, strict=True)) for cell in np.ndindex(shape)
            ]
            chances = [given(**{name: cell[name] for name in named}) for cell in cells]
            given = np.array(chances, dtype=object).reshape(shape)
        table = checks.float_array(given, "probability", shape)
        wrong = checks.first_index((table < 0.0) | (table.sum(axis=1, keepdims=True) > 1.0 + 1e-9))
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
            compile.check_in_place(self.initial, "initial", {"state": states[0], "u": draws})
        if not callable(self.move):
            return
        _, first = np.unique(action, return_index=True)
        for pair, event in zip(*np.nonzero(chance[first] > 0.0), strict=True):
            state = states[n[first[pair]]].copy()
            given = {"state": state, "action": int(action[first[pair]]), "event": int(event)}
            with compile.naming(state.copy()):
                compile.check_in_place(self.move, "move", given)


def _called(functions: Mapping[str, Any]) -> dict[str, tuple[Any, tuple[str, ...], str]]:
    """Return functions with their arguments, and the default bodies of those that are None."""
    return {r: (f, _ARGUMENTS[r], _OTHERWISE.get(r, "pass")) for r, f in functions.items()}


def fault_error(
    kernels: ModuleType, labels: Sequence[str], code: int, state: Any, action: int
) -> ModelError:
    """Return the error for a fault that a compiled loop met, in its state and with its action."""
    text = {
        kernels.BAD_PROBABILITY: "the event probabilities are negative, NaN or sum to more than 1",
        kernels.NEGATIVE_STATE: "an event leads to a negative state",
        kernels.BAD_COST: "the cost is not finite",
        kernels.BAD_ACTION: "the policy's action is not admissible",
        kernels.NO_ACTION: "no action is admissible",
    }[code]
    named = ""
    if 0 <= action < len(labels):
        named = f", action {action} ({labels[action]})"
    elif code == kernels.BAD_ACTION:
        named = f", action {action} (there are {len(labels)}, counted from 0)"
    if code == kernels.BAD_PROBABILITY and named:
        text += f", found {_wrong_chance(kernels, state, action)}"
    remedy = "change the policy" if code == kernels.BAD_ACTION else "correct the model there"
    return ModelError(f"in state {np.asarray(state).tolist()}{named}: {text}: {remedy}")


def _wrong_chance(kernels: ModuleType, state: Any, action: int) -> str:
    """Return which number is wrong with the event probabilities: one of them, or their sum."""
    where = np.array(state, dtype=np.int64)
    chances = [float(kernels.user_probability(where, action, e)) for e in range(kernels.N_EVENTS)]
    wrong = [f"{chance:.12g} for event {e}" for e, chance in enumerate(chances) if not chance >= 0]
    return wrong[0] if wrong else f"the sum {sum(chances):.12g}"


def _independent_choices(table: FloatArray, varying: IntArray, *, usable: bool) -> dict[str, Any]:
    """Return the actions as combinations of independent choices, if that is what they are.

    Two events belong to the same choice unless their chances take all combinations of values. The
    actions are combinations when there are exactly as many as choices allow, each once.
    """
    groups = _dependent_groups(table[:, varying]) if usable else []
    options = [np.unique(table[:, varying[group]], axis=0, return_inverse=True) for group in groups]
    sizes = [len(rows) for rows, _ in options]
    strides = np.array([int(np.prod(sizes[g + 1 :])) for g in range(len(sizes))], dtype=np.int64)
    places = sum((place.ravel() * s for (_, place), s in zip(options, strides, strict=True)), 0)
    n_actions = len(table)
    free = bool(groups) and np.array_equal(np.sort(places), np.arange(n_actions))
    if not free:
        groups, options, sizes = [], [], []
        strides, places = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    full = np.zeros((max(1, sum(sizes)), table.shape[1]))
    row = 0
    for group, (rows, _) in zip(groups, options, strict=True):
        full[row : row + len(rows), varying[group]] = rows
        row += len(rows)
    count, event, chance = _sparse_lists(full)
    return {
        "N_GROUPS": len(groups),
        "OPTION_START": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "OPTION_COUNT": count,
        "OPTION_EVENT": event,
        "OPTION_CHANCE": chance,
        "STRIDE": strides,
        "COMBINED": np.argsort(places).astype(np.int64),
    }


def _dependent_groups(columns: FloatArray) -> list[IntArray]:
    """Return the columns in groups that depend on each other."""
    n = columns.shape[1]
    kinds = [len(np.unique(columns[:, i])) for i in range(n)]
    linked = np.zeros((n, n), dtype=np.bool_)
    for i in range(n):
        for j in range(i):
            pairs = len(np.unique(columns[:, [i, j]], axis=0))
            linked[i, j] = pairs < kinds[i] * kinds[j]
    n_groups, member = connected_components(linked, directed=False)
    return [np.flatnonzero(member == g) for g in range(n_groups)]


def _sparse_lists(matrix: Any) -> tuple[IntArray, IntArray, Any]:
    """Return for each row the number, the places and the values of its non-zero entries."""
    count = (matrix != 0).sum(axis=1).astype(np.int64)
    width = max(1, int(count.max()))
    places = np.zeros((len(matrix), width), dtype=np.int64)
    values = np.zeros((len(matrix), width), dtype=matrix.dtype)
    for row, entries in enumerate(matrix):
        used = np.flatnonzero(entries)
        places[row, : len(used)] = used
        values[row, : len(used)] = entries[used]
    return count, places, values


def _labels(labels: Any, name: str) -> tuple[str, ...]:
    if isinstance(labels, int):
        labels = [f"{name.rstrip('s')} {k}" for k in range(labels)]
    if isinstance(labels, str) or len(labels) == 0:
        raise ModelError(f"{name} is {labels!r}, expected a list of at least one label")
    return tuple(str(label) for label in labels)
