"""The discounted occupancy of a policy, estimated: where it spends its time.

Only the moments Phi' occupancy are needed; they come with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bellweight.common import checks, files
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.common.streams import Keys, stream_keys
from bellweight.simulation.blocks import BLOCK, Task, run_blocks

_TAIL_SHARE = 1e-3


@files.storable("Simulation")
@dataclass(frozen=True)
class Simulation:
    """How an occupancy is estimated.

    Args:
        episodes: how many are simulated.
        horizon: steps of each; by default until discount^horizon < 0.001.

    Examples:
        >>> bw.Simulation(episodes=500, horizon=100).episodes
        500
    """

    episodes: int = 4_000
    horizon: int | None = None

    def __post_init__(self) -> None:
        checks.count(self.episodes, "episodes", least=2)
        if self.horizon is not None:
            checks.count(self.horizon, "horizon")

    def steps(self, discount: float) -> int:
        """Return the horizon, or say that it is too short to mean anything."""
        steps = default_horizon(discount) if self.horizon is None else self.horizon
        if discount**steps > 0.5:
            raise ArgumentError(
                f"horizon {steps} leaves out {100 * discount**steps:.0f} % of the discounted mass: "
                f"use at least {default_horizon(discount)}"
            )
        return steps


@dataclass(frozen=True, eq=False)
class Occupancy:
    """An occupancy, exact or estimated.

    Exact: `weights` (S,) with the 1-norm `residual` of the flow balance. Estimated: `moments` (K,)
    with `standard_error` (K,), the `tail_mass` that the horizon left out and that was made up for
    by rescaling, and `dual_share`, the share of discounted visits to states with dual mass (None
    for a policy that does not look at the dual).
    """

    weights: FloatArray | None = None
    residual: float | None = None
    moments: FloatArray | None = None
    standard_error: FloatArray | None = None
    tail_mass: float = 0.0
    dual_share: float | None = None


class MomentRollout(Protocol):
    """Episodes that add up discounted features, block by block."""

    def moment_block(
        self, first: int, last: int, horizon: int, keys: Keys
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the means, the squared deviations and the visits with dual mass of a block."""
        ...


def default_horizon(discount: float) -> int:
    """Return the first horizon at which discount^horizon is below 0.001."""
    steps = max(1, int(np.ceil(np.log(_TAIL_SHARE) / np.log(discount))))
    return steps if discount**steps < _TAIL_SHARE else steps + 1


def estimated_occupancy(
    rollout: MomentRollout,
    discount: float,
    simulation: Simulation,
    *,
    knows_dual: bool,
    seed: int = 0,
    jobs: int | None = None,
) -> Occupancy:
    """Return the estimated moments of a policy's occupancy, with standard errors.

    The mass discount^horizon that the horizon leaves out is made up for by rescaling, so that the
    moment of the constant is one. `knows_dual` says that visits with dual mass are counted.
    """
    horizon, n = simulation.steps(discount), simulation.episodes
    blocks = run_blocks(Task(rollout.moment_block, horizon, stream_keys(seed)), 0, n, jobs)
    tail = discount**horizon
    scale = (1.0 - discount) / (1.0 - tail)
    sizes = np.diff([*range(0, n, BLOCK), n])[:, None]
    means = np.array([block[0] for block in blocks])
    mean = (sizes * means).sum(axis=0) / n
    # Deviations within the blocks and between them: no difference of large numbers.
    spread = sum(block[1] for block in blocks) + (sizes * (means - mean) ** 2).sum(axis=0)
    return Occupancy(
        moments=scale * mean,
        standard_error=scale * np.sqrt(spread / (n - 1) / n),
        tail_mass=tail,
        dual_share=sum(block[2] for block in blocks) * scale / n if knows_dual else None,
    )
