"""Table 1 of the paper: the exact values, the verdicts, and the files."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import pytest

import bellweight as bw
from bellweight import reproduce
from bellweight.reproduce import Wanted, verdicts
from bellweight.reproduce.paper import TABLE1, Printed
from bellweight.reproduce.queue import runs
from bellweight.reproduce.queue.table1 import Table1, same_order

POLICIES = list(TABLE1["empty"])
ADAPTIVE = ["PIA", "DIA (Random)", "DIA (0.9)"]
EPISODES = 4_000
ARTEFACT = reproduce.find("table1")


@pytest.fixture(scope="module")
def table() -> Table1:
    """The whole table at full size, with a short simulation."""
    kept: list[int] = []
    found = ARTEFACT.reproduce(
        reproduce.Settings(episodes=EPISODES, seed=7),
        keep=lambda so_far: kept.append(len(so_far.tables())),
    )
    assert kept == [1, 2, 3]
    return found


def exact(table: Table1, initial: str) -> dict[str, float]:
    return {row.policy: row.exact for row in table[initial].rows}


def test_every_row_and_column_is_there(table: Table1) -> None:
    assert [part.initial for part in table.parts] == ["geometric", "empty", "reverse"]
    for part in table.parts:
        assert [row.policy for row in part.rows] == POLICIES
    assert table.complete


def test_certificates_stand_beside_the_true_loss(table: Table1) -> None:
    for part in table.parts:
        assert part["Optimal"].certificate is None
        for row in part.rows[1:]:
            assert row.certificate is not None
            assert row.certificate.bound is not None
            assert row.certificate.greedy_bound is not None
            scale = 1e-9 * abs(row.exact)
            assert -scale <= row.loss <= row.certificate.bound + scale
            assert row.loss <= row.certificate.greedy_bound + scale
    assert part["PIA"].certificate.mismatch == pytest.approx(0.0, abs=1e-8)  # type: ignore[union-attr]


def test_the_settings_are_the_papers() -> None:
    # Every decay from 0.98 on gives the same policy, so the costs alone would not tell.
    methods = runs.methods(100)
    for name, decay in (("Fixed 0.9", 0.9), ("Fixed 0.999", 0.999)):
        method = methods[name]
        assert isinstance(method, bw.Fixed)
        assert method.weights[41] / method.weights[40] == pytest.approx(decay)
    for name in ("DIA (Random)", "DIA (0.9)"):
        method = methods[name]
        assert isinstance(method, bw.DIA)
        settings = (method.temperature, method.smoothing_mass, method.step_size, method.start)
        assert settings == (0.1, 0.1, 1.0, "initial")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_empty_system_is_within_five_cents(table: Table1, policy: str) -> None:
    row = table["empty"][policy]
    assert row.exact == pytest.approx(TABLE1["empty"][policy].mean, abs=0.05)
    assert row.verdict.word == "matches"


@pytest.mark.parametrize("policy", POLICIES)
def test_the_reverse_column_is_within_0002_per_cent(table: Table1, policy: str) -> None:
    cost = table["reverse"][policy].exact
    assert cost == pytest.approx(TABLE1["reverse"][policy].mean, rel=2e-5)


def test_the_geometric_column_has_the_papers_order(table: Table1) -> None:
    cost = exact(table, "geometric")
    assert cost["PIA"] == pytest.approx(cost["DIA (0.9)"], abs=1e-6)
    assert cost["Random"] == pytest.approx(cost["DIA (Random)"], abs=1e-6)
    ordered = ["Optimal", "PIA", "Fixed 0.9", "Random", "Fixed 0.999"]
    values = [cost[policy] for policy in ordered]
    assert all(low < high - 0.1 for low, high in pairwise(values))
    assert same_order(table["geometric"])
    assert same_order(table["empty"])
    assert not same_order(table["reverse"])


def test_the_geometric_offset_is_common_and_stated(table: Table1) -> None:
    for row in table["geometric"].rows:
        assert 5.9 < row.paper.mean - row.exact < 6.7
        assert "about 6 above" in row.verdict.reason
    text = " ".join(table.tables()[0].notes)
    assert "5.97 to 6.68 above" in text


def test_the_papers_adaptive_rows_are_the_constant_rate(table: Table1) -> None:
    part = table["reverse"]
    assert part.constant == pytest.approx(part["Fixed 0.999"].exact, abs=1e-3)
    for policy in [*ADAPTIVE, "Random"]:
        row = part[policy]
        assert abs(part.constant - row.paper.mean) <= row.paper.half_width
        assert 5e-6 < row.exact / part.constant - 1.0 < 1e-5
        assert "rate 0.6" in row.verdict.reason


@pytest.mark.parametrize("initial", list(TABLE1))
def test_adaptive_methods_converge_within_ten_iterations(table: Table1, initial: str) -> None:
    for policy in ADAPTIVE:
        row = table[initial][policy]
        assert row.status is bw.Status.CONVERGED
        assert row.iterations is not None
        assert row.iterations <= 10


def test_no_policy_beats_the_optimum_over_all_time(table: Table1) -> None:
    for part in table.parts:
        best = part["Optimal"].exact + part["Optimal"].tail
        assert all(row.exact + row.tail >= best * (1.0 - 1e-9) for row in part.rows)


def test_the_tail_is_what_the_horizon_leaves_out(table: Table1) -> None:
    for part in table.parts:
        for row in part.rows:
            assert row.simulated is not None
            assert row.tail == pytest.approx(row.simulated.tail_bound, rel=1e-5)
    assert table["reverse"]["Optimal"].tail == pytest.approx(2438.637, abs=0.01)
    assert table["empty"]["Optimal"].tail == pytest.approx(0.1357, abs=1e-3)


def test_simulated_values_agree_with_the_exact_ones(table: Table1) -> None:
    for part in table.parts:
        for row in part.rows:
            assert row.simulated is not None
            # Twice the 95 % half-width: about four standard errors.
            assert abs(row.simulated.mean - row.exact) <= 2.0 * row.simulated.half_width
            assert (row.simulated.episodes, row.simulated.horizon) == (EPISODES, 343)


def test_identical_policies_are_simulated_once(table: Table1) -> None:
    part = table["geometric"]
    assert part["PIA"].simulated is part["DIA (0.9)"].simulated
    assert part["PIA"].simulated is not part["Random"].simulated


def test_files_hold_every_number(table: Table1, tmp_path: Path) -> None:
    paths = reproduce.write(table, tmp_path / "new" / "folder")
    names = ["table1.json", "table1.csv", "table1.txt", "table1.tex"]
    assert [path.name for path in paths] == names
    document = json.loads(paths[0].read_text(encoding="utf-8"))
    assert document["complete"] is True
    rows = list(csv.DictReader(paths[1].read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 21
    stored = {(row["initial"], row["policy"]): float(row["exact"]) for row in rows}
    for part in table.parts:
        for row in part.rows:
            assert stored[part.initial, row.policy] == row.exact
    assert document["settings"]["seed"] == 7
    assert document["files"] == names[1:]
    # Times are kept in JSON alone, apart from what a seed decides.
    assert len(document["times"]) == 21
    assert not any("seconds" in key for key in rows[0])
    assert document["columns"][1]["rows"][3]["exact"] == table["empty"]["PIA"].exact
    assert "differs [1]" in paths[2].read_text(encoding="utf-8")
    assert list(tmp_path.rglob(".*")) == []


def test_a_folder_that_is_a_file_is_an_error(table: Table1, tmp_path: Path) -> None:
    blocked = tmp_path / "out"
    blocked.write_text("mine", encoding="utf-8")
    with pytest.raises(bw.errors.FileError, match="cannot make the folder"):
        reproduce.write(table, blocked)
    assert blocked.read_text(encoding="utf-8") == "mine"


def test_a_reason_is_given_only_when_the_numbers_bear_it_out() -> None:
    inside = verdicts.table1("geometric", "PIA", 100.0, Printed(100.5, 0.6), 0.0)
    assert inside.word == "matches"
    assert inside.reason == ""
    far = verdicts.table1("geometric", "PIA", 100.0, Printed(120.0, 0.6), 0.0)
    assert far.word is verdicts.Word.DIFFERS
    assert "no reason is known" in far.reason
    other = verdicts.table1("reverse", "PIA", 1e6 + 10.0, Printed(1e6, 1.0), constant=1e6 + 5.0)
    assert "rate 0.6" not in other.reason


def test_every_number_of_the_paper_is_judged(table: Table1) -> None:
    found = table.compared()
    assert len(found) == 21
    assert {entry.verdict.word for entry in found} == {"matches", "differs"}
    first = found[0]
    assert (first.what, first.paper) == ("Geometric, Optimal", "391.23 ± 0.76")
    assert first.ours == f"{table['geometric']['Optimal'].exact:,.2f}"
    assert all(entry.verdict.reason for entry in found if entry.verdict.word != "matches")


def test_latex_names_the_seed_and_holds_every_row(table: Table1, tmp_path: Path) -> None:
    text = next(p for p in reproduce.write(table, tmp_path) if p.suffix == ".tex").read_text(
        encoding="utf-8"
    )
    assert text.startswith("% bellweight reproduce table1, seed 7;")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 3
    assert text.count(r"\bottomrule") == 3
    assert "Fixed 0.999 & " in text
    assert r"$\pm$" in text
    assert "±" not in text


def test_quick_is_a_short_simulation() -> None:
    assert ARTEFACT.settings(Wanted(quick=True)).episodes == 20_000
    assert ARTEFACT.settings(Wanted(quick=True, episodes=77)).episodes == 77
    assert ARTEFACT.settings(Wanted(quick=True, exact=True)).episodes is None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(bw.errors.ArgumentError, match=r"'table9' is not reproduced here.*table1"):
        reproduce.find("table9")
    assert ARTEFACT.full.episodes == 1_000_000
