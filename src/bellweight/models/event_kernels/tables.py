"""Tables of states, passed as `(slots, states, numbers)`.

An open-addressing hash table leads from states (m, d) to rows of numbers (m, A).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.streams import absorb, compiled, mix
from bellweight.models.event_kernels.user_functions import DIMENSION


# ---- below this line: copied into every compiled model ----
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
