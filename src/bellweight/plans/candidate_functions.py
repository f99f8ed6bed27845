"""Functions to add to a basis: proposed where the dual has no mass, ranked by their price.

Let J' be the approximate values, s(x) the Bellman residual of the greedy action, c the weights and
m(x) the dual's mass in x. Where m(x) > 0 the residual is zero (complementary slackness), so that

    c' s = sum of c(x) s(x) over the states with m(x) = 0

(cor. greedy_certificate): these states alone contribute to the weighted residual, and functions are
proposed at those that contribute most. A function f of the basis is balanced by the dual:

    flow' f = 0,   flow = c - m + discount P' dual,

and for any other f this is the rate at which the objective grows with its coefficient, its reduced
cost. What counts is only what is new in f, its part outside the span of the basis: candidates are
ranked by

    |flow' f| / ||f outside the span||_size,   size = c + m + discount P' dual >= |flow|,

a norm in which no function can be worth more than sqrt(flow' (flow / size)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations

import numpy as np

from bellweight.basis import Basis, Function, Hinge, Indicator, StateIndicator
from bellweight.basis.located import extended
from bellweight.common import tolerances
from bellweight.common.blocks import blocks
from bellweight.common.checks import BoolArray, FloatArray, IntArray, dense
from bellweight.exact.occupancy import exact_occupancy
from bellweight.exact.values import residuals
from bellweight.models import TabularModel
from bellweight.program import RowSource, TabularRows, conditioning
from bellweight.results.result import Result

_MOST_POINTS = 300  # at which functions are proposed
_MOST_CANDIDATES = 3_000
_ALL_SUMS = 4  # coordinates up to which hinges of every sum are proposed; of pairs beyond
_MOST_ENTRIES = 1 << 27  # of all candidates where the dual is out of balance
_BLOCK_ENTRIES = 1 << 22
_CLEAR = 4.0  # standard errors that an imbalance must exceed


@dataclass(frozen=True, eq=False)
class Imbalance:
    """The residual and the unbalanced flow of a result's program, point by point.

    `points` (n, d) are states with their `weights` (n,); `residual` (n,) is that of the greedy
    action where the dual has no mass, and zero elsewhere; `flow` (n,) what the dual does not
    balance, and `size` (n,) the size of the terms that it is made of. `by_policy` returns the share
    (n,) of time that the greedy policy spends in each point. `drawn` counts the draws that the
    weights are estimated from, 0 where they are exact.
    """

    points: FloatArray
    weights: FloatArray
    residual: FloatArray
    flow: FloatArray
    size: FloatArray
    by_policy: Callable[[], FloatArray]
    drawn: int = 0

    @property
    def contribution(self) -> FloatArray:
        """What each point adds to the weighted residual (n,)."""
        return self.weights * self.residual

    @property
    def left(self) -> float:
        """The weighted residual c' s of the corollary."""
        return float(self.contribution.sum())


def listed_imbalance(model: TabularModel, result: Result) -> Imbalance:
    """Return the residual and the unbalanced flow of a result's program in all states."""
    assert result.dual is not None
    assert result.weights is not None
    values = TabularRows(model, result.basis).values(result.coef)
    first = model.pair_start[:-1]
    mass = np.add.reduceat(result.dual, first)
    slack = np.maximum(np.minimum.reduceat(residuals(model, values), first), 0.0)
    following = model.discount * (model.transition.T @ result.dual)

    def by_policy() -> FloatArray:
        found = exact_occupancy(model, result.policy).weights
        assert found is not None
        return found

    return Imbalance(
        points=model.states,
        weights=result.weights,
        residual=np.where(mass > 0.0, 0.0, slack),
        flow=result.weights - mass + following,
        size=result.weights + mass + following,
        by_policy=by_policy,
    )


def proposed_points(found: Imbalance, scale: float) -> IntArray:
    """Return the points that contribute most to the weighted residual, the largest share first.

    Where no state with a residual has weight, as with weights on a single state, the occupancy of
    the greedy policy takes the place of the weights: its weighted residual bounds the loss. `scale`
    is the cost of a step, relative to which a residual may count as zero.
    """
    contribution = found.contribution
    if contribution.sum() <= tolerances.OPTIMALITY * scale:
        contribution = found.by_policy() * found.residual
        if contribution.sum() <= tolerances.OPTIMALITY * scale:
            return np.zeros(0, dtype=np.int64)
    order = np.argsort(-contribution, kind="stable")[:_MOST_POINTS]
    return np.asarray(order[contribution[order] > 0.0], dtype=np.int64)


def candidates_at(
    states: FloatArray, touching: FloatArray, *, indicators: bool = True
) -> tuple[Function, ...]:
    """Return indicators of states, and hinges of sums of coordinates with their kinks in them.

    Hinges may also bend in the states `touching`, where the dual has mass: there the approximate
    values touch what limits them, as a chord touches at its ends.
    """
    dimension = states.shape[1]
    sizes = range(1, dimension + 1) if dimension <= _ALL_SUMS else (1, 2, dimension)
    sums = list(chain.from_iterable(combinations(range(dimension), size) for size in sizes))
    found: dict[Function, None] = {}  # a set that keeps its order
    for state in states.tolist():
        found.update(dict.fromkeys(_hinges(state, sums)))
        if indicators:
            found[StateIndicator(tuple(state))] = None
        if len(found) >= _MOST_CANDIDATES:
            break
    for state in touching.tolist():
        found.update(dict.fromkeys(_hinges(state, sums)))
    return tuple(found)


