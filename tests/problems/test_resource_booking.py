"""The surgery unit of the examples: pricing and greedy actions that are true integer programs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import linprog

import bellweight as bw
from bellweight.models.enumerate import all_pairs, all_states

FILE = Path(__file__).parents[2] / "examples" / "resource_booking.py"


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("resource_booking", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _example()


@pytest.fixture(scope="module")
def unit() -> bw.LinearModel:
    return example.unit()


@pytest.fixture(scope="module")
def small() -> bw.LinearModel:
    """Two resources, two types, two days: few enough pairs to list, and capacity is scarce."""
    return example.unit(
        days=range(1, 3),
        capacity={"theatre": 5, "beds": 3},
        requests={
            "long": example.Request({"theatre": 3, "beds": 1}, 9.0, 3.0, most=2, ahead=2),
            "short": example.Request({"theatre": 2, "beds": 2}, 4.0, 3.0, most=2, ahead=2),
        },
    )


def _box_states(model: bw.LinearModel, n: int, seed: int) -> np.ndarray:
    """Return random states, every other one with room in the diary."""
    rng = np.random.default_rng(seed)
    low, high = model.state_lower.astype(int), model.state_upper.astype(int)
    states = rng.integers(low, high + 1, size=(n, model.dimension)).astype(float)
    states[::2, : -len(example.REQUESTS)] //= 2
    return states


def test_the_model_is_in_order(unit: bw.LinearModel) -> None:
    report = bw.testing.check_model(unit)
    assert "in order" in str(report)


def test_simulated_states_stay_in_the_box(unit: bw.LinearModel) -> None:
    cost = bw.evaluate(unit, bw.Rule(_inside(unit)), episodes=50, seed=4, jobs=1)
    assert cost.tail_bound is not None
    assert cost.tail_bound < 0.01 * cost.mean


def _inside(model: bw.LinearModel):
    def rule(states: np.ndarray) -> np.ndarray:
        assert (states >= model.state_lower).all()
        assert (states <= model.state_upper).all()
        return example.first_come_first_served(states)

    return rule


def test_column_generation_equals_all_bellman_rows(small: bw.LinearModel) -> None:
    states = all_states(small, 100_000)
    number, actions = all_pairs(small, states, 1_000_000)
    at = states[number]
    following = small.expected_next(at, actions)
    ones = np.full(len(at), 1.0 - small.discount)
    rows = np.column_stack([ones, at - small.discount * following])
    cost = small.cost(at, actions)
    # Dominated rows repeat the same left-hand side: only the cheapest matters.
    order = np.lexsort((cost, *rows.T))
    first = np.r_[True, (np.diff(rows[order], axis=0) != 0.0).any(axis=1)]
    rows, cost = rows[order][first], cost[order][first]

    basis = example.value_function(small)
    bounds = list(zip(*basis.bounds(small.dimension + 1), strict=True))
    spread = bw.Fixed(moments=np.append(1.0, states.mean(axis=0)))
    crowded = bw.Fixed(moments=np.append(1.0, 0.8 * small.state_upper))
    for method in (bw.Fixed(), spread, crowded):
        result = bw.solve(small, basis, method)
        listed = linprog(-result.moments, rows, cost, bounds=bounds)
        assert listed.status == 0
        assert result.status is bw.Status.CONVERGED
        assert result.objective == pytest.approx(-listed.fun, rel=1e-7, abs=1e-7)
        assert (rows @ result.coef - cost).max() <= 1e-7


@pytest.mark.parametrize("weights", ["random", "none"])
def test_greedy_is_the_lexicographically_first_minimum(unit: bw.LinearModel, weights: str) -> None:
    basis = example.value_function(unit)
    coef = np.zeros(unit.dimension + 1)
    if weights == "random":
        simulation = bw.Simulation(episodes=500)
        coef = bw.solve(unit, basis, bw.FromPolicy(), simulation=simulation, seed=1, jobs=1).coef
    policy = bw.Greedy(basis=basis, coef=coef).on(unit)
    states = _box_states(unit, 50, seed=5)
    number, actions = all_pairs(unit, states, 1_000_000)
    value = unit.cost(states[number], actions)
    value = value + unit.discount * unit.expected_next(states[number], actions) @ coef[1:]
    tied = 0
    for x, state in enumerate(states):
        here = number == x
        best = actions[here][value[here] <= value[here].min() + 1e-8]
        first = best[np.lexsort(best.T[::-1])[0]]
        np.testing.assert_array_equal(policy.action(state), first)
        tied += len(best) > 1
    assert tied > 0, "no state has ties, so that their order is not tested"


def test_the_rule_books_one_by_one_on_the_earliest_day(unit: bw.LinearModel) -> None:
    states = _box_states(unit, 300, seed=6)
    actions = example.first_come_first_served(states)
    assert unit.inadmissible(states, actions) is None
    for state, action in zip(states, actions, strict=True):
        named = dict(zip(unit.state_names, state, strict=True))
        expected = dict.fromkeys(unit.action_names, 0)
        for i, request in example.REQUESTS.items():
            for _ in range(int(named[f"waiting[{i}]"])):
                for n in range(1, request.ahead + 1):
                    then = {r: named[f"booked[{r}, {n}]"] + k for r, k in request.needs.items()}
                    if all(then[r] <= most for r, most in example.CAPACITY.items()):
                        named |= {f"booked[{r}, {n}]": units for r, units in then.items()}
                        expected[f"book[{i}, {n}]"] += 1
                        break
        assert list(expected.values()) == action.tolist()


def test_pricing_needs_whole_numbers(unit: bw.LinearModel) -> None:
    basis = example.value_function(unit)
    rows = bw.program.PricedRows().on(unit, basis)
    assert not rows.program.is_network
    coef = bw.solve(unit, basis, bw.Fixed()).coef
    whole, point = example.least_slack(unit, coef, whole=True)
    relaxed, between = example.least_slack(unit, coef, whole=False)
    assert whole == pytest.approx(0.0, abs=1e-9)
    assert rows.largest_violation(coef)[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(point, np.round(point), atol=1e-6)
    assert relaxed < -1e-3
    assert np.abs(between - np.round(between)).max() > 1e-3


@pytest.mark.slow
def test_looking_ahead_beats_first_come_first_served(capsys: pytest.CaptureFixture[str]) -> None:
    example.main(["--episodes", "5"])
    printed = capsys.readouterr().out
    assert printed.count("CONVERGED") == 4
    assert "paired difference" in printed
    assert printed.rstrip().endswith(", clearly better")
