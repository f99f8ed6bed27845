"""The page of one result: what was solved, how good it is, and what it looks like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bellweight.certificates.certificate import Certificate
from bellweight.common.status import Status
from bellweight.display import Column, Table, facts_table, interval_text, number_text, short_text
from bellweight.display.table import capital
from bellweight.report.sections import (
    Card,
    Folded,
    Section,
    assemble,
    cut,
    method_text,
    origin,
    percent,
    settings_facts,
)
from bellweight.report.subject import ROUNDING, Subject
from bellweight.results.charts import cost_chart, without_rounding
from bellweight.results.result import Result
from bellweight.results.summary import dual_text, terms_that_matter
from bellweight.weights.methods import DIA, IterativeMethod

_TOP = 10
_COMPILED = 1.1  # times the seconds of the run: more than this contains compilation
_STATE_LETTERS = 140
_SMOOTHED = (
    " DIA matches the weights to its smoothed policy; the occupancy drawn here is that of the "
    "greedy policy, so some difference remains."
)
_DIFFERENCES = (
    "Differences are between weights and occupancy, or between their moments: the averages of the "
    "basis functions. Contraction is a sum of differences divided by the one before."
)
_PROVEN = " With these settings its convergence is proven."
_AUDIT = {
    "violation": "largest violation of a row",
    "relative_violation": "the same, relative to the row's terms",
    "dual_residual": "largest error of the dual's balance",
    "gap": "gap between the objectives, relative",
}
_BADGES = {Status.CONVERGED: "good", Status.CYCLING: "warn", Status.INACCURATE: "bad"}


def result_page(subject: Subject, title: str | None, about: Sequence[str]) -> str:
    """Return the page."""
    result = subject.result
    return assemble(
        title or f"{result.method_name} on {result.model_name}",
        about or [_sentence(subject)],
        [section for section in _sections(subject) if section.parts or section.lead],
        badge=(result.status.name, _BADGES.get(result.status, "warn")),
        warnings=subject.warnings(),
        cards=list(_cards(subject)),
    )


def _sentence(subject: Subject) -> str:
    """Return what was found, in one sentence or two."""
    result, cost = subject.result, subject.cost
    found = (
        f"{capital(result.model_name)}: {result.model_size}. Solved with {len(result.names)} "
        "numbers in place of the values of all its states."
    )
    if cost is None:
        return f"{found} What the policy costs has not been simulated yet."
    found += f" The policy found costs {subject.interval()}"
    if subject.gap is None:
        return f"{found}; how far that is from the best possible policy is not proven."
    if subject.gap == 0.0:
        return f"{found}, and no policy is cheaper."
    whole = cost if subject.low is None else subject.low + subject.gap
    most = f"{short_text(subject.gap, 3)} ({percent(subject.gap, whole)})"
    return f"{found}, and no policy can be cheaper by more than {most}{subject.sure}."


def _cards(subject: Subject) -> Iterator[Card]:
    result, cost, low = subject.result, subject.cost, subject.low
    kind = "exact, over all time"
    simulated = subject.evaluation or result.judgement
    if subject.half_width is not None and simulated is not None:
        tail = simulated.tail_bound
        left = "is not known"
        if tail is not None and cost is not None:
            useless = tail > abs(cost)
            left = "has no useful bound" if useless else f"is at most {short_text(tail, 3)}"
        kind = f"95 % interval; {simulated.horizon:,} steps, the cost after them {left}"
    if cost is not None:
        yield Card(subject.interval(), f"expected discounted cost of the policy ({kind})")
    if low is not None:
        whose = "" if subject.low_is_exact else ", of the model with its nodes or draws of noise"
        yield Card(number_text(low), f"no policy costs less: proven lower bound{whose}")
    if cost and low is not None and subject.gap is not None:
        share = percent(subject.gap, low + subject.gap)  # of the cost at the end of its interval
        yield Card(share, f"of the cost could be saved at most{subject.sure}")
    times = len(result.history)
    often = "once" if times == 1 else f"{times} times, until the weights were final"
    if not result.status.is_success:
        often = f"{times} times"
    yield Card(f"{result.seconds:.2g} s", f"the program was solved {often}")


def _sections(subject: Subject) -> Iterator[Section]:
    result = subject.result
    has_model = result.policy.model is not None
    gap = subject.between(result.method_name)
    yield Section(
        "cost",
        "How good is the policy?",
        "The best policy's cost lies between the proven lower bound and the cost of this policy. "
        "A narrow band means that there is little left to gain."
        if subject.low is not None
        else "No lower bound is proven here, so the cost alone says how good the policy is: "
        "compare it with policies you know.",
        (*(() if gap is None else (cost_chart(gap, result.judgement),)), *_rivals(result)),
    )
    yield Section(
        "convergence",
        "Did the weights settle?",
        "The program is solved again and again, each time weighted by where its policy spends its "
        f"time. The run has converged when weights and occupancy agree.{_dual(result)}"
        if isinstance(result.method, IterativeMethod)
        else "This method fixes the weights, so the program is solved once.",
        (*result.charts("convergence"), _history(result), *_phases(result)),
    )
    if has_model:
        yield from _pictures(subject)
    else:
        yield Section(
            "pictures",
            "Pictures",
            "This result was loaded without its model, so states cannot be shown: give the model "
            "to see values, actions and residuals.",
        )
    yield _solved(result)
    yield from _checks(subject)


def _dual(result: Result) -> str:
    """Say how much of the policy that makes the weights comes from the dual."""
    share = result.reported.dual_share
    if share is None or not isinstance(result.method, DIA):
        return ""
    told = dual_text(share)
    return f" {capital(told)}." if told.startswith("no ") else f" The dual {told}."


def _rivals(result: Result) -> tuple[Table, ...]:
    """Return what acting at random and the method's target cost, where the policy was judged."""
    found = result.judgement
    if found is None:
        return ()
    random = "acting at random, also the target" if found.target_is_random else "acting at random"
    rows = tuple(
        {
            "policy": name,
            "cost": cost.mean,
            "half_width": cost.half_width,
            "interval": interval_text(cost.mean, cost.half_width, between="±"),
            "difference": gap.mean,
            "difference_half_width": gap.half_width,
            "paired": interval_text(gap.mean, gap.half_width, sign="+", between="±"),
        }
        for name, cost, gap in (
            (random, found.random, found.minus_random),
            ("the method's target", found.target, found.minus_target),
        )
        if cost is not None and gap is not None
    )
    columns = (
        Column("policy", "policy", right=False),
        Column("cost", "", None),
        Column("half_width", "", None),
        Column("interval", "cost"),
        Column("difference", "", None),
        Column("difference_half_width", "", None),
        Column("paired", "our policy minus this"),
    )
    how = (
        "Exact, over all time."
        if found.is_exact
        else f"95 % intervals of {found.episodes:,} episodes of {found.horizon:,} steps, all on "
        "the same random numbers."
    )
    missing = f" Acting at random is not known: {found.random_reason}." * (found.random is None)
    return (Table("Beside other policies", columns, rows, (f"{how}{missing}",)),)


