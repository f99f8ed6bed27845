"""Single steps of a Gymnasium environment, from any state: it is set to the state first.

An environment can be set if its state is all that decides a step, random numbers apart: its
attribute `state` or `s`, or what its method `set_state` takes. Before every step all attributes are
put back to what they were after a reset, then the state is set. Steps of real episodes are replayed
to check that this gives what the environment does.
"""

from __future__ import annotations

import copy
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common import identity
from bellweight.common.status import ArgumentError, ModelError
from bellweight.interchange.assembly import Transitions

_ATTRIBUTES = ("state", "s")
_CHECKED_EPISODES, _CHECKED_STEPS = 4, 30
_RESETS = 1_000
_MOST_ACTIONS = 2**31


@dataclass(frozen=True)
class Step:
    """What a step led to."""

    state: Any
    reward: float
    terminated: bool


class Trials:
    """A copy of an environment that takes single steps; the original is left alone."""

    def __init__(self, env: Any) -> None:
        bare = getattr(env, "unwrapped", env)
        self.kind = type(bare).__name__
        try:
            self.env = copy.deepcopy(bare)
        except Exception as problem:
            raise ArgumentError(
                f"{self.kind} cannot be copied ({type(problem).__name__}: {problem}): make it "
                "without render_mode"
            ) from None
        self.env.reset(seed=0)
        self._kept = dict(vars(self.env))
        self._name = self._attribute()
        self._last: tuple[Any, Step] | None = None
        self.is_random = False
        self._check_replays()

    @property
    def digest(self) -> str:
        """What the environment is: its class and its numbers."""
        spec = getattr(self.env, "spec", None)
        plain = (bool, int, float, str)
        numbers = {
            name: value
            for name, value in self._kept.items()
            if isinstance(value, plain) or (isinstance(value, np.ndarray) and name != self._name)
        }
        kind = type(self.env)
        named = (kind.__module__, kind.__qualname__, str(getattr(spec, "id", "")))
        texts = tuple(f"{name}={value!r}" for name, value in sorted(numbers.items()))
        return identity.digest((named, texts))

    @property
    def state(self) -> Any:
        """The state of the environment as it stands."""
        return state_of(self.env)

    @property
    def n_actions(self) -> int:
        """Number of actions; an environment whose actions cannot be listed is refused."""
        space = self.env.action_space
        if not hasattr(space, "n") or np.ndim(space.n):
            raise ArgumentError(
                f"the actions of {self.kind} are {space}, expected Discrete(n): only finitely many "
                "actions can be compared, so list some of them in a wrapper"
            )
        return int(space.n)

    def check_observed(self) -> None:
        """Complain where the state is not the observation, a whole number."""
        seen, _ = self.env.reset(seed=0)
        if np.ndim(self.state) or np.ndim(seen) or seen != self.state:
            raise ArgumentError(
                f"{self.kind} has no table P, and its state {self.state!r} is not its observation "
                f"{seen!r}: states cannot be listed"
            )

    def index(self, state: Any, n_states: int) -> int:
        """Return a state as an index."""
        if not 0 <= int(state) < n_states or int(state) != state:
            raise ArgumentError(
                f"{self.kind} leads to the state {state}, expected 0 to {n_states - 1}"
            )
        return int(state)

    def start(self, rng: np.random.Generator) -> Any:
        """Return the state after a reset."""
        self.env.reset(seed=int(rng.integers(2**31)))
        return copy.copy(self.state)

    def step(self, state: Any, action: int, seed: float | None = None) -> Step:
        """Return what an action leads to from a state; `seed` decides the random numbers."""
        key = (np.asarray(state).tobytes(), int(action), seed)
        if self._last is None or self._last[0] != key:
            generator = None if seed is None else np.random.default_rng(int(seed))
            self._last = key, self._taken(state, int(action), generator)
        return self._last[1]

    def _taken(self, state: Any, action: int, generator: Any) -> Step:
        vars(self.env).update(self._kept)
        try:
            self._set(state)
            if generator is not None:
                self.env.np_random = generator
            _, reward, terminated, _, _ = self.env.step(first_action(self.env) + action)
        except Exception as problem:
            raise ModelError(
                f"{self.kind} fails in state {np.asarray(state).tolist()} with action {action} "
                f"({type(problem).__name__}: {problem})"
            ) from None
        return Step(copy.copy(self.state), float(reward), bool(terminated))

    def _set(self, state: Any) -> None:
        if hasattr(self.env, "set_state"):
            self.env.set_state(copy.copy(state))
        else:
            setattr(self.env, self._name, copy.copy(state))

    def _attribute(self) -> str:
        found = _attribute_of_state(self.env)
        if found is None:
            raise ArgumentError(
                f"{self.kind} cannot be set to a state: it has neither an attribute state nor s "
                "that holds its state after a reset; write a StepModel of it"
            )
        return found

    def _check_replays(self) -> None:
        """Compare steps of episodes with the same steps from states that are set."""
        rng = np.random.default_rng(0)
        for episode in range(_CHECKED_EPISODES):
            self.env.reset(seed=episode)
            seen = []
            for _ in range(_CHECKED_STEPS):
                before, generator = copy.copy(self.state), copy.deepcopy(self.env.np_random)
                drawn = copy.deepcopy(generator)
                action = int(rng.integers(self.n_actions))
                _, reward, terminated, _, _ = self.env.step(first_action(self.env) + action)
                used = self.env.np_random.bit_generator.state != generator.bit_generator.state
                self.is_random = self.is_random or used
                after = Step(copy.copy(self.state), float(reward), bool(terminated))
                seen.append((before, action, drawn, after))
                if terminated:
                    break
            for before, action, drawn, after in reversed(seen):
                self._compare(before, action, self._taken(before, action, drawn), after)

    def _compare(self, before: Any, action: int, again: Step, after: Step) -> None:
        same = np.shape(again.state) == np.shape(after.state) and np.allclose(
            np.asarray(again.state, dtype=np.float64), np.asarray(after.state, dtype=np.float64)
        )
        if not same or again.reward != after.reward or again.terminated != after.terminated:
            raise ArgumentError(
                f"{self.kind} cannot be set to a state: action {action} in "
                f"{np.asarray(before).tolist()} led to {np.asarray(after.state).tolist()} with "
                f"reward {after.reward} in an episode, and to {np.asarray(again.state).tolist()} "
                f"with reward {again.reward} when its state was set; its state is not all that "
                "decides a step, or it draws random numbers from elsewhere than np_random"
            )


