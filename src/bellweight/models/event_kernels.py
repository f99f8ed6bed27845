"""Compiled loops of an event model: the text below the line is compiled with the user's code.

The names above the line stand in for what a model provides; `models/compile.py` writes the real
ones. A value function is passed as `value = (prefix, letter, coef, constant, linear, quadratic,
is_quadratic, curve)`: monomial k is monomial prefix[k] times coordinate letter[k], and the value is
the largest of the polynomials with the rows of coef (J, K) as coefficients. A single polynomial up
to degree two is also constant + linear' x + x' quadratic x, for which differences are cheap;
curve[e] is jump' quadratic jump of event e. A table of states is passed as `(slots, states,
numbers)`: an open-addressing hash table from states (m, d) to rows of numbers (m, A). A dual that
nearby states share comes with `reach` = (radius, temperature, smoothing mass), and its numbers are
the dual itself; with radius 0 they are what `choose` says.

When the chances of events do not depend on the state (`IS_TABLE`) and moves not on the action,
greedy actions look only at the events whose chance depends on the action. When, besides, the
actions are all combinations of independent choices, such as one for each server (`N_GROUPS` > 0),
every choice is made by itself. Moves that are jumps (`HAS_JUMPS`) are cheapest.

A fault is a code, to which FAULTS * (action + 1) is added where the action is known; a loop that
stops with one leaves the state in `fault_state`, which is up to date even when a user's function
raises.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,empty-body"
# ruff: noqa: PLR0912

import numpy as np

from bellweight.streams import absorb, compiled, draw, episode_key, inlined, mix

DIMENSION, N_ACTIONS, N_EVENTS, N_DRAWS = 1, 1, 1, 1
SHARED_MOVES, IS_TABLE, HAS_JUMPS, COST_BY_ACTION = True, False, False, True
UPPER = np.zeros(1, dtype=np.int64)
# Jumps: event e changes coordinate JUMP_AT[e, k] by JUMP_BY[e, k], k < JUMP_COUNT[e].
JUMP_AT = JUMP_BY = np.zeros((1, 1), dtype=np.int64)
JUMP_COUNT = np.zeros(1, dtype=np.int64)
# Chances: under action a, event EVENT[a, k] has chance CHANCE[a, k], k < EVENT_COUNT[a].
EVENT = np.zeros((1, 1), dtype=np.int64)
CHANCE = np.zeros((1, 1))
EVENT_COUNT = np.zeros(1, dtype=np.int64)
# The events whose chance depends on the action, and their chances (varying events, A).
VARYING = np.zeros(1, dtype=np.int64)
VARYING_CHANCE = np.zeros((1, 1))
# Independent choices: group g has options OPTION_START[g]:OPTION_START[g + 1]; option o gives event
# OPTION_EVENT[o, k] the chance OPTION_CHANCE[o, k], k < OPTION_COUNT[o]; COMBINED maps to actions.
N_GROUPS = 0
OPTION_START = OPTION_COUNT = STRIDE = COMBINED = np.zeros(1, dtype=np.int64)
OPTION_EVENT = np.zeros((1, 1), dtype=np.int64)
OPTION_CHANCE = np.zeros((1, 1))


def user_cost(state, action): ...
def user_probability(state, action, event): ...
def user_move(state, action, event): ...
def user_admissible(state, action): ...
def user_initial(state, u): ...
def user_rule(state, parameters): ...


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


@compiled
def hash_of(state):
    h = np.uint64(0xCBF29CE484222325)
    for i in range(DIMENSION):
        h = absorb(h, state[i])
    return mix(h)


@compiled
def find(state, slots, states):
    """Return the row of a state in a table, or -1."""
    mask = np.uint64(len(slots) - 1)
    place = hash_of(state) & mask
    while True:
        row = slots[place]
        if row < 0:
            return -1
        same = True
        for i in range(DIMENSION):
            if states[row, i] != state[i]:
                same = False
                break
        if same:
            return row
        place = (place + np.uint64(1)) & mask


@compiled
def fill_slots(slots, states):
    mask = np.uint64(len(slots) - 1)
    for row in range(len(states)):
        place = hash_of(states[row]) & mask
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        slots[place] = row


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


@inlined
def advance(state, action, u, successor):
    """Move to the next state; return a fault."""
    total = 0.0
    if IS_TABLE:
        # The table was checked when the model was made.
        for k in range(EVENT_COUNT[action]):
            total += CHANCE[action, k]
            if u < total:
                event = EVENT[action, k]
                if not HAS_JUMPS:
                    fault = move_to(state, action, event, successor)
                    if fault == FINE:
                        for i in range(DIMENSION):
                            state[i] = successor[i]
                    return fault
                for j in range(JUMP_COUNT[event]):
                    i = JUMP_AT[event, j]
                    after = state[i] + JUMP_BY[event, j]
                    if after < 0 or 0 <= UPPER[i] < after:
                        return FINE
                for j in range(JUMP_COUNT[event]):
                    state[JUMP_AT[event, j]] += JUMP_BY[event, j]
                return FINE
        return FINE
    happened = -1
    for event in range(N_EVENTS):
        p = user_probability(state, action, event)
        if not p >= 0.0:
            return BAD_PROBABILITY
        total += p
        if happened < 0 and u < total:
            happened = event
    if total > 1.0 + SLACK:
        return BAD_PROBABILITY
    if happened >= 0:
        fault = move_to(state, action, happened, successor)
        if fault != FINE:
            return fault
        for i in range(DIMENSION):
            state[i] = successor[i]
    return FINE


@compiled
def blame(fault, action, state, parameters):
    """Return the code of a fault and the action that it belongs to, -1 if none."""
    if fault >= FAULTS:
        return fault % FAULTS, fault // FAULTS - 1
    if fault == BAD_ACTION:
        return fault, int(user_rule(state, parameters))
    return fault, action


@compiled
def begin(episode, key, state, u):
    """Draw the first state of an episode."""
    stream = episode_key(key, episode)
    for i in range(N_DRAWS):
        u[i] = draw(stream, i)
    for i in range(DIMENSION):
        state[i] = 0
    user_initial(state, u)
    for i in range(DIMENSION):
        if state[i] < 0 or 0 <= UPPER[i] < state[i]:
            return NEGATIVE_STATE
    return FINE


@compiled
def rollout(first, last, horizon, keys, discount, policy, basis, costs, sums, hits, fault_state):
    """Simulate episodes: discounted costs (n,), features (n, K) and visits with dual mass (n,).

    Features and hits are left out when `sums` has no column. Returns a fault and the action.
    """
    # Unpacked once: unpacking in the inner loop would count references at every step.
    kind, value, ties, dual, parameters = policy
    prefix, letter, coef, constant, linear, quadratic, is_quadratic, curve = value
    tie_slots, tie_states, tie_mass = ties
    dual_slots, dual_states, dual_numbers, reach = dual
    is_random = kind == UNIFORM or len(dual_states) > 0
    basis_prefix, basis_letter = basis
    n_basis = sums.shape[1]
    state = fault_state
    successor = np.zeros(DIMENSION, dtype=np.int64)
    u = np.zeros(N_DRAWS)
    slope = np.zeros(DIMENSION)
    change = np.zeros(N_EVENTS)
    quality = np.zeros(N_ACTIONS)
    phi = np.zeros(coef.shape[1])
    seen = np.zeros(n_basis)
    for episode in range(first, last):
        n = episode - first
        action = 0
        fault = begin(episode, keys[0], state, u)
        action_key = episode_key(keys[1], episode)
        event_key = episode_key(keys[2], episode)
        total, factor, hit = 0.0, 1.0, 0.0
        for step in range(horizon):
            if fault != FINE:
                break
            if n_basis > 0:
                fill_features(state, basis_prefix, basis_letter, seen)
                for k in range(n_basis):
                    sums[n, k] += factor * seen[k]
            u_action = draw(action_key, step) if is_random else 0.0
            action, in_dual = choose(
                state, u_action, discount, kind, parameters, prefix, letter, coef, constant, linear,
                quadratic, is_quadratic, curve, tie_slots, tie_states, tie_mass, dual_slots,
                dual_states, dual_numbers, reach, slope, phi, successor, change, quality,
            )  # fmt: skip
            if action < 0:
                fault = -action
                break
            if in_dual:
                hit += factor
            cost = user_cost(state, action)
            if not abs(cost) < np.inf:
                fault = BAD_COST
                break
            total += factor * cost
            factor *= discount
            fault = advance(state, action, draw(event_key, step), successor)
        if fault != FINE:
            return blame(fault, action, state, parameters)
        costs[n] = total
        hits[n] = hit
    return FINE, 0


@compiled
def occupied_states(first, last, keys, discount, policy, states, fault_state):
    """Write one state per episode, drawn from the policy's discounted occupancy."""
    kind, value, ties, dual, parameters = policy
    prefix, letter, coef, constant, linear, quadratic, is_quadratic, curve = value
    tie_slots, tie_states, tie_mass = ties
    dual_slots, dual_states, dual_numbers, reach = dual
    is_random = kind == UNIFORM or len(dual_states) > 0
    state = fault_state
    successor = np.zeros(DIMENSION, dtype=np.int64)
    u = np.zeros(N_DRAWS)
    slope = np.zeros(DIMENSION)
    change = np.zeros(N_EVENTS)
    quality = np.zeros(N_ACTIONS)
    phi = np.zeros(coef.shape[1])
    for episode in range(first, last):
        action = 0
        fault = begin(episode, keys[0], state, u)
        action_key = episode_key(keys[1], episode)
        event_key = episode_key(keys[2], episode)
        # The number of steps is geometric: P(steps >= t) = discount^t.
        left = np.log(1.0 - draw(episode_key(keys[0], episode), N_DRAWS)) / np.log(discount)
        for step in range(int(left)):
            if fault != FINE:
                break
            u_action = draw(action_key, step) if is_random else 0.0
            action, _ = choose(
                state, u_action, discount, kind, parameters, prefix, letter, coef, constant, linear,
                quadratic, is_quadratic, curve, tie_slots, tie_states, tie_mass, dual_slots,
                dual_states, dual_numbers, reach, slope, phi, successor, change, quality,
            )  # fmt: skip
            fault = -action
            if action >= 0:
                fault = advance(state, action, draw(event_key, step), successor)
        if fault != FINE:
            return blame(fault, action, state, parameters)
        for i in range(DIMENSION):
            states[episode - first, i] = state[i]
    return FINE, 0


