"""Machine maintenance: costs and next levels by hand, and the rule of thumb."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.maintenance import machine_maintenance, replace_the_worst


@pytest.fixture(scope="module")
def model() -> bw.StepModel:
    return machine_maintenance(3, 4, wear=[0.2, 0.5, 0.9], burden=[2.0, 1.0, 0.5], draws=400)


def test_machines_wear_by_themselves_and_the_crew_renews(model: bw.StepModel) -> None:
    both = model.actions.index("machine 0 and machine 2")
    state = np.array([[2, 1, 3], [2, 1, 3]])
    cost, chances, after = model.expand(state, np.array([0, both]))
    assert cost == pytest.approx([8.0 + 1.0 + 4.5, 8.0 + 1.0 + 4.5 + 8.0])
    worn = model.nodes < [0.2, 0.5, 0.9]
    np.testing.assert_array_equal(after[0], np.minimum(state[0] + worn, 3))
    np.testing.assert_array_equal(after[1][:, [0, 2]], 0)
    np.testing.assert_array_equal(after[1][:, 1], 1 + worn[:, 1])
    assert chances.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_the_rule_renews_the_two_most_worn(model: bw.StepModel) -> None:
    rule = replace_the_worst(3, least=2).on(model)
    found = [model.actions[rule.action(x)] for x in ([1, 3, 2], [1, 1, 1], [0, 1, 2])]
    assert found == ["machine 1 and machine 2", "none", "machine 2"]
