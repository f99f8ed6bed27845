"""The pieces on which the minimum-norm dual is linear, enumerated for small programs.

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
`tolerances.THIN` of the total mass counts as having none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice, product

import numpy as np
from scipy.linalg import null_space

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray, dense
from bellweight.common.status import ArgumentError
from bellweight.program import IntegerProgram, TabularRows, conditioning

_CHUNK = 1 << 14
_PAIRWISE = 1 << 31  # operations up to which a diameter is computed pair by pair


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


class Enumeration:
    """All vertices of a small program and the pieces at each."""

    def __init__(self, rows: TabularRows, limit: int) -> None:
        self.model = rows.model
        features = dense(rows.features(slice(None)))
        every = np.arange(rows.n_pairs)
        matrix, self.cost = dense(rows.rows(every)[0]), rows.rows(every)[1]
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
                # A candidate that could be neither confirmed nor excluded still gives an upper
                # bound.
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
            feasible = good & (slack >= -tolerances.CLEARLY_SLACK).all(axis=1)
            patterns.update(
                row.tobytes() for row in (np.abs(slack[feasible]) <= tolerances.CLEARLY_SLACK)
            )
        found: dict[bytes, tuple[IntArray, bool]] = {}
        for pattern in patterns:
            near = np.flatnonzero(np.frombuffer(pattern, dtype=bool))
            # All near rows together place the vertex better than any K of them.
            slack = self._relative_slack(self._placed(near)[None, :])[0]
            together = np.flatnonzero(np.abs(slack) <= tolerances.CLEARLY_SLACK)
            if (slack >= -tolerances.CLEARLY_SLACK).all() and len(together) >= len(near):
                sure = bool((np.abs(slack[together]) <= tolerances.CLEARLY_TIGHT).all())
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
        unit = tolerances.ROUNDING / tolerances.CLEARLY_TIGHT * float(np.abs(self.cost).max())
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
        if size[-1] <= tolerances.SINGULAR * size[0]:
            return
        share = 1.0 - self.model.discount
        level = share * np.linalg.solve(triangle.T, self.features.T)
        inside = orthogonal @ level
        outside = self.rows[rest] @ np.linalg.solve(triangle, level)
        # No piece if a row of the first is nowhere positive, or one of the second nowhere negative.
        if (inside.max(axis=1) > tolerances.THIN).all() and (
            outside.min(axis=1) < -tolerances.THIN
        ).all():
            slope, states = half_diameter(inside.T)[:2]
            yield _Candidate(slope / share, states, support, inside, outside)

    def _bases(self, tight: IntArray) -> Iterator[_Candidate]:
        """Yield the nonsingular bases among rows of which some may not be tight.

        None at a vertex that is not optimal for weights of any size, whichever rows are tight.
        """
        share, found, optimal = 1.0 - self.model.discount, [], False
        for subset in chain.from_iterable(_subsets(len(tight), self.rank)):
            basis = self.rows[tight[subset]]
            size = np.linalg.svd(basis, compute_uv=False)
            if size[-1] > tolerances.SINGULAR * size[0]:
                inside = share * np.linalg.solve(basis.T, self.features.T)
                slope, states = half_diameter(inside.T)[:2]
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

    Weights of margin s at most `tolerances.THIN` are none; the proof does not rely on the solver.
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
    if answer.point is not None and answer.point[-1] > tolerances.THIN:
        return np.asarray(answer.point[:-1] / answer.point[:-1].sum()), False
    return None, -answer.bound <= tolerances.EXCLUDED


def _subsets(n: int, size: int) -> Iterator[IntArray]:
    """Yield all subsets of range(n) of a size, as arrays (m, size)."""
    every = combinations(range(n), size)
    while chunk := list(islice(every, _CHUNK)):
        yield np.array(chunk, dtype=np.int64).reshape(len(chunk), size)


def _solved(matrices: FloatArray, right: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Solve square systems (m, k, k); return the solutions (m, k) and which are nonsingular."""
    size = np.linalg.svd(matrices, compute_uv=False)
    good = size[:, -1] > tolerances.SINGULAR * size[:, 0]
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
        rays = directions[size[:, -1] > tolerances.SAME_DIRECTION, -1]
        sides = rays @ normals.T
        for ray, side in zip(rays, sides, strict=True):
            through = np.abs(side) <= tolerances.SAME_DIRECTION
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


def half_diameter(points: FloatArray) -> tuple[float, tuple[int, int], bool]:
    """Return half the largest 1-norm distance of points (n, s), the two, and whether it is exact.

    Pair by pair, or as the widest extent over the 2^(s - 1) sign vectors, whichever is less work;
    where both are too much, by moving to the farthest point while the distance grows: a lower
    bound.
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
