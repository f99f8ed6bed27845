"""Tables 3 and 4: rows, verdicts, files. The costs themselves have a slow test at full size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bellweight as bw
from bellweight import reproduce
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Wanted
from bellweight.reproduce.clinic import tables_3_4 as clinic
from bellweight.reproduce.clinic.tables_3_4 import ClinicTable
from bellweight.reproduce.paper import CLINIC_TABLES, Printed

TABLE3, TABLE4 = CLINIC_TABLES["table3"], CLINIC_TABLES["table4"]
table3, table4 = reproduce.find("table3"), reproduce.find("table4")
METHODS = ["Fixed", "Random", "PIA", "DIA (Random)"]


@pytest.fixture(scope="module")
def small() -> ClinicTable:
    kept: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clinic, "OCCUPANCY_EPISODES", 256)
        patch.setattr(clinic, "TIE_EPISODES", 64)
        found = table3.reproduce(
            reproduce.Settings(episodes=1_000, seed=0),
            keep=lambda so_far: kept.append(len(so_far.rows().rows)),
        )
    assert kept[:4] == [1, 2, 3, 4]
    assert kept[4] == len(found.rows().rows)
    assert len(kept) == 5
    return found


def test_every_method_is_there_beside_the_paper(small: ClinicTable) -> None:
    assert small.complete
    assert [row.method for row in small.rows_done] == METHODS
    assert list(TABLE3.costs) == list(TABLE4.costs) == METHODS
    assert [row.paper for row in small.rows_done] == list(TABLE3.costs.values())
    assert all(row.columns > 34 and row.rounds > 1 for row in small.rows_done)


def test_good_rows_match_and_pia_shows_both_phases(small: ClinicTable) -> None:
    for name in ("Fixed", "Random", "DIA (Random)"):
        assert small[name].verdict.word == "matches"
        assert not small[name].is_constant
    pia = small["PIA"]
    assert pia.status is bw.Status.CYCLING
    assert pia.verdict.word == "differs"
    assert pia.verdict.reason.startswith("other phase")
    assert sorted(phase.is_constant for phase in pia.phases) == [False, True]
    text = "\n".join(clinic.notes(small))
    assert "PIA cycles between" in text
    assert "constant value, decided by ties" in text


def test_the_range_over_tie_rules_is_shown(small: ClinicTable) -> None:
    assert small.ties is not None
    costs = [found.mean for found in small.ties.evaluations.values()]
    assert min(costs) < 0.9 * max(costs)
    assert len(small.tables()) == 2


def test_the_files_hold_everything(small: ClinicTable, tmp_path: Path) -> None:
    paths = reproduce.write(small, tmp_path)
    suffixes = [".json", ".csv", ".txt", ".tex"]
    assert [path.name for path in paths] == [f"table3{suffix}" for suffix in suffixes]
    document = json.loads(paths[0].read_text(encoding="utf-8"))
    assert document["complete"]
    assert len(document["rows_done"]) == 4
    assert document["rows_done"][2]["status"] == "CYCLING"
    lines = paths[1].read_text(encoding="utf-8").splitlines()
    assert "seconds" not in lines[0]
    times = {entry["what"]: entry for entry in document["times"]}
    assert times["PIA"]["paper_seconds"] == TABLE3.seconds["PIA"]
    assert times["PIA"]["seconds"] == small["PIA"].seconds
    assert len(lines) == 1 + 4 + len(document["ties"]["evaluations"])


def test_settings() -> None:
    assert table3.settings(Wanted()).episodes == 50_000
    assert table4.settings(Wanted(quick=True)).episodes == 1_000
    assert table4.settings(Wanted(episodes=77, seed=3)).seed == 3
    with pytest.raises(bw.errors.ArgumentError, match="samples does not go with table3"):
        table3.settings(Wanted(samples=3))


@pytest.mark.parametrize(
    ("cost", "width", "constant", "phases", "reason"),
    [
        (100.0, 3.0, False, [], ""),
        (106.0, 3.0, False, [], "no reason is known"),
        (106.0, 3.0, True, [], "ties decide"),
        (5.0, 0.1, False, [120.0], "other phase"),
        (5.0, 0.1, False, [1_200.0], "no reason is known"),
    ],
)
def test_verdicts(
    cost: float, width: float, constant: bool, phases: list[float], reason: str
) -> None:
    found = verdicts.clinic(cost, width, Printed(101.0, 1.0), constant, phases)
    assert found.word == ("differs" if reason else "matches")
    assert reason in found.reason
    assert bool(found.reason) == bool(reason)


@pytest.mark.slow
@pytest.mark.parametrize("table", [table3, table4], ids=["small", "large"])
def test_good_costs_match_at_full_size(table: object) -> None:
    found = table.reproduce(table.settings(Wanted()))  # type: ignore[attr-defined]
    good = [row for row in found.rows_done if row.paper.mean < 20_000.0]
    assert len(good) == 3
    assert all(row.verdict.word == "matches" for row in good)
