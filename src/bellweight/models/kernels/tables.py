"""Looking up states, and drawing by the dual of a state."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from typing import Any

import numpy as np

from bellweight.common.checks import IntArray
from bellweight.common.compiled import absorb, mix, unmanaged

_FRACTIONS = 1048576.0  # states closer together than one over this share a slot, and cost a step


@unmanaged
def hash_of(state):
    """Return a hash of a state of whole or real numbers."""
    h = np.uint64(0xCBF29CE484222325)
    for i in range(len(state)):
        h = absorb(h, np.int64(np.floor(state[i] * _FRACTIONS)))
    return mix(h)


def empty_slots(n_states: int) -> IntArray:
    """Return the slots of a table that will hold so many states."""
    return np.full(1 << max(1, int(np.ceil(np.log2(4 * n_states + 1)))), -1, dtype=np.int64)


@unmanaged
def find(state, slots, states):
    """Return the row of a state in a table, or -1."""
    mask = np.uint64(len(slots) - 1)
    place = np.uint64(hash_of(state)) & mask
    while True:
        row = slots[place]
        if row < 0:
            return -1
        same = True
        for i in range(len(state)):
            if states[row, i] != state[i]:
                same = False
                break
        if same:
            return row
        place = (place + np.uint64(1)) & mask


@unmanaged
def enter(state, row, slots):
    """Enter the row of a state that is not in a table yet into its slots."""
    mask = np.uint64(len(slots) - 1)
    place = np.uint64(hash_of(state)) & mask
    while slots[place] >= 0:
        place = (place + np.uint64(1)) & mask
    slots[place] = row


@unmanaged
def fill_slots(slots, states):
    """Enter the rows of a table of distinct states into its slots."""
    for row in range(len(states)):
        enter(states[row], row, slots)


@unmanaged
def add_distinct(slots, found, n_found, fresh):
    """Enter states (n, d) that are not in a table yet, until it is full; return its rows."""
    for row in range(len(fresh)):
        if n_found == len(found):
            break
        if find(fresh[row], slots, found) >= 0:
            continue
        enter(fresh[row], n_found, slots)
        for i in range(found.shape[1]):
            found[n_found, i] = fresh[row, i]
        n_found += 1
    return n_found


@unmanaged
def count_distinct(slots, states):
    """Enter states (n, d) into empty slots, each once; return how many are distinct."""
    n_found = 0
    for row in range(len(states)):
        if find(states[row], slots, states) < 0:
            enter(states[row], row, slots)
            n_found += 1
    return n_found


def n_distinct(states: Any) -> int:
    """Return how many distinct rows an array (n, d) has, in time linear in n."""
    return int(count_distinct(empty_slots(len(states)), np.ascontiguousarray(states)))


@unmanaged
def lent_mass(state, states, duals, radius, mass):
    """Write the dual (A,) that states within the radius lend to a state; return its total.

    A state lends the share 1 - distance / radius of its dual, distances in the 1-norm.
    """
    for action in range(len(mass)):
        mass[action] = 0.0
    for row in range(len(states)):
        distance = 0.0
        for i in range(len(state)):
            distance += abs(states[row, i] - state[i])
            if distance >= radius:
                break
        if distance < radius:
            share = 1.0 - distance / radius
            for action in range(len(mass)):
                mass[action] += share * duals[row, action]
    total = 0.0
    for action in range(len(mass)):
        total += mass[action]
    return total


@unmanaged
def softmax_draw(mass, temperature, u):
    """Return an action drawn from the softmax of its mass (A,); minus infinity is no action."""
    highest, total = -np.inf, 0.0
    for action in range(len(mass)):
        highest = max(highest, mass[action])
    for action in range(len(mass)):
        total += np.exp((mass[action] - highest) / temperature)
    left, last = u * total, 0
    for action in range(len(mass)):
        weight = np.exp((mass[action] - highest) / temperature)
        if weight > 0.0:
            last = action
            left -= weight
            if left < 0.0:
                break
    return last
