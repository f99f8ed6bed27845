"""What happens in a step of a step model: the next state and the cost, given random numbers.

Expectations are sums over the nodes of a law, or over a fixed set of draws. In simulation random
numbers come from the law itself, or from the user's sampler.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: SIM110

import numpy as np

from bellweight.common.compiled import inner
from bellweight.models.kernels.layouts import (
    BAD_COST,
    FINE,
    NOT_A_NUMBER,
    NOT_WHOLE,
    OUTSIDE,
    WRONG_LENGTH,
)
from bellweight.models.kernels.noise_draws import fill_noise
from bellweight.models.kernels.user_functions import (
    COST_BY_NOISE,
    DIMENSION,
    user_noisy_cost,
    user_step,
)
from bellweight.models.kernels.values import fill_features, value_change


@inner
def inside(state, data):
    """Return whether a state is in the box."""
    for i in range(DIMENSION):
        if not data.lower[i] <= state[i] <= data.upper[i]:
            return False
    return True


@inner
def first_state(state, stream, u, data, work):
    """Write a state of the initial law."""
    fill_noise(stream, 0, data.initial, work.raw)
    for i in range(DIMENSION):
        state[i] = work.raw[i]


@inner
def step_to(state, action, data, successor, work):
    """Write the state after the random numbers in `work`; return a fault."""
    raw = work.raw
    if user_step(state, action, work.noise, data.parameters, raw) != DIMENSION:
        return WRONG_LENGTH
    for i in range(DIMENSION):
        if not abs(raw[i]) < np.inf:
            return NOT_A_NUMBER
        if not data.lower[i] <= raw[i] <= data.upper[i]:
            return OUTSIDE
        if data.integer[i] and raw[i] != np.floor(raw[i]):
            return NOT_WHOLE
        successor[i] = raw[i]
    return FINE


@inner
def take_node(node, data, work):
    for j in range(data.nodes.shape[1]):
        work.noise[j] = data.nodes[node, j]


@inner
def advance(state, action, key, step, given, data, work):
    """Move to the next state; return a fault and the cost of the step."""
    if len(given) > 0:
        for j in range(given.shape[1]):
            work.noise[j] = given[step, j]
    else:
        fill_noise(key, step, data.noise, work.noise)
    cost = user_noisy_cost(state, action, work.noise, data.parameters)
    if not abs(cost) < np.inf:
        return BAD_COST, cost
    fault = step_to(state, action, data, work.successor, work)
    if fault == FINE:
        for i in range(DIMENSION):
            state[i] = work.successor[i]
    return fault, cost


@inner
def ahead(state, action, data, functions, coef, quadratic, here, work):
    """Return a fault, the expected change of value and the expected cost of an action."""
    total, cost = 0.0, 0.0
    for node in range(len(data.weights)):
        weight = data.weights[node]
        take_node(node, data, work)
        if COST_BY_NOISE or node == 0:
            paid = user_noisy_cost(state, action, work.noise, data.parameters)
            if not abs(paid) < np.inf:
                return BAD_COST, 0.0, 0.0
            cost += weight * paid if COST_BY_NOISE else paid
        fault = step_to(state, action, data, work.successor, work)
        if fault != FINE:
            return fault, 0.0, 0.0
        total += weight * value_change(
            state, work.successor, functions, coef, quadratic, here, work
        )
    return FINE, total, cost


@inner
def add_ahead(state, action, fresh, data, functions, after, work):
    """Write the expected change of features (W,); return a fault and the expected cost."""
    gain, phi, cost = after.gain, after.phi[0], 0.0
    for k in range(len(gain)):
        gain[k] = 0.0
    for node in range(len(data.weights)):
        weight = data.weights[node]
        take_node(node, data, work)
        if COST_BY_NOISE or node == 0:
            paid = user_noisy_cost(state, action, work.noise, data.parameters)
            if not abs(paid) < np.inf:
                return BAD_COST, 0.0
            cost += weight * paid if COST_BY_NOISE else paid
        fault = step_to(state, action, data, work.successor, work)
        if fault != FINE:
            return fault, 0.0
        fill_features(work.successor, functions, work.atoms, phi)
        for k in range(len(gain)):
            gain[k] += weight * (phi[k] - after.here[k])
    return FINE, cost


@inner
def expand_pair(state, action, data, chances, successors, work):
    """Write the weights (N,) of nodes and the states (N, d) after them; return fault and cost."""
    cost = 0.0
    for node in range(len(data.weights)):
        chances[node] = data.weights[node]
        take_node(node, data, work)
        paid = user_noisy_cost(state, action, work.noise, data.parameters)
        if not abs(paid) < np.inf:
            return BAD_COST, 0.0
        cost += data.weights[node] * paid
        fault = step_to(state, action, data, successors[node], work)
        if fault != FINE:
            return fault, 0.0
    return FINE, cost
