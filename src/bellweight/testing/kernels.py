"""Conformance checks of a linear model's kernels: they must agree with the general solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bellweight.basis import Affine
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, first_index
from bellweight.common.status import ModelError, SolverError, Status
from bellweight.models import Kernels, LinearModel
from bellweight.policies.linear_actions import ActionProgram
from bellweight.program import PricedRows

if TYPE_CHECKING:
    from bellweight.testing.linear import LinearSample

_GREEDY_PRICES = 10
_GREEDY_STATES = 20  # for each of the prices
_PRICES = 30


def check_kernels(sample: LinearSample) -> list[str]:
    """Check the kernels that the problem registers; return what was checked."""
    kernels = sample.model.kernels
    if kernels is None:
        return []
    if not isinstance(kernels, Kernels):
        raise ModelError(
            f"kernels is {kernels!r}, expected an object of a subclass of Kernels: build the model "
            "with one, or with kernels=None"
        )
    checks = {
        # First: the states of simulated paths need it.
        "kernels.random_action takes admissible actions": _check_random_kernel,
        "kernels.greedy_action agrees with the general solver": _check_greedy_kernel,
        "kernels.price agrees with the general solver": _check_price_kernel,
    }
    return [text for text, check in checks.items() if check(sample, kernels)]


def _check_random_kernel(sample: LinearSample, kernels: Kernels) -> bool:
    states = sample.begin
    keys = np.arange(len(states), dtype=np.uint64)
    chosen = []
    for act in (kernels.random_action(), kernels.random_action()):
        if act is None:
            return False
        chosen.append(np.array(act(states.copy(), keys, 1)))
        sample.require_admissible(states, chosen[-1], "the action of kernels.random_action")
    changed = first_index((chosen[0] != chosen[1]).any(axis=1))
    if changed is not None:
        raise ModelError(
            f"kernels.random_action takes {chosen[0][changed].tolist()} at first and "
            f"{chosen[1][changed].tolist()} on the same stream in the state where "
            f"{sample.model.state_text(states[changed])}: draw from the streams it is given"
        )
    return True


def _check_greedy_kernel(sample: LinearSample, kernels: Kernels) -> bool:
    model, rng = sample.model, np.random.default_rng(0)
    tie = np.zeros(model.n_action_variables) if model.preference is None else model.preference
    for number in range(_GREEDY_PRICES):
        price = model.action_cost if number == 0 else _random_price(model.action_cost, rng)
        states = sample.states[rng.integers(len(sample.states), size=_GREEDY_STATES)]
        act = kernels.greedy_action(price, tie)
        if act is None:
            return False
        try:
            best = ActionProgram(model, price, tie).actions(states)
        except SolverError:
            continue  # these prices have no cheapest action
        actions = np.array(act(states.copy()))
        sample.require_admissible(states, actions, "the action of kernels.greedy_action")
        found, wanted = actions @ price, best @ price
        size = 1.0 + np.abs(actions).sum(axis=1) + np.abs(best).sum(axis=1)
        limit = tolerances.SAME_COST * np.abs(price).max() * size
        wrong = first_index(np.abs(found - wanted) > limit)
        if wrong is not None:
            raise ModelError(
                f"kernels.greedy_action finds an action at price {found[wrong]:.12g}, the general "
                f"solver one at {wanted[wrong]:.12g}, in the state where "
                f"{model.state_text(states[wrong])}: correct the kernel"
            )
    return True


def _check_price_kernel(sample: LinearSample, kernels: Kernels) -> bool:
    model, rng = sample.model, np.random.default_rng(0)
    rows = PricedRows(kernel=False).on(model, Affine())
    for _ in range(_PRICES):
        state_price = _random_price(model.state_cost, rng)
        action_price = _random_price(model.action_cost, rng)
        price = np.concatenate([state_price, action_price])
        best = rows.program.minimise(price)
        if best.status is not Status.OPTIMAL or best.point is None:
            continue  # these prices have no cheapest pair
        pair = kernels.price(state_price, action_price, *rows.box)
        if pair is None:
            return False
        state = model.check_states(pair[0], "the state of kernels.price")
        _require_inside(model, state[0], *rows.box)
        sample.require_admissible(state, np.array(pair[1])[None], "the action of kernels.price")
        found, wanted = float(price @ np.concatenate(pair)), float(price @ best.point)
        size = 1.0 + np.abs(best.point).sum() + np.abs(np.concatenate(pair)).sum()
        if abs(found - wanted) > tolerances.SAME_COST * np.abs(price).max() * size:
            raise ModelError(
                f"kernels.price finds a pair at price {found:.12g}, the general solver one at "
                f"{wanted:.12g} in the state where "
                f"{model.state_text(best.point[: model.dimension])}: correct the kernel"
            )
    return True


def _random_price(cost: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal(len(cost)) * (1.0 + np.abs(cost))


def _require_inside(
    model: LinearModel, state: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    wrong = first_index((state < low) | (state > high))
    if wrong is not None:
        k = wrong[0]
        raise ModelError(
            f"kernels.price returns a state with {model.state_names[k]} = {state[k]:g}, expected "
            f"{low[k]:g} to {high[k]:g}: keep to the box it is given"
        )
