"""Turn a user's plain functions into a compiled module that starts warm the next time.

Numba keeps compiled code on disk only for functions in files. So the user's functions, with the
constants they refer to, and the loops of `event_kernels.py` are written to one file in a cache
folder, named by the hash of its text; the next process finds file and compiled code there. The
folder is `BELLWEIGHT_CACHE`, or `bellweight` in the user's cache folder.

A function may leave out the arguments it does not depend on: `cost(state)`, `probability(action,
event)`, `move(state, event)`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import math
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from bellweight import files
from bellweight.status import ModelError

_MODULES = {"numpy": np, "math": math}
_MARK = "# ---- below this line"
_STREAMS = "from bellweight.streams import absorb, compiled, draw, episode_key, inlined, mix"
# Called from plain Python, compiled functions return 64 bits as an int: turned back at once.
_SLOW_STREAMS = """from bellweight import streams
def absorb(h, number): return np.uint64(streams.absorb(h, number))
def episode_key(base, episode): return np.uint64(streams.episode_key(base, episode))
def mix(z): return np.uint64(streams.mix(z))
draw = streams.draw"""


@dataclass(frozen=True)
class Source:
    """The text of one compiled model; hashable, and all that another process needs."""

    text: str
    compiled: bool = True

    @property
    def key(self) -> str:
        """A name for the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    def load(self) -> ModuleType:
        """Return the module, compiled now or found compiled."""
        if self not in _loaded:
            _loaded[self] = _from_file(self) if self.compiled else _from_text(self)
        return _loaded[self]


_loaded: dict[Source, ModuleType] = {}


def cache_folder() -> Path:
    """Return the folder for compiled models, made if need be."""
    named = os.environ.get("BELLWEIGHT_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(base) / "bellweight"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"bellweight-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def model_source(
    functions: Mapping[str, tuple[Callable[..., Any] | None, tuple[str, ...], str]],
    constants: Mapping[str, Any],
    *,
    compiled: bool,
) -> Source:
    """Return the source of a model.

    `functions` maps each role (`cost`) to the user's function, the arguments the loops call it
    with, and the body that stands for a function not given. `constants` are names that the loops
    use.
    """
    writer = _Writer()
    lines = []
    for role, (function, arguments, otherwise) in functions.items():
        if function is None:
            body = otherwise
        else:
            called = arguments_of(function, role, arguments)
            name = writer.function(function, role)
            body = f"return {name}({', '.join(called)})"
        lines.append(f"@compiled\ndef user_{role}({', '.join(arguments)}):\n    {body}\n")
    header = [
        "import math",
        "import numpy as np",
        _STREAMS if compiled else _SLOW_STREAMS,
        *(f"{name} = {_literal(value, name)}" for name, value in constants.items()),
    ]
    template = Path(__file__).with_name("event_kernels.py").read_text()
    loops = template[template.index(_MARK) :]
    streams = Path(__file__).parent.with_name("streams.py").read_bytes()
    header.append(
        f"# numba {numba.__version__}, streams {hashlib.sha256(streams).hexdigest()[:12]}"
    )
    text = "\n".join([*header, "", *writer.parts, *lines, "", loops])
    return Source(
        text if compiled else text.replace("@compiled\n", "").replace("@inlined\n", ""), compiled
    )


def arguments_of(function: Callable[..., Any], role: str, allowed: tuple[str, ...]) -> list[str]:
    """Return which of the allowed arguments a function takes, in its own order."""
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        raise ModelError(f"{role} is {function!r}, expected a plain function written with def")
    names = list(inspect.signature(function).parameters)
    stray = [name for name in names if name not in allowed]
    if stray:
        raise ModelError(
            f"{role} function {function.__name__!r} takes {stray[0]!r}, expected only arguments "
            f"named {', '.join(allowed)}"
        )
    return names


def check_compiles(function: Callable[..., Any], role: str, example: tuple[Any, ...]) -> None:
    """Compile one user function alone, so that an error names the user's own file and line."""
    try:
        numba.njit(function).compile(tuple(map(numba.typeof, example)))
    except numba.core.errors.NumbaError as problem:
        code = function.__code__
        place = f"{Path(code.co_filename).name}, line {_line(problem, code.co_firstlineno)}"
        reason = " ".join(str(problem.msg if hasattr(problem, "msg") else problem).split())
        raise ModelError(
            f"{role} function {function.__name__!r} cannot be compiled ({place}): {reason[:300]}: "
            "use numbers, arrays and plain loops, or pass compiled=False for the slow path"
        ) from None


def _line(problem: Exception, otherwise: int) -> int:
    location = getattr(problem, "loc", None)
    return int(location.line) if location is not None else otherwise


class _Writer:
    """Collects the text of functions and of the constants they refer to, each once."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def function(self, function: Any, role: str) -> str:
        """Write a function under a name of its own and return that name."""
        tree = _definition(function, role)
        tree = _Rename(self._references(function, role)).visit(tree)
        tree.name = f"{role}_{function.__name__}_{_digest(ast.dump(tree))}"
        text = ast.unparse(ast.fix_missing_locations(tree))
        return self._add(tree.name, f"@compiled\n{text}\n")

    def _references(self, function: FunctionType, role: str) -> dict[str, str]:
        found = inspect.getclosurevars(function)
        if found.unbound - {"np", "math"}:
            attributes = set(function.__code__.co_names)
            missing = sorted(name for name in found.unbound if name not in attributes)
            if missing:
                raise ModelError(f"{role} function uses {missing[0]!r}, which is not defined")
        renamed = {}
        for name, value in {**found.globals, **found.nonlocals}.items():
            if isinstance(value, ModuleType):
                known = [short for short, module in _MODULES.items() if module is value]
                if not known:
                    raise ModelError(
                        f"{role} function uses the module {name!r}, expected only numpy and math"
                    )
                renamed[name] = {"numpy": "np", "math": "math"}[known[0]]
            elif isinstance(value, FunctionType):
                renamed[name] = self.function(value, role)
            elif isinstance(getattr(value, "py_func", None), FunctionType):
                renamed[name] = self.function(value.py_func, role)
            else:
                literal = _literal(value, name)
                constant = f"{name}_{_digest(literal)}"
                renamed[name] = self._add(constant, f"{constant} = {literal}\n")
        return renamed

    def _add(self, name: str, text: str) -> str:
        if text not in self.parts:
            self.parts.append(text)
        return name


class _Rename(ast.NodeTransformer):
    """Renames the names that a function refers to outside itself."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


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
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    return tree


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
    raise ModelError(
        f"a model function uses {name!r} of type {type(value).__name__}, expected numbers, tuples "
        "of numbers, arrays or other plain functions"
    )


def _from_file(source: Source) -> ModuleType:
    path = cache_folder() / f"model_{source.key}.py"
    if not path.exists() or path.read_text() != source.text:
        files.write_whole(path, lambda stream: _write(stream, source.text))
    name = f"bellweight_model_{source.key}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _from_text(source: Source) -> ModuleType:
    module = ModuleType(f"bellweight_model_{source.key}")
    exec(compile(source.text, "<event model>", "exec"), module.__dict__)
    return module


def _write(stream: Any, text: str) -> None:
    stream.write(text.encode())
