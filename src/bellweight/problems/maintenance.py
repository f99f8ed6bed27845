"""Machines that wear independently, with a crew that renews at most two of them in each step.

Machine i has a level of wear from 0 to levels - 1. In each step it wears by one level with
probability wear[i], up to the worst; one that the crew renews is as new in the next step. A step
costs burden[i] level_i^2 for each machine, and `visit` for each renewal. All machines move in the
same step; the model holds one uniform number for each of them and no list of joint events.

Such problems are the standard example of many similar parts coupled by one crew: see Glazebrook,
Mitchell and Ansell, "Index policies for the maintenance of a collection of machines by a set of
repairmen" (European Journal of Operational Research 2005).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.models import Interval, StepModel
from bellweight.policies import Rule


def machine_maintenance(
    n: int = 10,
    levels: int = 5,
    *,
    wear: Any = None,
    burden: Any = None,
    visit: float = 4.0,
    discount: float = 0.9,
    draws: int = 64,
) -> StepModel:
    """Return the model; an action is none, one or two of the machines.

    By default wear runs from 0.2 to 0.6, and burden from 2 to 0.5: machines that wear slowly are
    the important ones. Expectations are means over `draws` draws of all machines together.
    """
    checks.count(n, "n", least=2)
    top = checks.count(levels, "levels", least=2) - 1
    slow = np.linspace(0.2, 0.6, n) if wear is None else wear
    dear = np.linspace(2.0, 0.5, n) if burden is None else burden
    chance = checks.float_array(slow, "wear", (n,))
    weight = checks.float_array(dear, "burden", (n,))
    chosen = _crews(n)
    renewed = np.array([[i in crew for i in range(n)] for crew in chosen])
    price = visit * renewed.sum(axis=1)

    def step(state: Any, action: int, noise: Any, successor: Any) -> None:
        for i in range(n):
            if renewed[action, i]:
                successor[i] = 0
            elif noise[i] < chance[i]:
                successor[i] = min(state[i] + 1, top)
            else:
                successor[i] = state[i]

    def cost(state: Any, action: int) -> float:
        total = price[action]
        for i in range(n):
            total += weight[i] * state[i] * state[i]
        return total

    return StepModel(
        dimension=n,
        actions=["none", *(" and ".join(f"machine {i}" for i in crew) for crew in chosen[1:])],
        step=step,
        cost=cost,
        discount=discount,
        noise=[Interval(0.0, 1.0)] * n,
        lower=0,
        upper=top,
        integer=True,
        draws=draws,
        name="machine maintenance",
    )


def replace_the_worst(n: int = 10, least: int = 1) -> Rule:
    """Return the rule that renews the two most worn machines whose level is at least `least`."""
    place = np.zeros((n + 1, n + 1), dtype=np.int64)
    for action, crew in enumerate(_crews(n)):
        first, second = (*crew, n, n)[:2]
        place[first, second] = place[second, first] = action

    def rule(state: Any, parameters: Any) -> int:
        first, second = n, n
        for i in range(n):
            if state[i] < parameters[0]:
                continue
            if first == n or state[i] > state[first]:
                first, second = i, first
            elif second == n or state[i] > state[second]:
                second = i
        return int(place[first, second])

    return Rule(rule, [least])


def _crews(n: int) -> list[tuple[int, ...]]:
    """Return the sets of machines that an action renews: none, one, then pairs."""
    return [(), *((i,) for i in range(n)), *combinations(range(n), 2)]
