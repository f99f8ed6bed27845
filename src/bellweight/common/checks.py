"""Input validation: every message says what is wrong, where, what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.status import ArgumentError, BellweightError, ModelError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Matrix: TypeAlias = Any
"""A matrix, dense or sparse: SciPy's sparse classes carry no types."""

_BLOCK = 20_000  # rows looked at together


def dense(matrix: Matrix) -> FloatArray:
    """Return a matrix, sparse or not, as a plain array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=np.float64)


def float_array(
    values: Any,
    name: str,
    shape: tuple[int, ...],
    error: type[BellweightError] = ModelError,
    *,
    finite: bool = True,
) -> FloatArray:
    """Return `values` as a read-only float array of the given shape, or say why it is not one.

    A -1 in `shape` stands for any length. Entries must be finite unless `finite` is off.
    """
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(f"{name} is not an array of numbers ({problem}): pass numbers") from None
    expected = tuple(
        given if want == -1 else want
        for want, given in zip(shape, array.shape + (0,) * len(shape), strict=False)
    )
    if array.shape != expected:
        sizes = ", ".join("any" if n == -1 else str(n) for n in shape)
        wanted = f"({sizes},)" if len(shape) == 1 else f"({sizes})"
        raise error(f"{name} has shape {array.shape}, expected {wanted}: reshape it")
    first = first_index(~np.isfinite(array)) if finite else None
    if first is not None:
        raise error(f"{name}{list(first)} is {array[first]}, expected a finite number: replace it")
    array.setflags(write=False)
    return array


def index_array(values: Any, name: str, length: int, limit: int | None = None) -> IntArray:
    """Return `values` as a read-only array of `length` whole numbers in [0, limit)."""
    raw = np.asarray(values)
    if raw.shape != (length,):
        raise ModelError(f"{name} has shape {raw.shape}, expected ({length},): one entry per pair")
    if raw.dtype.kind not in "iu":
        raise ModelError(f"{name} has type {raw.dtype}, expected whole numbers: convert it to int")
    array = raw.astype(np.int64)
    top = np.iinfo(np.int64).max if limit is None else limit
    first = first_index((array < 0) | (array >= top))
    if first is not None:
        bound = "non-negative" if limit is None else f"between 0 and {limit - 1}"
        raise ModelError(f"{name}[{first[0]}] is {array[first]}, expected {bound}: correct it")
    array.setflags(write=False)
    return array


def first_index(mask: BoolArray) -> tuple[int, ...] | None:
    """Return the first index at which `mask` holds, or None."""
    if not mask.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def discount_factor(value: Any) -> float:
    """Return a discount factor strictly between zero and one."""
    if not is_real(value):
        raise ModelError(f"discount is {value!r}, expected a number strictly between 0 and 1")
    if not 0.0 < value < 1.0:
        raise ModelError(
            f"discount is {value}, expected a number strictly between 0 and 1: "
            "only discounted infinite-horizon models are supported"
        )
    return float(value)


def distribution(
    values: Any,
    name: str,
    length: int,
    where: Callable[[int], str],
    error: type[BellweightError] = ModelError,
) -> FloatArray:
    """Return a probability vector over `length` states."""
    array = float_array(values, name, (length,), error)
    first = first_index(array < 0.0)
    if first is not None:
        raise error(
            f"{name} is {array[first]} at {where(first[0])}, expected no negative entry: "
            "set it to zero or correct it"
        )
    total = float(array.sum())
    if abs(total - 1.0) > tolerances.PROBABILITY:
        raise error(
            f"{name} sums to {total:.12g}, expected 1 (tolerance {tolerances.PROBABILITY:g}): "
            "divide it by its sum if it is meant to be proportional"
        )
    return array


def transition_rows(matrix: sparse.csr_array, where: Callable[[int], str]) -> float:
    """Check that each row of `matrix` is a probability distribution; return the largest sum.

    `where` names a row.
    """
    # The smallest and the largest first: they need no memory.
    least, most = matrix.data.min(initial=0.0), matrix.data.max(initial=0.0)
    fine = least >= 0.0 and most < np.inf
    bad = None if fine else first_index(~np.isfinite(matrix.data) | (matrix.data < 0.0))
    if bad is not None:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise ModelError(
            f"transition probability to state {matrix.indices[bad[0]]} in {where(row)} is "
            f"{matrix.data[bad]}, expected a number between 0 and 1: correct it"
        )
    largest = 0.0
    for first in range(0, matrix.shape[0], _BLOCK):
        # In blocks: a model may be as large as memory allows.
        block = matrix if matrix.shape[0] <= _BLOCK else matrix[first : first + _BLOCK]
        sums = np.asarray(block.sum(axis=1)).ravel()
        off = first_index(np.abs(sums - 1.0) > tolerances.PROBABILITY)
        if off is not None:
            raise ModelError(
                f"transition {where(first + off[0])} sums to {sums[off]:.12g}, expected 1 "
                f"(tolerance {tolerances.PROBABILITY:g}): add the missing successor or renormalise"
            )
        largest = max(largest, float(sums.max(initial=0.0)))
    return largest


def positive(value: Any, name: str, *, below: float = np.inf, closed: bool = False) -> float:
    """Return a number in (0, below), or (0, below] when `closed`."""
    if not is_real(value):
        raise ArgumentError(f"{name} is {value!r}, expected a positive number")
    number = float(value)
    inside = 0.0 < number < below or (closed and number == below)
    if not inside:
        top = "" if below == np.inf else f" and {'at most' if closed else 'below'} {below:g}"
        raise ArgumentError(f"{name} is {value}, expected a number above 0{top}")
    return number


def at_least_zero(value: Any, name: str) -> float:
    """Return a finite number that is not negative."""
    if not is_real(value) or not 0.0 <= float(value) < np.inf:
        raise ArgumentError(f"{name} is {value!r}, expected a number of zero or more")
    return float(value)


def count(value: Any, name: str, least: int = 1) -> int:
    """Return a whole number that is at least `least`."""
    if not is_whole(value) or value < least:
        raise ArgumentError(f"{name} is {value!r}, expected a whole number of at least {least}")
    return int(value)


def state_index(state: Any, n_states: int, error: type[BellweightError] = ModelError) -> int:
    """Return the index of one of n states."""
    if not is_whole(state):
        raise error(f"state is {state!r}, expected an index from 0 to {n_states - 1}")
    if not 0 <= state < n_states:
        raise error(f"state {state} does not exist: expected 0 to {n_states - 1}")
    return int(state)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number; truth values are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Return whether a value is a real number; truth values are none."""
    return is_whole(value) or isinstance(value, float | np.floating)


def distinct(labels: Sequence[str], name: str) -> tuple[str, ...]:
    """Return labels, all different: people and tables identify things by them."""
    first = {label: k for k, label in reversed(list(enumerate(labels)))}
    again = next((k for k, label in enumerate(labels) if first[label] != k), None)
    if again is not None:
        raise ModelError(
            f"{name}[{again}] is {labels[again]!r}, as {name}[{first[labels[again]]}] is: give "
            "each a label of its own"
        )
    return tuple(labels)


def one_of(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""
    if value not in allowed:
        listed = ", ".join(repr(word) for word in allowed)
        raise ArgumentError(f"{name} is {value!r}, expected one of {listed}")
    return str(value)
