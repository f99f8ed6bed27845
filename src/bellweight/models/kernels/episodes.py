"""What happens over time: whole episodes, states of an occupancy."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: SIM102

import numpy as np

from bellweight.common.compiled import draw, episode_key, inner, unmanaged
from bellweight.models.kernels.events import first_state, inside
from bellweight.models.kernels.layouts import BAD_ACTION, FAULTS, FINE, OUTSIDE
from bellweight.models.kernels.lookahead import decide, go_on
from bellweight.models.kernels.user_functions import (
    DIMENSION,
    HAS_INITIAL,
    N_DRAWS,
    user_initial,
    user_rule,
)
from bellweight.models.kernels.values import fill_features, keep_noise


@inner
def blame(fault, action, state, rule):
    """Return the code of a fault and the action that it belongs to, -1 if none."""
    if fault >= FAULTS:
        return fault % FAULTS, fault // FAULTS - 1
    if rule is not None:
        if fault == BAD_ACTION:
            return fault, int(user_rule(state, rule))
    return fault, action


@inner
def begin(n, episode, key, data, given, state, u, work):
    """Draw the first state of an episode, the n-th of its block."""
    stream = episode_key(key, episode)
    for i in range(N_DRAWS):
        u[i] = draw(stream, i)
    if HAS_INITIAL:
        for i in range(DIMENSION):
            state[i] = 0
        user_initial(state, u, data.parameters)
    elif len(given.states) > 0:
        for i in range(DIMENSION):
            state[i] = given.states[n, i]
    else:
        first_state(state, stream, u, data, work)
    return FINE if inside(state, data) else OUTSIDE


@unmanaged
def rollout(
    first, last, horizon, keys, discount, data, policy, functions, given, costs, sums, hits, seen,
    work, where,
):  # fmt: skip
    """Simulate episodes: discounted costs (n,), features (n, W) and visits with dual mass (n,).

    Features are left out when `sums` has no column. Returns a fault and the action.
    """
    is_random = (policy.coef is None and policy.rule is None) or len(policy.dual.states) > 0
    n_functions = sums.shape[1]
    state, u = where.state, work.u
    for episode in range(first, last):
        n = episode - first
        action = 0
        fault = begin(episode - first, episode, keys[0], data, given, state, u, work)
        action_key = episode_key(keys[1], episode)
        event_key = episode_key(keys[2], episode)
        total, factor, hit = 0.0, 1.0, 0.0
        for step in range(horizon):
            if fault != FINE:
                break
            if n_functions > 0:
                fill_features(state, functions, seen.atoms, seen.phi)
                for k in range(n_functions):
                    sums[n, k] += factor * seen.phi[k]
            u_action = draw(action_key, step) if is_random else 0.0
            action, in_dual = decide(state, u_action, discount, data, policy, work)
            if action < 0:
                fault = -action
                break
            if in_dual:
                hit += factor
            fault, cost = go_on(
                state, action, event_key, step, given.noise[n], data, policy.lookahead, work
            )
            total += factor * cost
            factor *= discount
        if fault != FINE:
            keep_noise(work, where)
            return blame(fault, action, state, policy.rule)
        costs[n] = total
        hits[n] = hit
    return FINE, 0


@unmanaged
def occupied_states(first, last, keys, discount, data, policy, given, states, work, where):
    """Write one state per episode, drawn from the policy's discounted occupancy."""
    is_random = (policy.coef is None and policy.rule is None) or len(policy.dual.states) > 0
    state, u = where.state, work.u
    for episode in range(first, last):
        action = 0
        fault = begin(episode - first, episode, keys[0], data, given, state, u, work)
        action_key = episode_key(keys[1], episode)
        event_key = episode_key(keys[2], episode)
        # The number of steps is geometric: P(steps >= t) = discount^t.
        left = np.log(1.0 - draw(episode_key(keys[0], episode), N_DRAWS)) / np.log(discount)
        for step in range(int(left)):
            if fault != FINE:
                break
            u_action = draw(action_key, step) if is_random else 0.0
            action, _ = decide(state, u_action, discount, data, policy, work)
            fault = -action
            if action >= 0:
                noise = given.noise[episode - first]
                fault, _ = go_on(
                    state, action, event_key, step, noise, data, policy.lookahead, work
                )
        if fault != FINE:
            keep_noise(work, where)
            return blame(fault, action, state, policy.rule)
        for i in range(DIMENSION):
            states[episode - first, i] = state[i]
    return FINE, 0


@unmanaged
def act(states, u, discount, data, policy, actions, work, where):
    """Write the policy's action in each state; return a fault and its action."""
    for n in range(len(states)):
        for i in range(DIMENSION):
            where.state[i] = states[n, i]
        action, _ = decide(states[n], u[n], discount, data, policy, work)
        if action < 0:
            return blame(-action, -1, states[n], policy.rule)
        actions[n] = action
    return FINE, 0


@unmanaged
def initial_states(first, last, key, data, given, states, work, where):
    """Draw the first states of episodes."""
    for episode in range(first, last):
        n = episode - first
        fault = begin(n, episode, key, data, given, states[n], work.u, work)
        if fault != FINE:
            for i in range(DIMENSION):
                where.state[i] = states[n, i]
            return fault, -1
    return FINE, 0
