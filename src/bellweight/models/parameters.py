"""Numbers that a model passes to its functions, so that changing one compiles nothing.

Parameters are given by name or as an array. In a function, `parameters["rate"]` is a number or an
array, as it was given. Compiled code gets one flat array: names are replaced by places.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError

Layout = Mapping[str, tuple[int, tuple[int, ...]]]
"""For each name the place of its first number, and its shape."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """All numbers in a flat array, their layout by name, and what plain Python functions get."""

    numbers: FloatArray
    layout: Layout
    given: Any

    @classmethod
    def of(cls, given: Any) -> Parameters:
        """Return parameters as the user gives them: None, names with numbers, or an array."""
        if given is None:
            given = ()
        if not isinstance(given, Mapping):
            array = checks.float_array(given, "parameters", (-1,))
            numbers = array if len(array) else np.zeros(1)
            return cls(numbers, {}, numbers)
        layout: dict[str, tuple[int, tuple[int, ...]]] = {}
        parts: list[FloatArray] = []
        for name, value in given.items():
            array = checks.float_array(value, f"parameters[{name!r}]", (-1,) * np.ndim(value))
            layout[str(name)] = (sum(map(len, parts)), array.shape)
            parts.append(array.ravel())
        flat = np.concatenate(parts) if parts else np.zeros(1)
        arrays = {
            name: flat[i : i + prod(shape)].reshape(shape) for name, (i, shape) in layout.items()
        }
        return cls(flat, layout, {n: a if a.ndim else float(a) for n, a in arrays.items()})

    def changed(self, changes: Mapping[str, Any]) -> Any:
        """Return what the user gave, with some numbers changed."""
        if not self.layout:
            raise ModelError("the model has no parameters with names: give it parameters={...}")
        stray = [name for name in changes if name not in self.layout]
        if stray:
            raise ModelError(
                f"the model has no parameter {stray[0]!r}, expected {', '.join(self.layout)}"
            )
        return {**self.given, **changes}


class Named(ast.NodeTransformer):
    """Replaces parameters["rate"] by the place of the number in the flat array."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        named = isinstance(node.value, ast.Name) and node.value.id == "parameters"
        if not named or not isinstance(node.slice, ast.Constant):
            return node
        name = node.slice.value
        if not isinstance(name, str):
            return node
        if name not in self._layout:
            known = ", ".join(self._layout) or "none with a name"
            raise ModelError(
                f"a function of the model uses parameters[{name!r}], but its parameters are: "
                f"{known}"
            )
        first, shape = self._layout[name]
        if shape == ():
            return _parsed(f"parameters[{first}]")
        part = f"parameters[{first}:{first + prod(shape)}]"
        return _parsed(part if len(shape) == 1 else f"{part}.reshape({shape})")


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
