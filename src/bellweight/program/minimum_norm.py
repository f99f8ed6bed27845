"""The minimum-norm optimal dual (eq. min_norm_dual).

For any optimal coefficients, every optimal dual lives on the rows that are tight there. The paper's
quadratic program over all rows is therefore a small one over the tight rows B:

    min 1/2 ||lambda||^2   s.t.   B' lambda + G' w = moments,   lambda, w >= 0,

where G holds the coefficient bounds that are active; their multipliers w turn equations into
inequalities and are not part of the norm. When the tight rows are independent, the optimal dual is
unique. Otherwise Clarabel finds the support and the optimality conditions on that support, lambda =
B y with G y = 0, are solved to full precision. Where that does not succeed, and no bounds are
active, an active-set method with twice the digits begins at the dual at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
import scipy
from scipy import sparse
from scipy.linalg import null_space

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, IntArray
from bellweight.common.status import SolverError, Status
from bellweight.program.active_set import shortest_dual
from bellweight.program.precise_optimum import precise_moments
from bellweight.program.row_source import RowSource
from bellweight.program.simplex import is_affordable
from bellweight.program.solution import OptimalFace

_MAX_POLISHED = 1_500  # basis functions up to which the conditions are solved densely
_POLISH_STEPS = 30
_FIRM = 1e-5  # relative size below which an equation may be made of rounding errors
_MOST_PRECISE_ROWS = 500  # tight rows up to which twice the digits are tried


@dataclass(frozen=True, eq=False)
class MinimumNormDual:
    """The dual on its support: row `keys`, positive `values`, and how exactly it is optimal.

    `residual` is the largest relative error of its equations and of its objective; or, where that
    is smaller, the change of values that would mend the equations, relative to the largest value.
    """

    keys: IntArray
    values: FloatArray
    residual: float


def minimum_norm_dual(
    face: OptimalFace,
    rows: RowSource,
    weights: FloatArray | None = None,
    until: float | None = None,
) -> MinimumNormDual:
    """Return the optimal dual of smallest Euclidean norm.

    `rows` are those of the program, and `weights` (S,) stand behind the moments where known.
    `until` is when a search with twice the digits gives up.
    """
    carried = abs(face.tight_rows).T @ face.dual
    if carried.max() <= tolerances.ROUNDING * np.abs(face.inner_moments).max():
        # Coefficient bounds carry all the moments: a dual of norm zero is the smallest there is.
        values = np.zeros(len(face.dual))
    else:
        values = face.dual if face.unique else _shortest(face, rows, weights, until)
    used = values > 0.0
    return MinimumNormDual(face.tight[used], values[used], _residual(face, values))


def _shortest(
    face: OptimalFace, rows: RowSource, weights: FloatArray | None, until: float | None
) -> FloatArray:
    """Return the shortest dual (t,), with twice the digits where plain ones leave doubt."""
    found, is_settled = _quadratic(face)
    terms = face.tight_cost * found
    gap = abs(float(terms.sum()) - face.objective)
    is_settled &= gap <= tolerances.OPTIMALITY * float(np.abs(terms).sum())
    is_settled &= _residual(face, found) <= tolerances.DUAL  # small equations count, too
    is_small = len(found) <= _MOST_PRECISE_ROWS and is_affordable(len(face.columns))
    if is_settled or not is_small or len(face.bound_rows):
        return found
    try:
        moments = precise_moments(rows, face.moments, weights)
        basic = face.tight[face.dual > 0.0]
        return shortest_dual(rows, face.columns, moments, face.tight, basic, until)
    except SolverError:
        return found


def _quadratic(face: OptimalFace) -> tuple[FloatArray, bool]:
    """Return the shortest dual (t,), and whether its optimality conditions hold."""
    rows = sparse.csr_array(face.tight_rows)
    bounds = sparse.csr_array(face.bound_rows)
    scale = float(face.dual.sum())
    moments = face.inner_moments / scale
    if rows.shape[1] > _MAX_POLISHED:
        return np.maximum(_clarabel(rows, bounds, moments)[: rows.shape[0]], 0.0) * scale, False
    own, others, right, weakest = _independent(
        rows.toarray(), bounds.toarray(), moments, face.dual / scale
    )
    guess = _clarabel(sparse.csr_array(own), sparse.csr_array(others), right)
    polished = _polish(own, others, right, guess)
    if polished is None:
        return np.maximum(guess[: rows.shape[0]], 0.0) * scale, False
    return polished * scale, weakest > _FIRM


def _independent(
    rows: FloatArray, bounds: FloatArray, moments: FloatArray, dual: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return the equations as orthonormal ones that the dual at hand solves exactly.

    The last answer is the size of the weakest of them before, relative to the strongest.

    Tight rows are often fewer than basis functions or nearly dependent; equations that contradict
    each other by a rounding error would be infeasible.
    """
    push = scipy.optimize.nnls(bounds.T, moments - rows.T @ dual)[0] if len(bounds) else np.zeros(0)
    stacked = np.vstack([rows, bounds])
    left, size, _ = np.linalg.svd(stacked, full_matrices=False)
    kept = size > tolerances.RANK * size[0]
    basis = left[:, kept]
    weakest = float(size[kept].min() / size[0])
    return basis[: len(rows)], basis[len(rows) :], basis.T @ np.append(dual, push), weakest


