"""Table 2 of the paper and its figure: the numbers, the verdicts, and going on after Ctrl-C."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bellweight as bw
from bellweight import reproduce
from bellweight.cli import exits
from bellweight.cli.main import run as command
from bellweight.display import to_csv, to_text
from bellweight.display.figures import convergence_figure
from bellweight.reproduce import Wanted, figure_convergence, folder, table2, table2_view, verdicts
from bellweight.reproduce.figure_convergence import ConvergenceFigure, FigureSettings
from bellweight.reproduce.paper import TABLE2, TABLE2_HORIZON, TABLE2_SECONDS, Printed
from bellweight.reproduce.table2 import Table2
from bellweight.reproduce.table2_runs import (
    BASELINES,
    BEST_STATIC,
    LAST_BUFFER,
    METHODS,
    OTHER_TIE,
    Choice,
    Run,
    Table2Settings,
    Task,
    Workshop,
    _fingerprint,
    methods,
    tasks,
)
from bellweight.reproduce.table2_summary import estimate
from bellweight.streams import stream_keys

TINY = Table2Settings(
    episodes=60,
    states=(150, 190),
    samples=2,
    occupancy_episodes=40,
    choice_episodes=16,
    max_iterations=3,
    seed=5,
)
CHOICE = Choice((3, 8, 1, 2, 6, 7, 5, 4), 13_000.0, 100, 72, is_last_buffer=True)


@pytest.fixture(scope="module")
def table() -> Table2:
    return table2.reproduce(TINY)


@pytest.fixture(scope="module")
def shop() -> Workshop:
    return Workshop(TINY)


def timeless(table: Table2) -> list[dict[str, Any]]:
    """The rows without their times, which no seed decides."""
    return [{**entry, "seconds": None} for entry in table.document()["runs"]]


def made_up(
    cost: Callable[[int, str], float], settings: Table2Settings, half_width: float = 20.0
) -> Table2:
    """A finished table with costs by sample and policy, and no simulation behind it."""
    runs = []
    for task in tasks(settings):
        own, first = cost(task.sample, task.policy), cost(task.sample, LAST_BUFFER)
        facts = {} if task.states is None else {
            "status": "CONVERGED", "iterations": 2, "seconds": 10.0 * task.sample,
            "largest_total": 190 + task.sample, "largest_queue": 80 + task.sample,
        }  # fmt: skip
        place = (task.sample, task.states, task.policy)
        runs.append(Run(*place, own, half_width, own - first, 3.0, **facts))
    return Table2(tuple(runs), settings, CHOICE, tail_bound=69.0)


def summary(table: Table2, states: int, policy: str) -> Any:
    return next(row for row in table.summaries(states) if row.policy == policy)


def test_every_row_is_there(table: Table2) -> None:
    assert table.complete
    assert [run.task for run in table.runs] == tasks(TINY)
    assert len(table.runs) == 2 * (5 + 2 * 5)
    for n in TINY.states:
        assert [row.policy for row in table.summaries(n)] == [*METHODS, *BASELINES]
        assert all(row.samples == 2 for row in table.summaries(n))


def test_the_methods_are_the_papers() -> None:
    found = methods()
    assert list(found) == list(TABLE2)
    assert [found["Fixed 0.9"].weights, found["DIA (0.9)"].target.weights] == ["initial"] * 2
    assert isinstance(found["Random"].policy, bw.Uniform)
    assert isinstance(found["DIA (Random)"].target, bw.Uniform)
    settings = Table2Settings()
    assert (settings.occupancy_episodes, settings.samples) == (4_000, 5)
    assert settings.episodes * settings.samples == verdicts.TABLE2_EPISODES
    assert next(t for t in range(2_000) if 0.995**t < 1e-3) == TABLE2_HORIZON


def test_the_printed_numbers_agree_with_the_papers_text() -> None:
    # "decreases by 3.78 % under Random, 3.22 % under PIA, 4.11 % and 5.11 % under DIA"
    shares = {"Random": 3.78, "PIA": 3.22, "DIA (Random)": 4.11, "DIA (0.9)": 5.11}
    for name, share in shares.items():
        found = 100.0 * (1.0 - TABLE2[name].mean / TABLE2["Fixed 0.9"].mean)
        assert found == pytest.approx(share, abs=0.006)
    assert {name: round(TABLE2_SECONDS[name]) for name in ("PIA", "DIA (0.9)")} == {
        "PIA": 13_752,
        "DIA (0.9)": 14_588,
    }


def test_another_seed_gives_other_states_and_costs(table: Table2, shop: Workshop) -> None:
    other = Workshop(replace(TINY, seed=6))
    assert not np.array_equal(other.states(1, 150), shop.states(1, 150))
    row = other.run(Task(1, None, LAST_BUFFER), CHOICE, lambda _: None)
    assert row.cost != table.runs[0].cost


def test_no_two_purposes_share_random_numbers(shop: Workshop) -> None:
    seeds = [shop._seed(sample, purpose) for sample in range(6) for purpose in range(3)]
    assert len(set(seeds)) == len(seeds)
    # Episodes must not begin in the states of the rows.
    states = {tuple(state) for state in shop.states(1, 150).tolist()}
    for purpose in (1, 2):
        first = shop.model.sample_initial(0, 200, stream_keys(shop._seed(1, purpose))[0])
        assert len(states & {tuple(state) for state in first.tolist()}) < 3


def test_a_larger_sample_begins_with_the_smaller_one(shop: Workshop) -> None:
    assert np.array_equal(shop.states(2, 190)[:150], shop.states(2, 150))
    assert not np.array_equal(shop.states(1, 150), shop.states(2, 150))


def test_costs_and_differences_are_those_of_a_paired_comparison(
    table: Table2, shop: Workshop
) -> None:
    states = shop.states(1, 150)
    result = bw.solve(
        shop.model,
        bw.Polynomial(2),
        bw.DIA(target=bw.Fixed()),
        rows=bw.SampledRows(states),
        simulation=bw.Simulation(40, TABLE2_HORIZON),
        stop=bw.Stop(max_iterations=3),
        seed=shop._seed(1, 1),
    )
    policies = {
        LAST_BUFFER: shop.network.last_buffer_first(),
        "Max-pressure": shop.network.max_pressure(),
        "DIA (0.9)": result.policy,
    }
    found = bw.compare(
        shop.model, policies, 60, horizon=TABLE2_HORIZON, seed=shop._seed(1, 2), jobs=1
    )
    for task in (Task(1, None, "Max-pressure"), Task(1, 150, "DIA (0.9)")):
        row = next(run for run in table.runs if run.task == task)
        cost, gap = found.evaluations[task.policy], found.differences[task.policy]
        assert (row.cost, row.half_width) == pytest.approx((cost.mean, cost.half_width))
        assert row.difference == pytest.approx(gap.mean, abs=1e-9)
        assert row.difference_half_width == pytest.approx(gap.half_width)
    row = next(run for run in table.runs if run.task == Task(1, 150, "DIA (0.9)"))
    assert row.status == result.status.name
    assert row.iterations == len(result.history)
    assert row.largest_total == states.sum(axis=1).max()
    assert row.largest_queue == states.max()
    assert row.dual_share == result.reported.dual_share


def test_last_buffer_first_is_the_zero_of_the_differences(table: Table2) -> None:
    for run in table.runs:
        if run.policy == LAST_BUFFER:
            assert (run.difference, run.difference_half_width) == (0.0, 0.0)
        elif run.policy != BEST_STATIC:
            assert run.difference_half_width > 0.0


def test_the_tie_of_last_buffer_first_is_shown_both_ways(table: Table2, shop: Workshop) -> None:
    network = shop.network
    rules = {LAST_BUFFER: network.last_buffer_first(), OTHER_TIE: shop._baseline(OTHER_TIE, CHOICE)}
    state = np.ones(8, dtype=np.int64)
    served = {
        name: shop.model.label(rule.on(shop.model).action(state)) for name, rule in rules.items()
    }
    assert served == {LAST_BUFFER: "serve 8 2 7", OTHER_TIE: "serve 3 2 7"}
    assert summary(table, 150, OTHER_TIE).difference.mean != 0.0


def test_the_static_priority_is_the_best_of_all_on_numbers_of_its_own(
    table: Table2, shop: Workshop
) -> None:
    choice = table.choice
    assert choice is not None
    assert choice.candidates == 72
    network = shop.network
    policies = {" ".join(map(str, order)): r for order, r in network.static_priorities().items()}
    found = {
        name: bw.evaluate(
            shop.model, rule, TINY.choice_episodes, horizon=TABLE2_HORIZON, seed=shop._seed(0, 2)
        ).mean
        for name, rule in list(policies.items())[::9]
    }
    assert choice.cost <= min(found.values()) + 1e-9
    own = network.static_priority([i - 1 for i in choice.order])
    cost = bw.evaluate(
        shop.model, own, TINY.choice_episodes, horizon=TABLE2_HORIZON, seed=shop._seed(0, 2)
    ).mean
    assert choice.cost == pytest.approx(cost)


def interrupted_at(place: int, folder: Path) -> list[int]:
    """Reproduce into a folder and interrupt before a row; return how many rows were kept."""
    kept: list[int] = []

    def keep(so_far: reproduce.Reproduction) -> None:
        reproduce.write(so_far, folder)
        kept.append(len(so_far.document()["runs"]))
        if kept[-1] == place:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table2.reproduce(replace(TINY, folder=folder), keep=keep)
    return kept


def test_an_interrupted_run_goes_on_to_the_same_table(table: Table2, tmp_path: Path) -> None:
    assert interrupted_at(7, tmp_path) == list(range(1, 8))
    document = json.loads((tmp_path / "table2.json").read_text())
    assert document["complete"] is False
    assert "7 of 30 rows" in (tmp_path / "table2.txt").read_text()
    assert len((tmp_path / "table2.csv").read_text().splitlines()) > 7
    # Interrupted again, in the second sample.
    assert interrupted_at(17, tmp_path) == [7, *range(8, 18)]
    told: list[str] = []
    # The seed alone decides: not the interruptions, nor the number of workers.
    settings = replace(TINY, folder=tmp_path, jobs=1)
    found = table2.reproduce(settings, lambda text, _: told.append(text))
    assert f"17 of 30 rows found in {tmp_path}" in told
    assert found.complete
    assert timeless(found) == timeless(table)
    assert found.choice == table.choice
    # No time stands in what people read.
    assert to_csv(found.rows()) == to_csv(table.rows())
    assert list(map(to_text, found.tables())) == list(map(to_text, table.tables()))
    # What was finished is not computed again: its times are those of the first run.
    times = [entry["seconds"] for entry in document["runs"]]
    assert [run.seconds for run in found.runs[:7]] == times


def test_a_finished_table_is_read_not_computed(
    table: Table2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce.write(table, tmp_path)
    monkeypatch.setattr(Workshop, "run", None)
    monkeypatch.setattr(Workshop, "warm_up", None)
    assert table2.reproduce(replace(TINY, folder=tmp_path)).runs == table.runs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 9}, "with seed 5, here seed is 9"),
        ({"episodes": 80}, "with episodes 60, here episodes is 80"),
        ({"states": (150,)}, r"with states \[150, 190\], here states is \[150\]"),
        ({"samples": 3}, "with samples 2, here samples is 3"),
        ({"occupancy_episodes": 41}, "with occupancy_episodes 40"),
    ],
)
def test_other_settings_are_refused(
    change: dict[str, Any], words: str, table: Table2, tmp_path: Path
) -> None:
    reproduce.write(table, tmp_path)
    before = (tmp_path / "table2.json").read_bytes()
    with pytest.raises(bw.ArgumentError, match=f"{words}.*another folder"):
        table2.reproduce(replace(TINY, folder=tmp_path, **change))
    assert (tmp_path / "table2.json").read_bytes() == before


def test_other_code_and_damaged_files_are_refused(
    table: Table2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(TINY, folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(folder, "code_version", lambda: "older")
        reproduce.write(table, tmp_path)
    with pytest.raises(bw.ArgumentError, match="another version of Bellweight"):
        table2.reproduce(settings)
    document = folder.document(table)
    del document["runs"][0]["cost"]
    for text in ("", "{", "[]", '{"settings": 3}', json.dumps(document)):
        (tmp_path / "table2.json").write_text(text)
        with pytest.raises(bw.FileError, match="damaged: delete it"):
            table2.reproduce(settings)


def test_ctrl_c_on_the_command_line_leaves_rows_and_says_how_to_go_on(
    table: Table2,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table2, "QUICK", replace(TINY, seed=0))
    words = ["reproduce", "table2", "--quick", "--seed", "5", "--out", str(tmp_path / "out")]
    reproduce.write(replace(table, runs=table.runs[:27]), tmp_path / "out")
    with monkeypatch.context() as patch:
        finish = Workshop.run

        def stops(shop: Workshop, task: Task, *rest: Any) -> Run:
            if task == Task(2, 190, "DIA (Random)"):
                raise KeyboardInterrupt
            return finish(shop, task, *rest)

        patch.setattr(Workshop, "run", stops)
        assert command(words) == exits.INTERRUPTED
    text = capsys.readouterr().err
    assert f"what was finished is in {tmp_path / 'out'}; the same command goes on" in text
    assert len(json.loads((tmp_path / "out" / "table2.json").read_text())["runs"]) == 28
    assert command([*words, "--json", str(tmp_path / "t.json")]) == exits.DONE
    out = capsys.readouterr().out
    assert "How the policies were found" in out
    assert "Times on this machine" in out
    assert "table2.json, table2.csv, table2.txt, table2.tex, index.html" in out
    document = json.loads((tmp_path / "t.json").read_text())
    assert [{**run, "seconds": None} for run in document["runs"]] == timeless(table)
    # Other settings are one line, and nothing is lost.
    assert command([*words, "--episodes", "70"]) == exits.BAD_INPUT
    assert "computed with episodes 60" in capsys.readouterr().err


def test_an_interrupted_method_is_not_taken_for_a_finished_row(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(_: bw.Iteration) -> None:
        raise KeyboardInterrupt  # `solve` answers it with a result of status INTERRUPTED

    with pytest.raises(KeyboardInterrupt):
        shop.run(Task(1, 150, "PIA"), CHOICE, watch)


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


def test_files_hold_every_number(table: Table2, tmp_path: Path) -> None:
    paths = reproduce.write(table, tmp_path / "out")
    suffixes = [".json", ".csv", ".txt", ".tex"]
    assert [path.name for path in paths] == [f"table2{suffix}" for suffix in suffixes]
    rows = list(csv.DictReader(paths[1].read_text().splitlines()))
    assert not any("seconds" in key or key == "speedup" for key in rows[0])
    single = [row for row in rows if row["sample"] != "mean"]
    assert [float(row["cost"]) for row in single] == [run.cost for run in table.runs]
    means = {(row["states"], row["policy"]): row for row in rows if row["sample"] == "mean"}
    assert len(means) == 2 * len(METHODS) + len(BASELINES)
    row = summary(table, 190, "PIA")
    assert float(means["190", "PIA"]["difference"]) == row.difference.mean
    assert float(means["190", "PIA"]["difference_between"]) == row.difference.between
    document = json.loads(paths[0].read_text())
    assert document["summary"]["190"][2]["cost"]["mean"] == row.cost.mean
    text = paths[2].read_text()
    for word in (*METHODS, *BASELINES, "13,195.70 ± 49.82", "chosen among 72"):
        assert word in text


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Wanted(exact=True), "--exact does not go with table2"),
        (Wanted(states=(300, 300)), "different numbers"),
        (Wanted(episodes=1), "episodes is 1"),
    ],
)
def test_wrong_settings_are_refused(wanted: Wanted, words: str) -> None:
    with pytest.raises(bw.ArgumentError, match=words):
        table2.settings(wanted)


def test_quick_is_a_small_version_and_options_override_it() -> None:
    quick = table2.settings(Wanted(quick=True, episodes=77, seed=3))
    assert (quick.episodes, quick.seed, quick.samples) == (77, 3, 2)
    assert quick.occupancy_episodes < Table2Settings().occupancy_episodes
    usual = table2.settings(Wanted(states=(20_000,), samples=7))
    assert (usual.states, usual.samples, usual.episodes) == ((20_000,), 7, 80_000)


# The figure.

FIGURE = FigureSettings(episodes=40, states=200, iterations=4, seed=2)


@pytest.fixture(scope="module")
def figure() -> ConvergenceFigure:
    return figure_convergence.reproduce(FIGURE)


def test_the_curves_are_successive_differences_of_the_moments(figure: ConvergenceFigure) -> None:
    assert [curve.method for curve in figure.curves] == ["PIA", "DIA (Random)", "DIA (0.9)"]
    shop = Workshop(replace(TINY, states=(150,), occupancy_episodes=40, max_iterations=5, seed=2))
    longer = shop.solve(1, 200, bw.PIA(), lambda _: None, to_the_end=True)
    steps = [entry.moment_step for entry in longer.history[1:]]
    assert figure.curves[0].differences == pytest.approx(steps[:4], rel=1e-9)
    assert all(step > 0.0 for step in figure.curves[0].differences)
    # DIA follows its target: the second iteration changes nothing at all.
    assert figure.curves[1].differences[1:] == (0.0,)
    assert figure.curves[1].stands_still == 2
    assert figure.curves[0].noise > 0.0


def test_what_the_paper_says_of_the_curves_is_judged(figure: ConvergenceFigure) -> None:
    def words(*differences: float) -> dict[str, str]:
        curves = tuple(
            replace(curve, differences=differences, noise=1.0) for curve in figure.curves
        )
        return {e.what: e.verdict.word for e in replace(figure, curves=curves).compared()}

    steady = "DIA (Random) moves steadily to a fixed point"
    assert words(5.0, 3.0, 4.0) == {
        "PIA oscillates": "matches",
        steady: "differs",
        "DIA (0.9) moves steadily to a fixed point": "differs",
    }
    assert words(5.0, 3.0, 0.0)["PIA oscillates"] == "differs"
    assert words(5.0, 3.0, 0.0)[steady] == "matches"
    assert words(5.0, 4.0, 3.0)[steady] == "differs"
    assert {e.verdict.word for e in figure.compared()} == {"matches"}


def test_equal_policies_are_simulated_once(table: Table2, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Workshop(TINY)
    simulated: list[int] = []
    costs = Workshop._costs

    def counted(shop: Workshop, policy: Any, sample: int, episodes: int) -> Any:
        simulated.append(sample)
        return costs(shop, policy, sample, episodes)

    monkeypatch.setattr(Workshop, "_costs", counted)
    same = replace(CHOICE, is_last_buffer=False)
    for name in (LAST_BUFFER, OTHER_TIE, BEST_STATIC):
        row = shop.run(Task(1, None, name), same, lambda _: None)
        if name != BEST_STATIC:
            assert row == next(run for run in table.runs if run.task == row.task)
    # The best static priority of `same` is the other tie by another name.
    assert simulated == [1, 1]
    shop.run(Task(2, None, LAST_BUFFER), same, lambda _: None)
    assert simulated == [1, 1, 2]


def test_policies_are_equal_up_to_rounding_of_coefficients(shop: Workshop) -> None:
    policy = shop.solve(1, 150, methods()["Random"], lambda _: None).policy
    known = _fingerprint(policy)
    assert _fingerprint(replace(policy, coef=policy.coef * (1.0 + 1e-14))) == known
    assert _fingerprint(replace(policy, coef=policy.coef * (1.0 + 1e-6))) != known
    assert policy.dual is not None
    other = replace(policy.dual, actions=policy.dual.actions[::-1].copy())
    assert _fingerprint(replace(policy, dual=other)) != known


def test_the_figure_is_written_and_always_the_same(
    figure: ConvergenceFigure, tmp_path: Path
) -> None:
    paths = reproduce.write(figure, tmp_path)
    assert [path.suffix for path in paths] == [".json", ".csv", ".txt", ".tex", ".png", ".pdf"]
    assert r"\includegraphics[width=\linewidth]{figure-convergence}" in paths[3].read_text()
    assert paths[4].read_bytes().startswith(b"\x89PNG")
    assert paths[5].read_bytes().startswith(b"%PDF")
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in reproduce.write(figure, tmp_path)] == first
    rows = list(csv.DictReader(paths[1].read_text().splitlines()))
    assert [float(row["difference"]) for row in rows if row["method"] == "PIA"] == list(
        figure.curves[0].differences
    )
    assert "exactly zero" in paths[2].read_text()
    assert "stands still to the last bit from iteration 2" in paths[2].read_text()


def test_exact_zeros_have_a_line_of_their_own() -> None:
    drawn = convergence_figure({"A": [100.0, 0.5, 0.0], "B": [30.0, 20.0, 10.0]}, noise=3.0)
    axes = drawn.axes[0]
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel()
    assert axes.get_xlabel() == "iteration $m$"
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    assert (heights > 0.0).all()
    labels = {tick.get_text(): tick.get_position()[1] for tick in axes.get_yticklabels()}
    floor = labels["exactly 0"]
    assert floor < 0.5 / 10.0
    hollow = [
        line
        for line in axes.lines
        if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    ]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in hollow] == [([3], [floor])]
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == ["simulation noise", "A", "B"]
    markers = {line.get_marker() for line in axes.lines} - {"None", "", " "}
    assert len(markers) == 2


def test_a_figure_without_zeros_has_no_such_line() -> None:
    axes = convergence_figure({"A": [3.0, 2.0]}).axes[0]
    assert "exactly 0" not in [tick.get_text() for tick in axes.get_yticklabels()]


def test_the_figure_takes_one_number_of_states() -> None:
    with pytest.raises(bw.ArgumentError, match="one number"):
        figure_convergence.settings(Wanted(states=(1, 2)))
    found = figure_convergence.settings(Wanted(states=(300,), quick=True, episodes=50))
    assert (found.states, found.episodes, found.iterations) == (300, 50, 8)
