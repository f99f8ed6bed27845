"""What a program needs of single states: slacks, successors, Bellman rows, admissible actions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from bellweight.common.compiled import unmanaged
from bellweight.models.kernels.actions import fill_quality
from bellweight.models.kernels.events import add_ahead, expand_pair
from bellweight.models.kernels.layouts import FAULTS, FINE
from bellweight.models.kernels.user_functions import (
    DIMENSION,
    N_ACTIONS,
    user_admissible,
)
from bellweight.models.kernels.values import fill_features, keep_noise


@unmanaged
def slacks(states, discount, data, functions, coef, quadratic, slack, cost, value, work, where):
    """Write the Bellman residual (n, A) of each state and action, infinite where inadmissible.

    Their costs (n, A) and the values (n,) of the states come with it.
    """
    for n in range(len(states)):
        for i in range(DIMENSION):
            where.state[i] = states[n, i]
        fault, here = fill_quality(
            states[n], discount, data, functions, coef, quadratic, slack[n], cost[n], work
        )
        if fault != FINE:
            keep_noise(work, where)
            return fault % FAULTS, fault // FAULTS - 1
        value[n] = here
        for action in range(N_ACTIONS):
            slack[n, action] -= (1.0 - discount) * here
    return FINE, 0


@unmanaged
def expand(states, actions, data, cost, chances, successors, work, where):
    """Write cost (n,), chances (n, E) and successors (n, E, d) of pairs."""
    for n in range(len(states)):
        for i in range(DIMENSION):
            where.state[i] = states[n, i]
        fault, cost[n] = expand_pair(states[n], actions[n], data, chances[n], successors[n], work)
        if fault != FINE:
            keep_noise(work, where)
            return fault, actions[n]
    return FINE, 0


@unmanaged
def bellman_rows(states, actions, discount, data, functions, rows, cost, after, work, where):
    """Write costs (n,) and Bellman rows (n, W) of pairs."""
    n_functions = rows.shape[1]
    for n in range(len(states)):
        fresh = n == 0
        for i in range(DIMENSION):
            fresh |= where.state[i] != states[n, i]
            where.state[i] = states[n, i]
        if fresh:
            fill_features(states[n], functions, work.atoms, after.here)
        fault, cost[n] = add_ahead(states[n], actions[n], fresh, data, functions, after, work)
        if fault != FINE:
            keep_noise(work, where)
            return fault, actions[n]
        for k in range(n_functions):
            rows[n, k] = (1.0 - discount) * after.here[k] - discount * after.gain[k]
    return FINE, 0


@unmanaged
def allowed(states, data, mask, where):
    """Write which actions are admissible in each state (n, A)."""
    for n in range(len(states)):
        for i in range(DIMENSION):
            where.state[i] = states[n, i]
        for action in range(N_ACTIONS):
            mask[n, action] = user_admissible(states[n], action, data.parameters)
