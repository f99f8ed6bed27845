"""A lower bound for queueing networks: on each path a linear program that knows the future.

Somebody who knows all random numbers of a path also knows at which steps a service would succeed.
Let y in [0, 1] be the share of a service that is used at such a step. Services that exclude each
other share the step, a service takes at most what is in its queue, and queues follow the jumps:

    min  sum_t discount^t cost(x_t)
    s.t. x_{t+1} = x_t + arrivals_t + sum_e jump_e y_{t,e},   sum_e y_{t,e} <= 1,   x >= 0,
         what event e takes from a queue, times y_{t,e}, is at most what was there before.

Every policy's path is feasible, so the mean of the minima is a lower bound on the optimal cost;
fractions only lower it. It is the information relaxation of `relaxation` without a penalty, for
states that are too many to list. The minimum of a path is bounded by its multipliers, so the solver
need not be trusted. What comes after the horizon counts as the least cost.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import sparse

from bellweight.backends import backend_of
from bellweight.certificates.relaxation import STREAM, PathTask, RelaxedBound, checked_steps
from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import ArgumentError, SolverError, Status
from bellweight.models import EventModel, Model
from bellweight.program.integer_program import IntegerProgram

_PATHS = 2  # per block
_LOOKED_AT = 200  # states at which costs are compared with an affine function
_FAR = 1_000  # the largest coordinate of such a state


def path_bound(
    model: Model,
    *,
    paths: int = 50,
    horizon: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int | None = None,
    kept_in: str | os.PathLike[str] | None = None,
) -> RelaxedBound:
    """Return a lower bound on the optimal cost of a network, with a stated confidence.

    For event models whose events are jumps with a table of chances, without upper bounds, with
    costs that are affine, not falling, and the same for all actions (looked at in some states).
    Blocks of paths run in parallel, and are kept in the file `kept_in` as in `relaxed_bound`.
    """
    network = _network(model)
    steps = checked_steps(model, paths, horizon, confidence)
    slopes, level = _affine_cost(network)
    about = ("programs", model.digest, steps, seed)
    task = _Programs(network, steps, seed, slopes, level)
    return task.bound(paths, confidence, jobs, kept_in, about, size=_PATHS)


def is_network(model: Model) -> bool:
    """Whether events are jumps with a table of chances."""
    given = cast("EventModel", model)
    samples = backend_of(model).samples_states
    return samples and given.jumps is not None and given.event_places is not None


def _network(model: Model) -> EventModel:
    """Return the model if it is a network, or say what is missing."""
    event_model = cast("EventModel", model)
    if not is_network(model):
        raise ArgumentError(
            f"{model.name} is no network of queues: path_bound needs an event model whose events "
            "are jumps with a table of chances; use relaxed_bound(model, result)"
        )
    if (event_model.upper >= 0).any():
        raise ArgumentError(
            f"queue {int(np.argmax(event_model.upper >= 0))} has an upper bound, expected none: "
            "use relaxed_bound(model, result), or LocalRows()"
        )
    return event_model


def _affine_cost(model: EventModel) -> tuple[FloatArray, float]:
    """Return slopes (d,) and level of the cost, or say where it is not affine or falls."""
    d, n_actions = model.dimension, model.n_actions
    rng = np.random.default_rng(0)
    other = rng.integers(0, _FAR, (_LOOKED_AT, d))
    states = np.concatenate([np.zeros((1, d), dtype=np.int64), np.eye(d, dtype=np.int64), other])
    pairs, actions = (
        np.repeat(states, n_actions, axis=0),
        np.tile(np.arange(n_actions), len(states)),
    )
    cost = model.expand(pairs, actions)[0].reshape(len(states), n_actions)
    level, slopes = float(cost[0, 0]), cost[1 : d + 1, 0] - cost[0, 0]
    off = np.abs(cost - (level + states @ slopes)[:, None]).max(axis=1)
    worst = int(np.argmax(off))
    if off[worst] > tolerances.DECLARED * (1.0 + np.abs(cost[worst]).max()) or (slopes < 0.0).any():
        raise ArgumentError(
            f"the cost in state {states[worst].tolist()} is not that of an affine function of the "
            "queues that never falls, the same for all actions: use relaxed_bound(model, result)"
        )
    return slopes, level


@dataclass(frozen=True, eq=False)
class _Programs(PathTask):
    """Lower bounds on the least totals, each by a linear program."""

    slopes: FloatArray
    level: float

    def least(self, number: int, start: IntArray) -> float:
        draws = np.random.default_rng([self.seed, STREAM, number]).random(self.horizon)
        table = cast("FloatArray", self.model.probability)
        places, jumps = self.model.event_places, cast("IntArray", self.model.jumps)
        assert places is not None
        program = _PathProgram(start, self.model.discount, self.slopes)
        for step, draw in enumerate(draws):
            under: BoolArray = (draw >= places) & (draw < places + table)
            sure = np.flatnonzero(under.all(axis=0) & (jumps >= 0).all(axis=1))
            for event in sure:
                program.arrive(step, jumps[event])
            open_events = np.setdiff1d(np.flatnonzero(under.any(axis=0)), sure)
            if len(open_events):
                program.serve(step, jumps[open_events])
        return program.least(self.horizon) + self.level / (1.0 - self.model.discount)


class _PathProgram:
    """The program of a path: variables are services, and each queue after every change of it."""

    def __init__(self, start: IntArray, discount: float, slopes: FloatArray) -> None:
        self._discount, self._slopes = discount, slopes
        self._price: list[float] = []
        self._upper: list[float] = []
        self._entries: list[tuple[int, int, float]] = []
        self._limits: list[tuple[float, float]] = []
        self._since = np.zeros(len(start))
        self._jobs = float(start.sum())
        self._queue = [self._new() for _ in start]
        for i, jobs in enumerate(start):
            self._row({self._queue[i]: 1.0}, float(jobs), float(jobs))

    def _new(self, upper: float = np.inf) -> int:
        self._price.append(0.0)
        self._upper.append(upper)
        return len(self._price) - 1

    def _row(self, entries: dict[int, float], lower: float, upper: float) -> None:
        row = len(self._limits)
        self._limits.append((lower, upper))
        self._entries += [(row, column, value) for column, value in entries.items()]

    def arrive(self, step: int, jump: IntArray) -> None:
        """Add jobs that come for sure."""
        self._jobs += float(jump.sum())
        for i in np.flatnonzero(jump):
            self._change(int(i), step, {}, float(jump[i]))

    def serve(self, step: int, jumps: IntArray) -> None:
        """Let services (k, d) that exclude each other share a step."""
        shares = [self._new(1.0) for _ in jumps]
        if len(shares) > 1:
            self._row(dict.fromkeys(shares, 1.0), -np.inf, 1.0)
        for share, jump in zip(shares, jumps, strict=True):
            for i in np.flatnonzero(jump < 0):
                self._row({share: float(-jump[i]), self._queue[i]: -1.0}, -np.inf, 0.0)
        self._jobs += float(np.maximum(jumps.sum(axis=1), 0).max())
        for i in np.flatnonzero(np.any(jumps != 0, axis=0)):
            used = {s: float(j[i]) for s, j in zip(shares, jumps, strict=True) if j[i] != 0}
            self._change(int(i), step, used, 0.0)

    def _change(self, i: int, step: int, used: dict[int, float], sure: float) -> None:
        """Give queue i a new variable after a step: the one before, services and arrivals."""
        before = self._queue[i]
        self._pay(i, step + 1)
        self._queue[i] = self._new()
        entries = {self._queue[i]: 1.0, before: -1.0} | {s: -by for s, by in used.items()}
        self._row(entries, sure, sure)

    def _pay(self, i: int, until: int) -> None:
        """Charge queue i as it is for the steps since its last change."""
        d, since = self._discount, self._since[i]
        self._price[self._queue[i]] += self._slopes[i] * (d**since - d**until) / (1.0 - d)
        self._since[i] = until

    def least(self, horizon: int) -> float:
        """Return a bound below the minimum, from the multipliers of the program."""
        for i in range(len(self._queue)):
            self._pay(i, horizon)
        rows, columns, values = zip(*self._entries, strict=True)
        shape = (len(self._limits), len(self._price))
        matrix = sparse.csr_array((values, (rows, columns)), shape=shape)
        lower, upper = np.array(self._limits).T
        # No queue ever holds more than all jobs there are: finite limits make the bound finite.
        most = np.minimum(np.array(self._upper), self._jobs)
        none = np.zeros(shape[1])
        program = IntegerProgram(matrix, lower, upper, none, most, none.astype(np.bool_))
        found = program.minimise(np.array(self._price))
        if found.status is not Status.OPTIMAL or not np.isfinite(found.bound):
            raise SolverError(found.status, "the program of a path: shorten the horizon")
        return float(found.bound)
