"""What a user may declare of a step model, so that bounds can be proven; checked by sampling.

A declaration that a sample contradicts is refused with the place. One that no sample contradicts
may still be wrong: proofs say that they rest on it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError

if TYPE_CHECKING:
    from bellweight.models.step import StepModel

_CHECKED = 64
_SAME = 1e-9


@dataclass(frozen=True)
class Lipschitz:
    """How fast step and cost can change: in the maximum norm, for each action and each noise,

    |step(x) - step(x')| <= step |x - x'|,   |cost(x) - cost(x')| <= cost |x - x'|.
    """

    step: float
    cost: float

    def __post_init__(self) -> None:
        for name in ("step", "cost"):
            size = getattr(self, name)
            if not 0.0 <= size < np.inf:
                raise ModelError(f"lipschitz.{name} is {size}, expected a number of at least 0")


def called(model: StepModel, function: Any, **given: Any) -> Any:
    """Call one of the model's functions as plain Python, with the arguments that it takes."""
    given["parameters"] = model.numbers.given if model.numbers.layout else model.numbers.numbers
    names = inspect.signature(function).parameters
    return function(**{name: given[name] for name in names})


def stepped(model: StepModel, state: FloatArray, action: int, noise: FloatArray) -> FloatArray:
    """Return the next state (d,), by the user's function as plain Python."""
    if model.vectorised:
        answer = dict(model.held)["user_steps"](state[None, :], action, noise[None, :], None)
        return np.asarray(answer[0])
    successor = np.zeros(model.dimension)
    answer = called(
        model, model.step, state=state.copy(), action=action, noise=noise.copy(),
        successor=successor,
    )  # fmt: skip
    return successor if answer is None else np.ravel(np.asarray(answer, dtype=np.float64))


def bends_at(model: StepModel, action: int, noise: FloatArray) -> list[float]:
    """Return the declared states at which step or cost may bend."""
    found = called(model, model.bends, action=action, noise=noise)
    return [float(state) for state in np.ravel(np.asarray(found, dtype=np.float64))]


def check_declared(model: StepModel) -> None:
    """Refuse declarations that samples contradict."""
    if not isinstance(model.lipschitz, Lipschitz | None):
        raise ModelError(
            f"lipschitz is {model.lipschitz!r}, expected Lipschitz(step=..., cost=...)"
        )
    allowed = {"action", "noise", "parameters"}
    if model.bends is not None and (
        not callable(model.bends) or set(inspect.signature(model.bends).parameters) - allowed
    ):
        raise ModelError(
            f"bends is {model.bends!r}, expected a function of action, noise and parameters, or of "
            "some of them, that returns a list of states"
        )
    if model.bends is not None and model.dimension != 1:
        raise ModelError(
            f"bends is given for a model of dimension {model.dimension}, expected 1: declare "
            "lipschitz=Lipschitz(step, cost)"
        )
    rng = np.random.default_rng(0)
    low, high = model.finite_box()
    for _ in range(_CHECKED):
        action = int(rng.integers(model.n_actions))
        noise = model.nodes[rng.integers(model.n_nodes)]
        if model.bends is not None:
            ends = np.unique(np.clip([low[0], *bends_at(model, action, noise), high[0]], low, high))
            pieces = list(pairwise(ends))
            left, right = pieces[rng.integers(len(pieces))]
            _check_line(model, action, noise, left, right)
        if model.lipschitz is not None:
            first = low + (high - low) * rng.random(model.dimension)
            apart = (high - low) * rng.normal(size=model.dimension) * 10.0 ** rng.uniform(-4, -1)
            _check_pair(model, action, noise, first, np.clip(first + apart, low, high))


def _check_line(
    model: StepModel, action: int, noise: FloatArray, left: float, right: float
) -> None:
    """Refuse a step or a cost that is no line between two bends."""
    middle = 0.5 * (left + right)
    points = [np.array([x]) for x in (left, middle, right)]
    for name in ("step", "cost"):
        numbers = [_answer(model, name, x, action, noise)[0] for x in points]
        size = sum(map(abs, numbers)) + 1.0
        if abs(numbers[0] - 2.0 * numbers[1] + numbers[2]) > _SAME * size:
            raise ModelError(
                f"bends declares none between the states {left:.6g} and {right:.6g} for action "
                f"{action} ({model.label(action)}) and noise {noise.tolist()}, but {name} is no "
                f"line there ({numbers[0]:.6g}, {numbers[1]:.6g}, {numbers[2]:.6g}): name all bends"
            )


def _check_pair(
    model: StepModel, action: int, noise: FloatArray, first: FloatArray, second: FloatArray
) -> None:
    """Refuse Lipschitz constants that two states contradict."""
    assert model.lipschitz is not None
    apart = float(np.abs(first - second).max())
    for name in ("step", "cost"):
        before, after = (_answer(model, name, x, action, noise) for x in (first, second))
        size = np.abs(before).max() + np.abs(after).max() + 1.0
        change = float(np.abs(before - after).max())
        if change > getattr(model.lipschitz, name) * apart + _SAME * size:
            raise ModelError(
                f"lipschitz.{name} is {getattr(model.lipschitz, name):g}, but between the states "
                f"{first.tolist()} and {second.tolist()}, {apart:.3g} apart, {name} changes by "
                f"{change:.6g} for action {action} ({model.label(action)}) and noise "
                f"{noise.tolist()}: declare at least {change / apart:.6g}"
            )


def _answer(
    model: StepModel, name: str, state: FloatArray, action: int, noise: FloatArray
) -> FloatArray:
    if name == "step":
        return stepped(model, state, action, noise)
    if model.vectorised:
        answer = dict(model.held)["user_costs"](state[None, :], action, noise[None, :])
        return np.asarray(answer)
    paid = called(model, model.cost, state=state.copy(), action=action, noise=noise.copy())
    return np.array([float(paid)])