def _pictures(subject: Subject) -> Iterator[Section]:
    result = subject.result
    listed = not result.visited.is_sample
    yield Section(
        "weights",
        "Weights against occupancy",
        "The weights say in which states the value function must be good; the occupancy says in "
        "which states the policy spends its discounted time."
        + _SMOOTHED
        * isinstance(result.method, DIA),
        result.charts("weights"),
    )
    yield Section(
        "value",
        "Value function",
        "What one more unit of each state variable adds to what is still to be paid, as the "
        "program sees it."
        if result.visited.backend.acts_by_vectors
        else "What is still to be paid from a state on, as the program sees it."
        + " The optimal value lies between the bound and the cost of the policy." * listed,
        result.charts("value"),
    )
    yield Section("policy", "Policy", "Which action is taken where.", result.charts("policy"))
    yield _residuals(result)


def _phases(result: Result) -> tuple[Table, ...]:
    """Return the phases of a cycle, and their average where that is the one reported."""
    named = [(str(n), phase) for n, phase in enumerate(result.phases, start=1)]
    named += [] if result.average is None else [("average", result.average)]
    rows = tuple(
        {
            "phase": name,
            "cost": phase.cost.mean,
            "half_width": phase.cost.half_width,
            "interval": interval_text(phase.cost.mean, phase.cost.half_width, between="±"),
            "ties": "decided by ties" if phase.is_constant else None,
        }
        for name, phase in named
    )
    columns = (
        Column("phase", "phase"),
        Column("cost", "", None),
        Column("half_width", "", None),
        Column("interval", "cost"),
        Column("ties", "policy", right=False),
    )
    used = tuple(c for c in columns if any(row[c.key] is not None for row in rows))
    return (Table("Phases of the cycle", used, rows),) if rows else ()


def _solved(result: Result) -> Section:
    names = ", ".join(result.names[:12]) + (", ..." if len(result.names) > 12 else "")
    coefs = np.where(terms_that_matter(result), result.coef, 0.0)
    coefficients = Table(
        "Coefficients of the value function",
        (
            Column("name", "function", right=False),
            Column("coef", "coefficient", lambda value: f"{value:,.8g}"),
            Column("moment", "moment under the weights", lambda value: f"{value:,.6g}"),
        ),
        tuple(
            {"name": name, "coef": coef, "moment": moment}
            for name, coef, moment in zip(
                result.names, coefs.tolist(), result.moments.tolist(), strict=True
            )
        ),
    )
    facts = [
        ("model", f"{result.model_name}: {result.model_size}"),
        ("basis", f"{len(result.names)} functions: {names}"),
        ("method", method_text(result.method) + _PROVEN * (result.mode == "certified")),
        ("status", f"{result.status.name}: {result.status.message}"),
    ]
    lead = (
        "The unknown values of all states are replaced by a weighted sum of a few functions; a "
        "linear program finds the coefficients, and the policy takes the action that looks "
        "cheapest under them."
    )
    return Section("solved", "What was solved", lead, (facts_table("", facts), coefficients))


