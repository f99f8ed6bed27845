"""One step of policy improvement for queueing networks, by paired simulation in every decision.

Let J be the value of a static priority. At most one event happens in a step, so serving queue i
instead of queue b, the one that the priority serves, changes the expected cost from state x on by
discount times

    gain = service_i (J(x after i) - J(x)) - service_b (J(x after b) - J(x)),

whatever the other servers do: each server decides by itself. The differences of J are simulated
with the same random numbers: all copies of the network see the same arrivals, and a server of a
group finishes in all copies at the same times, as far as its rates allow. A server leaves the
priority only where the gain is clearly negative: `clear` standard errors below zero. Without that
test decisions change by noise, and nothing is gained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray, IntArray

_MODULUS = 2_147_483_647  # of the generator x -> 48271 x, which every machine carries out alike
_MULTIPLIER = 48_271


@dataclass(frozen=True, eq=False)
class RolloutData:
    """What a rollout needs to know: the network, the priority and the effort of a decision.

    `members` (g, k) are the queues of each server, -1 where there are fewer, in the order of the
    actions; `strides` (g,) what an option adds to the action; `rank` (n,) the priority of each
    queue, lowest first; `onward` (n,) the next queue, -1 where jobs leave.
    """

    arrivals: FloatArray
    services: FloatArray
    onward: IntArray
    members: IntArray
    strides: IntArray
    rank: IntArray
    discount: float
    paths: int
    horizon: int
    clear: float
    seed: int


def served_queue(queues: Any, own: Any, rank: Any) -> int:
    """Return the queue with jobs that a server prefers among its own, -1 where all are empty."""
    served = -1
    for i in own:
        if i >= 0 and queues[i] > 0 and (served < 0 or rank[i] < rank[served]):
            served = i
    return served


def serve(queues: Any, i: int, onward: Any) -> None:
    """Move a job of queue i on."""
    queues[i] -= 1
    if onward[i] >= 0:
        queues[onward[i]] += 1


def happen(
    copies: Any, apart: Any, place: float, arrivals: Any, services: Any, onward: Any, members: Any,
    rank: Any,
) -> None:  # fmt: skip
    """Let the event of a random number in [0, 1) happen in all copies that are still apart."""
    for i in range(len(arrivals)):
        if 0.0 <= place < arrivals[i]:
            for c in range(len(copies)):
                copies[c, i] += apart[c]
        place -= arrivals[i]
    for g in range(len(members)):
        fastest = 0.0
        for i in members[g]:
            if i >= 0:
                fastest = max(fastest, services[i])
        if 0.0 <= place < fastest:
            for c in range(len(copies)):
                i = served_queue(copies[c], members[g], rank) if apart[c] == 1 else -1
                if i >= 0 and place < services[i]:
                    serve(copies[c], i, onward)
        place -= fastest


def add_differences(copies: Any, apart: Any, weight: float, change: Any) -> int:
    """Add how many jobs more each copy has than the first; return how many still differ from it.

    A copy that has become equal stays equal, and is left alone from then on.
    """
    left = 0
    for c in range(1, len(copies)):
        if apart[c] == 1:
            same = True
            for i in range(copies.shape[1]):
                change[c - 1] += weight * (copies[c, i] - copies[0, i])
                same = same and copies[c, i] == copies[0, i]
            apart[c] = 0 if same else 1
            left += apart[c]
    return left


def add_gains(
    state: Any, own: Any, rank: Any, asked: Any, services: Any, change: Any, mean: Any, square: Any
) -> None:
    """Add what one path says about the gain of each queue of a server over the base's."""
    base = served_queue(state, own, rank)
    for i in own:
        if i >= 0 and asked[i] == 1:
            gain = services[i] * change[i] - services[base] * change[base]
            mean[i] += gain
            square[i] += gain * gain


def ask(state: Any, own: Any, rank: Any, asked: Any) -> None:
    """Mark the queues of a server that has a choice: those with jobs, if they are several."""
    base = served_queue(state, own, rank)
    for i in own:
        if i >= 0 and i != base and state[i] > 0:
            asked[i] = asked[base] = 1


def clearest(
    own: Any, base: int, asked: Any, mean: Any, square: Any, paths: int, clear: float
) -> int:
    """Return the option of a server: the best one that is clearly better than the base's."""
    chosen, lowest = 0, 0.0
    for k in range(len(own)):
        if own[k] >= 0 and own[k] == base:
            chosen = k
    for k in range(len(own)):
        i = own[k]
        if i >= 0 and asked[i] == 1 and i != base:
            average = mean[i] / paths
            variance = max(square[i] / paths - average * average, 0.0) / (paths - 1)
            if average + clear * np.sqrt(variance) < 0.0 and average < lowest:
                lowest = average
                chosen = k
    return chosen


def rollout_rule(data: RolloutData) -> Callable[..., int]:
    """Return the decision rule; it is compiled together with the model it acts on."""
    arrivals, services, onward = data.arrivals, data.services, data.onward
    members, strides, rank = data.members, data.strides, data.rank
    discount, paths, horizon, clear = data.discount, data.paths, data.horizon, data.clear
    seed, modulus, multiplier = data.seed, _MODULUS, _MULTIPLIER
    n, groups = len(services), len(members)

    def rollout(state: Any, parameters: Any) -> int:
        # Copy i + 1 is ahead of the first by one service of queue i.
        begun = np.zeros((n + 1, n), dtype=np.int64)
        asked = np.zeros(n, dtype=np.int64)
        mean, square, change = np.zeros(n), np.zeros(n), np.zeros(n)
        apart = np.ones(n + 1, dtype=np.int64)
        label = seed
        for c in range(n + 1):
            for i in range(n):
                begun[c, i] = state[i]
        for g in range(groups):
            ask(state, members[g], rank, asked)
        for i in range(n):
            label = (label * 31 + state[i] + 1) % modulus
            if asked[i] == 1:
                serve(begun[i + 1], i, onward)
        for path in range(paths):
            number = (label * 7919 + path * 104729) % (modulus - 1) + 1
            copies = begun.copy()
            for i in range(n):
                apart[i + 1], change[i] = asked[i], 0.0
            weight = 1.0
            for _ in range(horizon):
                if add_differences(copies, apart, weight, change) == 0:
                    break
                weight *= discount
                number = (number * multiplier) % modulus
                place = number / modulus
                happen(copies, apart, place, arrivals, services, onward, members, rank)
            for g in range(groups):
                add_gains(state, members[g], rank, asked, services, change, mean, square)
        action = 0
        for g in range(groups):
            base = served_queue(state, members[g], rank)
            option = clearest(members[g], base, asked, mean, square, paths, clear)
            action += option * strides[g]
        return action

    return rollout
