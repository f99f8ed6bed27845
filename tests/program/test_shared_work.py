"""What is computed once: features for each row source, a program for each regularisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.backends import setup
from bellweight.plans import Auto, Candidate
from bellweight.plans.relatives.smoothed_program import SmoothedProgram
from bellweight.program import (
    AllRows,
    AlpProgram,
    PenaltyProgram,
    Solution,
    conditioning,
    minimum_norm_dual,
)


@pytest.fixture
def queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=60, discount=0.95)


def test_features_are_factorised_once_for_all_programs(
    queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    triangle = conditioning.triangle

    def counted(*args: Any) -> Any:
        calls.append(args)
        return triangle(*args)

    monkeypatch.setattr(conditioning, "triangle", counted)
    rows = AllRows().on(queue, bw.Polynomial(3))
    first = AlpProgram(rows)
    assert 1 <= len(calls) <= 2  # the features, and the constant beside them
    calls.clear()
    second, third = AlpProgram(rows), PenaltyProgram(rows, 0.5)
    assert calls == []
    assert first.functions is second.functions is third.functions is rows.functions


def test_every_program_returns_its_dual_decided(queue: bw.TabularModel) -> None:
    rows = AllRows().on(queue, bw.Polynomial(3))
    weights = np.full(queue.n_states, 1.0 / queue.n_states)
    moments = rows.moments(weights)
    programs = [AlpProgram(rows), PenaltyProgram(rows, 0.5), SmoothedProgram(rows, 0.1, weights)]
    found = [program.solve(moments, weights) for program in programs]
    for solution in found:
        assert isinstance(solution, Solution)
        assert solution.status is bw.Status.OPTIMAL
        assert (solution.dual > 0.0).all()
        reached = rows.rows(solution.keys)[0].T @ solution.dual
        assert reached == pytest.approx(moments, rel=1e-8)
    assert [solution.allows_violations for solution in found] == [False, True, True]
    shortest = minimum_norm_dual(AlpProgram(rows).optimum(moments, weights), rows, weights)
    assert np.array_equal(found[0].keys, shortest.keys)
    assert np.array_equal(found[0].dual, shortest.values)


def test_auto_builds_one_program_for_each_regularisation(
    queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    class Counted(PenaltyProgram):
        def __init__(self, rows: Any, regularisation: float, reference: Any = None) -> None:
            built.append(regularisation)
            super().__init__(rows, regularisation, reference)

    monkeypatch.setattr(setup, "PenaltyProgram", Counted)
    candidates = {
        f"{name} {delta}": Candidate(method, delta)
        for name, method in {"fixed": bw.Fixed(), "DIA": bw.DIA()}.items()
        for delta in (0.1, 1.0)
    }
    found = bw.solve(queue, bw.Polynomial(3), Auto(candidates=candidates))
    assert sorted(built) == [0.1, 1.0]
    assert found.failed == {}


def test_a_setup_takes_model_and_basis_from_its_rows(queue: bw.TabularModel) -> None:
    found = bw.weights.SolveSettings(model=queue, basis=bw.Polynomial(2)).setup()
    assert found.model is found.rows.model is queue
    assert found.basis is found.rows.basis
    assert found.regularised(0.5) is found.regularised(0.5) is not found
    assert found.regularised(0.5).rows is found.rows
