"""Numbers of a tabular model with a proven error, as `verify` computes them.

Values that a certificate describes, Bellman rows at them, and the cost and occupancy of a policy.
Nothing here uses row sources, solvers of linear programs or the occupancy code. A sum of n terms in
double precision is off by at most gamma_n = n u / (1 - n u), u = 2^-53, times the sum of the terms'
sizes; where that bound is too large to decide, the sum is done again with twice the digits
(`doubled`), where u is 2^-100: a few steps lose less than 2^-102 each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bellweight.certificates.record import Record
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import (
    Doubled,
    add,
    dot,
    doubled,
    multiply,
    product,
    subtract,
    total_by_group,
)
from bellweight.common.status import FileError
from bellweight.models import TabularModel

_UNIT = 2.0**-53
_UNIT_TWICE = 2.0**-100
_EXTRA = 16  # roundings of a sum beyond those of its terms: products, differences, sizes, a rest
_HIGHEST = 64  # exponent of a variable
_BLOCK = 1 << 16  # states taken at a time
_COUNTED = 1 << 16  # entries that are counted at a time, or as many as there are counts
_DENSE = 400  # states up to which a policy's values start from a dense solve
_FEW_ROWS = 0.5  # of a table, the most that are copied
_MOST_SWEEPS = 1_000_000


def gamma(n: int) -> float:
    """Return the relative error bound of a sum of n products."""
    return n * _UNIT / (1.0 - n * _UNIT)


@dataclass(frozen=True, eq=False)
class Values:
    """A value function: `plain` (S,), the `size` of its terms (S,), and how many there are.

    `precise` gives the values of some states to twice the digits.
    """

    plain: FloatArray
    size: FloatArray
    n_terms: int
    precise: Callable[[IntArray], Doubled]


@dataclass(frozen=True, eq=False)
class Described:
    """A basis of K functions that was read from plain data: features of some states (n, K).

    A basis of groups has the group of each state (S,) instead.
    """

    n_states: int
    n_basis: int
    features: Callable[[IntArray | slice], FloatArray] | None = None
    groups: IntArray | None = None

    def values(self, coef: FloatArray, rest: FloatArray | None = None) -> Values:
        """Return the value function of coefficients (K,), to which a small rest may belong."""
        fine = doubled(coef) if rest is None else Doubled(coef, rest)
        if self.groups is not None:
            groups, chosen = self.groups, coef[self.groups]
            return Values(chosen, np.abs(chosen), 1, lambda some: fine.at(groups[some]))
        features, plain, size = self.features, np.empty(self.n_states), np.empty(self.n_states)
        assert features is not None
        for states, block in self._blocks():
            plain[states], size[states] = block @ coef, np.abs(block) @ np.abs(coef)
        return Values(
            plain, size, self.n_basis, lambda some: product(doubled(features(some)), fine)
        )

    def moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the moments (K,) of weights (S,), and the sizes of their terms."""
        if self.groups is not None:
            masses: FloatArray = np.zeros(self.n_basis)
            np.add.at(masses, self.groups, weights)
            return masses, masses
        found, size = np.zeros(self.n_basis), np.zeros(self.n_basis)
        for states, block in self._blocks():
            found += weights[states] @ block
            size += weights[states] @ np.abs(block)
        return found, size

    def _blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        assert self.features is not None
        for states in blocks(self.n_states, _BLOCK):
            yield states, self.features(states)


def described(model: TabularModel, basis: Record, n_basis: int) -> Described:
    """Read a basis that is given as plain data."""
    kind, n_states = basis.text("kind"), model.n_states
    if kind == "groups":
        return Described(n_states, n_basis, groups=basis.whole("groups", n_states, n_basis))
    if kind == "features":
        table = basis.table("features", n_states, n_basis)
        return Described(n_states, n_basis, lambda some: table[some])
    if kind != "monomials":
        raise basis.unknown()
    exponents = basis.table("exponents", n_basis, model.states.shape[1])
    if (exponents != np.round(exponents)).any() or not _inside(exponents, 0, _HIGHEST):
        raise FileError(f"exponents are not whole numbers from 0 to {_HIGHEST}")
    return Described(n_states, n_basis, _monomials(model.states, exponents.astype(np.int64)))


def _inside(array: FloatArray, low: float, high: float) -> bool:
    return bool((array >= low).all() and (array <= high).all())


def _monomials(states: FloatArray, exponents: IntArray) -> Callable[[IntArray | slice], FloatArray]:
    """Return the function that gives the monomials of some states.

    Any function of the state can prove a bound. Here it is made of monomials as doubles, multiplied
    up one factor at a time, which every machine does alike; coefficients multiply those exactly.
    """
    letters = [np.repeat(np.arange(len(powers)), powers) for powers in exponents]

    def features(some: IntArray | slice) -> FloatArray:
        points = states[some]
        found = np.ones((len(points), len(letters)))
        for k, word in enumerate(letters):
            for place in word:
                found[:, k] *= points[:, place]
        return found

    return features


