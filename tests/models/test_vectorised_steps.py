"""Step models whose functions work on many states at once: the same answers as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import Law, Normal

LEVELS = np.array([0.0, 1.0, 2.0])
DEMAND = (Law([0.0, 1.0, 2.5], [0.2, 0.5, 0.3]), Normal(0.0, 0.1, -0.3, 0.3))


def step(state: Any, action: int, noise: Any) -> Any:
    first = min(max(state[0] + LEVELS[action] - noise[0], -2.0), 6.0)
    return first, 0.5 * state[1] + noise[1]


def cost(state: Any, action: int, noise: Any, parameters: Any) -> float:
    after = state[0] + LEVELS[action] - noise[0]
    return parameters["order"] * LEVELS[action] + max(after, 0.0) + 9.0 * max(-after, 0.0)


def allowed(state: Any, action: int) -> bool:
    return state[0] + LEVELS[action] <= 6.0


class Warehouse:
    """Something that no compiler reads."""

    def __init__(self) -> None:
        self.levels = {a: float(level) for a, level in enumerate(LEVELS)}

    def steps(self, states: Any, action: int, noise: Any) -> Any:
        first = np.clip(states[:, 0] + self.levels[action] - noise[:, 0], -2.0, 6.0)
        return np.column_stack([first, 0.5 * states[:, 1] + noise[:, 1]])

    def costs(self, states: Any, action: int, noise: Any, parameters: Any) -> Any:
        after = states[:, 0] + self.levels[action] - noise[:, 0]
        paid = np.maximum(after, 0.0) + 9.0 * np.maximum(-after, 0.0)
        return parameters["order"] * self.levels[action] + paid

    def allowed(self, states: Any, action: int) -> Any:
        return states[:, 0] + self.levels[action] <= 6.0


def model_of(functions: Any, **options: Any) -> bw.StepModel:
    given: dict[str, Any] = {
        "dimension": 2, "actions": 3, "discount": 0.9, "noise": DEMAND, "initial": [1.0, 0.0],
        "lower": [-2, -1], "upper": [6, 1], "parameters": {"order": 2.0}, "quadrature": 5,
    }  # fmt: skip
    return bw.StepModel(**{**given, **functions, **options})


HOUSE = Warehouse()
ONE_BY_ONE: dict[str, Any] = {
    "step": step, "cost": cost, "admissible": allowed, "compiled": False,
}  # fmt: skip
TOGETHER: dict[str, Any] = {
    "step": HOUSE.steps, "cost": HOUSE.costs, "admissible": HOUSE.allowed, "vectorised": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def pair() -> tuple[bw.StepModel, bw.StepModel]:
    return model_of(ONE_BY_ONE), model_of(TOGETHER)


@pytest.mark.parametrize(
    "basis",
    [
        bw.Polynomial(2),
        bw.PiecewiseLinear([0.0, 2.5]),
        bw.Stacked(bw.Affine(), bw.Radial([[1.0, 0.0], [3.0, 0.1]], 1.5)),
    ],
    ids=["squares", "kinks", "bumps"],
)
def test_rows_are_the_same(pair: tuple[bw.StepModel, bw.StepModel], basis: Any) -> None:
    states = pair[0].spread_states(12)
    bound = [bw.SampledRows(states).on(model, basis) for model in pair]
    assert bound[0].n_pairs == bound[1].n_pairs < 36
    every = np.arange(bound[0].n_pairs)
    for one, together in zip(bound[0].rows(every), bound[1].rows(every), strict=True):
        np.testing.assert_allclose(together, one, atol=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "greedy"])
def test_costs_on_the_same_random_numbers_are_the_same(
    pair: tuple[bw.StepModel, bw.StepModel], kind: str
) -> None:
    basis, coef = bw.PiecewiseLinear([0.0, 2.0]), np.array([3.0, -4.0, 1.0, 5.0, 1.0, 0.5, 0.2])
    policy = bw.Uniform() if kind == "uniform" else bw.Greedy(basis=basis, coef=coef)
    one, together = (bw.evaluate(model, policy, episodes=6, horizon=15, seed=4) for model in pair)
    assert together.mean == pytest.approx(one.mean, rel=1e-12)
    assert together.half_width == pytest.approx(one.half_width, rel=1e-9)


def test_it_is_solved_checked_and_changed_like_any_other(
    pair: tuple[bw.StepModel, bw.StepModel],
) -> None:
    rows = bw.SampledRows(pair[0].spread_states(16))
    found = [
        bw.solve(
            model, bw.Polynomial(2), bw.DIA(), rows=rows, judge=False,
            simulation=bw.Simulation(episodes=4, horizon=10), stop=bw.Stop(max_iterations=2),
        )
        for model in pair
    ]  # fmt: skip
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-9)
    together = pair[1]
    assert bw.testing.check_model(together).checked
    dearer = together.with_parameters(order=5.0)
    assert dearer.digest != together.digest
    raised = dearer.costs_of(np.array([[1.0, 0.0]]), np.array([2]))
    assert raised - together.costs_of(np.array([[1.0, 0.0]]), np.array([2])) == pytest.approx(6.0)


def test_what_may_be_done_is_asked_for_all_states_together() -> None:
    sizes = []

    def counted(states: Any, action: int) -> Any:
        sizes.append(len(states))
        return HOUSE.allowed(states, action)

    model = model_of({**TOGETHER, "admissible": counted})
    states = model.spread_states(20)
    sizes.clear()
    mask = model.admissible_mask(states)
    assert sizes == [len(states)] * 3
    assert np.array_equal(mask, states[:, :1] + LEVELS <= 6.0)
    assert not mask.all()


def short(states: Any, action: int, noise: Any) -> Any:
    return states[:, 0]


def spoiled(states: Any, action: int, noise: Any) -> Any:
    return np.where(noise[:, :1] > 2.0, np.nan, states)


def changing(states: Any, action: int, noise: Any) -> Any:
    states += 0.1
    return states


def breaking(states: Any, action: int, noise: Any) -> Any:
    return states.missing


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (short, r"step function 'short' returns shape \(\d+,\), expected \(\d+, 2\)"),
        (spoiled, r"in state \[1, 0\], action 0 \(action 0\), noise \[2.5.*not finite"),
        (changing, r"'changing' changes the states it is given"),
        (breaking, r"'breaking' fails for .* states \(n, d\) and noise \(n, m\)"),
        (step, r"takes 'state', expected only arguments named states"),
    ],
)
def test_bad_answers_name_the_function(function: Any, words: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=words):
        model_of({**TOGETHER, "step": function})


def test_a_rollout_improves_the_same_decisions(pair: tuple[bw.StepModel, bw.StepModel]) -> None:
    policy = bw.Rollout(bw.Greedy(basis=bw.Affine(), coef=np.ones(3)), paths=2, horizon=3)
    costs = [bw.evaluate(m, policy, 2, horizon=3, seed=1, jobs=1).mean for m in pair]
    assert costs[1] == pytest.approx(costs[0], rel=1e-12)


def test_what_was_found_before_a_fault_is_kept() -> None:
    house, told = Warehouse(), []

    def spoil(record: Any) -> None:
        told.append(record)
        house.levels[1] = np.nan

    functions = {"step": house.steps, "cost": house.costs, "vectorised": True}
    model = model_of(functions)
    with pytest.raises(bw.errors.ModelError, match="not finite") as caught:
        bw.solve(
            model, bw.Affine(), bw.PIA(), rows=bw.SampledRows(model.spread_states(8)),
            simulation=bw.Simulation(episodes=4, horizon=10), progress=spoil, judge=False,
        )  # fmt: skip
    assert list(caught.value.history) == told
    assert len(told) >= 1
