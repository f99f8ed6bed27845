"""Policies in the form that compiled loops take them: see `models/kernels/layouts.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.basis import Basis
from bellweight.basis.compiled import CompiledBasis
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import PolicyError
from bellweight.models.function_model import FunctionModel, Written
from bellweight.models.kernels.layouts import Acting, Dual, Table, writable
from bellweight.models.kernels.tables import fill_slots, find, lent_mass
from bellweight.models.loops import Loops

SAME_MASS = 1e-9
"""Dual masses closer than this, relative to the larger one, are the same."""


@dataclass(frozen=True, eq=False)
class Program:
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


def uniform_program(model: FunctionModel) -> Program:
    """Every admissible action with the same probability."""
    none = np.zeros((0, model.dimension), dtype=model.loops.state_type)
    empty = state_table(none, np.zeros((0, 1)))
    acting = Acting(None, None, None, None, empty, Dual(*empty, np.zeros(3)))
    return Program(model.loops, acting)


def rule_program(model: FunctionModel, rule: Callable[..., int], parameters: FloatArray) -> Program:
    """A decision rule that the user wrote."""
    base = uniform_program(model)
    return Program(model.loops_with(rule=rule), base.acting._replace(rule=writable(parameters)))


def greedy_program(
    model: FunctionModel, basis: Basis, coef: FloatArray, ties: Table | None = None
) -> Program:
    """The greedy policy of coefficients (K,), or of the largest of several value functions."""
    compiled = CompiledBasis.of(basis, model.dimension)
    value = compiled.value(coef, model.jumps)
    base = uniform_program(model).acting
    acting = base._replace(
        functions=value.functions, coef=value.coef, quadratic=value.quadratic,
        ties=ties or base.ties,
    )  # fmt: skip
    return Program(model.loops_with(written=compiled.written), acting, compiled.written)


def known_program(
    searched: Program, model: FunctionModel, states: IntArray, duals: FloatArray
) -> Program:
    """A greedy policy that looks up its action in `states` (m, d), that of most dual (m, A)."""
    top = duals >= duals.max(axis=1, keepdims=True) * (1.0 - SAME_MASS)
    sums = (np.arange(model.n_actions) >= np.argmax(top, axis=1)[:, None]).astype(np.float64)
    numbers = np.column_stack([sums, np.ones(len(states))])
    return with_dual(searched, states, numbers, np.zeros(3))


def softmax_program(
    target: Program,
    model: FunctionModel,
    states: IntArray,
    duals: FloatArray,
    temperature: float,
    smoothing_mass: float,
    extend: float | None = None,
) -> Program:
    """A target policy, replaced by the dual's softmax with its share in states with dual mass.

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
    exponents = np.where(
        model.admissible_mask(states), (duals - duals.max(axis=1, keepdims=True)), -np.inf
    )
    weight = np.exp(exponents / temperature)
    sums = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)
    # Rounding must not let a draw fall off the end: the last positive action closes the sums.
    last = model.n_actions - 1 - np.argmax(weight[:, ::-1] > 0.0, axis=1)
    sums[np.arange(model.n_actions)[None, :] >= last[:, None]] = 1.0
    mass = duals.sum(axis=1)
    numbers = np.column_stack([sums, mass / (mass + smoothing_mass)])
    return with_dual(target, states, numbers, np.zeros(3))


def with_dual(program: Program, states: Any, numbers: FloatArray, reach: FloatArray) -> Program:
    """Return a policy that looks up its action in some states."""
    dual = Dual(*state_table(states, numbers), reach)
    return replace(program, acting=program.acting._replace(dual=dual))


def dual_table(states: IntArray, actions: IntArray, values: FloatArray, n_actions: int) -> Any:
    """Return distinct states (m, d) and their duals (m, A) from a dual given pair by pair."""
    distinct, place = np.unique(states, axis=0, return_inverse=True)
    duals = np.zeros((len(distinct), n_actions))
    np.add.at(duals, (place.ravel(), actions), values)
    return np.ascontiguousarray(distinct), duals


def state_table(states: Any, numbers: FloatArray) -> Table:
    """Return a hash table from states to rows of numbers."""
    size = 1 << max(1, int(np.ceil(np.log2(4 * len(states) + 1))))
    slots = np.full(size, -1, dtype=np.int64)
    if len(states):
        fill_slots(slots, states)
    return Table(slots, writable(states), writable(numbers))
