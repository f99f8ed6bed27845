"""What plans return is judged as a single solve is: against acting at random and the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.plans import Enriched, Resampled
from bellweight.plans.relatives import PointwiseMaximum, SelfGuided

TABULAR = {
    "enriched": Enriched(method=bw.Fixed(), functions=2),
    "guided": SelfGuided(features=2, batches=1),
    "maximum": PointwiseMaximum(methods=[bw.Fixed(), bw.Fixed("uniform")]),
}


@pytest.mark.parametrize("name", TABULAR)
def test_a_plan_on_a_tabular_model_is_judged_exactly(
    name: str, small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    found: Any = bw.solve(small_queue, bw.Polynomial(1), TABULAR[name])
    told = found.judgement
    at_random = float(small_queue.initial @ bw.exact.policy_value(small_queue, bw.Uniform()))
    assert told.is_exact
    assert told.random.mean == pytest.approx(at_random, rel=1e-12)
    assert told.minus_random.mean == pytest.approx(found.cost.mean - at_random, rel=1e-9)
    assert "At random: " in str(found)
    found.save(tmp_path / "found.npz")
    again = type(found).load(tmp_path / "found.npz", small_queue)
    assert again.judgement == told
    assert again.warnings == found.warnings
    unjudged: Any = bw.solve(small_queue, bw.Polynomial(1), TABULAR[name], judge=False)
    assert unjudged.judgement is None


def test_the_target_of_the_plan_s_method_is_judged_too(small_queue: bw.TabularModel) -> None:
    lazy = bw.TablePolicy(np.zeros(small_queue.n_states, dtype=int))
    plan = Enriched(method=bw.DIA(target=lazy), functions=1)
    found = bw.solve(small_queue, bw.Polynomial(1), plan)
    assert found.judgement is not None
    assert found.judgement.target is not None
    cost = float(small_queue.initial @ bw.exact.policy_value(small_queue, lazy))
    assert found.judgement.target.mean == pytest.approx(cost, rel=1e-12)


def test_a_plan_whose_policy_is_no_better_than_random_warns() -> None:
    """A constant value function sees the cost of one step only: it stays where that is cheap."""
    model = bw.TabularModel.from_arrays(
        [[1.0, 2.0], [0.0, 0.0]], [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
        0.9, [1.0, 0.0],
    )  # fmt: skip
    assert bw.solve(model, bw.Polynomial(0), bw.Fixed(), judge=False).cost.mean == pytest.approx(10)
    plan = PointwiseMaximum(methods=[bw.Fixed(), bw.Fixed("uniform")])
    with pytest.warns(bw.errors.BellweightWarning) as caught:
        found: Any = bw.solve(model, bw.Polynomial(0), plan)
    said = [str(note.message) for note in caught]
    assert any("worse than acting at random" in note for note in said), said
    assert any("worse than acting at random" in note for note in found.warnings)


def test_resampled_rounds_are_judged_by_simulation() -> None:
    model = em.network()
    rows = bw.SampledRows(bw.sample_states(model, 200, seed=1))
    plan = Resampled(rounds=1, episodes=200)
    simulation = bw.Simulation(episodes=50)
    found = bw.solve(model, bw.Polynomial(2), plan, rows=rows, simulation=simulation)
    told = found.judgement
    assert told is not None
    assert told.random is not None
    assert told.minus_random is not None
    both = bw.compare(
        model, {"policy": found.policy, "random": bw.Uniform()}, told.episodes,
        horizon=told.horizon, seed=told.seed, baseline="random",
    )  # fmt: skip
    assert both.differences["policy"].mean == pytest.approx(told.minus_random.mean, rel=1e-9)
    assert "At random: " in str(found)
