"""How a policy acts on a model: each kind of model registers its own actor, in its backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bellweight.common import lazy
from bellweight.common.status import PolicyError
from bellweight.models.kinds import entry_for

if TYPE_CHECKING:
    from bellweight.policies.policy import Policy

AnyPolicy = TypeVar("AnyPolicy", bound="Policy")
AnyActor = TypeVar("AnyActor", bound="type[Actor]")

_ACTORS: dict[type, type[Actor]] = {}


class Actor(ABC):
    """A policy laid out for one model, so that many actions are found quickly."""

    @abstractmethod
    def __init__(self, policy: Policy, model: Any) -> None:
        """Lay out a policy for a model."""

    @abstractmethod
    def one(self, state: Any, rng: np.random.Generator | None) -> Any:
        """Return an action for one state, as the user gave it."""

    @abstractmethod
    def several(self, states: Any, rng: np.random.Generator | None) -> Any:
        """Return an action for each of several states, as the user gave them."""

    @staticmethod
    def bound(policy: AnyPolicy, model: Any) -> AnyPolicy:
        """Return the policy bound to a model."""
        return replace(policy, model=model)


def acts_on(kind: type) -> Callable[[AnyActor], AnyActor]:
    """Register the decorated class as the actor on models of a kind."""

    def register(actor: AnyActor) -> AnyActor:
        _ACTORS[kind] = actor
        return actor

    return register


def actor_for(model: Any) -> type[Actor]:
    """Return the class of actors on models of this model's kind."""
    if not isinstance(model, tuple(_ACTORS)):
        # Backends register actors, and names are loaded when they are asked for.
        lazy.load_all()
    return entry_for(model, _ACTORS)


def needs_generator(policy: Policy, where: str = "") -> PolicyError:
    """Return the error of a policy that draws its action and was given no random numbers."""
    return PolicyError(
        f"{type(policy).__name__} chooses at random{where}: pass a numpy Generator, action(state, "
        "np.random.default_rng(seed))"
    )
