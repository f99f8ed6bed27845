"""How good is the policy? The gap on every kind of model, and its one mechanism with certify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates import path_bound, proven_gap, relaxation
from bellweight.problems.queue_network import QueueNetwork
from tests.linear_models import shop

LINE = QueueNetwork([0.2, 0.0], [0.5, 0.4], routes=(1, None), groups=((0, 1),))
KINKS = bw.PiecewiseLinear([1, 2, 4])


@pytest.fixture(scope="module")
def line() -> bw.EventModel:
    return LINE.model(discount=0.8, initial=(2, 1))


def test_a_tabular_gap_is_exact_and_holds_the_optimum() -> None:
    queue = bw.problems.single_queue(capacity=40)
    result = bw.solve(queue, bw.Polynomial(2), bw.Fixed("uniform"))
    gap = result.gap(queue)
    optimum = float(queue.initial @ bw.exact.optimal(queue).values)
    assert gap.kind == gap.lower_bound_kind == "exact"
    assert gap.lower_bound <= optimum <= gap.cost
    assert gap.lost == pytest.approx(bw.certify(queue, result).bound)
    assert gap.relative == pytest.approx(gap.lost / gap.cost)
    assert f"so at most {100.0 * gap.relative:.3g} % " in str(gap)
    worse = result.gap(queue, bw.Uniform())
    assert worse.cost > gap.cost
    assert worse.lower_bound == gap.lower_bound


def test_the_certificate_prints_the_same_lines(line: bw.EventModel) -> None:
    result = bw.solve(line, KINKS, bw.Fixed(), rows=bw.LocalRows(), judge=False)
    settings = {"episodes": 500, "seed": 4}
    gap, certificate = result.gap(line, **settings), bw.certify(line, result, **settings)
    assert str(gap) in str(certificate)
    assert gap == certificate.gap


def test_local_rows_prove_the_bound_and_the_cost_is_simulated(line: bw.EventModel) -> None:
    result = bw.solve(line, KINKS, bw.Fixed(), rows=bw.LocalRows(), judge=False)
    gap = result.gap(line, episodes=1_000)
    assert (gap.kind, gap.lower_bound_kind, gap.confidence) == ("estimated", "exact", 0.95)
    assert gap.lower_bound == result.lower_bound
    mean = bw.evaluate(line, result.policy, 1_000, seed=result.fresh_seed).mean
    assert mean < gap.cost < 1.2 * mean
    assert "estimated with 95 % confidence: elimination has searched" in str(gap)


def test_a_sample_of_rows_proves_nothing_until_the_future_is_known(line: bw.EventModel) -> None:
    table = LINE.model(discount=0.8, initial=(2, 1), upper=12).to_tabular()
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    states = bw.sample_states(line, 40, bw.Uniform(), seed=1)
    sampled = bw.SampledRows(states)
    result = bw.solve(line, bw.Polynomial(2), bw.Fixed(), rows=sampled, judge=False)
    gap = result.gap(line, episodes=500)
    assert (gap.kind, gap.lower_bound, gap.lost) == ("unproven", None, None)
    assert "nothing is proven about the loss" in str(gap)
    assert "paths=" in gap.advice
    relaxed = result.gap(line, episodes=500, paths=40, horizon=25)
    assert (relaxed.kind, relaxed.lower_bound_kind) == ("estimated", "estimated")
    assert 0.7 * optimum < relaxed.lower_bound < optimum < relaxed.cost
    assert relaxed.lost == pytest.approx(relaxed.cost - relaxed.lower_bound)


def test_a_network_with_too_many_states_has_a_program_for_each_path(
    line: bw.EventModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bw.solve(line, KINKS, bw.Fixed(), judge=False)
    flat = replace(result, coef=np.zeros_like(result.coef), lower_bound=None)
    monkeypatch.setattr(relaxation, "_MOST_SUCCESSORS", 60)
    gap = flat.gap(line, episodes=200, paths=40, horizon=20, seed=2, jobs=1)
    wanted = path_bound(line, paths=40, horizon=20, confidence=0.975, seed=2, jobs=1)
    assert gap.lower_bound == wanted.bound
    assert gap.lower_bound_kind == "estimated"


def test_a_linear_model_has_a_gap() -> None:
    model = shop()
    result = bw.solve(model, bw.Affine(), bw.Fixed(), judge=False)
    gap = result.gap(model, episodes=200)
    assert gap.kind in ("estimated", "unproven")
    assert str(gap) in str(bw.certify(model, result, episodes=200))


def test_too_few_paths_are_refused_before_anything_is_computed(
    line: bw.EventModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bw.solve(line, KINKS, bw.Fixed(), rows=bw.LocalRows(), judge=False)
    monkeypatch.setattr(proven_gap, "certify", lambda *_, **__: pytest.fail("it was certified"))
    with pytest.raises(bw.BellweightError, match="at least 40"):
        result.gap(line, episodes=100, paths=3)
    with pytest.raises(bw.BellweightError, match="confidence"):
        result.gap(line, episodes=100, confidence=1.5)