def _history(result: Result) -> Table:
    def small(value: float) -> str:
        return short_text(value, 3)

    columns = (
        Column("iteration", "iteration"),
        Column("objective", "objective", lambda value: f"{value:,.8g}"),
        Column("sup_norm", "largest difference", small),
        Column("one_norm", "sum of differences", small),
        Column("moment_step", "step of the moments", small),
        Column("step_ratio", "contraction", small),
        Column("step_size", "step size", small),
        Column("smoothing_mass", "smoothing mass", small),
        Column("dual_share", "visits with dual mass", lambda value: f"{100.0 * value:.3g} %"),
        Column("rows", "rows", lambda value: f"{value:,}"),
        Column("passes", "passes"),
        Column("seconds", "seconds", lambda value: f"{value:.2f}"),
    )
    rows = result.records().rows
    used = tuple(c for c in columns if any(row[c.key] is not None for row in rows))
    whole = sum(record.seconds for record in result.history)
    compiled = whole > _COMPILED * result.seconds
    notes = ("The seconds of the first iteration contain compilation.",) * compiled
    compares = any(row["one_norm"] is not None for row in rows)
    return Table("Iterations", used, rows, (_DIFFERENCES,) * compares + notes)


def _residuals(result: Result) -> Section:
    seen = result.visited
    residual = without_rounding(seen)
    part = seen.share * residual
    top = np.argsort(-np.abs(part), kind="stable")[:_TOP]
    top = top[part[top] != 0.0]
    total = float(part.sum())
    level = float(seen.share @ np.abs(seen.value)) * (1.0 - seen.backend.model.discount)
    if float(np.abs(part).sum()) <= ROUNDING * level:
        return Section(
            "residual",
            "Where the residual is largest",
            "The value function explains every step up to rounding: there is no residual.",
        )
    rows = tuple(
        {
            "state": cut(seen.state_text(int(place)), _STATE_LETTERS),
            "action": cut(seen.action_text(int(place)), _STATE_LETTERS),
            "residual": float(residual[place]),
            "share": float(seen.share[place]),
            "part": float(part[place]) / total if total > 0.0 else None,
        }
        for place in top
    )
    table = Table(
        "Largest residuals, weighted by the time spent",
        (
            Column("state", "state", right=False),
            Column("action", "action taken", right=False),
            Column("residual", "residual per step", short_text),
            Column("share", "time spent there", lambda value: f"{100.0 * value:.3g} %"),
            Column("part", "part of the sum", lambda value: f"{100.0 * value:.3g} %"),
        )[: 4 if seen.is_sample else 5],
        rows,
    )
    lead = (
        "The Bellman residual is what the value function fails to explain in one step. Residuals, "
        "weighted by the time spent in each state, add up to 1 - discount times the gap between "
        "cost and bound: a better function for the states on top of this list narrows it most."
    )
    if seen.is_sample:
        lead = (
            "The Bellman residual is what the value function fails to explain in one step, here in "
            "states that the policy visits. A negative one is a row of the program that is "
            "violated there."
        )
    return Section(
        "residual", "Where the residual is largest", lead, (*result.charts("residual"), table)
    )


def _proven(certificate: Certificate) -> Table:
    """Return what is proven; a cost whose error no loss contains stands elsewhere on the page."""
    table = certificate.table()
    if certificate.bound is not None:
        return table
    rows = tuple(row for row in table.rows if row["term"] not in ("cost", "repair"))
    return replace(table, rows=rows)


def _checks(subject: Subject) -> Iterator[Section]:
    result, certificate = subject.result, subject.certificate
    audit = Table(
        "",
        (
            Column("what", "what was checked", right=False),
            Column("size", "size", lambda value: f"{value + 0.0:.3g}"),
        ),
        tuple(
            {"what": _AUDIT.get(field, field), "size": value}
            for field, value in vars(result.audit).items()
            if value is not None
        ),
    )
    yield Section(
        "audit",
        "Audit of the linear program",
        "The solver's answer was checked again on unscaled data: how far rows are violated, how "
        "far the dual is from feasible, and the gap between the two objectives.",
        (audit,),
    )
    if certificate is not None:
        corollary = certificate.corollary()
        yield Section(
            "certificate",
            "Certificate",
            "What is proven about this policy. The corollary's bound, folded below, is often "
            "millions of times the loss; its terms tell what it is made of."
            if corollary.rows
            else "What is proven about this policy.",
            (_proven(certificate), *((Folded(corollary),) if corollary.rows else ())),
        )
    facts = [
        *settings_facts(result.method),
        *settings_facts(result.stop),
        ("regularisation", f"{result.regularisation:g}"),
        ("seed", str(result.seed)),
    ]
    if subject.evaluation is not None:
        facts.append(("simulation", str(subject.evaluation)))
    facts += [("model digest", result.model_digest), *origin()]
    yield Section(
        "settings",
        "Settings and seed",
        "The same model, rows, settings and seed give the same numbers.",
        (facts_table("", facts),),
    )
