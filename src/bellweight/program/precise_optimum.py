"""The optimum of the linear program, found with twice the digits (`simplex`).

Much slower than the solver, so it is sought where the solver's answer fails the audit, and begins
at the rows where the solver stopped.
"""

from __future__ import annotations

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import Doubled, dot, doubled, product, subtract
from bellweight.common.status import SolverError, Status
from bellweight.program.auditing import Auditor, placed
from bellweight.program.row_source import RowSource
from bellweight.program.simplex import Vertex, VertexSearch
from bellweight.program.solution import OptimalFace


def precise_moments(rows: RowSource, moments: FloatArray, weights: FloatArray | None) -> Doubled:
    """Return the moments (K,) of weights to twice the digits, where the weights are known."""
    exact = None if weights is None else rows.exact_moments(weights)
    if exact is None:
        return doubled(moments)
    rounding = tolerances.SAME_MOMENTS_LEAST * np.abs(exact.high).max()
    same = np.allclose(exact.high, moments, rtol=tolerances.SAME_MOMENTS, atol=rounding)
    return exact if same else doubled(moments)


def cannot_be_unbounded(rows: RowSource, weights: FloatArray | None) -> bool:
    """Return whether the program of some weights (S,) is bounded, whatever a solver finds.

    With all states listed, the occupancy of any policy from the weights on is a dual.
    """
    return weights is not None and rows.is_complete and bool(weights.min() >= 0.0)


def precise_vertex(
    search: VertexSearch,
    moments: Doubled,
    starts: list[tuple[IntArray, IntArray]],
    *,
    is_bounded: bool,
) -> Vertex:
    """Return the optimal vertex from the first pool and basis that lead to it.

    `is_bounded` says that the program is known to be bounded, whatever a search finds.
    """
    lost = {Status.FAILED, Status.UNBOUNDED} if is_bounded else {Status.FAILED}
    problem: SolverError | None = None
    for pool, basic in starts:
        try:
            return search.run(moments, pool, basic)
        except SolverError as failure:
            if failure.status not in lost:
                raise
            problem = failure
    assert problem is not None
    raise SolverError(Status.FAILED, problem.detail) from problem


def face_of(vertex: Vertex, auditor: Auditor, moments: FloatArray, exact: Doubled) -> OptimalFace:
    """Return what a vertex says, audited; coordinates are the rows of its basis.

    `exact` are the moments (K,) to twice the digits.
    """
    rows, coef = auditor.rows, vertex.coef
    bounds, bound_cost = auditor.bounds, auditor.bound_cost
    found = auditor.scan(moments, coef.high)
    keys = np.union1d(found.near, vertex.rows)
    shares, cost = vertex.shares(rows.exact_rows(keys)), rows.rows(keys)[1]
    slack = subtract(doubled(cost), product(rows.exact_rows(keys), coef)).high
    basic_cost = np.zeros(len(vertex.inner))
    basic_cost[vertex.is_row] = rows.rows(vertex.rows)[1]
    basic_cost[~vertex.is_row & ~vertex.is_unit] = bound_cost[vertex.bounds]
    size = np.abs(cost) + np.abs(shares) @ np.abs(basic_cost)
    size += tolerances.ROUNDING * auditor.cost_unit
    terms = np.asarray(abs(rows.rows(keys)[0]) @ np.abs(coef.high))
    rounding = tolerances.TIGHT * size + tolerances.DOUBLED_ROUNDING * terms
    is_tight = (slack <= rounding) | np.isin(keys, vertex.rows)
    tight = keys[is_tight]
    dual = placed(tight, vertex.rows, vertex.dual)
    at_bound = np.zeros(len(bound_cost))
    at_bound[vertex.bounds] = vertex.push
    # An equation whose terms are far below the others' carries the rounding error of multipliers.
    share = tolerances.DOUBLED_ROUNDING / tolerances.OPTIMALITY
    largest = np.abs(rows.exact_rows(tight).high).max(axis=0, initial=0.0)
    noise = share * float(dual.sum()) * largest
    bound_size = np.abs(bound_cost) + np.abs(bounds) @ np.abs(coef.high)
    active = np.flatnonzero(bound_cost - bounds @ coef.high <= tolerances.TIGHT * bound_size)
    unique = np.isin(tight, vertex.rows).all() and np.isin(active, vertex.bounds).all()
    return OptimalFace(
        coef=coef.high,
        objective=dot(exact, coef),
        moments=moments,
        tight=tight,
        tight_rows=shares[is_tight],
        tight_cost=cost[is_tight],
        bound_rows=vertex.shares(doubled(bounds[active])),
        bound_cost=bound_cost[active],
        inner_moments=vertex.inner,
        moment_terms=np.abs(vertex.inner),
        dual=dual,
        unique=bool(unique),
        columns=vertex.columns,
        audit=auditor.audit(exact, coef, tight, dual, at_bound, found, vertex.columns, noise),
        passes=vertex.passes,
        rounds=vertex.steps,
        n_rows=len(vertex.pool),
        cost_unit=auditor.cost_unit,
        proven=found.proven,
    )
