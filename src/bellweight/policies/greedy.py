"""The greedy policy of an approximate value function.

Ties among greedy actions are decided, not left to rounding: more dual mass first, then the lowest
action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bellweight.basis import Basis
from bellweight.common import files, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import doubled
from bellweight.common.status import PolicyError
from bellweight.models import LinearModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies.compiled import SAME_MASS, CompiledPolicy, compiled_greedy, state_table
from bellweight.policies.linear_actions import Chooser, GreedyChooser, action_price
from bellweight.policies.policy import Policy
from bellweight.policies.support import Support
from bellweight.policies.tables import actions_to_probabilities
from bellweight.program import TabularRows

_UNSURE = 2.0  # times the rounding of a quality: how far a difference of two may be off
_TABLE = files.stored_as("actions")


@files.storable("Greedy", former=("trust_dual",))
@dataclass(frozen=True, eq=False, repr=False)
class Greedy(Policy):
    """The action of least cost plus discounted approximate value (eq. greedy_policy_from_alp).

    Args:
        basis: the functions of the value function.
        coef: their coefficients (K,); (J, K) give the largest of J value functions (see
            `PointwiseMaximum`).
        dual: where the dual has mass, which decides ties.
        table: the finished actions (S,), so that a loaded policy can act without its model.
        model_digest: tells which model the table belongs to.
        preference: decides ties in a linear model (m,), in place of the model's own.
        model: the model in which it acts; `on(model)` fills it in.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> bw.solve(queue, bw.Polynomial(3), bw.DIA()).policy
        <Greedy policy for single queue, basis Polynomial(degree=3)>
    """

    basis: Basis
    coef: FloatArray
    dual: Support | None = None
    # Both can be computed from the other fields and the model.
    table: IntArray | None = field(default=None, compare=False, metadata=_TABLE)
    model_digest: str | None = field(default=None, compare=False)
    preference: FloatArray | None = None

    def __repr__(self) -> str:
        place = "" if self.model is None else f" for {self.model.name}"
        return f"<Greedy policy{place}, basis {self.basis!r}>"

    @classmethod
    def from_values(
        cls, rows: TabularRows, coef: FloatArray, dual: Support | None = None
    ) -> Greedy:
        """Return the greedy policy of coefficients, tabulated."""
        model = rows.model
        mass = None if dual is None else dual.over_pairs(model)
        pieces = np.atleast_2d(coef)
        found = [rows.values_and_terms(piece) for piece in pieces]
        values, terms = (np.max(parts, axis=0) for parts in zip(*found, strict=True))
        noise = rows.n_basis * terms

        def exact(pairs: IntArray) -> FloatArray:
            return rows.exact_slacks(doubled(pieces[0]), pairs)

        precise = exact if len(pieces) == 1 else None  # of a maximum rows have no slacks
        actions = greedy_actions(model, values, mass, noise=noise, precise=precise)
        return cls(
            basis=rows.basis,
            coef=coef,
            dual=dual,
            table=actions,
            model_digest=model.digest,
            model=model,
        )

    def tabulated(self, model: TabularModel) -> Greedy:
        rows = TabularRows(model, self.basis)
        return Greedy.from_values(rows, self.coef, self.dual)

    def compiled(self, model: FunctionModel) -> CompiledPolicy:
        if self.dual is None:
            return compiled_greedy(model, self.basis, self.coef)
        states, duals = self.dual.over_vectors(model.n_actions)
        return compiled_greedy(model, self.basis, self.coef, state_table(states, duals))

    def chooser(self, model: LinearModel) -> Chooser:
        if self.coef.shape != (model.dimension + 1,):
            raise PolicyError(
                f"{self.coef.size} coefficients for a linear model of {model.dimension} state "
                "variables, expected one more than variables: use its own result"
            )
        return GreedyChooser(model, action_price(model, self.coef), self.preference)

    def probabilities(self, model: TabularModel) -> FloatArray:
        known = self.model_digest == model.digest
        actions = self.table if known else self.tabulated(model).table
        assert actions is not None
        return actions_to_probabilities(model, actions)

    @property
    def known_actions(self) -> IntArray | None:
        return self.table


def greedy_actions(
    model: TabularModel,
    values: FloatArray,
    dual: FloatArray | None = None,
    *,
    noise: FloatArray | None = None,
    precise: Callable[[IntArray], FloatArray] | None = None,
) -> IntArray:
    """Return the greedy action (S,) for values (S,); ties go to dual mass, then lowest action.

    `noise` (S,) is the size of the terms that the values were added up from, as in `tie_margin`.
    `precise` returns the slacks (n,) of the rows of some pairs with twice the digits: they decide
    where plain digits leave open what is a tie, so that it is the same on every machine.
    """
    mass = np.zeros(model.n_pairs) if dual is None else dual
    quality = model.cost + model.discount * (model.transition @ values)
    best = np.minimum.reduceat(quality, model.pair_start[:-1])[model.pair_state]
    margin, lost = tie_margin(model, values, noise), quality - best
    if noise is not None and precise is not None:
        rounding = np.finfo(float).eps * model.discount * (model.transition @ noise)
        open_pairs = (lost > 0.0) & (np.abs(lost - margin) <= _UNSURE * rounding)
        is_open = np.zeros(model.n_states, dtype=np.bool_)
        is_open[model.pair_state[open_pairs]] = True
        pairs = np.flatnonzero(is_open[model.pair_state])
        if len(pairs):
            slack = precise(pairs)
            first = np.flatnonzero(np.diff(model.pair_state[pairs], prepend=-1))
            least = np.minimum.reduceat(slack, first)
            lost[pairs] = slack - np.repeat(least, np.diff(first, append=len(pairs)))
    tied = lost <= margin
    mass = np.where(tied, mass, -1.0)
    top = np.maximum.reduceat(mass, model.pair_start[:-1])[model.pair_state]
    # Equal masses differ by rounding; among them the lowest action is taken.
    chosen = np.flatnonzero(tied & (mass >= top * (1.0 - SAME_MASS)))
    first = np.searchsorted(model.pair_state[chosen], np.arange(model.n_states))
    return model.pair_action[chosen[first]]


def tie_margin(
    model: TabularModel, values: FloatArray, noise: FloatArray | None = None
) -> FloatArray:
    """Return how much (N,) a pair's cost plus discounted next value may exceed another's in a tie.

    The margin is relative to the terms of the sum, not to the sum, which may cancel to zero; the
    second part is what rounding leaves of the values themselves. It is relative to `noise` (S,),
    the size of the terms that each value was added up from; where that is not known, to the costs
    of the state and of where the pair leads, so a huge cost elsewhere does not make ties here.
    """
    following = model.transition
    terms = np.abs(model.cost) + model.discount * (following @ np.abs(values))
    if noise is None:
        largest = np.maximum.reduceat(np.abs(model.cost), model.pair_start[:-1])
        nearby = (largest[model.pair_state] + following @ largest) / (1.0 - model.discount)
    else:
        nearby = model.discount * (following @ noise)
    return np.asarray(tolerances.TIE * terms + np.finfo(float).eps * nearby)
