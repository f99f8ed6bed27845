"""Step models: real or whole state vectors, rows at sampled states, everything else simulated."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.backends.event import PLAIN_STEPS, USUAL_STATES, EventBackend, EventSetup
from bellweight.models import StepModel
from bellweight.policies import Greedy, Policy, Uniform
from bellweight.program import SampledRows
from bellweight.simulation import distinct_states

_JUDGING_TERMS = 200_000_000  # terms of expectations that compiled loops add up in a second


class StepSetup(EventSetup):
    """Rows at sampled states of a step model."""

    @property
    def backend(self) -> StepBackend:
        model = self.rows.model
        assert isinstance(model, StepModel)
        return StepBackend(model)


class StepBackend(EventBackend):
    """The same loops as for event models, on states in a box."""

    noun = "a step model"
    usual_basis = "kinks:10"

    def __init__(self, model: StepModel) -> None:
        super().__init__(model)
        self._steps = model

    def _sampled_setup(self, *settings: Any) -> StepSetup:
        return StepSetup(*settings)

    def judging_steps(self, policy: Policy) -> int:
        """Return fewer steps where each greedy decision takes many expectations."""
        steps = super().judging_steps(policy)
        if not isinstance(policy, Greedy):
            return steps
        terms = self._steps.n_actions * self._steps.n_nodes * policy.coef.size
        return min(steps, max(PLAIN_STEPS, _JUDGING_TERMS // terms))

    def _usual_states(self, seed: int) -> SampledRows:
        """Return rows at states all over the box, and at some that acting at random leads to."""
        model, half = self._steps, USUAL_STATES // 2
        visited = distinct_states(model, half, Uniform(), seed=seed)[0]
        together = np.concatenate([model.spread_states(half, seed), visited])
        first = np.unique(together, axis=0, return_index=True)[1]
        origin = "all over the box and where acting at random leads"
        return SampledRows(together[np.sort(first)], origin)
