"""Functions of many states at once, with NumPy: what `features` computes for one state."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.models.kernels.layouts import BUMP, CLIP, HINGE, SPOT, WAVE, WRITTEN, Functions


def features_of(states: Any, functions: Functions, written: FloatArray) -> FloatArray:
    """Return the functions (n, W) of states (n, d); `written` has the outputs of the user's own."""
    points = np.asarray(states, dtype=np.float64)
    atoms = [points[:, i] for i in range(points.shape[1])]
    for m, kind in enumerate(functions.kind):
        own = slice(functions.start[m], functions.start[m + 1])
        seen, weight = points[:, functions.at[own]], functions.weight[own]
        number = functions.number[m]
        if kind == WRITTEN:
            atoms.append(written[:, m])
        elif kind == SPOT:
            atoms.append((seen == weight).all(axis=1).astype(np.float64))
        elif kind == BUMP:
            atoms.append(np.exp(-0.5 * (((seen - weight) / number) ** 2).sum(axis=1)))
        else:
            total = seen @ weight
            shapes = {
                HINGE: np.maximum(total - number, 0.0),
                CLIP: np.minimum(total, number),
                WAVE: np.cos(total + number),
            }
            atoms.append(shapes[int(kind)])
    found = np.ones((len(points), len(functions.prefix)))
    for k in range(1, found.shape[1]):
        found[:, k] = found[:, functions.prefix[k]] * atoms[functions.letter[k]]
    return found
