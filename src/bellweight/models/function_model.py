"""What models given by functions share: actions with labels, parameters, compiled loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import BasisError, ModelError
from bellweight.common.streams import stream_keys
from bellweight.models.compile import Called, Source
from bellweight.models.function_checks import arguments_of, check_compiles
from bellweight.models.local import LocalStructure
from bellweight.models.loops import Loops
from bellweight.models.parameters import Parameters
from bellweight.models.spread import Box

Written = tuple[tuple[Callable[..., Any], int], ...]
"""Functions `fn(state, features)` of a basis, with the number of their outputs."""


_FIRST = 20_000  # first states in which costs are looked at

ENDLESS = 2.0**62
"""The side of the box of a coordinate of whole numbers that has no bound."""


class FunctionModel(ABC):
    """A Markov decision process given by functions of state vectors."""

    dimension: int
    actions: Sequence[str]
    discount: float
    compiled: bool
    name: str
    cost_growth: float | None
    numbers: Parameters
    _given: Mapping[str, Any]

    def _take_common(self, dimension: Any, parameters: Any) -> None:
        """Check and keep what models of every kind have; `_given` is what the user wrote."""
        put = object.__setattr__
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        put(self, "_given", given)
        put(self, "numbers", Parameters.of(parameters))
        put(self, "dimension", checks.count(dimension, "dimension"))
        put(self, "actions", action_labels(self.actions, "actions"))
        put(self, "discount", checks.discount_factor(self.discount))
        if self.cost_growth is not None and not 0.0 <= self.cost_growth < np.inf:
            raise ModelError(f"cost_growth is {self.cost_growth}, expected a number of at least 0")

    @cached_property
    def source(self) -> Source:
        """The text of the compiled model."""
        return self.source_with({})

    @property
    @abstractmethod
    def loops(self) -> Loops:
        """The loops of simulation and row generation."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """A fingerprint of everything that decides an answer: the user's functions and data."""

    def check_states(self, states: Any, name: str = "states") -> Any:
        """Return states (n, d) as the loops take them, or say what is wrong with them.

        One state (d,) counts as (1, d), and where d is one, numbers (n,) as (n, 1).
        """
        given = np.asarray(states)
        if given.ndim < 2:
            given = given.reshape(-1, 1) if self.dimension == 1 else given.reshape(1, -1)
        if given.ndim != 2 or given.shape[1] != self.dimension or len(given) == 0:
            raise ModelError(
                f"{name} has shape {given.shape}, expected (n, {self.dimension}): one state vector "
                "in each row"
            )
        found = checks.float_array(given, name, given.shape, finite=False)
        low, high, whole = map(np.array, self._sides)
        wrong = checks.first_index(
            ~((found >= low) & (found <= high)) | (whole & (found != np.floor(found)))
        )
        if wrong is not None:
            n, i = wrong
            most = np.inf if high[i] >= ENDLESS else high[i]
            fault = f"lies outside [{low[i]:g}, {most:g}]"
            if np.isnan(found[wrong]):
                fault = "is NaN, expected a number"
            elif low[i] <= found[wrong] <= high[i]:
                fault = "has a fraction, expected a whole number"
            raise ModelError(f"{name}[{n}] is {given[n].tolist()}: coordinate {i} {fault}")
        return np.ascontiguousarray(found, dtype=self.state_type)

    @abstractmethod
    def source_with(self, functions: Mapping[str, Called]) -> Source:
        """Return the text of the model with more functions: a policy's rule, a basis's own."""

    @abstractmethod
    def far_states(self) -> tuple[str, Any]:
        """Return states (n, d) far from where episodes run, and what they are called."""

    def box(self) -> Box:
        """Return the finite box of all states, or say which coordinate has no bound."""
        low, high, whole = map(np.array, self._sides)
        endless = checks.first_index(high >= ENDLESS)
        if endless is not None:
            raise ModelError(f"coordinate {endless[0]} has no upper bound: set upper=")
        return Box(low, high, whole)

    def side(self, axis: int) -> tuple[float, float, bool]:
        """Return the least and the largest value of a state variable, and whether it is whole."""
        low, high, whole = self._sides
        return low[axis], high[axis], whole[axis]

    @property
    def jumps(self) -> IntArray | None:
        """The jumps (E, d), when events are given as such."""
        return None

    @property
    def event_places(self) -> FloatArray | None:
        """Where the chance of each event begins (E,): see `coupling`; None without a table."""
        return None

    @property
    def value_counts(self) -> tuple[int, ...] | None:
        """How many values each coordinate has, where coordinates move independently in a step."""
        return None

    @property
    def structure(self) -> LocalStructure | None:
        """The local parts that the model is made of, where they are declared."""
        return None

    @property
    def start(self) -> FloatArray | None:
        """The state (d,) in which every episode begins, or None where it is random."""
        return None

    def initial_moments(self, words: list[tuple[int, ...]]) -> FloatArray | None:
        """Return the exact expected monomials of the first state, or None if they are not known."""
        return None

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    def label(self, action: int) -> str:
        """Return the name of an action."""
        return str(self.actions[action])

    def with_parameters(self, **changes: Any) -> Self:
        """Return this model with some of its named parameters changed; nothing is compiled."""
        given = {**self._given, "parameters": self.numbers.changed(changes)}
        return type(self)(**given)

    def loops_with(self, *, rule: Callable[..., int] | None = None, written: Written = ()) -> Loops:
        """Return the loops together with a policy's rule and the functions of a basis."""
        functions: dict[str, Called] = {}
        if rule is not None:
            functions["rule"] = Called(rule, ("state", "parameters"))
        if written:
            functions |= _written_calls(written)
        if not functions:
            return self.loops
        source = self.source_with(functions)
        if self.compiled and not source.is_cached:
            self._check_added(rule, written)
        return self.loops.of(source)

    def is_state(self, vector: Any) -> bool:
        """Return whether a vector (d,) is surely a state, quickly; `check_states` says why not."""
        low, high, whole = self._sides
        values = vector.tolist()
        return vector.dtype.kind in "iuf" and all(
            a <= x <= b and (not i or x % 1 == 0)
            for x, a, b, i in zip(values, low, high, whole, strict=True)
        )

    @property
    def state_type(self) -> Any:
        """The type of a state's numbers in compiled loops."""
        return np.int64 if all(self._sides[2]) else np.float64

    @property
    @abstractmethod
    def _sides(self) -> tuple[list[float], list[float], list[bool]]:
        """The bounds of the coordinates, infinite ones included, and which are whole."""

    def admissible_mask(self, states: Any) -> BoolArray:
        """Return which actions are admissible in which states, (n, A)."""
        return self.loops.allowed(states)

    def costs_of(self, states: Any, actions: IntArray) -> FloatArray:
        """Return the expected costs (n,) of some pairs."""
        return self.loops.bellman_rows(states, actions, None)[1]

    def expand(self, states: Any, actions: IntArray) -> tuple[Any, Any, Any]:
        """Return cost (n,), chances (n, E) and successors (n, E, d) of some pairs."""
        return self.loops.expand(states, actions)

    def loops_of_a_step(self, rng: np.random.Generator, most: int) -> Loops:
        """Return the loops of one step of a path: what can happen, and with which chances.

        Noise without a short list of values is replaced by at most `most` nodes drawn for this
        step, each with the law of the noise.
        """
        return self.loops

    def sample_initial(self, first: int, last: int, key: np.uint64) -> Any:
        """Return the first states of episodes first, ..., last - 1."""
        return self.loops.initial_states(first, last, key)

    @cached_property
    def first_costs(self) -> FloatArray:
        """The largest cost of an action, by size, in each of many first states that are drawn."""
        drawn = self.sample_initial(0, _FIRST, stream_keys(0)[0])
        states, place = np.unique(drawn, axis=0, return_inverse=True)
        mask = self.admissible_mask(states)
        number, action = np.nonzero(mask)
        cost = np.full(mask.shape, -np.inf)
        cost[mask] = np.abs(self.costs_of(states[number], action))
        return np.asarray(cost.max(axis=1)[place.ravel()])

    def _check_compiles(
        self,
        functions: Mapping[str, Any],
        arguments: Mapping[str, tuple[str, ...]],
        *remedy: str,
    ) -> None:
        """Compile the user's functions one by one, unless that was done before."""
        if not self.compiled or self.source.is_cached:
            return
        numbers = np.zeros(1)
        examples = {
            "state": np.zeros(self.dimension, dtype=self.state_type), "action": 0, "event": 0,
            "u": numbers, "parameters": numbers, "noise": numbers,
            "successor": np.zeros(self.dimension),
        }  # fmt: skip
        for role, function in functions.items():
            if function is not None:
                names = arguments_of(function, role, arguments[role])
                given = tuple(examples[name] for name in names)
                check_compiles(function, role, given, self.numbers.layout, *remedy)

    def _check_added(self, rule: Callable[..., int] | None, written: Written) -> None:
        state = np.zeros(self.dimension, dtype=self.state_type)
        if rule is not None:
            named = arguments_of(rule, "rule", ("state", "parameters"))
            given = {"state": state, "parameters": np.zeros(1)}
            check_compiles(rule, "rule", tuple(given[name] for name in named))
        for function, outputs in written:
            check_compiles(function, "functions", (state, np.zeros(outputs)))


