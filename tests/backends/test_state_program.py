"""One function for each state of a table: exact answers against the solver's, and many states."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import bellweight as bw
from bellweight.backends.state_program import StateProgram
from bellweight.program import AlpProgram, Solution, TabularRows


def over_pairs(model: bw.TabularModel, found: Solution) -> np.ndarray:
    dual = np.zeros(model.n_pairs)
    dual[found.keys] = found.dual
    return dual


@given(model=strategies.models(), data=st.data())
def test_the_answer_is_that_of_the_solver(model: bw.TabularModel, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(model.n_states)))
    weights = data.draw(strategies.weights_for(model))
    rows = TabularRows(model, bw.Indicator(groups=order))
    moments = rows.moments(weights)
    ours, theirs = StateProgram(rows).solve(moments), AlpProgram(rows, weights).solve(moments)
    size = max(1.0, np.abs(ours.coef).max())
    assert ours.audit.passed
    assert abs(ours.objective - theirs.objective) <= 1e-9 * size
    np.testing.assert_allclose(ours.coef[order], bw.exact.optimal(model).values, atol=1e-9 * size)
    mine, other = over_pairs(model, ours), over_pairs(model, theirs)
    assert np.linalg.norm(mine) <= np.linalg.norm(other) * (1.0 + 1e-9)
    if theirs.dual_residual <= 1e-9:
        np.testing.assert_allclose(mine, other, atol=1e-6 * other.max())


def grid(side: int) -> bw.TabularModel:
    """Return a square on which two actions lead down or left: both tie along the diagonal."""
    x, y = np.divmod(np.arange(side * side), side)
    after = np.stack([np.maximum(x - 1, 0) * side + y, x * side + np.maximum(y - 1, 0)], axis=1)
    n, away = side * side, np.minimum(x + 1, side - 1) * side + np.minimum(y + 1, side - 1)
    columns = np.stack([after.ravel(), np.repeat(away, 2)], axis=1)
    chances = np.tile([0.7, 0.3], (2 * n, 1))
    entries = chances.ravel(), columns.ravel(), np.arange(0, 4 * n + 1, 2)
    transition = sparse.csr_array(entries, shape=(2 * n, n))
    transition.sum_duplicates()
    cost = np.repeat(1.0 + np.abs(x - y), 2)
    return bw.TabularModel.from_pairs(
        cost, transition, np.repeat(np.arange(n), 2), np.tile([0, 1], n), 0.9, np.full(n, 1 / n)
    )


def test_ties_share_the_visits_of_a_state() -> None:
    model = grid(12)
    rows = TabularRows(model, bw.Indicator())
    weights = model.initial
    ours, theirs = StateProgram(rows).solve(weights), AlpProgram(rows).solve(weights)
    mine = over_pairs(model, ours)
    assert np.count_nonzero(mine) > model.n_states
    np.testing.assert_allclose(mine, over_pairs(model, theirs), atol=1e-8)


def test_fifty_thousand_states_are_solved_and_proven() -> None:
    queue = bw.problems.single_queue()
    assert queue.n_states == 50_000
    result = bw.solve(queue, bw.Indicator(), bw.DIA(), judge=False)
    assert result.status is bw.Status.CONVERGED
    best = bw.exact.optimal(queue)
    np.testing.assert_allclose(result.coef, best.values, rtol=1e-12)
    certificate = bw.certify(queue, result)
    assert certificate.kind == "exact"
    assert certificate.bound is not None
    assert certificate.bound <= 1e-6 * certificate.cost
    assert bw.verify(queue, certificate).passed


def test_bounds_and_groups_are_left_to_the_solver() -> None:
    queue = bw.problems.single_queue(capacity=2_500)
    assert StateProgram.fits(TabularRows(queue, bw.Indicator()))
    assert not StateProgram.fits(TabularRows(queue, bw.Indicator(upper=1e6)))
    groups = np.arange(queue.n_states) // 2
    assert not StateProgram.fits(TabularRows(queue, bw.Indicator(groups=groups)))


def test_too_many_functions_for_a_solver_are_refused_with_a_remedy() -> None:
    queue = bw.problems.single_queue()
    with pytest.raises(bw.BellweightError, match="groups"):
        bw.solve(queue, bw.Indicator(upper=1e9), bw.Fixed("uniform"))
