"""Turn a user's plain functions into a compiled module that starts warm the next time.

Numba keeps compiled code on disk only for functions in files. So the user's functions, with the
constants they refer to, and the loops of `kernels` are written to one file in a cache
folder, named by the hash of its text; the next process finds file and compiled code there. The
numbers of a model (`parameters`, tables, bounds) are no part of the text: other numbers compile
nothing.

A function may leave out the arguments it does not depend on: `cost(state)`, `probability(action,
event)`, `move(state, event)`.

Numba is imported where it is used, so that nobody waits for it without a model to compile.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import math
import re
import symtable
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from bellweight.common.code_cache import cache_folder, keep
from bellweight.common.status import BellweightError, ModelError
from bellweight.models import kernels
from bellweight.models.parameters import Layout, Named

_MODULES = {"numpy": np, "math": math}
_AS_THEY_ARE = "a StepModel with vectorised=True calls its functions as they are"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # which the compiler puts into its messages
_WITHOUT_ANSWER = ("move", "initial", "functions")
_STREAMS = (
    "from bellweight.common.compiled import "
    "bounded, draw, episode_key, inlined, inner, pick, unmanaged"
)
# Called from plain Python, compiled functions return 64 bits as an int: turned back at once.
_SLOW_STREAMS = """from bellweight.common import compiled as numbers
def plain(function): return function
bounded = inlined = inner = unmanaged = plain
def episode_key(base, episode): return np.uint64(numbers.episode_key(base, episode))
draw, pick = numbers.draw, numbers.pick"""


Held = tuple[tuple[str, Any], ...]
"""Names in the text of a model that is not compiled, and the objects that they stand for."""


@dataclass(frozen=True)
class Source:
    """The text of one compiled model; hashable, and all that another process needs.

    `held` are objects that the text names and does not contain: they are not compiled.
    """

    text: str
    compiled: bool = True
    held: Held = ()

    @property
    def key(self) -> str:
        """A name for the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    @property
    def path(self) -> Path:
        """Where the text is kept."""
        return cache_folder() / f"model_{self.key}.py"

    @property
    def is_cached(self) -> bool:
        """Whether exactly this text has been compiled before."""
        try:
            return self.path.read_bytes() == self.text.encode()
        except OSError:
            return False

    @property
    def as_python(self) -> Source:
        """The same text as plain Python, whose functions can be called to explain a fault."""
        text = self.text.replace(_STREAMS, _SLOW_STREAMS, 1)
        return Source(text, compiled=False, held=self.held)

    def load(self) -> ModuleType:
        """Return the module, compiled now or found compiled."""
        if self not in _loaded:
            _loaded[self] = _from_file(self) if self.compiled else _from_text(self)
        return _loaded[self]


_loaded: dict[Source, ModuleType] = {}


@dataclass(frozen=True)
class Called:
    """A user's function, the arguments the loops call it with, and the text of the call.

    `otherwise` is the body that stands for a function not given.
    """

    function: Callable[..., Any] | None
    arguments: tuple[str, ...]
    otherwise: str = "pass"
    body: str = "return {call}"


@dataclass(frozen=True)
class Written:
    """The text of functions: as the user wrote them, and as the loops call them."""

    parts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    held: Held = ()

    def adding(self, functions: Mapping[str, Called], layout: Layout | None = None) -> Written:
        """Return this text with more functions, one for each role; their sources are read now.

        `layout` says where named parameters stand.
        """
        writer = _Writer(self.parts, layout or {}, self.held)
        calls = list(self.calls)
        for role, called in functions.items():
            body = called.otherwise
            if called.function is not None:
                named = arguments_of(called.function, _said(role), called.arguments)
                name = writer.function(called.function, role)
                body = called.body.format(call=f"{name}({', '.join(named)})")
            calls.append(f"@bounded\ndef user_{role}({', '.join(called.arguments)}):\n    {body}\n")
        return Written(tuple(writer.parts), tuple(calls), tuple(writer.held))


def model_source(
    kind: str, written: Written, constants: Mapping[str, Any], *, compiled: bool
) -> Source:
    """Return the source of a model of a kind; `constants` are names that the loops use."""
    import numba

    if compiled and written.held:
        name, value = written.held[0]
        raise _unwritable(value, name)
    header = [
        "import math",
        "import numpy as np",
        "inf, nan = np.inf, np.nan",
        _STREAMS if compiled else _SLOW_STREAMS,
        *(f"{name} = {_literal(value, name)}" for name, value in constants.items()),
    ]
    header.append(f"# numba {numba.__version__}, library {kernels.library_digest()}")
    text = "\n".join([*header, "", *written.parts, *written.calls, "", kernels.joined(kind)])
    return Source(f"{text}\n", compiled, written.held)


