"""Slacks of many states of an event model together, where all moves are jumps.

The chances of events do not depend on the state, so the same numbers are added up in every state:
each operation is done for all states before the next one.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import inner
from bellweight.models.kernels.layouts import BAD_COST, FAULTS, FINE, OUTSIDE
from bellweight.models.kernels.user_functions import (
    COST_BY_ACTION,
    HAS_ADMISSIBLE,
    N_ACTIONS,
    user_admissible,
    user_cost,
)


@inner
def values_of_many(states, first, n, quadratic, batch):
    """Write coordinates, slopes and values of n states from `first` on."""
    for i in range(len(batch.x)):
        for m in range(n):
            batch.x[i, m] = states[first + m, i]
            batch.slope[i, m] = quadratic.linear[i]
    for j in range(len(batch.x)):
        for i in range(len(batch.x)):
            entry = quadratic.square[j, i]
            for m in range(n):
                batch.slope[i, m] += entry * (2.0 * batch.x[j, m])
    for m in range(n):
        batch.here[m] = quadratic.constant
    for i in range(len(batch.x)):
        for m in range(n):
            half = 0.5 * (quadratic.linear[i] + batch.slope[i, m])
            batch.here[m] += half * batch.x[i, m]


@inner
def changes_of_many(n, data, quadratic, batch):
    """Write the change of value by each event, 0 for one that would leave the bounds."""
    for event in range(len(batch.change)):
        for m in range(n):
            batch.change[event, m] = quadratic.curve[event]
        for k in range(data.jump_count[event]):
            i, by = data.jump_at[event, k], float(data.jump_by[event, k])
            for m in range(n):
                batch.change[event, m] += batch.slope[i, m] * by
        for k in range(data.jump_count[event]):
            i, by = data.jump_at[event, k], float(data.jump_by[event, k])
            most = np.inf if data.upper[i] < 0 else float(data.upper[i])
            for m in range(n):
                after, change = batch.x[i, m] + by, batch.change[event, m]
                batch.change[event, m] = 0.0 if (after < 0.0) | (after > most) else change


@inner
def costs_of_many(states, first, n, data, batch, where):
    """Write the costs of all actions of n states, in the first row where they are the same."""
    for m in range(n):
        for i in range(len(batch.x)):
            where.state[i] = states[first + m, i]
        if COST_BY_ACTION:
            for action in range(len(batch.slack)):
                batch.paid[action, m] = user_cost(where.state, action, data.parameters)
        else:
            batch.paid[0, m] = user_cost(where.state, 0, data.parameters)


@inner
def bar_actions_of_many(states, first, n, data, batch, where):
    """Make slacks of inadmissible actions infinite."""
    for m in range(n):
        for i in range(len(batch.x)):
            where.state[i] = states[first + m, i]
        for action in range(len(batch.slack)):
            if not user_admissible(where.state, action, data.parameters):
                batch.slack[action, m] = np.inf
                if COST_BY_ACTION:
                    batch.paid[action, m] = 0.0


@inner
def slacks_of_many(states, first, n, discount, data, quadratic, batch, where):
    """Write slacks, costs and values of n states; return a fault and how many costs each has.

    The arithmetic of a state is that of `fill_at_once`, to the last bit: only, each operation is
    done for all states before the next one, which compilers turn into vector instructions.
    """
    values_of_many(states, first, n, quadratic, batch)
    changes_of_many(n, data, quadratic, batch)
    costs_of_many(states, first, n, data, batch, where)
    base, wrong, v = batch.base, 0, 0
    for m in range(n):
        base[m] = 0.0
    for event in range(len(batch.change)):
        if v < len(data.varying) and data.varying[v] == event:
            v += 1
        elif data.table[0, event] > 0.0:
            chance = data.table[0, event]
            for m in range(n):
                base[m] += chance * batch.change[event, m]
    for action in range(len(batch.slack)):
        paid, slack = batch.paid[action if COST_BY_ACTION else 0], batch.slack[action]
        for m in range(n):
            slack[m] = 0.0
        for v in range(len(data.varying)):
            chance = data.varying_chance[v, action]
            if chance != 0.0:
                change = batch.change[data.varying[v]]
                for m in range(n):
                    slack[m] += chance * change[m]
        for m in range(n):
            quality = paid[m] + discount * (slack[m] + base[m])
            wrong += 0 if abs(quality) < np.inf else 1
            slack[m] = quality - (1.0 - discount) * batch.here[m]
    if HAS_ADMISSIBLE:
        bar_actions_of_many(states, first, n, data, batch, where)
    fault = fault_of_many(states, first, n, batch, where) if wrong > 0 else FINE
    return fault, N_ACTIONS if COST_BY_ACTION else 1


@inner
def fault_of_many(states, first, n, batch, where):
    """Return the fault of the first state and action without a finite slack."""
    for m in range(n):
        for i in range(len(batch.x)):
            where.state[i] = states[first + m, i]
        for action in range(len(batch.slack)):
            slack = batch.slack[action, m]
            barred = HAS_ADMISSIBLE and slack == np.inf
            if not barred and not abs(slack) < np.inf:
                cost = batch.paid[action if COST_BY_ACTION else 0, m]
                fault = OUTSIDE if abs(cost) < np.inf else BAD_COST
                return fault + FAULTS * (action + 1)
    return FINE
