"""Pricing and column generation against enumeration, the compact dual and other solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_models import nonnegative, shop
from scipy import sparse
from scipy.optimize import LinearConstraint as Rows
from scipy.optimize import linprog, milp

import bellweight as bw
from bellweight.display import to_text
from bellweight.models.enumerate import all_pairs, all_states
from bellweight.program import AlpProgram, IntegerProgram, LinearRows
from bellweight.program.integer_program import is_network


def compact_dual(model: bw.LinearModel, moments: np.ndarray) -> tuple[float, np.ndarray]:
    """Solve the program in its compact dual form, for coefficients bounded below by zero.

    The total of lambda times states and actions is all that matters: about as many variables as a
    pair has. The multipliers of the flow constraints are the coefficients.
    """
    n, discount = model.dimension, model.discount
    mass = 1.0 / (1.0 - discount)
    pair_rows = sparse.hstack([model.state_rows, model.action_rows]).toarray()
    up, down = np.isfinite(model.row_upper), np.isfinite(model.row_lower)
    flow = np.hstack(
        [
            np.eye(n) - discount * model.next_state.toarray(),
            -discount * model.next_action.toarray(),
        ]
    )
    answer = linprog(
        np.concatenate([model.state_cost, model.action_cost]),
        A_ub=np.vstack([pair_rows[up], -pair_rows[down], -flow]),
        b_ub=np.concatenate(
            [
                mass * model.row_upper[up],
                -mass * model.row_lower[down],
                -(moments[1:] + discount * mass * model.drift),
            ]
        ),
        bounds=[
            *zip(mass * model.state_lower, mass * model.state_upper, strict=True),
            *((mass * low, None) for low in model.action_lower),
        ],
        method="highs-ds",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    assert answer.status == 0
    slope = -answer.ineqlin.marginals[-n:]
    objective = float(answer.fun) + mass * model.constant_cost
    return objective, np.append(objective - moments[1:] @ slope, slope)


def enumerated(model: bw.LinearModel, moments: np.ndarray, lower: np.ndarray) -> float:
    """Solve the program with every row of the box listed, next states not clipped."""
    states = all_states(model, 10**6)
    number, actions = all_pairs(model, states, 10**6)
    following = model.discount * model.expected_next(states[number], actions)
    rows = np.column_stack([np.full(len(number), 1.0 - model.discount), states[number] - following])
    answer = linprog(
        -moments,
        A_ub=rows,
        b_ub=model.cost(states[number], actions),
        bounds=[(None if np.isinf(low) else low, None) for low in lower],
        method="highs-ds",
    )
    assert answer.status == 0
    return -float(answer.fun)


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("kernel", [True, False])
def test_column_generation_agrees_with_the_compact_dual(size: str, kernel: bool) -> None:
    model = bw.problems.scheduling(size)
    program = AlpProgram(bw.program.PricedRows(kernel=kernel).on(model, nonnegative(model)))
    start = np.append(1.0, model.initial_mean)
    crowded = start * np.append(1.0, np.linspace(1.8, 0.4, model.dimension))
    busy = start + np.append(0.0, np.linspace(5.0, 0.5, model.dimension))
    for moments in (start, crowded, busy):
        found = program.solve(moments)
        assert found.status is bw.Status.OPTIMAL
        objective, coef = compact_dual(model, moments)
        scale = max(1.0, abs(objective))
        assert abs(found.objective - objective) <= 1e-7 * scale
        np.testing.assert_allclose(
            found.coef, coef, rtol=0.0, atol=1e-6 * max(1.0, float(np.abs(coef).max()))
        )


def test_the_two_known_optima_of_the_small_clinic() -> None:
    model = bw.problems.scheduling("small")
    found = bw.solve(model, nonnegative(model), bw.Fixed())
    assert found.objective == pytest.approx(2_759.543335, abs=1e-5)
    np.testing.assert_allclose(found.coef[1:8], 100.0)
    np.testing.assert_allclose(found.coef[8:31], 100.0 * 0.99 ** np.arange(1, 24))
    np.testing.assert_allclose(found.coef[31:], [100.0, 100.0 * 0.99**7, 100.0 * 0.99**14])


@pytest.mark.parametrize("lowest", [-np.inf, 0.0])
@pytest.mark.parametrize("kernel", [True, False])
def test_column_generation_agrees_with_enumeration_on_the_tiny_clinic(
    lowest: float, kernel: bool
) -> None:
    model = bw.problems.scheduling("tiny")
    lower = np.append(-np.inf, np.full(model.dimension, lowest))
    rng = np.random.default_rng(1)
    program = AlpProgram(bw.program.PricedRows(kernel=kernel).on(model, bw.Affine(lower=lower)))
    for _ in range(5):
        moments = np.append(1.0, rng.random(model.dimension) * model.state_upper)
        wanted = enumerated(model, moments, lower)
        assert program.solve(moments).objective == pytest.approx(wanted, rel=1e-7, abs=1e-7)


@st.composite
def knapsacks(draw: st.DrawFn) -> bw.LinearModel:
    """Small models whose constraints are knapsacks: pricing is a true integer program."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    c = draw(st.integers(1, 2))
    upper = rng.integers(1, 4, n)
    state_rows = rng.integers(0, 3, (c, n)).astype(float)
    return bw.LinearModel(
        state_cost=rng.integers(0, 6, n).astype(float),
        action_cost=rng.integers(-6, 6, m).astype(float),
        next_state=rng.integers(0, 2, (n, n)).astype(float),
        next_action=rng.integers(-1, 2, (n, m)).astype(float),
        noise=bw.models.Independent([bw.Law.uniform(0, int(k)) for k in rng.integers(0, 3, n)]),
        initial=bw.models.Independent([bw.Law.uniform(0, int(k)) for k in upper]),
        discount=draw(st.sampled_from([0.5, 0.9])),
        state_upper=upper,
        action_upper=3,
        state_rows=state_rows,
        action_rows=rng.integers(1, 5, (c, m)).astype(float),
        row_upper=state_rows @ upper + rng.integers(0, 8, c),
    )


