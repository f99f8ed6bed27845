"""The largest violation of rows over a box of two dimensions, from declared lines.

Between the lines at which step or cost bend for some node of the noise, both are affine for every
node. The lines of an action cut the box into convex polygons. On one of them each linear form of
the next state runs over the interval between its values at the corners, and a piecewise linear
function v of it is at least an affine one: the chord of v over the interval, lowered by what it
exceeds v at a kink inside. So the slack

    g(x) = E[cost(x, a, w) + discount V(step(x, a, w))] - V(x)

is at least an affine function, whose least value is at a corner. It is g itself where no kink lies
inside an interval. The polygon with the lowest bound is cut along the states whose next state meets
a kink, until the bound is close to the lowest g found: corners of polygons are computed by
division, but no bound relies on their being precise, other than at declared lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.models.declared import bends_at
from bellweight.models.step import StepModel
from bellweight.program.forms import Form
from bellweight.program.sampled_rows import EventRows

_PIECES, _PLAIN_PIECES = 60_000, 4_000  # polygons for all actions together
_SCALE = 256  # states that the size of costs is looked at in
_CUT = 512  # polygons that are cut at a time
_CLOSE = 1e-5  # of the cost scale: no finer bound is looked for
_TINY = 2.0**-46  # of a size: no two corners are told apart below


@dataclass(frozen=True)
class WorstInPlane:
    """What no violation exceeds but for rounding, the largest cost, and how steep slacks are."""

    violation: float
    cost: float
    steep: float


def slacks_of(
    rows: EventRows, coef: FloatArray, states: FloatArray, action: int
) -> tuple[FloatArray, float]:
    """Return the slacks (n,) of an action, and its largest absolute cost."""
    matrix, cost = rows.rows_at(states, np.full(len(states), action, dtype=np.int64))
    return cost - matrix @ coef, float(np.abs(cost).max())


def cost_scale(model: StepModel) -> float:
    """Return the mean absolute cost over the box, the same whatever rows a program has."""
    states = model.check_states(model.spread_states(_SCALE))
    actions = range(model.n_actions)
    costs = [model.costs_of(states, np.full(len(states), action)) for action in actions]
    return max(float(np.abs(costs).mean()), 1e-300)


def worst_in_plane(
    rows: EventRows, model: StepModel, coef: FloatArray, forms: list[Form]
) -> WorstInPlane | None:
    """Return a bound on violations over the box; None where lines make too many pieces."""
    left = _PIECES if model.compiled else _PLAIN_PIECES
    close = _CLOSE * cost_scale(model)
    worst, found, dear, steep = -np.inf, 0.0, 0.0, 0.0
    for action in range(model.n_actions):
        share = left // (model.n_actions - action)
        pieces = _between_lines(model, action, share)
        if pieces is None:
            return None
        search = _Search(rows, model, coef, forms, action)
        steep = max(steep, search.steepness(pieces))
        bounds = search.bounds(pieces)
        done = len(pieces)
        while done < share:
            found = max(found, search.found)
            order = np.argsort(-bounds.above)[:_CUT]
            chosen = order[(bounds.above[order] > max(found, worst) + close) & bounds.can[order]]
            if len(chosen) == 0:
                break
            halves = [half for n in chosen for half in bounds.cut(pieces, int(n))]
            kept = np.setdiff1d(np.arange(len(pieces)), chosen, assume_unique=True)
            pieces = [pieces[n] for n in kept] + halves
            bounds = bounds.only(kept).joined(search.bounds(halves))
            done += len(halves)
        left -= done
        worst = float(np.maximum(worst, bounds.above.max()))  # NaN stays
        dear = max(dear, search.cost)
    return WorstInPlane(worst, dear, steep)


@dataclass(eq=False)
class _Bounds:
    """For polygons (P,): what no violation exceeds, and the cut that promises most.

    A cut is given by the heights of the corners above its line; `can` is False where there is none.
    """

    above: FloatArray
    can: BoolArray
    heights: list[FloatArray]

    def only(self, kept: IntArray) -> _Bounds:
        """Return the bounds of some."""
        return _Bounds(self.above[kept], self.can[kept], [self.heights[n] for n in kept])

    def joined(self, other: _Bounds) -> _Bounds:
        """Return these bounds and others."""
        return _Bounds(
            np.concatenate([self.above, other.above]), np.concatenate([self.can, other.can]),
            self.heights + other.heights,
        )  # fmt: skip

    def cut(self, pieces: Sequence[FloatArray], n: int) -> list[FloatArray]:
        """Return the two parts of a polygon."""
        return _cut(pieces[n], self.heights[n])


class _Search:
    """Bounds for polygons of one action, and what was seen at their corners."""

    def __init__(
        self,
        rows: EventRows,
        model: StepModel,
        coef: FloatArray,
        forms: list[Form],
        action: int,
    ) -> None:
        self._rows, self._model, self._coef, self._action = rows, model, coef, action
        self._forms = forms
        self.found, self.cost = -np.inf, 0.0

    def bounds(self, pieces: Sequence[FloatArray]) -> _Bounds:
        """Return bounds for polygons, each an array (m, 2) of corners in order."""
        sizes = np.array([len(piece) for piece in pieces])
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        owner = np.repeat(np.arange(len(pieces)), sizes)
        corners = np.concatenate(list(pieces))
        slack, cost = slacks_of(self._rows, self._coef, corners, self._action)
        self.cost = max(self.cost, cost)
        self.found = max(self.found, -float(slack.min()))
        cuts = _Cuts(first, owner)
        after = self._model.loops.expand(corners, np.full(len(corners), self._action))[2]
        weights = self._model.discount * self._model.weights
        for form in self._forms:
            slack = slack + cuts.lowered(form, (corners @ form.direction)[:, None], -np.ones(1))
            slack = slack + cuts.lowered(form, after @ form.direction, weights)
        above = -np.minimum.reduceat(slack, first)
        return _Bounds(above, cuts.gain > 0.0, np.split(cuts.heights, first[1:]))

    def steepness(self, pieces: Sequence[FloatArray]) -> float:
        """Return how fast cost and next value change at most, where both are affine on polygons."""
        steepest, slopes = 0.0, [float(np.abs(form.slopes).max()) for form in self._forms]
        weights = np.outer(slopes, self._model.discount * self._model.weights).ravel()
        for piece in pieces:
            actions = np.full(len(piece), self._action)
            cost, _, after = self._model.loops.expand(piece, actions)
            forms = [after @ form.direction for form in self._forms]
            rates = _rates(piece, np.column_stack([cost, *forms]))
            steepest = max(steepest, float(rates[0] + rates[1:] @ weights))
        return steepest


class _Cuts:
    """Affine minorants on polygons whose corners (n,) begin at `first` (P,), and the best cuts."""

    def __init__(self, first: IntArray, owner: IntArray) -> None:
        self._first, self._owner = first, owner
        self.gain = np.zeros(len(first))
        self.heights = np.zeros(len(owner))

    def lowered(self, form: Form, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Return what the sum of weights (N,) times v falls by at the corners, points (n, N)."""
        if len(form.kinks) == 0:
            return np.zeros(len(points))
        low = np.minimum.reduceat(points, self._first, axis=0)
        high = np.maximum.reduceat(points, self._first, axis=0)
        ends = form.value(low), form.value(high)
        width = np.maximum(high - low, 1e-300)
        share = np.clip((points - low[self._owner]) / width[self._owner], 0.0, 1.0)
        chord = ends[0][self._owner] * (1.0 - share) + ends[1][self._owner] * share
        excess = np.zeros_like(low)  # of weighted chords over weighted functions, at kinks inside
        for kink, height in zip(form.kinks, form.value(form.kinks), strict=True):
            inside = (low < kink) & (kink < high)
            if not inside.any():
                continue
            part = np.clip((kink - low) / width, 0.0, 1.0)
            off = np.where(inside, ends[0] * (1.0 - part) + ends[1] * part - height, 0.0) * weights
            excess = np.maximum(excess, off)
            tiny = _TINY * (np.abs(low) + np.abs(high))
            apart = (low < kink - tiny) & (kink + tiny < high)
            self._offer(np.where(apart, np.abs(off), 0.0), points, float(kink))
        change = (chord - form.value(points)) * weights - excess[self._owner]
        return np.asarray(change.sum(axis=1))

    def _offer(self, gain: FloatArray, points: FloatArray, kink: float) -> None:
        """Note for each polygon the node (of gain (P, N)) along whose kink a cut promises most."""
        node = np.argmax(gain, axis=1)
        best = gain[np.arange(len(gain)), node]
        better = best > self.gain
        self.gain = np.where(better, best, self.gain)
        here = points[np.arange(len(points)), node[self._owner]] - kink
        self.heights = np.where(better[self._owner], here, self.heights)


