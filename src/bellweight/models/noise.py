"""The random part of a step: laws of real numbers, their nodes and weights, and samplers.

Expectations are sums over nodes. A finite law is its own nodes; a continuous one is replaced by a
quadrature: Gauss-Hermite for a normal law, Gauss-Legendre where it is cut to an interval or
uniform, generalised Gauss-Laguerre for gamma and exponential laws. Independent components are
multiplied out where that gives few nodes; otherwise, and for samplers, a fixed set of draws stands
for the law, the same for all rows (common random numbers). Simulation always draws from the law
itself.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError
from bellweight.common.streams import Keys
from bellweight.models.kernels.layouts import (
    EXPONENTIAL,
    FINITE,
    GAMMA,
    INTERVAL,
    NORMAL,
    Laws,
)
from bellweight.models.laws import Independent, Law

NODES = 32
"""Nodes of a continuous law, unless the user says how many."""

MOST_NODES = 1_024
"""More combinations of nodes than this are replaced by draws."""

DRAWS = 512
"""Draws that stand for a law, unless the user says how many."""

_LEAST = 2.0**-54  # some quantiles of 0 are infinite


class ContinuousLaw(ABC):
    """A real random number with a density."""

    @abstractmethod
    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Return nodes (n,) and weights (n,) that sum to one."""

    @abstractmethod
    def quantiles(self, u: FloatArray) -> FloatArray:
        """Return the numbers (n,) below which the law has mass u (n,), each between 0 and 1."""

    @abstractmethod
    def entry(self) -> tuple[float, ...]:
        """Return the law as compiled loops take it: see `Laws` in `kernels/layouts.py`.

        Its kind, two numbers, the bounds, and the distribution function at each bound.
        """


