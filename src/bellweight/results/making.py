"""From a finished run of the weight loop to its `Result`: the bound, the evidence, the warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bellweight.backends import Estimate, Evidence, Iterate, Setup
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import Status
from bellweight.program import Repaired, cost_unit
from bellweight.program.doubts import given_up
from bellweight.results.result import CyclePhase, Result
from bellweight.weights.loop import Method, Outcome, Stop
from bellweight.weights.plan import Plan

_HUGE = 1e9  # a coefficient so many times as large as the objective is warned of
_MUCH = 0.01  # of the bound: a repair that takes more is warned of


def result_of(
    setup: Setup,
    method: Method | Plan[Any],
    outcome: Outcome,
    stop: Stop,
    seed: int,
    seconds: float,
) -> Result:
    """Return what a run of the loop found."""
    iterate, model = outcome.iterate, setup.model
    coef = iterate.solution.coef
    bound = setup.proven(coef, iterate.point)
    evidence = setup.evidence(iterate.solution, iterate.dual)
    dual = setup.over_pairs(iterate.dual)
    return Result(
        status=outcome.status,
        method=method,
        mode=method.mode if isinstance(method, Method) else "practical",
        basis=setup.basis,
        names=setup.rows.names,
        coef=_frozen(coef),
        moments=_frozen(iterate.moments),
        weights=None if iterate.weights is None else _frozen(iterate.weights),
        support=iterate.dual,
        dual=None if dual is None else _frozen(dual),
        policy=iterate.greedy,
        objective=iterate.solution.objective,
        lower_bound=None if bound is None else bound.value,
        lower_bound_kind="unproven" if bound is None else setup.proof()[0],
        lower_bound_reason=setup.why_unproven() if bound is None else setup.proof()[1],
        evidence=evidence,
        cost=setup.cost(iterate.greedy) if setup.is_exact else None,
        moments_error=iterate.point.standard_error,
        history=outcome.history,
        reported_iteration=outcome.reported,
        phases=tuple(_phase(setup, *phase) for phase in _paired(outcome)),
        warnings=(*_notes(setup, iterate, bound), *_draws_note(iterate, evidence)),
        stop=stop,
        seed=seed,
        seconds=seconds,
        model_name=model.name,
        model_size=setup.size_text,
        model_digest=model.digest,
        regularisation=setup.regularisation,
        average=_average(setup, outcome),
        generated=outcome.generated,
    )


def _average(setup: Setup, outcome: Outcome) -> CyclePhase | None:
    cost = outcome.average_cost
    return None if cost is None else _phase(setup, outcome.iterate, cost)


def _paired(outcome: Outcome) -> Iterator[tuple[Iterate, Estimate]]:
    return zip(outcome.phases, outcome.phase_costs, strict=True)


def _phase(setup: Setup, phase: Iterate, cost: Estimate) -> CyclePhase:
    return CyclePhase(
        coef=_frozen(phase.solution.coef),
        moments=_frozen(phase.moments),
        weights=None if phase.weights is None else _frozen(phase.weights),
        support=phase.dual,
        policy=phase.greedy,
        cost=cost,
        is_constant=setup.is_constant(phase.solution.coef),
    )


def _notes(setup: Setup, iterate: Iterate, bound: Repaired | None) -> Iterator[str]:
    """Yield what a user must know about the program and its answer."""
    solution = iterate.solution
    if bound is not None and _took_much(setup, iterate, bound):
        yield (
            f"the lower bound is {bound.loss:.3g} below the value of the coefficients: that is "
            f"what it takes to make every row hold {setup.repair_advice}"
        )
    if setup.rows.untold:
        yield (
            f"{setup.rows.untold}: what the program says of states beyond the sample rests on the "
            "few that these lead to; add constraint states"
        )
    dropped = setup.program().dropped
    if dropped:
        shown = ", ".join(dropped[:5]) + (", ..." if len(dropped) > 5 else "")
        yield (
            f"{len(dropped)} of {setup.rows.n_basis} basis functions depend on earlier ones and "
            f"were dropped (coefficient zero): {shown}"
        )
    if solution.doubts:
        yield "; ".join(solution.doubts)
    elif solution.given_up > 0.0:
        yield given_up(solution.given_up)
    if solution.status is Status.INACCURATE:
        largest = float(np.abs(solution.coef).max())
        if largest > _HUGE * abs(solution.objective):
            yield (
                f"the program wants coefficients up to {largest:.1e}, which rounding spoils: some "
                "functions hardly differ, or are next to zero, where the weights are; put bounds "
                "on the coefficients (lower=, upper=), spread the weights, or use fewer functions"
            )
    if setup.is_constant(solution.coef):
        yield (
            "the value function is the same in every state: the policy looks at the cost of one "
            "step only and ties decide the rest, so its cost says little; try other weights, or "
            "bellweight.evaluation.compare_ties(model, result.policy) for the range"
        )
    if not solution.proven:
        yield (
            f"pricing was cut short by its time limit: rows may be violated by up to "
            f"{solution.audit.violation:.3g}, so the program is not proven solved"
        )


def _draws_note(iterate: Iterate, evidence: Evidence | None) -> Iterator[str]:
    """Yield a warning where the draws that stand for a law decide much of the answer."""
    error = None if evidence is None else evidence.draws_error
    if error is not None and error > _MUCH * abs(iterate.solution.objective):
        yield (
            f"expectations are averages of draws, and another set of draws moves the objective by "
            f"about {error:.3g}: use more draws (draws=), or give the law of the noise"
        )


def _took_much(setup: Setup, iterate: Iterate, bound: Repaired) -> bool:
    """Return whether a repair cost much; programs that allow violations expect it to."""
    rows = setup.listed_rows
    least = 0.0 if rows is None else tolerances.SAME_COST * cost_unit(rows.pair_cost)
    scale = max(abs(bound.value), least)
    return not iterate.solution.allows_violations and bound.loss > _MUCH * scale


def _frozen(array: FloatArray) -> FloatArray:
    copy = np.array(array)
    copy.setflags(write=False)
    return copy
