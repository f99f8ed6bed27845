"""Which action a policy takes: greedy, uniform, by the dual or by a rule."""

# mypy: disable-error-code="assignment,no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import inner
from bellweight.models.kernels.events import AT_ONCE, ahead, fill_at_once, prepare
from bellweight.models.kernels.features import value_terms
from bellweight.models.kernels.layouts import BAD_ACTION, FAULTS, FINE, NO_ACTION
from bellweight.models.kernels.quick_actions import quick_quality
from bellweight.models.kernels.tables import find, lent_mass, softmax_draw
from bellweight.models.kernels.user_functions import (
    DIMENSION,
    N_ACTIONS,
    user_admissible,
    user_rule,
)
from bellweight.models.kernels.values import SAME_MASS, TIE, fill_features, is_clear, value_at


@inner
def fill_quality(state, discount, data, functions, coef, quadratic, quality, paid, work):
    """Write cost plus discounted value, minus discount times the value here, for every action.

    Inadmissible actions get infinity; `paid` gets the costs. Returns a fault and the value at the
    state.
    """
    here = value_at(state, functions, coef, quadratic, work)
    prepare(state, data, functions, coef, quadratic, here, work)
    if AT_ONCE:
        return fill_at_once(state, discount, data, quality, paid, work), here
    for action in range(N_ACTIONS):
        quality[action], paid[action] = np.inf, 0.0
        if user_admissible(state, action, data.parameters):
            fault, gain, cost = ahead(state, action, data, functions, coef, quadratic, here, work)
            if fault != FINE:
                return fault + FAULTS * (action + 1), here
            quality[action] = cost + discount * gain
            paid[action] = cost
    return FINE, here


@inner
def tied_action(state, lowest, second, best, functions, coef, ties, work):
    """Return the action when two are close: more dual mass first, then the lowest action."""
    # The margin of a tie is relative to the terms of the value, which may cancel.
    fill_features(state, functions, work.atoms, work.phi)
    edge = lowest + TIE * (2.0 * abs(lowest) + 2.0 * value_terms(coef, work.phi))
    if second > edge:
        return best
    row = find(state, ties.slots, ties.states) if len(ties.states) > 0 else -1
    most = 0.0
    if row >= 0:
        for action in range(N_ACTIONS):
            if work.quality[action] <= edge:
                most = max(most, ties.numbers[row, action])
    # Equal masses differ by rounding; among them the lowest action is taken.
    for action in range(N_ACTIONS):
        if work.quality[action] <= edge:
            mass = ties.numbers[row, action] if row >= 0 else 0.0
            if mass >= most * (1.0 - SAME_MASS):
                return action
    return best


@inner
def greedy_action(state, discount, data, functions, coef, quadratic, ties, work):
    """Return the greedy action, or minus a fault; ties go to dual mass, then the lowest action."""
    here, fault = np.nan, FINE
    if quadratic is not None:
        chosen, fault, here = quick_quality(state, discount, data, quadratic, work)
        if chosen >= 0:
            return chosen
    if np.isnan(here):
        fault, here = fill_quality(
            state, discount, data, functions, coef, quadratic, work.quality, work.paid, work
        )
    if fault != FINE:
        return -fault
    # A literal -1 would be a type of its own, and `tied_action` compiled twice.
    best, lowest, second = np.int64(-1), np.inf, np.inf
    for action in range(N_ACTIONS):
        q = work.quality[action]
        if q < lowest:
            second = lowest
            lowest = q
            best = action
        elif q < second:
            second = q
    if best < 0:
        return -NO_ACTION
    if is_clear(lowest, second, here):
        return best
    return tied_action(state, lowest, second, best, functions, coef, ties, work)


@inner
def uniform_action(state, data, u):
    count = 0
    for action in range(N_ACTIONS):
        if user_admissible(state, action, data.parameters):
            count += 1
    chosen = min(int(u * count), count - 1)
    for action in range(N_ACTIONS):
        if user_admissible(state, action, data.parameters):
            if chosen == 0:
                return action
            chosen -= 1
    return -NO_ACTION


@inner
def rule_action(state, data, rule, work):
    # A rule sees a copy: what it writes there must not change the system.
    for i in range(DIMENSION):
        work.successor[i] = state[i]
    action = int(user_rule(work.successor, rule))
    if action < 0 or action >= N_ACTIONS or not user_admissible(state, action, data.parameters):
        return -BAD_ACTION
    return action


@inner
def by_dual(state, u, data, dual, work):
    """Return the dual's action or -1, a number to draw another action with, and if it has mass."""
    if dual.reach[0] > 0.0:
        mass = work.quality
        total = lent_mass(state, dual.states, dual.numbers, dual.reach[0], mass)
        for action in range(N_ACTIONS):
            if not user_admissible(state, action, data.parameters):
                total -= mass[action]
                mass[action] = -np.inf
        if total > 0.0:
            share = total / (total + dual.reach[2])
            if u < share:
                return softmax_draw(mass, dual.reach[1], u / share), u, True
            return -1, (u - share) / (1.0 - share), True
        return -1, u, False
    row = find(state, dual.slots, dual.states)
    if row < 0:
        return -1, u, False
    # The last column is the share of the dual; the others are the softmax's running sums.
    share = dual.numbers[row, N_ACTIONS]
    if u < share:
        u = u / share
        for action in range(N_ACTIONS):
            if u < dual.numbers[row, action]:
                return action, u, True
        return -1, u, True
    return -1, (u - share) / (1.0 - share), True


@inner
def choose(state, u, discount, data, functions, coef, quadratic, rule, ties, dual, work):
    """Return the policy's action, or minus a fault, and whether the state has dual mass."""
    in_dual = False
    if len(dual.states) > 0:
        action, u, in_dual = by_dual(state, u, data, dual, work)
        if action >= 0:
            return action, in_dual
    if coef is not None:
        action = greedy_action(state, discount, data, functions, coef, quadratic, ties, work)
    elif rule is not None:
        action = rule_action(state, data, rule, work)
    else:
        action = uniform_action(state, data, u)
    return action, in_dual
