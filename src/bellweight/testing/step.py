"""Conformance checks of step models."""

from __future__ import annotations

import numpy as np

from bellweight.common.checks import first_index
from bellweight.common.status import ModelError
from bellweight.models import StepModel
from bellweight.testing.event import visited_states
from bellweight.testing.report import Report

_SPREAD = 256


def check_steps(model: StepModel) -> Report:
    """Check a step model on visited states and all over its box: costs and next states."""
    states = np.unique(np.vstack([visited_states(model), model.spread_states(_SPREAD)]), axis=0)
    number, action = np.nonzero(model.admissible_mask(states))
    given = states[number]
    # `expand` raises on faults, and names the state, the action and the noise.
    _, _, successors = model.expand(given, action)
    changed = first_index(given != states[number])
    if changed is not None:
        raise ModelError(
            f"step or cost changes the state it is given, {states[number][changed[0]].tolist()}: "
            "work on a copy"
        )
    if (successors == states[number][:, None, :]).all():
        raise ModelError(
            f"step returns the state it was given in all of the {len(states):,} states looked at: "
            "return the next state"
        )
    notes: tuple[str, ...] = ()
    if model.are_draws:
        notes = (f"expectations are averages over {model.n_nodes:,} draws",)
    checked = (
        f"{len(states):,} states, visited by the uniform policy and all over the box, "
        f"{len(number):,} pairs, {model.n_nodes:,} nodes of the noise",
        "costs are finite, next states lie in the box, inputs are left alone",
    )
    return Report(model.name, checked, notes)
