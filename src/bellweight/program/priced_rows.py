"""Row generation for linear models: an optimisation problem finds the most violated row.

With the affine value function phi(s)' coef = coef_0 + v' s, the slack of the pair (s, a)

    cost(s, a) - phi(s)' coef + discount E[phi(next)]' coef

is linear in (s, a). Its minimum over the box and the constraints is a linear program over whole
numbers (`integer_program`), or one call of a kernel that the problem registers. No violated row
is left when the minimum is not negative: that is what the last round of pricing proves. Seen from
the dual program this is column generation.

Pairs that were found stay in a pool; a row's key is its place there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.basis import Affine, Basis, Polynomial
from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.short import Short
from bellweight.common.status import ArgumentError, BasisError, ModelError, SolverError, Status
from bellweight.models import LinearModel
from bellweight.program import conditioning
from bellweight.program.integer_program import IntegerProgram
from bellweight.program.pooled_rows import PooledRows
from bellweight.program.row_source import Separation

_REFERENCE_POINTS = 16  # per basis function
_FAR = 1e4  # a price that outweighs all others, to find extreme states


@dataclass(frozen=True, eq=False, repr=False)
class PricedRows(Short):
    """The rows of a linear model, found by pricing.

    `lower` and `upper` replace the model's box, for instance by a larger one that the simulator
    cannot leave. Up to `columns` pairs are found per round. `time_limit` is in seconds per pricing
    problem: when it is reached the run ends with the bound known so far and says so. `kernel=False`
    keeps to the general solver even where the problem registers a faster way.
    """

    lower: Any = None
    upper: Any = None
    columns: int = 4
    time_limit: float | None = None
    kernel: bool = True

    def __post_init__(self) -> None:
        checks.count(self.columns, "columns")
        if self.time_limit is not None:
            checks.positive(self.time_limit, "time_limit")

    def on(self, model: LinearModel, basis: Basis) -> LinearRows:
        """Bind to a model and a basis."""
        return LinearRows(model, basis, self)


@dataclass(frozen=True, eq=False)
class Priced:
    """The pair of least slack that was found, and a bound below every slack."""

    state: FloatArray | None
    action: FloatArray | None
    bound: float
    proven: bool


class LinearRows(PooledRows):
    """Rows of a linear model that pricing has found so far."""

    def __init__(self, model: LinearModel, basis: Basis, settings: PricedRows) -> None:
        if not isinstance(model, LinearModel):
            raise ModelError(f"model is {type(model).__name__}, expected a LinearModel for pricing")
        self.model = model
        self.basis = basis
        self.settings = settings
        self.discount = model.discount
        self._check_basis()
        self.names = ("1", *model.state_names)
        super().__init__()
        self.lower, self.upper = basis.bounds(self.n_basis)
        self.box = self._box()
        n, m = model.dimension, model.n_action_variables
        self.pool_states, self.pool_actions = np.zeros((0, n)), np.zeros((0, m))
        self._known: set[bytes] = set()
        self._centre: FloatArray | None = None
        self._program: IntegerProgram | None = None

    @property
    def program(self) -> IntegerProgram:
        """The pricing problem over (state, action), for the general solver."""
        if self._program is None:
            model = self.model
            rows = sparse.hstack([model.state_rows, model.action_rows])
            lower = np.concatenate([self.box[0], model.action_lower])
            upper = np.concatenate([self.box[1], model.action_upper])
            self._program = IntegerProgram(
                rows,
                model.row_lower,
                model.row_upper,
                lower,
                implied_upper(rows.toarray(), model.row_lower, model.row_upper, lower, upper),
                np.concatenate([model.integer_states, model.integer_actions]),
            )
        return self._program

    def support_of(self, keys: IntArray) -> tuple[FloatArray, FloatArray]:
        return self.pool_states[keys], self.pool_actions[keys]

    def constant(self) -> FloatArray:
        return np.eye(1, self.n_basis)[0]

    def triangle(self, weights: FloatArray | None) -> FloatArray:
        """Return the factor of the features under even weights on the box."""
        rng = np.random.default_rng(0)
        n = _REFERENCE_POINTS * self.n_basis
        low, high = self.box
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ArgumentError(
                "the box of PricedRows has a side without a bound: give finite lower and upper to "
                "solve; only largest_violation takes others"
            )
        points = low + rng.random((n, self.model.dimension)) * (high - low)
        features = np.column_stack([np.ones(n), points]) / np.sqrt(n)
        return conditioning.triangle([features], self.n_basis)

    def seeds(self, weights: FloatArray | None) -> IntArray:
        """Return pairs with extreme states: each variable in turn as small or large as can be."""
        model = self.model
        if self.n_pairs == 0:
            far = _FAR * max(1.0, np.abs(model.state_cost).max(), np.abs(model.action_cost).max())
            for k in range(model.dimension):
                for sign in (far, -far):
                    price = np.array(model.state_cost)
                    price[k] += sign
                    self._add(self._priced(price, model.action_cost))
        return np.arange(self.n_pairs)

    def separate(self, coef: FloatArray, unit: float, *, homogeneous: bool = False) -> Separation:
        found = self._priced(*self._prices(coef, homogeneous=homogeneous))
        self._add(found)
        if not homogeneous:
            self._add_more(coef)
        slack, cost = self._slacks(coef, homogeneous=homogeneous)
        bound = found.bound + self._constant_slack(coef, homogeneous=homogeneous)
        values = coef[0] + self.pool_states @ coef[1:]
        worst = max(-bound, -float(slack.min()))
        return self._separation(slack, cost, values, unit, worst, proven=found.proven)

    def is_constant(self, coef: FloatArray) -> bool:
        """Return whether the value function hardly differs between the states of the box."""
        model, (low, high) = self.model, self.box
        spread = float(np.abs(coef[1:]) @ (high - low))
        costs = np.concatenate([model.state_cost, model.action_cost, [model.constant_cost]])
        level = max(float(np.abs(costs).max()), abs(float(coef[0])))
        return spread <= tolerances.CONSTANT_VALUE * level

    def largest_violation(self, coef: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return a bound on the violation over the box, and the state and action found worst."""
        found = self._priced(*self._prices(np.asarray(coef, dtype=np.float64)))
        if found.state is None or found.action is None:
            raise SolverError(Status.TIME_LIMIT, "pricing found no pair within its time limit")
        bound = found.bound + self._constant_slack(coef)
        return max(0.0, -bound), found.state, found.action

    def multipliers(self, coef: FloatArray) -> FloatArray | None:
        """Return multipliers of the constraints that bound every slack over the box, if known."""
        price = np.concatenate(self._prices(np.asarray(coef, dtype=np.float64)))
        return self.program.minimise(price, self.settings.time_limit).multipliers

    def _prices(
        self, coef: FloatArray, *, homogeneous: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return the slack's coefficients of the state and of the action."""
        model, slope = self.model, coef[1:]
        share = 0.0 if homogeneous else 1.0
        state = share * model.state_cost - slope + self.discount * (model.next_state.T @ slope)
        action = share * model.action_cost + self.discount * (model.next_action.T @ slope)
        return np.asarray(state), np.asarray(action)

    def _constant_slack(self, coef: FloatArray, *, homogeneous: bool = False) -> float:
        model = self.model
        cost = 0.0 if homogeneous else model.constant_cost
        drift = self.discount * float(model.drift @ coef[1:])
        return float(cost - (1.0 - self.discount) * coef[0] + drift)

    def _priced(self, state_price: FloatArray, action_price: FloatArray) -> Priced:
        model = self.model
        if self.settings.kernel and model.kernels is not None:
            pair = model.kernels.price(state_price, action_price, *self.box)
            if pair is not None:
                value = float(state_price @ pair[0] + action_price @ pair[1])
                return Priced(pair[0], pair[1], value, proven=True)
        price = np.concatenate([state_price, action_price])
        answer = self.program.minimise(price, self.settings.time_limit)
        if answer.status not in (Status.OPTIMAL, Status.TIME_LIMIT):
            raise SolverError(answer.status, _PRICING[answer.status])
        proven = answer.status is Status.OPTIMAL
        if answer.point is None:
            return Priced(None, None, answer.bound, proven)
        state, action = np.split(answer.point, [model.dimension])
        return Priced(state, action, answer.bound, proven)

    def _add(self, found: Priced) -> None:
        """Take a pair into the pool."""
        if found.state is None or found.action is None:
            return
        label = found.state.tobytes() + found.action.tobytes()
        if label in self._known:
            return
        model = self.model
        self._known.add(label)
        state, action = found.state[None], found.action[None]
        following = self.discount * model.expected_next(state, action)
        row = np.column_stack([[1.0 - self.discount], state - following])
        self.pool_states = np.vstack([self.pool_states, state])
        self.pool_actions = np.vstack([self.pool_actions, action])
        self._extend(row, model.cost(state, action))

    def _add_more(self, coef: FloatArray) -> None:
        """Price between these coefficients and the average of earlier ones, for faster convergence.

        Such pairs are often violated here too, and limit the coefficients more.
        """
        if self._centre is None:
            self._centre = np.array(coef)
            return
        for k in range(1, self.settings.columns):
            share = k / self.settings.columns
            between = (1.0 - share) * coef + share * self._centre
            self._add(self._priced(*self._prices(between)))
        self._centre = 0.5 * (self._centre + coef)

    def _check_basis(self) -> None:
        n, basis = self.model.dimension, self.basis
        if not isinstance(basis, Affine | Polynomial) or basis.words(n) != Affine().words(n):
            raise BasisError(
                "pricing a linear model needs an affine value function, or the slack would not be "
                "linear: use Affine(), or enumerate the model with to_tabular()"
            )

    def _box(self) -> tuple[FloatArray, FloatArray]:
        model, edges = self.model, []
        for name, given, usual in (
            ("lower", self.settings.lower, model.state_lower),
            ("upper", self.settings.upper, model.state_upper),
        ):
            value = usual if given is None else np.broadcast_to(given, (model.dimension,))
            box = checks.float_array(value, name, (model.dimension,), ArgumentError, finite=False)
            edges.append(box)
        if not (edges[0] <= edges[1]).all():
            raise ArgumentError("the box of PricedRows is empty: expected lower <= upper")
        return edges[0], edges[1]


def implied_upper(
    rows: FloatArray,
    row_lower: FloatArray,
    row_upper: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:
    """Return the upper bounds, infinite ones replaced by what single constraints imply.

    Finite bounds keep the bound on the minimum finite whatever rounding does to reduced costs.
    """
    matrix = np.vstack([rows, -rows])
    limit = np.concatenate([row_upper, -row_lower])
    ends = np.where(matrix > 0.0, lower, upper)
    least = np.where(matrix != 0.0, matrix * np.where(matrix != 0.0, ends, 0.0), 0.0)
    implied = np.array(upper)
    for k in np.flatnonzero(np.isinf(upper)):
        others = np.delete(least, k, axis=1).sum(axis=1)
        useful = (matrix[:, k] > 0.0) & np.isfinite(limit) & np.isfinite(others)
        if useful.any():
            implied[k] = np.min((limit - others)[useful] / matrix[useful, k])
    return np.maximum(implied, lower)


_PRICING = {
    Status.INFEASIBLE: "pricing: no pair of a state in the box and an action meets the constraints",
    Status.UNBOUNDED: "pricing is unbounded: give the action variables bounds or constraints",
    Status.FAILED: "the solver did not solve the pricing problem",
}