def action_labels(labels: Any, name: str) -> tuple[str, ...]:
    """Return labels as the user gives them: a list, or how many."""
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        checks.count(labels, name)
        labels = [f"{name.rstrip('s')} {k}" for k in range(labels)]
    if not isinstance(labels, Iterable) or isinstance(labels, str) or len(list(labels)) == 0:
        raise ModelError(f"{name} is {labels!r}, expected how many, or a list of labels")
    return checks.distinct([str(label) for label in labels], name)


def per_coordinate(given: Any, name: str, dimension: int) -> list[Any]:
    """Return what is given for each coordinate: one thing for all of them, or one for each."""
    listed = list(np.atleast_1d(np.asarray(given, dtype=object)))
    listed = listed * dimension if len(listed) == 1 else listed
    if len(listed) != dimension:
        raise ModelError(f"{name} has {len(listed)} entries, expected {dimension}")
    return listed


def check_same_written(first: Written, second: Written) -> None:
    """Refuse two bases with different functions of the user's: loops take those of one basis."""
    if first and second and first != second:
        raise BasisError(
            "two Custom bases with functions of their own cannot be simulated together: put their "
            "functions into one"
        )


def _written_calls(written: Written) -> dict[str, Called]:
    """Return the functions of a basis, which write their outputs one after another."""
    calls, first = {}, 0
    lines = []
    for k, (function, outputs) in enumerate(written):
        calls[f"functions_{k}"] = Called(function, ("state", "features"), body="{call}")
        lines.append(f"user_functions_{k}(state, features[{first}:{first + outputs}])")
        first += outputs
    whole = Called(None, ("state", "features"), otherwise="\n    ".join(lines))
    return {**calls, "functions": whole}
