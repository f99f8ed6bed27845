"""Episodes of a policy: compiled loops, blocks of episodes, and their parallel execution.

Estimates and comparisons of costs are made from them in `evaluation`.
"""

from bellweight.simulation.blocks import BLOCK, Finished, Task, episode_costs, run_blocks
from bellweight.simulation.episodes import Episodes
from bellweight.simulation.estimates import mean_and_half_width, one_sided
from bellweight.simulation.event_episodes import EventRollout
from bellweight.simulation.kept_blocks import KeptBlocks
from bellweight.simulation.linear_episodes import LinearRollout
from bellweight.simulation.occupancy import (
    Occupancy,
    Simulation,
    default_horizon,
    estimated_occupancy,
)
from bellweight.simulation.sampling import distinct_states, sample_states
from bellweight.simulation.tabular_episodes import TabularRollout

__all__ = [
    "BLOCK",
    "Episodes",
    "EventRollout",
    "Finished",
    "KeptBlocks",
    "LinearRollout",
    "Occupancy",
    "Simulation",
    "TabularRollout",
    "Task",
    "default_horizon",
    "distinct_states",
    "episode_costs",
    "estimated_occupancy",
    "mean_and_half_width",
    "one_sided",
    "run_blocks",
    "sample_states",
]