@dataclass(frozen=True, eq=False)
class Feasible:
    """What values prove: residuals (N,), their errors (N,), and the optimal cost is at least this.

    `violation` is the largest one of the values as given. Where rows do not hold with certainty the
    values are lowered by a constant; `value` and the residuals are those of the lowered values, and
    the errors hold what the lowering added out of caution. `rounding` is how far the rounding of
    the sums moves the value.
    """

    value: float
    rounding: float
    violation: float
    residual: FloatArray
    error: FloatArray


def feasible(model: TabularModel, values: Values, unit: float) -> Feasible:
    """Judge every row, with twice the digits where that may move the value by `unit` or more."""
    following = model.transition @ values.plain
    slack = model.cost + model.discount * following - values.plain[model.pair_state]
    size = np.abs(model.cost) + model.discount * (model.transition @ values.size)
    size += values.size[model.pair_state]
    longest = int(np.diff(model.transition.indptr).max())
    n_terms = values.n_terms + longest + _EXTRA
    error = gamma(n_terms) * size
    left = 1.0 - model.discount * largest_sum(model.transition)
    margin, most = slack - error, slack + error
    doubtful = np.flatnonzero(margin < -unit * left)
    if len(doubtful):
        precise = _precise_slack(model, values, doubtful)
        rounding = n_terms * _UNIT_TWICE * size[doubtful] + _UNIT * np.abs(precise)
        margin[doubtful], most[doubtful] = precise - rounding, precise + rounding
    if not (np.isfinite(values.size).all() and np.isfinite(margin).all()):
        raise FileError("the values are too large: what they prove cannot be computed")
    # Lowering by a constant adds between `left` and `added` of it to every row.
    shift = max(0.0, -float(margin.min())) / left * (1.0 + gamma(8))
    added = (1.0 - model.discount * smallest_sum(model.transition)) * shift
    initial, rounding = _initial_value(model, values, unit)
    # It takes more from the value where the initial chances add up to more than one.
    mass = float(model.initial.sum()) * (1.0 + gamma(model.n_states))
    certain = max(0.0, -float(most.min()))
    return Feasible(
        value=initial - mass * shift - 4.0 * _UNIT * abs(initial),
        rounding=rounding,
        violation=max(0.0, -float(slack.min())),
        residual=slack + added,
        error=error + max(0.0, added - certain),
    )


def largest_sum(matrix: sparse.csr_array) -> float:
    """Return the largest row sum, rounded up: what a constant may grow by in a step."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    longest = int(np.diff(matrix.indptr).max())
    return float(sums.max()) if longest == 1 else float(sums.max()) * (1.0 + gamma(longest))


def smallest_sum(matrix: sparse.csr_array) -> float:
    """Return the smallest row sum, rounded down."""
    longest = int(np.diff(matrix.indptr).max())
    least = float(np.asarray(matrix.sum(axis=1)).min())
    return least if longest == 1 else least * (1.0 - gamma(longest))


def _precise_slack(model: TabularModel, values: Values, pairs: IntArray) -> FloatArray:
    """Return the slacks of some rows from values with twice the digits."""
    block = model.transition[pairs]
    states, place = np.unique(
        np.concatenate([block.indices, model.pair_state[pairs]]), return_inverse=True
    )
    known = values.precise(states)
    following, here = known.at(place[: block.nnz]), known.at(place[block.nnz :])
    chances = multiply(doubled(block.data), doubled(np.full(1, model.discount)))
    ahead = total_by_group(multiply(chances, following), block.indptr)
    return add(doubled(model.cost[pairs]), subtract(ahead, here)).high


def _initial_value(model: TabularModel, values: Values, unit: float) -> tuple[float, float]:
    """Return a lower bound on the expected value of the initial state, and its error."""
    used = np.flatnonzero(model.initial)
    plain = float(model.initial[used] @ values.plain[used])
    size = float(model.initial[used] @ values.size[used])
    error = gamma(len(used) + values.n_terms + _EXTRA) * size
    if error <= unit:
        return plain - error, error
    precise = dot(doubled(model.initial[used]), values.precise(used))
    error = (len(used) + values.n_terms + _EXTRA) * _UNIT_TWICE * size
    return precise - error - _UNIT * abs(precise), error


def most_entering(rows: sparse.csr_array) -> int:
    """Return the most entries of a column: how many terms a state's inflow has."""
    counts = np.zeros(rows.shape[1], dtype=np.int64)
    for some in blocks(rows.nnz, max(_COUNTED, len(counts))):  # NumPy widens what it counts
        counts += np.bincount(rows.indices[some], minlength=len(counts))
    return int(counts.max(initial=0))


@dataclass(frozen=True, eq=False)
class FollowedChain:
    """Where a policy goes: its occupancy (S,), and how far that may be off in the 1-norm.

    The matrix of the chain is `mixer @ rows`: rows of the table, and the chances with which they
    are taken. It is never made: a policy that mixes actions has as many entries as the table.
    """

    mixer: sparse.csr_array
    rows: sparse.csr_array
    cost: FloatArray
    n_terms: int
    left: float
    occupancy: FloatArray
    occupancy_error: float

    def ahead(self, values: FloatArray) -> FloatArray:
        """Return the expected values (S,) after a step."""
        return np.asarray(self.mixer @ (self.rows @ values))


