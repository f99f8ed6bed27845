"""How Table 2 is shown: costs for each number of states, how policies were found, one CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.reproduce import verdicts
from bellweight.reproduce.network.runs import (
    BEST_STATIC,
    LAST_BUFFER,
    METHODS,
    OTHER_TIE,
    Run,
)
from bellweight.reproduce.paper import (
    ADAPTIVE,
    TABLE2_HORIZON,
    TABLE2_LARGEST_QUEUE,
    TABLE2_LARGEST_TOTAL,
    TABLE2_STATES,
    Printed,
)
from bellweight.reproduce.tables import compared_cost, judged_table, long_table, paper_cells
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import TABLE2_EPISODES, Compared, interval

if TYPE_CHECKING:
    from bellweight.reproduce.network.summary import Estimate, Summary
    from bellweight.reproduce.network.table2 import Table2


def _gap(value: Printed) -> str:
    return f"{value.mean:+,.2f} ± {value.half_width:,.2f}"


def _width(value: float) -> str:
    return f"± {value:,.2f}"


def _ends(value: tuple[float, float]) -> str:
    return f"{value[0]:,.0f} to {value[1]:,.0f}"


_COST_COLUMNS = (
    Column("policy", "policy", right=False),
    Column("cost", "cost ± simulation", interval),
    Column("between", "± samples", _width),
    Column("deviation", "deviation", lambda value: f"{value:,.1f}"),
    Column("range", "range", _ends),
    Column("difference", "minus last buffer", _gap),
    Column("difference_between", "± samples", _width),
    Column("paper", "paper", interval),
)
_GENERATION_COLUMNS = (
    Column("states", "states", lambda value: f"{value:,}"),
    Column("policy", "policy", right=False),
    Column("iterations", "iterations"),
    Column("ended", "ended", right=False),
    Column("share", "visits with dual mass", lambda value: f"{100.0 * value:.2g} %"),
)


def cost_table(table: Table2, states: int) -> Table:
    """Return the costs of all policies for one number of states."""
    rows = table.summaries(states)
    unfinished = "" if table.complete else f" (unfinished: {table.progress} rows)"
    return judged_table(
        f"{states:,} constraint states: discounted cost over {TABLE2_HORIZON:,} steps, "
        f"mean of {_samples(max((row.samples for row in rows), default=0))}{unfinished}",
        _COST_COLUMNS,
        [(_cost_row(row), row.verdict) for row in rows],
        _notes_for(rows, states),
    )


def generation_table(table: Table2) -> Table:
    """Return how the policies were found, with the notes that all numbers share."""
    rows = [row for n in table.settings.states for row in table.summaries(n)]
    return Table(
        title="How the policies were found, over the samples",
        columns=_GENERATION_COLUMNS,
        rows=tuple(_generation_row(row) for row in rows if row.generation is not None),
        notes=general_notes(table),
    )


def all_rows(table: Table2) -> Table:
    """Return every row of every sample, then the mean over samples, in full precision."""
    rows = [_run_row(run, table.settings.episodes) for run in table.runs]
    rows += [_mean_row(row) for n in table.settings.states for row in table.summaries(n)]
    return long_table("Table 2", rows)


def general_notes(table: Table2) -> tuple[str, ...]:
    """Return what all numbers of the table share."""
    settings = table.settings
    found = [
        "± simulation: 95 % interval of the mean over these very samples, error of simulation "
        "alone. ± samples: 95 % interval of the mean over all samples that could have been drawn "
        f"(Student's t over {_samples(settings.samples)}, simulation included). Deviation and "
        "range are those of the samples' costs; part of them is simulation, which cancels in the "
        "difference to last-buffer-first, as both meet the same random numbers.",
        _episode_note(table),
        f"Occupancies: {settings.occupancy_episodes:,} episodes of {TABLE2_HORIZON:,} steps; a "
        "method stops when every moment is within one standard error, and after "
        f"{settings.max_iterations} iterations at most, which ended {_unsettled(table)}: its row "
        "is then that of the last iterate.",
    ]
    found.append(
        f"{LAST_BUFFER}: queues 3 and 8 are both last on their routes; the later one, queue 8, "
        f"goes first. {OTHER_TIE}: the same rule with that tie decided the other way."
    )
    choice = table.choice
    if choice is not None:
        order = " ".join(map(str, choice.order))
        same = ", which is last-buffer-first itself" if choice.is_last_buffer else ""
        found.append(
            f"{BEST_STATIC}: queues {order}, group by group{same}, chosen among "
            f"{choice.candidates} on {choice.episodes:,} episodes of their own, then evaluated as "
            "all others."
        )
    if table.tail_bound is not None:
        found.append(
            f"After step {TABLE2_HORIZON:,} any policy costs at most {table.tail_bound:,.1f} more, "
            "which is left out."
        )
    found += sorted({f"Warning: {text}" for run in table.runs for text in run.warnings})
    return tuple(found)


def compared(rows: Sequence[Summary]) -> tuple[Compared, ...]:
    """Return the verdicts on the paper's costs, and on the extent of its sample of states."""
    found = [
        compared_cost(row.policy, interval(_simulated(row.cost)), row.paper, row.verdict)
        for row in rows
        if row.paper is not None and row.verdict is not None
    ]
    sized = [row.generation for row in rows if row.generation is not None]
    if sized:
        for what, ours, printed in (
            ("Largest total of a sample", sized[0].largest_totals, TABLE2_LARGEST_TOTAL),
            ("Largest queue of a sample", sized[0].largest_queues, TABLE2_LARGEST_QUEUE),
        ):
            text = ", ".join(map(str, ours))
            verdict = verdicts.table2_largest(printed, ours)
            found.append(Compared(what, text, str(printed), verdict))
    return tuple(found)


