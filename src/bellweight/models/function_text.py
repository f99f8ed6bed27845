"""The text of a user's plain functions, with the constants and functions they refer to.

Everything has a name of its own in the text, made from its role and a digest of what it says: the
same functions give the same text, and so the same compiled code.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import math
import symtable
import textwrap
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from bellweight.common.status import ModelError
from bellweight.models.parameters import Layout, Named

_MODULES = {"np": np, "math": math}
_AS_THEY_ARE = "a StepModel with vectorised=True calls its functions as they are"

Held = tuple[tuple[str, Any], ...]
"""Names in the text of a model that is not compiled, and the objects that they stand for."""


def said(role: str) -> str:
    """Return a role in the word that the function's author knows."""
    return role.removeprefix("noisy_")


class Writer:
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
                f"{said(role)} function {function.__name__!r} calls itself: use a loop"
            )
        self._open.append(function)
        tree = definition(function, role)
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
        for name in outer_names(tree):
            try:
                value = _value_of(name, function)
            except LookupError:
                raise ModelError(
                    f"{said(role)} function {function.__name__!r} uses {name!r}, which is not "
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
                renamed[name] = known[0]
            elif isinstance(value, FunctionType):
                renamed[name] = self.function(value, role)
            elif isinstance(getattr(value, "py_func", None), FunctionType):
                renamed[name] = self.function(value.py_func, role)
            elif isinstance(getattr(value, "digest", None), str):
                renamed[name] = self._hold(value, name)
            else:
                text = literal(value, name)
                constant = f"{name}_{_digest(text)}"
                renamed[name] = self._add(constant, f"{constant} = {text}\n")
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


def outer_names(tree: ast.FunctionDef) -> list[str]:
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


def definition(function: FunctionType, role: str) -> ast.FunctionDef:
    """Return a function's definition without decorators, docstring and annotations."""
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
    return ast.parse(literal(value, name), mode="eval").body


def literal(value: Any, name: str) -> str:
    """Return the text that stands for a constant in the compiled module."""
    if value is None or isinstance(value, bool | int | float):
        return {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(repr(value), repr(value))
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return literal(value.item(), name)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return f"np.array({value.tolist()!r}, dtype=np.{value.dtype.name}).reshape({value.shape!r})"
    if isinstance(value, tuple | list):
        return f"({''.join(literal(item, name) + ', ' for item in value)})"
    raise unwritable(value, name)


def unwritable(value: Any, name: str) -> ModelError:
    """Return the error of a value that the text of a compiled model cannot contain."""
    return ModelError(
        f"a model function uses {name!r} of type {type(value).__name__}, expected numbers, tuples "
        f"of numbers, arrays or other plain functions: {_AS_THEY_ARE}"
    )
