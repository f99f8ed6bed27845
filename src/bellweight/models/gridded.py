"""A step model on a grid: an exact route for few dimensions.

The states of the listed model are the points of a grid. A next state y between points counts as its
corners: with multilinear interpolation, along each coordinate the two neighbours g <= y <= h get
the shares (h - y) / (h - g) and (y - g) / (h - g), and corners the products of these. Shares are
not negative and sum to one, so that the result is a Markov decision process of its own, and its
values are those of the operator

    (T v)(x) = min over a of  cost(x, a) + discount E[ interpolated v (next) ].

Expectations are sums over the model's nodes. Whole coordinates with all their values on the grid
are not interpolated: where all are whole, the listed model is the model with its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bellweight.common import checks
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.short import vector_text
from bellweight.common.status import ModelError
from bellweight.models.noise import product_nodes
from bellweight.models.tabular import TabularModel

if TYPE_CHECKING:
    from bellweight.models.step import StepModel

_BLOCK = 1 << 21  # corners at a time
_POINTS = 101  # along a real coordinate, where the user does not say
_MOST_WHOLE = 10_000  # values of a whole coordinate that are all listed
_DRAWN = 4_096  # first states, where their law is only known by draws


def gridded(model: StepModel, grid: Any, max_entries: int) -> TabularModel:
    """Return the model on a grid; see the module."""
    axes = grid_axes(model, grid)
    shape = tuple(map(len, axes))
    entries = prod(shape) * model.n_actions * model.n_nodes * 2.0 ** int((~model.integer).sum())
    if entries > max_entries:
        raise ModelError(
            f"the grid has {prod(shape):,} points, which makes {entries:.2g} entries with "
            f"{model.n_actions} actions, {model.n_nodes} nodes of noise and the corners between "
            f"points, expected at most {max_entries:.2g}: use a coarser grid or fewer nodes, or "
            "raise max_entries"
        )
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, model.dimension)
    states = model.check_states(points, "grid")
    pair_state, pair_action = np.nonzero(model.admissible_mask(states))
    cost = np.zeros(len(pair_state))
    rows = []
    for pairs in blocks(len(pair_state), _BLOCK // (model.n_nodes * 2**model.dimension)):
        cost[pairs], _, after = model.expand(states[pair_state[pairs]], pair_action[pairs])
        flat = after.reshape(-1, model.dimension).astype(np.float64)
        origin = np.repeat(states[pair_state[pairs]], model.n_nodes, axis=0)
        number = np.repeat(np.arange(len(after)), model.n_nodes)
        weight = np.tile(model.weights, len(after))
        rows.append(_spread(flat, axes, number, weight, len(after), origin))
    return TabularModel.from_pairs(
        cost, sparse.vstack(rows), pair_state, pair_action, model.discount,
        _initial(model, axes), state_vectors=points, action_labels=model.actions, name=model.name,
    )  # fmt: skip


def grid_axes(model: StepModel, grid: Any) -> list[FloatArray]:
    """Return the increasing values of each coordinate that the user asks for."""
    if grid is None or isinstance(grid, int | np.integer):
        given: list[Any] = [grid] * model.dimension
    else:
        given = list(grid) if model.dimension > 1 or np.ndim(grid[0]) == 1 else [grid]
    if len(given) != model.dimension:
        raise ModelError(
            f"grid has {len(given)} entries, expected one for each of the {model.dimension} "
            "coordinates: a number of points, or the points"
        )
    return [_axis(model, i, points) for i, points in enumerate(given)]


def _axis(model: StepModel, i: int, points: Any) -> FloatArray:
    low, high = float(model.lower[i]), float(model.upper[i])
    if points is None or isinstance(points, int | np.integer):
        if not np.isfinite([low, high]).all():
            raise ModelError(
                f"coordinate {i} has no bounds, so that a number of points does not make a grid: "
                "give lower and upper, or the points themselves"
            )
        if model.integer[i] and points is None:
            if high - low >= _MOST_WHOLE:
                raise ModelError(f"coordinate {i} has {high - low + 1:.3g} values: give a grid")
            return np.arange(low, high + 1.0)
        n = _POINTS if points is None else checks.count(points, f"grid[{i}]", least=2)
        spaced = np.linspace(low, high, n)
        return np.unique(np.rint(spaced)) if model.integer[i] else spaced
    axis = checks.float_array(points, f"grid[{i}]", (-1,))
    if len(axis) < 1 or (np.diff(axis) <= 0.0).any():
        raise ModelError(f"grid[{i}] is {axis.tolist()[:5]}..., expected increasing numbers")
    return axis


def shares(
    points: FloatArray, axes: Sequence[FloatArray], origin: FloatArray | None = None
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield for each corner its place (n,) on the grid and its share (n,) of points (n, d).

    A point outside the grid is an error that names it and the state (d,) that leads there.
    """
    below, part = [], []
    for i, axis in enumerate(axes):
        own = points[:, i]
        outside = (own < axis[0]) | (own > axis[-1])
        if outside.any():
            n = int(np.argmax(outside))
            led = "" if origin is None else f" after state {vector_text(origin[n])}"
            raise ModelError(
                f"the state {vector_text(points[n])}{led} lies outside the grid, whose coordinate "
                f"{i} runs from {axis[0]:g} to {axis[-1]:g}: let the grid reach as far"
            )
        place = np.clip(np.searchsorted(axis, own, side="right") - 1, 0, max(len(axis) - 2, 0))
        above = axis[np.minimum(place + 1, len(axis) - 1)]
        width = above - axis[place]
        below.append(place)
        part.append(np.where(width > 0.0, (own - axis[place]) / np.where(width > 0, width, 1), 0.0))
    shape = tuple(map(len, axes))
    for corner in product((0, 1), repeat=len(axes)):
        share = np.ones(len(points))
        for up, t in zip(corner, part, strict=True):
            share = share * (t if up else 1.0 - t)
        places = [np.minimum(b + up, n - 1) for b, up, n in zip(below, corner, shape, strict=True)]
        yield np.ravel_multi_index(places, shape).astype(np.int64), share


def _spread(
    points: FloatArray,
    axes: Sequence[FloatArray],
    number: IntArray,
    weight: FloatArray,
    n: int,
    origin: FloatArray,
) -> sparse.csr_array:
    """Return the matrix (n, S) of weights on grid points of points that belong to rows."""
    rows, columns, data = [], [], []
    for place, share in shares(points, axes, origin):
        used = share > 0.0
        rows.append(number[used])
        columns.append(place[used])
        data.append((weight * share)[used])
    size = prod(map(len, axes))
    found = (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns)))
    matrix = sparse.csr_array(sparse.coo_array(found, shape=(n, size)))
    # Shares of one point sum to one up to rounding, and a distribution sums to one.
    totals = np.asarray(matrix.sum(axis=1)).ravel()
    return sparse.csr_array(sparse.diags_array(1.0 / totals) @ matrix)


def _initial(model: StepModel, axes: Sequence[FloatArray]) -> FloatArray:
    """Return the initial law on the grid; draws stand for a sampler or a function."""
    nodes = None
    if not callable(model.initial):
        nodes = product_nodes(model.initial_laws, model.quadrature)
    if nodes is None:
        drawn = model.sample_initial(0, _DRAWN, np.uint64(1)).astype(np.float64)
        nodes = drawn, np.full(len(drawn), 1.0 / len(drawn))
    mass = np.zeros(prod(map(len, axes)))
    for place, share in shares(nodes[0], axes):
        np.add.at(mass, place, share * nodes[1])
    return mass / mass.sum()
