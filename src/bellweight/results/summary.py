"""A result in words: what was found, how good it is, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from bellweight.backends import backend_of
from bellweight.common import identity, tolerances
from bellweight.common.checks import BoolArray
from bellweight.display import number_text, short_text
from bellweight.results.judgement import Judgement, rival_facts
from bellweight.weights.methods import DIA

if TYPE_CHECKING:
    from bellweight.results.result import CyclePhase, Result

_HARDLY_ANY = 5e-4  # share of visits
_TERMS = 6  # of the value function that are shown


def headline(result: Result) -> str:
    """Return in a line what was solved, and how."""
    name = result.method_name
    size = f"({result.model_size}), {len(result.names)} basis functions"
    return f"{name} on {result.model_name} {size}"


def summary(result: Result) -> Iterator[tuple[str, str]]:
    """Tell on one screen what was found, how good it is, and what to try next."""
    last = result.reported
    yield "status", f"{result.status.name}: {result.status.message}"
    yield from _cost_facts(result)
    yield from _bound_facts(result)
    yield "weights", _weights_text(result)
    if last.dual_share is not None and result.method_name == "DIA":
        yield "dual", dual_text(last.dual_share)
    if last.smoothing_mass is not None:
        yield "smoothing", f"mass {last.smoothing_mass:.3g}, adapted to the weights"
    if result.regularisation > 0.0:
        yield "regularised", _regularised_text(result)
    yield from _ending(result)


def _ending(result: Result) -> Iterator[tuple[str, str]]:
    """Tell the value function, the phases of a cycle, the warnings and what to try next."""
    yield "value", value_text(result)
    yield from _phases(result)
    for text in result.warnings:
        yield "warning", text
    yield "next", result.status.remedy or _advice(result)


def dual_text(share: float) -> str:
    """Say what the share of visits with dual mass means for DIA."""
    if share < _HARDLY_ANY:
        return (
            "no visited state has dual mass: DIA follows its target here, and its weights are "
            "those of the target's occupancy"
        )
    if share > 1.0 - _HARDLY_ANY:
        return "decides on all visits"
    return f"decides on {100.0 * share:.3g} % of visits; on the others DIA follows its target"


def value_text(result: Result) -> str:
    """Return the approximate cost-to-go as a sum, its first terms."""
    terms = zip(result.coef, result.names, terms_that_matter(result), strict=True)
    shown = [_term(value, name) for value, name, matters in terms if matters]
    if len(shown) > _TERMS:
        shown = [*shown[:_TERMS], f"+ ... ({len(shown) - _TERMS} more)"]
    text = " ".join(shown).removeprefix("+ ")
    return f"-{text[2:]}" if text.startswith("- ") else text or "0"


def terms_that_matter(result: Result) -> BoolArray:
    """Return which terms (K,) are more than what rounding left of a zero.

    Looked at where rows are tight, and on average: a tiny coefficient of a high power may matter.
    """
    states, model = result.support.states, result.policy.model
    if states.ndim == 1 and model is not None and len(states) > 0:
        points = backend_of(model).one_point
        states = np.vstack([points(state) for state in states])
    if states.ndim == 1 or identity.first_unstored(result.basis) is not None:
        return result.coef != 0.0
    found = result.basis(np.asarray(states, dtype=np.float64))
    if sparse.issparse(found):
        return result.coef != 0.0
    features = np.vstack([result.moments, found])
    sizes = np.abs(features * result.coef)
    matters: BoolArray = (sizes > tolerances.NO_TERM * sizes.max(axis=1, keepdims=True)).any(axis=0)
    return matters


def _term(value: float, name: str) -> str:
    sign = "-" if value < 0.0 else "+"
    return f"{sign} {short_text(abs(value))}" + ("" if name == "1" else f" {name}")


def _weights_text(result: Result) -> str:
    n = len(result.history)
    last = result.reported
    took = f"{n} iteration{'s' if n > 1 else ''} in {result.seconds:.2g} s"
    if last.noise_ratio is not None:
        if last.noise_ratio == 0.0:
            return f"{took}; they agree with what was simulated"
        error = f"{short_text(last.noise_ratio, 2)} standard errors"
        return f"{took}; what was simulated differs from them by at most {error}"
    if last.sup_norm is None:
        return f"as given; solved in {result.seconds:.2g} s"
    if last.sup_norm == 0.0:
        return f"{took}; they are the occupancy of the policy that they lead to"
    return f"{took}; they differ from the occupancy by {last.sup_norm:.2g} at most"


def _regularised_text(result: Result) -> str:
    states = len(np.unique(result.support.states, axis=0))
    return (
        f"by {result.regularisation:g}: the dual has mass in {states:,} states, rows may be "
        f"violated by {result.audit.violation:.3g}"
    )


def _phases(result: Result) -> Iterator[tuple[str, str]]:
    last = result.reported
    for number, phase in enumerate(result.phases, start=1):
        yield f"phase {number}", _phase_text(phase)
    if result.average is not None:
        yield "average", f"{_phase_text(result.average)}; this is the result"
        yield (
            "residual",
            f"{last.sup_norm:.3g} (sup norm), {last.one_norm:.3g} (1-norm) between weights and "
            "occupancy at the average",
        )


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield all facts as names with texts, numerical details included."""
    name = result.method_name
    last = result.reported
    yield "status", f"{result.status.name}: {result.status.message}"
    found = result.judgement
    judged = "" if found is None else f"; judged in {found.seconds:.2f} s"
    yield "iterations", f"{len(result.history)} in {result.seconds:.2f} s{judged}"
    if last.sup_norm is not None:
        of = "" if result.weights is not None else "moments of "
        yield "mismatch", f"{last.sup_norm:.2g} between {of}weights and occupancy (sup norm)"
    ratios = [record.step_ratio for record in result.history if record.step_ratio is not None]
    if len(ratios) >= 2:
        # The median: the last ratios of a converged run are those of rounding errors.
        seen = f"observed {float(np.median(ratios)):.2g} per iteration"
        yield "contraction", f"{seen}{_proven_modulus(result)}"
    if last.smoothing_mass is not None:
        yield "smoothing", f"mass {last.smoothing_mass:.3g}, adapted to the weights"
    if last.noise_ratio is not None:
        yield "noise", f"moments within {last.noise_ratio:.2g} standard errors"
    if last.dual_share is not None:
        meaning = f": {dual_text(last.dual_share)}" if name == "DIA" else ""
        yield "dual mass", f"on {100.0 * last.dual_share:.3g} % of visits{meaning}"
    yield from _cost_facts(result)
    if result.regularisation > 0.0:
        yield "regularised", _regularised_text(result)
    if last.columns is not None:
        rounds = sum(record.passes for record in result.history)
        seconds = sum(record.solve_seconds for record in result.history)
        yield (
            "columns",
            f"{last.columns:,} priced in {rounds:,} rounds, {seconds:.2f} s; the last "
            f"round {'proves the optimum' if last.proven else 'was cut short'}; the minimum-norm "
            "dual is the one over these columns",
        )
    yield from _bound_facts(result)
    yield (
        "audit",
        f"violation {last.audit.violation:.1g}, dual residual {last.audit.dual_residual:.1g}, "
        f"gap {last.audit.gap:.1g}",
    )
    yield from _ending(result)


