"""What states are worth: features, values, and their differences."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from bellweight.common.compiled import inner
from bellweight.models.kernels.features import (
    fill_atoms,
    fill_products,
    largest_value,
    value_terms,
)
from bellweight.models.kernels.user_functions import (
    DIMENSION,
    HAS_WRITTEN,
    user_functions,
)

TIE, CLEAR, CLEAR_HERE = 1e-12, 1e-6, 1e-9
SAME_MASS = 1e-9
SLACK = 1e-9


@inner
def keep_noise(work, where):
    """Keep the random numbers of a step that went wrong."""
    for j in range(len(where.noise)):
        where.noise[j] = work.noise[j]


@inner
def fill_features(state, functions, atoms, phi):
    """Write the functions (W,) of a state."""
    fill_atoms(state, functions, atoms)
    if HAS_WRITTEN:
        user_functions(state, atoms[DIMENSION:])
    fill_products(functions, atoms, phi)


@inner
def is_clear(lowest, second, here):
    """Return whether two qualities are too far apart for a tie, whatever cancelled in them."""
    return second - lowest > CLEAR * (abs(lowest) + abs(second)) + CLEAR_HERE * abs(here)


@inner
def quadratic_value_at(state, quadratic, slope):
    """Return the value of a state; write its gradient to `slope`."""
    for i in range(DIMENSION):
        slope[i] = quadratic.linear[i]
    # Two rows at a time: half of the stores, and the same sums.
    for j in range(0, DIMENSION - 1, 2):
        one, two = 2.0 * state[j], 2.0 * state[j + 1]
        for i in range(DIMENSION):
            slope[i] = slope[i] + quadratic.square[j, i] * one + quadratic.square[j + 1, i] * two
    if DIMENSION % 2:
        last = 2.0 * state[DIMENSION - 1]
        for i in range(DIMENSION):
            slope[i] += quadratic.square[DIMENSION - 1, i] * last
    total = quadratic.constant
    for i in range(DIMENSION):
        total += 0.5 * (quadratic.linear[i] + slope[i]) * state[i]
    return total


@inner
def value_at(state, functions, coef, quadratic, work):
    """Return the value of a state and prepare the slope for differences around it."""
    if quadratic is not None:
        return quadratic_value_at(state, quadratic, work.slope)
    fill_features(state, functions, work.atoms, work.phi)
    return largest_value(coef, work.phi)


@inner
def terms_at(state, functions, coef, quadratic, work):
    """Return the size of the terms that the value of a state is made of."""
    if quadratic is None:
        fill_features(state, functions, work.atoms, work.phi)
        return value_terms(coef, work.phi)
    total = abs(quadratic.constant)
    for i in range(DIMENSION):
        slope = abs(quadratic.linear[i])
        for j in range(DIMENSION):
            slope += abs(quadratic.square[j, i] * state[j])
        total += slope * abs(state[i])
    return total


@inner
def quadratic_change(state, successor, quadratic, work):
    """Return the change of a quadratic function: few coordinates change in a typical step."""
    change = 0.0
    for i in range(DIMENSION):
        step = successor[i] - state[i]
        if step != 0:
            s = work.slope[i]
            for j in range(DIMENSION):
                s += quadratic.square[i, j] * (successor[j] - state[j])
            change += s * step
    return change


@inner
def value_change(state, successor, functions, coef, quadratic, here, work):
    """Return the value of the successor minus the value of the state, which is `here`."""
    if quadratic is not None:
        return quadratic_change(state, successor, quadratic, work)
    fill_features(successor, functions, work.atoms, work.phi)
    return largest_value(coef, work.phi) - here
