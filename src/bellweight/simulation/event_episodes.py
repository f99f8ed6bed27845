"""Episodes of models that are given by functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common.streams import Keys
from bellweight.models.function_model import FunctionModel, check_same_written
from bellweight.models.kernels.layouts import Acting
from bellweight.models.loops import Loops
from bellweight.policies.compiled import CompiledPolicy
from bellweight.simulation.episodes import FeatureRollout


@dataclass(frozen=True, eq=False)
class EventRollout(FeatureRollout):
    """A model given by functions and a policy, laid out for the compiled loops.

    It holds the model's source text: functions cannot always be sent to a worker.
    """

    loops: Loops
    acting: Acting
    basis: CompiledBasis | None = None

    @classmethod
    def of(
        cls, model: FunctionModel, policy: CompiledPolicy, basis: Basis | None = None
    ) -> EventRollout:
        """Lay out a model and a policy; with a basis, discounted features are added up too."""
        if basis is None:
            return cls(policy.loops, policy.acting)
        compiled = CompiledBasis.of(basis, model.dimension)
        check_same_written(compiled.written, policy.written)
        loops = policy.loops
        if compiled.written and not policy.written:
            loops = model.loops_with(written=compiled.written)
        return cls(loops, policy.acting, compiled)

    def state_block(self, first: int, last: int, _: int, keys: Keys) -> Any:
        """Return one state per episode, drawn from the discounted occupancy."""
        return self.loops.occupied_states(first, last, keys, self.acting)

    def _run(self, first: int, last: int, horizon: int, keys: Keys) -> tuple[Any, Any, Any]:
        if self.basis is None:
            return self.loops.rollout(first, last, horizon, keys, self.acting)
        functions = self.basis.functions
        costs, sums, hits = self.loops.rollout(first, last, horizon, keys, self.acting, functions)
        return costs, self.basis.of_basis(sums), hits