def _clarabel(rows: sparse.csr_array, bounds: sparse.csr_array, moments: FloatArray) -> FloatArray:
    n_rows, n_bounds = rows.shape[0], bounds.shape[0]
    n = n_rows + n_bounds
    quadratic = sparse.diags(np.r_[np.ones(n_rows), np.zeros(n_bounds)], format="csc")
    equations = sparse.vstack([rows, bounds]).T
    constraints = sparse.vstack([equations, -sparse.identity(n)], format="csc")
    right = np.r_[moments, np.zeros(n)]
    cones = [clarabel.ZeroConeT(len(moments)), clarabel.NonnegativeConeT(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerances.QUADRATIC
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(quadratic),
        np.zeros(n),
        sparse.csc_matrix(constraints),
        right,
        cones,
        settings,
    )
    answer = solver.solve()
    found = np.array(answer.x)
    if not np.isfinite(found).all() or str(answer.status) in ("PrimalInfeasible", "DualInfeasible"):
        raise SolverError(Status.FAILED, f"the minimum-norm program ended as {answer.status}")
    return found


def _polish(
    rows: FloatArray, bounds: FloatArray, moments: FloatArray, guess: FloatArray
) -> FloatArray | None:
    """Solve the optimality conditions on the guessed support, correcting the support as needed."""
    n_rows = len(rows)
    first = guess[:n_rows] > tolerances.QUADRATIC_SUPPORT * np.max(guess[:n_rows])
    first_pushed = guess[n_rows:] > tolerances.QUADRATIC_SUPPORT * max(
        float(np.max(guess[n_rows:], initial=0.0)), 1e-300
    )
    support, pushed = first, first_pushed
    for _ in range(_POLISH_STEPS):
        level, push = _conditions(rows[support], bounds[pushed], moments)
        wanted = rows @ level
        edge = tolerances.QUADRATIC * float(np.abs(wanted).max())
        next_support = wanted > edge
        next_pushed = pushed.copy()
        next_pushed[pushed] = push >= 0.0
        next_pushed |= bounds @ level > edge
        if np.array_equal(next_support, support) and np.array_equal(next_pushed, pushed):
            return _accepted(rows, bounds, moments, support, pushed)
        support, pushed = next_support, next_pushed
    # Where the support does not determine y, corrections may cycle. The best point on the guessed
    # support is then the optimum, if it is feasible and no longer than the guess.
    values = _accepted(rows, bounds, moments, first, first_pushed)
    length = float(np.linalg.norm(guess[:n_rows]))
    longer = values is not None and np.linalg.norm(values) > (1.0 + tolerances.CONDITIONS) * length
    return None if longer else values


def _accepted(
    rows: FloatArray,
    bounds: FloatArray,
    moments: FloatArray,
    support: BoolArray,
    pushed: BoolArray,
) -> FloatArray | None:
    """Return the shortest solution on the support if it is feasible."""
    level, push = _conditions(rows[support], bounds[pushed], moments)
    values = np.zeros(len(rows))
    values[support] = rows[support] @ level
    error = rows.T @ values + bounds[pushed].T @ push - moments
    feasible = values.min() >= 0.0 and push.min(initial=0.0) >= 0.0
    allowed = tolerances.CONDITIONS * np.abs(moments).max()
    return values if feasible and np.abs(error).max() <= allowed else None


def _conditions(
    rows: FloatArray, bounds: FloatArray, moments: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return y and w with rows' (rows y) + bounds' w = moments and bounds y = 0."""
    free = null_space(bounds) if len(bounds) else np.eye(rows.shape[1])
    seen = rows @ free
    # The least-squares solver returns the solution of smallest norm, which is the one wanted.
    values = np.linalg.lstsq(seen.T, free.T @ moments, rcond=tolerances.ROUNDING)[0]
    level = free @ np.linalg.lstsq(seen, values, rcond=tolerances.ROUNDING)[0]
    push = np.linalg.lstsq(bounds.T, moments - rows.T @ values, rcond=None)[0]
    return level, push


def _residual(face: OptimalFace, values: FloatArray) -> float:
    """Return the largest relative error of the equations and of the dual objective.

    Active bounds may take up, with non-negative multipliers, what the rows leave.
    """
    error = face.tight_rows.T @ values - face.inner_moments
    terms = face.tight_cost * values
    if face.bound_rows.shape[0]:
        push, _ = scipy.optimize.nnls(face.bound_rows.T, -error)
        error = error + face.bound_rows.T @ push
        terms = np.append(terms, face.bound_cost * push)
    size = abs(face.tight_rows).T @ values + np.abs(face.inner_moments)
    # An equation whose terms are nearly zero still carries the rounding error of the others and
    # that of its right-hand side.
    share = tolerances.ROUNDING / tolerances.OPTIMALITY
    size = size + share * (float(size.max()) + face.moment_terms)
    gap = abs(float(terms.sum()) - face.objective)
    scale = max(abs(face.objective), float(np.abs(terms).sum()), np.finfo(float).tiny)
    # An objective near zero carries the rounding error of values made of typical costs.
    scale += share * face.cost_unit * float(values.sum())
    off = float(np.max(np.abs(error) / size))
    if off > tolerances.DUAL and not sparse.issparse(face.tight_rows):
        # An equation may be made of terms far below the largest: what counts is the dual itself.
        mended = np.linalg.lstsq(face.tight_rows.T, error, rcond=None)[0]
        off = min(off, float(np.abs(mended).max()) / max(float(values.max()), 1e-300))
    return max(off, gap / scale)