@settings(max_examples=40)
@given(model=knapsacks(), data=st.data())
def test_pricing_agrees_with_enumeration_on_knapsacks(
    model: bw.LinearModel, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = bw.program.PricedRows().on(model, bw.Affine())
    states = all_states(model, 10**5)
    number, actions = all_pairs(model, states, 10**5)
    for _ in range(3):
        coef = rng.normal(size=model.dimension + 1) * 10.0
        following = model.discount * model.expected_next(states[number], actions)
        value = coef[0] + states[number] @ coef[1:]
        slack = model.cost(states[number], actions) - value
        slack += model.discount * coef[0] + following @ coef[1:]
        violation, state, action = rows.largest_violation(coef)
        assert violation == pytest.approx(max(0.0, -slack.min()), abs=1e-7)
        assert model.inadmissible(state[None], action[None]) is None


@settings(max_examples=25)
@given(model=knapsacks(), data=st.data())
def test_greedy_actions_agree_with_enumeration_ties_included(
    model: bw.LinearModel, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    coef = rng.integers(-4, 5, model.dimension + 1).astype(float)
    policy = bw.Greedy(basis=bw.Affine(), coef=coef, model=model)
    price = model.action_cost + model.discount * (model.next_action.T @ coef[1:])
    states = all_states(model, 10**5)
    number, actions = all_pairs(model, states, 10**5)
    for x in rng.choice(len(states), min(6, len(states)), replace=False):
        mine = actions[number == x]
        cost = mine @ price
        # Pairs are listed in lexicographic order, so the first of the cheapest is the one wanted.
        wanted = mine[np.flatnonzero(cost <= cost.min() + 1e-10)[0]]
        np.testing.assert_array_equal(policy.action(states[x]), wanted)


# The two kinds of program


def test_network_matrices_are_recognised() -> None:
    clinic = bw.problems.scheduling("small")
    assert is_network(sparse.hstack([clinic.state_rows, clinic.action_rows]))
    assert is_network(np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, -1.0, -1.0]]))
    assert not is_network(np.array([[2.0, 1.0]]))
    assert not is_network(np.array([[1.0], [1.0], [1.0]]))
    # An odd cycle: three rows that all must be apart.
    assert not is_network(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))