def followed_chain(model: TabularModel, chances: FloatArray) -> FollowedChain:
    """Return a policy's chain and its occupancy, by iteration, with the error it has left."""
    used = np.flatnonzero(chances)
    if len(used) > _FEW_ROWS * model.n_pairs:
        used, rows = np.arange(model.n_pairs), model.transition
    else:
        rows = model.transition[used]
    entries = (chances[used], np.arange(len(used)), np.searchsorted(used, model.pair_start))
    mixer = sparse.csr_array(entries, shape=(model.n_states, len(used)))
    discount = model.discount
    actions = int(np.diff(mixer.indptr).max())
    most = int(np.diff(rows.indptr).max(initial=0))
    sums = float((mixer @ rows.sum(axis=1)).max())
    roundings = (most if most > 1 else 0) + (actions if actions > 1 else 0)
    left = 1.0 - discount * sums * (1.0 + gamma(roundings))
    n_terms = actions + max(most, most_entering(rows)) + _EXTRA
    inflow = (1.0 - discount) * model.initial
    into, shares = rows.T, mixer.T  # the same entries, read by columns

    def residual(mass: FloatArray) -> FloatArray:
        return np.asarray(inflow + discount * (into @ (shares @ mass)) - mass)

    start = _started(mixer, rows, discount, inflow, transposed=True)
    start = model.initial if start is None else start
    mass = _iterated(residual, start, lambda step: float(np.abs(step).sum()))
    rest = float(np.abs(residual(mass)).sum()) + 3.0 * gamma(n_terms) * float(np.abs(mass).sum())
    cost = np.asarray(mixer @ model.cost[used])
    return FollowedChain(mixer, rows, cost, n_terms, left, mass, rest / left)


@dataclass(frozen=True)
class PolicyCost:
    """A policy's expected cost: at most `error` off, and `size` is that of what is summed.

    `rounding` is what the cost of a start may be off when the values of all states are computed
    together in double precision, as it is relative to the largest of them.
    """

    cost: float
    error: float
    size: float
    rounding: float


def policy_cost(model: TabularModel, followed: FollowedChain) -> PolicyCost:
    """Return a policy's expected cost with a proven error.

    With the residual of values J, initial' (J^pi - J) = occupancy' residual / (1 - discount): the
    error counts where the policy goes.
    """
    values, rest = _policy_values(model, followed, followed.cost)
    mass = np.abs(followed.occupancy)
    error = float(mass @ rest) + followed.occupancy_error * float(rest.max())
    error /= min(followed.left, 1.0 - model.discount)
    cost = float(model.initial @ values)
    share = gamma(model.n_states + _EXTRA)
    error += share * float(model.initial @ np.abs(values))
    size = abs(cost)
    if (followed.cost < 0.0).any() and (followed.cost > 0.0).any():
        gross = _policy_values(model, followed, np.abs(followed.cost))[0]
        size = float(model.initial @ gross)
    return PolicyCost(cost, error, size, share * float(np.abs(values).max()))


def _policy_values(
    model: TabularModel, followed: FollowedChain, cost: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return values (S,) that solve J = cost + discount P J nearly, and their residual's size."""
    discount = model.discount

    def residual(values: FloatArray) -> FloatArray:
        return cost + discount * followed.ahead(values) - values

    def shift(step: FloatArray) -> float:
        # A constant part of the residual recurs in every sweep, discounted: add the whole series.
        return 0.5 * discount / (1.0 - discount) * float(step.max() + step.min())

    start = _started(followed.mixer, followed.rows, discount, cost, transposed=False)
    start = np.zeros(model.n_states) if start is None else start
    values = _iterated(residual, start, lambda step: float(np.abs(step).max()), shift)
    size = np.abs(cost) + discount * followed.ahead(np.abs(values)) + np.abs(values)
    return values, np.abs(residual(values)) + gamma(followed.n_terms) * size


def _started(
    mixer: sparse.csr_array,
    rows: sparse.csr_array,
    discount: float,
    constant: FloatArray,
    *,
    transposed: bool,
) -> FloatArray | None:
    """Return a start for small chains; any will do, as the residual at the end is checked."""
    n = len(constant)
    if n > _DENSE:
        return None
    chain = (mixer @ rows).toarray()
    try:
        return np.linalg.solve(np.eye(n) - discount * (chain.T if transposed else chain), constant)
    except np.linalg.LinAlgError:
        return None


def _iterated(
    residual: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    norm: Callable[[FloatArray], float],
    shift: Callable[[FloatArray], float] = lambda _: 0.0,
) -> FloatArray:
    """Add the residual, and a constant for it, until rounding stops it from falling.

    It falls by a factor, the discount, or faster.
    """
    best, point, smallest = start, start, np.inf
    for _ in range(_MOST_SWEEPS):
        step = residual(point)
        size = norm(step)
        if not size < smallest:
            break
        best, smallest = point, size
        if size <= _UNIT * norm(point):
            break
        point = point + step + shift(step)
    return best
