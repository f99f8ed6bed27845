"""What a program needs of single states: slacks, successors, Bellman rows, admissible actions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: PLR0912

import numpy as np

from bellweight.common.streams import compiled
from bellweight.models.event_kernels.user_functions import (
    DIMENSION,
    N_ACTIONS,
    N_EVENTS,
    SHARED_MOVES,
    user_admissible,
    user_cost,
    user_probability,
)
from bellweight.models.event_kernels.values import (
    BAD_COST,
    BAD_PROBABILITY,
    FAULTS,
    FINE,
    NEGATIVE_STATE,
    SLACK,
    fill_features,
    fill_quality,
    move_to,
)


# ---- below this line: copied into every compiled model ----
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
