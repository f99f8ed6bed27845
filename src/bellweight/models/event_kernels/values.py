"""What states are worth, and what actions cost: features, values, changes by events, qualities.

A value function is passed as `value = (prefix, letter, coef, constant, linear, quadratic,
is_quadratic, curve)`: monomial k is monomial prefix[k] times coordinate letter[k], and the value is
the largest of the polynomials with the rows of coef (J, K) as coefficients. A single polynomial up
to degree two is also constant + linear' x + x' quadratic x, for which differences are cheap;
curve[e] is jump' quadratic jump of event e.

When the chances of events do not depend on the state (`IS_TABLE`) and moves not on the action,
greedy actions look only at the events whose chance depends on the action. When, besides, the
actions are all combinations of independent choices, such as one for each server (`N_GROUPS` > 0),
every choice is made by itself. Moves that are jumps (`HAS_JUMPS`) are cheapest.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.streams import compiled, inlined
from bellweight.models.event_kernels.user_functions import (
    COMBINED,
    COST_BY_ACTION,
    DIMENSION,
    HAS_JUMPS,
    JUMP_AT,
    JUMP_BY,
    JUMP_COUNT,
    N_ACTIONS,
    N_EVENTS,
    N_GROUPS,
    OPTION_CHANCE,
    OPTION_COUNT,
    OPTION_EVENT,
    OPTION_START,
    SHARED_MOVES,
    STRIDE,
    UPPER,
    VARYING,
    VARYING_CHANCE,
    user_admissible,
    user_cost,
    user_move,
    user_probability,
)

# ---- below this line: copied into every compiled model ----
UNIFORM, GREEDY, RULE = 0, 1, 2
FINE, BAD_PROBABILITY, NEGATIVE_STATE, BAD_COST, BAD_ACTION, NO_ACTION = 0, 1, 2, 3, 4, 5
FAULTS = 8
TIE, CLEAR, CLEAR_HERE = 1e-12, 1e-6, 1e-9
SAME_MASS = 1e-9
SLACK = 1e-9


@inlined
def move_to(state, action, event, successor):
    """Write the state after an event; an event that would leave the bounds does not happen."""
    for i in range(DIMENSION):
        successor[i] = state[i]
    user_move(successor, action, event)
    lowest, beyond = np.int64(0), False
    for i in range(DIMENSION):
        lowest = min(lowest, successor[i])
        beyond |= 0 <= UPPER[i] < successor[i]
    if beyond:
        for i in range(DIMENSION):
            successor[i] = state[i]
    return NEGATIVE_STATE if lowest < 0 else FINE


@compiled
def fill_features(state, prefix, letter, phi):
    phi[0] = 1.0
    for k in range(1, len(phi)):
        phi[k] = phi[prefix[k]] * state[letter[k]]


@inlined
def quadratic_value_at(state, constant, linear, quadratic, slope):
    """Return the value of a state; write its gradient to `slope`."""
    for i in range(DIMENSION):
        slope[i] = linear[i]
    for j in range(DIMENSION):
        twice = 2.0 * state[j]
        for i in range(DIMENSION):
            slope[i] += quadratic[j, i] * twice
    total = constant
    for i in range(DIMENSION):
        total += 0.5 * (linear[i] + slope[i]) * state[i]
    return total


@compiled
def largest_value(coef, phi):
    """Return the largest of the polynomials."""
    largest = -np.inf
    for j in range(coef.shape[0]):
        total = 0.0
        for k in range(coef.shape[1]):
            total += coef[j, k] * phi[k]
        largest = max(largest, total)
    return largest


@compiled
def value_at(state, prefix, letter, coef, constant, linear, quadratic, is_quadratic, slope, phi):
    """Return the value of a state and prepare `slope` for differences around it."""
    if is_quadratic:
        return quadratic_value_at(state, constant, linear, quadratic, slope)
    fill_features(state, prefix, letter, phi)
    return largest_value(coef, phi)


@inlined
def quadratic_change(state, successor, quadratic, slope):
    """Return the change of a quadratic function: few coordinates change in a typical event."""
    change = 0.0
    for i in range(DIMENSION):
        step = successor[i] - state[i]
        if step != 0:
            s = slope[i]
            for j in range(DIMENSION):
                s += quadratic[i, j] * (successor[j] - state[j])
            change += s * step
    return change


@compiled
def value_change(state, successor, prefix, letter, coef, quadratic, is_quadratic, here, slope, phi):
    """Return the value of the successor minus the value of the state."""
    if is_quadratic:
        return quadratic_change(state, successor, quadratic, slope)
    fill_features(successor, prefix, letter, phi)
    return largest_value(coef, phi) - here


@compiled
def fill_changes(
    state,
    action,
    prefix,
    letter,
    coef,
    quadratic,
    is_quadratic,
    here,
    slope,
    phi,
    successor,
    change,
):
    """Write the change of value by each event; NaN for one that leads nowhere."""
    for event in range(N_EVENTS):
        if move_to(state, action, event, successor) == FINE:
            change[event] = value_change(
                state, successor, prefix, letter, coef, quadratic, is_quadratic, here, slope, phi
            )
        else:
            change[event] = np.nan


@compiled
def fill_quality(
    state, discount, prefix, letter, coef, constant, linear, quadratic, is_quadratic,
    slope, phi, successor, change, quality,
):  # fmt: skip
    """Write cost plus discounted value, minus discount times the value here, for every action.

    Inadmissible actions get infinity. Returns a fault and the value at the state.
    """
    here = value_at(
        state, prefix, letter, coef, constant, linear, quadratic, is_quadratic, slope, phi
    )
    if SHARED_MOVES:
        fill_changes(
            state,
            0,
            prefix,
            letter,
            coef,
            quadratic,
            is_quadratic,
            here,
            slope,
            phi,
            successor,
            change,
        )
    for action in range(N_ACTIONS):
        quality[action] = np.inf
        if user_admissible(state, action):
            if not SHARED_MOVES:
                fill_changes(
                    state, action, prefix, letter, coef, quadratic, is_quadratic, here, slope, phi,
                    successor, change,
                )  # fmt: skip
            total = 0.0
            for event in range(N_EVENTS):
                p = user_probability(state, action, event)
                if not p >= 0.0:
                    return BAD_PROBABILITY + FAULTS * (action + 1), here
                if p > 0.0:
                    total += p * change[event]
            if np.isnan(total):
                return NEGATIVE_STATE + FAULTS * (action + 1), here
            cost = user_cost(state, action)
            if not abs(cost) < np.inf:
                return BAD_COST + FAULTS * (action + 1), here
            quality[action] = cost + discount * total
    return FINE, here


@inlined
def fill_plain_changes(state, constant, linear, quadratic, curve, slope, successor, change):
    """Write the changes of value by the varying events; return the value here.

    NaN when an event leads nowhere, which matters only if an admissible action allows it.
    """
    here = quadratic_value_at(state, constant, linear, quadratic, slope)
    for v in range(len(VARYING)):
        event = VARYING[v]
        if HAS_JUMPS:
            gain, happens = curve[event], True
            for k in range(JUMP_COUNT[event]):
                i, by = JUMP_AT[event, k], JUMP_BY[event, k]
                after = state[i] + by
                if after < 0 or 0 <= UPPER[i] < after:
                    happens = False
                gain += slope[i] * by
            change[event] = gain if happens else 0.0
        elif move_to(state, 0, event, successor) == FINE:
            change[event] = quadratic_change(state, successor, quadratic, slope)
        else:
            return np.nan
    return here


@inlined
def is_clear(lowest, second, here):
    """Return whether two qualities are too far apart for a tie, whatever cancelled in them."""
    return second - lowest > CLEAR * (abs(lowest) + abs(second)) + CLEAR_HERE * abs(here)


@inlined
def combined_choice(here, change):
    """Return the greedy action made of independent choices, or -1 when one of them is close."""
    place = 0
    for g in range(N_GROUPS):
        lowest, second, chosen = np.inf, np.inf, 0
        for option in range(OPTION_START[g], OPTION_START[g + 1]):
            total = 0.0
            for k in range(OPTION_COUNT[option]):
                total += OPTION_CHANCE[option, k] * change[OPTION_EVENT[option, k]]
            if total < lowest:
                second = lowest
                lowest = total
                chosen = option - OPTION_START[g]
            elif total < second:
                second = total
        if not is_clear(lowest, second, here):
            return -1
        place += chosen * STRIDE[g]
    return COMBINED[place]


@compiled
def fill_plain_quality(state, discount, change, quality):
    """Write the part of the quality that depends on the action; return a fault."""
    for action in range(N_ACTIONS):
        quality[action] = 0.0
    for v in range(len(VARYING)):
        gain = discount * change[VARYING[v]]
        for action in range(N_ACTIONS):
            quality[action] += VARYING_CHANCE[v, action] * gain
    for action in range(N_ACTIONS):
        if not user_admissible(state, action):
            quality[action] = np.inf
        elif COST_BY_ACTION:
            cost = user_cost(state, action)
            if not abs(cost) < np.inf:
                return BAD_COST + FAULTS * (action + 1)
            quality[action] += cost
    return FINE
