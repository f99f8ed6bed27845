"""Digests of functions and data, made of everything that decides what they do.

A function is its definition together with what it refers to: defaults, closure, globals, and the
functions it calls, which are looked into in the same way. The definition is the syntax tree of its
source, without docstrings, annotations and line numbers, provided that compiling the source gives
the very code that runs; so a digest is the same in another process, on another machine and under
another version of Python. Where there is no such source (a function made by `exec`, two lambdas in
one line, a file changed since) it is the bytecode, which belongs to one version of Python.

What comes from another installed package is known by its name and the package's major version.
Objects are known by the state that pickling would take. What has no such state gets a mark of its
own that no other session knows: a digest with such a mark begins with `session:` and is equal to
none in any other session. `doubt` says which object was to blame.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import dis
import functools
import hashlib
import linecache
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
from scipy import sparse

_SHARED, _SESSION = "v2:", "session:"  # those of earlier versions have no colon
_OWN = "bellweight"
_NOT_BEHAVIOUR = {
    "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__firstlineno__",
    "__static_attributes__", "__dataclass_fields__", "__dataclass_params__", "__abstractmethods__",
    "_abc_impl", "__match_args__",
}  # fmt: skip
_PLACES = tuple(
    {str(Path(sysconfig.get_path(kind)).resolve()) for kind in ("stdlib", "purelib", "platlib")}
)

_unknown: dict[int, tuple[Any, str]] = {}  # the object is kept, so that its id is not used again
_reasons: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Unstored:
    """A placeholder for something that a file cannot hold: its name and its digest."""

    text: str
    digest: str | None = None


def digest(value: Any) -> str:
    """Return a text that is equal for things that do the same, and different otherwise."""
    walk = _Walk()
    walk.add(value, "")
    if not walk.unknown:
        return _SHARED + walk.hasher.hexdigest()
    found = _SESSION + walk.hasher.hexdigest()
    _reasons[found] = walk.unknown[0]
    return found


def doubt(stored: str | None, given: str) -> str:
    """Return why equal things may have different digests: a part of a sentence, or ""."""
    if given in _reasons:
        return (
            f", or cannot be compared because this one uses {_reasons[given]}, which no other "
            "session recognises (use numbers, text, arrays and plain functions in its place)"
        )
    if stored is None or (given.startswith(_SHARED) and ":" not in stored):
        return ", or was saved by an earlier version of Bellweight, which told less apart"
    if stored.startswith(_SESSION):
        return ", or used objects that only the session recognises in which it was saved"
    return ""


def doubt_of(stored: Any, given: Any) -> str:
    """Return why functions in settings that a file holds may not have been recognised."""
    unstored = first_unstored(stored)
    return "" if unstored is None else doubt(unstored.digest, digest(given))


def first_unstored(value: Any) -> Unstored | None:
    """Return the first thing in some settings that a file could not hold, if there is one."""
    if isinstance(value, Unstored):
        return value
    parts: list[Any] = list(value) if isinstance(value, tuple) else []
    if dataclasses.is_dataclass(value):
        parts = [getattr(value, name) for name in _settings(value)]
    return next((found for part in parts if (found := first_unstored(part)) is not None), None)


def same(first: Any, second: Any) -> bool:
    """Return whether two settings say the same: numbers by value, functions by digest."""
    if isinstance(first, Unstored) or isinstance(second, Unstored):
        known = [x.digest if isinstance(x, Unstored) else digest(x) for x in (first, second)]
        return known[0] is not None and known[0] == known[1]
    if _is_number(first) and _is_number(second):
        return bool(first == second or (np.isnan(first) and np.isnan(second)))
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return _same_arrays(first, second)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        return all(same(getattr(first, f), getattr(second, f)) for f in _settings(first))
    return digest(first) == digest(second)


def _same_arrays(first: Any, second: Any) -> bool:
    if not all(isinstance(x, np.ndarray | list | tuple) for x in (first, second)):
        return False
    one, other = np.asarray(first), np.asarray(second)
    if one.dtype.kind in "biufc" and other.dtype.kind in "biufc":
        return np.array_equal(one, other, equal_nan=True)
    return one.shape == other.shape and same(one.tolist(), other.tolist())


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.bool_ | np.number)


def _settings(value: Any) -> list[str]:
    """Return the fields that decide what an object is: not those that follow from them."""
    return [field.name for field in dataclasses.fields(value) if field.compare]


class _Walk:
    """Walks through a value and everything it refers to, always in the same order.

    A function or a class gets a number where it is met first; the number stands for it where it is
    met again. Data are compared by value: two equal parts may be one object or two.
    """

    def __init__(self) -> None:
        self.hasher = hashlib.sha256()
        self.unknown: list[str] = []
        self._met: dict[int, tuple[int, Any]] = {}  # what is kept alive keeps its id
        self._open: list[int] = []

    def add(self, value: Any, package: str) -> None:
        """Add a value that is referred to by something of a package."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or value is ... or isinstance(value, bool | int | float | complex | str):
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, bytes):
            self._write("bytes", value.hex())
        elif isinstance(value, np.ndarray):
            self._array(value, package)
        elif sparse.issparse(value):
            self._sparse(value, package)
        elif isinstance(value, FunctionType | type):
            self._once(value, package)
        else:
            self._inside(value, package)

    def _write(self, kind: str, text: str) -> None:
        # The length keeps neighbours apart.
        self.hasher.update(f"{kind} {len(text)} {text};".encode("utf-8", "surrogatepass"))

    def _once(self, value: Any, package: str) -> None:
        """Add a function or a class where it is met first, and its number where it is met again."""
        if id(value) in self._met:
            self._write("again", str(self._met[id(value)][0]))
        else:
            self._met[id(value)] = (len(self._met), value)
            self._structure(value, package)

    def _inside(self, value: Any, package: str) -> None:
        """Add a value in full each time it is met, unless it contains itself."""
        if id(value) in self._open:
            self._write("circle", str(self._open.index(id(value))))
            return
        self._open.append(id(value))
        self._structure(value, package)
        self._open.pop()

    def _array(self, array: Any, package: str) -> None:
        self._write("array", f"{array.shape}")
        if array.dtype.hasobject:
            self.add(tuple(array.ravel().tolist()), package)
        else:
            plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
            self._write(plain.dtype.str, hashlib.sha256(plain.tobytes()).hexdigest())

    def _sparse(self, matrix: Any, package: str) -> None:
        rows = sparse.csr_array(matrix, copy=True)
        rows.sum_duplicates()
        self._write("sparse", f"{rows.shape}")
        for part in (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)):
            self._array(part, package)

    def _structure(self, value: Any, package: str) -> None:
        """Add what consists of other values."""
        known, parts = _name_elsewhere(value, package), _MADE_OF.get(type(value))
        if known is not None:
            self._write("name", known)
        elif parts is not None:
            self._all(type(value).__name__, parts(value), package)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, CodeType):
            self._code(value, package)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(getattr(value, "py_func", None), FunctionType):  # compiled by Numba
            self.add(value.py_func, package)
        elif type(value).__module__.startswith("numpy.random"):
            # The position of a random stream decides what is drawn next, not the law of the draws.
            self._write("random", type(value).__name__)
        elif dataclasses.is_dataclass(value):
            given = [getattr(value, name) for name in _settings(value)]
            self._all("dataclass", [type(value), *given], package)
        else:
            self._object(value, package)

    def _all(self, kind: str, values: Any, package: str) -> None:
        self._write(kind, str(len(values)))
        for value in values:
            self.add(value, package)

    def _function(self, function: FunctionType) -> None:
        code, package = function.__code__, _package(function.__module__)
        tree = _definition(code)
        if tree is None:
            self._code(code, package)
        else:
            self._write("source", repr(tree))
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closure = {name: _content(cell) for name, cell in cells}
        meant = {**closure, **dict(_globals_of(function))}
        self._all("defaults", function.__defaults__ or (), package)
        for mapping in (function.__kwdefaults__ or {}, meant):
            self._all("names", [part for name in sorted(mapping) for part in (name, mapping[name])],
                      package)  # fmt: skip

    def _code(self, code: CodeType, package: str) -> None:
        self._write("code", f"{sys.implementation.cache_tag} {_shape(code)!r}")
        self._all("constants", code.co_consts, package)

    def _class(self, cls: type) -> None:
        package = _package(cls.__module__)
        is_data = "__dataclass_fields__" in vars(cls)
        self._all("class", [cls.__name__, *cls.__bases__], package)
        if is_data:
            given = [(f.name, _default(f)) for f in dataclasses.fields(cls)]
            self._all("fields", [part for pair in given for part in pair], package)
        for name, member in sorted(vars(cls).items()):
            # The methods that `dataclass` writes follow from the fields.
            written = is_data and getattr(member, "__code__", None) is not None
            if name in _NOT_BEHAVIOUR or (written and member.__code__.co_filename == "<string>"):
                continue
            self._write("member", name)
            self.add(member, package)

    def _object(self, value: Any, package: str) -> None:
        """Add an object by the state that pickling would take, or with a mark of this session."""
        try:
            state = None if isinstance(value, ModuleType) else value.__reduce_ex__(2)
        except Exception:  # whatever an object does when it is asked for its state
            state = None
        if isinstance(state, tuple):
            parts = [list(p) if hasattr(p, "__next__") else p for p in state]
            self._all("object", parts, package)
        else:
            kept, mark = _unknown.setdefault(id(value), (value, uuid.uuid4().hex))
            self.unknown.append(f"{kept!r:.80}")
            self._write("stranger", mark)


