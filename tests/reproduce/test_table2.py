"""Table 2 of the paper and its figure: the numbers, the verdicts, and going on after Ctrl-C."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from table2_small import CHOICE, TINY, summary

import bellweight as bw
from bellweight import reproduce
from bellweight.cli import exits
from bellweight.cli.main import run as command
from bellweight.common.streams import stream_keys
from bellweight.display import to_csv, to_text
from bellweight.reproduce import Wanted, folder, verdicts
from bellweight.reproduce.network import table2
from bellweight.reproduce.network.runs import (
    BASELINES,
    BEST_STATIC,
    LAST_BUFFER,
    METHODS,
    OTHER_TIE,
    Run,
    Runner,
    Table2Settings,
    Task,
    _fingerprint,
    methods,
    tasks,
)
from bellweight.reproduce.network.table2 import Table2
from bellweight.reproduce.paper import TABLE2, TABLE2_HORIZON, TABLE2_SECONDS

ARTEFACT = reproduce.find("table2")


@pytest.fixture(scope="module")
def table() -> Table2:
    return ARTEFACT.reproduce(TINY)


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner(TINY)


def timeless(table: Table2) -> list[dict[str, Any]]:
    """The rows without their times, which no seed decides."""
    return [{**entry, "seconds": None} for entry in table.document()["runs"]]


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


def test_another_seed_gives_other_states_and_costs(table: Table2, runner: Runner) -> None:
    other = Runner(replace(TINY, seed=6))
    assert not np.array_equal(other.states(1, 150), runner.states(1, 150))
    row = other.run(Task(1, None, LAST_BUFFER), CHOICE, lambda _: None)
    assert row.cost != table.runs[0].cost


def test_no_two_purposes_share_random_numbers(runner: Runner) -> None:
    seeds = [runner._seed(sample, purpose) for sample in range(6) for purpose in range(3)]
    assert len(set(seeds)) == len(seeds)
    # Episodes must not begin in the states of the rows.
    states = {tuple(state) for state in runner.states(1, 150).tolist()}
    for purpose in (1, 2):
        first = runner.model.sample_initial(0, 200, stream_keys(runner._seed(1, purpose))[0])
        assert len(states & {tuple(state) for state in first.tolist()}) < 3


def test_a_larger_sample_begins_with_the_smaller_one(runner: Runner) -> None:
    assert np.array_equal(runner.states(2, 190)[:150], runner.states(2, 150))
    assert not np.array_equal(runner.states(1, 150), runner.states(2, 150))


def test_costs_and_differences_are_those_of_a_paired_comparison(
    table: Table2, runner: Runner
) -> None:
    states = runner.states(1, 150)
    result = bw.solve(
        runner.model,
        bw.Polynomial(2),
        bw.DIA(target=bw.Fixed()),
        rows=bw.SampledRows(states),
        simulation=bw.Simulation(40, TABLE2_HORIZON),
        stop=bw.Stop(max_iterations=3),
        seed=runner._seed(1, 1),
        judge=False,
    )
    policies = {
        LAST_BUFFER: runner.network.last_buffer_first(),
        "Max-pressure": runner.network.max_pressure(),
        "DIA (0.9)": result.policy,
    }
    found = bw.compare(
        runner.model, policies, 60, horizon=TABLE2_HORIZON, seed=runner._seed(1, 2), jobs=1
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


def test_the_tie_of_last_buffer_first_is_shown_both_ways(table: Table2, runner: Runner) -> None:
    network = runner.network
    rules = {
        LAST_BUFFER: network.last_buffer_first(),
        OTHER_TIE: runner._baseline(OTHER_TIE, CHOICE),
    }
    state = np.ones(8, dtype=np.int64)
    served = {
        name: runner.model.label(rule.on(runner.model).action(state))
        for name, rule in rules.items()
    }
    assert served == {LAST_BUFFER: "serve 8 2 7", OTHER_TIE: "serve 3 2 7"}
    assert summary(table, 150, OTHER_TIE).difference.mean != 0.0


def test_the_static_priority_is_the_best_of_all_on_numbers_of_its_own(
    table: Table2, runner: Runner
) -> None:
    choice = table.choice
    assert choice is not None
    assert choice.candidates == 72
    network = runner.network
    policies = {" ".join(map(str, order)): r for order, r in network.static_priorities().items()}
    found = {
        name: bw.evaluate(
            runner.model,
            rule,
            TINY.choice_episodes,
            horizon=TABLE2_HORIZON,
            seed=runner._seed(0, 2),
        ).mean
        for name, rule in list(policies.items())[::9]
    }
    assert choice.cost <= min(found.values()) + 1e-9
    own = network.static_priority([i - 1 for i in choice.order])
    cost = bw.evaluate(
        runner.model, own, TINY.choice_episodes, horizon=TABLE2_HORIZON, seed=runner._seed(0, 2)
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
        ARTEFACT.reproduce(replace(TINY, folder=folder), keep=keep)
    return kept


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_table(table: Table2, tmp_path: Path) -> None:
    assert interrupted_at(7, tmp_path) == list(range(1, 8))
    document = json.loads((tmp_path / "table2.json").read_text(encoding="utf-8"))
    assert document["complete"] is False
    assert "7 of 30 rows" in (tmp_path / "table2.txt").read_text(encoding="utf-8")
    assert len((tmp_path / "table2.csv").read_text(encoding="utf-8").splitlines()) > 7
    # Interrupted again, in the second sample.
    assert interrupted_at(17, tmp_path) == [7, *range(8, 18)]
    told: list[str] = []
    # The seed alone decides: not the interruptions, nor the number of workers.
    settings = replace(TINY, folder=tmp_path, jobs=1)
    found = ARTEFACT.reproduce(settings, lambda text, _: told.append(text))
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
    monkeypatch.setattr(Runner, "run", None)
    monkeypatch.setattr(Runner, "warm_up", None)
    assert ARTEFACT.reproduce(replace(TINY, folder=tmp_path)).runs == table.runs


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
    with pytest.raises(bw.errors.ArgumentError, match=f"{words}.*another folder"):
        ARTEFACT.reproduce(replace(TINY, folder=tmp_path, **change))
    assert (tmp_path / "table2.json").read_bytes() == before


def test_other_code_and_damaged_files_are_refused(
    table: Table2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(TINY, folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(folder, "code_version", lambda: "older")
        reproduce.write(table, tmp_path)
    with pytest.raises(bw.errors.ArgumentError, match="another version of Bellweight"):
        ARTEFACT.reproduce(settings)
    document = folder.document(table)
    del document["runs"][0]["cost"]
    for text in ("", "{", "[]", '{"settings": 3}', json.dumps(document)):
        (tmp_path / "table2.json").write_text(text, encoding="utf-8")
        with pytest.raises(bw.errors.FileError, match="damaged: delete it"):
            ARTEFACT.reproduce(settings)


def test_ctrl_c_on_the_command_line_leaves_rows_and_says_how_to_go_on(
    table: Table2,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = replace(ARTEFACT, quick=replace(TINY, seed=0))
    monkeypatch.setattr(table2, "ARTEFACTS", (quick,))
    words = ["reproduce", "table2", "--quick", "--seed", "5", "--out", str(tmp_path / "out")]
    reproduce.write(replace(table, runs=table.runs[:27]), tmp_path / "out")
    with monkeypatch.context() as patch:
        finish = Runner.run

        def stops(runner: Runner, task: Task, *rest: Any) -> Run:
            if task == Task(2, 190, "DIA (Random)"):
                raise KeyboardInterrupt
            return finish(runner, task, *rest)

        patch.setattr(Runner, "run", stops)
        assert command(words) == exits.INTERRUPTED
    text = capsys.readouterr().err
    assert f"what was finished is in {tmp_path / 'out'}; the same command goes on" in text
    assert (
        len(json.loads((tmp_path / "out" / "table2.json").read_text(encoding="utf-8"))["runs"])
        == 28
    )
    assert command([*words, "--json", str(tmp_path / "t.json")]) == exits.DONE
    out = capsys.readouterr().out
    assert "How the policies were found" in out
    assert "Times on this machine" in out
    assert "table2.json, table2.csv, table2.txt, table2.tex, index.html" in out
    document = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert [{**run, "seconds": None} for run in document["runs"]] == timeless(table)
    # Other settings are one line, and nothing is lost.
    assert command([*words, "--episodes", "70"]) == exits.BAD_INPUT
    assert "computed with episodes 60" in capsys.readouterr().err


def test_an_interrupted_method_is_not_taken_for_a_finished_row(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(_: bw.weights.HistoryEntry) -> None:
        raise KeyboardInterrupt  # `solve` answers it with a result of status INTERRUPTED

    with pytest.raises(KeyboardInterrupt):
        runner.run(Task(1, 150, "PIA"), CHOICE, watch)


def test_files_hold_every_number(table: Table2, tmp_path: Path) -> None:
    paths = reproduce.write(table, tmp_path / "out")
    suffixes = [".json", ".csv", ".txt", ".tex"]
    assert [path.name for path in paths] == [f"table2{suffix}" for suffix in suffixes]
    rows = list(csv.DictReader(paths[1].read_text(encoding="utf-8").splitlines()))
    assert not any("seconds" in key or key == "speedup" for key in rows[0])
    single = [row for row in rows if row["sample"] != "mean"]
    assert [float(row["cost"]) for row in single] == [run.cost for run in table.runs]
    means = {(row["states"], row["policy"]): row for row in rows if row["sample"] == "mean"}
    assert len(means) == 2 * len(METHODS) + len(BASELINES)
    row = summary(table, 190, "PIA")
    assert float(means["190", "PIA"]["difference"]) == row.difference.mean
    assert float(means["190", "PIA"]["difference_between"]) == row.difference.between
    document = json.loads(paths[0].read_text(encoding="utf-8"))
    assert document["summary"]["190"][2]["cost"]["mean"] == row.cost.mean
    text = paths[2].read_text(encoding="utf-8")
    for word in (*METHODS, *BASELINES, "13,195.70 ± 49.82", "chosen among 72"):
        assert word in text


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Wanted(exact=True), "exact does not go with table2"),
        (Wanted(states=(300, 300)), "different numbers"),
        (Wanted(episodes=1), "episodes is 1"),
    ],
)
def test_wrong_settings_are_refused(wanted: Wanted, words: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=words):
        ARTEFACT.settings(wanted)


def test_quick_is_a_small_version_and_options_override_it() -> None:
    quick = ARTEFACT.settings(Wanted(quick=True, episodes=77, seed=3))
    assert (quick.episodes, quick.seed, quick.samples) == (77, 3, 2)
    assert quick.occupancy_episodes < Table2Settings().occupancy_episodes
    usual = ARTEFACT.settings(Wanted(states=(20_000,), samples=7))
    assert (usual.states, usual.samples, usual.episodes) == ((20_000,), 7, 80_000)


def test_equal_policies_are_simulated_once(table: Table2, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(TINY)
    simulated: list[int] = []
    costs = Runner._costs

    def counted(runner: Runner, policy: Any, sample: int, episodes: int) -> Any:
        simulated.append(sample)
        return costs(runner, policy, sample, episodes)

    monkeypatch.setattr(Runner, "_costs", counted)
    same = replace(CHOICE, is_last_buffer=False)
    for name in (LAST_BUFFER, OTHER_TIE, BEST_STATIC):
        row = runner.run(Task(1, None, name), same, lambda _: None)
        if name != BEST_STATIC:
            assert row == next(run for run in table.runs if run.task == row.task)
    # The best static priority of `same` is the other tie by another name.
    assert simulated == [1, 1]
    runner.run(Task(2, None, LAST_BUFFER), same, lambda _: None)
    assert simulated == [1, 1, 2]


def test_policies_are_equal_up_to_rounding_of_coefficients(runner: Runner) -> None:
    policy = runner.solve(1, 150, methods()["Random"], lambda _: None).policy
    known = _fingerprint(policy)
    assert _fingerprint(replace(policy, coef=policy.coef * (1.0 + 1e-14))) == known
    assert _fingerprint(replace(policy, coef=policy.coef * (1.0 + 1e-6))) != known
    assert policy.dual is not None
    other = replace(policy.dual, actions=policy.dual.actions[::-1].copy())
    assert _fingerprint(replace(policy, dual=other)) != known
