"""Step models: real or whole state vectors, rows at sampled states, everything else simulated."""

from __future__ import annotations

import numpy as np

from bellweight.backends.setup import Evidence, Point
from bellweight.backends.simulated import (
    PLAIN_STEPS,
    USUAL_STATES,
    FunctionBackend,
    SampledSetup,
)
from bellweight.basis import Basis
from bellweight.common.checks import FloatArray
from bellweight.models import StepModel
from bellweight.policies import Greedy, Policy, Support, Uniform
from bellweight.program import (
    EventRows,
    Repaired,
    SampledRows,
    Solution,
    no_bound,
    proof_text,
    repaired_in_box,
    worst_row,
)
from bellweight.simulation import distinct_states

_JUDGING_TERMS = 200_000_000  # terms of expectations that compiled loops add up in a second


class StepSetup(SampledSetup):
    """Rows at sampled states of a box; a search looks for violations between them."""

    repair_advice = (
        "between the sampled states, too; use more of them, such as sample_states(model, n, "
        'how="grid"), for a bound that keeps more'
    )

    @property
    def _steps(self) -> StepModel:
        model = self.rows.model
        assert isinstance(model, StepModel)
        return model

    def proven(self, coef: FloatArray, point: Point) -> Repaired | None:
        return repaired_in_box(self.rows, self._steps, coef)

    def proof(self) -> tuple[str, str]:
        return proof_text(self._steps)

    def why_unproven(self) -> str:
        return no_bound(self.rows, self._steps)

    def evidence(self, solution: Solution, dual: Support) -> Evidence:
        worst = worst_row(self.rows, self._steps, solution.coef, self.seed)
        label = self._steps.label(worst.action)
        error = self._draws_error(solution.coef, dual) if self._steps.are_draws else None
        return Evidence(worst.violation, worst.state, label, error)

    def _draws_error(self, coef: FloatArray, dual: Support) -> float:
        """Return by how much another set of draws moves the objective, to first order.

        With other rows A' and costs b' the optimum changes by dual' (b' - A' coef): the slack of
        the same rows under the other draws, which is zero under the program's own.
        """
        other = self._steps.with_draws(self._steps.draws_seed + 1)
        rows = EventRows(other, self.basis, np.unique(np.asarray(dual.states), axis=0))
        matrix, cost = rows.rows_at(np.asarray(dual.states), np.asarray(dual.actions))
        return abs(float(dual.values @ (cost - matrix @ coef)))


class StepBackend(FunctionBackend[StepModel]):
    """The same loops as for event models, on states in a box."""

    noun = "a step model"
    usual_basis = "kinks:10"
    sampled_setup = StepSetup

    def judging_steps(self, policy: Policy) -> int:
        """Return fewer steps where each greedy decision takes many expectations."""
        steps = super().judging_steps(policy)
        if not isinstance(policy, Greedy):
            return steps
        terms = self.model.n_actions * self.model.n_nodes * policy.coef.size
        return min(steps, max(PLAIN_STEPS, _JUDGING_TERMS // terms))

    def searched(self, basis: Basis, coef: FloatArray, seed: int) -> dict[str, float]:
        rows = self.some_rows(basis, self.model.spread_states(2, seed))
        worst = worst_row(rows, self.model, coef, seed)
        place = ", ".join(f"{value:.6g}" for value in worst.state)
        label = self.model.label(worst.action)
        return {f"over the whole box, at ({place}), {label}": max(0.0, worst.violation)}

    def _usual_states(self, seed: int) -> SampledRows:
        """Return rows at states all over the box, and at some that acting at random leads to."""
        model, half = self.model, USUAL_STATES // 2
        visited = distinct_states(model, half, Uniform(), seed=seed)[0]
        together = np.concatenate([model.spread_states(half, seed), visited])
        first = np.unique(together, axis=0, return_index=True)[1]
        origin = "all over the box and where acting at random leads"
        return SampledRows(together[np.sort(first)], origin)
