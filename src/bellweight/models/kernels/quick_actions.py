"""Greedy actions of a quadratic value function, from the events that depend on the action alone.

Where all actions are combinations of independent choices, such as one for each server (`COMBINES`),
every choice is made by itself.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import inner
from bellweight.models.kernels.events import jump_change, move_to
from bellweight.models.kernels.layouts import BAD_COST, FAULTS, FINE
from bellweight.models.kernels.user_functions import (
    COMBINES,
    COST_BY_ACTION,
    HAS_JUMPS,
    IS_TABLE,
    N_ACTIONS,
    N_CHANCES,
    SHARED_MOVES,
    user_admissible,
    user_cost,
)
from bellweight.models.kernels.values import is_clear, quadratic_change, quadratic_value_at


@inner
def fill_plain_changes(state, data, quadratic, work):
    """Write the changes of value by the varying events; return the value here.

    NaN when an event leads nowhere, which matters only if an admissible action allows it.
    """
    here = quadratic_value_at(state, quadratic, work.slope)
    for v in range(len(data.varying)):
        event = data.varying[v]
        if HAS_JUMPS:
            work.change[np.uint64(event)] = jump_change(state, event, data, quadratic, work)
        elif move_to(state, 0, event, data, work.successor) == FINE:
            work.change[event] = quadratic_change(state, work.successor, quadratic, work)
        else:
            return np.nan
    return here


@inner
def combined_choice(here, data, change):
    """Return the greedy action made of independent choices, or -1 when one of them is close."""
    place = 0
    for g in range(len(data.option_start) - 1):
        lowest, second, chosen = np.inf, np.inf, 0
        for option in range(data.option_start[g], data.option_start[g + 1]):
            total, o = 0.0, np.uint64(option)
            for k in range(N_CHANCES):
                total += data.option_chance[o, k] * change[np.uint64(data.option_event[o, k])]
            # Without branches, which processors would guess wrong.
            worse = lowest if total < lowest else total
            second = worse if worse < second else second
            chosen = option if total < lowest else chosen
            lowest = total if total < lowest else lowest
        if not is_clear(lowest, second, here):
            return -1
        place += (chosen - data.option_start[g]) * data.stride[g]
    return data.combined[place]


@inner
def fill_plain_quality(state, discount, data, work):
    """Write the part of the quality that depends on the action; return a fault."""
    quality = work.quality
    for action in range(N_ACTIONS):
        quality[action] = 0.0
    for v in range(len(data.varying)):
        gain = discount * work.change[data.varying[v]]
        for action in range(N_ACTIONS):
            quality[action] += data.varying_chance[v, action] * gain
    for action in range(N_ACTIONS):
        if not user_admissible(state, action, data.parameters):
            quality[action] = np.inf
        elif COST_BY_ACTION:
            cost = user_cost(state, action, data.parameters)
            if not abs(cost) < np.inf:
                return BAD_COST + FAULTS * (action + 1)
            quality[action] += cost
    return FINE


@inner
def quick_quality(state, discount, data, quadratic, work):
    """Return an action or -1, a fault and the value here, NaN where there is no quick way."""
    if IS_TABLE and SHARED_MOVES:
        here = fill_plain_changes(state, data, quadratic, work)
        if not np.isnan(here):
            if COMBINES:
                combined = combined_choice(here, data, work.change)
                if combined >= 0:
                    return combined, FINE, here
            return -1, fill_plain_quality(state, discount, data, work), here
    return -1, FINE, np.nan
