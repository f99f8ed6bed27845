"""Beyond the paper: policies that beat its best, on any constraint sample.

The network of Table 2 on many independent samples of constraint states: the plain program, the
regularised one with one delta chosen on other samples, programs on states that a good policy
visits, and Auto. Then, where the optimum is known: bases that grow, relatives of the program, steps
of the weight iteration. Ours alone: the paper has no such table, but its best cost is the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bellweight.common import checks
from bellweight.display import Table
from bellweight.plans.auto import Auto
from bellweight.report.document import plain
from bellweight.reproduce import folder
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Tell
from bellweight.reproduce.paper import TABLE2_STATES
from bellweight.reproduce.times import COMPILING, Time
from bellweight.reproduce.verdicts import Compared
from studies.beyond import network, small, view
from studies.beyond.network import Arena, Entry


@dataclass(frozen=True)
class BeyondSettings(Settings):
    """How much to do.

    `episodes` judge a policy in a sample; `choice_episodes` choose. `deltas` are tried on
    `choice_samples` samples that serve for nothing else. `baseline_samples` of the samples also run
    Auto with baselines. `budget` is Auto's.
    """

    episodes: int = 40_000
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
    settings: BeyondSettings = field(kw_only=True)

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
        return {"entries": plain(self.entries)}

    def tables(self) -> tuple[Table, ...]:
        """Return what is claimed, then the numbers, part by part."""
        return view.tables(self)

    def rows(self) -> Table:
        return view.all_rows(self.entries)

    def compared(self) -> tuple[Compared, ...]:
        """Return our mean beside the paper's best."""
        return view.compared(self)

    def times(self) -> tuple[Time, ...]:
        return view.times(self.entries)


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


def steps(settings: BeyondSettings, tell: Tell) -> Iterator[Beyond]:
    """Compute part by part.

    Parts that an earlier run with the same settings left in the settings' folder are kept.
    """
    found = _earlier(settings)
    if found.entries:
        yield found
    todo = [task for task in tasks(settings) if task not in found.done]
    if not todo:
        return
    tell(COMPILING, 0.0)
    arena = Arena(
        settings.seed, settings.states, settings.episodes, settings.occupancy_episodes,
        settings.jobs,
    )  # fmt: skip
    for place, (part, sample) in enumerate(todo):
        tell(part if sample is None else f"{part}, sample {sample}", place / len(todo))
        found = replace(found, entries=(*found.entries, *_computed(found, arena, part, sample)))
        yield found


STUDY = Artefact(
    "beyond",
    steps,
    full=BeyondSettings(),
    quick=QUICK,
    takes=("episodes", "samples", "states", "quick"),
    resumes=True,
)


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
    document = folder.earlier("beyond", settings)
    if document is None:
        return Beyond((), settings=settings)
    with folder.reading("beyond", settings.folder):
        entries = tuple(Entry(**entry) for entry in document["entries"])
        return Beyond(entries, settings=settings, seconds=float(document["seconds"]))
