"""Episodes of a policy: compiled loops, blocks of episodes, and their parallel execution.

What the costs mean is the business of `evaluation`.
"""

from bellweight.simulation.episodes import sample_states
from bellweight.simulation.occupancy import Simulation

__all__ = [
    "Simulation",
    "sample_states",
]
