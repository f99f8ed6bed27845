"""How policies choose actions in a linear model: batches of states in, batches of actions out.

The greedy action of an affine value function minimises

    action_price' a,   action_price = action_cost + discount next_action' v,

over the admissible actions. A kernel that the problem registers finds it, or else the general
solver. Ties are decided: by the model's `preference` where there is one, then lexicographically.

A `Chooser` is plain data that can be sent to a worker; `worker()` makes the function that chooses,
one for each thread because solvers are not shared. The function takes states (n, d), the streams of
the episodes (n,) and the step, and returns actions (n, m) with a mask of the states that have dual
mass, or None.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.compiled import compiled, draw, episode_key, mix, pick
from bellweight.common.status import ModelError, PolicyError, SolverError, Status
from bellweight.common.streams import Keys
from bellweight.models import LinearModel
from bellweight.models.kernels.tables import empty_slots, fill_slots, find
from bellweight.policies.dual_rows import DualRows
from bellweight.program import IntegerProgram

Chosen = tuple[FloatArray, BoolArray | None]
Worker = Callable[[FloatArray, Keys, int], Chosen]

_DUAL_STREAM = -2
_MOST_KNOWN = 100_000
_ROUNDED = tolerances.CONSTRAINT  # compiled code reads names of its own module


@dataclass(frozen=True, eq=False)
class Chooser(ABC):
    """A policy in the form that simulations of a linear model take."""

    model: LinearModel

    @abstractmethod
    def worker(self) -> Worker:
        """Return a function that chooses, for the use of one thread."""

    @property
    def is_random(self) -> bool:
        """Whether actions depend on the streams."""
        return False

    @property
    def knows_dual(self) -> bool:
        """Whether visits to states with dual mass are told apart."""
        return False


@dataclass(frozen=True, eq=False)
class GreedyChooser(Chooser):
    """The cheapest admissible action at given prices (m,); `preference` replaces the model's."""

    action_price: FloatArray
    preference: FloatArray | None = None

    def kernel(self) -> Callable[[FloatArray], Any] | None:
        """Return the problem's own kernel for these actions, or None: use the general solver."""
        kernels, wanted = self.model.kernels, self._wanted
        if kernels is None or wanted is None:
            return None
        return kernels.greedy_action(self.action_price, wanted)

    def worker(self) -> Worker:
        act = self.kernel()
        if act is None:
            act = ActionProgram(self.model, self.action_price, self._wanted).actions
        return lambda states, keys, step: (act(states), None)

    @property
    def _wanted(self) -> FloatArray | None:
        return self.model.preference if self.preference is None else self.preference


@dataclass(frozen=True, eq=False)
class RandomChooser(Chooser):
    """A random admissible action, by the problem's kernel or variable by variable."""

    @property
    def is_random(self) -> bool:
        return True

    def worker(self) -> Worker:
        kernels = self.model.kernels
        act = None if kernels is None else kernels.random_action()
        if act is None:
            return _packed(self.model)
        return lambda states, keys, step: (act(states, keys, step), None)


@dataclass(frozen=True, eq=False)
class RuleChooser(Chooser):
    """A rule that the user wrote: states (n, d) in, actions (n, m) out, checked."""

    fn: Callable[[FloatArray], Any]

    def worker(self) -> Worker:
        def choose(states: FloatArray, keys: Keys, step: int) -> Chosen:
            try:
                actions = np.asarray(self.fn(states.copy()), dtype=np.float64)
            except (TypeError, ValueError) as problem:
                raise PolicyError(f"the rule failed on states (n, d): {problem}") from problem
            shape = (len(states), self.model.n_action_variables)
            if actions.shape != shape:
                raise PolicyError(
                    f"the rule returned shape {actions.shape} for {len(states)} states, expected "
                    f"{shape}: one action vector per state"
                )
            wrong = self.model.inadmissible(states, actions)
            if wrong is not None:
                where = self.model.state_text(states[wrong[0]])
                raise PolicyError(
                    f"the rule's action in the state where {where} is not admissible: {wrong[1]}"
                )
            return actions, None

        return choose


