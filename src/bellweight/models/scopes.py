"""Scopes that a user declares: what each part of an event model looks at, checked by sampling.

    EventModel(..., scopes=Scopes(cost=[(0,), (1,)]))

says that the cost is a function of x_0 plus one of x_1. Moves given as jumps and chances given as a
table need no scopes; functions do. The tables of the parts come from the model's own functions,
called with zero in all coordinates outside the scope:

    cost_1(x) = cost(x on S_1, 0 elsewhere),   cost_2(x) = (cost - cost_1)(x on S_2, 0 elsewhere),

and so on, which gives back every cost that is a sum of functions of the scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models.initial import Geometric, PointMass
from bellweight.models.local import LocalEvent, LocalEvents, Table, compressed, grid, tabulated

if TYPE_CHECKING:
    from bellweight.models.events import EventModel

_CHECKED = 200  # states that a declaration is checked at
_BEYOND = 6  # how far beyond the tail or the largest kink of interest checked states lie


@dataclass(frozen=True)
class Scopes:
    """Which coordinates each part of an event model looks at, counted from 0.

    `cost` lists the scopes of the terms that the cost is the sum of. `chance` and `move` have a
    scope for each event: what its probability looks at, and what its move looks at or changes;
    they are needed only where `probability` and `move` are functions. `admissible` is the scope of
    the rule for admissible actions. `tail` is the value, one for all coordinates or one for each,
    from which on along a coordinate without an upper bound the cost is affine, chances and
    admissible actions stay the same and events move by fixed jumps. `choices` are the numbers of
    options that an action is made of, the last changing fastest; by default an action is one
    choice. The model's functions are called with zero outside a scope, and with any action.
    """

    cost: Sequence[Sequence[int]]
    chance: Sequence[Sequence[int]] | None = None
    move: Sequence[Sequence[int]] | None = None
    admissible: Sequence[int] | None = None
    tail: Any = 0
    choices: Sequence[int] | None = None

    def structure(self, model: EventModel) -> LocalEvents:
        """Return the local structure of a model, or say which declaration is wrong."""
        return _Declared(self, model).structure()


class _Declared:
    """A declaration applied to its model."""

    def __init__(self, scopes: Scopes, model: EventModel) -> None:
        self.model = model
        self.dimension = model.dimension
        self.cost = [self._scope(s, f"scopes.cost[{j}]") for j, s in enumerate(scopes.cost)]
        self.choices = self._choices(scopes.choices)
        self.chance = self._by_event(scopes.chance, "chance", needed=callable(model.probability))
        self.move = self._by_event(scopes.move, "move", needed=callable(model.move))
        if model.jumps is not None:
            self.move = [tuple(int(i) for i in np.flatnonzero(jump)) for jump in model.jumps]
        rule = scopes.admissible
        if model.admissible is not None and rule is None:
            raise ModelError(
                "scopes.admissible is missing, but the model has a rule for admissible actions: "
                "name the coordinates that it looks at"
            )
        self.admissible = None if rule is None else self._scope(rule, "scopes.admissible")
        self.tails = self._tails(scopes.tail)

    @property
    def choice_variables(self) -> tuple[int, ...]:
        return tuple(range(self.dimension, self.dimension + len(self.choices)))

    def structure(self) -> LocalEvents:
        model = self.model
        initial = model.initial if isinstance(model.initial, PointMass | Geometric) else None
        found = LocalEvents(
            discount=model.discount,
            limits=model.upper,
            tails=self.tails,
            falls=self._falls(),
            choices=self.choices,
            cost_terms=self._costs,
            events=[self._event(e) for e in range(model.n_events)],
            rules=[] if self.admissible is None else [self._rule(self.admissible)],
            initial=initial,
        )
        _check(found, model)
        return found

    def _scope(self, given: Any, name: str) -> tuple[int, ...]:
        scope = tuple(sorted(set(given))) if isinstance(given, Sequence) else None
        if scope is None or any(i not in range(self.dimension) for i in scope):
            raise ModelError(
                f"{name} is {given!r}, expected coordinates from 0 to {self.dimension - 1}"
            )
        return scope

    def _choices(self, given: Sequence[int] | None) -> tuple[int, ...]:
        choices = (self.model.n_actions,) if given is None else tuple(int(n) for n in given)
        if prod(choices) != self.model.n_actions or min(choices, default=0) < 1:
            raise ModelError(
                f"scopes.choices is {given!r}, which makes {prod(choices)} actions, expected "
                f"{self.model.n_actions}"
            )
        return choices

    def _by_event(self, given: Any, name: str, *, needed: bool) -> list[tuple[int, ...]]:
        n = self.model.n_events
        if given is None and needed:
            raise ModelError(
                f"scopes.{name} is missing: give a list of coordinates for each of the {n} events"
            )
        if given is None:
            return [()] * n
        if not isinstance(given, Sequence) or len(given) != n:
            raise ModelError(
                f"scopes.{name} is {given!r}, expected one list for each of {n} events"
            )
        return [self._scope(s, f"scopes.{name}[{e}]") for e, s in enumerate(given)]

    def _tails(self, given: Any) -> IntArray:
        try:
            numbers = np.broadcast_to(np.asarray(given, dtype=np.float64), (self.dimension,))
        except (TypeError, ValueError):
            numbers = np.full(self.dimension, -1.0)
        if not ((numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers < np.inf)).all():
            raise ModelError(f"scopes.tail is {given!r}, expected whole numbers of at least 0")
        tails, jumps = numbers.astype(np.int64), self.model.jumps
        # A jump down happens where it does not make a coordinate negative.
        return tails if jumps is None else np.maximum(tails, np.maximum(0, -jumps.min(axis=0)))

    def _falls(self) -> IntArray:
        model = self.model
        if model.jumps is not None:
            return np.maximum(0, -model.jumps.min(axis=0))
        falls = np.zeros(self.dimension, dtype=np.int64)
        sizes = self._sizes()
        for e, scope in enumerate(self.move):
            points = grid((*scope, *self.choice_variables), sizes)
            moved = self._successors(e, scope, points)
            fall = (points[:, : len(scope)] - moved).max(axis=0, initial=0)
            for i, by in zip(scope, fall, strict=True):
                falls[i] = max(falls[i], by)
        return falls

    def _sizes(self) -> list[int]:
        """Return a grid that reaches just beyond the tails."""
        limits = np.where(self.model.upper >= 0, self.model.upper, self.tails + 1)
        return [*(int(limit) + 1 for limit in limits), *self.choices]

    def _placed(self, scope: Sequence[int], points: IntArray) -> tuple[IntArray, IntArray]:
        """Return states and actions of points of a scope and all choices; zero elsewhere."""
        states = np.zeros((len(points), self.dimension), dtype=np.int64)
        states[:, list(scope)] = points[:, : len(scope)]
        options = points[:, len(scope) :]
        actions = np.ravel_multi_index(tuple(options.T), self.choices).astype(np.int64)
        return states, actions

    def _successors(self, event: int, scope: tuple[int, ...], points: IntArray) -> IntArray:
        states, actions = self._placed(scope, points)
        return self.model.expand(states, actions)[2][:, event][:, list(scope)]

    def _event(self, event: int) -> LocalEvent:
        model, looks, moves = self.model, self.chance[event], self.move[event]

        def chance(points: IntArray) -> FloatArray:
            states, actions = self._placed(looks, points)
            if not callable(model.probability):
                return np.asarray(model.probability[actions, event])
            return model.expand(states, actions)[1][:, event]

        def jump(points: IntArray) -> IntArray:
            assert model.jumps is not None
            after = points + model.jumps[event, list(moves)]
            limits = model.upper[list(moves)]
            stays = ((after < 0) | ((limits >= 0) & (after > limits))).any(axis=1)
            return np.where(stays[:, None], points, after)

        by_data = model.jumps is not None
        return LocalEvent(
            chance_scope=(*looks, *self.choice_variables),
            chance=chance,
            move_scope=moves if by_data else (*moves, *self.choice_variables),
            moved=moves,
            move=jump if by_data else lambda points: self._successors(event, moves, points),
        )

    def _costs(self, sizes: Sequence[int]) -> list[Table]:
        tables: list[Table] = []
        for scope in self.cost:
            seen = (*scope, *self.choice_variables)
            points = grid(seen, sizes)
            values = self.model.expand(*self._placed(scope, points))[0]
            everywhere = np.zeros((len(points), self.dimension + len(self.choices)), dtype=np.int64)
            everywhere[:, list(seen)] = points
            for earlier in tables:
                values = values - earlier.at(everywhere)
            tables.append(tabulated(seen, sizes, values))
        return [compressed(table) for table in tables]

    def _rule(self, scope: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[..., FloatArray]]:
        def rule(points: IntArray) -> FloatArray:
            states, actions = self._placed(scope, points)
            mask = self.model.loops.allowed(states, some=False)
            return mask[np.arange(len(states)), actions].astype(np.float64)

        return (*scope, *self.choice_variables), rule


def _check(found: LocalEvents, model: EventModel) -> None:
    """Compare the sum of the parts with the model itself at states drawn below and in the tails."""
    rng = np.random.default_rng(0)
    tops = np.where(model.upper >= 0, model.upper, found.tails + _BEYOND)
    states = rng.integers(0, tops + 1, size=(_CHECKED, model.dimension))
    # Many coordinates at zero: many rules differ there.
    states[rng.random(states.shape) < 0.3] = 0
    choices = np.stack([rng.integers(0, n, size=_CHECKED) for n in found.choices], axis=1)
    actions = found.actions(choices)
    points = np.column_stack([states, choices])
    sizes = [*(int(top) + 1 for top in tops), *found.choices]
    cost, chances, successors = model.expand(states, actions)
    parts = np.sum([table.at(points) for table in found.costs(sizes)], axis=0, initial=0.0)
    _refuse(
        np.abs(parts - cost) > tolerances.DECLARED * (np.abs(cost) + 1.0),
        states,
        "scopes.cost: the cost is not a sum of functions of these coordinates",
    )
    for e, event in enumerate(found.events):
        own = event.chance(points[:, list(event.chance_scope)])
        label = f"event {e} ({model.events[e]})"
        _refuse(own != chances[:, e], states, f"scopes.chance[{e}]: the chance of {label} differs")
        expected = states.copy()
        expected[:, list(event.moved)] = event.move(points[:, list(event.move_scope)])
        happens = chances[:, e] > 0.0
        wrong = (expected != successors[:, e]).any(axis=1) & happens
        _refuse(wrong, states, f"scopes.move[{e}]: {label} does otherwise, or moves others")
    for scope, rule in found.rules:
        mask = model.admissible_mask(states)[np.arange(_CHECKED), actions]
        _refuse(
            rule(points[:, list(scope)]).astype(np.bool_) != mask,
            states,
            "scopes.admissible: the rule looks at other coordinates, too",
        )
    _check_tails(found, model, rng)


def _check_tails(found: LocalEvents, model: EventModel, rng: np.random.Generator) -> None:
    """Check that beyond the tails costs are affine, and chances, rules and jumps stay the same."""
    for i in found.endless:
        tops = np.where(model.upper >= 0, model.upper, found.tails + _BEYOND)
        states = rng.integers(0, tops + 1, size=(_CHECKED, model.dimension))
        states[:, i] = found.tails[i] + rng.integers(0, _BEYOND, size=_CHECKED)
        actions = rng.integers(0, model.n_actions, size=_CHECKED)
        step = np.eye(model.dimension, dtype=np.int64)[i]
        costs, chances, moves = zip(
            *(model.expand(states + k * step, actions) for k in range(3)), strict=True
        )
        size = sum(np.abs(cost) for cost in costs) + 1.0
        where = f"scopes.tail[{i}] is {found.tails[i]}, but beyond it"
        bent = np.abs(costs[0] - 2.0 * costs[1] + costs[2]) > tolerances.DECLARED * size
        _refuse(bent, states, f"{where} the cost is not affine")
        _refuse((chances[0] != chances[1]).any(axis=1), states, f"{where} a chance changes")
        jumps = [m - (states + k * step)[:, None, :] for k, m in enumerate(moves)]
        other = ((jumps[0] != jumps[1]).any(axis=2) & (chances[0] > 0.0)).any(axis=1)
        _refuse(other, states, f"{where} an event moves by another jump")
        masks = [model.admissible_mask(states + k * step) for k in range(2)]
        _refuse((masks[0] != masks[1]).any(axis=1), states, f"{where} admissible actions change")


def _refuse(wrong: BoolArray, states: IntArray, text: str) -> None:
    if wrong.any():
        state = states[int(np.argmax(wrong))].tolist()
        raise ModelError(f"{text}, as in state {state}: declare larger scopes, or a larger tail")