@given(seed=st.integers(0, 2**32))
def test_integer_programs_agree_with_another_interface(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = 3, 5
    rows = rng.integers(0, 6, (m, n)).astype(float)
    limit = rng.integers(3, 20, m).astype(float)
    program = IntegerProgram(
        rows, np.full(m, -np.inf), limit, np.zeros(n), np.full(n, 4.0), np.ones(n, dtype=bool)
    )
    for _ in range(2):
        price = rng.normal(size=n)
        found = program.minimise(price)
        other = milp(
            price, constraints=Rows(rows, -np.inf, limit), bounds=(0, 4), integrality=np.ones(n)
        )
        assert found.status is bw.Status.OPTIMAL
        assert found.point is not None
        assert price @ found.point == pytest.approx(other.fun, abs=1e-7)
        assert found.bound <= price @ found.point + 1e-9
        assert found.bound >= price @ found.point - 1e-6
        limit = limit + 1.0
        program.limit(row_upper=limit)


def test_infeasible_and_unbounded_programs_are_told_apart() -> None:
    endless = IntegerProgram(
        np.array([[1.0, -1.0]]), np.zeros(1), np.zeros(1), np.zeros(2), np.full(2, np.inf),
        np.ones(2, dtype=bool),
    )  # fmt: skip
    assert endless.minimise(np.array([-1.0, 0.0])).status is bw.Status.UNBOUNDED
    nothing = IntegerProgram(
        np.array([[1.0, 1.0]]), np.full(1, 5.0), np.full(1, 9.0), np.zeros(2), np.ones(2),
        np.ones(2, dtype=bool),
    )  # fmt: skip
    assert nothing.minimise(np.array([1.0, 0.0])).status is bw.Status.INFEASIBLE


# The settings of PricedRows


def test_a_larger_box_shows_what_the_rows_do_not_cover() -> None:
    model = shop(row_upper=30.0)
    found = bw.solve(model, bw.Affine(), bw.Fixed(), judge=False)
    assert bw.program.PricedRows().on(model, bw.Affine()).largest_violation(found.coef)[0] <= 1e-10
    beyond, state, action = (
        bw.program.PricedRows(lower=-4, upper=20)
        .on(model, bw.Affine())
        .largest_violation(found.coef)
    )
    stock, order = np.meshgrid(np.arange(-4.0, 21.0), np.arange(4.0))
    slack = 2.0 * stock + 5.0 * order - found.coef[0] - found.coef[1] * stock
    slack += 0.9 * (found.coef[0] + found.coef[1] * (stock + order - 1.0))
    assert beyond == pytest.approx(-slack.min(), rel=1e-12)
    assert beyond > 1.0
    found_slack = slack[int(action[0]), int(state[0]) + 4]
    assert found_slack == pytest.approx(slack.min(), rel=1e-12)


def test_the_small_clinic_holds_where_its_simulated_backlog_goes() -> None:
    model = bw.problems.scheduling("small")
    found = bw.solve(model, nonnegative(model), bw.Fixed())
    wider = model.state_upper + np.append(np.zeros(30), [400.0, 400.0, 400.0])
    for kernel in (True, False):
        rows = bw.program.PricedRows(upper=wider, kernel=kernel).on(model, found.basis)
        assert rows.largest_violation(found.coef)[0] <= 1e-8


def test_programs_over_a_larger_box_hold_there() -> None:
    model = bw.problems.scheduling("small")
    wider = model.state_upper + np.append(np.zeros(30), [40.0, 40.0, 40.0])
    found = bw.solve(model, nonnegative(model), bw.Fixed(), rows=bw.program.PricedRows(upper=wider))
    assert (
        bw.program.PricedRows(upper=wider).on(model, found.basis).largest_violation(found.coef)[0]
        < 1e-7
    )


def test_the_result_counts_columns_and_proves_the_optimum() -> None:
    model = bw.problems.scheduling("small")
    found = bw.solve(model, nonnegative(model), bw.Fixed())
    last = found.history[-1]
    assert last.proven
    assert last.columns is not None
    assert last.columns >= len(found.support.values)
    assert last.passes > 1
    assert 0.0 < last.solve_seconds <= last.seconds
    assert "proves the optimum" in to_text(found.table())
    assert found.dual is None
    assert found.weights is None
    assert found.support.states.shape[1] == 33
    assert found.support.actions.shape[1] == 93
    assert found.support.values.sum() == pytest.approx(100.0)


def test_a_time_limit_on_pricing_is_never_a_silent_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shop()
    complete = LinearRows._priced

    def cut_short(self: LinearRows, *prices: np.ndarray) -> object:
        found = complete(self, *prices)
        return type(found)(found.state, found.action, found.bound - 1.0, False)

    monkeypatch.setattr(LinearRows, "_priced", cut_short)
    with pytest.warns(bw.errors.BellweightWarning, match="violated by up to 1"):
        found = bw.solve(model, bw.Affine(), bw.Fixed(), judge=False)
    assert found.status is bw.Status.TIME_LIMIT
    assert not found.history[-1].proven
    assert found.audit.violation >= 1.0


def test_a_real_time_limit_returns_a_point_and_a_bound() -> None:
    # Equality knapsacks with many close alternatives: far more than a tenth of a second's work.
    rng = np.random.default_rng(3)
    m = 60
    rows = rng.integers(500, 900, (6, m)).astype(float)
    program = IntegerProgram(
        rows, np.full(6, -np.inf), np.full(6, 20_001.0), np.zeros(m), np.full(m, 5.0),
        np.ones(m, dtype=bool),
    )  # fmt: skip
    price = -rows.sum(axis=0) - rng.random(m)
    found = program.minimise(price, time_limit=0.3)
    assert found.status is bw.Status.TIME_LIMIT
    assert found.point is not None
    assert (rows @ found.point <= 20_001.0).all()
    assert -np.inf < found.bound < price @ found.point


def wrong_use(kind: str) -> None:
    {
        "degree": lambda: bw.solve(shop(), bw.Polynomial(2), bw.Fixed()),
        "custom": lambda: bw.solve(shop(), bw.Custom(lambda x: x), bw.Fixed()),
        "rows": lambda: bw.solve(shop(), bw.Affine(), bw.Fixed(), rows=bw.program.AllRows()),
        "columns": lambda: bw.program.PricedRows(columns=0),
        "time limit": lambda: bw.program.PricedRows(time_limit=0.0),
        "empty box": lambda: bw.program.PricedRows(upper=-1).on(shop(), bw.Affine()),
        "unbounded": lambda: bw.solve(
            shop(action_upper=np.inf, row_upper=np.inf, action_cost=[-5.0]), bw.Affine(), bw.Fixed()
        ),
        "infeasible": lambda: bw.solve(
            shop(
                state_rows=[[1.0], [1.0]],
                action_rows=[[1.0], [0.0]],
                row_upper=[8.0, np.inf],
                row_lower=[-np.inf, 6.5],
                row_names=(),
            ),
            bw.Affine(),
            bw.Fixed(),
        ),
        "weights": lambda: bw.solve(shop(), bw.Affine(), bw.Fixed(np.ones(3))),
        "model": lambda: bw.program.PricedRows().on(bw.problems.single_queue(30), bw.Affine()),
    }[kind]()


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("degree", bw.errors.BasisError, "affine value function"),
        ("custom", bw.errors.BasisError, "affine value function"),
        ("rows", bw.errors.ArgumentError, "expected PricedRows"),
        ("columns", bw.errors.ArgumentError, "columns"),
        ("time limit", bw.errors.ArgumentError, "time_limit"),
        ("empty box", bw.errors.ArgumentError, "box of PricedRows is empty"),
        ("unbounded", bw.errors.SolverError, "pricing is unbounded"),
        ("infeasible", bw.errors.SolverError, "no pair of a state in the box"),
        ("weights", bw.errors.ArgumentError, 'expected "initial"'),
        ("model", bw.errors.ModelError, "expected a LinearModel"),
    ],
)
def test_wrong_use_is_explained(kind: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        wrong_use(kind)


def test_a_state_without_actions_is_named_when_it_is_met() -> None:
    # Each constraint can be met, both together cannot where stock is 6.
    model = shop(
        state_rows=[[1.0], [0.0]], action_rows=[[1.0], [1.0]], row_upper=[8.0, 3.0],
        row_lower=[-np.inf, 3.0], row_names=(),
    )  # fmt: skip
    policy = bw.Greedy(basis=bw.Affine(), coef=np.zeros(2), model=model)
    assert policy.action([5]).tolist() == [3]
    with pytest.raises(
        bw.errors.ModelError, match="no action is admissible in the state where stock = 6"
    ):
        policy.action([6])
