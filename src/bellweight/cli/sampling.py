"""What the command line says about models whose states cannot be enumerated.

Their occupancies are simulated. Where rows come from sampled states, these are drawn here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bellweight.cli import parse

if TYPE_CHECKING:
    from bellweight.models import Model
    from bellweight.program import SampledRows
    from bellweight.simulation import Simulation

STATES = 5_000
EPISODES = 4_000


class StatesFrom(StrEnum):
    """Where sampled states come from."""

    initial = "initial"
    random = "random"


_SIMULATING = ("episodes", "horizon")
_SOURCES = {
    StatesFrom.initial: "the initial distribution",
    StatesFrom.random: "the occupancy of the uniform policy",
}


@dataclass(frozen=True)
class SampleWords(parse.Words):
    """What was said about states and simulation."""

    states: int | None = None
    states_from: StatesFrom | None = None
    episodes: int | None = None
    horizon: int | None = None

    def flags(self) -> list[str]:
        """Return the words to repeat in a command that goes on."""
        return [word for name, value in self.given().items() for word in (parse.flag(name), value)]


@dataclass(frozen=True, eq=False)
class Sample:
    """The sampled rows, if any, and the simulation of a model, and what to say about them."""

    rows: SampledRows | None
    simulation: Simulation
    facts: dict[str, Any]

    def told(self) -> list[tuple[str, str]]:
        """Return them as the summary shows them."""
        f = self.facts
        occupancy = ("occupancy", f"{f['episodes']:,} episodes of {f['horizon']:,} steps")
        if "states" not in f:
            return [occupancy]
        return [
            (
                "states",
                f"{f['states']:,} from {f['from']}; largest total {f['largest_total']:g}, "
                f"largest coordinate {f['largest_coordinate']:g}",
            ),
            occupancy,
        ]


def sample(words: SampleWords, model: Model, seed: int) -> Sample | None:
    """Draw states where rows are sampled; None for a model whose states are all listed."""
    from bellweight.backends import backend_of
    from bellweight.program import SampledRows
    from bellweight.simulation import Simulation

    backend = backend_of(model)
    if backend.lists_states:
        _refuse(words.given(), f"{backend.noun}: its states are all known, nothing is simulated")
        return None
    simulation = Simulation(EPISODES if words.episodes is None else words.episodes, words.horizon)
    facts = {"episodes": simulation.episodes, "horizon": simulation.steps(model.discount)}
    if not backend.samples_states:
        unused = [name for name in words.given() if name not in _SIMULATING]
        _refuse(unused, f"{backend.noun}: its rows are found by pricing, no states are sampled")
        return Sample(None, simulation, facts)
    if words.states is None and words.states_from is None:
        return Sample(None, simulation, facts)  # the library chooses the rows, and says which
    states, origin = _states(words, model, seed)
    return Sample(SampledRows(states), simulation, {**origin, **facts})


def _refuse(names: Iterable[str], reason: str) -> None:
    for name in names:
        raise parse.usage(f"{parse.flag(name)} does not go with {reason}")


def _states(words: SampleWords, model: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the states of the rows, and where they come from."""
    from bellweight.policies import Uniform
    from bellweight.simulation import sample_states

    source = words.states_from or StatesFrom.initial
    policy = Uniform() if source is StatesFrom.random else None
    n = STATES if words.states is None else words.states
    states = sample_states(model, n, policy, seed=seed)
    return states, {
        "states": len(states),
        "from": _SOURCES[source],
        "seed": seed,
        "largest_total": float(states.sum(axis=1).max()),
        "largest_coordinate": float(states.max()),
    }
