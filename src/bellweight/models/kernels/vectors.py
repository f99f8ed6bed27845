"""What happens in a step of a step model whose functions work on many states at once.

The same as `steps`, as plain Python: the user's functions are called with all nodes of the noise
together, states (n, d) and noise (n, m), and answer with arrays.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import unmanaged
from bellweight.models.kernels.layouts import (
    BAD_COST,
    FINE,
    NOT_A_NUMBER,
    NOT_WHOLE,
    OUTSIDE,
)
from bellweight.models.kernels.many_features import features_of
from bellweight.models.kernels.noise_draws import fill_noise
from bellweight.models.kernels.user_functions import (
    DIMENSION,
    HAS_WRITTEN,
    user_costs,
    user_functions,
    user_steps,
)


@unmanaged
def inside(state, data):
    """Return whether a state is in the box."""
    return bool(((data.lower <= state) & (state <= data.upper)).all())


@unmanaged
def first_state(state, stream, u, data, work):
    """Write a state of the initial law."""
    fill_noise(stream, 0, data.initial, work.raw)
    state[:] = work.raw


@unmanaged
def after_all(state, action, noise, data, work):
    """Return a fault, the next states (n, d) and the costs (n,) for noise (n, m)."""
    states = np.repeat(state[None, :], len(noise), axis=0)
    cost = user_costs(states, action, noise, data.parameters)
    following = user_steps(states, action, noise, data.parameters)
    faults = np.full(len(noise), FINE)
    whole = np.where(data.integer, np.floor(following), following)
    faults[(whole != following).any(axis=1)] = NOT_WHOLE
    faults[((following < data.lower) | (following > data.upper)).any(axis=1)] = OUTSIDE
    faults[~np.isfinite(following).all(axis=1)] = NOT_A_NUMBER
    faults[~np.isfinite(cost)] = BAD_COST
    first = int(np.argmax(faults != FINE))
    if faults[first] != FINE:
        work.noise[:] = noise[first]
    return int(faults[first]), following, cost


@unmanaged
def advance(state, action, key, step, given, data, work):
    """Move to the next state; return a fault and the cost of the step."""
    if len(given) > 0:
        work.noise[:] = given[step]
    else:
        fill_noise(key, step, data.noise, work.noise)
    fault, following, cost = after_all(state, action, work.noise[None, :].copy(), data, work)
    if fault == FINE:
        state[:] = following[0]
    return fault, cost[0]


@unmanaged
def features_after(following, functions, work):
    """Return the functions (n, W) of states (n, d)."""
    written = np.zeros((len(following), len(work.atoms) - DIMENSION))
    if HAS_WRITTEN:
        for n in range(len(following)):
            user_functions(following[n], written[n])
    return features_of(following, functions, written)


@unmanaged
def ahead(state, action, data, functions, coef, quadratic, here, work):
    """Return a fault, the expected change of value and the expected cost of an action."""
    fault, following, cost = after_all(state, action, data.nodes, data, work)
    if fault != FINE:
        return fault, 0.0, 0.0
    values = (features_after(following, functions, work) @ coef.T).max(axis=1)
    return FINE, float(data.weights @ (values - here)), float(data.weights @ cost)


@unmanaged
def add_ahead(state, action, fresh, data, functions, after, work):
    """Write the expected change of features (W,); return a fault and the expected cost."""
    fault, following, cost = after_all(state, action, data.nodes, data, work)
    if fault != FINE:
        return fault, 0.0
    after.gain[:] = data.weights @ (features_after(following, functions, work) - after.here)
    return FINE, float(data.weights @ cost)


@unmanaged
def expand_pair(state, action, data, chances, successors, work):
    """Write the weights (N,) of nodes and the states (N, d) after them; return fault and cost."""
    chances[:] = data.weights
    fault, following, cost = after_all(state, action, data.nodes, data, work)
    if fault != FINE:
        return fault, 0.0
    successors[:] = following
    return FINE, float(data.weights @ cost)
