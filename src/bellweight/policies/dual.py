"""Policies that follow the dual of a program."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy

from bellweight.common import files
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray
from bellweight.common.status import PolicyError
from bellweight.models import LinearModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies.compiled import CompiledPolicy, compiled_softmax
from bellweight.policies.dual_rows import DualRows
from bellweight.policies.linear_actions import Chooser, SoftmaxChooser
from bellweight.policies.policy import Policy
from bellweight.policies.simple import Uniform
from bellweight.policies.support import Support
from bellweight.policies.tables import by_state

_LENT_STATES = 1_024  # states at a time, so that distances take little memory


@files.storable("DualPolicy")
@dataclass(frozen=True, eq=False, repr=False)
class DualPolicy(Policy):
    """The normalised dual (eq. dual_fluid_policy); `elsewhere` acts in states without dual mass."""

    dual: Support
    elsewhere: Policy = field(default_factory=Uniform)

    def probabilities(self, model: TabularModel) -> FloatArray:
        dual = self.dual.over_pairs(model)
        mass = by_state(model, dual)[model.pair_state]
        other = self.elsewhere.probabilities(model)
        return np.where(mass > 0.0, dual / np.where(mass > 0.0, mass, 1.0), other)


@files.storable("DualSoftmax")
@dataclass(frozen=True, eq=False, repr=False)
class DualSoftmax(Policy):
    """The target-guided softmax of the dual (eq. target_guided_softmax_policy).

    With m the dual mass of a state, the policy is the softmax of the state's duals at `temperature`
    with share m / (m + smoothing_mass), and the target with the rest. With `extend`, a radius, each
    state lends the share 1 - distance / radius of its dual to the states nearer than that (in the
    1-norm of state vectors, or of indices where there are none), so that states without a row of
    their own follow the dual of their neighbours.
    """

    dual: Support
    target: Policy
    temperature: float
    smoothing_mass: float
    extend: float | None = None

    def extended_dual(self, model: TabularModel) -> Support:
        """Return the dual that the policy follows: with `extend`, including what states lend."""
        if self.extend is None:
            return self.dual
        states = np.asarray(model.states, dtype=np.float64)
        own = Support(self.dual.indices(model), self.dual.actions, self.dual.values)
        lenders, duals = own.over_actions(model.n_actions)
        mass = np.empty(model.n_pairs)
        for some in blocks(model.n_states, _LENT_STATES):
            distance = scipy.spatial.distance.cdist(states[some], states[lenders], "cityblock")
            lent = np.maximum(1.0 - distance / self.extend, 0.0) @ duals
            pairs = slice(model.pair_start[some.start], model.pair_start[some.stop])
            mass[pairs] = lent[model.pair_state[pairs] - some.start, model.pair_action[pairs]]
        used = np.flatnonzero(mass > 0.0)
        return Support(model.pair_state[used], model.pair_action[used], mass[used])

    def probabilities(self, model: TabularModel) -> FloatArray:
        target = self.target.probabilities(model)
        extended = self.extended_dual(model)
        # Only in states with dual mass does the policy differ from its target.
        states = np.unique(extended.indices(model))
        touched = np.isin(model.pair_state, states)
        starts = np.append(0, np.cumsum(np.diff(model.pair_start)[states]))
        duals = extended.over_pairs(model)[touched]
        rows = DualRows.of(duals, starts, self.temperature, self.smoothing_mass)
        mixed = np.array(target)
        mixed[touched] = rows.mixed_with(target[touched])
        return mixed

    def compiled(self, model: FunctionModel) -> CompiledPolicy:
        states, duals = self.dual.over_vectors(model.n_actions)
        target = self.target.compiled(model)
        settings = self.temperature, self.smoothing_mass, self.extend
        return compiled_softmax(target, model, states, duals, *settings)

    def chooser(self, model: LinearModel) -> Chooser:
        if self.extend is not None:
            raise PolicyError(
                "extend is not for a linear model, where an action of one state need not be "
                "admissible in another: leave it out"
            )
        target = self.target.chooser(model)
        if len(self.dual.values) == 0:
            return target
        states, order, starts = self.dual.by_state()
        duals = self.dual.values[order]
        rows = DualRows.of(duals, starts, self.temperature, self.smoothing_mass)
        return SoftmaxChooser(model, target, states, self.dual.actions[order], rows)
