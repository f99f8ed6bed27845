"""Conformance checks of step models."""

from __future__ import annotations

import numpy as np

from bellweight.models import StepModel
from bellweight.models.step_checks import check_moves
from bellweight.testing.event import visited_states
from bellweight.testing.report import Report

_SPREAD = 256


def check_steps(model: StepModel) -> Report:
    """Check a step model on visited states and all over its box: costs and next states."""
    states = np.unique(np.vstack([visited_states(model), model.spread_states(_SPREAD)]), axis=0)
    number, action = np.nonzero(model.admissible_mask(states))
    check_moves(model, states[number], action)
    notes: tuple[str, ...] = ()
    if model.are_draws:
        notes = (f"expectations are averages over {model.n_nodes:,} draws",)
    checked = (
        f"{len(states):,} states, visited by the uniform policy and all over the box, "
        f"{len(number):,} pairs, {model.n_nodes:,} nodes of the noise",
        "costs are finite, next states lie in the box, inputs are left alone",
    )
    return Report(model.name, checked, notes)
