"""What stands for the shortcuts of event models where actions share no successors.

Every action is looked at by itself, and needs a first step of its own in a lookahead. The random
numbers of a step are the same under every action.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from bellweight.common.compiled import inner
from bellweight.models.kernels.events import advance
from bellweight.models.kernels.layouts import FINE

AT_ONCE = SIDE_BY_SIDE = False


@inner
def advance_together(state, action, key, step, place, given, data, work):
    """Move as `advance` does."""
    return advance(state, action, key, step, given, data, work)


@inner
def fill_branches(state, base, data, look):
    """Return that no first step is averaged over events."""
    return -1, 0


@inner
def with_choice(owner, member, data, look):
    """Return the action of a candidate."""
    return member


@inner
def prepare(state, data, functions, coef, quadratic, here, work):
    """Do nothing."""


@inner
def fill_at_once(state, discount, data, quality, paid, work):
    """Stand for a function that is not called."""
    return FINE


@inner
def slacks_of_many(states, first, n, discount, data, quadratic, batch, where):
    """Stand for a function that is not called."""
    return FINE, 0


@inner
def quick_quality(state, discount, data, quadratic, work):
    """Return that there is no quick way."""
    return -1, FINE, np.nan