def state_of(env: Any) -> Any:
    """Return the state of an environment that can be set."""
    bare = getattr(env, "unwrapped", env)
    name = _attribute_of_state(bare)
    if name is None:
        raise ArgumentError(f"{type(bare).__name__} has no state yet: call env.reset() first")
    return getattr(bare, name)


def first_action(env: Any) -> int:
    """Return the number that an environment gives to its first action, which is 0 in a model."""
    return int(getattr(env.action_space, "start", 0))


def _attribute_of_state(env: Any) -> str | None:
    """Return the attribute that holds the state of an environment, None before its reset."""
    return next((name for name in _ATTRIBUTES if getattr(env, name, None) is not None), None)


class Moves:
    """Transitions as they are found; those that end an episode lead to one more state.

    Their number is given in advance: arrays that grow side by side waste memory.
    """

    def __init__(self, n_states: int, n_moves: int) -> None:
        self.n_states, self.ends, self._count = n_states, 0, 0
        n_rows = n_moves + 1  # the last for the state after the end
        self._state, self._action = array("i", [0]) * n_rows, array("i", [0]) * n_rows
        self._successor = array("i", [0]) * n_rows
        self._chance, self._reward = array("d", [0.0]) * n_rows, array("d", [0.0]) * n_rows

    def add(
        self, state: int, action: int, following: int, chance: float, reward: float, ended: bool
    ) -> None:
        """Note one transition; if it ends the episode, its next state does not matter."""
        if not (ended or 0 <= following < self.n_states):
            raise ModelError(
                f"state {state}, action {action} leads to state {following}, expected 0 to "
                f"{self.n_states - 1}"
            )
        if not 0 <= action < _MOST_ACTIONS:
            raise ModelError(
                f"state {state} has the action {action}, expected 0 to {_MOST_ACTIONS - 1}"
            )
        self.ends = max(self.ends, int(ended))
        count = self._count
        self._state[count], self._action[count] = state, action
        self._successor[count] = self.n_states if ended else following
        self._chance[count], self._reward[count] = chance, reward
        self._count += 1

    def transitions(self) -> Transitions:
        """Return all of them, the state after the end among them if there is one."""
        if self.ends:
            self.add(self.n_states, 0, self.n_states, 1.0, 0.0, True)
        state, action, successor = (
            np.frombuffer(part, dtype=np.int32)[: self._count]
            for part in (self._state, self._action, self._successor)
        )
        chances, rewards = (
            np.frombuffer(part)[: self._count] for part in (self._chance, self._reward)
        )
        return Transitions(state, action, successor, chances, rewards)


def tried(env: Any, draws: int | None, initial: Any) -> tuple[Transitions, int, int, Any]:
    """Return what every action leads to in every state, as `_listed` does, and the initial law."""
    bare = getattr(env, "unwrapped", env)
    n_states = getattr(bare.observation_space, "n", None)
    if n_states is None:
        raise ArgumentError(
            f"{type(bare).__name__} has no table P of its transitions, and its observations are "
            f'{bare.observation_space}, which cannot be listed: pass kind="step"'
        )
    trials = Trials(env)
    trials.check_observed()
    if trials.is_random and draws is None:
        raise ArgumentError(
            f"{trials.kind} has no table P and its steps are random: pass draws=1000, and chances "
            "are the frequencies of so many steps"
        )
    times = draws if trials.is_random and draws is not None else 1
    moves = Moves(int(n_states), int(n_states) * trials.n_actions * times)
    for state in range(moves.n_states):
        for action in range(trials.n_actions):
            for draw in range(times):
                step = trials.step(state, action, draw if trials.is_random else None)
                following = trials.index(step.state, moves.n_states)
                moves.add(state, action, following, 1.0 / times, step.reward, step.terminated)
    law = initial
    if law is None:
        rng = np.random.default_rng(0)
        starts = [trials.index(trials.start(rng), moves.n_states) for _ in range(_RESETS)]
        law = np.bincount(starts, minlength=moves.n_states) / _RESETS
    rows = moves.transitions()
    return rows, moves.n_states, moves.ends, law
