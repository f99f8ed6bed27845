"""Contraction: the Lipschitz constant of the dual, certified settings, moduli.

The minimum-norm dual is a function of the weights c only through the moments m = Phi' c. Let B be
the rows that are tight at a vertex of {coef : rows coef <= cost}. As long as that vertex is
optimal, the optimality conditions of the minimum-norm program (eq. min_norm_dual) say

    dual = max(B y, 0)   with   B' dual = m   for some y.

With S the rows of B where B y > 0, the dual is J_S m, J_S = B_S (B_S' B_S)^-1, so the dual is
linear in m on a *piece* (vertex, S), and the supports S that occur are sign vectors of the cells
into which the hyperplanes {y : b y = 0} cut R^K. The pieces are closed cones, finitely many, those
with an interior cover all weights, and the dual is continuous. Hence, exactly,

    L_d = max over pieces with an interior of   1/2 max_{x, y} ||J_S (phi(x) - phi(y))||_1,

the inner maximum because the unit ball of {d : sum d = 0} has the corners (e_x - e_y) / 2.

Listing bases instead of pieces gives an upper bound: with sets T of K rows,

    J_S = sum_T w_T B_T^-T,   w_T = det(B_T)^2 / sum det^2      (Jacobi's identity, transposed),

so no piece is steeper than the steepest nonsingular T among its tight rows. Where all tight rows
are a basis the two agree. Elsewhere the bound may be far above L_d; it is used only where it cannot
be told in double precision which rows are tight, because it holds whichever they are.

A piece has an interior when its cone contains positive weights c whose dual is positive on S with
B y negative on the rest; the margin of that is maximised, and a piece whose margin is below
`_THIN` of the total mass counts as having none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import nnls

from bellweight import checks, conditioning, tolerances
from bellweight.alp import AlpProgram, AlpSolution
from bellweight.basis import Basis
from bellweight.checks import BoolArray, FloatArray, IntArray
from bellweight.dual import MinimumNormDual, minimum_norm_dual
from bellweight.lp import IntegerProgram
from bellweight.models import TabularModel
from bellweight.moduli import CertifiedSettings, certified_settings, contracts, softmax_lipschitz
from bellweight.policy import Policy, Support, checked_probabilities
from bellweight.rows import AllRows, TabularRows
from bellweight.status import ArgumentError, ModelError

__all__ = [
    "CertifiedSettings",
    "LocalJacobian",
    "Piece",
    "certified_settings",
    "contracts",
    "dual_lipschitz",
    "local_jacobian",
    "sampled_dual_lipschitz",
    "sampled_policy_lipschitz",
    "softmax_lipschitz",
    "steepest_piece",
]

_LIMIT = 1_000_000
_CHUNK = 1 << 14
_SINGULAR = 1e-12  # reciprocal condition below which rows count as dependent
_NEAR = 1e-9  # relative slack above which a row is clearly not tight
_SURE = 1e-12  # relative slack below which a row counts as tight
_PARALLEL = 1e-10  # a hyperplane contains a unit direction up to this
_THIN = 1e-9
_EXCLUDED = 1e-8  # the bound on a margin of zero carries the solver's tolerance
_PAIRWISE = 1 << 31  # operations up to which a diameter is computed pair by pair
_NEARBY = (1e-2, 1e-4)  # lengths of the steps between nearby weights


@dataclass(frozen=True, eq=False)
class Piece:
    """The steepest linear piece of the dual: its slope, where it is, and along which two states.

    `slope` is L_d when `attained` is on: weights near `weights` (S,), changed by moving mass
    between the two `states`, change the dual at that rate. Otherwise `slope` is an upper bound only
    and `weights` is None, because rows are too close to tight to tell. `support` are the pairs with
    dual mass; `vertices` and `subsets` count what was enumerated.
    """

    slope: float
    attained: bool
    weights: FloatArray | None
    states: tuple[int, int]
    support: IntArray
    vertices: int
    subsets: int


def dual_lipschitz(model: TabularModel, basis: Basis, *, limit: int = _LIMIT) -> float:
    """Return an upper bound on L_d: the 1-norm of the change of the dual per that of the weights.

    Proven by enumeration of the vertices of the program, so for small programs only: `limit` is
    the largest number of sets of K rows to look at. It equals L_d unless some vertex has rows that
    are nearly tight; `steepest_piece` tells.
    """
    return steepest_piece(model, basis, limit=limit).slope


def steepest_piece(model: TabularModel, basis: Basis, *, limit: int = _LIMIT) -> Piece:
    """Return the piece of the minimum-norm dual on which it changes fastest."""
    rows = _bound_rows(model, basis)
    limit = checks.count(limit, "limit")
    if np.isfinite(rows.lower).any() or np.isfinite(rows.upper).any():
        k = int(np.argmax(np.isfinite(rows.lower) | np.isfinite(rows.upper)))
        raise ArgumentError(
            f"basis function {k} ({rows.names[k]}) has a bound on its coefficient, and L_d is "
            "proven for free coefficients only: remove the bounds, or use "
            "sampled_dual_lipschitz for a lower bound"
        )
    return _Enumeration(rows, limit).steepest()


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A possible piece: slope, pairs S, J_S Phi' (|S|, n), and B_T y (t, n) for tight T not in S.

    Both matrices are for total mass one. `outside` is None for an upper bound without a piece.
    """

    slope: float
    states: tuple[int, int]
    support: IntArray
    inside: FloatArray
    outside: FloatArray | None


