"""Which action a policy takes: greedy, uniform, by the dual or by a rule.

The dual is passed as `(slots, states, numbers, reach)`: a table of states and, where nearby states
share their dual, `reach` = (radius, temperature, smoothing mass). The numbers are the dual itself
then; with radius 0 they are what `choose` says.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: PLR0912

import numpy as np

from bellweight.common.streams import compiled, inlined
from bellweight.models.event_kernels.tables import find
from bellweight.models.event_kernels.user_functions import (
    DIMENSION,
    IS_TABLE,
    N_ACTIONS,
    N_GROUPS,
    SHARED_MOVES,
    user_admissible,
    user_cost,
    user_rule,
)
from bellweight.models.event_kernels.values import (
    BAD_ACTION,
    FINE,
    GREEDY,
    NO_ACTION,
    SAME_MASS,
    TIE,
    UNIFORM,
    combined_choice,
    fill_features,
    fill_plain_changes,
    fill_plain_quality,
    fill_quality,
    is_clear,
)


# ---- below this line: copied into every compiled model ----
@inlined
def greedy_action(
    state, discount, prefix, letter, coef, constant, linear, quadratic, is_quadratic, curve,
    tie_slots, tie_states, tie_mass, slope, phi, successor, change, quality,
):  # fmt: skip
    """Return the greedy action, or minus a fault; ties go to dual mass, then the lowest action."""
    here = np.nan
    if IS_TABLE and SHARED_MOVES and is_quadratic:
        here = fill_plain_changes(
            state, constant, linear, quadratic, curve, slope, successor, change
        )
    if not np.isnan(here):
        if N_GROUPS > 0:
            combined = combined_choice(here, change)
            if combined >= 0:
                return combined
        fault = fill_plain_quality(state, discount, change, quality)
    else:
        fault, here = fill_quality(
            state, discount, prefix, letter, coef, constant, linear, quadratic, is_quadratic,
            slope, phi, successor, change, quality,
        )  # fmt: skip
    if fault != FINE:
        return -fault
    best, lowest, second = -1, np.inf, np.inf
    for action in range(N_ACTIONS):
        q = quality[action]
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
    # Close: the margin of a tie is relative to the terms of the value, which may cancel.
    fill_features(state, prefix, letter, phi)
    terms = abs(lowest) + abs(user_cost(state, best))
    for j in range(coef.shape[0]):
        for k in range(coef.shape[1]):
            terms += 2.0 * abs(coef[j, k] * phi[k])
    edge = lowest + TIE * terms
    if second > edge:
        return best
    row = find(state, tie_slots, tie_states) if len(tie_states) > 0 else -1
    most = 0.0
    if row >= 0:
        for action in range(N_ACTIONS):
            if quality[action] <= edge:
                most = max(most, tie_mass[row, action])
    # Equal masses differ by rounding; among them the lowest action is taken.
    for action in range(N_ACTIONS):
        if quality[action] <= edge:
            mass = tie_mass[row, action] if row >= 0 else 0.0
            if mass >= most * (1.0 - SAME_MASS):
                return action
    return best


@compiled
def uniform_action(state, u):
    count = 0
    for action in range(N_ACTIONS):
        if user_admissible(state, action):
            count += 1
    chosen = min(int(u * count), count - 1)
    for action in range(N_ACTIONS):
        if user_admissible(state, action):
            if chosen == 0:
                return action
            chosen -= 1
    return -NO_ACTION


@compiled
def lent_mass(state, dual_states, duals, radius, mass):
    """Write the dual (A,) that states within the radius lend to a state; return its total.

    A state lends the share 1 - distance / radius of its dual, distances in the 1-norm.
    """
    for action in range(N_ACTIONS):
        mass[action] = 0.0
    for row in range(len(dual_states)):
        distance = 0
        for i in range(DIMENSION):
            distance += abs(dual_states[row, i] - state[i])
            if distance >= radius:
                break
        if distance < radius:
            share = 1.0 - distance / radius
            for action in range(N_ACTIONS):
                mass[action] += share * duals[row, action]
    total = 0.0
    for action in range(N_ACTIONS):
        if not user_admissible(state, action):
            mass[action] = -np.inf
        else:
            total += mass[action]
    return total


@compiled
def softmax_draw(mass, temperature, u):
    """Return an action drawn from the softmax of its mass (A,); minus infinity is no action."""
    highest = -np.inf
    for action in range(N_ACTIONS):
        highest = max(highest, mass[action])
    total = 0.0
    for action in range(N_ACTIONS):
        total += np.exp((mass[action] - highest) / temperature)
    left, last = u * total, 0
    for action in range(N_ACTIONS):
        weight = np.exp((mass[action] - highest) / temperature)
        if weight > 0.0:
            last = action
            left -= weight
            if left < 0.0:
                break
    return last


@inlined
def choose(
    state, u, discount, kind, parameters, prefix, letter, coef, constant, linear, quadratic,
    is_quadratic, curve, tie_slots, tie_states, tie_mass, dual_slots, dual_states, dual_numbers,
    reach, slope, phi, successor, change, quality,
):  # fmt: skip
    """Return the policy's action, or minus a fault, and whether the state has dual mass."""
    row = -1
    if reach[0] > 0.0:
        total = lent_mass(state, dual_states, dual_numbers, reach[0], quality)
        if total > 0.0:
            share = total / (total + reach[2])
            if u < share:
                return softmax_draw(quality, reach[1], u / share), True
            u = (u - share) / (1.0 - share)
            row = 0
    elif len(dual_states) > 0:
        row = find(state, dual_slots, dual_states)
    if row >= 0 and reach[0] == 0.0:
        # The last column is the share of the dual; the others are the softmax's running sums.
        share = dual_numbers[row, N_ACTIONS]
        if u < share:
            u = u / share
            for action in range(N_ACTIONS):
                if u < dual_numbers[row, action]:
                    return action, True
        else:
            u = (u - share) / (1.0 - share)
    if kind == UNIFORM:
        action = uniform_action(state, u)
    elif kind == GREEDY:
        action = greedy_action(
            state, discount, prefix, letter, coef, constant, linear, quadratic, is_quadratic, curve,
            tie_slots, tie_states, tie_mass, slope, phi, successor, change, quality,
        )  # fmt: skip
    else:
        # A rule sees a copy: what it writes there must not change the system.
        for i in range(DIMENSION):
            successor[i] = state[i]
        action = int(user_rule(successor, parameters))
        if action < 0 or action >= N_ACTIONS or not user_admissible(state, action):
            action = -BAD_ACTION
    return action, row >= 0
