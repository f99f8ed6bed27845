"""The study beyond the paper, small: claims judged by the numbers, resumed part by part."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bellweight.common.status import ArgumentError
from bellweight.display import to_text
from bellweight.problems import single_queue
from bellweight.reproduce import CONTENTS, folder
from bellweight.reproduce.artefact import Wanted
from bellweight.reproduce.verdicts import Word
from studies.beyond import network, small
from studies.beyond import study as beyond
from studies.beyond.__main__ import main
from studies.beyond.network import PLAIN, REGULARISED, Arena, Entry
from studies.beyond.study import STUDY, Beyond, BeyondSettings, tasks
from studies.beyond.view import claim_table

TINY = BeyondSettings(
    episodes=20,
    samples=2,
    states=150,
    deltas=(0.3, 3.0),
    choice_samples=1,
    choice_episodes=20,
    occupancy_episodes=20,
    baseline_samples=1,
    budget=4_000,
    rounds=1,
)


def entry(name: str, sample: int, cost: float, gap: float, width: float = 1.0) -> Entry:
    numbers = {
        "cost": cost, "half_width": 10.0, "to_last_buffer": gap, "to_last_buffer_half_width": width,
        "to_static": gap + 200.0, "to_static_half_width": width,
    }  # fmt: skip
    return Entry("samples", sample, name, numbers)


def choices() -> list[Entry]:
    # The third is best in the worst sample, the second on average.
    gaps = {0.3: (9.0, 50.0), 1.0: (-99.0, -20.0), 3.0: (-60.0, -50.0), 10.0: (-40.0, -40.0),
            30.0: (1.0, 2.0)}  # fmt: skip
    return [
        Entry("choice", -sample, "", {"delta": delta, "gap": gap})
        for delta, pair in gaps.items()
        for sample, gap in enumerate(pair, start=1)
    ]


def study(gaps: list[float], plain: list[float]) -> Beyond:
    """A finished study with these differences to last-buffer-first."""
    made = choices()
    for sample, (gap, wide) in enumerate(zip(gaps, plain, strict=True), start=1):
        made += [entry(REGULARISED, sample, 13_265.0 + gap, gap),
                 entry(PLAIN, sample, 13_265.0 + wide, wide)]  # fmt: skip
    return Beyond(tuple(made), settings=BeyondSettings())


def verdicts_of(found: Beyond) -> list[str]:
    return [row["holds"] for row in claim_table(found).rows]


def test_the_regularisation_is_chosen_on_other_samples() -> None:
    assert Beyond(tuple(choices()), settings=BeyondSettings()).delta == 3.0
    names = tasks(BeyondSettings())
    assert {sample for part, sample in names if part == "choice"} == set(range(-8, 0))
    assert {sample for part, sample in names if part == "samples"} == set(range(1, 11))
    arena = Arena(0, 10, 2, 2, None)
    seeds = [arena.seed(k, p) for k in (-2, -1, 1, 2) for p in network.Purpose]
    assert len(set(seeds)) == len(seeds)


def test_claims_hold_when_the_numbers_say_so() -> None:
    plain = [100.0, -200.0] * 5
    assert verdicts_of(study([-120.0, -110.0] * 5, plain)) == ["yes", "yes", "yes"]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([-120.0] * 9 + [-0.5], ["no", "yes", "yes"]),  # one interval holds zero
        ([-300.0, -20.0] * 5, ["yes", "no", "yes"]),  # as unsteady as the plain program
        ([-40.0] * 10, ["yes", "yes", "no"]),  # not below the paper's best
    ],
)
def test_each_claim_can_fail(gaps: list[float], expected: list[str]) -> None:
    assert verdicts_of(study(gaps, [100.0, -200.0] * 5)) == expected


def test_claims_about_simulated_costs_need_enough_episodes() -> None:
    few = replace(study([-120.0, -110.0] * 5, [100.0, -200.0] * 5), settings=beyond.QUICK)
    assert set(verdicts_of(few)) == {"not judged"}
    assert few.compared()[0].verdict.word is Word.NOT_JUDGED
    full = study([-120.0, -110.0] * 5, [100.0, -200.0] * 5)
    assert full.compared()[0].verdict.word is Word.MATCHES
    better = study([-220.0, -210.0] * 5, [100.0, -200.0] * 5)
    assert better.compared()[0].verdict.word is Word.BETTER


def test_claims_about_samples_need_ten_of_them() -> None:
    few = study([-120.0, -110.0], [100.0, -200.0])
    many = replace(few, settings=BeyondSettings(episodes=400_000, samples=2))
    assert set(verdicts_of(few)) == set(verdicts_of(many)) == {"not judged"}


def test_it_is_not_of_the_paper() -> None:
    assert "beyond" not in CONTENTS
    assert STUDY.resumes


@pytest.fixture(scope="module")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study, as small as it can be, cut once and gone on with."""
    place = tmp_path_factory.mktemp("beyond")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.beyond.__main__.STUDY", replace(STUDY, quick=TINY))
        patch.setattr(network, "RADII", (3.0,))
        patch.setattr(network, "TABLE2_HORIZON", 150)
        patch.setattr("bellweight.backends.backend.BLOCK", 32)
        patch.setattr(small, "models", lambda: {small.CLINIC: small_queue()})
        patch.setattr(network, "BUDGET", 1e-3)
        patch.setattr(small, "single_queue", small_queue)
        for part in ("relatives", "auto"):
            with pytest.MonkeyPatch.context() as broken:
                broken.setattr(network, part, interrupted)
                assert main(["--quick", "--out", str(place)]) == 130
        assert main(["--quick", "--out", str(place)]) == 0
    return place


def small_queue(**options: Any) -> Any:
    return single_queue(**{**options, "capacity": 60})


def interrupted(*_: Any, **__: Any) -> list[Entry]:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_run_that_was_cut_goes_on_and_tells_everything(small_runs: Path) -> None:
    document = json.loads((small_runs / "beyond.json").read_text(encoding="utf-8"))
    assert document["complete"]
    found = {(e["part"], e["sample"]) for e in document["entries"]}
    assert found == set(tasks(TINY))
    text = (small_runs / "beyond.txt").read_text(encoding="utf-8")
    for words in ("Beyond the paper: what is claimed", "Sample by sample", "Relatives on the",
                  "Bases that grow", "How far the dual speaks", "Steps of the weight"):  # fmt: skip
        assert words in text
    assert "seconds" not in (small_runs / "beyond.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_finished_parts_are_read_back_as_they_were(small_runs: Path) -> None:
    again = STUDY.reproduce(replace(TINY, folder=small_runs))
    assert "\n".join(to_text(table) for table in again.tables()) == (
        small_runs / "beyond.txt"
    ).read_text(encoding="utf-8")
    assert folder.written("beyond", small_runs) is not None
    with pytest.raises(ArgumentError, match="samples 2, here samples is 3"):
        STUDY.reproduce(replace(TINY, samples=3, folder=small_runs))


def test_options_reach_the_settings() -> None:
    wanted = Wanted(episodes=9, samples=3, states=(70,), seed=4)
    found = STUDY.settings(wanted)
    assert (found.episodes, found.samples, found.states, found.seed) == (9, 3, 70, 4)
    with pytest.raises(ArgumentError, match="one number"):
        STUDY.settings(Wanted(states=(1, 2)))
    with pytest.raises(ArgumentError, match="exact does not go with beyond"):
        STUDY.settings(Wanted(exact=True))
