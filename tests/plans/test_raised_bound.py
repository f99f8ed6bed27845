"""Functions that the dual asks for raise the proven bound."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import bellweight as bw
from bellweight.cli import exits
from bellweight.cli.main import run
from bellweight.models import FactoredModel, Local
from bellweight.plans import RaisedBound, RaisedBoundResult
from bellweight.problems.computers import computer_ring
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
    assert "Stopped" in str(found)
    assert found.result.lower_bound == found.lower_bound
    assert found.cost is None


def machines() -> FactoredModel:
    """Three machines in a row: each wears faster beside a worn one, and one is renewed a step."""

    def law(i: int) -> Local:
        def chances(neighbour: int, level: int, action: int) -> list[float]:
            wear = 0.3 + 0.1 * neighbour
            found = [0.0, 0.0, 0.0]
            found[0 if action == i else level] += 1.0 if action == i else 1.0 - wear
            found[min(level + 1, 2)] += 0.0 if action == i else wear
            return found

        return Local([(i + 1) % 3, i], chances)

    return FactoredModel(
        sizes=[3] * 3, actions=3, laws=[law(i) for i in range(3)], discount=0.9,
        costs=[Local([i], lambda level, action: float(level**2)) for i in range(3)],
        initial=[0, 0, 0], compiled=False,
    )  # fmt: skip


def test_factored_models_too_and_what_is_found_is_judged_and_saved(tmp_path: Path) -> None:
    model = machines()
    plan = RaisedBound(functions=3, per_round=1, last_kink=1, levels=(1,))
    found = bw.solve(model, bw.Affine(), plan)
    listed = model.to_tabular()
    best = float(listed.initial @ bw.exact.optimal(listed).values)
    assert found.rounds[0].lower_bound < found.lower_bound <= best
    assert found.judgement is not None
    assert found.cost == found.judgement.cost
    found.save(tmp_path / "raised.npz")
    again = RaisedBoundResult.load(tmp_path / "raised.npz", model)
    assert again.lower_bound == found.lower_bound
    assert again.policy.action([2, 0, 1]) == found.policy.action([2, 0, 1])
    page = tmp_path / "raised.html"
    assert run(["report", str(tmp_path / "raised.npz"), "--out", str(page)]) == exits.DONE
    assert "Raised bound on" in page.read_text(encoding="utf-8")
    assert bw.certify(model, found.result, episodes=20).kind == "exact"


def test_entries_of_functions_are_those_of_a_program_that_has_them() -> None:
    net = QueueNetwork([0.1, 0.1], [0.4, 0.4], routes=(1, None), groups=((0,), (1,)))
    model = net.model(discount=0.8, compiled=False)
    wide = bw.Stacked(bw.PiecewiseLinear([2]), bw.bases.ClippedProducts([(0, 1)], [2]))
    rows = bw.LocalRows().on(model, wide)
    keys = rows.seeds(None)
    assert (rows.slopes[keys] >= 0).any()
    entries = rows.entries_of(bw.bases.ClippedProducts([(0, 1)], [2]), keys)
    np.testing.assert_allclose(entries[:, 0], rows.rows(keys)[0][:, -1], rtol=0.0, atol=1e-14)


def test_the_time_is_kept() -> None:
    plan = RaisedBound(functions=3, per_round=1, last_kink=1, levels=(1,))
    found = bw.solve(machines(), bw.Affine(), plan, judge=False, stop=bw.Stop(max_seconds=1e-9))
    assert found.stopped == "the time is up"
    assert len(found.rounds) == 1


def test_a_factored_model_needs_no_list_of_joint_successors() -> None:
    ring = computer_ring(20, compiled=False)
    plan = RaisedBound(functions=1, levels=(1,))
    found = bw.solve(ring, bw.Affine(), plan, judge=False)
    bounds = [one.lower_bound for one in found.rounds]
    assert len(bounds) == 2
    assert bounds[1] > bounds[0] + 1e-6
    assert all("min(" in name for name in found.rounds[1].added)  # hinges are nothing on {0, 1}


def test_other_models_are_refused() -> None:
    with pytest.raises(bw.BellweightError, match="declared scopes"):
        bw.solve(bw.problems.single_queue(capacity=5), bw.Affine(), RaisedBound())


def test_regularisation_is_refused() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="expected 0 with LocalRows"):
        bw.solve(machines(), bw.Affine(), RaisedBound(), regularisation=1.0)


@pytest.mark.parametrize("levels", [3, "13", (0,), (1, 2.5)])
def test_levels_are_whole_numbers_above_zero(levels: object) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=r"^levels"):
        RaisedBound(levels=levels)  # type: ignore[arg-type]


def test_one_level_is_shown_as_it_is_typed() -> None:
    assert repr(RaisedBound(levels=[2])) == "RaisedBound(levels=(2,))"
