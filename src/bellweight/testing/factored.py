"""Conformance checks of factored models."""

from __future__ import annotations

import numpy as np

from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError
from bellweight.models import FactoredModel
from bellweight.testing.event import visited_states
from bellweight.testing.report import Report

_SPREAD = 512


def check_factors(model: FactoredModel) -> Report:
    """Check a factored model where construction did not: admissible actions, moves, costs.

    Laws and costs are tables, all of whose entries were checked when the model was built.
    """
    states = np.unique(np.vstack([visited_states(model), model.spread_states(_SPREAD)]), axis=0)
    number, action = np.nonzero(model.admissible_mask(states))
    model.costs_of(states[number], action)
    laws = enumerate(model.law_tables)
    stays = [i for i, table in laws if _stays(table.at(states[number], action), states[number, i])]
    if len(stays) == model.dimension:
        raise ModelError("no coordinate ever moves: let laws give other values a chance")
    notes = tuple(f"coordinate {i} never moves" for i in stays)
    entries = sum(table.values.size for table in model.law_tables)
    checked = (
        f"{len(model.laws)} laws with {entries:,} entries sum to one, costs are finite",
        f"{len(states):,} states have an admissible action",
    )
    return Report(model.name, checked, notes)


def _stays(chances: FloatArray, values: IntArray) -> bool:
    return bool((chances[np.arange(len(values)), values] == 1.0).all())
