"""Episodes of event models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import monomials
from bellweight.common.checks import IntArray
from bellweight.common.streams import Keys
from bellweight.models import EventModel
from bellweight.models.compile import Source, naming
from bellweight.models.events import fault_error
from bellweight.policies.compiled import CompiledPolicy
from bellweight.simulation.rollout import FeatureRollout


@dataclass(frozen=True, eq=False)
class EventRollout(FeatureRollout):
    """An event model and a policy, laid out for the compiled loops.

    It holds the model's text, not its functions, which may not be fit to be sent to a worker.
    """

    source: Source
    arguments: tuple[Any, ...]
    discount: float
    dimension: int
    labels: tuple[str, ...]
    words: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(
        cls, model: EventModel, policy: CompiledPolicy, basis: Basis | None = None
    ) -> EventRollout:
        """Lay out a model and a policy; with a basis, discounted features are added up too."""
        words = () if basis is None else tuple(basis.words(model.dimension))
        return cls(
            policy.source, policy.arguments(), model.discount, model.dimension,
            tuple(model.actions), words,
        )  # fmt: skip

    def state_block(self, first: int, last: int, _: int, keys: Keys) -> IntArray:
        """Return one state per episode, drawn from the discounted occupancy."""
        states = np.zeros((last - first, self.dimension), dtype=np.int64)
        where = np.zeros(self.dimension, dtype=np.int64)
        with naming(where):
            code, action = self.source.load().occupied_states(
                first, last, keys, self.discount, self.arguments, states, where
            )
        self._check(code, where, action)
        return states

    def _run(self, first: int, last: int, horizon: int, keys: Keys) -> tuple[Any, Any, Any]:
        n = last - first
        costs, hits, sums = np.zeros(n), np.zeros(n), np.zeros((n, len(self.words)))
        where = np.zeros(self.dimension, dtype=np.int64)
        basis = monomials(list(self.words) or [()])
        with naming(where):
            code, action = self.source.load().rollout(
                first, last, horizon, keys, self.discount, self.arguments, basis, costs, sums, hits,
                where,
            )  # fmt: skip
        self._check(code, where, action)
        return costs, sums, hits

    def _check(self, code: int, state: IntArray, action: int) -> None:
        if code:
            raise fault_error(self.source.load(), self.labels, code, state, action)
