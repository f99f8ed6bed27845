"""The rows of a model made of local parts, on all of its states, also infinitely many.

With a value function that is a sum of functions of a few coordinates each, the violation

    g(x, a) = V(x) - discount E[V(next)] - cost(x, a)

of a row is a sum of tables, and the most violated row of all is found by eliminating variables
(`elimination`), states and actions alike.

**Endless coordinates.** Let coordinate i have no largest value. Beyond a last value M_i, the tails
of the functions and of the model plus the largest fall of a step, every term of g is affine in x_i
with a slope that depends on the other coordinates only through their values up to their own M
(`basis.parts` and `models.local`): a function f of a part obeys

    f(x) = f(c) + sum over i with x_i > m_i of (x_i - m_i) D_i f(c),   c = min(x, m),

with D_i f(c) = f(c + e_i) - f(c). Where x_i >= M_i >= m_i + fall, the state after an event is still
at m_i or beyond, and the chance of the event is the one at M_i; so f after the event obeys the same
equation around min(x, M), with slope D_i f at the state after the event. Sums and multiples by
chances keep it, hence for all x

    g(x, a) = g(c, a) + sum over i with x_i > M_i of (x_i - M_i) D_i g(c, a),   c = min(x, M).

The right side is at most g(c, a) for all x if and only if D_i g(c, a) <= 0 for every c <= M with
c_i = M_i. So g <= 0 on all states holds exactly if

    g(c, a) <= 0      for the finitely many c <= M, and
    D_i g(c, a) <= 0  for the finitely many c <= M with c_i = M_i, for each endless i.

Both are linear in the coefficients. The second kind are rows of their own, the slopes, which
belong to no pair: (row at c + e_i) - (row at c) with cost(c + e_i) - cost(c) on the right. The
grid below has the values 0, ..., M_i + 1, so that every slope is a difference of two neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from bellweight.basis import Basis, Part
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import BasisError, ModelError
from bellweight.models.local import LocalStructure, Table, check_entries, grid
from bellweight.program import conditioning
from bellweight.program.elimination import Largest, Order, eliminated, least_fill
from bellweight.program.local_terms import Term, gamma, grid_sizes, law_moments, row_terms
from bellweight.program.pooled_rows import PooledRows
from bellweight.program.row_source import Separation

_REFERENCE_POINTS = 16  # per basis function
_TURNS = 12  # coordinates, each kept in turn, of which rows for each value are looked for per pass
_SEPARATE_ACTIONS = 256  # actions up to which the worst row of each is found
_NEAR_ZERO = 3  # values near zero
_FEW_POINTS = 1_024  # of a part: all of them belong to the reference
_SEEDS = 4  # states per basis function that the program starts with
_TOLERANCE = 1e-12  # share of its scale by which a row found must be violated to be kept


@dataclass(frozen=True)
class LocalRows:
    """The rows of all states, found by elimination; for models that know their local structure.

    Examples:
        >>> network = bw.problems.queue_network(compiled=False)
        >>> basis = bw.PiecewiseLinear([1])
        >>> found = bw.solve(network, basis, bw.Fixed(), rows=bw.LocalRows(), judge=False)
        >>> found.lower_bound_kind
        'exact'
    """

    def on(self, model: Any, basis: Basis) -> EliminatedRows:
        """Bind to a model and a basis."""
        structure = getattr(model, "structure", None)
        if not isinstance(structure, LocalStructure):
            raise ModelError(
                f"{model!r} does not say what its parts look at, expected a model with local "
                "structure for LocalRows(): declare scopes=Scopes(...)"
            )
        return EliminatedRows(model, structure, basis)


class EliminatedRows(PooledRows):
    """Rows of a model with local structure that elimination has found so far.

    A row's key is its place in the pool: `pool` (n, v) are its states and choices, and `slopes`
    (n,) the coordinate along which it is a slope, -1 for the row of a pair.
    """

    def __init__(self, model: Any, structure: LocalStructure, basis: Basis) -> None:
        self.model = model
        self.structure = structure
        self.basis = basis
        self.discount = structure.discount
        dimension = structure.dimension
        self.parts = basis.parts(dimension)
        self.names = basis.function_names(dimension)
        self.lower, self.upper = basis.bounds(self.n_basis)
        self.sizes = grid_sizes(structure, self.parts, self.names)
        self._constant = self._constant_column()
        self._here_and_drifts = row_terms(structure, self.parts, self.sizes)
        self._costs = structure.costs(self.sizes)
        self._rules = structure.admissible(self.sizes)
        self._check_order()
        super().__init__()
        self.pool = np.zeros((0, len(self.sizes)), dtype=np.int64)
        self.slopes = np.zeros(0, dtype=np.int64)
        self._features = np.zeros((0, self.n_basis))
        self._known: set[bytes] = set()
        self._turn = 0

    @property
    def variables(self) -> list[str]:
        """The names of all variables."""
        dimension, choices = self.structure.dimension, len(self.structure.choices)
        last = ["action"] if choices == 1 else [f"choice {k + 1}" for k in range(choices)]
        return [*(f"x{i + 1}" for i in range(dimension)), *last]

    @property
    def width(self) -> int:
        """The largest number of variables in a table of the search."""
        return self.orders[0].width

    def are_pairs(self, keys: IntArray) -> BoolArray:
        return np.asarray(self.slopes[keys] < 0)

    def support_of(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        dimension = self.structure.dimension
        points = self.pool[keys]
        return points[:, :dimension], self.structure.actions(points[:, dimension:])

    def constant(self) -> FloatArray:
        return np.eye(1, self.n_basis, self._constant)[0]

    def triangle(self, weights: FloatArray | None) -> FloatArray:
        """Return the factor of the features at points of the grid, small values twice as often.

        Functions such as min(x_i, 1) min(x_j, 1) differ from others near zero alone.
        """
        rng = np.random.default_rng(0)
        n = _REFERENCE_POINTS * self.n_basis
        points = self._drawn(rng, n)
        near = points % np.minimum(np.array(self.sizes), _NEAR_ZERO)
        draws = [np.where(rng.random(points.shape) < 0.5, near, points)]
        for part in self.parts:
            own = grid(part.scope, self.sizes) if self._n_points(part) <= _FEW_POINTS else None
            if own is not None and part.scope:
                points = self._drawn(rng, len(own))
                points[:, list(part.scope)] = own
                draws.append(points)
        features = np.vstack([self.features(points) for points in draws])
        return conditioning.triangle([features / np.sqrt(len(features))], self.n_basis)

    def seeds(self, weights: FloatArray | None) -> IntArray:
        """Return rows at points drawn from the grid, and slopes at the same points."""
        if self.n_pairs == 0:
            rng = np.random.default_rng(1)
            points = self._drawn(rng, _SEEDS * self.n_basis)
            points[rng.random(points.shape) < 0.5] = 0
            self._add(self._allowed(points), -1)
            for i in self.structure.endless:
                ends = points.copy()
                ends[:, i] = self.sizes[i] - 2
                self._add(self._allowed(ends), i)
        return np.arange(self.n_pairs)

    def features(self, points: IntArray) -> FloatArray:
        """Return the features (n, K) at points (n, v)."""
        found = np.zeros((len(points), self.n_basis))
        for part in self.parts:
            own = points[:, list(part.scope)].astype(np.float64)
            found[:, list(part.columns)] = part.features(own)
        return found

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        worst = self._find(coef, unit, homogeneous=homogeneous)
        slack, cost = self._slacks(coef, homogeneous=homogeneous)
        return self._separation(slack, cost, self._features @ coef, unit, worst)

    def _find(self, coef: FloatArray, unit: float, *, homogeneous: bool) -> float:
        """Take violated rows into the pool; return the largest violation of a pair's row."""
        tables = self.tables(coef, homogeneous=homogeneous)
        least = _TOLERANCE * unit
        found = [eliminated([*tables, *self.forbidden], order) for order in self._next_orders()]
        self._add(np.vstack([self._violated(one, least) for one in found]), -1)
        for i in self.structure.endless:
            slopes = eliminated(self.slope_tables(tables, i), self.slope_orders[i])
            points = self._violated(slopes, 0.0)
            points[:, i] = self.sizes[i] - 2
            self._add(points, i)
        return max(float(one.values.max()) for one in found)

    def _next_orders(self) -> list[Order]:
        """Return the order that keeps the actions, and some of the others in turn."""
        first, others = self.orders[0], self.orders[1:]
        taken = [others[(self._turn + k) % len(others)] for k in range(min(_TURNS, len(others)))]
        self._turn += len(taken)
        return [first, *taken]

    def tables(self, coef: FloatArray, *, homogeneous: bool = False) -> list[Table]:
        """Return tables whose sum is the violation of the row of each point."""
        tables = [term.table(coef) for term in self._here_and_drifts]
        if not homogeneous:
            tables += [Table(table.scope, -table.values) for table in self._costs]
        return tables

    def slope_tables(self, tables: list[Table], coordinate: int) -> list[Table]:
        """Return tables whose sum is the slope of the violation along an endless coordinate."""
        own = [table.slope(coordinate) for table in tables if coordinate in table.scope]
        return [*own, *self.forbidden_beyond(coordinate)]

    def forbidden_beyond(self, coordinate: int) -> list[Table]:
        """Return the tables of `forbidden` at the end of an endless coordinate."""
        return [rule.at_end(coordinate) for rule in self.forbidden]

    def error_tables(self, coef: FloatArray) -> list[Table]:
        """Return bounds on the errors of `tables`, entry by entry.

        The model's numbers and the functions' values on the grid count as exact; errors come from
        adding and multiplying them.
        """
        size = np.abs(coef)
        errors = [
            Table(table.scope, gamma(len(term.columns) + 8) * table.values)
            for term, table in ((term, term.table(size)) for term in self._sizes_of_terms)
        ]
        n = len(self._costs)
        reach = sum(float(np.abs(table.values).max()) for table in self._costs)
        # The parts of a cost are differences of costs, and add up to it up to rounding.
        return errors + [
            Table(table.scope, np.full(table.values.shape, gamma(2 * n + 2) * reach))
            for table in self._costs
        ]

    @cached_property
    def _sizes_of_terms(self) -> list[Term]:
        return row_terms(self.structure, self.parts, self.sizes, size=True)

    @cached_property
    def initial_moments(self) -> tuple[FloatArray, FloatArray] | None:
        """The moments (K,) of the initial law, and bounds on their errors; None if not known."""
        return law_moments(self.structure, self.parts, self.sizes, self.n_basis)

    @cached_property
    def forbidden(self) -> list[Table]:
        """Tables that are minus infinity where an action is not admissible."""
        with np.errstate(divide="ignore"):
            return [Table(rule.scope, np.log(rule.values)) for rule in self._rules]

    @cached_property
    def orders(self) -> list[Order]:
        """How to eliminate all variables but the actions, and all but one coordinate.

        The first gives the worst row of each action; the others give rows of different states,
        which limit the coefficients more than the worst row alone.
        """
        scopes = self._scopes
        choices = set(self.structure.choice_variables)
        by_action = prod(self.structure.choices) <= _SEPARATE_ACTIONS
        keeps = [choices if by_action else set(), *({i} for i in range(self.structure.dimension))]
        return [least_fill(scopes, self.sizes, keep) for keep in keeps]

    @cached_property
    def _scopes(self) -> list[tuple[int, ...]]:
        tables = [*self._costs, *self._rules]
        return [*(term.scope for term in self._here_and_drifts), *(t.scope for t in tables)]

    @cached_property
    def slope_orders(self) -> dict[int, Order]:
        choices = set(self.structure.choice_variables)
        rules = {rule.scope for rule in self._rules}
        found = {}
        for i in self.structure.endless:
            own = [tuple(v for v in s if v != i) for s in self._scopes if i in s or s in rules]
            keep = choices & {v for scope in own for v in scope}
            keep = keep if prod(self.sizes[v] for v in keep) <= _SEPARATE_ACTIONS else set()
            found[i] = least_fill(own, self.sizes, keep)
        return found

    def _check_order(self) -> None:
        for order in [*self.orders, *self.slope_orders.values()]:
            check_entries(order.largest, order.entries, self.variables)

    def _violated(self, found: Largest, least: float) -> IntArray:
        cells = np.flatnonzero(found.values.ravel() > least)
        return found.points(cells, len(self.sizes))

    def _add(self, points: IntArray, slope: int) -> None:
        """Take rows into the pool; slopes look at few coordinates, and the same one counts once."""
        rows, cost, features = self._computed(points)
        if slope >= 0:
            beyond = points.copy()
            beyond[:, slope] += 1
            further = self._computed(beyond)
            rows, cost = further[0] - rows, further[1] - cost
            features = further[2] - features
        fresh: list[int] = []
        for k, point in enumerate(points):
            label = point.tobytes() if slope < 0 else rows[k].tobytes() + cost[k].tobytes()
            if label not in self._known:
                self._known.add(label)
                fresh.append(k)
        self.pool = np.vstack([self.pool, points[fresh]])
        self.slopes = np.append(self.slopes, np.full(len(fresh), slope))
        self._extend(rows[fresh], cost[fresh])
        self._features = np.vstack([self._features, features[fresh]])

    def _computed(self, points: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rows (n, K), costs (n,) and features (n, K) at points (n, v)."""
        rows = np.zeros((len(points), self.n_basis))
        for term in self._here_and_drifts:
            term.add_to(rows, points)
        cost = np.sum([table.at(points) for table in self._costs], axis=0, initial=0.0)
        return rows, np.asarray(cost) + np.zeros(len(points)), self.features(points)

    def entries_of(self, functions: Basis, keys: IntArray) -> FloatArray:
        """Return the entries (n, c) that other functions would have in rows found so far."""
        parts = functions.parts(self.structure.dimension)
        terms = row_terms(self.structure, parts, self.sizes)
        points, slopes = self.pool[keys], self.slopes[keys]
        entries = np.zeros((len(keys), sum(len(part.columns) for part in parts)))
        along = np.flatnonzero(slopes >= 0)
        beyond = points[along]
        beyond[np.arange(len(along)), slopes[along]] += 1
        further = np.zeros((len(along), entries.shape[1]))
        for term in terms:
            term.add_to(entries, points)
            term.add_to(further, beyond)
        entries[along] = further - entries[along]
        return entries

    def _allowed(self, points: IntArray) -> IntArray:
        for rule in self._rules:
            points = points[rule.at(points) > 0.0]
        return points

    def _drawn(self, rng: np.random.Generator, n: int) -> IntArray:
        return np.stack([rng.integers(0, size, n) for size in self.sizes], axis=1)

    def _n_points(self, part: Part) -> int:
        return prod(self.sizes[v] for v in part.scope)

    def _constant_column(self) -> int:
        for part in self.parts:
            if not part.scope:
                return part.columns[0]
        raise BasisError(
            "the basis has no constant function, and without it the program may have no solution: "
            "stack it on Affine() or PiecewiseLinear(...)"
        )