_OPTIONAL = {
    "rule": Called(None, ("state", "parameters"), "return -1"),
    "functions": Called(None, ("state", "features")),
}


def with_optional(written: Written, given: Mapping[str, Called]) -> Written:
    """Return the text of a model with a policy's rule and a basis's own functions, if any."""
    return written.adding({**_OPTIONAL, **given})


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
) -> Any:
    """Compile one user function alone, so that an error names the user's own file and line.

    Returns the Numba type of its answer; `remedy` says what to do with one that does not compile.
    """
    import numba

    code = function.__code__
    place = f"{Path(code.co_filename).name}, line"
    try:
        alone = _jitted(function, layout or {})
        alone.compile(tuple(map(numba.typeof, example)))
    except numba.core.errors.NumbaError as problem:
        line = _line(problem, code.co_firstlineno)
        told = _COLOURS.sub("", str(problem.msg if hasattr(problem, "msg") else problem))
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
    return returned


def check_in_place(function: Callable[..., Any], role: str, given: Mapping[str, Any]) -> None:
    """Call a function that should write into `state`, and complain if it returns something."""
    try:
        answer = function(**{name: given[name] for name in inspect.signature(function).parameters})
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

    definition = _definition(function, "model")
    known = dict(function.__globals__)
    for name in set(_outer_names(definition)) & known.keys():
        known[name] = ready(known[name])
    code = function.__code__
    if layout and "parameters" in code.co_varnames:
        inner = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        known.update({name: ready(cell.cell_contents) for name, cell in inner.items()})
        tree = ast.Module([Named(layout).visit(definition)], [])
        ast.increment_lineno(ast.fix_missing_locations(tree), code.co_firstlineno - 1)
        exec(compile(tree, code.co_filename, "exec"), known)
        return numba.njit(known[definition.name])
    cells = tuple(CellType(ready(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = FunctionType(code, known, function.__name__, function.__defaults__, cells or None)
    copy.__kwdefaults__ = function.__kwdefaults__
    return numba.njit(copy)


def _line(problem: Exception, otherwise: int) -> int:
    location = getattr(problem, "loc", None)
    return int(location.line) if location is not None else otherwise


def _said(role: str) -> str:
    """Return a role in the word that the function's author knows."""
    return role.removeprefix("noisy_")


class _Writer:
    """Collects the text of functions and of the constants they refer to, each once."""

    def __init__(self, parts: Iterable[str], layout: Layout, held: Held = ()) -> None:
        self.parts = list(parts)
        self.held = list(held)
        self._layout = layout
        self._open: list[FunctionType] = []

    def function(self, function: Any, role: str) -> str:
        """Write a function under a name of its own and return that name."""
        if function in self._open:
            raise ModelError(
                f"{_said(role)} function {function.__name__!r} calls itself: use a loop"
            )
        self._open.append(function)
        tree = _definition(function, role)
        tree = Named(self._layout).visit(tree)
        tree = _Rename(self._references(function, tree, role)).visit(tree)
        tree.name = f"{role}_{function.__name__}"
        tree.name += f"_{_digest(ast.unparse(ast.fix_missing_locations(tree)))}"
        text = ast.unparse(ast.fix_missing_locations(tree))
        self._open.pop()
        return self._add(tree.name, f"@bounded\n{text}\n")

    def _references(
        self, function: FunctionType, tree: ast.FunctionDef, role: str
    ) -> dict[str, str]:
        renamed = {}
        for name in _outer_names(tree):
            try:
                value = _value_of(name, function)
            except LookupError:
                raise ModelError(
                    f"{_said(role)} function {function.__name__!r} uses {name!r}, which is not "
                    "defined"
                ) from None
            if value is vars(builtins).get(name, ...):
                continue
            if isinstance(value, ModuleType):
                known = [short for short, module in _MODULES.items() if module is value]
                if not known:
                    raise ModelError(
                        f"{role} function uses the module {name!r}, expected only numpy and math: "
                        f"{_AS_THEY_ARE}"
                    )
                renamed[name] = {"numpy": "np", "math": "math"}[known[0]]
            elif isinstance(value, FunctionType):
                renamed[name] = self.function(value, role)
            elif isinstance(getattr(value, "py_func", None), FunctionType):
                renamed[name] = self.function(value.py_func, role)
            elif isinstance(getattr(value, "digest", None), str):
                renamed[name] = self._hold(value, name)
            else:
                literal = _literal(value, name)
                constant = f"{name}_{_digest(literal)}"
                renamed[name] = self._add(constant, f"{constant} = {literal}\n")
        return renamed

    def _add(self, name: str, text: str) -> str:
        if text not in self.parts:
            self.parts.append(text)
        return name

    def _hold(self, value: Any, name: str) -> str:
        """Keep an object that has a digest, for functions that are not compiled."""
        name = f"{name}_{_digest(value.digest)}"
        if all(held is not value for _, held in self.held):
            self.held.append((name, value))
        return self._add(name, f"# {name} is a {type(value).__name__}\n")


def _outer_names(tree: ast.FunctionDef) -> list[str]:
    """Return the names that a function takes from outside itself, inner scopes included."""
    scopes = symtable.symtable(
        ast.unparse(ast.fix_missing_locations(tree)), "<model>", "exec"
    ).get_children()
    names: set[str] = set()
    while scopes:
        scope = scopes.pop()
        names |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()}
        scopes += scope.get_children()
    return sorted(names)


def _value_of(name: str, function: FunctionType) -> Any:
    """Return what a name means inside a function, or raise LookupError."""
    if name in function.__code__.co_freevars:
        assert function.__closure__ is not None
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            raise LookupError(name) from None
    if name in function.__globals__:
        return function.__globals__[name]
    return vars(builtins)[name]


class _Rename(ast.NodeTransformer):
    """Renames the names that a function refers to outside itself."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


class _WithoutAnnotations(ast.NodeTransformer):
    """Drops annotations, which the compiled text has no use for."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        given = node.value
        return ast.Assign([node.target], given) if given is not None else ast.Pass()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _definition(function: FunctionType, role: str) -> ast.FunctionDef:
    try:
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError):
        raise ModelError(
            f"the source of {role} function {function.__name__!r} cannot be read: define it in a "
            "file or a notebook cell"
        ) from None
    if not isinstance(tree, ast.FunctionDef):
        raise ModelError(f"{role} function {function.__name__!r} is not written with def")
    tree.decorator_list = []
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.Pass()]
    plain: ast.FunctionDef = _WithoutAnnotations().visit(tree)
    # A default is the value that it had when the function was defined.
    values, named = function.__defaults__ or (), function.__kwdefaults__ or {}
    plain.args.defaults = [_expression(value, function.__name__) for value in values]
    plain.args.kw_defaults = [
        _expression(named[a.arg], a.arg) if a.arg in named else None for a in plain.args.kwonlyargs
    ]
    return plain


