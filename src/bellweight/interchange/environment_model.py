"""Environments with state vectors and finitely many actions as step models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.interchange.trials import Trials, state_of
from bellweight.models import StepModel

_REACH = 2**31  # seeds of single steps


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EnvironmentModel(StepModel):
    """The step model of an environment: its state and a last coordinate, 1 once it has ended."""

    trials: Trials

    def state_of(self, observation: Any, env: Any = None) -> FloatArray:
        """Return the state that an observation shows, or the one that `env` is in."""
        if env is not None:
            observation = state_of(env)
        elif not _shows_state(self.trials):
            raise ArgumentError(
                f"observations of {self.trials.kind} are not its state: pass env=, and the state "
                "is read from it"
            )
        found = np.append(np.asarray(observation, dtype=np.float64).ravel(), 0.0)
        return np.clip(found, self.lower, self.upper)


def step_model(env: Any, discount: float, initial: Any, name: str, **options: Any) -> StepModel:
    """Return the step model of an environment whose state can be set: see `from_gymnasium`."""
    trials = Trials(env)
    dimension = np.size(trials.state)
    if np.ndim(trials.state) != 1:
        raise ArgumentError(
            f"the state of {trials.kind} has shape {np.shape(trials.state)}, expected a vector"
        )
    is_random = trials.is_random
    low, high = _box(trials, dimension, options)
    nowhere = np.append(np.clip(np.zeros(dimension), low[:-1], high[:-1]), 1.0)

    def step(state, action, noise):  # type: ignore[no-untyped-def]
        if state[-1] > 0.5:
            return state
        taken = trials.step(state[:-1], action, noise[0] if is_random else None)
        return nowhere if taken.terminated else np.append(taken.state, 0.0)

    def cost(state, action, noise):  # type: ignore[no-untyped-def]
        if state[-1] > 0.5:
            return 0.0
        return -trials.step(state[:-1], action, noise[0] if is_random else None).reward

    def seeds(rng: np.random.Generator, n: int) -> Any:
        return rng.integers(_REACH, size=(n, 1)).astype(np.float64)

    def begin(rng: np.random.Generator) -> Any:
        return np.append(trials.start(rng), 0.0)

    given = begin if initial is None else [*np.ravel(initial).tolist(), 0.0]
    return EnvironmentModel(
        trials=trials,
        dimension=dimension + 1,
        actions=trials.n_actions,
        step=step,
        cost=cost,
        discount=discount,
        noise=seeds if is_random else None,
        initial=given,
        lower=low,
        upper=high,
        integer=[False] * dimension + [True],
        compiled=False,
        name=name,
        **options,
    )


def _shows_state(trials: Trials) -> bool:
    """Return whether observations are the state, but for their rounding to single precision."""
    shown, state = np.ravel(trials.env.reset(seed=0)[0]), np.ravel(trials.state)
    return shown.shape == state.shape and bool(
        np.allclose(shown, state, tolerances.SINGLE_PRECISION, tolerances.SINGLE_PRECISION)
    )


def _box(trials: Trials, dimension: int, options: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of the state, those of observations where these show it; and 0 and 1."""
    space = trials.env.observation_space
    low, high = np.full(dimension, -np.inf), np.full(dimension, np.inf)
    if _shows_state(trials) and hasattr(space, "low"):
        # Bounds in single precision may lie inside the true ones by their rounding.
        low = np.nextafter(space.low, -np.inf).astype(np.float64).ravel()
        high = np.nextafter(space.high, np.inf).astype(np.float64).ravel()
    for bound, name in ((low, "lower"), (high, "upper")):
        given = options.pop(name, None)
        if given is not None:
            bound[:] = np.broadcast_to(np.asarray(given, dtype=np.float64), (dimension,))
    return np.append(low, 0.0), np.append(high, 1.0)
