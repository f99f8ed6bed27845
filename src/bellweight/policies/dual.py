"""Policies that follow the dual of a program."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import PolicyError
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.policies.compiled import CompiledPolicy, compiled_softmax
from bellweight.policies.linear_actions import Chooser, SoftmaxChooser
from bellweight.policies.policy import Policy
from bellweight.policies.simple import Uniform
from bellweight.policies.support import Support
from bellweight.policies.tables import by_state

_LENT_STATES = 1_024  # states at a time, so that distances take little memory


@files.storable("DualPolicy")
@dataclass(frozen=True, eq=False)
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
@dataclass(frozen=True, eq=False)
class DualSoftmax(Policy):
    """The target-guided softmax of the dual (eq. target_guided_softmax_policy).

    With m the dual mass of a state, the policy is the softmax of the state's duals at `temperature`
    with share m / (m + smoothing_mass), and the target with the rest. With `extend`, a radius, each
    state lends the share 1 - distance / radius of its dual to the states nearer than that (in the
    1-norm of state vectors, or of indices where there are none), so that the dual speaks in states
    that no row stands for.
    """

    dual: Support
    target: Policy
    temperature: float
    smoothing_mass: float
    extend: float | None = None

    def reaching(self, model: TabularModel) -> Support:
        """Return the dual as the policy uses it: with what states lend each other."""
        if self.extend is None:
            return self.dual
        states = np.asarray(model.states, dtype=np.float64)
        givers, place = np.unique(self.dual.indices(model), return_inverse=True)
        own = np.zeros((len(givers), model.n_actions))
        np.add.at(own, (place.ravel(), self.dual.actions), self.dual.values)
        mass = np.empty(model.n_pairs)
        for first in range(0, model.n_states, _LENT_STATES):
            last = min(first + _LENT_STATES, model.n_states)
            distance = cdist(states[first:last], states[givers], "cityblock")
            lent = np.maximum(1.0 - distance / self.extend, 0.0) @ own
            pairs = slice(model.pair_start[first], model.pair_start[last])
            mass[pairs] = lent[model.pair_state[pairs] - first, model.pair_action[pairs]]
        used = np.flatnonzero(mass > 0.0)
        return Support(model.pair_state[used], model.pair_action[used], mass[used])

    def probabilities(self, model: TabularModel) -> FloatArray:
        target = self.target.probabilities(model)
        reaching = self.reaching(model)
        dual = reaching.over_pairs(model)
        # Only states with dual mass differ from the target.
        touched = np.isin(model.pair_state, reaching.indices(model))
        state = model.pair_state[touched]
        part = dual[touched]
        highest = np.full(model.n_states, -np.inf)
        np.maximum.at(highest, state, part)
        # Subtracting the largest exponent of the state keeps the exponentials from overflowing.
        weight = np.exp((part - highest[state]) / self.temperature)
        total = np.bincount(state, weights=weight, minlength=model.n_states)
        mass = np.bincount(state, weights=part, minlength=model.n_states)[state]
        share = mass / (mass + self.smoothing_mass)
        mixed = np.array(target)
        mixed[touched] = share * weight / total[state] + (1.0 - share) * target[touched]
        return mixed

    def compiled(self, model: EventModel) -> CompiledPolicy:
        states, duals = self.dual.by_state(model)
        target = self.target.compiled(model)
        settings = self.temperature, self.smoothing_mass, self.extend
        return compiled_softmax(target, model, states, duals, *settings)

    def chooser(self, model: LinearModel) -> Chooser:
        if self.extend is not None:
            raise PolicyError(
                "extend does not go with a linear model, whose actions depend on the state: leave "
                "it out"
            )
        target = self.target.chooser(model)
        if len(self.dual.values) == 0:
            return target
        dual = (self.dual.states, self.dual.actions, self.dual.values)
        return SoftmaxChooser.of(target, dual, self.temperature, self.smoothing_mass)
