"""Whether what a file holds has the types that its class declares."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

_LARGEST = 2**63


@cache
def declared(cls: type) -> dict[str, Any]:
    """Return the declared type of every field of a class."""
    return get_type_hints(cls)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a declared type; types that say nothing fit everything."""
    if hint is Any or isinstance(hint, str):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin = get_origin(hint)
    if origin is None:
        return _is_plain(value, hint)
    if origin is Union or origin is types.UnionType:
        return any(fits(value, choice) for choice in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _is_kind(value, get_args(hint)[-1])
    if origin is tuple:
        return isinstance(value, tuple) and _is_tuple(value, get_args(hint))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = get_args(hint)[-1]
        return isinstance(value, dict) and all(fits(item, inner) for item in value.values())
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, tuple | list)
    if origin is Callable:
        return callable(value)
    return True


def _is_plain(value: Any, hint: Any) -> bool:
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (isinstance(value, float) or abs(value) < _LARGEST)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, hint) if isinstance(hint, type) else True


def _is_tuple(value: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(fits(item, hints[0]) for item in value)
    return len(value) == len(hints) and all(map(fits, value, hints))


def _is_kind(array: np.ndarray[Any, Any], hint: Any) -> bool:
    wanted = get_args(hint)[0] if get_args(hint) else Any
    if not isinstance(wanted, type):
        return True
    if issubclass(wanted, np.floating):
        return array.dtype.kind in "fiu"
    if issubclass(wanted, np.integer):
        return array.dtype.kind in "iu"
    return array.dtype.kind == np.dtype(wanted).kind


def csr_fault(data: Any, indices: Any, indptr: Any, shape: Any) -> str:
    """Return why three arrays are no sparse matrix, or no text; SciPy itself may crash on them."""
    for name, array, kinds in (
        ("data", data, "fiub"),
        ("columns", indices, "iu"),
        ("rows", indptr, "iu"),
    ):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
            return f"the {name} of a sparse matrix are no array of numbers"
    sizes = isinstance(shape, list) and len(shape) == 2 and all(fits(n, int) for n in shape)
    if not sizes or min(shape) < 0 or max(shape) >= 2**31:
        return "the shape of a sparse matrix is not two numbers of rows and columns"
    steps = np.diff(indptr)
    if len(indptr) != shape[0] + 1 or indptr[0] != 0 or (steps < 0).any():
        return "the rows of a sparse matrix are not in order"
    if indptr[-1] != len(indices) or len(indices) != len(data):
        return "a sparse matrix has entries missing"
    if len(indices) and (indices.min() < 0 or indices.max() >= shape[1]):
        return "a sparse matrix has entries outside of it"
    return ""
