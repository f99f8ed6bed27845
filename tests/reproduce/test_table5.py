"""Table 5: the tiny clinic in full, beside the paper's numbers, which are not reproduced."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import bellweight as bw
from bellweight import reproduce
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Wanted
from bellweight.reproduce.clinic import table5, table5_view
from bellweight.reproduce.clinic.table5 import Table5
from bellweight.reproduce.paper import TABLE5, TABLE5_DIFFERENCE, Printed

ARTEFACT = reproduce.find("table5")


@pytest.fixture(scope="module")
def found() -> Table5:
    kept: list[int] = []
    table = ARTEFACT.reproduce(
        reproduce.Settings(episodes=500, seed=3),
        keep=lambda so_far: kept.append(len(so_far.rows().rows)),
    )
    assert kept == [4, 8, 12, 16]
    return table


def test_sizes_and_ranks(found: Table5) -> None:
    assert found.complete
    sizes = [(part.degree, part.n_basis, part.rank) for part in found.parts]
    assert sizes == [(1, 5, 5), (2, 15, 15), (3, 35, 33), (4, 70, 59)]


def test_no_cost_is_below_the_optimum_and_no_loss_above_its_bound(found: Table5) -> None:
    best = found.optimum
    assert best.all_time == pytest.approx(12_387.0728, abs=1e-3)
    assert best.exact == pytest.approx(12_375.3686, abs=1e-3)
    for part in found.parts:
        for row in part.rows:
            assert row.all_time >= best.all_time - 1e-6
            assert row.all_time - best.all_time <= row.bound
            assert row.all_time > row.exact
            assert row.simulated is not None
            assert abs(row.simulated.mean - row.exact) <= 2.0 * row.simulated.half_width


def test_what_the_paper_prints_is_not_what_comes_out(found: Table5) -> None:
    for degree, printed in TABLE5.items():
        for method, number in printed.items():
            row = found[degree][method]
            assert row.paper == number
            assert row.verdict is not None
            assert row.verdict.word == "not reproduced"
            assert row.verdict.difference == pytest.approx(number.mean - row.exact)
    assert found[2]["Random"].paper is None
    assert found[1]["PIA"].verdict is None


def test_the_pattern_of_the_paper_is_judged_by_our_own_numbers(found: Table5) -> None:
    assert [table5_view.pattern_holds(part) for part in found.parts] == [True, None, None, False]
    for degree in (1, 4):
        gap = found[degree].gap
        assert gap.same_policy
        assert gap.exact == pytest.approx(0.0, abs=1e-6)
        assert gap.simulated is not None
        assert gap.simulated.mean == gap.simulated.half_width == 0.0
    # At degree three alone the two differ, by a hundredth of a per cent.
    assert not found[3].gap.same_policy
    assert found[3].gap.exact == pytest.approx(1.1425, abs=1e-3)
    assert found[3].gap.relative == pytest.approx(9.22e-5, rel=1e-2)
    text = "\n".join(table5_view.notes(found))
    assert "degree 1, no difference, holds" in text
    assert "degree 4, DIA (Random) is better, does not hold here" in text


def test_the_printed_differences_are_those_of_the_printed_costs() -> None:
    for degree, row in TABLE5.items():
        difference = row["Random"].mean - row["DIA (Random)"].mean
        assert difference == pytest.approx(TABLE5_DIFFERENCE[degree], abs=1e-6)
    assert TABLE5_DIFFERENCE[4] / TABLE5[4]["Random"].mean == pytest.approx(0.0901, abs=5e-5)


def test_every_number_of_the_paper_is_judged(found: Table5) -> None:
    words = {entry.what: entry.verdict.word for entry in found.compared()}
    assert len(words) == 10
    assert words["Degree 1, K"] == words["Degree 4, K"] == "matches"
    assert words["Degree 1, Delta"] == words["Degree 1, Delta in per cent"] == "matches"
    assert words["Degree 4, Delta"] == words["Degree 4, Delta in per cent"] == "not reproduced"
    assert words["Degree 4, DIA (Random)"] == "not reproduced"


def test_pia_cycles_at_degree_one(found: Table5) -> None:
    row = found[1]["PIA"]
    assert row.status is bw.Status.CYCLING
    assert row.all_time == min(row.phases) < 0.5 * max(row.phases)


def test_the_files_hold_everything(found: Table5, tmp_path: Path) -> None:
    paths = reproduce.write(found, tmp_path)
    suffixes = [".json", ".csv", ".txt", ".tex"]
    assert [path.name for path in paths] == [f"table5{suffix}" for suffix in suffixes]
    document = json.loads(paths[0].read_text(encoding="utf-8"))
    assert document["complete"]
    assert document["parts"][3]["rank"] == 59
    rows = list(csv.DictReader(paths[1].read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 16
    assert "seconds" not in rows[0]
    assert float(rows[-1]["exact"]) == found[4]["DIA (Random)"].exact
    text = paths[2].read_text(encoding="utf-8")
    assert "not reproduced" in text
    assert "Optimal" in text


def test_settings() -> None:
    assert ARTEFACT.full.episodes == ARTEFACT.settings(Wanted()).episodes == 11_000
    assert ARTEFACT.settings(Wanted(quick=True)).episodes == 1_000
    assert ARTEFACT.settings(Wanted(exact=True)).episodes is None
    assert ARTEFACT.settings(Wanted(episodes=77, seed=3)).seed == 3
    with pytest.raises(bw.errors.ArgumentError, match="not both"):
        ARTEFACT.settings(Wanted(exact=True, episodes=10))
    with pytest.raises(bw.errors.ArgumentError, match="samples does not go with table5"):
        ARTEFACT.settings(Wanted(samples=3))


def test_a_cost_inside_the_printed_interval_would_match() -> None:
    printed = Printed(101.0, 1.5)
    assert verdicts.table5(100.0, 90.0, printed).word == "matches"
    assert verdicts.table5(99.0, 90.0, printed).word == "not reproduced"


def test_exact_values_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table5, "DEGREES", (1,))
    found = ARTEFACT.reproduce(reproduce.Settings())
    assert found.complete
    assert all(row.simulated is None for row in found[1].rows)
    assert "simulated" not in [column.key for table in found.tables() for column in table.columns]
