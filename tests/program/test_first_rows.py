"""The rows a program starts with on a grid: they must tell all basis functions apart."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.program import AlpProgram, TabularRows
from bellweight.program import listed_rows as rows_module


@pytest.fixture(scope="module")
def clinic() -> bw.TabularModel:
    return bw.problems.scheduling("tiny").to_tabular(clip=True)


def rows_of(clinic: bw.TabularModel) -> TabularRows:
    return bw.program.AllRows().on(clinic, bw.Polynomial(4))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the program were too large to be loaded whole."""
    monkeypatch.setattr(rows_module, "_WHOLE_PAIRS", 0)
    monkeypatch.setattr(rows_module, "_WHOLE_PER_FUNCTION", 0)


def test_a_program_with_few_rows_to_a_function_is_loaded_whole(clinic: bw.TabularModel) -> None:
    assert len(rows_of(clinic).seeds(None)) == clinic.n_pairs == 4_417


@pytest.mark.usefixtures("few")
def test_the_first_states_of_a_grid_tell_all_functions_apart(
    clinic: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(clinic)

    def rank() -> int:
        states = np.unique(clinic.pair_state[rows.seeds(clinic.initial)])
        assert len(states) < 0.6 * clinic.n_states
        return int(np.linalg.matrix_rank(rows.features(states)))

    assert rank() == 59
    monkeypatch.setattr(TabularRows, "_telling", lambda self, states: states)
    assert rank() < 59  # every fourth state of a grid with four values in the last direction


@pytest.mark.usefixtures("few")
def test_rows_missed_at_first_do_not_make_the_program_look_unbounded(
    clinic: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rows_of(clinic)
    monkeypatch.setattr(TabularRows, "_telling", lambda self, states: states)
    rows = rows_of(clinic)
    weights = bw.solve(clinic, bw.Polynomial(1), bw.FromPolicy()).weights
    assert weights is not None
    moments = rows.moments(weights)
    found = AlpProgram(rows, weights).solve(moments)
    with monkeypatch.context() as patch:
        patch.setattr(rows_module, "_WHOLE_PAIRS", 5_000)
        expected = AlpProgram(whole, weights).solve(moments)
    assert found.status is bw.Status.OPTIMAL
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
