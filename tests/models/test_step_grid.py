"""A step model on a grid, against value iteration with SciPy's interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import bellweight as bw
from bellweight.models import Interval, Law

RATES = np.array([0.0, 0.5])
SHOCK = Law([-0.3, 0.1, 0.4], [0.3, 0.4, 0.3])


def step(state: Any, action: int, noise: Any) -> Any:
    first = min(max(0.8 * state[0] + noise[0], -1.0), 1.0)
    return first, min(max(state[1] + 0.3 * state[0] - RATES[action], 0.0), 2.0)


def cost(state: Any, action: int) -> float:
    return state[1] ** 2 + 0.7 * RATES[action]


def tank(**options: Any) -> bw.StepModel:
    given: dict[str, Any] = {
        "dimension": 2, "actions": 2, "step": step, "cost": cost, "discount": 0.8, "noise": SHOCK,
        "initial": [Interval(-0.5, 0.5), 1.1], "lower": [-1, 0], "upper": [1, 2],
        "compiled": False,
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


def test_two_dimensions_are_interpolated_as_by_scipy() -> None:
    model = tank()
    axes = [np.linspace(-1.0, 1.0, 7), np.array([0.0, 0.3, 1.0, 1.4, 2.0])]
    listed = model.to_tabular(grid=axes)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(listed.states, points)
    paid = np.array([[cost(x, a) for a in range(2)] for x in points])
    after = np.array([[[step(x, a, [w]) for w in SHOCK.values] for a in range(2)] for x in points])
    values = np.zeros(35)
    for _ in range(150):
        between = RegularGridInterpolator(axes, values.reshape(7, 5))
        values = (paid + 0.8 * between(after) @ SHOCK.chances).min(axis=1)
    found = bw.exact.optimal(listed).values
    np.testing.assert_allclose(found, values, atol=1e-10)
    # The initial law is spread in the same way.
    nodes, weights = Interval(-0.5, 0.5).quadrature(model.quadrature)
    between = RegularGridInterpolator(axes, values.reshape(7, 5))
    wanted = weights @ between(np.column_stack([nodes, np.full(len(nodes), 1.1)]))
    assert listed.initial @ found == pytest.approx(wanted)


def count(state: Any, action: int, noise: Any) -> Any:
    return min(max(state[0] + 2 * action - int(noise[0]), 0), 5)


def paid(state: Any, action: int) -> float:
    return 1.0 * state[0] + 3.0 * action + (8.0 if state[0] == 0 else 0.0)


def test_whole_coordinates_are_listed_and_nothing_is_interpolated() -> None:
    demand = Law([0.0, 1.0, 2.0], [0.2, 0.5, 0.3])
    model = bw.StepModel(
        dimension=1, actions=2, step=count, cost=paid, discount=0.9, noise=demand, initial=3,
        lower=0, upper=5, integer=True, compiled=False,
    )  # fmt: skip
    listed = model.to_tabular()
    wanted = np.zeros((6, 2, 6))
    for x in range(6):
        for a in range(2):
            for d, p in zip((0, 1, 2), demand.chances, strict=True):
                wanted[x, a, min(max(x + 2 * a - d, 0), 5)] += p
    np.testing.assert_allclose(listed.transition.toarray(), wanted.reshape(12, 6), atol=1e-15)
    np.testing.assert_array_equal(listed.initial, np.eye(6)[3])


@pytest.mark.parametrize(
    ("change", "grid", "words"),
    [
        ({}, [7], r"grid has 1 entries, expected one for each of the 2"),
        ({}, [7, [1.0, 0.5]], r"grid\[1\] is \[1.0, 0.5\]..., expected increasing"),
        (
            {},
            [7, [0.2, 1.5, 2.0]],
            r"after state .* lies outside the grid, whose coordinate 1 runs",
        ),
        ({"upper": [1, None]}, 7, r"coordinate 1 has no bounds"),
        ({}, 20_000, r"use a coarser grid or fewer nodes"),
    ],
)
def test_a_grid_that_does_not_fit_is_refused(change: Any, grid: Any, words: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=words):
        tank(**change).to_tabular(grid=grid)


def test_a_rule_sees_real_states_of_a_grid_as_they_are() -> None:
    listed = tank().to_tabular(grid=[np.array([-1.0, -0.5, 0.5, 1.0]), np.array([0.0, 2.0])])
    rule = bw.Rule(lambda state: int(state[0] > -0.25))
    chosen = listed.pair_action[rule.probabilities(listed) == 1.0]
    assert chosen.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
