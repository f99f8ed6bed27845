"""What happens in a step of an event model.

Much is shared by all actions where the chances of events do not depend on the state (`IS_TABLE`)
and moves not on the action (`SHARED_MOVES`); moves that are jumps (`HAS_JUMPS`) are cheapest. For
such models see also `quick_actions` and `side_by_side`.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: SIM102, SIM110

import numpy as np

from bellweight.common.compiled import draw, inner, unmanaged
from bellweight.models.kernels.layouts import BAD_COST, BAD_PROBABILITY, FAULTS, FINE, OUTSIDE
from bellweight.models.kernels.user_functions import (
    COMBINES,
    COST_BY_ACTION,
    DIMENSION,
    HAS_ADMISSIBLE,
    HAS_JUMPS,
    IS_TABLE,
    N_ACTIONS,
    N_EVENTS,
    N_JUMPS,
    SHARED_MOVES,
    user_admissible,
    user_cost,
    user_move,
    user_probability,
)
from bellweight.models.kernels.values import SLACK, fill_features, value_change

AT_ONCE = IS_TABLE and SHARED_MOVES
SIDE_BY_SIDE = AT_ONCE and HAS_JUMPS


@inner
def inside(state, data):
    """Return whether a state is in the state space."""
    for i in range(DIMENSION):
        if state[i] < 0 or 0 <= data.upper[i] < state[i]:
            return False
    return True


@inner
def first_state(state, stream, u, data, work):
    """Write the start, or a geometric state."""
    for i in range(DIMENSION):
        state[i] = data.start[i]
        if data.log_decay < 0.0:
            drawn = int(np.log(1.0 - u[i] * data.share[i]) / data.log_decay)
            # Where u is nearly one, rounding may lead one beyond the bound.
            state[i] = drawn if data.upper[i] < 0 else min(drawn, data.upper[i])


@inner
def jump(state, event, data):
    """Change a state by an event that is a jump, unless that would leave the bounds."""
    for k in range(data.jump_count[event]):
        i = data.jump_at[event, k]
        after = state[i] + data.jump_by[event, k]
        if after < 0 or 0 <= data.upper[i] < after:
            return
    for k in range(data.jump_count[event]):
        state[data.jump_at[event, k]] += data.jump_by[event, k]


@inner
def move_to(state, action, event, data, successor):
    """Write the state after an event; an event that would leave the bounds does not happen."""
    for i in range(DIMENSION):
        successor[i] = state[i]
    if HAS_JUMPS:
        jump(successor, event, data)
        return FINE
    user_move(successor, action, event, data.parameters)
    lowest, beyond = np.int64(0), False
    for i in range(DIMENSION):
        lowest = min(lowest, successor[i])
        beyond |= 0 <= data.upper[i] < successor[i]
    if beyond:
        for i in range(DIMENSION):
            successor[i] = state[i]
    return OUTSIDE if lowest < 0 else FINE


@unmanaged
def chance_of(state, action, event, data):
    if IS_TABLE:
        return data.table[action, event]
    return user_probability(state, action, event, data.parameters)


@inner
def happen(state, action, event, data, work):
    """Change a state by an event; return a fault."""
    if HAS_JUMPS:
        jump(state, event, data)
        return FINE
    fault = move_to(state, action, event, data, work.successor)
    if fault == FINE:
        for i in range(DIMENSION):
            state[i] = work.successor[i]
    return fault


@inner
def advance(state, action, key, step, given, data, work):
    """Move to the next state; return a fault and the cost of the step."""
    cost = user_cost(state, action, data.parameters)
    if not abs(cost) < np.inf:
        return BAD_COST, cost
    u, total, happened = draw(key, step), 0.0, -1
    if IS_TABLE:
        # The table was checked when the model was made.
        for k in range(data.event_count[action]):
            total += data.chance[action, k]
            if u < total:
                happened = data.event[action, k]
                break
    else:
        for event in range(N_EVENTS):
            p = user_probability(state, action, event, data.parameters)
            if not p >= 0.0:
                return BAD_PROBABILITY, cost
            total += p
            if happened < 0 and u < total:
                happened = event
        if total > 1.0 + SLACK:
            return BAD_PROBABILITY, cost
    if happened < 0:
        return FINE, cost
    return happen(state, action, happened, data, work), cost


@inner
def advance_together(state, action, key, step, place, given, data, work):
    """Move as `advance` does, so that a random number means the same event under every action.

    Event e happens when the number lies in [place[e], place[e] + chance); without places it is
    as in `advance`.
    """
    if not IS_TABLE or len(place) == 0:
        return advance(state, action, key, step, given, data, work)
    cost = user_cost(state, action, data.parameters)
    if not abs(cost) < np.inf:
        return BAD_COST, cost
    u = draw(key, step)
    for k in range(data.event_count[action]):
        event = data.event[action, k]
        if place[event] <= u < place[event] + data.chance[action, k]:
            return happen(state, action, event, data, work), cost
    return FINE, cost


@inner
def fill_branches(state, base, data, look):
    """Write the states after each event whose chance depends on the action, and their weights.

    Returns how many candidates and copies there are; -1 and 0 where chances have no table, or moves
    depend on the action.
    """
    if not (IS_TABLE and SHARED_MOVES):
        return -1, 0
    n_copies = len(data.varying)
    for i in range(DIMENSION):
        look.begun[0, i] = state[i]
    for v in range(n_copies):
        copy = look.begun[v + 1]
        look.differs[v + 1] = 0
        if move_to(state, 0, data.varying[v], data, copy) == FINE:
            for i in range(DIMENSION):
                if copy[i] != state[i]:
                    look.differs[v + 1] = 1
    if COMBINES:
        return list_choices(base, data, look), n_copies
    n = 0
    paid = user_cost(state, base, data.parameters)
    for action in range(N_ACTIONS):
        if action != base and user_admissible(state, action, data.parameters):
            look.owner[n] = 0
            look.member[n] = action
            look.extra[n] = user_cost(state, action, data.parameters) - paid
            for v in range(n_copies):
                change = data.varying_chance[v, action] - data.varying_chance[v, base]
                look.weight[n, v + 1] = change
            n += 1
    return n, n_copies


@inner
def list_choices(base, data, look):
    """Make every choice of a server but the policy's a candidate; return how many there are."""
    for place in range(N_ACTIONS):
        if data.combined[place] == base:
            look.places[0] = place
    n = 0
    for g in range(len(data.option_start) - 1):
        size = data.option_start[g + 1] - data.option_start[g]
        own = (look.places[0] // data.stride[g]) % size
        look.places[g + 1] = own
        for choice in range(size):
            if choice != own:
                look.owner[n] = g
                look.member[n] = choice
                look.extra[n] = 0.0
                for v in range(len(data.varying)):
                    look.weight[n, v + 1] = 0.0
                add_option(n, data.option_start[g] + choice, 1.0, data, look)
                add_option(n, data.option_start[g] + own, -1.0, data, look)
                n += 1
    return n


@inner
def add_option(n, option, sign, data, look):
    """Add the chances of an option's events to the weights of a candidate."""
    for k in range(data.option_count[option]):
        for v in range(len(data.varying)):
            if data.varying[v] == data.option_event[option, k]:
                look.weight[n, v + 1] += sign * data.option_chance[option, k]


@inner
def with_choice(owner, member, data, look):
    """Return the action in which one owner's choice is replaced, and keep it."""
    if COMBINES:
        look.places[0] += (member - look.places[owner + 1]) * data.stride[owner]
        look.places[owner + 1] = member
        return data.combined[look.places[0]]
    return member


@inner
def jump_change(state, event, data, quadratic, work):
    """Return the change of a quadratic value by a jump, 0 for one that would leave the bounds."""
    e = np.uint64(event)  # what cannot be negative is looked up at once
    gain = quadratic.curve[e]
    for k in range(N_JUMPS):
        i, by = np.uint64(data.jump_at[e, k]), data.jump_by[e, k]
        after = state[i] + by
        if after < 0 or 0 <= data.upper[i] < after:
            return 0.0
        gain += work.slope[i] * by
    return gain


@inner
def fill_changes(state, action, data, functions, coef, quadratic, here, work):
    """Write the change of value by each event; NaN for one that leads nowhere."""
    for event in range(N_EVENTS):
        if HAS_JUMPS:
            if quadratic is not None:  # by itself: only then is the other branch not compiled
                work.change[event] = jump_change(state, event, data, quadratic, work)
                continue
        work.change[event] = np.nan
        if move_to(state, action, event, data, work.successor) == FINE:
            work.change[event] = value_change(
                state, work.successor, functions, coef, quadratic, here, work
            )


@inner
def fill_gains(data, work):
    """Write the expected change of value under each action (A,), where chances are a table.

    Events whose chance no action changes are added once for all of them.
    """
    gain, base, v = work.gain, 0.0, 0
    for action in range(N_ACTIONS):
        gain[action] = 0.0
    for event in range(N_EVENTS):
        change = work.change[event]
        if v < len(data.varying) and data.varying[v] == event:
            if np.isnan(change):  # which matters only to actions that allow the event
                for action in range(N_ACTIONS):
                    if data.varying_chance[v, action] > 0.0:
                        gain[action] = np.nan
            else:
                for action in range(N_ACTIONS):
                    gain[action] += data.varying_chance[v, action] * change
            v += 1
        elif data.table[0, event] > 0.0:
            base += data.table[0, event] * change
    for action in range(N_ACTIONS):
        gain[action] += base


@inner
def prepare(state, data, functions, coef, quadratic, here, work):
    """Compute what all actions of a state share."""
    if SHARED_MOVES:
        fill_changes(state, 0, data, functions, coef, quadratic, here, work)


@inner
def fill_at_once(state, discount, data, quality, paid, work):
    """Write quality and cost of every action from the changes of value; return a fault."""
    fill_gains(data, work)
    cost = user_cost(state, 0, data.parameters)
    for action in range(N_ACTIONS):
        if COST_BY_ACTION:
            cost = user_cost(state, action, data.parameters)
        paid[action] = cost
        quality[action] = cost + discount * work.gain[action]
    for action in range(N_ACTIONS):
        if HAS_ADMISSIBLE and not user_admissible(state, action, data.parameters):
            quality[action], paid[action] = np.inf, 0.0
        elif not abs(quality[action]) < np.inf:
            fault = BAD_COST if abs(work.gain[action]) < np.inf else OUTSIDE
            return fault + FAULTS * (action + 1)
    return FINE


@inner
def ahead(state, action, data, functions, coef, quadratic, here, work):
    """Return a fault, the expected change of value and the cost of an action."""
    cost = user_cost(state, action, data.parameters)
    if not SHARED_MOVES:
        fill_changes(state, action, data, functions, coef, quadratic, here, work)
    fault, total = FINE, 0.0
    for event in range(N_EVENTS):
        p = chance_of(state, action, event, data)
        if not p >= 0.0:
            fault = BAD_PROBABILITY
        if p > 0.0:
            total += p * work.change[event]
    if fault == FINE and np.isnan(total):
        fault = OUTSIDE
    if fault == FINE and not abs(cost) < np.inf:
        fault = BAD_COST
    return fault, total, cost


@inner
def fill_after(state, action, data, functions, after, work):
    """Write the features (E, W) after each event, and whether it leads anywhere (E,)."""
    for event in range(N_EVENTS):
        after.reached[event] = move_to(state, action, event, data, work.successor) == FINE
        fill_features(work.successor, functions, work.atoms, after.phi[event])


@inner
def add_ahead(state, action, fresh, data, functions, after, work):
    """Write the expected change of features (W,); return a fault and the cost of an action.

    Pairs of one state that follow each other share the features of its successors.
    """
    cost = user_cost(state, action, data.parameters)
    if fresh or not SHARED_MOVES:
        fill_after(state, action, data, functions, after, work)
    fault, total = FINE, 0.0
    gain = after.gain
    for k in range(len(gain)):
        gain[k] = 0.0
    for event in range(N_EVENTS):
        p = chance_of(state, action, event, data)
        total += p
        if not p >= 0.0:
            fault = BAD_PROBABILITY
        if p > 0.0:
            if not after.reached[event]:
                fault = OUTSIDE
            for k in range(len(gain)):
                gain[k] += p * (after.phi[event, k] - after.here[k])
    if not total <= 1.0 + SLACK:
        fault = BAD_PROBABILITY
    if not abs(cost) < np.inf:
        fault = BAD_COST
    return fault, cost


@inner
def expand_pair(state, action, data, chances, successors, work):
    """Write the chances (E,) of events and the states (E, d) after them; return fault and cost."""
    cost = user_cost(state, action, data.parameters)
    fault, total = FINE, 0.0
    for event in range(N_EVENTS):
        p = chance_of(state, action, event, data)
        if not p >= 0.0:
            fault = BAD_PROBABILITY
        total += p
        chances[event] = p
        moved = move_to(state, action, event, data, successors[event])
        if moved != FINE:
            if p > 0.0:
                fault = moved
            for i in range(DIMENSION):
                successors[event, i] = state[i]
    if not total <= 1.0 + SLACK:
        fault = BAD_PROBABILITY
    if not abs(cost) < np.inf:
        fault = BAD_COST
    return fault, cost
