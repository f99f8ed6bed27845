"""What a user may declare of a step model, so that bounds can be proven; checked by sampling.

A declaration that a sample contradicts is refused with the place. One that no sample contradicts
may still be wrong: proofs say that they rest on it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.short import vector_text
from bellweight.common.status import ModelError
from bellweight.models.function_checks import call_by_name

if TYPE_CHECKING:
    from bellweight.models.step import StepModel

_CHECKED = 64
_ROUNDED = 64.0 * 2.0**-53  # of a state's size: how far rounding may move a bend


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
    return call_by_name(function, {**given, "parameters": model.numbers.given})


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


def bends_at(model: StepModel, action: int, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return normals (n, d) and offsets (n,): step or cost may bend where normal . x = offset."""
    found = called(model, model.bends, action=action, noise=noise)
    d = model.dimension
    try:
        array = np.asarray(found, dtype=np.float64)
        array = array.reshape(-1, 1) if d == 1 else array.reshape(-1, d + 1)
    except (TypeError, ValueError):
        array = np.array([[np.nan]])
    if not np.isfinite(array).all():
        wanted = "a list of states" if d == 1 else f"a list of lines, {d + 1} numbers each"
        raise ModelError(
            f"bends returns {found!r} for action {action} ({model.label(action)}) and noise "
            f"{vector_text(noise)}, expected {wanted}"
        )
    return (np.ones_like(array), array[:, 0]) if d == 1 else (array[:, :-1], array[:, -1])


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
    if model.bends is not None and model.dimension > 2:
        raise ModelError(
            f"bends is given for a model of dimension {model.dimension}, expected 1 or 2: declare "
            "lipschitz=Lipschitz(step, cost)"
        )
    rng = np.random.default_rng(0)
    low, high = model.finite_box()
    for _ in range(_CHECKED):
        action = int(rng.integers(model.n_actions))
        noise = model.nodes[rng.integers(model.n_nodes)]
        if model.bends is not None:
            # In one dimension from end to end; otherwise from any state to any other.
            first, last = (
                (low, high) if model.dimension == 1 else low + (high - low) * rng.random((2, 2))
            )
            _check_straight(model, action, noise, first, last, rng)
        if model.lipschitz is not None:
            first = low + (high - low) * rng.random(model.dimension)
            apart = (high - low) * rng.normal(size=model.dimension) * 10.0 ** rng.uniform(-4, -1)
            _check_pair(model, action, noise, first, np.clip(first + apart, low, high))


def _check_straight(
    model: StepModel,
    action: int,
    noise: FloatArray,
    first: FloatArray,
    last: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Refuse a step or a cost that is not affine between two bends on a line between states."""
    normals, offsets = bends_at(model, action, noise)
    if np.array_equal(first, last):
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (offsets - normals @ first) / (normals @ (last - first))
    share = np.unique([0.0, *share[(share > 0.0) & (share < 1.0)], 1.0])
    n = int(rng.integers(len(share) - 1))
    left, right = (first + part * (last - first) for part in share[n : n + 2])
    points = [left, 0.5 * (left + right), right]
    for name in ("step", "cost"):
        numbers = [_answer(model, name, x, action, noise) for x in points]
        allowed = tolerances.DECLARED * (float(np.sum(np.abs(numbers))) + 1.0)
        allowed += max(_rounding(model, name, x, action, noise) for x in points)
        if np.abs(numbers[0] - 2.0 * numbers[1] + numbers[2]).max() > allowed:
            between = " and ".join(str([float(f"{v:.6g}") for v in x]) for x in (left, right))
            told = ", ".join(str([float(f"{v:.6g}") for v in x]) for x in numbers)
            raise ModelError(
                f"bends declares none between the states {between} for action {action} "
                f"({model.label(action)}) and noise {vector_text(noise)}, but {name} is no line "
                f"there ({told}): name all bends"
            )


def _rounding(
    model: StepModel, name: str, state: FloatArray, action: int, noise: FloatArray
) -> float:
    """Return by how much step or cost may be off because states and bends are rounded.

    It is how much they change when a state moves by some rounding errors within the box.
    """
    low, high = model.finite_box()
    inwards = np.where(state > 0.5 * (low + high), -1.0, 1.0)
    lengths = _ROUNDED * np.maximum(np.abs(low), np.abs(high)) * inwards
    here = _answer(model, name, state, action, noise)
    moved = [_answer(model, name, state + by, action, noise) for by in np.diag(lengths)]
    return float(sum(np.abs(there - here).max() for there in moved))


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
        moved = apart + _ROUNDED * float(np.abs([first, second]).max())
        if change > getattr(model.lipschitz, name) * moved + tolerances.DECLARED * size:
            raise ModelError(
                f"lipschitz.{name} is {getattr(model.lipschitz, name):g}, but between the states "
                f"{vector_text(first)} and {vector_text(second)}, {apart:.3g} apart, {name} "
                f"changes by {change:.6g} for action {action} ({model.label(action)}) and noise "
                f"{vector_text(noise)}: declare at least {change / apart:.6g}"
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