@files.storable("Normal")
@dataclass(frozen=True)
class Normal(ContinuousLaw):
    """A normal number, cut to [lower, upper] where these are given."""

    mean: float
    deviation: float
    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self) -> None:
        checks.positive(self.deviation, "deviation")
        if not self.lower < self.upper or not np.isfinite(self.mean):
            raise ModelError(f"{self!r} has no density: expected lower < upper and a finite mean")
        below, above = self._mass()
        if above - below < tolerances.CHANCES:
            raise ModelError(f"{self!r} has almost no mass between its bounds: widen them")

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        if not np.isfinite(self.lower) and not np.isfinite(self.upper):
            nodes, weights = np.polynomial.hermite_e.hermegauss(n)
            return self.mean + self.deviation * nodes, weights / weights.sum()
        # Beyond nine deviations there is no mass that a double could show.
        low = max(self.lower, self.mean - 9.0 * self.deviation)
        high = min(self.upper, self.mean + 9.0 * self.deviation)
        nodes, weights = _legendre(low, high, n)
        weights = weights * np.exp(-0.5 * ((nodes - self.mean) / self.deviation) ** 2)
        return nodes, weights / weights.sum()

    def quantiles(self, u: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        below, above = self._mass()
        found = self.mean + self.deviation * ndtri(below + u * (above - below))
        return np.clip(found, self.lower, self.upper)

    def entry(self) -> tuple[float, ...]:
        return (NORMAL, self.mean, self.deviation, self.lower, self.upper, *self._mass())

    def _mass(self) -> tuple[float, float]:
        from scipy.special import ndtr

        ends = (np.array([self.lower, self.upper]) - self.mean) / self.deviation
        below, above = ndtr(ends)
        return float(below), float(above)


@files.storable("Gamma")
@dataclass(frozen=True)
class Gamma(ContinuousLaw):
    """A gamma number with this shape and scale; its mean is their product."""

    shape: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        checks.positive(self.shape, "shape")
        checks.positive(self.scale, "scale")

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        from scipy.special import roots_genlaguerre

        nodes, weights = roots_genlaguerre(n, self.shape - 1.0)
        return self.scale * nodes, weights / weights.sum()

    def quantiles(self, u: FloatArray) -> FloatArray:
        from scipy.special import gammaincinv

        return np.asarray(self.scale * gammaincinv(self.shape, u))

    def entry(self) -> tuple[float, ...]:
        return (GAMMA, self.shape, self.scale, 0.0, np.inf, 0.0, 1.0)


@files.storable("Exponential")
@dataclass(frozen=True)
class Exponential(ContinuousLaw):
    """An exponential number with this mean."""

    mean: float

    def __post_init__(self) -> None:
        checks.positive(self.mean, "mean")

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        return Gamma(1.0, self.mean).quadrature(n)

    def quantiles(self, u: FloatArray) -> FloatArray:
        return np.asarray(-self.mean * np.log1p(-u))

    def entry(self) -> tuple[float, ...]:
        return (EXPONENTIAL, self.mean, 0.0, 0.0, np.inf, 0.0, 1.0)


@files.storable("Interval")
@dataclass(frozen=True)
class Interval(ContinuousLaw):
    """A number that is uniform between `lower` and `upper`."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not -np.inf < self.lower < self.upper < np.inf:
            raise ModelError(f"{self!r} is no interval: expected finite lower < upper")

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        nodes, weights = _legendre(self.lower, self.upper, n)
        return nodes, weights / weights.sum()

    def quantiles(self, u: FloatArray) -> FloatArray:
        return self.lower + u * (self.upper - self.lower)

    def entry(self) -> tuple[float, ...]:
        return (INTERVAL, self.lower, self.upper, self.lower, self.upper, 0.0, 1.0)


AnyLaw = Law | ContinuousLaw


def law_list(given: Any, name: str) -> tuple[AnyLaw, ...]:
    """Return laws as the user gives them: one, several, or numbers that are not random."""
    if isinstance(given, Independent):
        return given.laws
    listed = [given] if isinstance(given, AnyLaw) or np.ndim(given) == 0 else list(given)
    laws = []
    for j, law in enumerate(listed):
        if isinstance(law, AnyLaw):
            laws.append(law)
        elif isinstance(law, int | float | np.number) and np.isfinite(law):
            laws.append(Law.certain(float(law)))
        else:
            raise ModelError(
                f"{name}[{j}] is {law!r}, expected a law such as Normal(6, 3.5) or "
                f"Law.poisson(5, 20), or for all of {name} a sampler, a function of `rng`"
            )
    return tuple(laws)


def laid_out(laws: Sequence[AnyLaw]) -> Laws:
    """Return laws in the layout that compiled loops take."""
    finite = Independent([law if isinstance(law, Law) else Law.certain(0.0) for law in laws])
    start, values, sums = finite.tables
    plain = (FINITE, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    entries = [plain if isinstance(law, Law) else law.entry() for law in laws]
    columns = np.array(entries, dtype=np.float64).reshape(-1, 7).T
    numbers = [np.ascontiguousarray(column) for column in columns[1:]]
    return Laws(*[columns[0].astype(np.int64), *numbers, start, values, sums])


def product_nodes(laws: Sequence[AnyLaw], n: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the nodes (N, m) and weights (N,) of independent laws, None where N is too large."""
    each = [
        (law.values, law.chances) if isinstance(law, Law) else law.quadrature(n) for law in laws
    ]
    if np.prod([float(len(values)) for values, _ in each]) > MOST_NODES:
        return None
    nodes = np.array(list(product(*(values for values, _ in each)))).reshape(-1, len(laws))
    weights = np.array([np.prod(w) for w in product(*(weights for _, weights in each))])
    # Nodes of no weight, such as values of no chance, are no part of an expectation.
    used = weights > 0.0
    return np.ascontiguousarray(nodes[used]), weights[used]


def spread_draws(laws: Sequence[AnyLaw], n: int, rng: np.random.Generator) -> FloatArray:
    """Return n draws (n, m) of independent laws that fill them evenly (a Latin hypercube).

    Each of them alone has the joint law, so their average is unbiased; together they are close to
    a quadrature.
    """
    columns = []
    for law in laws:
        u = (rng.permutation(n) + rng.random(n)) / n
        if isinstance(law, Law):
            place = np.searchsorted(np.cumsum(law.chances), u, side="right")
            columns.append(law.values[np.minimum(place, np.flatnonzero(law.chances)[-1])])
        else:
            columns.append(law.quantiles(np.maximum(u, _LEAST)))
    return np.ascontiguousarray(np.stack(columns, axis=1))


def law_draws(laws: Laws, n: int, key: np.uint64) -> FloatArray:
    """Return n draws (n, m) of independent laws."""
    from bellweight.models.kernels.noise_draws import fill_rows

    drawn = np.zeros((n, len(laws.kind)))
    fill_rows(drawn, key, laws)
    return drawn


@dataclass(frozen=True, eq=False)
class Sampler:
    """A function that draws vectors: `fn(rng)` one (m,), or `fn(rng, n)` n at once (n, m)."""

    fn: Callable[..., Any]
    name: str = "noise"

    def drawn(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return n draws (n, m)."""
        found = self._answers(rng, n)
        lengths = sorted({np.shape(row) for row in found}) if isinstance(found, list) else []
        if len(lengths) > 1:
            raise ModelError(
                f"the {self.name} sampler returned vectors of shapes {lengths[0]} and "
                f"{lengths[1]}, expected as many numbers in every draw"
            )
        what = f"what the {self.name} sampler returned"
        array = checks.float_array(found, what, (-1,) * np.ndim(found))
        if self._takes_many and array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or len(array) != n:
            raise ModelError(
                f"the {self.name} sampler returned shape {array.shape} for {n} draws, expected "
                f"({n}, m)"
            )
        return np.ascontiguousarray(array)

    @property
    def _takes_many(self) -> bool:
        return len(inspect.signature(self.fn).parameters) > 1

    def _answers(self, rng: np.random.Generator, n: int) -> Any:
        """Return what the user's function answers: one array, or a list of n vectors."""
        if len(inspect.signature(self.fn).parameters) not in (1, 2):
            raise ModelError(
                f"the {self.name} sampler takes {inspect.signature(self.fn)}, expected (rng) for "
                "one draw or (rng, n) for n at once"
            )
        try:
            if self._takes_many:
                return self.fn(rng, n)
            return [np.ravel(self.fn(rng)) for _ in range(n)]
        except Exception as problem:
            raise ModelError(
                f"the {self.name} sampler fails ({type(problem).__name__}: {problem}): correct it"
            ) from problem

    def check(self) -> None:
        """Refuse a sampler that is not reproducible."""
        first, again = (self.drawn(np.random.default_rng(0), 3) for _ in range(2))
        if not np.array_equal(first, again):
            raise ModelError(
                f"the {self.name} sampler gave {first[0].tolist()} and then {again[0].tolist()} "
                "for the same generator: draw from the generator that it is given, and from "
                "nothing else"
            )

    def episodes(self, first: int, last: int, horizon: int, keys: Keys) -> FloatArray:
        """Return the draws (n, horizon, m) of episodes, each from a stream of its own."""
        seeds = ([int(keys[2]), episode] for episode in range(first, last))
        return np.array([self.drawn(np.random.default_rng(seed), horizon) for seed in seeds])

    def starts(self, first: int, last: int, key: np.uint64) -> FloatArray:
        """Return one draw (n, m) for each episode."""
        seeds = ([int(key), episode] for episode in range(first, last))
        return np.array([self.drawn(np.random.default_rng(seed), 1)[0] for seed in seeds])


def _legendre(low: float, high: float, n: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (low + high) + 0.5 * (high - low) * nodes, 0.5 * (high - low) * weights