_MADE_OF: dict[type, Callable[[Any], list[Any]]] = {
    list: list,
    tuple: list,
    dict: lambda value: [part for item in value.items() for part in item],
    set: lambda value: sorted(map(digest, value)),
    frozenset: lambda value: sorted(map(digest, value)),
    functools._lru_cache_wrapper: lambda value: [value.__wrapped__],
    staticmethod: lambda value: [value.__wrapped__],
    classmethod: lambda value: [value.__wrapped__],
    property: lambda value: [value.fget, value.fset, value.fdel],
    MemberDescriptorType: lambda value: [value.__name__],
    MethodType: lambda value: [value.__func__, value.__self__],
    BuiltinMethodType: lambda value: [value.__name__, value.__self__],
}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return ...


def _default(field: Any) -> Any:
    for given in (field.default, field.default_factory):
        if given is not dataclasses.MISSING:
            return given
    return ...


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _name_elsewhere(value: Any, package: str) -> str | None:
    """Return the name of what an installed package other than `package` defines, or None."""
    module, name, found = _full_name(value)
    top = _package(module)
    if found is not value or not _is_installed(module) or (top == package != _OWN):
        return None
    version = "" if top == _OWN else str(getattr(sys.modules.get(top), "__version__", ""))
    return f"{module}.{name} {version.partition('.')[0]}"


