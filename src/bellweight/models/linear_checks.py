"""Checks of a linear model when it is built: initial states, noise, whole numbers, constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray, Matrix
from bellweight.common.status import ModelError
from bellweight.models.laws import Independent, Sampled, contradiction

if TYPE_CHECKING:
    from bellweight.models.linear import LinearModel

_CHECK_POINTS = 8
_CHECK_DRAWS = 4_000


def check_initial(model: LinearModel) -> None:
    """Refuse first states outside the box, and draws that contradict the means declared."""
    if not isinstance(model.initial, Independent | Sampled):
        raise ModelError(f"initial is {model.initial!r}, expected Independent laws or Sampled")
    mean = checks.float_array(model.initial.mean, "the mean of initial", (model.dimension,))
    rng = np.random.default_rng(0)
    if isinstance(model.initial, Independent):
        for k, law in enumerate(model.initial.laws):
            low, high = law.values.min(), law.values.max()
            if low < model.state_lower[k] or high > model.state_upper[k]:
                raise ModelError(
                    f"initial gives {model.state_names[k]} values from {low:g} to {high:g}, "
                    f"outside its box {model.state_lower[k]:g} to {model.state_upper[k]:g}"
                )
        states = model.initial.sample(0, _CHECK_POINTS, np.uint64(0))
    else:
        states = model.initial.drawn(_CHECK_DRAWS, rng, _CHECK_DRAWS)
        found = contradiction(states, mean)
        if found is not None:
            raise ModelError(
                f"initial declares mean {mean[found[0]]:g} for state variable {found[0]}, but "
                f"{_CHECK_DRAWS:,} draws have mean {found[1]:g}: correct one of them"
            )
        outside = (states < model.state_lower) | (states > model.state_upper)
        outside |= model.integer_states & (states != np.round(states))
        wrong = checks.first_index(outside)
        if wrong is not None:
            k = wrong[1]
            raise ModelError(
                f"initial gives {model.state_names[k]} the value {states[wrong]:g}, expected "
                f"one of its box, {model.state_lower[k]:g} to {model.state_upper[k]:g}, whole "
                "if the variable is"
            )
    _check_sampled_noise(model, states[:_CHECK_POINTS], rng)


def _check_sampled_noise(model: LinearModel, states: FloatArray, rng: np.random.Generator) -> None:
    """Compare a noise function's draws with its mean at initial states and least actions."""
    if not isinstance(model.noise, Sampled):
        return
    actions = np.broadcast_to(model.action_lower, (_CHECK_DRAWS, model.n_action_variables))
    for state in states:
        repeated = np.tile(state, (_CHECK_DRAWS, 1))
        model.check_noise(repeated, actions, rng)


def check_whole_numbers(model: LinearModel) -> None:
    """Refuse numbers with fractions where states or actions are whole."""
    whole = model.integer_states
    for name in ("state_lower", "state_upper"):
        _check_whole(getattr(model, name)[whole], name)
    for name in ("action_lower", "action_upper"):
        bound = getattr(model, name)
        _check_whole(bound[model.integer_actions & np.isfinite(bound)], name)
    rows = np.flatnonzero(whole)
    for name in ("next_state", "next_action", "noise_matrix"):
        _check_whole(getattr(model, name)[rows].data, name)
    used = abs(model.noise_matrix[rows]).sum(axis=0) > 0.0
    for law, needed, name in ((model.noise, used, "noise"), (model.initial, whole, "initial")):
        if isinstance(law, Independent):
            chosen = Independent([law.laws[k] for k in np.flatnonzero(needed)])
            _check_whole(chosen.values, name)


def check_every_row(model: LinearModel) -> None:
    """Refuse a constraint that no action can meet in some state of the box."""
    reach_low, reach_high = _extremes(model.action_rows, model.action_lower, model.action_upper)
    state_low, state_high = _extremes(model.state_rows, model.state_lower, model.state_upper)
    # A constraint without actions says which states there are.
    free = np.asarray(abs(model.action_rows).sum(axis=1)).ravel() > 0.0
    too_high = free & (state_high + reach_low > model.row_upper + tolerances.CONSTRAINT)
    too_low = free & (state_low + reach_high < model.row_lower - tolerances.CONSTRAINT)
    wrong = checks.first_index(too_high | too_low)
    if wrong is not None:
        k = wrong[0]
        weights = model.state_rows[[k]].toarray()[0]
        up = (weights > 0.0) == bool(too_high[k])
        state = np.where(
            weights == 0.0, model.state_lower, np.where(up, model.state_upper, model.state_lower)
        )
        raise ModelError(
            f"no action meets the constraint {model.row_names[k]} in the state where "
            f"{model.state_text(state)}: narrow the box of states or widen the constraint"
        )


def _check_whole(values: FloatArray, name: str) -> None:
    wrong = checks.first_index(values != np.round(values))
    if wrong is not None:
        raise ModelError(
            f"{name} contains {values[wrong]:g}, expected whole numbers because the states are: "
            "correct it, or build the model with integer_states=False"
        )


def _extremes(rows: Matrix, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest value (c,) of each row over a box."""
    up, down = rows.maximum(0.0), (-rows).maximum(0.0)
    with np.errstate(invalid="ignore"):
        least = _product(up, low) - _product(down, high)
        most = _product(up, high) - _product(down, low)
    return least, most


def _product(rows: Matrix, vector: FloatArray) -> FloatArray:
    """Return rows @ vector; an infinite entry counts only where its coefficient is not zero."""
    finite = np.where(np.isfinite(vector), vector, 0.0)
    endless = np.asarray(rows @ (~np.isfinite(vector)).astype(float)) > 0.0
    return np.where(endless, np.inf, np.asarray(rows @ finite))
