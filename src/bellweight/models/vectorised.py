"""Functions of a step model that cannot be compiled: called with many states at once.

    step(states, action, noise)       states (n, d), noise (n, m): the next states (n, d)
    cost(states, action, noise)       costs (n,)
    admissible(states, action)        whether the action may be taken (n,)

`action` is one index. Episodes call them with one state (n = 1), or with all nodes of the noise at
once to look ahead. Rows and checks call `admissible` with all their states at once. Anything that
Python can do is allowed in them; answers of the wrong shape are errors that name the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError
from bellweight.models.function_checks import call_by_name
from bellweight.models.function_text import Held

if TYPE_CHECKING:
    from bellweight.models.step import StepModel


def held_functions(model: StepModel) -> Held:
    """Return the functions of a model under the names that its loops call them by."""
    parameters = model.numbers.given
    step = _Many(model.step, "step", ("states", "action", "noise", "parameters"), parameters)
    cost = _Many(model.cost, "cost", ("states", "action", "noise", "parameters"), parameters)
    held: list[tuple[str, Callable[..., Any]]] = [
        ("user_steps", _Steps(step, model.dimension)),
        ("user_costs", _Numbers(cost)),
        ("user_admissible", _always),
        ("user_initial", _nothing),
    ]
    if model.admissible is not None:
        names = ("states", "action", "parameters")
        allowed = _Many(model.admissible, "admissible", names, parameters)
        held[2] = ("user_admissible", _One(_Numbers(allowed)))
        held.append(("user_allowed", _Numbers(allowed)))
    if callable(model.initial) and not model.samples_starts:
        held[3] = ("user_initial", _Initial(model.initial, parameters))
    return tuple(held)


@dataclass(frozen=True, eq=False)
class _Many:
    """A function of the user's, called with the arguments that it takes."""

    function: Callable[..., Any]
    role: str
    allowed: tuple[str, ...]
    parameters: Any

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ModelError(f"{self.role} is {self.function!r}, expected a function")
        stray = [name for name in self._names if name not in self.allowed]
        if stray:
            raise ModelError(
                f"{self.role} function {self.name!r} takes {stray[0]!r}, expected only arguments "
                f"named {', '.join(self.allowed)} with vectorised=True"
            )

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__name__", self.role))

    @cached_property
    def _names(self) -> list[str]:
        return list(inspect.signature(self.function).parameters)

    def answer(self, states: Any, action: int, noise: Any = None) -> FloatArray:
        """Return what the function says, as an array of floats."""
        given = {
            "states": states.copy(), "action": int(action), "parameters": self.parameters,
            "noise": None if noise is None else noise.copy(),
        }  # fmt: skip
        try:
            answer = self.function(**{name: given[name] for name in self._names})
            found = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as problem:
            raise ModelError(
                f"{self.role} function {self.name!r} fails for {len(states)} states, the first "
                f"being {states[0].tolist()}, and action {action} ({type(problem).__name__}: "
                f"{problem}): with vectorised=True it is called with states (n, d) and noise (n, m)"
            ) from None
        if not np.array_equal(given["states"], states):
            raise ModelError(
                f"{self.role} function {self.name!r} changes the states it is given: work on a copy"
            )
        return found

    def wrong(self, shape: tuple[int, ...], wanted: str) -> ModelError:
        """Return the error of an answer of another shape."""
        return ModelError(
            f"{self.role} function {self.name!r} returns shape {shape}, expected {wanted}: one "
            "answer for each state"
        )


@dataclass(frozen=True, eq=False)
class _Steps:
    """The next states (n, d)."""

    many: _Many
    dimension: int

    def __call__(self, states: Any, action: int, noise: Any, parameters: Any) -> FloatArray:
        found = self.many.answer(states, action, noise)
        if found.ndim == 1 and self.dimension == 1:
            found = found[:, None]
        if found.shape != (len(states), self.dimension):
            raise self.many.wrong(found.shape, f"({len(states)}, {self.dimension})")
        return found


@dataclass(frozen=True, eq=False)
class _Numbers:
    """One number (n,) for each state."""

    many: _Many

    def __call__(self, states: Any, action: int, noise: Any, parameters: Any = None) -> FloatArray:
        found = self.many.answer(states, action, noise)
        if found.shape not in ((), (len(states),)):
            raise self.many.wrong(found.shape, f"({len(states)},)")
        return np.broadcast_to(found, (len(states),))


@dataclass(frozen=True, eq=False)
class _One:
    """Whether an action may be taken in one state."""

    numbers: _Numbers

    def __call__(self, state: Any, action: int, parameters: Any) -> bool:
        return bool(self.numbers(state[None, :], action, None)[0])


@dataclass(frozen=True, eq=False)
class _Initial:
    """The first state, filled in from uniform numbers, one state at a time."""

    function: Callable[..., Any]
    parameters: Any

    def __call__(self, state: Any, u: Any, parameters: Any) -> None:
        given = {"state": state, "u": u, "parameters": self.parameters}
        call_by_name(self.function, given)


def _always(state: Any, action: int, parameters: Any) -> bool:
    return True


def _nothing(state: Any, u: Any, parameters: Any) -> None:
    """Stand for an initial function that is not called."""