def _between_lines(model: StepModel, action: int, limit: int) -> list[FloatArray] | None:
    """Return the polygons that the declared lines of an action make of the box."""
    (left, low), (right, high) = model.lower, model.upper
    pieces = [np.array([[left, low], [right, low], [right, high], [left, high]])]
    far = np.maximum(np.abs(model.lower), np.abs(model.upper))
    for normal, offset in _lines(model, action):
        tiny = _TINY * (float(np.abs(normal) @ far) + abs(offset))
        heights = np.concatenate(pieces) @ normal - offset
        heights[np.abs(heights) <= tiny] = 0.0
        first = np.cumsum([0, *map(len, pieces)])
        least, most = (f.reduceat(heights, first[:-1]) for f in (np.minimum, np.maximum))
        cut: list[FloatArray] = []
        for n, is_crossed in enumerate((least < 0.0) & (most > 0.0)):
            own = heights[first[n] : first[n + 1]]
            cut += _cut(pieces[n], own) if is_crossed else [pieces[n]]
        pieces = cut
        if len(pieces) > limit:
            return None
    return pieces


def _lines(model: StepModel, action: int) -> list[tuple[FloatArray, float]]:
    """Return the different lines of all nodes that are declared for an action."""
    found = []
    for node in model.nodes:
        normals, offsets = bends_at(model, action, node)
        found.append(np.column_stack([normals, offsets]))
    every = np.unique(np.concatenate(found), axis=0) if found else np.zeros((0, 3))
    return [(line[:2], float(line[2])) for line in every if line[:2].any()]


