"""Lower bounds by information relaxation: what somebody would pay who knows all random numbers.

For any value function V and any policy, adding

    discount (E[V(next) | state, action] - V(the next state that happened))

to the cost of every step changes nothing on average. Now let somebody who knows all random numbers
choose the actions of a path: the least total that is possible is, on average over paths, a lower
bound on the optimal cost. The better V, the less the knowledge is worth. Rows need not hold, and
states may be endless (Brown, Smith and Sun, Operations Research 2010).

Paths are cut at a horizon on the safe side: what comes after counts as the least cost there is, for
ever. On each path the least total is found exactly, by dynamic programming over the states that can
be reached on it. The bound is the mean over paths less its one-sided margin.

Where the noise of a step model has no short list of values, each step of a path draws nodes that
each have the law of the noise, and then one of them, all equally likely, which happens. Sums over
the step's own nodes take the place of expectations: given the nodes what is added is zero on
average, and costs are right on average, so the bound holds for the law itself, not for a
quadrature. Real-valued states that agree to twelve digits of the largest are one: they differ by
the order of additions.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

import numpy as np

from bellweight.backends import backend_of
from bellweight.basis import Basis
from bellweight.common import checks, identity
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import ArgumentError, BasisError
from bellweight.common.streams import stream_keys
from bellweight.models import EventModel, Model
from bellweight.models.loops import Loops
from bellweight.results.result import Result
from bellweight.simulation import (
    KeptBlocks,
    default_horizon,
    mean_and_half_width,
    one_sided,
    run_blocks,
)

STREAM = 5
"""The branch of a seed that paths are drawn from."""

_PATHS = 8  # per block
_FEWEST = 30  # paths from which on a mean has a margin to be trusted
_BITS = 62  # of a number that stands for a state
_MOST_SUCCESSORS = 4_000_000  # that are listed in one step of a path: about a gigabyte in all
_NODES = 64  # that a step draws at most
_DIGITS = 2.0**-40  # of the largest coordinate: real states that are closer are one


class TooManyStatesError(ArgumentError):
    """A path reaches more states than can be listed."""


@dataclass(frozen=True)
class RelaxedBound:
    """A lower bound on the optimal cost that holds with a stated confidence.

    `bound` is the `mean` over paths less its one-sided margin; `half_width` is that of the mean's
    two-sided 95 % interval. What comes after the horizon counts as the least cost there is.
    """

    bound: float
    mean: float
    half_width: float
    paths: int
    horizon: int
    confidence: float
    seed: int
    kind: str = "estimated"

    def __str__(self) -> str:
        return (
            f"no policy costs less than {self.bound:,.6g}, with {100.0 * self.confidence:g} % "
            f"confidence: information relaxation, {self.paths:,} paths of {self.horizon:,} steps, "
            f"mean {self.mean:,.6g}"
        )


def relaxed_bound(
    model: Model,
    result: Result,
    *,
    paths: int = 200,
    horizon: int | None = None,
    confidence: float = 0.95,
    least_cost: float = 0.0,
    seed: int = 0,
    jobs: int | None = None,
    kept_in: str | os.PathLike[str] | None = None,
) -> RelaxedBound:
    """Return a lower bound on the optimal cost, from a result's value function.

    For event, step and factored models, where few states can be reached on a path, or its horizon
    is short.

    `least_cost` is a number that no cost of a step is below. Blocks of paths run in parallel. They
    are kept in the file `kept_in`, if one is named: the same call goes on after it was cut short,
    and one with more paths runs only those that are missing.
    """
    backend = backend_of(model)
    if not backend.samples_states:
        raise ArgumentError(
            f"{model.name} is {backend.noun}, expected an event, step or factored model; "
            "certify(model, result) says what is known"
        )
    steps = checked_steps(model, paths, horizon, confidence)
    if not np.isfinite(least_cost):
        raise ArgumentError(f"least_cost is {least_cost}, expected a finite number")
    event_model, coef = cast("EventModel", model), _coefficients(model, result)
    task = _Paths(event_model, steps, seed, result.basis, coef, float(least_cost))
    about = ("states", model.digest, result.basis, coef, steps, float(least_cost), seed)
    return task.bound(paths, confidence, jobs, kept_in, about, size=_PATHS)


def _coefficients(model: Model, result: Result) -> FloatArray:
    """Return the coefficients of a value function, which may be that of another model."""
    if not isinstance(result, Result):
        raise ArgumentError(f"result is {type(result).__name__}, expected what solve returned")
    state = cast("EventModel", model).sample_initial(0, 1, stream_keys(0, STREAM)[0])
    try:
        n = np.shape(result.basis(state.astype(np.float64)))[1]
    except (BasisError, IndexError, ValueError) as problem:
        raise ArgumentError(f"the result's basis does not fit {model.name}: {problem}") from None
    if n != len(result.coef):
        raise ArgumentError(
            f"the result's value function has {len(result.coef)} coefficients, and its basis {n} "
            f"functions on {model.name}: pass a result of this model, or of one like it"
        )
    return np.array(result.coef)


def checked_steps(model: Model, paths: int, horizon: int | None, confidence: float) -> int:
    """Return the steps of a path; refuse too few paths for a margin that can be trusted.

    The margin takes the mean to be normal. With fewer than 1 / (1 - confidence) paths, the rare
    paths that decide how often the bound fails would hardly be seen.
    """
    checks.positive(confidence, "confidence", below=1.0)
    fewest = max(_FEWEST, ceil(round(1.0 / (1.0 - confidence), 6)))
    if checks.count(paths, "paths") < fewest:
        raise ArgumentError(
            f"paths is {paths}, expected at least {fewest:,} for a confidence of {confidence:g}"
        )
    return default_horizon(model.discount) if horizon is None else checks.count(horizon, "horizon")


@dataclass(frozen=True, eq=False)
class PathTask(ABC):
    """The least totals of simulated paths, in a form that can be sent to another process."""

    model: EventModel
    horizon: int
    seed: int

    def __call__(self, first: int, last: int) -> FloatArray:
        key = stream_keys(self.seed, STREAM)[0]
        starts = self.model.sample_initial(first, last, key)
        return np.array([self.least(n, start) for n, start in enumerate(starts, start=first)])

    @abstractmethod
    def least(self, number: int, start: IntArray) -> float:
        """Return the least total of one path for somebody who knows its random numbers."""

    def bound(
        self,
        paths: int,
        confidence: float,
        jobs: int | None,
        kept_in: str | os.PathLike[str] | None,
        about: tuple[Any, ...],
        *,
        size: int,
    ) -> RelaxedBound:
        """Return the bound from `paths` paths in blocks of `size`, kept in a file if one is named.

        The file belongs to the run that `about` describes.
        """
        kept = None if kept_in is None else KeptBlocks(kept_in, identity.digest(about))
        totals = np.concatenate(run_blocks(self, 0, paths, jobs, size=size, kept=kept))
        mean, width = mean_and_half_width(totals)
        low = mean - one_sided(width, paths, confidence)
        return RelaxedBound(low, mean, width, paths, self.horizon, confidence, self.seed)


@dataclass(frozen=True, eq=False)
class _Layer:
    """One step of a path: what each action costs in each state (n, A), and where it leads."""

    paid: FloatArray
    following: IntArray


@dataclass(frozen=True, eq=False)
class _Paths(PathTask):
    """Least totals by dynamic programming over the states that can be reached on a path."""

    basis: Basis
    coef: FloatArray
    least_cost: float

    def least(self, number: int, start: IntArray) -> float:
        draws = np.random.default_rng([self.seed, STREAM, number]).random(self.horizon)
        nodes = np.random.default_rng([self.seed, STREAM, number, 1])
        layers, states = [], start[None, :]
        for draw in draws:
            layer, states = self._step(
                states, float(draw), self.model.loops_of_a_step(nodes, _NODES)
            )
            layers.append(layer)
        discount = self.model.discount
        value = np.full(len(states), self.least_cost / (1.0 - discount))
        for layer in reversed(layers):
            value = (layer.paid + discount * value[layer.following]).min(axis=1)
        return float(value[0])

    def _step(self, states: Any, draw: float, loops: Loops) -> tuple[_Layer, Any]:
        model, n_actions = self.model, self.model.n_actions
        self._check_number(len(states), loops.n_events)
        mask = model.admissible_mask(states)
        pairs = np.repeat(states, n_actions, axis=0)
        actions = np.tile(np.arange(n_actions), len(states))
        cost, chance, after = loops.expand(pairs, actions)
        if cost[mask.ravel()].min() < self.least_cost:
            raise ArgumentError(
                f"a step costs {cost[mask.ravel()].min():g}, below least_cost={self.least_cost:g}: "
                "give a number that no cost is below"
            )
        happens = self._happens(chance, draw)
        pair, event = np.nonzero(happens)
        reached = pairs.copy()
        reached[pair] = after[pair, event]
        here, there = self._values(states), self._values(after.reshape(-1, states.shape[1]))
        drift = (chance * (there.reshape(chance.shape) - np.repeat(here, n_actions)[:, None])).sum(
            1
        )
        expected = np.repeat(here, n_actions) + drift
        paid = cost + model.discount * (expected - self._values(reached))
        paid[~mask.ravel()] = np.inf
        following, place = _distinct(reached)
        shape = (len(states), n_actions)
        return _Layer(paid.reshape(shape), place.reshape(shape)), following

    def _check_number(self, states: int, successors: int) -> None:
        """Refuse to list the successors of more states than memory is meant for."""
        most = _MOST_SUCCESSORS // (self.model.n_actions * successors)
        if states > most:
            raise TooManyStatesError(
                f"a path reaches {states:,} states in one step, expected at most {most:,}: shorten "
                "the horizon or offer fewer actions; path_bound(model) is for networks of queues, "
                "LocalRows() for parts that are local, bends= and lipschitz= for step models"
            )

    def _happens(self, chance: FloatArray, draw: float) -> BoolArray:
        """Return which event (n, E) happens for a random number, at most one in each row.

        Knowing the future is worth least when the same random numbers mean the same events whatever
        the action.
        """
        places = self.model.event_places
        if places is None:
            ends = np.cumsum(chance, axis=1)
            return np.asarray((draw >= ends - chance) & (draw < ends))
        return np.asarray((draw >= places) & (draw < places + chance))

    def _values(self, states: IntArray) -> FloatArray:
        distinct, place = _distinct(states)
        return np.asarray(self.basis(distinct.astype(np.float64)) @ self.coef)[place]


def _distinct(states: Any) -> tuple[Any, IntArray]:
    """Return the distinct ones of states (n, d), and where each stands among them (n,)."""
    numbers = states
    if states.dtype.kind == "f":
        largest = float(np.abs(states).max(initial=1.0))
        numbers = np.rint(states / (_DIGITS * largest)).astype(np.int64)
    least = numbers.min(axis=0)
    sizes = numbers.max(axis=0) - least + 1
    if np.log2(sizes).sum() < _BITS:  # numbers are sorted much faster than rows
        codes = np.ravel_multi_index(tuple((numbers - least).T), tuple(sizes))
        _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    else:
        _, first, place = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
    return states[first], place.ravel()