@compiled
def act(state, u, discount, policy):
    """Return a fault and the policy's action in one state."""
    kind, value, ties, dual, parameters = policy
    prefix, letter, coef, constant, linear, quadratic, is_quadratic, curve = value
    tie_slots, tie_states, tie_mass = ties
    dual_slots, dual_states, dual_numbers, reach = dual
    slope = np.zeros(DIMENSION)
    change = np.zeros(N_EVENTS)
    quality = np.zeros(N_ACTIONS)
    phi = np.zeros(coef.shape[1])
    successor = np.zeros(DIMENSION, dtype=np.int64)
    action, _ = choose(
        state, u, discount, kind, parameters, prefix, letter, coef, constant, linear, quadratic,
        is_quadratic, curve, tie_slots, tie_states, tie_mass, dual_slots, dual_states,
        dual_numbers, reach, slope, phi, successor, change, quality,
    )  # fmt: skip
    if action < 0:
        return blame(-action, -1, state, parameters)
    return FINE, action


@compiled
def slacks(states, discount, value, slack, fault_state):
    """Write the Bellman residual (n, A) of each state and action, infinite where inadmissible."""
    prefix, letter, coef, constant, linear, quadratic, is_quadratic, _ = value
    slope = np.zeros(DIMENSION)
    change = np.zeros(N_EVENTS)
    phi = np.zeros(coef.shape[1])
    successor = np.zeros(DIMENSION, dtype=np.int64)
    for n in range(len(states)):
        for i in range(DIMENSION):
            fault_state[i] = states[n, i]
        fault, here = fill_quality(
            states[n], discount, prefix, letter, coef, constant, linear, quadratic, is_quadratic,
            slope, phi, successor, change, slack[n],
        )  # fmt: skip
        if fault != FINE:
            return fault % FAULTS, fault // FAULTS - 1
        for action in range(N_ACTIONS):
            slack[n, action] -= (1.0 - discount) * here
    return FINE, 0


