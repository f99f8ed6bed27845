"""What a function is made of: its definition in the source, and what it refers to and imports."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import linecache
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

OWN = "bellweight"
_PLACES = tuple(
    {str(Path(sysconfig.get_path(kind)).resolve()) for kind in ("stdlib", "purelib", "platlib")}
)


def package_of(module: str | None) -> str:
    """Return the package at the top of a module's name."""
    return (module or "").partition(".")[0]


def is_installed(module: str) -> bool:
    """Return whether a module is a part of Python, of an installed package or of Bellweight."""
    if package_of(module) in (OWN, "builtins") or module in sys.builtin_module_names:
        return True
    place = getattr(sys.modules.get(module), "__file__", None)
    if place is None:
        origin = getattr(getattr(sys.modules.get(module), "__spec__", None), "origin", None)
        return origin in ("built-in", "frozen")
    return str(Path(place).resolve()).startswith(_PLACES)


def globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function refers to; of a user's module only what it uses."""
    for path in sorted(_paths(function.__code__)):
        name, *attributes = path
        if name in function.__globals__:
            value = function.__globals__[name]
        else:
            value = vars(builtins).get(name, ...)
        shown = name
        while attributes and isinstance(value, ModuleType) and not is_installed(value.__name__):
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


def imports_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function imports when it runs: names from a module, or the module itself."""
    for name, level, names in sorted(_imports(function.__code__)):
        try:
            module = __import__(name, function.__globals__, None, names, level)
        except Exception:  # whatever the module of a user does
            yield f"import {name}", ...
            continue
        for part in names:
            yield f"import {part} from {name}", getattr(module, part, ...)
        if not names:
            yield f"import {name}", module


def _imports(code: CodeType) -> set[tuple[str, int, tuple[str, ...]]]:
    """Return the imports in some code: a module, how far up it is, and names taken from it."""
    found: set[tuple[str, int, tuple[str, ...]]] = set()
    constants: list[Any] = []
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            level, names = constants[-2:]
            found.add((step.argval, level, tuple(names or ())))
        elif step.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants.append(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _imports(constant)
    return found


def shape_of(code: CodeType) -> tuple[Any, ...]:
    """Return what code does apart from its constants."""
    return (
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
        code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_exceptiontable,
    )  # fmt: skip


def _does_the_same(first: Any, second: Any) -> bool:
    if isinstance(first, CodeType) and isinstance(second, CodeType):
        constants = first.co_consts, second.co_consts
        alike = shape_of(first) == shape_of(second) and len(constants[0]) == len(constants[1])
        return alike and all(map(_does_the_same, *constants))
    return type(first) is type(second) and repr(first) == repr(second)


_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def definition_of(code: CodeType) -> tuple[Any, ...] | None:
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
