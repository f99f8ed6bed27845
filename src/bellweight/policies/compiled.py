"""Policies in the form that the compiled loops of an event model take them.

The layouts are those described in the parts of `models/event_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import value_function
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import PolicyError
from bellweight.models import EventModel
from bellweight.models.compile import Source
from bellweight.policies.dual_rows import DualRows

SAME_MASS = 1e-9
"""Dual masses closer than this, relative to the larger one, are the same."""


@dataclass(frozen=True, eq=False)
class CompiledPolicy:
    """A policy for compiled loops: plain data, plus the text of the model it belongs to."""

    source: Source
    kind: int
    value: tuple[Any, ...]
    ties: tuple[Any, ...]
    dual: tuple[Any, ...]
    parameters: FloatArray

    @property
    def knows_dual(self) -> bool:
        """Whether the policy looks up states with dual mass, and visits to them are counted."""
        return len(self.dual[1]) > 0

    def draws_in(self, state: IntArray) -> bool:
        """Return whether the dual makes the policy's action in a state a random one."""
        slots, states, numbers, reach = self.dual
        if not self.knows_dual:
            return False
        loops = self.source.load()
        if reach[0] > 0.0:
            scratch = np.zeros(numbers.shape[1])
            return bool(loops.lent_mass(state, states, numbers, reach[0], scratch) > 0.0)
        row = loops.find(state, slots, states)
        return row >= 0 and bool(((numbers[row] > 0.0) & (numbers[row] < 1.0)).any())

    def arguments(self) -> tuple[Any, ...]:
        """Return the tuple that the loops unpack."""
        return self.kind, self.value, self.ties, self.dual, self.parameters


def compiled_uniform(model: EventModel) -> CompiledPolicy:
    """Every admissible action with the same probability."""
    empty = state_table(model, np.zeros((0, model.dimension), dtype=np.int64), np.zeros((0, 1)))
    kind, dual = model.kernels.UNIFORM, (*empty, np.zeros(3))
    return CompiledPolicy(model.source, kind, _no_value(model), empty, dual, np.zeros(1))


def compiled_rule(
    model: EventModel, rule: Callable[..., int], parameters: FloatArray
) -> CompiledPolicy:
    """A decision rule that the user wrote."""
    source = model.rule_source(rule)
    base = compiled_uniform(model)
    return replace(base, source=source, kind=model.kernels.RULE, parameters=parameters)


def compiled_greedy(
    model: EventModel, basis: Basis, coef: FloatArray, ties: tuple[Any, ...] | None = None
) -> CompiledPolicy:
    """The greedy policy of a polynomial (K,), or of the largest of several (J, K)."""
    value = value_function(basis.words(model.dimension), coef, model)
    base = compiled_uniform(model)
    return replace(base, kind=model.kernels.GREEDY, value=value, ties=ties or base.ties)


def compiled_softmax(
    target: CompiledPolicy,
    model: EventModel,
    states: IntArray,
    duals: FloatArray,
    temperature: float,
    smoothing_mass: float,
    extend: float | None = None,
) -> CompiledPolicy:
    """A target policy, replaced by the dual's softmax with its share in states with dual mass.

    `duals` (m, A) are the duals of the `states` (m, d); the softmax is over admissible actions.
    With `extend`, states share their dual with those within this radius.
    """
    if len(target.dual[1]):
        raise PolicyError(
            "the target of a DualSoftmax is a DualSoftmax itself, which the compiled loops cannot "
            "nest: use its target, or a Greedy policy"
        )
    if extend is not None:
        reach = np.array([extend, temperature, smoothing_mass])
        return replace(target, dual=(*state_table(model, states, duals), reach))
    allowed = np.where(model.admissible_mask(states), duals, -np.inf)
    starts = np.arange(0, allowed.size + 1, model.n_actions)
    rows = DualRows.of(allowed.ravel(), starts, temperature, smoothing_mass)
    numbers = np.column_stack([rows.sums.reshape(duals.shape), rows.share])
    return replace(target, dual=(*state_table(model, states, numbers), np.zeros(3)))


def state_table(model: EventModel, states: IntArray, numbers: FloatArray) -> tuple[Any, ...]:
    """Return a hash table from states to rows of numbers."""
    size = 1 << max(1, int(np.ceil(np.log2(4 * len(states) + 1))))
    slots = np.full(size, -1, dtype=np.int64)
    if len(states):
        model.kernels.fill_slots(slots, states)
    return slots, states, numbers


def _no_value(model: EventModel) -> tuple[Any, ...]:
    return value_function([()], np.zeros(1), model)
