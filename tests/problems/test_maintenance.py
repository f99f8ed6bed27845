"""Machine maintenance: costs and next levels by hand, the rules of thumb, a small exact optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import FactoredModel
from bellweight.problems.maintenance import machine_maintenance, replace_the_worst

BURDEN = [2.0, 1.2, 0.5]


@pytest.fixture(scope="module")
def model() -> FactoredModel:
    small = machine_maintenance(3, 4, wear=[0.2, 0.4, 0.6], burden=BURDEN, visit=4.0)
    return replace(small, compiled=False)  # in so few states plain Python is quicker


def test_machines_wear_by_themselves_and_the_crew_renews(model: FactoredModel) -> None:
    table = model.to_tabular()
    both = model.actions.index("machine 0 and machine 2")
    start = int(np.flatnonzero((table.states == [2, 1, 3]).all(axis=1))[0])
    pairs = {int(table.pair_action[k]): k for k in np.flatnonzero(table.pair_state == start)}
    costs = 2.0 * 4 + 1.2 * 1 + 0.5 * 9
    assert table.cost[pairs[0]] == pytest.approx(costs)
    assert table.cost[pairs[both]] == pytest.approx(costs + 8.0)
    found = {}
    for action in (0, both):
        row = table.transition[[pairs[action]], :].tocoo()
        after = (tuple(table.states[x].astype(int).tolist()) for x in row.col)
        found[action] = dict(zip(after, row.data.tolist(), strict=True))
    assert found[both] == pytest.approx({(0, 1, 0): 0.6, (0, 2, 0): 0.4})
    idle = {(2, 1, 3): 0.48, (3, 1, 3): 0.12, (2, 2, 3): 0.32, (3, 2, 3): 0.08}
    assert found[0] == pytest.approx(idle)


def test_the_rules_renew_the_most_worn_or_the_dearest(model: FactoredModel) -> None:
    states = ([1, 3, 2], [1, 1, 1], [0, 1, 2], [2, 2, 3])
    worst = replace_the_worst(3, least=2).on(model)
    found = [model.actions[worst.action(x)] for x in states]
    assert found == ["machine 1 and machine 2", "none", "machine 2", "machine 0 and machine 2"]
    dearest = replace_the_worst(3, least=2, burden=BURDEN).on(model)
    found = [model.actions[dearest.action(x)] for x in states]
    assert found == ["machine 1 and machine 2", "none", "machine 2", "machine 0 and machine 1"]


def test_sums_of_tables_give_the_optimal_policy_of_three_machines(model: FactoredModel) -> None:
    table = model.to_tabular()
    optimum = table.initial @ bw.exact.optimal(table).values
    basis = bw.PiecewiseLinear([1, 2])
    moments = bw.solve(table, basis, bw.DIA(), judge=False).moments  # without a simulation
    result = bw.solve(model, basis, bw.Fixed(moments=moments), rows=bw.LocalRows(), judge=False)
    chosen = bw.TablePolicy(np.asarray(result.policy.actions(table.states.astype(np.int64))))
    ours = table.initial @ bw.exact.policy_value(table, chosen)
    assert result.lower_bound <= optimum * (1.0 + 1e-9)
    assert optimum * (1.0 - 1e-9) <= ours <= 1.002 * optimum
    for least in (1, 2, 3):
        for burden in (None, BURDEN):
            rule = replace_the_worst(3, least, burden)
            assert table.initial @ bw.exact.policy_value(table, rule) > 1.04 * ours


@pytest.mark.slow  # three machines meet the exact optimum every time
def test_ten_machines_cost_less_than_with_the_worst_renewed() -> None:
    ten = machine_maintenance()
    result = bw.solve(
        ten, bw.PiecewiseLinear([1, 2, 3]), bw.DIA(), rows=bw.LocalRows(),
        simulation=bw.Simulation(episodes=100), judge=False,
    )  # fmt: skip
    rules = {f"worst {least}": replace_the_worst(10, least) for least in (1, 2)}
    found = bw.compare(ten, {"ours": result.policy, **rules}, episodes=200, seed=1)
    for name in rules:
        gap = found.differences[name]
        assert gap.mean > 3.0 * gap.half_width > 0.0


def test_a_chance_of_wear_is_a_probability() -> None:
    with pytest.raises(bw.BellweightError, match=r"wear\[1\] is 1.5"):
        machine_maintenance(2, wear=[0.1, 1.5])
