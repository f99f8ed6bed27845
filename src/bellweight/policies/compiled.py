"""Policies in the form that compiled loops take them: see `models/kernels/layouts.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import PolicyError
from bellweight.models.function_model import FunctionModel, Written
from bellweight.models.kernels.layouts import (
    Acting,
    Dual,
    Lookahead,
    Table,
    uniform,
    writable,
)
from bellweight.models.kernels.tables import empty_slots, fill_slots, find, lent_mass
from bellweight.models.loops import Loops
from bellweight.policies.dual_rows import DualRows

SAME_MASS = tolerances.SAME_MASS
"""Dual masses closer than this, relative to the larger one, are the same."""


@dataclass(frozen=True, eq=False)
class CompiledPolicy:
    """A policy for compiled loops: the loops of its model, and plain data."""

    loops: Loops
    acting: Acting
    written: Written = ()

    @property
    def knows_dual(self) -> bool:
        """Whether the policy looks up states with dual mass, and visits to them are counted."""
        return len(self.acting.dual.states) > 0

    def draws_in(self, state: Any) -> bool:
        """Return whether the policy's action in a state (d,) is a random one."""
        acting, dual = self.acting, self.acting.dual
        if acting.coef is None and acting.rule is None and self.loops.n_actions > 1:
            return True
        if not self.knows_dual:
            return False
        if dual.reach[0] > 0.0:
            scratch = np.zeros(dual.numbers.shape[1])
            return bool(lent_mass(state, dual.states, dual.numbers, dual.reach[0], scratch) > 0.0)
        row = find(state, dual.slots, dual.states)
        return row >= 0 and bool(((dual.numbers[row] > 0.0) & (dual.numbers[row] < 1.0)).any())


def compiled_uniform(model: FunctionModel) -> CompiledPolicy:
    """Return the policy that takes every admissible action with the same probability."""
    none = np.zeros((0, model.dimension), dtype=model.loops.state_type)
    empty = state_table(none, np.zeros((0, 1)))
    acting = Acting(None, None, None, None, empty, Dual(*empty, np.zeros(3)))
    return CompiledPolicy(model.loops, acting)


def compiled_rule(
    model: FunctionModel, rule: Callable[..., int], parameters: FloatArray
) -> CompiledPolicy:
    """Return a decision rule that the user wrote."""
    base = compiled_uniform(model)
    return CompiledPolicy(
        model.loops_with(rule=rule), base.acting._replace(rule=writable(parameters))
    )


def compiled_greedy(
    model: FunctionModel, basis: Basis, coef: FloatArray, ties: Table | None = None
) -> CompiledPolicy:
    """Return the greedy policy of coefficients (K,), or of the largest of several functions."""
    compiled = CompiledBasis.of(basis, model.dimension, model.value_counts)
    value = compiled.value(coef, model.jumps)
    base = compiled_uniform(model).acting
    acting = base._replace(
        functions=value.functions, coef=value.coef, quadratic=value.quadratic,
        ties=ties or base.ties,
    )  # fmt: skip
    return CompiledPolicy(model.loops_with(written=compiled.written), acting, compiled.written)


def compiled_lookahead(base: CompiledPolicy, settings: Lookahead) -> CompiledPolicy:
    """Return a policy that is improved by simulation in every decision."""
    if base.loops.sample is not None:
        raise PolicyError(
            "the model draws its noise by a function of its own, which compiled decisions cannot "
            "call: give the noise as a law, or as draws"
        )
    return replace(base, acting=base.acting._replace(lookahead=uniform(settings)))


def compiled_softmax(
    target: CompiledPolicy,
    model: FunctionModel,
    states: IntArray,
    duals: FloatArray,
    temperature: float,
    smoothing_mass: float,
    extend: float | None = None,
) -> CompiledPolicy:
    """Return a target policy mixed, in states with dual mass, with the softmax of the dual.

    `duals` (m, A) are the duals of the `states` (m, d); the softmax is over admissible actions.
    With `extend`, states share their dual with those within this radius.
    """
    if target.knows_dual:
        raise PolicyError(
            "the target of a DualSoftmax is a DualSoftmax itself, which the compiled loops cannot "
            "nest: use its target, or a Greedy policy"
        )
    if extend is not None:
        reach = np.array([extend, temperature, smoothing_mass])
        return with_dual(target, states, duals, reach)
    allowed = np.where(model.admissible_mask(states), duals, -np.inf)
    starts = np.arange(0, allowed.size + 1, model.n_actions)
    rows = DualRows.of(allowed.ravel(), starts, temperature, smoothing_mass)
    numbers = np.column_stack([rows.sums.reshape(duals.shape), rows.share])
    return with_dual(target, states, numbers, np.zeros(3))


def with_dual(
    policy: CompiledPolicy, states: Any, numbers: FloatArray, reach: FloatArray
) -> CompiledPolicy:
    """Return a policy that looks up its action in some states."""
    dual = Dual(*state_table(states, numbers), reach)
    return replace(policy, acting=policy.acting._replace(dual=dual))


def state_table(states: Any, numbers: FloatArray) -> Table:
    """Return a hash table from states to rows of numbers."""
    slots = empty_slots(len(states))
    if len(states):
        fill_slots(slots, states)
    return Table(slots, writable(states), writable(numbers))
