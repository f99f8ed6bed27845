"""Table 2 judged: intervals, verdicts and what explains them, on made-up costs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats
from table2_small import made_up, summary

from bellweight.reproduce import verdicts
from bellweight.reproduce.network import table2_view
from bellweight.reproduce.network.runs import (
    LAST_BUFFER,
    METHODS,
    Table2Settings,
)
from bellweight.reproduce.network.summary import estimate
from bellweight.reproduce.paper import Printed


def test_the_two_intervals_answer_different_questions() -> None:
    values, widths = [10.0, 14.0, 12.0], [3.0, 4.0, 12.0]
    found = estimate(values, widths)
    assert found.mean == pytest.approx(12.0)
    assert found.simulated == pytest.approx(13.0 / 3.0)
    assert found.deviation == pytest.approx(2.0)
    assert found.between == pytest.approx(stats.t.ppf(0.975, 2) * 2.0 / np.sqrt(3.0))
    assert (found.low, found.high) == (10.0, 14.0)
    assert estimate(values, widths, sampled=False).between is None
    alone = estimate([-5.0], [4.0])
    assert (alone.simulated, alone.between, alone.deviation) == (4.0, None, None)
    assert alone.is_below
    assert not alone.is_below_for_all_samples
    assert not estimate([-5.0], [6.0]).is_below
    assert estimate([-5.0, -5.5, -6.0], [0.1] * 3).is_below_for_all_samples
    assert not estimate([-1.0, -9.0], [0.1] * 2).is_below_for_all_samples


@pytest.mark.parametrize(
    ("cost", "episodes", "spread", "word", "reason"),
    [
        (13_150.0, 400_000, 300.0, "matches", ""),
        (13_250.0, 400_000, 300.0, "matches", ""),
        (13_000.0, 399_999, 300.0, "not judged", "too few episodes: 400,000 are needed"),
        (13_000.0, 400_000, 300.0, "better", "constraint sample.*is within it"),
        (13_400.0, 400_000, 300.0, "differs", "constraint sample.*is within it"),
        (12_000.0, 400_000, 300.0, "better", "constraint sample.*is outside it"),
        (13_000.0, 400_000, 50.0, "better", "no reason is known"),
    ],
)
def test_verdicts(cost: float, episodes: int, spread: float, word: str, reason: str) -> None:
    found = verdicts.table2(
        cost,
        20.0,
        Printed(13_200.0, 50.0),
        episodes,
        samples=5,
        lowest=cost - 150.0,
        highest=cost + 150.0,
        between_samples=spread,
        between_methods=100.0,
    )
    assert found.word == word
    assert found.difference == pytest.approx(13_200.0 - cost)
    assert re.search(reason, found.reason) if reason else found.reason == ""


def test_one_sample_explains_nothing() -> None:
    place = {"lowest": 1.0, "highest": 1.0, "between_samples": 5.0, "between_methods": 0.0}
    found = verdicts.table2(1.0, 0.1, Printed(9.0, 0.1), 400_000, samples=1, **place)
    assert "no reason is known" in found.reason


@pytest.mark.parametrize(
    ("cost", "word"), [(12_900.0, "below"), (13_200.0, "near"), (13_400.0, "above")]
)
def test_baselines_stand_beside_the_papers_best(cost: float, word: str) -> None:
    assert verdicts.table2_baseline(cost, 20.0, 400_000) == f"{word} the paper's best"
    assert verdicts.table2_baseline(cost, 20.0, 399_999) == "not judged"


def test_a_whole_table_is_judged() -> None:
    def cost(sample: int, policy: str) -> float:
        wide = {"DIA (0.9)": -400.0 + 150.0 * sample, "PIA": -60.0 + sample}
        return 12_900.0 + 10.0 * sample + wide.get(policy, 30.0 if policy in METHODS else 0.0)

    table = made_up(cost, Table2Settings(samples=4, episodes=100_000))
    adaptive = summary(table, 60_000, "DIA (0.9)")
    assert adaptive.verdict.word == "better"
    assert "constraint sample" in adaptive.verdict.reason
    # PIA's samples lie closer together than the methods.
    assert "no reason" in summary(table, 60_000, "PIA").verdict.reason
    assert summary(table, 60_000, LAST_BUFFER).standing == "below the paper's best"
    notes = " ".join(table.tables()[0].notes)
    assert "interval of simulation clear of zero: PIA, DIA (0.9); " in notes
    assert "for samples in general too: PIA. Adaptive methods among the first: PIA, D" in notes
    assert "191, 192, 193, 194 (the paper's: 193)" in notes
    assert "81, 82, 83, 84 (the paper's: 92)" in notes
    generation = summary(table, 5_000, "Random").generation
    assert generation.seconds == 25.0
    found = {entry.what: entry for entry in table.times()}
    timed = found["5,000 states, Random, mean of 4 samples"]
    assert (timed.seconds, timed.paper_seconds, timed.word) == (25.0, 1_574.53, "better")
    assert timed.pace == "63 times faster"
    # The paper's time is that of its own number of states.
    assert found["60,000 states, Random, mean of 4 samples"].paper_seconds is None
    assert not any("seconds" in c.key for shown in table.tables() for c in shown.columns)
    judged = {entry.what: entry.verdict.word for entry in table.compared()}
    assert list(judged) == [*METHODS, "Largest total of a sample", "Largest queue of a sample"]
    assert "not judged" not in judged.values()
    full = made_up(cost, Table2Settings())
    assert "not judged" not in {entry.verdict.word for entry in full.compared()}
    assert judged["Largest total of a sample"] == "matches"
    assert judged["Largest queue of a sample"] == "differs"
    assert "fewer than 400,000" not in " ".join(table2_view.general_notes(table))


def test_few_episodes_warrant_no_absolute_comparison() -> None:
    table = made_up(lambda *_: 12_000.0, Table2Settings(samples=4, episodes=99_999))
    assert "fewer than 400,000: absolute costs cannot" in " ".join(table2_view.general_notes(table))
    rows = table.summaries(5_000)
    assert {row.verdict.word for row in rows if row.verdict is not None} == {"not judged"}
    assert {row.standing for row in rows if row.verdict is None} == {"not judged"}
