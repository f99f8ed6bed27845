"""Machines that wear independently, with a crew that renews at most two of them in each step.

Machine i has a level of wear from 0 to levels - 1. In each step it wears by one level with
probability wear[i], up to the worst; one that the crew renews is as new in the next step. A step
costs burden[i] level_i^2 for each machine, and `visit` for each renewal. All machines move in the
same step, each by a law of its own, so joint events are not listed.

Such problems are the standard example of many similar parts coupled by one crew: see Glazebrook,
Mitchell and Ansell, "Index policies for the maintenance of a collection of machines by a set of
repairmen" (European Journal of Operational Research 2005). The numbers are set here.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError
from bellweight.models import FactoredModel, Local
from bellweight.policies import Rule


def machine_maintenance(
    n: int = 10,
    levels: int = 5,
    *,
    wear: Any = None,
    burden: Any = None,
    visit: float = 10.0,
    discount: float = 0.9,
) -> FactoredModel:
    """Return the model; an action is none, one or two of the machines.

    By default wear runs from 0.2 to 0.6, and burden falls from 4 to 1/4 by equal factors: machines
    that wear slowly are the important ones, and a renewal must pay for its visit. Of six sets of
    numbers this is the one in which an approximate program gains most over both rules of
    `replace_the_worst`. In others a rule does as well or better: renewing the most worn machines
    where visits cost 4 and burdens fall from 2 to 1/2, as the crew then always works; renewing
    the dearest ones where visits cost 4 and burdens rise from 1/4 to 4.
    """
    checks.count(n, "n", least=2)
    size = checks.count(levels, "levels", least=2)
    slow = np.linspace(0.2, 0.6, n) if wear is None else wear
    # Rounded, as the last digits of powers differ between machines.
    dear = np.round(np.geomspace(4.0, 0.25, n), 12) if burden is None else burden
    chance = checks.float_array(slow, "wear", (n,))
    weight = checks.float_array(dear, "burden", (n,))
    wrong = checks.first_index((chance < 0.0) | (chance > 1.0))
    if wrong is not None:
        raise ModelError(f"wear[{wrong[0]}] is {chance[wrong]}, expected a probability")
    crews = _crews(n)
    visits = np.array([len(crew) for crew in crews], dtype=np.float64)
    squares = np.arange(size, dtype=np.float64) ** 2
    renewed = [np.array([i in crew for crew in crews]) for i in range(n)]
    every = np.ones(len(crews))
    return FactoredModel(
        sizes=[size] * n,
        actions=["none", *(" and ".join(f"machine {i}" for i in crew) for crew in crews[1:])],
        laws=[Local([i], _worn(chance[i], size, renewed[i])) for i in range(n)],
        costs=[
            Local([], visit * visits),
            *(Local([i], weight[i] * np.outer(squares, every)) for i in range(n)),
        ],
        discount=discount,
        name="machine maintenance",
    )


def replace_the_worst(n: int = 10, least: int = 1, burden: Any = None) -> Rule:
    """Return the rule that renews the two most worn machines whose level is at least `least`.

    With `burden` (n,) it is the two machines that cost most in a step, burden[i] level_i^2.
    """
    place = np.zeros((n + 1, n + 1), dtype=np.int64)
    for action, crew in enumerate(_crews(n)):
        first, second = (*crew, n, n)[:2]
        place[first, second] = place[second, first] = action

    def rule(state: Any, parameters: Any) -> int:
        first, second = n, n
        highest, next_highest = 0.0, 0.0
        for i in range(n):
            if state[i] < parameters[0]:
                continue
            score = parameters[i + 1] * state[i] * state[i]
            if first == n or score > highest:
                second, next_highest = first, highest
                first, highest = i, score
            elif second == n or score > next_highest:
                second, next_highest = i, score
        return int(place[first, second])

    each = np.ones(n) if burden is None else checks.float_array(burden, "burden", (n,))
    return Rule(rule, [least, *each])


def _worn(chance: float, size: int, renewed: Any) -> FloatArray:
    """Return the law of a machine's next level, (levels, actions, levels)."""
    wears = (1.0 - chance) * np.eye(size) + chance * np.eye(size, k=1)
    wears[-1, -1] = 1.0
    return np.where(renewed[None, :, None], np.eye(size)[0], wears[:, None, :])


def _crews(n: int) -> list[tuple[int, ...]]:
    """Return the sets of machines that an action renews: none, one, then pairs."""
    return [(), *((i,) for i in range(n)), *combinations(range(n), 2)]
