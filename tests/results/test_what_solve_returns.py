"""Everything that `solve` returns: a policy, a cost with its error, a text, a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw

METHODS: dict[str, Any] = {
    "method": bw.DIA(),
    "auto": bw.Auto(),
    "enriched": bw.Enriched(functions=4),
    "maximum": bw.plans.PointwiseMaximum(methods=[bw.Fixed(), bw.Fixed("uniform")]),
    "self-guided": bw.plans.SelfGuided(features=3, batches=2),
    "smoothed": bw.plans.SmoothedALP(budget=0.1),
}


@pytest.fixture(autouse=True)
def quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bw.errors.BellweightWarning)
        yield


@pytest.fixture(scope="module")
def queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=12)


@pytest.mark.parametrize("name", METHODS)
def test_it_has_a_policy_a_cost_a_text_and_a_file(
    name: str, queue: bw.TabularModel, tmp_path: Path
) -> None:
    found = bw.solve(queue, bw.Polynomial(2), METHODS[name])
    assert isinstance(found, bw.results.BaseResult)
    exact = float(queue.initial @ bw.exact.policy_value(queue, found.policy))
    assert found.cost.mean == pytest.approx(exact, rel=1e-9)
    assert found.cost.half_width == 0.0
    assert float(found.cost) == found.cost.mean
    assert f"{found.cost:.3f}" == f"{found.cost.mean:.3f}"

    found.save(tmp_path / "found.npz")
    loaded = type(found).load(tmp_path / "found.npz", model=queue)
    assert str(loaded) == str(found)
    assert loaded.cost == found.cost
    acts = [loaded.policy.action(x) for x in range(queue.n_states)]
    assert acts == [found.policy.action(x) for x in range(queue.n_states)]
    other = bw.problems.single_queue(capacity=13)
    with pytest.raises(bw.errors.FileError, match=r"found\.npz belongs to another model"):
        type(found).load(tmp_path / "found.npz", model=other)


def test_rounds_of_an_event_model_come_back_and_act(tmp_path: Path) -> None:
    model = em.network()
    rows = bw.SampledRows(bw.sample_states(model, 60, seed=1))
    plan = bw.Resampled(rounds=1, episodes=50)
    few = bw.Simulation(episodes=50, horizon=30)
    found = bw.solve(model, bw.Polynomial(1), plan, rows=rows, simulation=few)
    assert found.cost.mean == found.evaluation.mean
    assert found.cost.half_width == found.evaluation.half_width > 0.0
    assert " +- " in f"{found.cost:.2f}"
    found.save(tmp_path / "rounds.npz")
    loaded = bw.plans.ResampledResult.load(tmp_path / "rounds.npz", model=model)
    assert str(loaded) == str(found)
    states = np.zeros((1, model.dimension), dtype=np.int64)
    assert loaded.policy.actions(states).tolist() == found.policy.actions(states).tolist()


def test_the_bound_says_its_kind(queue: bw.TabularModel) -> None:
    result = bw.solve(queue, bw.Polynomial(6), bw.Fixed(), judge=False)
    optimum = float(queue.initial @ bw.exact.optimal(queue).values)
    assert result.lower_bound_kind == "exact"
    assert abs(result.lower_bound - optimum) < 0.02 * optimum
    assert result.lower_bound <= optimum <= result.cost.mean + 1e-9
    clinic = bw.problems.scheduling("tiny")
    few = bw.Simulation(episodes=20, horizon=50)
    guess = bw.solve(clinic, bw.Affine(), bw.Fixed(), simulation=few, judge=False)
    assert (guess.lower_bound, guess.lower_bound_kind) == (None, "unproven")


WRONG: dict[str, Any] = {
    "model is Result": lambda _, r: bw.evaluate(r, bw.Uniform()),
    "model is Polynomial": lambda m, _: bw.solve(bw.Polynomial(1), m, bw.DIA()),
    "method is the class DIA": lambda m, _: bw.solve(m, bw.Polynomial(1), bw.DIA),
    "basis is the class Polynomial": lambda m, _: bw.solve(m, bw.Polynomial, bw.DIA()),
    "simulation is 5": lambda m, _: bw.solve(m, bw.Affine(), bw.DIA(), simulation=5),
    "jobs is 0": lambda m, _: bw.solve(m, bw.Affine(), bw.DIA(), jobs=0),
    "path is None": lambda _, r: r.save(None),
    "path is <Result": lambda _, r: bw.report("page.html", r),
    "policy is Polynomial": lambda m, _: bw.exact.policy_value(m, bw.Polynomial(1)),
}


@pytest.mark.parametrize("told", WRONG)
def test_wrong_arguments_are_told_in_one_line(told: str, queue: bw.TabularModel) -> None:
    result = bw.solve(queue, bw.Polynomial(1), bw.DIA(), judge=False)
    with pytest.raises(bw.BellweightError) as caught:
        WRONG[told](queue, result)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_exact_values_are_those_of_a_result_or_its_policy(queue: bw.TabularModel) -> None:
    result = bw.solve(queue, bw.Polynomial(2), bw.DIA())
    values = bw.exact.policy_value(queue, result)
    assert np.array_equal(values, bw.exact.policy_value(queue, result.policy))
    assert queue.initial @ values == pytest.approx(result.cost.mean)


def test_a_name_of_a_room_is_told_where_it_lives() -> None:
    with pytest.raises(AttributeError, match=r"write bellweight\.program\.AllRows"):
        _ = bw.AllRows


def test_a_file_is_not_loaded_with_what_is_no_model(tmp_path: Path) -> None:
    queue = bw.problems.single_queue(capacity=9)
    bw.solve(queue, bw.Polynomial(1), bw.PIA()).save(tmp_path / "found.npz")
    with pytest.raises(bw.errors.ModelError, match="model is int"):
        bw.Result.load(tmp_path / "found.npz", model=5)  # type: ignore[arg-type]
