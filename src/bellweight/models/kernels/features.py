"""Functions of the state inside compiled loops, and the values made of them."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: PLR0912

import numpy as np

from bellweight.common.compiled import unmanaged
from bellweight.models.kernels.layouts import BUMP, CLIP, HINGE, SPOT, WAVE, WRITTEN


@unmanaged
def fill_atoms(state, functions, atoms):
    """Write the atoms of a state, but for those of the user's own function."""
    dimension = len(state)
    for i in range(dimension):
        atoms[i] = state[i]
    for m in range(len(functions.kind)):
        kind = functions.kind[m]
        if kind == WRITTEN:
            continue
        first, last = functions.start[m], functions.start[m + 1]
        number, total = functions.number[m], 0.0
        if kind == SPOT:
            total = 1.0
            for j in range(first, last):
                if state[functions.at[j]] != functions.weight[j]:
                    total = 0.0
        elif kind == BUMP:
            for j in range(first, last):
                apart = (state[functions.at[j]] - functions.weight[j]) / number
                total += apart * apart
            total = np.exp(-0.5 * total)
        else:
            for j in range(first, last):
                total += functions.weight[j] * state[functions.at[j]]
            if kind == HINGE:
                total = max(total - number, 0.0)
            elif kind == CLIP:
                total = min(total, number)
            elif kind == WAVE:
                total = np.cos(total + number)
        atoms[dimension + m] = total


@unmanaged
def fill_products(functions, atoms, phi):
    """Write the functions (W,) as products of atoms."""
    phi[0] = 1.0
    for k in range(1, len(phi)):
        phi[k] = phi[functions.prefix[k]] * atoms[functions.letter[k]]


@unmanaged
def largest_value(coef, phi):
    """Return the largest of the value functions with the rows of coef as coefficients."""
    largest = -np.inf
    for j in range(coef.shape[0]):
        total = 0.0
        for k in range(coef.shape[1]):
            total += coef[j, k] * phi[k]
        largest = max(largest, total)
    return largest


@unmanaged
def value_terms(coef, phi):
    """Return the size of the terms that a value is made of."""
    total = 0.0
    for j in range(coef.shape[0]):
        for k in range(coef.shape[1]):
            total += abs(coef[j, k] * phi[k])
    return total