class _Enumeration:
    """All vertices of a small program and the pieces at each."""

    def __init__(self, rows: TabularRows, limit: int) -> None:
        self.model = rows.model
        features = _dense(rows.features(slice(None)))
        every = np.arange(rows.n_pairs)
        matrix, self.cost = _dense(rows.rows(every)[0]), rows.rows(every)[1]
        factor = conditioning.triangle([features / np.sqrt(len(features))], rows.n_basis)
        coordinates = conditioning.orthonormal(factor, conditioning.independent_columns(factor))
        self.features: FloatArray = coordinates.rows(features)
        self.rows: FloatArray = coordinates.rows(matrix)
        self.rank = coordinates.rank
        self.subsets = math.comb(len(self.cost), self.rank)
        if self.subsets > limit:
            raise ArgumentError(
                f"{len(self.cost)} rows and {self.rank} independent basis functions make "
                f"{self.subsets:,} sets of rows, more than the limit of {limit:,}: raise limit, "
                "use a smaller basis, or sampled_dual_lipschitz for a lower bound"
            )

    def steepest(self) -> Piece:
        """Return the steepest candidate that is a piece, looking at steep ones first."""
        tight_sets = self._tight_sets()
        candidates = [found for near, sure in tight_sets for found in self._at(near, sure=sure)]
        for found in sorted(candidates, key=lambda candidate: -candidate.slope):
            weights, excluded = self._weights(found)
            if not excluded:
                # A candidate that could be neither found nor excluded still bounds what may be.
                return Piece(
                    found.slope,
                    weights is not None,
                    weights,
                    found.states,
                    found.support,
                    len(tight_sets),
                    self.subsets,
                )
        raise ArgumentError(
            "every piece of the dual is too thin to be told from rounding: rescale the basis, or "
            "use sampled_dual_lipschitz for a lower bound"
        )

    def _tight_sets(self) -> list[tuple[IntArray, bool]]:
        """Return the tight rows of each vertex, and whether it is sure that they are."""
        patterns: set[bytes] = set()
        for subset in _subsets(len(self.cost), self.rank):
            coef, good = _solved(self.rows[subset], self.cost[subset])
            slack = self._relative_slack(coef)
            feasible = good & (slack >= -_NEAR).all(axis=1)
            patterns.update(row.tobytes() for row in (np.abs(slack[feasible]) <= _NEAR))
        found: dict[bytes, tuple[IntArray, bool]] = {}
        for pattern in patterns:
            near = np.flatnonzero(np.frombuffer(pattern, dtype=bool))
            # All near rows together place the vertex better than any K of them.
            slack = self._relative_slack(self._placed(near)[None, :])[0]
            together = np.flatnonzero(np.abs(slack) <= _NEAR)
            if (slack >= -_NEAR).all() and len(together) >= len(near):
                sure = bool((np.abs(slack[together]) <= _SURE).all())
                found[together.tobytes()] = (together, sure)
            else:
                found[near.tobytes()] = (near, False)
        return list(found.values())

    def _placed(self, near: IntArray) -> FloatArray:
        """Return the vertex (rank,) at which some rows meet, refined to full precision."""
        rows, cost = self.rows[near], self.cost[near]
        coef = np.zeros(self.rank)
        for _ in range(3):
            coef = coef + np.linalg.lstsq(rows, cost - rows @ coef, rcond=None)[0]
        return coef

    def _relative_slack(self, coef: FloatArray) -> FloatArray:
        """Return slacks (n, N) of coefficients (n, rank), relative to the size of their terms."""
        unit = tolerances.ROUNDING / _SURE * float(np.abs(self.cost).max())
        terms = np.abs(coef) @ np.abs(self.rows).T + np.abs(self.cost) + unit
        return np.asarray((self.cost - coef @ self.rows.T) / np.where(terms > 0.0, terms, 1.0))

    def _at(self, tight: IntArray, *, sure: bool) -> Iterator[_Candidate]:
        """Yield the candidates at a vertex."""
        if len(tight) == self.rank:
            yield from self._candidate(tight, tight[:0])
        elif not sure:
            yield from self._bases(tight)
        else:
            for positive in _supports(self.rows[tight]):
                yield from self._candidate(tight[positive], tight[~positive])

    def _candidate(self, support: IntArray, rest: IntArray) -> Iterator[_Candidate]:
        if len(support) < self.rank:
            return
        orthogonal, triangle = np.linalg.qr(self.rows[support])
        size = np.linalg.svd(triangle, compute_uv=False)
        if size[-1] <= _SINGULAR * size[0]:
            return
        share = 1.0 - self.model.discount
        level = share * np.linalg.solve(triangle.T, self.features.T)
        inside = orthogonal @ level
        outside = self.rows[rest] @ np.linalg.solve(triangle, level)
        # A row of the first that is nowhere positive, or of the second nowhere negative: no piece.
        if (inside.max(axis=1) > _THIN).all() and (outside.min(axis=1) < -_THIN).all():
            slope, states = _half_diameter(inside.T)[:2]
            yield _Candidate(slope / share, states, support, inside, outside)

    def _bases(self, tight: IntArray) -> Iterator[_Candidate]:
        """Yield the nonsingular bases among rows of which some may not be tight.

        None at a vertex that is not optimal for weights of any size, whichever rows are tight.
        """
        share, found, optimal = 1.0 - self.model.discount, [], False
        for subset in chain.from_iterable(_subsets(len(tight), self.rank)):
            basis = self.rows[tight[subset]]
            size = np.linalg.svd(basis, compute_uv=False)
            if size[-1] > _SINGULAR * size[0]:
                inside = share * np.linalg.solve(basis.T, self.features.T)
                slope, states = _half_diameter(inside.T)[:2]
                found.append(_Candidate(slope / share, states, tight[subset], inside, None))
                # The cones of the bases cover the moments for which the vertex is optimal.
                optimal = optimal or not _inner_weights(inside)[1]
        if optimal:
            yield from found

    def _weights(self, candidate: _Candidate) -> tuple[FloatArray | None, bool]:
        """Return weights well inside a piece, and whether it is proven that there are none."""
        if candidate.outside is None:
            return None, False
        return _inner_weights(np.vstack([candidate.inside, -candidate.outside]))


