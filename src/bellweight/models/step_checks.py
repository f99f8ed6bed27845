"""Checks of a step model's functions when it is built: answers, inputs, first states."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common import checks
from bellweight.common.short import vector_text
from bellweight.common.status import ModelError
from bellweight.models.declared import called
from bellweight.models.function_checks import call_by_name

if TYPE_CHECKING:
    from bellweight.models.step import StepModel

_CHECKED_STATES = 32


def place_of(function: Any, role: str) -> str:
    """Return which function it is and where it stands."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", role)
    where = "" if code is None else f" ({Path(code.co_filename).name}, line {code.co_firstlineno})"
    return f"{role} function {name!r}{where}"


def first_answer(model: StepModel, state: Any) -> Any:
    """Return what step answers in a first state (d,): its form decides how it is called."""
    answer = _called(model, model.step, "step", state)
    array = np.asarray(answer)
    if array.dtype.kind not in "biuf" or array.shape not in _shapes(model):
        found = "nothing" if answer is None else f"{answer!r}"
        raise ModelError(
            f"{place_of(model.step, 'step')} returns {found}, expected the next state, "
            f"{model.dimension} numbers: return them as a tuple or an array, or take `successor` "
            "and fill it in"
        )
    return answer


def _shapes(model: StepModel) -> list[tuple[int, ...]]:
    return [(model.dimension,), ()] if model.dimension == 1 else [(model.dimension,)]


def check_functions(model: StepModel, state: Any) -> None:
    """Call each function once; refuse unusable answers, and changes of state or noise."""
    if "successor" in inspect.signature(model.step).parameters:
        _called(model, model.step, "step", state)
    else:
        first_answer(model, state)
    _check_number(model.cost, "cost", _called(model, model.cost, "cost", state), "a number")
    # The last action too: there an array with too few numbers fails.
    last = _some_action(model, state, -1)
    _called(model, model.step, "step", state, last)
    _called(model, model.cost, "cost", state, last)
    if model.admissible is not None:
        answer = _called(model, model.admissible, "admissible", state)
        _check_number(model.admissible, "admissible", answer, "True or False")


def _check_number(function: Any, role: str, answer: Any, expected: str) -> None:
    array = np.asarray(answer)
    if array.dtype.kind not in "biuf" or array.shape != ():
        found = "nothing" if answer is None else f"{answer!r}"
        raise ModelError(f"{place_of(function, role)} returns {found}, expected {expected}")


def _called(
    model: StepModel, function: Any, role: str, state: Any, action: int | None = None
) -> Any:
    """Call a function as plain Python in a first state, and look at what it did."""
    # The user's functions need not handle actions that are not admissible.
    if action is None:
        action = 0 if role == "admissible" else _some_action(model, state, 0)
    noise = np.array(model.nodes[0])
    given = {
        "state": state.copy(), "action": action, "noise": noise.copy(),
        "parameters": model.numbers.given,
        "successor": np.zeros(model.dimension),
    }  # fmt: skip
    try:
        answer = call_by_name(function, given)
    except Exception as problem:
        raise ModelError(
            f"{place_of(function, role)} fails in state {vector_text(state)} with action {action} "
            f"and noise {vector_text(noise)} ({type(problem).__name__}: {problem}): correct "
            "it there"
        ) from None
    for name, before in (("state", state), ("noise", noise)):
        if not np.array_equal(given[name], before):
            raise ModelError(
                f"{place_of(function, role)} changes the {name} it is given: {before.tolist()} "
                f"became {given[name].tolist()}: work on a copy, as in {name} = {name}.copy()"
            )
    return answer


def _some_action(model: StepModel, state: Any, place: int) -> int:
    """Return the first (0) or last (-1) action that may be taken in a state, 0 where none may."""
    every = list(range(model.n_actions))
    if model.admissible is None:
        return every[place]
    may = [a for a in every if called(model, model.admissible, state=state.copy(), action=a)]
    return may[place] if may else 0


def check_start(model: StepModel) -> None:
    """Check the first states for mistakes that show there already."""
    states = model.sample_initial(0, _CHECKED_STATES, np.uint64(1))
    states = np.unique(model.check_states(states, "initial"), axis=0)
    number, action = np.nonzero(model.admissible_mask(states))
    check_moves(model, states[number], action, some_stay=model.n_nodes == 1)


def check_moves(model: StepModel, states: Any, actions: Any, *, some_stay: bool = False) -> None:
    """Refuse functions that change their input, and a step that returns every state unchanged.

    Faults of single steps are raised with the state, the action and the noise.
    """
    given = states.copy()
    _, _, successors = model.expand(given, actions)
    changed = checks.first_index(given != states)
    if changed is not None:
        raise ModelError(
            f"{place_of(model.step, 'step')} or the cost changes the state it is given: "
            f"{states[changed[0]].tolist()} became {given[changed[0]].tolist()}: work on a copy, "
            "and return the next state"
        )
    if (successors == states[:, None, :]).all() and not some_stay:
        raise ModelError(
            f"{place_of(model.step, 'step')} returns the state it was given, for every first "
            "state, action and node of the noise: return the next state"
        )
