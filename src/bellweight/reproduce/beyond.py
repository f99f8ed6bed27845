"""Beyond the paper: policies that beat its best, on any constraint sample.

The network of Table 2 on many independent samples of constraint states: the plain program, the
regularised one with one delta chosen on other samples, programs on states that a good policy
visits, and Auto. Then, where the optimum is known: bases that grow, relatives of the program, steps
of the weight iteration. Ours alone: the paper has no such table, but its best cost is the mark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bellweight.common import checks
from bellweight.common.status import ArgumentError, FileError
from bellweight.display import Table
from bellweight.plans.auto import Auto
from bellweight.report.document import plain
from bellweight.reproduce import beyond_network as network
from bellweight.reproduce import beyond_small as small
from bellweight.reproduce import beyond_view as view
from bellweight.reproduce.artefact import Reproduction, Settings, Tell, Wanted, ignore
from bellweight.reproduce.beyond_network import Arena, Entry
from bellweight.reproduce.folder import check_same, written
from bellweight.reproduce.paper import TABLE2_STATES
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared

EPISODES = 40_000
RESUMES = True


@dataclass(frozen=True)
class BeyondSettings(Settings):
    """How much to do.

    `episodes` judge a policy in a sample; `choice_episodes` choose. `deltas` are tried on
    `choice_samples` samples that serve for nothing else. `baseline_samples` of the samples also run
    Auto with baselines. `budget` is Auto's.
    """

    episodes: int = EPISODES
    samples: int = 10
    states: int = TABLE2_STATES
    deltas: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0)
    good_deltas: tuple[float, ...] = (0.3, 3.0)
    choice_samples: int = 8
    choice_episodes: int = 4_000
    occupancy_episodes: int = 2_000
    baseline_samples: int = 10
    budget: int = 200_000
    rounds: int = 2
    folder: Path | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("samples", "states", "choice_samples"):
            checks.count(getattr(self, name), name)


QUICK = BeyondSettings(
    episodes=1_000,
    samples=2,
    states=1_000,
    deltas=(0.3, 3.0),
    choice_samples=1,
    choice_episodes=500,
    occupancy_episodes=500,
    baseline_samples=1,
    budget=120_000,
    rounds=1,
)
"""A look at everything in a few minutes."""


@dataclass(frozen=True)
class Beyond(Reproduction):
    """What is finished: entries, part by part."""

    entries: tuple[Entry, ...]
    settings: BeyondSettings
    seconds: float = 0.0
    name: str = field(default="beyond")

    @property
    def complete(self) -> bool:
        """Whether every part is there."""
        return set(tasks(self.settings)) <= self.done

    @property
    def done(self) -> set[tuple[str, int | None]]:
        """The parts that are finished, with their samples."""
        return {(entry.part, entry.sample) for entry in self.entries}

    @property
    def delta(self) -> float:
        """The regularisation whose worst sample is best, of the samples for choosing it.

        The worst, as it is to do well on every sample and not on average alone.
        """
        worst = {
            delta: max(e.numbers["gap"] for e in self.part("choice") if e.numbers["delta"] == delta)
            for delta in self.settings.deltas
        }
        return min(worst, key=lambda delta: worst[delta])

    def part(self, name: str) -> list[Entry]:
        """Return the entries of a part."""
        return [entry for entry in self.entries if entry.part == name]

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {"seconds": self.seconds, "entries": plain(self.entries)}

    def tables(self) -> tuple[Table, ...]:
        """Return what is claimed, then the numbers, part by part."""
        return view.tables(self)

    def rows(self) -> Table:
        """Return all numbers as one long table."""
        return view.long_table(self.entries)

    def compared(self) -> tuple[Compared, ...]:
        """Return our mean beside the paper's best."""
        return view.compared(self)

    def times(self) -> tuple[Time, ...]:
        """Return what was measured with a clock."""
        return view.times(self.entries)