def _inner_weights(signed: FloatArray) -> tuple[FloatArray | None, bool]:
    """Return positive weights c (n,) with signed c > 0, and whether it is proven that none exist.

    max s   s.t.   signed c >= s,   c >= s,   sum c = 1,   which always has a solution.

    Weights of margin s at most `_THIN` are none; the proof does not rest on the solver's word.
    """
    m, n = signed.shape
    matrix = np.zeros((m + n + 1, n + 1))
    matrix[:m, :n], matrix[m:-1, :n], matrix[-1, :n] = signed, np.eye(n), 1.0
    matrix[:-1, n] = -1.0
    low, high = np.zeros(m + n + 1), np.full(m + n + 1, np.inf)
    low[-1] = high[-1] = 1.0
    worst = -max(1.0, float(np.abs(signed).max()))
    lower, upper = np.append(np.zeros(n), worst), np.ones(n + 1)
    program = IntegerProgram(matrix, low, high, lower, upper, np.zeros(n + 1, dtype=bool))
    answer = program.minimise(np.append(np.zeros(n), -1.0))
    if answer.point is not None and answer.point[-1] > _THIN:
        return np.asarray(answer.point[:-1] / answer.point[:-1].sum()), False
    return None, -answer.bound <= _EXCLUDED


def _subsets(n: int, size: int) -> Iterator[IntArray]:
    """Yield all subsets of range(n) of a size, as arrays (m, size)."""
    every = combinations(range(n), size)
    while chunk := list(islice(every, _CHUNK)):
        yield np.array(chunk, dtype=np.int64).reshape(len(chunk), size)


