"""What backends share whose states cannot be listed: weights are known by their moments."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from bellweight.backends.backend import Backend
from bellweight.backends.estimate import Estimate
from bellweight.backends.setup import Outside, Point, Setup
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.policies import Policy, Support
from bellweight.simulation import Occupancy, episode_costs, mean_and_half_width


class SimulatedSetup(Setup):
    """Occupancies by simulation, always on the same random streams."""

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """The backend of the model."""

    @abstractmethod
    def initial_point(self) -> Point:
        """Return the moments of the initial distribution."""

    def occupancy(self, policy: Policy) -> Occupancy:
        return self.backend.estimated_occupancy(
            policy, self.basis, self.simulation, self.seed, self.jobs
        )

    def occupied(self, occupancy: Occupancy) -> Point:
        assert occupancy.moments is not None
        return Point(occupancy.moments, standard_error=occupancy.standard_error)

    def point_of(self, vector: FloatArray, standard_error: FloatArray | None = None) -> Point:
        return Point(vector, standard_error=standard_error)

    def named_point(self, weights: Any, name: str) -> Point:
        if not isinstance(weights, str) or weights != "initial":
            raise ArgumentError(
                f'{name} is {weights!r}, expected "initial" for a model whose states cannot be '
                "enumerated: use Fixed(moments=...) or FromPolicy(policy)"
            )
        return self.initial_point()

    def cost(self, policy: Policy) -> Estimate:
        horizon = self.simulation.steps(self.model.discount)
        rollout = self.backend.episodes(policy)
        costs = episode_costs(rollout, 0, self.simulation.episodes, horizon, self.seed, self.jobs)
        return Estimate(*mean_and_half_width(costs))

    def episode_costs(
        self, policy: Policy, episodes: int, horizon: int, seed: int
    ) -> tuple[FloatArray, Outside | None]:
        rollout = self.backend.episodes(policy)
        return episode_costs(rollout, 0, episodes, horizon, seed, self.jobs), None

    def dual_share(self, occupancy: Occupancy, dual: Support, policy: Policy) -> float | None:
        return occupancy.dual_share