def settings(wanted: Wanted) -> BeyondSettings:
    """Return the settings that the command line asks for."""
    wanted.only("beyond", "episodes", "samples", "states", "quick")
    usual = QUICK if wanted.quick else BeyondSettings()
    given: dict[str, Any] = {}
    if wanted.episodes is not None:
        given["episodes"] = wanted.episodes
    if wanted.samples is not None:
        given["samples"] = wanted.samples
    if wanted.states is not None:
        if len(wanted.states) != 1:
            raise ArgumentError("--states takes one number with beyond")
        given["states"] = wanted.states[0]
    return replace(usual, **given, seed=wanted.seed, jobs=wanted.jobs, folder=wanted.folder)


def tasks(settings: BeyondSettings) -> list[tuple[str, int | None]]:
    """Return the parts and samples in the order of the work."""
    found: list[tuple[str, int | None]] = [
        ("choice", -k) for k in range(1, settings.choice_samples + 1)
    ]
    found += [(part, None) for part in _SMALL]
    found += [("dual", 1), ("relatives", 1)]
    for sample in range(1, settings.samples + 1):
        found += [("samples", sample), ("good", sample), ("auto", sample)]
        if sample <= settings.baseline_samples:
            found.append((network.WITH_BASELINES, sample))
    return found


def reproduce(
    settings: Settings, tell: Tell = ignore, keep: Callable[[Reproduction], object] = ignore
) -> Beyond:
    """Compute part by part; `keep` sees what is finished after each.

    Parts that an earlier run with the same settings left in the settings' folder are kept.
    """
    assert isinstance(settings, BeyondSettings)
    began = time.perf_counter()
    found = _earlier(settings)
    todo = [task for task in tasks(settings) if task not in found.done]
    if not todo:
        return found
    tell("compiling, or loading what was compiled before", 0.0)
    arena = Arena(
        settings.seed, settings.states, settings.episodes, settings.occupancy_episodes,
        settings.jobs,
    )  # fmt: skip
    before = found.seconds
    for place, (part, sample) in enumerate(todo):
        tell(part if sample is None else f"{part}, sample {sample}", place / len(todo))
        fresh = _computed(found, arena, part, sample)
        seconds = before + time.perf_counter() - began
        found = replace(found, entries=(*found.entries, *fresh), seconds=seconds)
        keep(found)
    return found


def _computed(so_far: Beyond, arena: Arena, part: str, sample: int | None) -> list[Entry]:
    settings = so_far.settings
    if sample is None:
        return _SMALL[part]()
    if part == "choice":
        return network.choice(arena, sample, settings.deltas, settings.choice_episodes)
    if part == "samples":
        return network.sampled(arena, sample, so_far.delta)
    if part == "good":
        return network.good(arena, sample, settings.good_deltas, settings.choice_episodes)
    if part == "dual":
        return network.dual(arena, sample, settings.deltas)
    if part == "relatives":
        return network.relatives(arena, sample, so_far.delta)
    plan = Auto(budget=settings.budget, rounds=settings.rounds)
    entries = network.auto(arena, sample, plan, baselines=part != "auto")
    return [replace(entry, part=part) for entry in entries]


_SMALL: Mapping[str, Callable[[], list[Entry]]] = {
    "basis": small.bases,
    "small relatives": small.relatives,
    "steps": small.steps,
}


def _earlier(settings: BeyondSettings) -> Beyond:
    """Return what an earlier run left in the folder, if its settings are the same."""
    document = written("beyond", settings.folder)
    fresh = Beyond((), settings)
    if document is None:
        return fresh
    check_same("beyond", settings.folder, document, settings)
    try:
        entries = tuple(Entry(**entry) for entry in document["entries"])
        return replace(fresh, entries=entries, seconds=float(document["seconds"]))
    except (KeyError, TypeError, ValueError):
        raise FileError(
            f"{settings.folder}/beyond.json is damaged: delete it, or name another folder"
        ) from None
