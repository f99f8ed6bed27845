"""The compiled loops of one model, called with arrays and answering with arrays or errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.short import vector_text
from bellweight.common.status import ModelError
from bellweight.common.streams import Keys
from bellweight.models.compile import Source
from bellweight.models.function_checks import naming
from bellweight.models.kernels import layouts
from bellweight.models.kernels.layouts import (
    Acting,
    After,
    Batch,
    Functions,
    Given,
    Kept,
    Look,
    Quadratic,
    Scale,
    Where,
    Work,
    writable,
)

_SIDE_BY_SIDE = 128  # states whose slacks are computed together: their numbers stay in the cache
_SAMPLED_NUMBERS = 1 << 20  # random numbers that a sampler draws at a time

_TEXT = {
    layouts.BAD_PROBABILITY: "the event probabilities are negative, NaN or sum to more than 1",
    layouts.BAD_COST: "the cost is not finite",
    layouts.BAD_ACTION: "the policy's action is not admissible",
    layouts.NO_ACTION: "no action is admissible",
    layouts.NOT_A_NUMBER: "the next state is not finite",
    layouts.NOT_WHOLE: "the next state has a fraction in a coordinate that integer= declares whole",
    layouts.WRONG_LENGTH: "step returns a state of the wrong length",
}

_OF_A_STEP = (
    layouts.OUTSIDE, layouts.BAD_COST, layouts.NOT_A_NUMBER, layouts.NOT_WHOLE,
    layouts.WRONG_LENGTH,
)  # fmt: skip
_OF_THE_NEXT_STATE = (layouts.OUTSIDE, layouts.NOT_A_NUMBER, layouts.NOT_WHOLE)


def nothing() -> Functions:
    """Return a list of no functions but the constant."""
    none, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
    one = np.zeros(1, dtype=np.int64)
    return Functions(one, one, none, one, none, numbers, numbers)


@dataclass(frozen=True, eq=False)
class Value:
    """A value function: functions with coefficients (J, W), the largest of J; or a quadratic."""

    functions: Functions
    coef: FloatArray
    quadratic: Quadratic | None = None


class Closest(NamedTuple):
    """Of some scans: keys of the rows of least slack, relative to their sizes, and of near rows."""

    keys: IntArray
    relative: FloatArray
    size: FloatArray
    near: IntArray
    violation: float


@dataclass(frozen=True, eq=False)
class Loops:
    """The text of a compiled model, the numbers it works on, and how to say what went wrong.

    It holds no function of the user's but samplers: `sample` draws the random numbers (n, H, m) of
    episodes, `sample_starts` their first states (n, d), where the model has such functions.
    """

    source: Source
    data: Any
    discount: float
    labels: tuple[str, ...]
    dimension: int
    n_events: int
    n_draws: int
    n_noise: int = 0
    state_type: Any = np.int64
    keeps_events: bool = True
    leaving: str = "an event leads to a negative state"
    sample: Callable[[int, int, int, Keys], FloatArray] | None = None
    sample_starts: Callable[[int, int, np.uint64], FloatArray] | None = None
    _in_memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.labels)

    def of(self, source: Source) -> Loops:
        """Return these loops with another text, such as one with a rule."""
        return replace(self, source=source)

    def allowed(self, states: Any, *, some: bool = True) -> BoolArray:
        """Return which actions are admissible in which states, (n, A).

        With `some`, a state without any is an error.
        """
        mask = np.zeros((len(states), self.n_actions), dtype=np.bool_)
        where = self._where()
        module = self.source.load()
        with naming(where.state):
            if hasattr(module, "user_allowed"):
                for action in range(self.n_actions):
                    mask[:, action] = module.user_allowed(states, action, None)
            else:
                self._run("allowed", writable(states), self.data, mask, where)
        empty = np.flatnonzero(~mask.any(axis=1))
        if some and len(empty):
            where.state[:] = states[empty[0]]
            raise self.fault(layouts.NO_ACTION, where, -1)
        return mask

    def expand(self, states: Any, actions: IntArray) -> tuple[FloatArray, FloatArray, Any]:
        """Return cost (n,), chances (n, E) and successors (n, E, d) of some pairs."""
        n, states, actions = len(states), writable(states), writable(actions)
        cost, chances = np.zeros(n), np.zeros((n, self.n_events))
        successors = np.zeros((n, self.n_events, self.dimension), dtype=self.state_type)
        work = self._work(None)
        self._call("expand", states, actions, self.data, cost, chances, successors, work)
        return cost, chances, successors

    def bellman_rows(
        self, states: Any, actions: IntArray, functions: Functions | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return phi(x) - discount E[phi(next)] (n, W) and the cost (n,) of some pairs."""
        functions = functions or nothing()
        rows, cost = np.zeros((len(states), len(functions.prefix))), np.zeros(len(states))
        self._call(
            "bellman_rows", writable(states), writable(actions), self.discount, self.data,
            functions, rows, cost, self._after(functions), self._work(functions),
        )  # fmt: skip
        return rows, cost

    def slacks(self, states: Any, value: Value) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the Bellman residual (n, A) of all actions, their costs and the values (n,).

        The residual of an inadmissible action is infinite.
        """
        n = len(states)
        slack, cost = np.zeros((n, self.n_actions)), np.zeros((n, self.n_actions))
        values = np.zeros(n)
        self._call(
            "slacks", writable(states), self.discount, self.data, value.functions, value.coef,
            value.quadratic, slack, cost, values, self._work(value.functions),
        )  # fmt: skip
        return slack, cost, values

    def closest(
        self, states: Any, starts: IntArray, value: Value, scale: Scale, n_close: int, span: int
    ) -> Closest:
        """Return the closest rows of every `span` states, whose rows begin at `starts` (n + 1,)."""
        shape = (-(-len(states) // span), n_close)
        kept = Kept(
            np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(shape),
            np.empty(int(starts[-1] - starts[0]), dtype=np.int64),
            np.zeros((shape[0], 4), dtype=np.int64), np.zeros(shape[0]),
        )  # fmt: skip
        module, work = self.source.load(), self._work(value.functions)
        together = module.SIDE_BY_SIDE and value.quadratic is not None
        self._call(
            "closest_rows", writable(states), starts, span, self.discount, self.data,
            value.functions, value.coef, value.quadratic, scale, kept, self._batch(),
            None if together else work, work,
        )  # fmt: skip
        n_found, _, n_near, _ = kept.counts.T
        found = np.arange(n_close) < n_found[:, None]
        return Closest(
            kept.place[found], kept.relative[found], kept.size[found],
            kept.near[: n_near.sum()].copy(), float(kept.violations.max()),
        )  # fmt: skip

    def initial_states(self, first: int, last: int, key: np.uint64) -> Any:
        """Return the first states of episodes first, ..., last - 1."""
        states = np.zeros((last - first, self.dimension), dtype=self.state_type)
        where, given = self._where(), Given(np.zeros((0, 0, 0)), self._starts(first, last, key))
        with naming(where.state):
            outside, _ = self._run(
                "initial_states", first, last, key, self.data, given, states, self._work(None),
                where,
            )  # fmt: skip
        if outside:
            side = self._side_passed(where.state) if hasattr(self.data, "lower") else ""
            raise ModelError(
                f"initial gives the state {vector_text(where.state)}, outside the state space"
                f"{side}: correct it, or widen the bounds"
            )
        return states

    def rollout(
        self,
        first: int,
        last: int,
        horizon: int,
        keys: Keys,
        policy: Acting,
        functions: Functions | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return discounted costs (n,), features (n, W) and visits with dual mass (n,)."""
        n = last - first
        costs, hits = np.zeros(n), np.zeros(n)
        sums = np.zeros((n, 0 if functions is None else len(functions.prefix)))
        seen = functions or nothing()
        for part, given in self._sampled(first, last, horizon, keys):
            here = slice(part.start - first, part.stop - first)
            self._call(
                "rollout", part.start, part.stop, horizon, keys, self.discount, self.data, policy,
                seen, given, costs[here], sums[here], hits[here], self._work(seen),
                self._work(policy.functions, policy),
            )  # fmt: skip
        return costs, sums, hits

    def occupied_states(self, first: int, last: int, keys: Keys, policy: Acting) -> Any:
        """Return one state per episode, drawn from the policy's discounted occupancy."""
        states = np.zeros((last - first, self.dimension), dtype=self.state_type)
        # An episode is longer than this once in 10^12 times.
        longest = int(np.ceil(-12.0 * np.log(10.0) / np.log(self.discount)))
        for part, given in self._sampled(first, last, longest, keys):
            self._call(
                "occupied_states", part.start, part.stop, keys, self.discount, self.data, policy,
                given, states[part.start - first : part.stop - first],
                self._work(policy.functions, policy),
            )  # fmt: skip
        return states

    def act(self, states: Any, u: FloatArray, policy: Acting) -> IntArray:
        """Return the policy's actions (n,) in states (n, d), drawn with uniform numbers (n,)."""
        actions = np.zeros(len(states), dtype=np.int64)
        work = self._work(policy.functions, policy)
        self._call("act", writable(states), u, self.discount, self.data, policy, actions, work)
        return actions

    def acting(self, policy: Acting) -> Callable[[Any, float], int]:
        """Return the function from one state (d,) and a uniform number to the policy's action.

        It keeps the arrays that loops write to, so that a call costs little; it is for one thread.
        """
        states, drawn = np.zeros((1, self.dimension), dtype=self.state_type), np.zeros(1)
        actions = np.zeros(1, dtype=np.int64)
        work, where = self._work(policy.functions, policy), self._where()
        act, discount = self.source.load().act, self.discount
        handed = tuple(self._handed(self.data, policy, actions, work, where))

        def one(state: Any, u: float) -> int:
            states[0], drawn[0] = state, u
            try:
                code, _ = act(states, drawn, discount, *handed)
            except Exception:
                code = -1
            # A fault happens again in `act`, which says what is wrong.
            return int(self.act(states, drawn, policy)[0] if code else actions[0])

        return one

    def fault(self, code: int, where: Where, action: int) -> ModelError:
        """Return the error for a fault that a loop met in a state and with an action."""
        text = self.leaving if code == layouts.OUTSIDE else _TEXT[code]
        named = ""
        if 0 <= action < self.n_actions:
            named = f", action {action} ({self.labels[action]})"
        elif code == layouts.BAD_ACTION:
            named = f", action {action} (there are {self.n_actions}, counted from 0)"
        if code == layouts.BAD_PROBABILITY and named:
            text += f", found {self._wrong_chance(where.state, action)}"
        if self.n_noise and code in _OF_A_STEP:
            named += f", noise {vector_text(where.noise)}"
            text += self._led_to(where, action) if code in _OF_THE_NEXT_STATE else ""
        remedy = "change the policy" if code == layouts.BAD_ACTION else "correct the model there"
        return ModelError(f"in state {vector_text(where.state)}{named}: {text}: {remedy}")

    def _wrong_chance(self, state: Any, action: int) -> str:
        """Return which number is wrong with the event probabilities: one of them, or their sum."""
        events = range(self.n_events)
        chances = [float(self._run("chance_of", state, action, e, self.data)) for e in events]
        wrong = [f"{p:.12g} for event {e}" for e, p in enumerate(chances) if not p >= 0]
        return wrong[0] if wrong else f"the sum {sum(chances):.12g}"

    def _led_to(self, where: Where, action: int) -> str:
        """Return where a faulty step leads: the user's function once more, as plain Python."""
        module = self.source.as_python.load()
        raw, numbers = np.zeros(self.dimension), self.data.parameters
        state, noise = where.state.copy(), where.noise.copy()
        with np.errstate(all="ignore"):
            if hasattr(module, "user_steps"):
                raw = module.user_steps(state[None, :], action, noise[None, :], numbers)[0]
            else:
                module.user_step(state, action, noise, numbers, raw)
        return f": {vector_text(raw)}{self._side_passed(raw)}"

    def _side_passed(self, raw: FloatArray) -> str:
        """Return which coordinate of a next state (d,) lies outside the box, if one does."""
        outside = np.flatnonzero((raw < self.data.lower) | (raw > self.data.upper))
        if len(outside) == 0:
            return ""
        i = outside[0]
        low, high = self.data.lower[i], self.data.upper[i]
        past = max(low - raw[i], raw[i] - high)
        return f" (coordinate {i} has to be in [{low:g}, {high:g}], it is {past:.3g} outside)"

    def _where(self) -> Where:
        return Where(np.zeros(self.dimension, dtype=self.state_type), np.zeros(self.n_noise))

    def _work(self, functions: Functions | None, policy: Acting | None = None) -> Work:
        n_functions = 0 if functions is None else len(functions.prefix)
        n_atoms = 0 if functions is None else self.dimension + len(functions.kind)
        return Work(
            np.zeros(self.n_draws), np.zeros(self.dimension, dtype=self.state_type),
            np.zeros(self.dimension), np.zeros(self.n_noise), np.zeros(self.dimension),
            np.zeros(self.n_events), np.zeros(self.n_actions), np.zeros(self.n_actions),
            np.zeros(self.n_actions), np.zeros(n_atoms), np.zeros(n_functions), self._look(policy),
        )  # fmt: skip

    def _batch(self) -> Batch:
        n, n_events = _SIDE_BY_SIDE, self.n_events if self.keeps_events else 1
        of_states = (np.zeros((self.dimension, n)), np.zeros((self.dimension, n)))
        of_actions = (np.zeros((self.n_actions, n)), np.zeros((self.n_actions, n)))
        return Batch(
            *of_states, np.zeros(n), np.zeros(n), np.zeros((n_events, n)), *of_actions,
            np.zeros(n), np.zeros(n), np.zeros(n),
        )  # fmt: skip

    def _look(self, policy: Acting | None) -> Look | None:
        """Return what a lookahead writes to, if the policy has one."""
        if policy is None or policy.lookahead is None:
            return None
        n_events = self.n_events if self.keeps_events else 0
        copies = max(self.n_actions, n_events) + 1
        candidates = self.n_actions + n_events
        states = (copies, self.dimension)
        by_copy, by_candidate = np.zeros(copies), np.zeros(candidates)
        marks, marked = by_copy.astype(np.int64), by_candidate.astype(np.int64)
        return Look(
            np.zeros(states, dtype=self.state_type), np.zeros(states, dtype=self.state_type),
            marks, marks.copy(), marks.copy(), by_copy, np.zeros((candidates, copies)),
            by_candidate, by_candidate.copy(), by_candidate.copy(), marked, marked.copy(),
            marked.copy(), marked.copy(), np.zeros((0, 0)),
        )  # fmt: skip

    def _after(self, functions: Functions) -> After:
        n, kept = len(functions.prefix), self.n_events if self.keeps_events else 1
        reached = np.zeros(self.n_events, dtype=np.bool_)
        return After(np.zeros(n), np.zeros(n), np.zeros((kept, n)), reached)

    def _call(self, name: str, *arguments: Any) -> None:
        where = self._where()
        with naming(where.state):
            code, action = self._run(name, *arguments, where)
        if code:
            raise self.fault(code, where, action)

    def _run(self, name: str, *arguments: Any) -> Any:
        """Call a loop."""
        return getattr(self.source.load(), name)(*self._handed(*arguments))

    def _handed(self, *arguments: Any) -> Iterable[Any]:
        """Return arguments as loops take them: compiled ones take named tuples by their address."""
        if not self.source.compiled:
            return arguments
        from bellweight.models.kernels.records import in_memory  # which imports Numba

        if "data" not in self._in_memory:
            self._in_memory["data"] = in_memory(self.data)
        known = self._in_memory["data"]
        return (known if given is self.data else in_memory(given) for given in arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_in_memory": {}}  # addresses mean nothing to another process

    def _starts(self, first: int, last: int, key: np.uint64) -> FloatArray:
        if self.sample_starts is None:
            return np.zeros((0, self.dimension))
        return self.sample_starts(first, last, key)

    def _sampled(
        self, first: int, last: int, horizon: int, keys: Keys
    ) -> Iterator[tuple[slice, Given]]:
        """Cut episodes into parts, each with what samplers draw for it."""
        size = last - first
        if self.sample is not None:
            size = max(1, _SAMPLED_NUMBERS // (horizon * self.n_noise))
        for start, stop in pairwise([*range(first, last, size), last]):
            noise = np.zeros((stop - start, 0, 0))
            if self.sample is not None:
                noise = self.sample(start, stop, horizon, keys)
            yield slice(start, stop), Given(noise, self._starts(start, stop, keys[0]))
