"""What happens over time: the next state, whole episodes, states of an occupancy."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: PLR0912

import numpy as np

from bellweight.common.streams import compiled, draw, episode_key, inlined
from bellweight.models.event_kernels.actions import choose
from bellweight.models.event_kernels.user_functions import (
    CHANCE,
    DIMENSION,
    EVENT,
    EVENT_COUNT,
    HAS_JUMPS,
    IS_TABLE,
    JUMP_AT,
    JUMP_BY,
    JUMP_COUNT,
    N_ACTIONS,
    N_DRAWS,
    N_EVENTS,
    UPPER,
    user_cost,
    user_initial,
    user_probability,
    user_rule,
)
from bellweight.models.event_kernels.values import (
    BAD_ACTION,
    BAD_COST,
    BAD_PROBABILITY,
    FAULTS,
    FINE,
    NEGATIVE_STATE,
    SLACK,
    UNIFORM,
    fill_features,
    move_to,
)


# ---- below this line: copied into every compiled model ----
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
def initial_states(first, last, key, states, fault_state):
    """Draw the first states of episodes."""
    u = np.zeros(N_DRAWS)
    for episode in range(first, last):
        if begin(episode, key, states[episode - first], u) != FINE:
            for i in range(DIMENSION):
                fault_state[i] = states[episode - first, i]
            return NEGATIVE_STATE
    return FINE
