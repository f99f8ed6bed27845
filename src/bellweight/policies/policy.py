"""What a policy is: which action, with what probability, in which state.

On a tabular model a policy is a vector of probabilities over the sorted state-action pairs
(`probabilities(model)`, vectorised); `action(state)` draws or looks up one action. A policy is a
settings object until `on(model)` binds it to its model. Acting in a state where a policy is
randomised needs a NumPy Generator: randomness is always the caller's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.short import Short, value_text
from bellweight.common.status import PolicyError
from bellweight.models import LinearModel, Model, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies.actor import Actor, actor_for
from bellweight.policies.compiled import CompiledPolicy
from bellweight.policies.linear_actions import Chooser
from bellweight.policies.states import looked_up, one_index_of
from bellweight.policies.tables import by_state


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Policy(Short, ABC):
    """A stationary policy, possibly randomised, possibly not yet bound to a model."""

    model: Model | None = field(default=None, repr=False, compare=False, metadata=files.UNSTORED)

    @abstractmethod
    def probabilities(self, model: TabularModel) -> FloatArray:
        """Return the probability (N,) of each pair's action in its state."""

    def compiled(self, model: FunctionModel) -> CompiledPolicy:
        """Return this policy in the form that the loops of an event model take."""
        raise PolicyError(
            f"{type(self).__name__} is a policy for tabular models: give an event model a Rule, or "
            "Uniform, Greedy, DualSoftmax"
        )

    def chooser(self, model: LinearModel) -> Chooser:
        """Return this policy in the form that simulations of a linear model take."""
        raise PolicyError(
            f"{type(self).__name__} is not a policy for linear models: use Uniform, Greedy, "
            "DualSoftmax or a Rule from states (n, d) to actions (n, m)"
        )

    def on(self, model: Model) -> Self:
        """Return this policy bound to a model, ready to act."""
        return actor_for(model).bound(self, model)

    def action(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return an action for one state; `rng` is needed where the policy is randomised.

        The state is an index for a tabular model, a vector (d,) for other models, or a number where
        d is one. The action is an index, or a vector (m,) for a linear model.
        """
        known = self.known_actions
        if known is not None:
            return int(known[one_index_of(state, len(known))])
        return self._actor.one(state, rng)

    def actions(self, states: Any, rng: np.random.Generator | None = None) -> Any:
        """Return an action for each of several states, as `action` does for one.

        The states are indices (n,) for a tabular model, vectors (n, d) for other models, or numbers
        (n,) where d is one. The actions are indices (n,), or vectors (n, m) for a linear model.
        """
        known = self.known_actions
        return self._actor.several(states, rng) if known is None else looked_up(known, states)

    @property
    def known_actions(self) -> IntArray | None:
        """The actions (S,) by state, where they are known without the model."""
        return None

    def tabulated(self, model: TabularModel) -> Self:
        """Return this policy bound to a tabular model, its actions found where they are certain."""
        return replace(self, model=model)

    @cached_property
    def _actor(self) -> Actor:
        if self.model is None:
            raise PolicyError(
                f"{type(self).__name__} needs its model to act: call policy.on(model).action(state)"
            )
        return actor_for(self.model)(self, self.model)


class HasPolicy(Protocol):
    """What has a policy: every result of `solve`."""

    @property
    def policy(self) -> Policy: ...


def policy_of(thing: Policy | HasPolicy) -> Policy:
    """Return a policy, or the policy of a result; raise an error on anything else."""
    found = thing if isinstance(thing, Policy) else getattr(thing, "policy", None)
    if not isinstance(found, Policy):
        raise PolicyError(
            f"policy is {value_text(thing)}, expected a bellweight policy: use "
            "TablePolicy or Rule, or pass a result of solve"
        )
    return found


def checked_probabilities(model: TabularModel, policy: Policy) -> FloatArray:
    """Return a policy's probabilities over pairs, checked to be a distribution in every state."""
    chances = checks.float_array(
        policy_of(policy).probabilities(model),
        "policy probabilities",
        (model.n_pairs,),
        PolicyError,
    )
    bad = checks.first_index(chances < 0.0)
    if bad is not None:
        raise PolicyError(
            f"the policy gives probability {chances[bad]} to {model.pair_name(bad[0])}, expected "
            "no negative number"
        )
    totals = by_state(model, chances)
    off = checks.first_index(np.abs(totals - 1.0) > tolerances.PROBABILITY)
    if off is not None:
        raise PolicyError(
            f"the policy's probabilities in {model.state_name(off[0])} sum to {totals[off]:.12g}, "
            "expected 1"
        )
    return chances