def _expression(value: Any, name: str) -> ast.expr:
    return ast.parse(_literal(value, name), mode="eval").body


def _literal(value: Any, name: str) -> str:
    """Return the text that stands for a constant in the compiled module."""
    if value is None or isinstance(value, bool | int | float):
        return {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(repr(value), repr(value))
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return _literal(value.item(), name)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return f"np.array({value.tolist()!r}, dtype=np.{value.dtype.name}).reshape({value.shape!r})"
    if isinstance(value, tuple | list):
        return f"({''.join(_literal(item, name) + ', ' for item in value)})"
    raise _unwritable(value, name)


def _unwritable(value: Any, name: str) -> ModelError:
    return ModelError(
        f"a model function uses {name!r} of type {type(value).__name__}, expected numbers, tuples "
        f"of numbers, arrays or other plain functions: {_AS_THEY_ARE}"
    )


def _from_file(source: Source) -> ModuleType:
    """Return the module; the file is there for Numba, what runs is the text itself."""
    path = source.path
    if not source.is_cached:
        keep(path, source.text)
    module = ModuleType(f"bellweight_model_{source.key}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # compiled code on disk refers to it
    exec(compile(source.text, str(path), "exec"), module.__dict__)
    return module


def _from_text(source: Source) -> ModuleType:
    module = ModuleType(f"bellweight_model_{source.key}")
    exec(compile(source.text, "<event model>", "exec"), module.__dict__)
    module.__dict__.update(source.held)
    return module
