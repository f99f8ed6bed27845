"""What happens in a step of a factored model: every coordinate moves by a law of its own.

All laws and costs are tables of a few coordinates and the action. Expectations are exact: a
function of a few coordinates is summed over their values, with the product of their laws as
chances.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: SIM110

from bellweight.common.compiled import draw, inner, pick
from bellweight.models.kernels.layouts import FINE
from bellweight.models.kernels.noise_draws import fill_noise
from bellweight.models.kernels.user_functions import DIMENSION


@inner
def inside(state, data):
    """Return whether every coordinate has one of its values."""
    for i in range(DIMENSION):
        if not 0 <= state[i] < data.first[i + 1] - data.first[i]:
            return False
    return True


@inner
def first_state(state, stream, u, data, work):
    """Write a state of the initial law."""
    fill_noise(stream, 0, data.initial, work.raw)
    for i in range(DIMENSION):
        state[i] = int(work.raw[i])


@inner
def place_in(state, action, j, tables):
    """Return where table j has its entry, or the first of its entries, for a state and action."""
    place = tables.offset[j] + action * tables.width[j]
    for k in range(tables.start[j], tables.start[j + 1]):
        place += state[tables.at[k]] * tables.stride[k]
    return place


@inner
def cost_of(state, action, data):
    """Return the sum of the local costs."""
    total = 0.0
    for j in range(len(data.costs.offset)):
        total += data.costs.values[place_in(state, action, j, data.costs)]
    return total


@inner
def advance(state, action, key, step, given, data, work):
    """Move to the next state; return a fault and the cost of the step."""
    cost = cost_of(state, action, data)
    for i in range(DIMENSION):
        place = place_in(state, action, i, data.laws)
        size = data.first[i + 1] - data.first[i]
        u = draw(key, step * DIMENSION + i)
        work.successor[i] = pick(u, data.sums, place, place + size) - place
    for i in range(DIMENSION):
        state[i] = work.successor[i]
    return FINE, cost


@inner
def fill_laws(state, action, data, law):
    """Write the chances of the next values of all coordinates, one after another."""
    for i in range(DIMENSION):
        place = place_in(state, action, i, data.laws)
        for value in range(data.first[i], data.first[i + 1]):
            law[value] = data.laws.values[place]
            place += 1


@inner
def chance_in(cell, g, grids, data, law):
    """Return the chance of a combination of values of group g, the last changing fastest."""
    chance = 1.0
    for k in range(grids.start[g + 1] - 1, grids.start[g] - 1, -1):
        i = grids.at[k]
        size = data.first[i + 1] - data.first[i]
        chance *= law[data.first[i] + cell % size]
        cell //= size
    return chance


@inner
def expected_value(grids, data, law):
    """Return the expected value of the next state: a sum over groups of few coordinates."""
    total = 0.0
    for g in range(len(grids.start) - 1):
        begin, end = grids.cell_start[g], grids.cell_start[g + 1]
        if grids.start[g + 1] - grids.start[g] == 1:
            place = data.first[grids.at[grids.start[g]]]
            for cell in range(begin, end):
                total += law[place] * grids.value[cell]
                place += 1
        else:
            for cell in range(begin, end):
                total += chance_in(cell - begin, g, grids, data, law) * grids.value[cell]
    return total


@inner
def add_expected(grids, data, law, gain):
    """Add the expected functions (W,) of the next state."""
    if grids is not None:
        for g in range(len(grids.start) - 1):
            place = grids.table_start[g]
            for cell in range(grids.cell_start[g + 1] - grids.cell_start[g]):
                chance = chance_in(cell, g, grids, data, law)
                for k in range(grids.column_start[g], grids.column_start[g + 1]):
                    gain[grids.column[k]] += chance * grids.table[place]
                    place += 1


@inner
def ahead(state, action, data, functions, coef, quadratic, here, work):
    """Return a fault, the expected change of value and the cost of an action."""
    fill_laws(state, action, data, work.change)
    value = expected_value(functions.grids, data, work.change)
    return FINE, value - here, cost_of(state, action, data)


@inner
def add_ahead(state, action, fresh, data, functions, after, work):
    """Write the expected change of features (W,); return a fault and the cost."""
    fill_laws(state, action, data, work.change)
    for k in range(len(after.gain)):
        after.gain[k] = -after.here[k]
    add_expected(functions.grids, data, work.change, after.gain)
    return FINE, cost_of(state, action, data)


@inner
def expand_pair(state, action, data, chances, successors, work):
    """Write the laws of all coordinates; joint successors are listed elsewhere, where they are few.

    Returns a fault and the cost.
    """
    fill_laws(state, action, data, chances)
    return FINE, cost_of(state, action, data)