def _cut(piece: FloatArray, heights: FloatArray) -> list[FloatArray]:
    """Return the parts of a polygon (m, 2) above and below a line, given corners' heights (m,)."""
    parts: list[list[FloatArray]] = [[], []]
    for n in range(len(piece)):
        corner, height = piece[n - 1], heights[n - 1]
        if height >= 0.0:
            parts[0].append(corner)
        if height <= 0.0:
            parts[1].append(corner)
        if height * heights[n] < 0.0:
            between = corner + height / (height - heights[n]) * (piece[n] - corner)
            parts[0].append(between)
            parts[1].append(between)
    return [np.array(part) for part in parts if len(part) > 2]


def _rates(piece: FloatArray, values: FloatArray) -> FloatArray:
    """Return how fast affine functions change (Q,), given values (m, Q) at corners (m, 2)."""
    along = piece - piece[0]
    far = int(np.argmax(np.abs(along).max(axis=1)))
    length = float(np.hypot(*along[far]))
    if length == 0.0:
        return np.zeros(values.shape[1])
    axis = along[far] / length
    rise = (values[far] - values[0]) / length
    off = along[:, 0] * axis[1] - along[:, 1] * axis[0]
    wide = int(np.argmax(np.abs(off)))
    across = np.zeros_like(rise)
    if off[wide] != 0.0:
        across = (values[wide] - values[0] - rise * float(along[wide] @ axis)) / off[wide]
    return np.asarray(np.hypot(rise, across))
