"""Polynomials in the layout that the compiled loops of an event model take them.

The layouts are those described in the parts of `models/event_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.models import EventModel


def value_function(
    words: list[tuple[int, ...]], coef: FloatArray, model: EventModel
) -> tuple[Any, ...]:
    """Return a polynomial (K,), or the largest of several (J, K), in the layout of the loops."""
    prefix, letter = monomials(words)
    dimension = model.dimension
    pieces = np.atleast_2d(np.array(coef))
    linear, quadratic = np.zeros(dimension), np.zeros((dimension, dimension))
    for word, c in zip(words, pieces[0], strict=True):
        if len(word) == 1:
            linear[word[0]] += c
        elif len(word) == 2:
            quadratic[word[0], word[1]] += 0.5 * c
            quadratic[word[1], word[0]] += 0.5 * c
    is_quadratic = len(pieces) == 1 and max(len(word) for word in words) <= 2
    curve = np.zeros(model.n_events)
    if model.jumps is not None:
        curve = np.einsum("ei,ij,ej->e", model.jumps, quadratic, model.jumps)
    constant = float(pieces[0, 0])
    return prefix, letter, pieces, constant, linear, quadratic, is_quadratic, curve


def monomials(words: list[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
    """Return for each monomial the one it extends and the coordinate it multiplies by."""
    position = {word: k for k, word in enumerate(words)}
    prefix = np.array([position[word[:-1]] if word else 0 for word in words], dtype=np.int64)
    letter = np.array([word[-1] if word else 0 for word in words], dtype=np.int64)
    return prefix, letter