def _full_name(value: Any) -> tuple[str, str, Any]:
    """Return the module and the name that a value goes by, and what is found under them."""
    if isinstance(value, ModuleType):
        return value.__name__, "", value
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if module is None and isinstance(value, BuiltinMethodType):
        module = getattr(value.__self__, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return "", "", None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return module, name, found


def _is_installed(module: str) -> bool:
    """Return whether a module is a part of Python, of an installed package or of Bellweight."""
    if _package(module) in (_OWN, "builtins") or module in sys.builtin_module_names:
        return True
    place = getattr(sys.modules.get(module), "__file__", None)
    if place is None:
        origin = getattr(getattr(sys.modules.get(module), "__spec__", None), "origin", None)
        return origin in ("built-in", "frozen")
    return str(Path(place).resolve()).startswith(_PLACES)


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function refers to; of a user's module only what it uses."""
    for path in sorted(_paths(function.__code__)):
        name, *attributes = path
        if name in function.__globals__:
            value = function.__globals__[name]
        else:
            value = vars(builtins).get(name, ...)
        shown = name
        while attributes and isinstance(value, ModuleType) and not _is_installed(value.__name__):
            shown += f".{attributes[0]}"
            value = getattr(value, attributes.pop(0), ...)
        yield shown, value


def _paths(code: CodeType) -> set[tuple[str, ...]]:
    """Return the globals in some code, each with the attributes read directly from it."""
    found: set[tuple[str, ...]] = set()
    path: tuple[str, ...] = ()
    for step in dis.get_instructions(code):
        if step.opname in ("CACHE", "PUSH_NULL", "NOP", "EXTENDED_ARG"):
            continue
        if path and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path = (*path, step.argval)
            continue
        found |= {path} if path else set()
        is_global = "GLOBAL" in step.opname or step.opname == "LOAD_NAME"
        path = (step.argval,) if is_global and step.argval != "__name__" else ()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _paths(constant)
    return found


def _shape(code: CodeType) -> tuple[Any, ...]:
    """Return what code does apart from its constants."""
    return (
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
        code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_exceptiontable,
    )  # fmt: skip


def _does_the_same(first: Any, second: Any) -> bool:
    if isinstance(first, CodeType) and isinstance(second, CodeType):
        constants = first.co_consts, second.co_consts
        alike = _shape(first) == _shape(second) and len(constants[0]) == len(constants[1])
        return alike and all(map(_does_the_same, *constants))
    return type(first) is type(second) and repr(first) == repr(second)


_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _definition(code: CodeType) -> tuple[Any, ...] | None:
    """Return a function's definition in its source, if that certainly is the code that runs."""
    text = "".join(linecache.getlines(code.co_filename))
    try:
        functions, codes = _parsed(text) if text else ([], [])
    except (SyntaxError, ValueError):
        return None
    place = code.co_firstlineno, code.co_name
    nodes = [node for at, node in functions if at == place]
    made = [c for c in codes if (c.co_firstlineno, c.co_name) == place]
    if len(nodes) != 1 or len(made) != 1 or not _does_the_same(made[0], code):
        return None
    # Defaults are known by their values, and decorators by what they made.
    arguments = nodes[0].args
    kinds = (arguments.posonlyargs, arguments.args, [arguments.vararg],
             arguments.kwonlyargs, [arguments.kwarg])  # fmt: skip
    names = tuple(tuple(a.arg for a in kind if a is not None) for kind in kinds)
    kind = type(nodes[0]).__name__.removeprefix("Async")
    return kind, isinstance(nodes[0], ast.AsyncFunctionDef), names, _bare(nodes[0].body)


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[list[tuple[tuple[int, str], _Function]], list[CodeType]]:
    """Return the functions of a source with their places, and the code of all of them."""
    functions = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _Function):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(d.lineno for d in decorators)])
            functions.append(((first, getattr(node, "name", "<lambda>")), node))
    codes = [compile(text, "<source>", "exec", dont_inherit=True)]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return functions, codes


def _bare(node: Any) -> Any:
    """Return a syntax tree as plain values: no places, docstrings, annotations, empty parts."""
    if isinstance(node, list):
        # A bare constant does nothing; a docstring is one.
        kept = (n for n in node if not (isinstance(n, ast.Expr) and _is_constant(n.value)))
        return tuple(map(_bare, kept))
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    skipped = ("kind", "type_comment", "ctx", "returns", "annotation")
    given = ((name, value) for name, value in ast.iter_fields(node) if name not in skipped)
    full = ((name, _bare(value)) for name, value in given if value is not None and value != [])
    return type(node).__name__, *full


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)
