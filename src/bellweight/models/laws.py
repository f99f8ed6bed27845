"""Finite laws: random numbers with few values, as plain data.

A `Law` is a list of values with their probabilities. `Independent` joins laws into a random vector
with independent components; it knows its mean exactly and draws by inverting the distribution
functions inside compiled code. `Sampled` is a random vector that the user draws, with the mean that
the user declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import fsum
from typing import Any, Self

import numpy as np

from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.short import Short
from bellweight.common.status import ModelError


@files.storable("Law")
@dataclass(frozen=True, eq=False, repr=False)
class Law(Short):
    """A number that takes finitely many values.

    Args:
        values: what it can be (k,).
        chances: with which probabilities (k,); they sum to one.

    Examples:
        >>> float(bw.Law([0.0, 1.0, 2.0], [0.5, 0.25, 0.25]).mean)
        0.75
    """

    values: Any
    chances: Any

    def __post_init__(self) -> None:
        values = checks.float_array(self.values, "values", (-1,))
        if len(values) == 0:
            raise ModelError("a law needs at least one value: use Law.certain(0) for nothing")
        chances = checks.distribution(
            self.chances, "chances", len(values), lambda k: f"value {values[k]:g}"
        )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "chances", chances)

    @property
    def mean(self) -> float:
        """The expected value, the same on every machine: models are told apart by it."""
        return fsum(self.values * self.chances)

    @classmethod
    def certain(cls, value: float) -> Self:
        """Return the law of a number that is not random."""
        return cls([value], [1.0])

    @classmethod
    def uniform(cls, low: int, high: int) -> Self:
        """Return the law that gives low, low + 1, ..., high the same probability."""
        if high < low:
            raise ModelError(f"Law.uniform({low}, {high}) has no values: expected low <= high")
        n = high - low + 1
        return cls(np.arange(low, high + 1), np.full(n, 1.0 / n))

    @classmethod
    def poisson(cls, mean: float, limit: int) -> Self:
        """Return the Poisson law conditioned on being at most `limit`."""
        checks.positive(mean, "mean")
        top = checks.count(limit, "limit", least=0)
        values = np.arange(top + 1, dtype=np.float64)
        # From the likeliest value up and down: exponentials differ between machines.
        likeliest = int(min(mean, top))
        above = np.cumprod(mean / values[likeliest + 1 :])
        below = np.cumprod(values[likeliest:0:-1] / mean)[::-1]
        mass = np.concatenate([below, [1.0], above])
        return cls(values, mass / fsum(mass))


@files.storable("Independent")
@dataclass(frozen=True, eq=False, repr=False)
class Independent(Short):
    """A random vector (k,) with independent components."""

    laws: tuple[Law, ...]

    def __init__(self, laws: Sequence[Law]) -> None:
        for j, law in enumerate(laws):
            if not isinstance(law, Law):
                raise ModelError(f"law {j} is {law!r}, expected a Law such as Law.poisson(5, 15)")
        object.__setattr__(self, "laws", tuple(laws))

    def __len__(self) -> int:
        return len(self.laws)

    @property
    def mean(self) -> FloatArray:
        """The expected vector (k,)."""
        return np.array([law.mean for law in self.laws])

    @property
    def values(self) -> FloatArray:
        """All values of all components."""
        return np.concatenate([law.values for law in self.laws] or [np.zeros(0)])

    @cached_property
    def tables(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Where each component begins, all values, all running sums: what compiled loops take."""
        sizes = [len(law.values) for law in self.laws]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sums = [np.append(np.cumsum(law.chances)[:-1], np.inf) for law in self.laws]
        return starts, self.values, np.concatenate(sums or [np.zeros(0)])

    def sample(self, first: int, last: int, base: Any) -> FloatArray:
        """Return one vector per episode first, ..., last - 1."""
        from bellweight.models.kernels.noise_draws import episode_keys, fill_finite

        drawn = np.zeros((last - first, len(self.laws)))
        fill_finite(drawn, episode_keys(base, first, last - first), 0, *self.tables)
        return drawn

    def outcomes(self) -> tuple[FloatArray, FloatArray]:
        """Return every possible vector (n, k) and its probability (n,)."""
        grids = [range(len(law.values)) for law in self.laws]
        places = np.array(list(product(*grids)), dtype=np.int64).reshape(-1, len(self.laws))
        vectors = np.zeros(places.shape)
        chances = np.ones(len(places))
        for j, law in enumerate(self.laws):
            vectors[:, j] = law.values[places[:, j]]
            chances *= law.chances[places[:, j]]
        return vectors, chances


@dataclass(frozen=True, eq=False, repr=False)
class Sampled(Short):
    """A random vector that the user draws: `fn`, and the `mean` (k,) that is claimed for it.

    As an initial state, `fn(n, rng)` returns n states (n, d). As the random part of a transition,
    `fn(states, actions, rng)` returns one vector for each state (n, d) with its action (n, m).
    """

    fn: Callable[..., Any]
    mean: Any

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise ModelError(f"fn is {self.fn!r}, expected a function that draws vectors")
        object.__setattr__(self, "mean", checks.float_array(self.mean, "mean", (-1,)))

    def drawn(self, n: int, rng: np.random.Generator, *arguments: Any) -> FloatArray:
        """Return n vectors (n, k), checked for their shape."""
        shape = (n, len(self.mean))
        return checks.float_array(self.fn(*arguments, rng), "what the sampler returned", shape)


def contradiction(draws: FloatArray, mean: FloatArray) -> tuple[int, float] | None:
    """Return which component's draws contradict a claimed mean, and their own mean; or None.

    Six standard errors: a right claim is refused once in a hundred million times.
    """
    found = draws.mean(axis=0)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    allowed = 6.0 * error + tolerances.PROBABILITY * np.maximum(1.0, np.abs(mean))
    wrong = checks.first_index(np.abs(found - mean) > allowed)
    return None if wrong is None else (wrong[0], float(found[wrong]))
