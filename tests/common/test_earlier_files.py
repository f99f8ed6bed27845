"""Files of format 1, as the version before wrote them, still load and say the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import bellweight as bw

FILES = Path(__file__).parent / "format_1"


def written(path: Path) -> str:
    with np.load(path) as archive:
        return str(archive["bellweight"])


@pytest.mark.parametrize("name", ["result", "league", "linear", "cycling", "model"])
def test_the_files_are_of_format_1(name: str) -> None:
    assert json.loads(written(FILES / f"{name}.npz"))["format"] == 1


def test_a_result_gets_an_estimate_and_a_kind_of_bound() -> None:
    queue = bw.problems.single_queue(capacity=6)
    result = bw.Result.load(FILES / "result.npz", model=queue)
    assert bw.TabularModel.load(FILES / "model.npz").digest == queue.digest
    assert result.cost == bw.evaluation.Estimate(163.19046554617182, 0.0)
    assert (result.lower_bound, result.lower_bound_kind) == (110.7772717264053, "exact")
    assert [result.policy.action(x) for x in range(7)] == [0, 1, 1, 1, 1, 1, 1]
    assert isinstance(result.method.target, bw.TablePolicy)
    assert "cost        163.19" in str(result)


def test_phases_of_a_cycle_get_estimates() -> None:
    result = bw.Result.load(FILES / "cycling.npz")
    assert result.status is bw.Status.CYCLING
    assert result.cost == min((phase.cost for phase in result.phases), key=float)
    assert result.cost.mean == 12391.905109036921
    assert all(phase.cost.half_width == 0.0 for phase in result.phases)


def test_a_race_gets_an_estimate() -> None:
    queue = bw.problems.single_queue(capacity=6)
    race = bw.plans.RaceResult.load(FILES / "league.npz", model=queue)
    assert (race.winner, race.cost) == ("Fixed", bw.evaluation.Estimate(163.19046554617182))
    assert race.policy.action(0) == 0


def desk(first_cost: float = 12.0) -> bw.LinearModel:
    made = bw.LinearBuilder(0.9)
    jobs = made.state("jobs", upper=8, initial=bw.Law.uniform(0, 8))
    serve = made.action("serve", upper=3)
    made.require(serve <= jobs)
    made.follow(jobs, jobs - serve + made.noise("new", bw.Law.uniform(0, 2)))
    made.cost(jobs + 0.5 * serve)
    return made.build(first_cost=first_cost, cost_growth=2.0)


def test_a_simulated_cost_keeps_its_error_and_the_model_its_fingerprint() -> None:
    result = bw.Result.load(FILES / "linear.npz", model=desk())
    assert result.cost.mean == 21.397865064752654
    assert result.cost.half_width == result.judgement.cost.half_width > 0.0
    assert result.lower_bound_kind == "unproven"
    with pytest.raises(bw.errors.FileError, match="belongs to another model"):
        bw.Result.load(FILES / "linear.npz", model=desk(first_cost=13.0))


def test_names_in_files_are_not_those_of_classes(tmp_path: Path) -> None:
    queue = bw.problems.single_queue(capacity=6)
    target = bw.TablePolicy(np.full(7, 1))
    bw.solve(queue, bw.Polynomial(2), bw.DIA(target=target), judge=False).save(tmp_path / "r.npz")
    text = written(tmp_path / "r.npz")
    assert '"type": "Table"' in text
    assert "TablePolicy" not in text