def times(rows: Sequence[Summary]) -> tuple[Time, ...]:
    """Return the mean seconds of policy generation beside the paper's."""
    return tuple(
        Time(
            f"{row.states:,} states, {row.policy}, mean of {_samples(row.samples)}",
            row.generation.seconds,
            row.generation.paper_seconds if row.states == TABLE2_STATES else None,
        )
        for row in rows
        if row.generation is not None
    )


def below_last_buffer(rows: Sequence[Summary]) -> str:
    """Return which methods beat last-buffer-first, and how surely."""
    named = [row for row in rows if row.policy in METHODS]
    sure = [row.policy for row in named if row.difference.is_below_for_all_samples]
    here = [row.policy for row in named if row.difference.is_below]
    adaptive = [name for name in here if name in ADAPTIVE]
    return (
        f"Below {LAST_BUFFER.lower()}, interval of simulation clear of zero: {_list(here)}; clear "
        f"of zero for samples in general too: {_list(sure)}. Adaptive methods among the first: "
        f"{_list(adaptive)}."
    )


def _unsettled(table: Table2) -> str:
    """Return which methods hit the iteration limit, and how often."""
    limit = Status.ITERATION_LIMIT.name
    ended = {name: [run.status for run in table.runs if run.policy == name] for name in METHODS}
    hit = [
        f"{name} in {statuses.count(limit)} of {len(statuses)} runs"
        for name, statuses in ended.items()
        if limit in statuses
    ]
    return _list(hit)


def _notes_for(rows: Sequence[Summary], states: int) -> list[str]:
    sized = [row.generation for row in rows if row.generation is not None]
    if not sized:
        return []
    most = max(sized, key=lambda generation: len(generation.largest_totals))
    totals = ", ".join(map(str, most.largest_totals))
    queues = ", ".join(map(str, most.largest_queues))
    notes = [below_last_buffer(rows)]
    if states != TABLE2_STATES:
        notes.append(f"The paper's numbers are those of {TABLE2_STATES:,} states.")
    notes.append(
        f"Largest total of each sample: {totals} (the paper's: {TABLE2_LARGEST_TOTAL}); largest "
        f"single queue: {queues} (the paper's: {TABLE2_LARGEST_QUEUE})."
    )
    return notes


def _episode_note(table: Table2) -> str:
    settings = table.settings
    pooled = settings.episodes * settings.samples
    text = (
        f"Every policy is evaluated on {settings.episodes:,} episodes for each sample, "
        f"{pooled:,} together; samples have random numbers of their own."
    )
    if pooled >= TABLE2_EPISODES:
        return text
    return (
        f"{text} That is fewer than {TABLE2_EPISODES:,}: absolute costs cannot be compared with "
        "the paper's, only the paired differences count."
    )


def _simulated(estimate: Estimate) -> Printed:
    """Return a mean over samples with the error of simulation alone."""
    return Printed(estimate.mean, estimate.simulated)


def _cost_row(row: Summary) -> dict[str, Any]:
    cost, gap = row.cost, row.difference
    spread = cost.deviation is not None
    standing = {} if row.standing is None else {"verdict": row.standing}
    return {
        "policy": row.policy,
        "cost": _simulated(cost),
        "between": cost.between,
        "deviation": cost.deviation,
        "range": (cost.low, cost.high) if spread else None,
        "difference": None if row.policy == LAST_BUFFER else _simulated(gap),
        "difference_between": gap.between,
        "paper": row.paper,
        **standing,
    }


def _generation_row(row: Summary) -> dict[str, Any]:
    found = row.generation
    assert found is not None
    least, most = min(found.iterations), max(found.iterations)
    return {
        "states": row.states,
        "policy": row.policy,
        "iterations": f"{least}" if least == most else f"{least} to {most}",
        "ended": ", ".join(f"{n} {name}" for name, n in found.statuses.items()),
        "share": found.dual_share,
    }


def _run_row(run: Run, episodes: int) -> dict[str, Any]:
    row = {**asdict(run), "episodes": episodes, "warnings": "; ".join(run.warnings)}
    del row["seconds"]  # a clock's, which no seed decides
    return {"sample": row.pop("sample"), **row}


def _mean_row(row: Summary) -> dict[str, Any]:
    found = row.generation
    return {
        "sample": "mean",
        "states": row.states,
        "policy": row.policy,
        "cost": row.cost.mean,
        "half_width": row.cost.simulated,
        "difference": row.difference.mean,
        "difference_half_width": row.difference.simulated,
        "dual_share": found and found.dual_share,
        "episodes": row.episodes,
        **_spread("", row.cost),
        **_spread("difference_", row.difference),
        **paper_cells(row.paper),
        "verdict": row.standing or (row.verdict and row.verdict.word),
        "reason": row.verdict and row.verdict.reason,
    }


def _spread(prefix: str, estimate: Estimate) -> dict[str, Any]:
    return {
        f"{prefix}between": estimate.between,
        f"{prefix}deviation": estimate.deviation,
        f"{prefix}low": estimate.low,
        f"{prefix}high": estimate.high,
    }


def _samples(n: int) -> str:
    return f"{n} sample{'' if n == 1 else 's'}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
