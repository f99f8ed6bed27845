"""Factored models: parts that move independently, rows of all states by elimination."""

from __future__ import annotations

from bellweight.backends.backend import growing_tail
from bellweight.backends.simulated import USUAL_STATES, FunctionBackend
from bellweight.models import FactoredModel
from bellweight.policies import Policy
from bellweight.program import SampledRows


class FactoredBackend(FunctionBackend[FactoredModel]):
    """Costs are bounded, and any state can be drawn."""

    lists_successors = False
    noun = "a factored model"

    def __init__(self, model: FactoredModel) -> None:
        super().__init__(model)
        # Between two values nothing bends.
        self.usual_basis = "affine" if max(model.sizes) == 2 else "kinks:3"

    def tail(self, policy: Policy, horizon: int) -> tuple[float | None, str]:
        return growing_tail(self.model.discount, self.model.largest_cost, 0.0, horizon), ""

    def _usual_states(self, seed: int) -> SampledRows:
        """Return rows at states drawn evenly from all."""
        return SampledRows(self.model.spread_states(USUAL_STATES, seed), "drawn evenly from all")
