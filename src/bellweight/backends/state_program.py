"""The program with one function for each state: the exact linear program, without a solver.

Its coefficients are values of states. The optimal values satisfy every row, and under weights that
are nowhere negative no others that do have a larger average. The optimal duals are the discounted
visits to pairs under optimal policies: with P for the rows of those pairs,

    visits to the state's own pairs - discount P' visits = weights       (in every state)

Where actions tie there are many such duals. They differ by combinations of changes, one for each
tied pair, that leave these equations true; the shortest dual is the least-squares one.
"""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np

from bellweight import exact
from bellweight.basis import Indicator
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import Status
from bellweight.exact.chain import Chain
from bellweight.policies import by_state
from bellweight.program import AlpProgram, Audit, Solution, TabularRows

_SOLVED = 2_000  # functions up to which a solver takes a second at the most
_MOST_CHANGES = 1 << 24  # numbers in the changes of the dual, 128 MB


class StateProgram:
    """The program of a table and an `Indicator` of its states, for weights one after another."""

    dropped: tuple[str, ...] = ()

    def __init__(self, rows: TabularRows) -> None:
        assert isinstance(rows.basis, Indicator)
        self.rows, self.model = rows, rows.model
        self.functions: IntArray = rows.basis.groups  # of the states (S,)
        best = exact.optimal(self.model)
        self.values = best.values
        self.chosen = np.flatnonzero(best.policy.probabilities(self.model))
        self.slack = exact.residuals(self.model, self.values)
        size = np.abs(self.values)
        terms = np.abs(self.model.cost) + self.model.discount * (self.model.transition @ size)
        is_tied = self.slack <= tolerances.TIGHT * (terms + size[self.model.pair_state])
        is_tied[self.chosen] = False
        self.tied = np.flatnonzero(is_tied)
        self._chain = Chain(self.model.transition[self.chosen], self.model.discount)

    @staticmethod
    def fits(rows: TabularRows) -> bool:
        """Return whether each state has a free function, and they are many for a solver."""
        return (
            isinstance(rows.basis, Indicator)
            and rows.n_basis == rows.model.n_states > _SOLVED
            and not np.isfinite([rows.lower, rows.upper]).any()
        )

    def solve(
        self,
        moments: FloatArray,
        reference: FloatArray | None = None,
        until: float | None = None,
    ) -> Solution:
        """Return the audited optimum with the shortest dual, or a solver's where this one fails."""
        began = time.perf_counter()
        weights = moments[self.functions]
        dual = self._dual(weights)
        audit = None if dual is None else self._audit(weights, dual)
        if dual is None or audit is None or not audit.passed:
            return self._general.solve(moments, reference, until)
        coef = np.empty(len(weights))
        coef[self.functions] = self.values
        keys = np.flatnonzero(dual)
        return Solution(
            status=Status.OPTIMAL,
            coef=coef,
            objective=float(weights @ self.values),
            moments=moments,
            keys=keys,
            dual=dual[keys],
            dual_residual=audit.dual_residual,
            audit=audit,
            passes=1,
            rounds=1,
            n_rows=len(dual),
            seconds=time.perf_counter() - began,
        )

    @cached_property
    def _general(self) -> AlpProgram:
        return AlpProgram(self.rows)

    def _dual(self, weights: FloatArray) -> FloatArray | None:
        """Return the shortest dual (N,), or None where it is not found."""
        dual = np.zeros(self.model.n_pairs)
        dual[self.chosen] = self._visits(weights)
        tied = self.tied
        if len(tied) * len(weights) > _MOST_CHANGES:
            return None
        if len(tied) > 0:
            rows = np.append(self.chosen, tied)
            share = np.linalg.lstsq(self._changes, -dual[rows])[0]
            dual[rows] += self._changes @ share
        dual[np.abs(dual) <= tolerances.ROUNDING * np.abs(dual).max()] = 0.0
        return dual if dual.min() >= 0.0 else None

    def _visits(self, start: FloatArray) -> FloatArray:
        """Return the discounted visits (S,) to states under the policy that was found."""
        return self._chain.occupancy(start) / (1.0 - self.model.discount)

    @cached_property
    def _changes(self) -> FloatArray:
        """Changes (S + t, t) of the visits to chosen and tied pairs, by one to each tied pair."""
        model, n = self.model, self.model.n_states
        states = model.pair_state[self.tied]
        moved = model.transition[self.tied] - model.transition[self.chosen[states]]
        changes = np.zeros((n + len(states), len(states)))
        for k, state in enumerate(states):
            changes[n + k, k] = 1.0
            changes[:n, k] = model.discount * self._visits(moved[[k]].toarray()[0])
            changes[state, k] -= 1.0
        return changes

    def _audit(self, weights: FloatArray, dual: FloatArray) -> Audit:
        """Return how far values and dual are from feasible and optimal, as any program's are."""
        model, objective = self.model, float(weights @ self.values)
        left = 1.0 - model.discount
        scale = np.abs(model.cost) + left * (abs(objective) + np.abs(self.values)[model.pair_state])
        relative = self.slack / np.where(scale > 0.0, scale, 1.0)
        here = by_state(model, dual)
        entering = weights + model.discount * (model.transition.T @ dual)
        size = here + entering
        share = tolerances.ROUNDING / tolerances.OPTIMALITY
        terms = model.cost * dual
        most = max(abs(objective), float(np.abs(terms).sum()), np.finfo(float).tiny)
        return Audit(
            violation=max(0.0, -float(self.slack.min())),
            relative_violation=max(0.0, -float(relative.min())),
            dual_residual=float(np.max(np.abs(here - entering) / (size + share * size.max()))),
            gap=abs(objective - float(terms.sum())) / most,
        )