@dataclass(frozen=True, eq=False)
class SoftmaxChooser(Chooser):
    """A target policy mixed, in states with dual mass, with the softmax of the dual.

    `rows` are the softmax in the `states` (m, d); the `actions` (n, m) belong to its entries. It is
    over the actions that have a dual in the state: the others cannot be listed.
    """

    target: Chooser
    states: FloatArray
    actions: FloatArray
    rows: DualRows

    @property
    def is_random(self) -> bool:
        return True

    @property
    def knows_dual(self) -> bool:
        return True

    def worker(self) -> Worker:
        follow = self.target.worker()
        slots = empty_slots(len(self.states))
        fill_slots(slots, self.states)
        layout = slots, self.states, self.rows.starts, self.actions, self.rows.sums, self.rows.share

        def choose(states: FloatArray, keys: Keys, step: int) -> Chosen:
            actions, _ = follow(states, keys, step)
            return actions, _follow_dual(states, keys, step, actions, *layout)

        return choose


class ActionProgram:
    """The greedy action as a program over integers, ties included, for the general solver."""

    def __init__(
        self, model: LinearModel, price: FloatArray, preference: FloatArray | None
    ) -> None:
        self.model = model
        self.price = price
        self.preference = preference
        self._known: dict[bytes, FloatArray] = {}
        bounds = (model.action_lower, model.action_upper, model.integer_actions)
        self._first = IntegerProgram(model.action_rows, model.row_lower, model.row_upper, *bounds)
        # The same program with a row for each price, by which a price is held at its optimum.
        goals = [price] if preference is None else [price, preference]
        self._goals = [goal / max(float(np.abs(goal).max()), 1e-300) for goal in goals]
        self._second = IntegerProgram(
            np.vstack([model.action_rows.toarray(), *self._goals]),
            np.append(model.row_lower, np.full(len(goals), -np.inf)),
            np.append(model.row_upper, np.full(len(goals), np.inf)),
            *bounds,
        )

    def actions(self, states: FloatArray) -> FloatArray:
        """Return the action of each state; a state met before is not solved again."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        for state in states:
            label = state.tobytes()
            if label not in self._known:
                self._known[label] = self.action(state)
        return np.array([self._known[state.tobytes()] for state in states])

    def action(self, state: FloatArray) -> FloatArray:
        """Return the cheapest action, by preference among equals, then lexicographically."""
        model = self.model
        used = model.state_rows @ state
        low, high = model.row_lower - used, model.row_upper - used
        self._first.limit(row_lower=low, row_upper=high)
        best = self._minimised(self._first, self.price, state)
        caps = np.full(len(self._goals), np.inf)
        bounds = {"lower": model.action_lower, "upper": model.action_upper}
        for k, goal in enumerate(self._goals):
            if k > 0:
                best = self._minimised(self._second, goal, state)
            value = float(goal @ best)
            caps[k] = value + tolerances.SAME_PRICE * (1.0 + abs(value))
            self._second.limit(
                row_lower=np.append(low, np.full(len(caps), -np.inf)),
                row_upper=np.append(high, caps),
                **bounds,
            )
        return self._lexicographic(best, state)

    def _lexicographic(self, best: FloatArray, state: FloatArray) -> FloatArray:
        """Make one variable after the other as small as the optimum allows."""
        lower, upper = np.array(self.model.action_lower), np.array(self.model.action_upper)
        for k in range(len(best)):
            # A variable at its lower bound cannot be smaller.
            if best[k] > lower[k] + tolerances.PROBABILITY:
                best = self._minimised(self._second, np.eye(1, len(best), k)[0], state)
            lower[k] = upper[k] = best[k]
            self._second.limit(lower=lower, upper=upper)
        return best

    def _minimised(
        self, program: IntegerProgram, price: FloatArray, state: FloatArray
    ) -> FloatArray:
        answer = program.minimise(price)
        if answer.status is Status.INFEASIBLE:
            raise _actionless(self.model, state)
        if answer.point is None:
            raise SolverError(
                answer.status,
                f"the greedy action where {self.model.state_text(state)} was not found",
            )
        return answer.point


def action_price(model: LinearModel, coef: FloatArray) -> FloatArray:
    """Return what an action costs now and later (m,), with affine coefficients (1 + n,)."""
    return np.asarray(model.action_cost + model.discount * (model.next_action.T @ coef[1:]))


def _packed(model: LinearModel) -> Worker:
    """Return a chooser for constraints that only limit actions from above.

    Each variable in turn takes an even pick of the values that leave the others their least.
    """
    rows = model.action_rows.toarray()
    if (rows < 0.0).any() or np.isfinite(model.row_lower).any():
        signs = np.isfinite(model.row_upper).astype(int) - np.isfinite(model.row_lower)
        rows = rows * np.sign(signs)[:, None]
        if (signs == 0).any() or (rows < 0.0).any():
            raise PolicyError(
                "a random action is known only where every constraint limits the actions from "
                "above: register kernels with a `random_action` of your own"
            )
    flip = np.where(np.isfinite(model.row_upper), 1.0, -1.0)
    limit = np.where(flip > 0.0, model.row_upper, -model.row_lower)

    def choose(states: FloatArray, keys: Keys, step: int) -> Chosen:
        left = limit - flip * (model.state_rows @ states.T).T - rows @ model.action_lower
        actions = np.tile(model.action_lower, (len(states), 1))
        code = _fill_up(actions, left, rows, model.action_upper, model.integer_actions, keys, step)
        if code >= model.n_action_variables:
            raise _actionless(model, states[code - model.n_action_variables])
        if code >= 0:
            raise ModelError(
                f"no bound on {model.action_names[code]}: give action_upper or a constraint"
            )
        return actions, None

    return choose


def _actionless(model: LinearModel, state: FloatArray) -> ModelError:
    return ModelError(
        f"no action is admissible in the state where {model.state_text(state)}: widen the "
        "constraints so that every state has an action"
    )


@compiled
def _fill_up(
    actions: FloatArray,
    left: FloatArray,
    rows: FloatArray,
    upper: FloatArray,
    integer: BoolArray,
    keys: Keys,
    step: int,
) -> int:
    """Fill in actions; return -1, or a variable without bound, or m + a row without action."""
    m = actions.shape[1]
    order = np.zeros(m, dtype=np.int64)
    for row in range(actions.shape[0]):
        if left.shape[1] > 0 and left[row].min() < -_ROUNDED:
            return m + row
        key = mix(keys[row] + np.uint64(step))
        for k in range(m):
            order[k] = k
        for k in range(m):
            # Variables come in random order, or the first ones would take everything.
            other = k + int(draw(key, 2 * k) * (m - k))
            order[k], order[other] = order[other], order[k]
        for place in range(m):
            k = order[place]
            room = upper[k] - actions[row, k]
            for r in range(rows.shape[0]):
                if rows[r, k] > 0.0:
                    room = min(room, left[row, r] / rows[r, k])
            if room == np.inf:
                return k
            room = max(room, 0.0)
            u = draw(key, 2 * place + 1)
            amount = float(int(u * (int(room + _ROUNDED) + 1))) if integer[k] else u * room
            actions[row, k] += amount
            for r in range(rows.shape[0]):
                left[row, r] -= rows[r, k] * amount
    return -1


@compiled
def _follow_dual(
    states: FloatArray,
    keys: Keys,
    step: int,
    actions: FloatArray,
    slots: IntArray,
    known: FloatArray,
    first: IntArray,
    table: FloatArray,
    sums: FloatArray,
    share: FloatArray,
) -> BoolArray:
    """Replace actions in known states, each with its share; return which states are known."""
    found = np.zeros(states.shape[0], dtype=np.bool_)
    for row in range(states.shape[0]):
        place = find(states[row], slots, known)
        if place < 0:
            continue
        found[row] = True
        u = draw(episode_key(keys[row], _DUAL_STREAM), step)
        if u < share[place]:
            chosen = pick(u / share[place], sums, first[place], first[place + 1])
            actions[row] = table[chosen]
    return found