@compiled
def expand(states, actions, cost, probability, successors, fault_state):
    """Write cost (n,), event probabilities (n, E) and successors (n, E, d) of pairs."""
    for n in range(len(states)):
        for i in range(DIMENSION):
            fault_state[i] = states[n, i]
        fault = FINE
        total = 0.0
        cost[n] = user_cost(states[n], actions[n])
        if not abs(cost[n]) < np.inf:
            fault = BAD_COST
        for event in range(N_EVENTS):
            p = user_probability(states[n], actions[n], event)
            if not p >= 0.0:
                fault = BAD_PROBABILITY
            total += p
            probability[n, event] = p
            moved = move_to(states[n], actions[n], event, successors[n, event])
            if moved != FINE:
                if p > 0.0:
                    fault = moved
                for i in range(DIMENSION):
                    successors[n, event, i] = states[n, i]
        if not total <= 1.0 + SLACK:
            fault = BAD_PROBABILITY
        if fault != FINE:
            return fault, actions[n]
    return FINE, 0


@compiled
def bellman_rows(states, actions, discount, prefix, letter, rows, cost, fault_state):
    """Write costs (n,) and Bellman rows (n, K) of pairs; no rows when `rows` has no column.

    Pairs of one state that follow each other share the features of its successors.
    """
    n_basis = rows.shape[1]
    here = np.zeros(n_basis)
    after = np.zeros((N_EVENTS, n_basis))
    reached = np.zeros(N_EVENTS, dtype=np.bool_)
    successor = np.zeros(DIMENSION, dtype=np.int64)
    for n in range(len(states)):
        for i in range(DIMENSION):
            fault_state[i] = states[n, i]
        fault, total = FINE, 0.0
        fresh = n == 0 or not SHARED_MOVES
        if not fresh:
            for i in range(DIMENSION):
                if states[n, i] != states[n - 1, i]:
                    fresh = True
        if fresh:
            if n_basis > 0:
                fill_features(states[n], prefix, letter, here)
            for event in range(N_EVENTS):
                reached[event] = move_to(states[n], actions[n], event, successor) == FINE
                if n_basis > 0:
                    fill_features(successor, prefix, letter, after[event])
        cost[n] = user_cost(states[n], actions[n])
        if not abs(cost[n]) < np.inf:
            fault = BAD_COST
        for k in range(n_basis):
            rows[n, k] = (1.0 - discount) * here[k]
        for event in range(N_EVENTS):
            p = user_probability(states[n], actions[n], event)
            total += p
            if not p >= 0.0:
                fault = BAD_PROBABILITY
            if p > 0.0:
                if not reached[event]:
                    fault = NEGATIVE_STATE
                for k in range(n_basis):
                    rows[n, k] -= discount * p * (after[event, k] - here[k])
        if not total <= 1.0 + SLACK:
            fault = BAD_PROBABILITY
        if fault != FINE:
            return fault, actions[n]
    return FINE, 0


@compiled
def allowed(states, mask, fault_state):
    """Write which actions are admissible in each state (n, A)."""
    for n in range(len(states)):
        for i in range(DIMENSION):
            fault_state[i] = states[n, i]
        for action in range(N_ACTIONS):
            mask[n, action] = user_admissible(states[n], action)


@compiled
def initial_states(first, last, key, states, fault_state):
    """Draw the first states of episodes."""
    u = np.zeros(N_DRAWS)
    for episode in range(first, last):
        if begin(episode, key, states[episode - first], u) != FINE:
            for i in range(DIMENSION):
                fault_state[i] = states[episode - first, i]
            return NEGATIVE_STATE
    return FINE
