"""Models and bases: what is built is what was asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import bellweight as bw


@given(model=strategies.models())
def test_arrays_and_pairs_build_the_same_model(model: bw.TabularModel) -> None:
    shape = (model.n_states, model.n_actions)
    cost, allowed = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    dense = np.full((model.n_actions, model.n_states, model.n_states), 1.0 / model.n_states)
    cost[model.pair_state, model.pair_action] = model.cost
    allowed[model.pair_state, model.pair_action] = True
    dense[model.pair_action, model.pair_state] = model.transition.toarray()
    for transition in (dense, [sparse.csc_matrix(matrix) for matrix in dense]):
        built = bw.TabularModel.from_arrays(
            cost, transition, model.discount, model.initial, admissible=allowed
        )
        assert built.digest == model.digest


@given(model=strategies.models())
def test_pair_offsets_list_the_pairs_of_each_state(model: bw.TabularModel) -> None:
    for x in range(model.n_states):
        pairs = np.flatnonzero(model.pair_state == x)
        assert pairs.tolist() == list(range(model.pair_start[x], model.pair_start[x + 1]))
        assert model.admissible_actions(x).tolist() == model.pair_action[pairs].tolist()


def test_transitions_stay_sparse() -> None:
    n = 20_000
    model = bw.TabularModel.from_pairs(
        np.ones(n), sparse.eye_array(n, k=0, format="coo"), np.arange(n), np.zeros(n, dtype=int),
        0.9, np.full(n, 1.0 / n),
    )  # fmt: skip
    assert sparse.issparse(model.transition)
    assert model.transition.nnz == n


def test_rewards_are_negated_at_the_border(two_states: bw.TabularModel) -> None:
    reward = bw.TabularModel.from_pairs(
        -two_states.cost, two_states.transition, two_states.pair_state, two_states.pair_action,
        two_states.discount, two_states.initial, sense="max",
    )  # fmt: skip
    assert np.array_equal(reward.cost, two_states.cost)
    assert reward.sense == "max"
    assert reward.digest == two_states.digest


def test_the_digest_tells_models_apart(two_states: bw.TabularModel) -> None:
    def variant(**change: Any) -> bw.TabularModel:
        fields = {
            "cost": two_states.cost, "transition": two_states.transition,
            "pair_state": two_states.pair_state, "pair_action": two_states.pair_action,
            "discount": two_states.discount, "initial": two_states.initial,
        }  # fmt: skip
        return bw.TabularModel.from_pairs(**{**fields, **change})

    assert variant(name="other", state_labels=["x", "y"]).digest == two_states.digest
    different = [
        variant(cost=two_states.cost + 1.0),
        variant(discount=0.6),
        variant(initial=[1.0, 0.0]),
        variant(pair_action=[0, 2, 0, 2]),
        variant(state_vectors=[5.0, 6.0]),
        variant(transition=two_states.transition[[1, 0, 2, 3]]),
    ]
    digests = {model.digest for model in different}
    assert len(digests) == len(different)
    assert two_states.digest not in digests


def test_single_queue_has_the_papers_dynamics() -> None:
    queue = bw.problems.single_queue(capacity=3, arrival=0.2, services=(0.0, 0.6), discount=0.9)
    dense = queue.transition.toarray()
    np.testing.assert_allclose(dense[0], [0.8, 0.2, 0.0, 0.0])
    np.testing.assert_allclose(dense[1], [0.8, 0.2, 0.0, 0.0])  # nothing departs from 0
    np.testing.assert_allclose(dense[3], [0.6, 0.2, 0.2, 0.0], atol=1e-15)
    np.testing.assert_allclose(dense[7], [0.0, 0.0, 0.6, 0.4])  # at capacity arrivals are lost
    np.testing.assert_allclose(queue.cost[[0, 1, 3, 7]], [0.0, 12.96, 13.96, 15.96])
    reverse = bw.problems.single_queue(capacity=3, initial="reverse", decay=0.5).initial
    np.testing.assert_allclose(reverse, np.array([1.0, 2.0, 4.0, 8.0]) / 15.0)
    empty = bw.problems.single_queue(capacity=3, initial="empty").initial
    assert empty.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_monomials_are_graded_lexicographic_with_the_constant_first() -> None:
    points = np.array([[2.0, 3.0, 5.0]])
    assert bw.Polynomial(2)(points)[0].tolist() == [1, 2, 3, 5, 4, 6, 10, 9, 15, 25]
    names = ("1", "x1", "x2", "x3", "x1^2", "x1 x2", "x1 x3", "x2^2", "x2 x3", "x3^2")
    assert bw.Polynomial(2).function_names(3) == names
    assert bw.Polynomial(3).function_names(1) == ("1", "x", "x^2", "x^3")
    assert bw.Affine().function_names(2) == ("1", "x1", "x2")
    assert np.array_equal(bw.Affine()(points), bw.Polynomial(1)(points))


@given(degree=st.integers(0, 5), dimension=st.integers(1, 4), seed=strategies.seeds)
def test_a_polynomial_is_complete(degree: int, dimension: int, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(3, dimension))
    exponents = [
        powers for powers in np.ndindex(*(degree + 1,) * dimension) if sum(powers) <= degree
    ]
    wanted = sorted(tuple(np.round(np.prod(points**p, axis=1), 9)) for p in exponents)
    found = bw.Polynomial(degree)(points)
    assert found.shape == (3, len(exponents))
    assert sorted(tuple(np.round(column, 9)) for column in found.T) == wanted


def test_indicators_are_sparse_and_know_their_states() -> None:
    model = bw.problems.single_queue(capacity=4)
    basis = bw.Indicator().on(model.states)
    assert sparse.issparse(basis(model.states))
    assert np.array_equal(basis(model.states).toarray(), np.eye(5))
    assert basis(model.states[[3, 1]]).toarray().tolist() == np.eye(5)[[3, 1]].tolist()
    groups = bw.Indicator([0, 1, 1, 0, 2]).on(model.states)
    assert groups(model.states).toarray().tolist() == np.eye(3)[[0, 1, 1, 0, 2]].tolist()
    assert groups.function_names(1) == ("group 0", "group 1", "group 2")
    with pytest.raises(
        bw.errors.BasisError, match=r"state \[9.0\] is not one of the model's states"
    ):
        basis(np.array([[9.0]]))
    with pytest.raises(bw.errors.BasisError, match=r"must know the states of its model: call on"):
        bw.Indicator()(model.states)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"groups has shape \(2,\) .*one whole number for each of the 5 states"),
        ([0.0, 1.0, 1.0, 0.0, 1.0], r"type float64, expected one whole number"),
        ([0, 2, 2, 0, 2], r"groups are numbered \[0, 2\]..., expected 0, 1, 2"),
    ],
)
def test_bad_groups_are_refused(groups: list, message: str) -> None:
    with pytest.raises(bw.errors.BasisError, match=message):
        bw.solve(bw.problems.single_queue(capacity=4), bw.Indicator(groups), bw.Fixed())


def test_states_that_look_the_same_must_share_a_group() -> None:
    model = bw.TabularModel.from_arrays(
        [[1.0], [2.0], [3.0]], [np.eye(3)], 0.5, [1.0, 0.0, 0.0], state_vectors=[0.0, 0.0, 1.0]
    )
    with pytest.raises(bw.errors.BasisError, match=r"3 states have only 2 distinct vectors"):
        bw.solve(model, bw.Indicator(), bw.Fixed())
    with pytest.raises(
        bw.errors.BasisError, match=r"states 0 and 1 have the same vector .*one group"
    ):
        bw.solve(model, bw.Indicator([0, 1, 1]), bw.Fixed())
    assert bw.solve(model, bw.Indicator([0, 0, 1]), bw.Fixed()).coef[0] == pytest.approx(2.0)


def test_the_constant_need_not_be_a_column(small_queue: bw.TabularModel) -> None:
    tilted = bw.Custom(lambda s: np.hstack([2.0 + s, 3.0 - s, s**2]))
    plain = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed())
    found = bw.solve(small_queue, tilted, bw.Fixed())
    assert found.objective == pytest.approx(plain.objective, rel=1e-10)


def test_a_basis_without_a_constant_is_refused(small_queue: bw.TabularModel) -> None:
    message = r"constant function is not in the span of the basis.*add a column of ones"
    for fn in (lambda s: s, lambda s: np.hstack([s, s**2]), sparse.csr_array):
        with pytest.raises(bw.errors.BasisError, match=message):
            bw.solve(small_queue, bw.Custom(fn), bw.Fixed())


def test_dependent_columns_are_dropped_from_the_right_and_reported(
    small_queue: bw.TabularModel,
) -> None:
    def doubled(states: np.ndarray) -> np.ndarray:
        return np.hstack([np.ones_like(states), states, 1.0 + states, states**2, 5.0 * states**2])

    names = ["one", "x", "x plus one", "x squared", "five x squared"]
    with pytest.warns(
        bw.errors.BellweightWarning, match=r"2 of 5 basis functions depend on earlier"
    ):
        result = bw.solve(small_queue, bw.Custom(doubled, names), bw.Fixed())
    plain = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed())
    assert result.coef[[2, 4]].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(result.coef[[0, 1, 3]], plain.coef, rtol=1e-8)
    assert "x plus one, five x squared" in result.warnings[0]
    assert result.warnings[0] in " ".join(str(result).split())


def test_bounds_on_dropped_columns_must_allow_zero(small_queue: bw.TabularModel) -> None:
    def twice(states: np.ndarray) -> np.ndarray:
        return np.hstack([np.ones_like(states), states, 2.0 * states])

    # Dropping "2 x" while x is bounded would change the optimum, so it is refused.
    with pytest.raises(
        bw.errors.BasisError, match=r"function 2 .* depends on function 1 .* has bounds"
    ):
        bw.solve(small_queue, bw.Custom(twice, upper=4.0), bw.Fixed())
    basis = bw.Custom(twice, ["one", "x", "double"], lower=[-np.inf, -np.inf, 1.0])
    with pytest.raises(
        bw.errors.BasisError,
        match=r"function 2 \(double\) depends .*\[1, inf\]: drop the function or",
    ):
        bw.solve(small_queue, basis, bw.Fixed())


def test_a_sparse_basis_of_the_users_equals_its_dense_form(small_queue: bw.TabularModel) -> None:
    def hats(states: np.ndarray) -> np.ndarray:
        knots = np.array([0.0, 10.0, 20.0, 30.0])
        bumps = np.maximum(0.0, 1.0 - np.abs(states - knots) / 10.0)
        return np.hstack([np.ones_like(states), bumps[:, 1:]])

    dense = bw.solve(small_queue, bw.Custom(hats), bw.Fixed())
    loose = bw.solve(small_queue, bw.Custom(lambda s: sparse.csr_array(hats(s))), bw.Fixed())
    np.testing.assert_allclose(loose.coef, dense.coef, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": [0.0, 1.0]}, r"lower bound has shape \(2,\), expected \(3,\)"),
        ({"upper": float("nan")}, r"upper bound is NaN, expected a number"),
        ({"upper": "high"}, r"upper bound is not an array of numbers"),
        ({"lower": 2.0, "upper": 1.0}, r"lower bound 2.0 of coefficient 0 exceeds its upper 1.0"),
    ],
)
def test_bad_bounds_are_refused(options: dict, message: str, small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.BasisError, match=message):
        bw.solve(small_queue, bw.Polynomial(2, **options), bw.Fixed())


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (3, r"fn is 3, expected a function of states"),
        (lambda s: s[:, 0], r"has shape \(1,\), expected \(any, any\)"),
        (lambda s: np.ones((7, 1)), r"returned shape \(7, 1\) for 1 states, expected \(1, K\)"),
        (lambda s: sparse.csr_array(np.ones((7, 1))), r"returned shape \(7, 1\) for 1 states"),
        (lambda s: [["a"]] * len(s), r"is not an array of numbers"),
        (lambda s: np.where(s == 4, np.nan, 1.0), r"function 0 is not finite at state \[4.0\]"),
    ],
)
def test_bad_custom_bases_are_refused(fn: Any, message: str, small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.BasisError, match=message):
        bw.solve(small_queue, bw.Custom(fn), bw.Fixed())


def test_names_of_a_custom_basis_must_fit(small_queue: bw.TabularModel) -> None:
    basis = bw.Custom(np.ones_like, ["one", "two"])
    with pytest.raises(
        bw.errors.BasisError, match=r"2 names for 1 functions: give one name for each"
    ):
        bw.solve(small_queue, basis, bw.Fixed())


def test_a_custom_basis_sees_state_indices_or_vectors(two_states: bw.TabularModel) -> None:
    seen: list[np.ndarray] = []

    def record(states: np.ndarray) -> np.ndarray:
        seen.append(states.copy())
        return np.ones((len(states), 1))

    bw.solve(two_states, bw.Custom(record), bw.Fixed())
    assert seen[-1].tolist() == [[0.0], [1.0]]
    flat = bw.TabularModel.from_arrays(
        [[0.0], [1.0]], [np.eye(2)], 0.5, [1.0, 0.0], state_vectors=[[7.0, 8.0], [9.0, 1.0]]
    )
    bw.solve(flat, bw.Custom(record), bw.Fixed())
    assert seen[-1].tolist() == [[7.0, 8.0], [9.0, 1.0]]


@given(model=strategies.models(max_states=8), data=st.data())
def test_streaming_in_small_blocks_changes_nothing(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    basis = data.draw(strategies.bases_for(model))
    weights = data.draw(strategies.weights_for(model))
    plain = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bellweight.program.listed_rows._BLOCK_PAIRS", 3)
        patch.setattr("bellweight.program.features._BLOCK_STATES", 2)
        patch.setattr("bellweight.program.listed_rows._CACHED_ENTRIES", 0)
        patch.setattr("bellweight.program.listed_rows._WHOLE_PAIRS", 0)
        streamed = bw.solve(model, basis, bw.Fixed(weights), judge=False)
    scale = reference.cost_scale(model)
    assert streamed.status is plain.status is bw.Status.CONVERGED
    assert abs(streamed.objective - plain.objective) <= 1e-10 * scale
    mass = 1.0 / (1.0 - model.discount)
    np.testing.assert_allclose(streamed.dual, plain.dual, rtol=0.0, atol=1e-6 * mass)
