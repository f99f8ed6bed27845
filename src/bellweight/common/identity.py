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

import dataclasses
import functools
import hashlib
import sys
import uuid
from collections.abc import Callable
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

from bellweight.common.definitions import (
    OWN,
    definition_of,
    globals_of,
    imports_of,
    is_installed,
    package_of,
    shape_of,
)

_SHARED, _SESSION = "v2:", "session:"  # those of earlier versions have no colon
_WRAPPED = "__wrapped__"  # what a decorator wraps: it is in the closure, too
_NOT_BEHAVIOUR = {
    "__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__firstlineno__",
    "__static_attributes__", "__dataclass_fields__", "__dataclass_params__", "__abstractmethods__",
    "_abc_impl", "__match_args__",
}  # fmt: skip
_WRITTEN = {
    "__init__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__",
    "__setattr__", "__delattr__", "__replace__", "__getstate__", "__setstate__",
}  # fmt: skip

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
        parts = [getattr(value, name, ...) for name in _settings(value)]
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
        names = _settings(first)
        return names == _settings(second) and all(
            same(getattr(first, name, ...), getattr(second, name, ...)) for name in names
        )
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
    """Return the fields that decide what an object is: not those that follow from them.

    Of our own classes these are the fields that are compared. Of a user's class all fields are, and
    what the object holds besides.
    """
    fields = dataclasses.fields(value)
    ours = {
        field.name
        for base in type(value).__mro__
        if package_of(base.__module__) == OWN and dataclasses.is_dataclass(base)
        for field in dataclasses.fields(base)
    }
    return [f.name for f in fields if f.compare or f.name not in ours] + _besides(value)


def _besides(value: Any) -> list[str]:
    """Return what an object of a user's dataclass holds that is neither a field nor remembered."""
    cls = type(value)
    if package_of(cls.__module__) == OWN:
        return []
    known = {field.name for field in dataclasses.fields(value)}
    for base in cls.__mro__:
        kept = vars(base).items()
        known |= {name for name, member in kept if isinstance(member, functools.cached_property)}
    return sorted(set(getattr(value, "__dict__", ())) - known)


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
        # Some kinds of arrays hold more than numbers: pickling tells what.
        elif isinstance(value, np.ndarray) and type(value).__reduce__ is np.ndarray.__reduce__:
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
        if type(array) not in (np.ndarray, np.memmap):  # a matrix is multiplied in another way
            self._all("kind", [type(array), getattr(array, "__dict__", {})], package)
        if array.dtype.names is not None:
            self._write("fields", str(array.dtype.newbyteorder("<")))
        if array.dtype.hasobject:
            self.add(tuple(array.ravel().tolist()), package)
        else:
            plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
            self._write(plain.dtype.str, hashlib.sha256(plain.tobytes()).hexdigest())

    def _sparse(self, matrix: Any, package: str) -> None:
        rows = sparse.csr_array(matrix, copy=True)
        rows.sum_duplicates()
        kind = "matrix" if isinstance(matrix, sparse.spmatrix) else "sparse"
        self._write(kind, f"{rows.shape}")
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
            given = [getattr(value, name, ...) for name in _settings(value)]
            self._all("dataclass", [type(value), *given, *_besides(value)], package)
        else:
            self._object(value, package)

    def _all(self, kind: str, values: Any, package: str) -> None:
        self._write(kind, str(len(values)))
        for value in values:
            self.add(value, package)

    def _function(self, function: FunctionType) -> None:
        code, package = function.__code__, package_of(function.__module__)
        tree = definition_of(code)
        if tree is None:
            self._code(code, package)
        else:
            self._write("source", repr(tree))
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        closure = {name: _content(cell) for name, cell in cells}
        own = {f"its {name}": kept for name, kept in vars(function).items() if name != _WRAPPED}
        # An inner function may mean a global by the name of a variable around it.
        outer = {f"global {n}" if n in closure else n: v for n, v in globals_of(function)}
        meant = {**closure, **outer, **dict(imports_of(function)), **own}
        self._all("defaults", function.__defaults__ or (), package)
        for mapping in (function.__kwdefaults__ or {}, meant):
            self._all("names", [part for name in sorted(mapping) for part in (name, mapping[name])],
                      package)  # fmt: skip

    def _code(self, code: CodeType, package: str) -> None:
        self._write("code", f"{sys.implementation.cache_tag} {shape_of(code)!r}")
        self._all("constants", code.co_consts, package)

    def _class(self, cls: type) -> None:
        package = package_of(cls.__module__)
        is_data = "__dataclass_fields__" in vars(cls)
        self._all("class", [cls.__name__, *cls.__bases__], package)
        if is_data:
            given = [(f.name, _default(f)) for f in dataclasses.fields(cls)]
            self._all("fields", [part for pair in given for part in pair], package)
        for name, member in sorted(vars(cls).items()):
            # The methods that `dataclass` writes follow from the fields.
            written = is_data and name in _WRITTEN and getattr(member, "__code__", None) is not None
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
    functools.cached_property: lambda value: [value.func],
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


def _name_elsewhere(value: Any, package: str) -> str | None:
    """Return the name of what an installed package other than `package` defines, or None."""
    module, name, found = _full_name(value)
    top = package_of(module)
    if found is not value or not is_installed(module) or (top == package != OWN):
        return None
    version = "" if top == OWN else str(getattr(sys.modules.get(top), "__version__", ""))
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