def _hinges(state: list[float], sums: list[tuple[int, ...]]) -> list[Function]:
    return [Hinge(own, sum(state[i] for i in own)) for own in sums]


class PricedChoice:
    """Chooses among candidates by the dual's own price of them."""

    def __init__(
        self,
        rows_of: Callable[[Basis], RowSource],
        basis: Basis,
        added: Sequence[Function],
        found: Imbalance,
    ) -> None:
        self._rows_of = rows_of
        self._basis = basis
        self._added = tuple(added)
        # Elsewhere all terms are zero, so a function's values there do not change its price.
        where = np.flatnonzero(found.size > 0.0)
        self._points = found.points[where]
        self._weights, self._drawn = found.weights[where], found.drawn
        self._flow = found.flow[where]
        self._size = found.size[where]

    def best(self, candidates: Sequence[Function], n: int) -> tuple[Function, ...]:
        """Return up to n functions, each of the highest price given those before it."""
        if self._is_complete:
            return ()
        candidates = candidates[: max(1, _MOST_ENTRIES // max(1, len(self._points)))]
        chosen: list[Function] = []
        open_ = np.array([function not in self._added for function in candidates], dtype=np.bool_)
        span = self._span
        while len(chosen) < n:
            price = self._prices(candidates, open_, span)
            highest = price.max(initial=0.0)
            if highest <= 0.0:
                break
            # Functions that are new in the same way tie: the first is taken, whatever the rounding.
            k = int(np.argmax(price >= (1.0 - tolerances.SAME_PRICE) * highest))
            open_[k] = False
            if self._is_new(candidates[k], chosen):
                chosen.append(candidates[k])
                direction = _outside(self._weighted([candidates[k]]), span)
                span = np.column_stack([span, direction / np.linalg.norm(direction)])
        return tuple(chosen)

    @property
    def _is_complete(self) -> bool:
        """Whether the basis has one function for each state, so that nothing can be new."""
        basis = self._basis
        return isinstance(basis, Indicator) and len(np.unique(basis.groups)) == len(basis.groups)

    @cached_property
    def _span(self) -> FloatArray:
        """Orthonormal directions (n, rank) of the basis where the dual is out of balance."""
        basis = extended(self._basis, self._added, self._points.shape[1])
        weighted = dense(basis(self._points)) * np.sqrt(self._size)[:, None]
        length = np.linalg.norm(weighted, axis=0)
        left, singular, _ = np.linalg.svd(weighted[:, length > 0.0] / length[length > 0.0], False)
        return np.asarray(left[:, singular > tolerances.DEPENDENT * singular[0]])

    def _weighted(self, functions: Sequence[Function]) -> FloatArray:
        return self._features(functions) * np.sqrt(self._size)[:, None]

    def _features(self, functions: Sequence[Function]) -> FloatArray:
        return np.column_stack([function(self._points) for function in functions])

    def _prices(
        self, candidates: Sequence[Function], open_: BoolArray, span: FloatArray
    ) -> FloatArray:
        """Return the price of every candidate per unit of what is new in it, else zero."""
        price = np.zeros(len(candidates))
        places = np.flatnonzero(open_)
        for part in blocks(len(places), _BLOCK_ENTRIES // max(1, len(self._points))):
            block = places[part]
            features = self._features([candidates[k] for k in block])
            imbalance = np.abs(self._flow @ features)
            # Neither the dual's own error nor the noise of drawn weights counts as imbalance.
            real = imbalance > tolerances.DUAL * (self._size @ np.abs(features))
            real &= imbalance > _CLEAR * self._noise(features)
            weighted = features * np.sqrt(self._size)[:, None]
            new = np.linalg.norm(_outside(weighted, span), axis=0)
            real &= new > tolerances.NEW_FUNCTION * np.linalg.norm(weighted, axis=0)
            price[block[real]] = imbalance[real] / new[real]
        return price

    def _noise(self, features: FloatArray) -> FloatArray:
        """Return the standard errors of the functions' moments, zero where weights are exact."""
        if self._drawn == 0:
            return np.zeros(features.shape[1])
        mean = self._weights @ features
        spread = np.maximum(self._weights @ features**2 - mean**2, 0.0)
        return np.asarray(np.sqrt(spread / self._drawn))

    def _is_new(self, function: Function, chosen: list[Function]) -> bool:
        """Return whether the solver, too, finds the function independent of those before it."""
        functions = [*self._added, *chosen, function]
        basis = extended(self._basis, functions, self._points.shape[1])
        rows = self._rows_of(basis)
        kept = conditioning.independent_columns(rows.triangle(None))
        return rows.n_basis - 1 in kept


def _outside(columns: FloatArray, span: FloatArray) -> FloatArray:
    """Return the parts of columns outside the span of orthonormal directions."""
    for _ in range(2):
        columns = columns - span @ (span.T @ columns)
    return columns
