"""States as users pass them to policies: one or several; neither is taken for the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import IntArray
from bellweight.common.status import PolicyError


def one_state(state: Any, dimension: int, asked: str = "policy.action") -> Any:
    """Return one state vector as an array (1, d); its entries are the model's to check.

    `asked` is the function whose user gives the state.
    """
    raw = _array(state, "state")
    if raw.ndim == 0 and dimension == 1:
        return raw.reshape(1, 1)
    if raw.shape == (1, dimension):
        return raw
    several = raw.ndim == 2 and (raw.shape[1] == dimension or dimension == 1)
    if several or (raw.ndim == 1 and dimension == 1 and len(raw) != 1):
        raise _several(len(raw), asked)
    if raw.shape != (dimension,):
        raise PolicyError(
            f"state has shape {raw.shape}, expected one state vector of shape ({dimension},)"
        )
    return raw[None, :]


def several_states(states: Any, dimension: int) -> Any:
    """Return state vectors as an array (n, d); numbers (n,) are states where d is one."""
    raw = _array(states, "states")
    if raw.ndim == 1 and (dimension == 1 or len(raw) == 0):
        raw = raw.reshape(-1, dimension)
    if raw.ndim != 2 or raw.shape[1] != dimension:
        raise PolicyError(
            f"states has shape {raw.shape}, expected (n, {dimension}), one state in each row: use "
            "policy.action(state) for a single one"
        )
    return raw


def one_index(state: Any) -> Any:
    """Return the index of one state as it is given; refuse several."""
    if isinstance(state, list | tuple) or (isinstance(state, np.ndarray) and state.ndim > 0):
        raise _several(len(state))
    return state[()] if isinstance(state, np.ndarray) else state


def one_index_of(state: Any, n_states: int) -> int:
    """Return the index of one of n states, or say why it is not one."""
    return checks.state_index(one_index(state), n_states, PolicyError)


def looked_up(table: Any, states: Any) -> IntArray:
    """Return the entries (n,) of a table for indices of states (n,)."""
    indices = several_indices(states)
    for outside in indices[(indices < 0) | (indices >= len(table))]:
        one_index_of(outside, len(table))
    return np.array(table[indices], dtype=np.int64)


def several_indices(states: Any) -> IntArray:
    """Return indices of states as an array (n,)."""
    raw = _array(states, "states")
    if raw.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if raw.ndim != 1 or raw.dtype.kind not in "iu":
        raise PolicyError(
            f"states has shape {raw.shape} and type {raw.dtype}, expected indices of states, whole "
            "numbers of shape (n,): use policy.action(state) for a single one"
        )
    return raw.astype(np.int64)


def _array(given: Any, name: str) -> Any:
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as problem:
        raise PolicyError(f"{name} is {given!r:.80}, expected numbers: {problem}") from None


def _several(count: int, asked: str = "policy.action") -> PolicyError:
    remedy = "policy.actions(states)" if asked == "policy.action" else "it for one after another"
    return PolicyError(f"{asked} takes one state, got a list of {count}: use {remedy}")
