"""Contraction of the weight iteration: the Lipschitz constant of the dual, and certified settings.

The minimum-norm dual is piecewise linear in the weights. Its constant L_d is proven by enumerating
the pieces of a small program (`dual_pieces.py`), bounded from below by sampling on any other, and
the slope of the piece at given weights is the local Jacobian.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import nnls

from bellweight.analysis.dual_pieces import Enumeration, Piece, half_diameter
from bellweight.backends import listed
from bellweight.basis import Basis
from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray, IntArray, dense
from bellweight.common.status import ArgumentError, ModelError
from bellweight.models import TabularModel
from bellweight.policies import Policy, Support, checked_probabilities
from bellweight.program import (
    AllRows,
    AlpProgram,
    MinimumNormDual,
    OptimalFace,
    TabularRows,
    minimum_norm_dual,
)
from bellweight.weights.lipschitz import (
    CertifiedSettings,
    certified_settings,
    contracts,
    softmax_lipschitz,
)

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
_NEARBY = (1e-2, 1e-4)  # lengths of the steps between nearby weights


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
    return Enumeration(rows, limit).steepest()


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

    def solve(self, weights: FloatArray) -> tuple[OptimalFace, MinimumNormDual]:
        face = self.program.optimum(self.rows.moments(weights), weights)
        return face, minimum_norm_dual(face, self.rows, weights)

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Return the dual (N,) over all pairs."""
        _, dual = self.solve(weights)
        every = np.zeros(self.rows.n_pairs)
        every[dual.keys] = dual.values
        return every


def _jacobian(duals: _Duals, weights: FloatArray) -> LocalJacobian:
    face, dual = duals.solve(weights)
    tight = dense(face.tight_rows)
    support = np.isin(face.tight, dual.keys)
    bounds = face.bound_rows
    if len(bounds):
        # A bound with a multiplier stays active, so y moves only along it.
        left = face.inner_moments - tight[support].T @ dual.values
        push = nnls(bounds.T, left)[0]
        pushed = push > tolerances.DUAL * float(np.abs(face.inner_moments).max())
        free, idle = null_space(bounds[pushed]), bounds[~pushed]
    else:
        free, idle = np.eye(tight.shape[1]), bounds
    seen = tight[support] @ free
    inverse = np.linalg.pinv(seen.T, rcond=tolerances.SINGULAR)
    level = free @ np.linalg.lstsq(seen, dual.values, rcond=tolerances.SINGULAR)[0]
    others = np.concatenate([tight[~support] @ level, idle @ level])
    edge = tolerances.THIN * float(np.max(dual.values, initial=0.0))
    full = (
        np.linalg.matrix_rank(seen, tol=tolerances.SINGULAR * np.linalg.norm(seen)) == free.shape[1]
    )
    thick = float(np.min(dual.values, initial=np.inf)) > edge
    inner = inverse @ free.T
    transform = duals.program.coordinates.transform
    matrix = inner if transform is None else inner @ transform.T
    features = duals.rows.features(slice(None))
    slope, states, exact = half_diameter(dense(features @ matrix.T))
    interior = bool(full and thick and (others < -edge).all())
    return LocalJacobian(dual.keys, np.asarray(matrix), slope, states, interior, exact)


def sampled_dual_lipschitz(model: TabularModel, basis: Basis, n: int, seed: int) -> float:
    """Return a lower bound on L_d: the largest ratio seen on `n` random weights.

    Each of the weights is compared with the ones before, with nearby ones that differ by the mass
    of the two states that the local Jacobian names, and with nearby ones in a random direction.
    Sampling misses thin pieces, so L_d may be much larger.
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
    """Return random weights: even, uneven, or concentrated on a few states."""
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
    upper bound on L_U; this number shows when a claimed bound is too small. Infinite when the
    policy of a state changes though its own duals do not.
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
    tabular = listed(
        model,
        f"model is {type(model).__name__}, expected a TabularModel: the Lipschitz constant of the "
        "dual is known only where states can be enumerated",
        ModelError,
    )
    if not isinstance(basis, Basis):
        raise ArgumentError(f"basis is {basis!r}, expected a basis such as Polynomial(3)")
    return AllRows().on(tabular, basis)