def _bound_facts(result: Result) -> Iterator[tuple[str, str]]:
    """Tell the proven bound of a simulated model, and what a search found between its rows."""
    if result.lower_bound is not None and not result.is_exact:
        told = f"{result.lower_bound_kind}: {result.lower_bound_reason}"
        yield "bound", f"no policy costs less than {number_text(result.lower_bound)} ({told})"
    elif result.lower_bound_reason and result.lower_bound is None:
        yield "bound", f"none is proven from what is declared: {result.lower_bound_reason}"
    found = result.evidence
    if found is None:
        return
    place = ", ".join(f"{value:.6g}" for value in found.state)
    if found.violation > 0.0:
        told = (
            f"a search over the whole box found rows violated by up to {found.violation:.3g}, most"
        )
    else:
        told = f"a search over the whole box found no violated row; {-found.violation:.3g} is left"
    yield "search", f"{told} at ({place}) with {found.action}"
    if found.draws_error is not None:
        yield "draws", f"another set of draws moves the objective by about {found.draws_error:.3g}"


def _phase_text(phase: CyclePhase) -> str:
    ties = " (constant value: decided by ties)" if phase.is_constant else ""
    return f"cost {phase.cost}{ties}"


def _cost_facts(result: Result) -> Iterator[tuple[str, str]]:
    if result.cost is None:
        return
    if result.is_exact:
        yield "cost", f"{result.cost} (greedy policy, exact, over all time)"
    elif result.judgement is not None:
        yield "cost", f"{result.cost} (greedy policy, {_simulated(result.judgement)})"
    if result.judgement is not None:
        yield from rival_facts(result.judgement)
    if result.is_exact and result.lower_bound is not None:
        gap = max(0.0, result.cost.mean - result.lower_bound)
        yield "optimum", f"between {number_text(result.lower_bound)} and {result.cost}"
        most = f"at most {short_text(gap, 3)} ({_share(gap, result.cost.mean)})"
        tiny = gap <= tolerances.SAME_COST * abs(result.cost.mean)
        yield "loss", "none beyond rounding" if tiny else most


def _simulated(found: Judgement) -> str:
    tail = "" if found.tail_bound is None else f", tail at most {short_text(found.tail_bound, 3)}"
    if found.tail_bound is not None and found.tail_bound > abs(found.cost.mean):
        tail = ", without a useful bound on their tail"
    return f"{found.episodes:,} episodes of {found.horizon:,} steps{tail}"


def _proven_modulus(result: Result) -> str:
    certified = isinstance(result.method, DIA) and result.method.modulus is not None
    return f", at most {result.method.modulus:.2g} proven" if certified else ""


def _advice(result: Result) -> str:
    if result.cost is None:
        return "bellweight.evaluate(model, result.policy) tells what the policy costs"
    known = result.lower_bound if result.is_exact else None
    nearly = tolerances.NEARLY_OPTIMAL * abs(result.cost.mean)
    if known is not None and result.cost.mean - known <= nearly:
        return "nothing: the policy is within 0.1 % of optimal"
    if result.judgement is not None and result.judgement.is_no_better:
        return "bellweight.solve(model, basis, bellweight.Auto()) tries other methods"
    if known is None:
        return "bellweight.compare(model, ...) compares the policy with those you know"
    return "a richer basis may tighten the bound; result.policy.action(state) acts"


def _share(gap: float, cost: float) -> str:
    return f"{100.0 * gap / abs(cost):.3g} %" if cost else "cost is zero"
