"""The paper's network written by hand for one purpose: the peer of the general event loops.

Greedy simulation with a quadratic value function. Everything that is known of this very network is
used: three servers decide separately, jobs move along two lines, at most two queues change. The
random numbers are used exactly as the general loops use them, so both give the same costs.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from bellweight.common.compiled import draw, episode_key

UNIT = 11.5
ARRIVAL = 1.0 / UNIT
SERVICE = np.array([4.0, 2.0, 3.0, 3.1, 3.0, 2.2, 3.0, 2.5]) / UNIT
NEXT = np.array([1, 2, -1, 4, 5, 6, 7, -1])
DECAY = 0.9


@numba.njit(nogil=True)
def greedy_costs(  # noqa: PLR0912 - one loop, written out
    first: int,
    last: int,
    horizon: int,
    keys: Any,
    discount: float,
    linear: Any,
    quadratic: Any,
    costs: Any,
) -> None:
    """Write the discounted cost of each episode."""
    x = np.zeros(8, np.int64)
    slope = np.zeros(8)
    gain = np.zeros(8)
    for episode in range(first, last):
        initial_key = episode_key(keys[0], episode)
        event_key = episode_key(keys[2], episode)
        for i in range(8):
            x[i] = int(np.log(1.0 - draw(initial_key, i)) / np.log(DECAY))
        total, factor = 0.0, 1.0
        for step in range(horizon):
            jobs = 0
            for i in range(8):
                s = 0.0
                for j in range(8):
                    s += quadratic[i, j] * x[j]
                slope[i] = linear[i] + 2.0 * s
                jobs += x[i]
            for i in range(8):
                gain[i] = 0.0
                if x[i] > 0:
                    change = quadratic[i, i] - slope[i]
                    n = NEXT[i]
                    if n >= 0:
                        change += slope[n] + quadratic[n, n] - 2.0 * quadratic[i, n]
                    gain[i] = SERVICE[i] * change
            total += factor * jobs
            factor *= discount
            u = draw(event_key, step)
            if u < ARRIVAL:
                x[0] += 1
                continue
            if u < ARRIVAL + ARRIVAL:
                x[3] += 1
                continue
            one = 0
            if gain[2] < gain[one]:
                one = 2
            if gain[7] < gain[one]:
                one = 7
            two = 1 if gain[1] <= gain[5] else 5
            three = 3
            if gain[4] < gain[three]:
                three = 4
            if gain[6] < gain[three]:
                three = 6
            running = ARRIVAL + ARRIVAL
            for i in range(8):
                if i in (one, two, three):
                    running += SERVICE[i]
                    if u < running:
                        if x[i] > 0:
                            x[i] -= 1
                            if NEXT[i] >= 0:
                                x[NEXT[i]] += 1
                        break
        costs[episode - first] = total


GROUPS = np.array([[0, 2, 7], [1, 5, -1], [3, 4, 6]])


@numba.njit(nogil=True)
def worst_rows(
    states: Any,
    discount: float,
    constant: float,
    linear: Any,
    quadratic: Any,
    slacks: Any,
    actions: Any,
) -> None:
    """Write the least slack over the 18 actions of each state, and that action.

    The value function is constant + linear' x + x' quadratic x. Only the arithmetic: no admissible
    actions, no bounds, no faults, no scales.
    """
    slope, gain = np.zeros(8), np.zeros(8)
    for n in range(len(states)):
        x = states[n]
        for i in range(8):
            slope[i] = linear[i]
        jobs, value = 0.0, constant
        for j in range(8):
            jobs += x[j]
            twice = 2.0 * x[j]
            for i in range(8):
                slope[i] += quadratic[j, i] * twice
        for i in range(8):
            value += 0.5 * (linear[i] + slope[i]) * x[i]
        base = ARRIVAL * (slope[0] + quadratic[0, 0] + slope[3] + quadratic[3, 3])
        for i in range(8):
            change = quadratic[i, i] - slope[i]
            following = NEXT[i]
            if following >= 0:
                change += slope[following] + quadratic[following, following]
                change -= 2.0 * quadratic[i, following]
            gain[i] = SERVICE[i] * change if x[i] > 0 else 0.0
        least, place = np.inf, 0
        rest = jobs + discount * base - (1.0 - discount) * value
        for a in range(18):  # the choices of the three servers, the last one fastest
            i, j, k = GROUPS[0, a // 6], GROUPS[1, a // 3 % 2], GROUPS[2, a % 3]
            slack = rest + discount * (gain[i] + gain[j] + gain[k])
            if slack < least:
                least, place = slack, a
        slacks[n], actions[n] = least, place
