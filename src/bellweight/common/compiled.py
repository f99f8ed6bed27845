"""How functions are compiled, and the numbers of random streams, compiled.

The generator is SplitMix64 read by counter: the t-th number of a stream is a function of (key, t).
Importing this file loads Numba, so files that only sometimes need it import it inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from bellweight.common import checks, code_cache

code_cache.guard_numba()  # before the first function is compiled or found compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_PRIME = np.uint64(0x100000001B3)
_TO_UNIT = 1.0 / (1 << 53)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with Numba: cached on disk, without the interpreter lock, no fast-math."""
    return _jitted(function, _nrt=True)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a short function into its caller, which saves a round of optimisation."""
    return _jitted(function, inline="always", _nrt=False)


def unmanaged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile code that makes no arrays: it need not count references."""
    return _jitted(function, _nrt=False)


# The wrapper that lets Python call a function takes half of the time to compile it.
_ONLY_COMPILED_CALLERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile as `unmanaged` does, for compiled callers only: a call from Python would crash."""
    return _jitted(function, _nrt=False, **_ONLY_COMPILED_CALLERS)


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a user's function: an index outside an array is an error, not a crash.

    Like `inner` it has compiled callers only.
    """
    # Set explicitly: otherwise it is inherited from a caller that counts no references.
    return _jitted(function, boundscheck=True, _nrt=True, **_ONLY_COMPILED_CALLERS)


def _jitted(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    wrapped: Callable[..., Any]
    try:
        wrapped = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        # Neither the function's folder nor the user's cache can be written: compiled each time.
        wrapped = numba.njit(nogil=True, **options)(function)
    return wrapped


@compiled
def mix(z: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@compiled
def absorb(h: np.uint64, number: np.int64) -> np.uint64:
    """Return a hash of a hash and one more number."""
    return (h ^ np.uint64(number)) * _PRIME


@compiled
def episode_key(base: np.uint64, episode: np.int64) -> np.uint64:
    """Return the key of one episode's stream."""
    return mix(base ^ mix(np.uint64(episode + 1) * _GOLDEN))


@compiled
def draw(key: np.uint64, step: np.int64) -> float:
    """Return the step-th uniform number in [0, 1) of a stream."""
    return (mix(key + np.uint64(step + 1) * _GOLDEN) >> np.uint64(11)) * _TO_UNIT


@compiled
def pick(u: float, sums: checks.FloatArray, first: int, last: int) -> int:
    """Return the first position in [first, last) whose running sum exceeds u, at most last - 1."""
    if last - first > 16:
        low, high = first, last - 1
        while low < high:
            middle = (low + high) // 2
            if sums[middle] > u:
                high = middle
            else:
                low = middle + 1
        return low
    place = first
    while place < last - 1 and sums[place] <= u:
        place += 1
    return place


@compiled
def running_sums(chances: checks.FloatArray, starts: checks.IntArray) -> checks.FloatArray:
    """Return the sums (n,) of chances (n,) that run within each segment starts[k]:starts[k + 1].

    From the last positive chance of a segment on they are infinite: rounding must not let a draw
    fall off the end, or on an entry without a chance.
    """
    sums = np.empty(len(chances))
    for k in range(len(starts) - 1):
        total, last = 0.0, starts[k]
        for place in range(starts[k], starts[k + 1]):
            total += chances[place]
            sums[place] = total
            if chances[place] > 0.0:
                last = place
        sums[last : starts[k + 1]] = np.inf
    return sums
