"""What a program needs of states: slacks, closest rows, successors, Bellman rows, actions."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: SIM102

import numpy as np

from bellweight.common.compiled import inner, unmanaged
from bellweight.models.kernels.actions import fill_quality
from bellweight.models.kernels.closest import N_NEAR, edge_of, keep_row
from bellweight.models.kernels.events import SIDE_BY_SIDE, add_ahead, expand_pair
from bellweight.models.kernels.layouts import FAULTS, FINE
from bellweight.models.kernels.side_by_side import slacks_of_many
from bellweight.models.kernels.user_functions import DIMENSION, N_ACTIONS, user_admissible
from bellweight.models.kernels.values import fill_features, keep_noise, terms_at


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


@inner
def fill_one_by_one(
    states, first, n, discount, data, functions, coef, quadratic, batch, work, where
):
    """Write slacks, costs and values of n states; return a fault and how many costs each has."""
    for m in range(n):
        for i in range(DIMENSION):
            where.state[i] = states[first + m, i]
        fault, here = fill_quality(
            where.state, discount, data, functions, coef, quadratic, work.quality, work.paid, work
        )
        if fault != FINE:
            keep_noise(work, where)
            return fault, N_ACTIONS
        batch.here[m] = here
        for action in range(N_ACTIONS):
            batch.slack[action, m] = work.quality[action] - (1.0 - discount) * here
            batch.paid[action, m] = work.paid[action]
    return FINE, N_ACTIONS


@inner
def fill_batch(states, first, n, discount, data, functions, coef, quadratic, batch, alone, where):
    """Write slacks, costs and values of n states; return a fault and how many costs each has.

    `alone` are the arrays for computing them one by one, None where they are computed together: a
    branch for what is None is not compiled.
    """
    if alone is not None:
        return fill_one_by_one(
            states, first, n, discount, data, functions, coef, quadratic, batch, alone, where
        )
    if SIDE_BY_SIDE:
        if quadratic is not None:
            return slacks_of_many(states, first, n, discount, data, quadratic, batch, where)
    return FINE, N_ACTIONS


@inner
def bound_batch(n, n_costs, homogeneous, batch):
    """Write the least slack of each state, and the least and the largest size of its costs."""
    least, low, high = batch.least, batch.low, batch.high
    for m in range(n):
        least[m], low[m], high[m] = np.inf, np.inf, 0.0
    for action in range(len(batch.slack)):
        slack, paid = batch.slack[action], batch.paid[min(action, n_costs - 1)]
        if homogeneous:
            for m in range(n):
                slack[m] -= paid[m]
        for m in range(n):
            least[m] = slack[m] if slack[m] < least[m] else least[m]
    for row in range(n_costs):
        paid = batch.paid[row]
        if homogeneous:
            for m in range(n):
                paid[m] = 0.0
        for m in range(n):
            size = abs(paid[m])
            low[m] = size if size < low[m] else low[m]
            high[m] = size if size > high[m] else high[m]


@unmanaged
def closest_rows(
    states, starts, span, discount, data, functions, coef, quadratic, scale, kept, batch, alone,
    work, where,
):  # fmt: skip
    """Find the rows of least relative slack in every `span` states; see `closest`.

    The rows of state n are those from starts[n] to starts[n + 1]: all actions, or the admissible
    ones.
    """
    n_near, n_states, together = 0, len(states), len(batch.here)
    for part in range(len(kept.violations)):
        place, relative, size = kept.place[part], kept.relative[part], kept.size[part]
        near, counts, violation = kept.near[n_near:], kept.counts[part], -np.inf
        end = min((part + 1) * span, n_states)
        for first in range(part * span, end, together):
            n = min(end - first, together)
            fault, n_costs = fill_batch(
                states, first, n, discount, data, functions, coef, quadratic, batch, alone, where
            )
            if fault != FINE:
                return fault % FAULTS, fault // FAULTS - 1
            bound_batch(n, n_costs, scale.homogeneous, batch)
            for m in range(n):
                least, here = batch.least[m], batch.here[m]
                violation = max(violation, -least)
                edge = edge_of(batch.low[m], batch.high[m], here, scale, relative, counts)
                if least > edge:
                    continue
                for i in range(len(batch.x)):
                    where.state[i] = states[first + m, i]
                # Terms of successors count as large as those of the state itself.
                terms = (1.0 + discount) * terms_at(where.state, functions, coef, quadratic, work)
                key = starts[first + m]
                counts_all = starts[first + m + 1] - key == N_ACTIONS
                for action in range(len(batch.slack)):
                    slack = batch.slack[action, m]
                    if slack <= edge and slack < np.inf:
                        paid = batch.paid[min(action, n_costs - 1), m]
                        keep_row(
                            key, slack, paid, here, terms, scale, place, relative, size, near,
                            counts,
                        )  # fmt: skip
                    key += 1 if counts_all or slack < np.inf else 0
        kept.violations[part] = violation
        n_near += counts[N_NEAR]
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
