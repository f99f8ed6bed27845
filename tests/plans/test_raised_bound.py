"""Functions that the dual asks for raise the proven bound."""

from __future__ import annotations

from itertools import pairwise

import pytest

import bellweight as bw
from bellweight.plans import RaisedBound
from bellweight.problems.queue_network import QueueNetwork


def test_every_round_raises_the_bound_and_none_passes_the_optimum() -> None:
    net = QueueNetwork([0.2, 0.2], [0.5, 0.4], routes=(None, None), groups=((0, 1),))
    options = {"discount": 0.8, "initial": "geometric", "decay": 0.5, "compiled": False}
    plan = RaisedBound(functions=4, per_round=2, last_kink=4, levels=(1,))
    found = bw.solve(net.model(**options), bw.Affine(), plan, judge=False)
    bounds = [one.lower_bound for one in found.rounds]
    assert all(b >= a - 1e-9 * a for a, b in pairwise(bounds))
    assert found.lower_bound > 1.01 * bounds[0]
    names = [name for one in found.rounds for name in one.added]
    assert len(set(names)) == len(names) <= 4
    table = net.model(upper=12, **options).to_tabular()
    assert found.lower_bound < float(table.initial @ bw.exact.optimal(table).values)
    assert "stopped" in str(found)


def test_other_models_are_refused() -> None:
    with pytest.raises(bw.BellweightError, match="declared scopes"):
        bw.solve(bw.problems.single_queue(capacity=5), bw.Affine(), RaisedBound())
