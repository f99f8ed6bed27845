"""The single controlled queue of the paper.

In each period a job arrives with probability `arrival`, or else the job in service leaves with
probability a, the service rate chosen; never both. At 0 nothing leaves, at capacity an arrival is
lost. The cost of a period is x + 60 a^3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common import checks, memory
from bellweight.common.checks import FloatArray
from bellweight.common.doubled import doubled, multiply
from bellweight.common.status import ModelError
from bellweight.models import TabularModel

_PAIR = 220.0  # bytes that a pair takes while the table is made


def single_queue(
    capacity: int = 49_999,
    arrival: float = 0.2,
    services: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8),
    discount: float = 0.98,
    initial: Any = "geometric",
    decay: float = 0.9,
    service_cost: float = 60.0,
) -> TabularModel:
    """Return the queue with states 0, ..., capacity and one action per service rate.

    `initial` is `"geometric"` (proportional to decay^x), `"empty"`, `"reverse"` (decay counted from
    the top), or a probability vector over the states.
    """
    capacity = checks.count(capacity, "capacity")
    checks.positive(arrival, "arrival", below=1.0)
    rates = checks.float_array(services, "services", (-1,))
    if len(rates) == 0:
        raise ModelError("services is empty, expected at least one service rate")
    wrong = checks.first_index((rates < 0.0) | (rates + arrival > 1.0))
    if wrong is not None:
        raise ModelError(
            f"services[{wrong[0]}] is {rates[wrong]}, expected between 0 and 1 - arrival = "
            f"{1.0 - arrival:g}: one event happens at a time"
        )
    n_states, n_actions = capacity + 1, len(rates)
    memory.check_fits(_PAIR * n_states * n_actions, f"a queue with {n_states:,} states")
    state = np.repeat(np.arange(n_states), n_actions)
    action = np.tile(np.arange(n_actions), n_states)
    up = np.where(state < capacity, arrival, 0.0)
    down = np.where(state > 0, rates[action], 0.0)
    pair = np.arange(len(state))
    transition = sparse.coo_array(
        (
            np.concatenate([down, 1.0 - up - down, up]),
            (
                np.tile(pair, 3),
                np.concatenate([np.maximum(state - 1, 0), state, np.minimum(state + 1, capacity)]),
            ),
        ),
        shape=(len(state), n_states),
    )
    return TabularModel.from_pairs(
        cost=state + service_cost * rates[action] ** 3,
        transition=transition,
        pair_state=state,
        pair_action=action,
        discount=discount,
        initial=_initial(initial, n_states, decay),
        action_labels=[f"rate {rate:g}" for rate in rates],
        name="single queue",
    )


def geometric(n_states: int, decay: float) -> FloatArray:
    """Return probabilities proportional to decay^x on 0, ..., n_states - 1."""
    checks.positive(decay, "decay", below=1.0)
    mass = _powers(decay, n_states)
    return np.asarray(mass / mass.sum())


def _powers(base: float, n: int) -> FloatArray:
    """Return base^0, ..., base^(n - 1), right to the last digit.

    NumPy's powers differ between machines, and models are told apart by their data.
    """
    exponent = np.arange(n)
    found, square = doubled(np.ones(n)), doubled(np.full(1, base))
    while exponent.any():
        factor = doubled(np.where(exponent % 2 == 1, square.high, 1.0))
        factor.low[:] = np.where(exponent % 2 == 1, square.low, 0.0)
        found, square = multiply(found, factor), multiply(square, square)
        exponent //= 2
    return found.high


def _initial(initial: Any, n_states: int, decay: float) -> Any:
    if not isinstance(initial, str):
        return initial
    kind = checks.one_of(initial, "initial", ("geometric", "empty", "reverse"))
    if kind == "empty":
        return np.eye(1, n_states)[0]
    mass = geometric(n_states, decay)
    return mass if kind == "geometric" else mass[::-1].copy()
