"""Checks of a user's functions: their arguments, whether they compile, and what they return."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import numpy as np

from bellweight.common.status import BellweightError, ModelError
from bellweight.models.function_text import definition, outer_names
from bellweight.models.parameters import Layout, Named

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # which the compiler puts into its messages
_WITHOUT_ANSWER = ("move", "initial", "functions")


def arguments_of(function: Callable[..., Any], role: str, allowed: tuple[str, ...]) -> list[str]:
    """Return which of the allowed arguments a function takes, in its own order."""
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise ModelError(
            f"{role} is {function!r}, expected a plain function written with def, whose text can "
            "be read: put what a method or a lambda does into one"
        )
    names = list(inspect.signature(function).parameters)
    stray = [name for name in names if name not in allowed]
    if stray:
        raise ModelError(
            f"{role} function {function.__name__!r} takes {stray[0]!r}, expected only arguments "
            f"named {', '.join(allowed)}"
        )
    return names


def check_compiles(
    function: Callable[..., Any],
    role: str,
    example: tuple[Any, ...],
    layout: Layout | None = None,
    remedy: str = "pass compiled=False for the slow path",
) -> None:
    """Compile one user function alone, so that an error names the user's own file and line.

    `remedy` says what to do with one that does not compile.
    """
    import numba

    code = function.__code__
    place = f"{Path(code.co_filename).name}, line"
    try:
        alone = _jitted(function, layout or {})
        alone.compile(tuple(map(numba.typeof, example)))
    except numba.core.errors.NumbaError as problem:
        location = getattr(problem, "loc", None)
        line = code.co_firstlineno if location is None else location.line
        told = _COLOURS.sub("", str(getattr(problem, "msg", problem)))
        reason = " ".join(told.partition("During: ")[0].split())
        raise ModelError(
            f"{role} function {function.__name__!r} cannot be compiled ({place} {line}): "
            f"{reason[:300]}: use numbers, arrays and plain loops, or {remedy}"
        ) from None
    returned = alone.nopython_signatures[0].return_type
    is_number = isinstance(returned, numba.types.Number | numba.types.Boolean)
    if role in _WITHOUT_ANSWER:
        if not isinstance(returned, numba.types.NoneType):
            raise _answering(function, role, str(returned))
    elif not is_number and role != "step":
        raise ModelError(
            f"{role} function {function.__name__!r} ({place} {code.co_firstlineno}) returns "
            f"{returned}, expected a number in every case"
        )


def call_by_name(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a function with those of the values given that it takes."""
    return function(**{name: given[name] for name in inspect.signature(function).parameters})


def check_in_place(function: Callable[..., Any], role: str, given: Mapping[str, Any]) -> None:
    """Call a function that should write into `state`, and complain if it returns something."""
    try:
        answer = call_by_name(function, given)
    except TypeError:  # Types may suit the compiler: it knows a number where NumPy has a bool.
        return
    if answer is not None:
        raise _answering(function, role, f"{answer!r}")


def _answering(function: Callable[..., Any], role: str, answer: str) -> ModelError:
    code = function.__code__
    return ModelError(
        f"{role} function {function.__name__!r} ({Path(code.co_filename).name}, line "
        f"{code.co_firstlineno}) returns {answer}, expected nothing: it must change `state` in "
        "place, as in state[0] += 1, because what it returns is not used"
    )


@contextmanager
def naming(state: Any) -> Iterator[None]:
    """Name the state where a user's function fails inside a loop that keeps `state` up to date."""
    try:
        yield
    except BellweightError:
        raise
    except (ArithmeticError, LookupError, ValueError) as problem:
        raise ModelError(
            f"in state {np.asarray(state).tolist()}: a function of the model or the policy fails "
            f"({type(problem).__name__}: {problem}): correct it there"
        ) from None


def _jitted(function: Any, layout: Layout) -> Any:
    """Compile a function together with the plain functions that it calls."""
    import numba

    def ready(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return tuple(map(ready, value))
        return _jitted(value, layout) if isinstance(value, FunctionType) else value

    own = definition(function, "model")
    known = dict(function.__globals__)
    for name in set(outer_names(own)) & known.keys():
        known[name] = ready(known[name])
    code = function.__code__
    if layout and "parameters" in code.co_varnames:
        inner = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        known.update({name: ready(cell.cell_contents) for name, cell in inner.items()})
        tree = ast.Module([Named(layout).visit(own)], [])
        ast.increment_lineno(ast.fix_missing_locations(tree), code.co_firstlineno - 1)
        exec(compile(tree, code.co_filename, "exec"), known)
        return numba.njit(known[own.name])
    cells = tuple(CellType(ready(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = FunctionType(code, known, function.__name__, function.__defaults__, cells or None)
    copy.__kwdefaults__ = function.__kwdefaults__
    return numba.njit(copy)
