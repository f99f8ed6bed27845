"""Rows between sampled states: what a search finds, and what declarations prove."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import Interval, Law, Lipschitz
from bellweight.program.box_proof import violation_in_box
from bellweight.program.box_search import worst_row

ORDERS = np.arange(0.0, 4.0)
DEMAND = Law([0.0, 1.0, 2.5], [0.2, 0.5, 0.3])
KINKS = (-1.0, 0.5, 2.0, 4.0)
COEF = np.array([20.0, -3.0, 4.0, 2.5, -1.0, 3.0])


def step(state: Any, action: int, noise: Any) -> float:
    return min(max(state[0] + ORDERS[action] - noise[0], -2.0), 6.0)


def cost(state: Any, action: int, noise: Any) -> float:
    after = state[0] + ORDERS[action] - noise[0]
    return 2.0 * ORDERS[action] + max(after, 0.0) + 9.0 * max(-after, 0.0)


def bends(action: int, noise: Any) -> list[float]:
    return [end - ORDERS[action] + noise[0] for end in (-2.0, 0.0, 6.0)]


def inventory(**options: Any) -> bw.StepModel:
    given: dict[str, Any] = {
        "dimension": 1, "actions": [f"order {a:g}" for a in ORDERS], "step": step, "cost": cost,
        "discount": 0.9, "noise": DEMAND, "initial": 1.0, "lower": -2, "upper": 6,
        "compiled": False,
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


def rows_of(model: bw.StepModel) -> Any:
    return bw.SampledRows([[0.0], [1.0]]).on(model, bw.PiecewiseLinear(KINKS))


def by_hand(states: np.ndarray) -> np.ndarray:
    """Slacks (n, A), from the formula."""
    basis = bw.PiecewiseLinear(KINKS)
    raw = states[:, None, None] + ORDERS[:, None] - DEMAND.values
    paid = (np.maximum(raw, 0.0) + 9.0 * np.maximum(-raw, 0.0)) @ DEMAND.chances + 2.0 * ORDERS
    after = np.clip(raw, -2.0, 6.0)
    ahead = (np.asarray(basis(after.reshape(-1, 1))) @ COEF).reshape(after.shape) @ DEMAND.chances
    return paid + 0.9 * ahead - (np.asarray(basis(states[:, None])) @ COEF)[:, None]


@pytest.fixture(scope="module")
def worst() -> float:
    """The largest violation on a grid that holds every bend: multiples of a half and finer."""
    return float(-by_hand(np.linspace(-2.0, 6.0, 16_001)).min())


def test_declared_bends_give_the_largest_violation_itself(worst: float) -> None:
    model = inventory(bends=bends)
    found = violation_in_box(rows_of(model), model, COEF)
    assert found is not None
    assert worst <= found <= worst + 1e-9


def test_lipschitz_constants_give_a_bound_on_it(worst: float) -> None:
    model = inventory(lipschitz=Lipschitz(step=1.0, cost=9.0))
    found = violation_in_box(rows_of(model), model, COEF)
    assert found is not None
    assert worst <= found <= worst + 0.05


def test_the_search_finds_it_and_says_where(worst: float) -> None:
    model = inventory()
    found = worst_row(rows_of(model), model, COEF)
    assert found.violation == pytest.approx(worst, abs=0.01)
    slack = by_hand(np.array(found.state))[0, found.action]
    assert found.violation == pytest.approx(-slack, abs=1e-9)


@pytest.mark.filterwarnings("ignore:the lower bound is")
def test_a_result_says_what_is_proven_and_what_was_found() -> None:
    states = np.linspace(-2.0, 6.0, 9)[:, None]
    basis = bw.PiecewiseLinear(KINKS)
    solved = {}
    for name, options in {
        "finite": {"bends": bends},
        "nodes": {"bends": bends, "noise": Interval(0.0, 2.5), "quadrature": 6},
        "nothing": {},
    }.items():
        model = inventory(**options)
        solved[name] = bw.solve(model, basis, bw.Fixed(), rows=bw.SampledRows(states), judge=False)
    exact = solved["finite"]
    assert (exact.lower_bound_kind, solved["nodes"].lower_bound_kind) == ("exact", "estimated")
    assert "6 quadrature nodes" in solved["nodes"].lower_bound_reason
    assert (solved["nothing"].lower_bound, solved["nothing"].lower_bound_kind) == (None, "unproven")
    # On the lattice of half numbers the model is a finite one, whose optimum is known.
    lattice = inventory().to_tabular(grid=17)
    optimum = lattice.initial @ bw.exact.optimal(lattice).values
    assert 0.5 * optimum < exact.lower_bound <= optimum + 1e-9
    for result in solved.values():
        assert result.evidence is not None
        assert "search" in str(result)
        assert "over the whole box" in " ".join(str(result).split())
    drop = exact.objective - exact.lower_bound
    assert exact.evidence.violation <= 0.1 * drop + 1e-6


def wide(state: Any, action: int, noise: Any) -> Any:
    first = 0.5 * state[0] + 0.2 * state[1] + 0.1 * noise[0] - 0.2 * action
    return min(max(first, -1.0), 1.0), min(max(0.6 * state[1] - noise[0], -1.0), 1.0)


def bowl(state: Any, action: int) -> float:
    return abs(state[0]) + 0.5 * abs(state[1]) + 0.1 * action


def test_two_dimensions_are_proven_by_lipschitz_constants() -> None:
    model = bw.StepModel(
        dimension=2, actions=2, step=wide, cost=bowl, discount=0.7, lower=-1, upper=1,
        noise=Law([-0.3, 0.3], [0.5, 0.5]), initial=[0.2, -0.1], compiled=False,
        lipschitz=Lipschitz(step=0.7, cost=1.5),
    )  # fmt: skip
    coef = np.array([0.1, -0.3, 0.2, 0.6, -0.1])
    rows = bw.SampledRows([[0.0, 0.0], [0.5, 0.5]]).on(model, bw.PiecewiseLinear([0.0]))
    side = np.linspace(-1.0, 1.0, 21)
    states = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    seen = float(-rows.slacks_at(states, coef).min())
    found = violation_in_box(rows, model, coef)
    assert found is not None
    assert seen <= found <= seen + 0.15


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bends": lambda action, noise: [0.0]}, r"bends declares none between .* no line there"),
        ({"lipschitz": Lipschitz(1.0, 1.0)}, r"lipschitz.cost is 1, but between the states"),
        ({"lipschitz": Lipschitz(0.5, 9.0)}, r"lipschitz.step is 0.5, but between the states"),
    ],
)
def test_a_declaration_that_samples_contradict_is_refused(change: Any, words: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=words):
        inventory(**change)


@pytest.mark.filterwarnings("ignore:expectations are averages")
def test_draws_report_the_error_that_they_bring() -> None:
    def demand(rng: np.random.Generator, n: int) -> Any:
        return rng.choice(DEMAND.values, p=DEMAND.chances, size=(n, 1))

    states = np.linspace(-2.0, 6.0, 9)[:, None]
    errors, moved = [], []
    exact = bw.solve(
        inventory(), bw.PiecewiseLinear(KINKS), bw.Fixed(), rows=bw.SampledRows(states),
        judge=False,
    ).objective  # fmt: skip
    for seed in range(4):
        model = inventory(noise=demand, draws=24, draws_seed=10 * seed)
        result = bw.solve(
            model, bw.PiecewiseLinear(KINKS), bw.Fixed(), rows=bw.SampledRows(states), judge=False
        )
        assert result.evidence is not None
        assert result.evidence.draws_error is not None
        errors.append(result.evidence.draws_error)
        moved.append(abs(result.objective - exact))
    # An estimate of a difference of two sets: of the size of what one set is off.
    assert 0.3 * np.mean(moved) < np.mean(errors) < 6.0 * np.mean(moved)
    assert any("another set of draws moves" in text for text in result.warnings)
