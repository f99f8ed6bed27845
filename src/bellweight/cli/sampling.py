"""What the command line says about models whose states cannot be enumerated.

Their program has the rows of sampled states, and occupancies are simulated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bellweight.cli import parse

if TYPE_CHECKING:
    from bellweight.models import EventModel, TabularModel
    from bellweight.occupancy import Simulation
    from bellweight.rows import SampledRows

STATES = 5_000
EPISODES = 4_000


class StatesFrom(StrEnum):
    """Where sampled states come from."""

    initial = "initial"
    random = "random"


_SOURCES = {
    StatesFrom.initial: "the initial distribution",
    StatesFrom.random: "the occupancy of the uniform policy",
}


@dataclass(frozen=True)
class SampleWords:
    """What was said about states and simulation; None where nothing was."""

    states: int | None = None
    states_from: StatesFrom | None = None
    episodes: int | None = None
    horizon: int | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def flags(self) -> list[str]:
        """Return the words to repeat in a command that goes on."""
        return [word for name, value in self.given().items() for word in (parse.flag(name), value)]


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows and the simulation of an event model, and what to say about them."""

    rows: SampledRows
    simulation: Simulation
    facts: dict[str, Any]

    def lines(self) -> list[str]:
        """Return them as the summary shows them."""
        f = self.facts
        return [
            f"states      {f['states']:,} from {f['from']}; largest total {f['largest_total']}, "
            f"largest coordinate {f['largest_coordinate']}",
            f"occupancy   {f['episodes']:,} episodes of {f['horizon']:,} steps",
        ]


def sample(words: SampleWords, model: TabularModel | EventModel, seed: int) -> Sample | None:
    """Draw the states of an event model; None for a tabular model, which has all of its own."""
    from bellweight.models import EventModel
    from bellweight.occupancy import Simulation
    from bellweight.policy import Uniform
    from bellweight.rows import SampledRows
    from bellweight.simulate import sample_states

    if not isinstance(model, EventModel):
        for name in words.given():
            raise parse.usage(
                f"{parse.flag(name)} goes with an event model: this one's states are all known and "
                "nothing is simulated"
            )
        return None
    simulation = Simulation(EPISODES if words.episodes is None else words.episodes, words.horizon)
    steps = simulation.steps(model.discount)
    source = words.states_from or StatesFrom.initial
    policy = Uniform() if source is StatesFrom.random else None
    n = STATES if words.states is None else words.states
    states = sample_states(model, n, policy, seed=seed)
    facts = {
        "states": len(states),
        "from": _SOURCES[source],
        "seed": seed,
        "largest_total": int(states.sum(axis=1).max()),
        "largest_coordinate": int(states.max()),
        "episodes": simulation.episodes,
        "horizon": steps,
    }
    return Sample(SampledRows(states), simulation, facts)
