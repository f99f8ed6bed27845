"""Rows of states that are drawn anew in every pass: the program of the same states, stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.program import DrawnRows, StreamedRows, drawn_rows

STATES = 3_000
BASIS = bw.Polynomial(2)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short head and several pieces, so that most rows are never stored."""
    monkeypatch.setattr(drawn_rows, "_HEAD", 40)
    monkeypatch.setattr(drawn_rows, "_PIECE_STATES", 700)


def drawn(**options: Any) -> bw.Result:
    rows = DrawnRows(STATES, seed=3, **options)
    return bw.solve(em.network(), BASIS, bw.Fixed(), rows=rows, judge=False)


def test_the_program_is_that_of_the_same_states_stored() -> None:
    source = DrawnRows(STATES, seed=3).on(em.network(), BASIS)
    states, actions = source.support_of(np.arange(source.n_pairs))
    stored = bw.SampledRows(np.unique(states, axis=0))
    expected = bw.solve(em.network(), BASIS, bw.Fixed(), rows=stored, judge=False)
    found = drawn()
    assert found.status is bw.Status.CONVERGED
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert f"{source.n_pairs:,} rows drawn anew" in str(found)
    listed = stored.on(em.network(), BASIS)
    coef = np.random.default_rng(0).normal(size=15)
    assert source.separate(coef, 1.0).violation == listed.separate(coef, 1.0).violation
    assert set(actions.tolist()) == set(range(em.network().n_actions))


def test_a_run_that_was_cut_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn()
    kept = tmp_path / "rows.json"
    separate, passes = StreamedRows.separate, []

    def counted(self: StreamedRows, *args: Any, **options: Any) -> Any:
        if len(passes) == 2 and limit:
            raise KeyboardInterrupt
        passes.append(1)
        return separate(self, *args, **options)

    monkeypatch.setattr(StreamedRows, "separate", counted)
    limit = True
    DrawnRows(STATES, 3, kept).on(em.network(), BASIS).separate(np.ones(15), 1.0)
    with pytest.raises(KeyboardInterrupt):
        drawn(kept_in=kept)
    limit, before = False, len(passes)
    assert before == 2
    again = drawn(kept_in=kept)
    assert again.objective == pytest.approx(whole.objective, rel=1e-9)
    fresh = DrawnRows(STATES, 3, kept).on(em.network(), BASIS)
    assert fresh.passes == len(passes)
    passes.clear()
    assert drawn(kept_in=kept).objective == pytest.approx(whole.objective, rel=1e-9)
    assert len(passes) <= 3  # all rows that matter are in the file


def test_files_of_other_runs_are_refused(tmp_path: Path) -> None:
    kept = tmp_path / "rows.json"
    DrawnRows(STATES, 3, kept).on(em.network(), BASIS).separate(np.ones(15), 1.0)
    with pytest.raises(bw.errors.ArgumentError, match="another model, basis, seed"):
        DrawnRows(STATES, 4, kept).on(em.network(), BASIS)
    document = json.loads(kept.read_text(encoding="utf-8"))
    for keys in ([-1], [10**15]):
        kept.write_text(json.dumps({**document, "keys": keys}), encoding="utf-8")
        with pytest.raises(bw.errors.ArgumentError, match="a row that is none of this run"):
            DrawnRows(STATES, 3, kept).on(em.network(), BASIS)
    large = json.dumps({**document, "keys": [10**30]})
    for text in ("[]", "[" * 100_000, large, large.replace("[", "[[").replace("]", "]]")):
        kept.write_text(text, encoding="utf-8")
        with pytest.raises(bw.errors.ArgumentError, match="holds no rows that a run has kept"):
            DrawnRows(STATES, 3, kept).on(em.network(), BASIS)
    with pytest.raises(bw.errors.ArgumentError, match="states is 0"):
        DrawnRows(0).on(em.network(), BASIS)
    with pytest.raises(bw.errors.ArgumentError, match="expected 0 with DrawnRows"):
        bw.solve(em.network(), BASIS, bw.Fixed(), rows=DrawnRows(9), regularisation=0.5)