def _solved(matrices: FloatArray, right: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Solve square systems (m, k, k); return the solutions (m, k) and which are nonsingular."""
    size = np.linalg.svd(matrices, compute_uv=False)
    good = size[:, -1] > _SINGULAR * size[:, 0]
    safe = np.where(good[:, None, None], matrices, np.eye(matrices.shape[1]))
    return np.asarray(np.linalg.solve(safe, right[:, :, None])[:, :, 0], dtype=np.float64), good


def _supports(rows: FloatArray) -> BoolArray:
    """Return the sign patterns (m, t), True where rows y > 0, over all y with no row y zero."""
    scaled = rows / np.abs(rows).max()
    # Copies of a row have the same sign.
    distinct, copies = np.unique(np.round(scaled, 12), axis=0, return_inverse=True)
    lengths = np.linalg.norm(distinct, axis=1, keepdims=True)
    return _cells(distinct / lengths)[:, copies.ravel()]


def _cells(normals: FloatArray) -> BoolArray:
    """Return the sign patterns of the cells of hyperplanes with unit normals (t, k) of rank k.

    A cell is a pointed cone, so it lies beside one of the rays in which k - 1 hyperplanes meet.
    Beside a ray, the other hyperplanes have the ray's sign, and those through it have the signs of
    a cell of their own arrangement in the k - 1 dimensions across it.
    """
    t, k = normals.shape
    if k == 1:
        positive = normals[:, 0] > 0.0
        return np.array([positive, ~positive])
    found: list[BoolArray] = []
    seen: set[bytes] = set()
    corners = np.array(list(product([False, True], repeat=k - 1)))
    for subset in _subsets(t, k - 1):
        _, size, directions = np.linalg.svd(normals[subset])
        rays = directions[size[:, -1] > _PARALLEL, -1]
        sides = rays @ normals.T
        for ray, side in zip(rays, sides, strict=True):
            through = np.abs(side) <= _PARALLEL
            if through.tobytes() in seen:
                continue
            seen.add(through.tobytes())
            generic = int(through.sum()) == k - 1
            local = corners if generic else _cells(_across(normals[through], ray))
            for sign in (side > 0.0, side < 0.0):
                beside = np.tile(sign, (len(local), 1))
                beside[:, through] = local
                found.append(beside)
    return np.unique(np.concatenate(found), axis=0)


def _across(normals: FloatArray, ray: FloatArray) -> FloatArray:
    """Return unit normals orthogonal to a ray in coordinates across it."""
    across = normals @ null_space(ray[None, :])
    return np.asarray(across / np.linalg.norm(across, axis=1, keepdims=True))


def _half_diameter(points: FloatArray) -> tuple[float, tuple[int, int], bool]:
    """Return half the largest 1-norm distance of points (n, s), the two, and whether it is exact.

    Pair by pair, or as the widest extent over the 2^(s - 1) sign vectors, whichever is less work;
    where both are too much, by going to the farthest point until that does not help: a lower bound.
    """
    n, s = points.shape
    by_pairs, by_signs = float(n) * n * s, float(n) * s * 2.0 ** min(s - 1, 1000)
    if min(by_pairs, by_signs) > _PAIRWISE:
        first, second = _farthest(points)
        exact = False
    elif by_signs < by_pairs:
        first, second = _widest(points)
        exact = True
    else:
        reach = [np.abs(points - point).sum(axis=1) for point in points]
        first = int(np.argmax([distance.max() for distance in reach]))
        second, exact = int(np.argmax(reach[first])), True
    distance = float(np.abs(points[first] - points[second]).sum())
    return 0.5 * distance, (first, second), exact


def _widest(points: FloatArray) -> tuple[int, int]:
    best, ends = -1.0, (0, 0)
    for signs in product((1.0, -1.0), repeat=points.shape[1] - 1):
        extent = points @ np.array((1.0, *signs))
        low, high = int(np.argmin(extent)), int(np.argmax(extent))
        if extent[high] - extent[low] > best:
            best, ends = float(extent[high] - extent[low]), (high, low)
    return ends


def _farthest(points: FloatArray) -> tuple[int, int]:
    first, best = 0, -1.0
    while True:
        distance = np.abs(points - points[first]).sum(axis=1)
        second = int(np.argmax(distance))
        if distance[second] <= best:
            return first, second
        first, best = second, float(distance[second])


@dataclass(frozen=True, eq=False)
class LocalJacobian:
    """How the minimum-norm dual changes with the weights at given weights.

    `matrix` (s, K) maps a change of the moments to that of the dual on its support, whose pairs are
    `keys` (s,). `slope` is its 1-norm over differences of states, 1/2 max ||matrix (phi(x) -
    phi(y))||_1, at the two `states`. When `interior` is on, the weights lie inside a piece, the
    dual is linear around them, and `slope` is at most L_d; otherwise several pieces meet, and the
    matrix is that of the support alone. `exact` is off when there are so many states that not all
    pairs were compared: `slope` is then a lower bound on that maximum.
    """

    keys: IntArray
    matrix: FloatArray
    slope: float
    states: tuple[int, int]
    interior: bool
    exact: bool


def local_jacobian(model: TabularModel, basis: Basis, weights: Any) -> LocalJacobian:
    """Return the Jacobian of the minimum-norm dual at weights (S,)."""
    rows = _bound_rows(model, basis)
    given = checks.distribution(weights, "weights", model.n_states, model.state_name, ArgumentError)
    return _jacobian(_Duals(rows), given)


class _Duals:
    """The minimum-norm dual as a function of the weights, warm from one to the next."""

    def __init__(self, rows: TabularRows) -> None:
        self.rows = rows
        self.program = AlpProgram(rows)

    def solve(self, weights: FloatArray) -> tuple[AlpSolution, MinimumNormDual]:
        solution = self.program.solve(self.rows.moments(weights), weights)
        return solution, minimum_norm_dual(solution)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return the dual (N,) over all pairs."""
        _, dual = self.solve(weights)
        return self.spread(dual.keys, dual.values)

    def spread(self, keys: IntArray, values: FloatArray) -> FloatArray:
        every = np.zeros(self.rows.n_pairs)
        every[keys] = values
        return every


def _jacobian(duals: _Duals, weights: FloatArray) -> LocalJacobian:
    solution, dual = duals.solve(weights)
    tight = _dense(solution.tight_rows)
    support = np.isin(solution.tight, dual.keys)
    bounds = solution.bound_rows
    if len(bounds):
        # A bound with a multiplier stays active, which leaves y only the directions along it.
        left = solution.inner_moments - tight[support].T @ dual.values
        push = nnls(bounds.T, left)[0]
        pushed = push > tolerances.DUAL * float(np.abs(solution.inner_moments).max())
        free, idle = null_space(bounds[pushed]), bounds[~pushed]
    else:
        free, idle = np.eye(tight.shape[1]), bounds
    seen = tight[support] @ free
    inverse = np.linalg.pinv(seen.T, rcond=_SINGULAR)
    level = free @ np.linalg.lstsq(seen, dual.values, rcond=_SINGULAR)[0]
    others = np.concatenate([tight[~support] @ level, idle @ level])
    edge = _THIN * float(np.max(dual.values, initial=0.0))
    full = np.linalg.matrix_rank(seen, tol=_SINGULAR * np.linalg.norm(seen)) == free.shape[1]
    thick = float(np.min(dual.values, initial=np.inf)) > edge
    inner = inverse @ free.T
    transform = duals.program.coordinates.transform
    matrix = inner if transform is None else inner @ transform.T
    features = duals.rows.features(slice(None))
    slope, states, exact = _half_diameter(_dense(features @ matrix.T))
    interior = bool(full and thick and (others < -edge).all())
    return LocalJacobian(dual.keys, np.asarray(matrix), slope, states, interior, exact)


def sampled_dual_lipschitz(model: TabularModel, basis: Basis, n: int, seed: int) -> float:
    """Return a lower bound on L_d: the largest ratio seen on `n` random weights.

    Each of the weights is compared with the ones before, with nearby ones that differ by the mass
    of the two states that the local Jacobian names, and with nearby ones in a random direction.
    Sampling misses thin pieces, so L_d may be a good deal larger.
    """
    duals = _Duals(_bound_rows(model, basis))
    rng = np.random.default_rng(checks.count(seed, "seed", least=0))
    largest, before = 0.0, None
    for _ in range(checks.count(n, "n")):
        weights = _random_weights(rng, model.n_states)
        found = duals(weights)
        for other in [*_neighbours(duals, weights, rng), *([] if before is None else [before])]:
            distance = float(np.abs(other - weights).sum())
            if distance > 0.0:
                ratio = float(np.abs(duals(other) - found).sum()) / distance
                largest = max(largest, ratio)
        before = weights
    return largest


def _random_weights(rng: np.random.Generator, n_states: int) -> FloatArray:
    """Return random weights: even, uneven, or with little mass but on a few states."""
    concentration = 10.0 ** rng.uniform(-1.5, 0.5)
    weights = rng.dirichlet(np.full(n_states, concentration))
    return np.asarray(0.999 * weights + 0.001 * rng.dirichlet(np.ones(n_states)))


def _neighbours(
    duals: _Duals, weights: FloatArray, rng: np.random.Generator
) -> Iterator[FloatArray]:
    first, second = _jacobian(duals, weights).states
    random = rng.choice(len(weights), size=2) if len(weights) > 1 else np.zeros(2, dtype=np.int64)
    for giver, taker in ((first, second), (second, first), tuple(random)):
        for length in _NEARBY:
            moved = min(length, float(weights[giver]))
            other = weights.copy()
            other[giver] -= moved
            other[taker] += moved
            yield other


def sampled_policy_lipschitz(
    rule: Callable[[Support], Policy], model: TabularModel, basis: Basis, n: int, seed: int
) -> float:
    """Return a lower bound on L_U: how fast a policy rule is seen to change with the dual.

    The largest ||U(dual)(. | x) - U(dual')(. | x)||_1 / ||dual_x - dual'_x||_1 over states x and
    over pairs of duals between `n` random minimum-norm duals, near and far apart. A proof needs an
    upper bound; this refutes one that is too small. Infinite when the policy of a state changes
    though its own duals do not.
    """
    duals = _Duals(_bound_rows(model, basis))
    rng = np.random.default_rng(checks.count(seed, "seed", least=0))
    largest = 0.0
    for _ in range(checks.count(n, "n")):
        ends = [duals(_random_weights(rng, model.n_states)) for _ in range(2)]
        for share in (1.0, 1e-2, 1e-4):
            # Mixtures of feasible duals are feasible, for the mixed weights.
            near = (1.0 - share) * ends[0] + share * ends[1]
            largest = max(largest, _rule_ratio(rule, model, ends[0], near))
    return largest


def _rule_ratio(
    rule: Callable[[Support], Policy], model: TabularModel, first: FloatArray, second: FloatArray
) -> float:
    starts = model.pair_start[:-1]
    chances = [checked_probabilities(model, rule(_support(model, d))) for d in (first, second)]
    change = np.add.reduceat(np.abs(chances[0] - chances[1]), starts)
    moved = np.add.reduceat(np.abs(first - second), starts)
    # Differences of the size of rounding have no ratio.
    still = moved <= tolerances.ROUNDING / (1.0 - model.discount)
    if (change[still] > tolerances.PROBABILITY).any():
        return math.inf
    clear = ~still & (change > tolerances.TIE)
    return float(np.max(change[clear] / moved[clear], initial=0.0))


def _support(model: TabularModel, dual: FloatArray) -> Support:
    used = np.flatnonzero(dual > 0.0)
    return Support(model.pair_state[used], model.pair_action[used], dual[used])


def _bound_rows(model: Any, basis: Any) -> TabularRows:
    if not isinstance(model, TabularModel):
        raise ModelError(
            f"model is {type(model).__name__}, expected a TabularModel: the Lipschitz constant of "
            "the dual is known only where states can be enumerated"
        )
    if not isinstance(basis, Basis):
        raise ArgumentError(f"basis is {basis!r}, expected a basis such as Polynomial(3)")
    return AllRows().on(model, basis)


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
