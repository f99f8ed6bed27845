"""How what lies beyond the paper is shown: what is claimed, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.display import Column, Table
from bellweight.reproduce.network.runs import BEST_STATIC, LAST_BUFFER
from bellweight.reproduce.network.summary import Estimate, estimate
from bellweight.reproduce.paper import TABLE2, Printed
from bellweight.reproduce.tables import compared_cost, long_table
from bellweight.reproduce.times import Time
from bellweight.reproduce.verdicts import Compared, Verdict, Word, interval
from studies.beyond.network import (
    AUTO,
    AUTO_BASELINES,
    GOOD,
    PLAIN,
    REGULARISED,
    WITH_BASELINES,
    Entry,
)

if TYPE_CHECKING:
    from studies.beyond.study import Beyond

PAPER_BEST = "DIA (0.9)"
ENOUGH = 400_000
"""Episodes that an absolute cost of the network needs."""

SAMPLES = 10
"""Samples that a claim about samples needs."""

_SPREAD = 0.4  # of the plain program's standard deviation between samples
_NEAR = 0.005  # of the best static priority's cost
_MOST_ADDED = 40
_SECONDS = 300.0
_BASELINES = (LAST_BUFFER, BEST_STATIC)


def tables(found: Beyond) -> tuple[Table, ...]:
    """Return every table for which there are numbers."""
    made = [
        claim_table(found),
        _sample_table(found),
        _single_samples(found),
        _choice_table(found),
        _plain_table(found, "dual", "How far the dual speaks (DIA towards random, one sample)", (
            _number("states", "states with mass", "{:,.0f}"), _percent("share", "of visits"))),
        _plain_table(found, "basis", "Bases that grow from degree one", (
            _number("start", "cost at first"), _number("cost", "cost"),
            _number("optimum", "optimum"), _number("needed", "functions to 1e-6", "{:.0f}"),
            _number("added", "added", "{:.0f}"), _number("lower_bound", "lower bound"))),
        _plain_table(found, "small relatives", "Relatives on a queue of 200 states", (
            _number("cost", "cost"), _number("lower_bound", "lower bound"),
            _number("optimum", "optimum"))),
        _relative_table(found),
        _plain_table(found, "steps", "Steps of the weight iteration", (
            _number("iterations", "iterations", "{:.0f}"),
            Column("status", "ended", right=False), _number("residual", "residual", "{:.2g}"),
            _number("cost", "cost"))),
    ]  # fmt: skip
    return tuple(table for table in made if table is not None)


def claim_table(found: Beyond) -> Table:
    """Return what is claimed, what was measured, and whether it holds."""
    rows = [
        {"claim": claim, "measured": measured, "holds": _judged(holds, found, samples)}
        for claim, measured, holds, samples in _claims(found)
    ]
    columns = (
        Column("claim", "claim", right=False),
        Column("measured", "measured", right=False),
        Column("holds", "holds", right=False),
    )
    notes = (
        "Half-widths are those of simulation at 95 %. Last-buffer-first gives ties to the last "
        "queue; the best static priority is the one of 72 that Table 2 finds best. Claims about "
        f"the network need {SAMPLES} samples and {ENOUGH:,} episodes in all.",
    )
    return Table("Beyond the paper: what is claimed", columns, tuple(rows), notes)


def compared(found: Beyond) -> tuple[Compared, ...]:
    """Return the regularised program's mean beside the paper's best row."""
    ours = _over(found, "samples", REGULARISED, "cost")
    if ours is None:
        return ()
    paper = TABLE2[PAPER_BEST]
    pooled = found.settings.episodes * len(_numbers(found, "samples", REGULARISED))
    limit = paper.mean - paper.half_width
    if pooled < ENOUGH:
        verdict = Verdict(Word.NOT_JUDGED, None, f"{pooled:,} episodes, {ENOUGH:,} are needed")
    elif ours.mean + ours.simulated < limit:
        reason = "the regularised program does not hang on a few sampled states"
        verdict = Verdict(Word.BETTER, paper.mean - ours.mean, reason)
    elif abs(ours.mean - paper.mean) <= paper.half_width + ours.simulated:
        verdict = Verdict(Word.MATCHES)
    else:
        verdict = Verdict(Word.DIFFERS, paper.mean - ours.mean, "costlier than the paper's best")
    what = f"{REGULARISED}, mean over samples, beside {PAPER_BEST}"
    return (compared_cost(what, interval(Printed(ours.mean, ours.simulated)), paper, verdict),)


def all_rows(entries: Sequence[Entry]) -> Table:
    """Return every number on a line of its own; times stand elsewhere."""
    rows = [
        {"part": e.part, "sample": e.sample, "name": e.name, "number": key, "value": value}
        for e in entries
        for key, value in e.numbers.items()
        if "seconds" not in key
    ]
    return long_table("Beyond the paper", rows)


def times(entries: Sequence[Entry]) -> tuple[Time, ...]:
    """Return what was measured with a clock."""
    return tuple(
        Time(f"{_place(e)}: {e.name}, {key.replace('_', ' ')}", value)
        for e in entries
        for key, value in e.numbers.items()
        if "seconds" in key and value is not None
    )


def _judged(holds: bool, found: Beyond, samples: int | None) -> str:
    few = samples is not None and (samples < SAMPLES or samples * found.settings.episodes < ENOUGH)
    return "not judged" if few else "yes" if holds else "no"


def _claims(found: Beyond) -> list[tuple[str, str, bool, int | None]]:
    """Return claims, what was measured, whether they hold, and on how many samples, if on any."""
    samples = ("samples", REGULARISED)
    simulated = (
        (_every_sample(found), samples),
        (_steadier(found), samples),
        (_cheaper(found), samples),
        (_near_static(found, "good", GOOD), ("good", GOOD)),
        (_near_static(found, "auto", AUTO), ("auto", AUTO)),
        (_no_worse(found), (WITH_BASELINES, AUTO_BASELINES)),
    )
    grown = (_grown(entry) for entry in found.part("basis"))
    return [
        *((*claim, len(_numbers(found, *rows))) for claim, rows in simulated if claim is not None),
        *((*claim, None) for claim in grown),
    ]


def _every_sample(found: Beyond) -> tuple[str, str, bool] | None:
    gaps = _numbers(found, "samples", REGULARISED)
    if not gaps:
        return None
    clear = sum(n["to_last_buffer"] < -n["to_last_buffer_half_width"] for n in gaps)
    worst = max(n["to_last_buffer"] + n["to_last_buffer_half_width"] for n in gaps)
    claim = f"{REGULARISED} (delta {found.delta:g}) below last-buffer-first on every sample"
    return claim, f"{clear} of {len(gaps)}, upper limits up to {worst:+,.1f}", clear == len(gaps)


def _steadier(found: Beyond) -> tuple[str, str, bool] | None:
    # Paired differences: the luck of a sample's episodes is the same for both programs.
    spreads = [_over(found, "samples", name, "to_last_buffer") for name in (REGULARISED, PLAIN)]
    deviations = [None if spread is None else spread.deviation for spread in spreads]
    if deviations[0] is None or not deviations[1]:
        return None
    ratio = deviations[0] / deviations[1]
    claim = f"its standard deviation between samples at most {_SPREAD:g} of the plain program's"
    text = f"{deviations[0]:,.1f} beside {deviations[1]:,.1f}: {ratio:.2f}"
    return claim, text, ratio <= _SPREAD


def _cheaper(found: Beyond) -> tuple[str, str, bool] | None:
    ours = _over(found, "samples", REGULARISED, "cost")
    if ours is None:
        return None
    pooled = found.settings.episodes * len(_numbers(found, "samples", REGULARISED))
    best = TABLE2[PAPER_BEST].mean
    claim = f"its mean cost below the paper's best, {best:,.2f}"
    text = f"{_pair_text(ours.mean, ours.simulated)} from {pooled:,} episodes"
    return claim, text, ours.mean < best


def _near_static(found: Beyond, part: str, name: str) -> tuple[str, str, bool] | None:
    gap = _over(found, part, name, "to_static")
    cost = _over(found, "samples", BEST_STATIC, "cost")
    if gap is None or cost is None:
        return None
    share = gap.mean / cost.mean
    claim = f"{name}: within {100 * _NEAR:g} % of the best static priority on average"
    text = f"{_pair_text(gap.mean, gap.simulated, '+')}, {100 * share:+.2f} %"
    return claim, text, share <= _NEAR


def _no_worse(found: Beyond) -> tuple[str, str, bool] | None:
    numbers = _numbers(found, WITH_BASELINES, AUTO_BASELINES)
    if not numbers:
        return None
    clear = all(n["to_static"] <= n["to_static_half_width"] for n in numbers)
    quick = all(n["seconds"] <= _SECONDS for n in numbers)
    gaps = ", ".join(_pair_text(n["to_static"], n["to_static_half_width"], "+") for n in numbers)
    winners = ", ".join(dict.fromkeys(n["chosen"] for n in numbers))
    claim = f"{AUTO_BASELINES}: no worse than the best static priority, within five minutes"
    return claim, f"{gaps}; winner: {winners}", clear and quick


def _grown(entry: Entry) -> tuple[str, str, bool]:
    n = entry.numbers
    claim = f"{entry.name}: the optimal cost to 1e-6 with at most {_MOST_ADDED} added functions"
    needed = n["needed"]
    text = "not reached" if needed is None else f"after {needed} functions"
    return claim, text, needed is not None and needed <= _MOST_ADDED


def _sample_table(found: Beyond) -> Table | None:
    rows = []
    for part in ("samples", "good", "auto", WITH_BASELINES):
        for name in dict.fromkeys(entry.name for entry in found.part(part)):
            rows.append(_sample_row(found, part, name))
    if not rows:
        return None
    columns = (
        Column("policy", "policy", right=False),
        Column("samples", "samples"),
        Column("cost", "mean cost"),
        Column("to_last_buffer", "minus last buffer first"),
        Column("to_static", "minus best static"),
        Column("deviation", "sd between samples", "{:,.1f}".format),
        Column("worst", "worst to best static", "{:+,.1f}".format),
    )
    settings = found.settings
    title = (
        f"The network, {settings.samples} samples of {settings.states:,} constraint states, "
        f"{settings.episodes:,} episodes each"
    )
    return Table(title, columns, tuple(rows))


def _sample_row(found: Beyond, part: str, name: str) -> dict[str, Any]:
    cost, buffer, static = (
        _over(found, part, name, key) for key in ("cost", "to_last_buffer", "to_static")
    )
    assert cost is not None
    assert buffer is not None
    assert static is not None
    fixed = name in _BASELINES
    return {
        "policy": name,
        "samples": len(_numbers(found, part, name)),
        "cost": _pair_text(cost.mean, cost.simulated),
        "to_last_buffer": _pair_text(buffer.mean, buffer.simulated, "+"),
        "to_static": _pair_text(static.mean, static.simulated, "+"),
        "deviation": None if fixed else buffer.deviation,
        "worst": None if fixed else static.high,
    }


def _single_samples(found: Beyond) -> Table | None:
    """Return every sample on a row: differences to the best static priority."""
    parts = {"samples": (PLAIN, REGULARISED), "good": (GOOD,), "auto": (AUTO,),
             WITH_BASELINES: (AUTO_BASELINES,)}  # fmt: skip
    rows: dict[int, dict[str, Any]] = {}
    for part, names in parts.items():
        for entry in found.part(part):
            if entry.name in names and entry.sample is not None:
                row = rows.setdefault(entry.sample, {"sample": entry.sample})
                n = entry.numbers
                row[entry.name] = f"{n['to_static']:+,.1f} +- {n['to_static_half_width']:,.1f}"
                if "chosen" in n:
                    row[f"{entry.name} chose"] = n["chosen"]
    if not rows:
        return None
    shown = [name for names in parts.values() for name in names]
    columns = [Column("sample", "sample"), *(Column(name, name) for name in shown)]
    columns += [Column(f"{name} chose", f"{name} chose", right=False) for name in (GOOD, AUTO)]
    return Table("Sample by sample, minus the best static priority", tuple(columns),
                 tuple(rows.values()))  # fmt: skip


def _choice_table(found: Beyond) -> Table | None:
    entries = found.part("choice")
    if not entries:
        return None
    rows = []
    for delta in found.settings.deltas:
        gaps = [e.numbers["gap"] for e in entries if e.numbers["delta"] == delta]
        if gaps:
            mean, worst = float(np.mean(gaps)), max(gaps)
            rows.append({"delta": delta, "mean": mean, "worst": worst, "n": len(gaps)})
    columns = (
        Column("delta", "delta", "{:g}".format),
        Column("mean", "minus last buffer first, mean", "{:+,.1f}".format),
        Column("worst", "worst sample", "{:+,.1f}".format),
        Column("n", "samples"),
    )
    note = (
        f"Chosen, because its worst sample is best, and used for every sample of the study: "
        f"{found.delta:g}."
    )
    return Table("The regularisation, on samples of its own", columns, tuple(rows), (note,))


def _relative_table(found: Beyond) -> Table | None:
    entries = found.part("relatives")
    if not entries:
        return None
    rows = tuple(
        {
            "name": e.name,
            "cost": _pair_text(e.numbers["cost"], e.numbers["half_width"]),
            "paired": _pair_text(e.numbers["to_static"], e.numbers["to_static_half_width"], "+"),
        }
        for e in entries
    )
    columns = (Column("name", "plan", right=False), Column("cost", "cost"),
               Column("paired", "minus best static"))  # fmt: skip
    return Table("Relatives on the network, one sample", columns, rows)


def _plain_table(found: Beyond, part: str, title: str, columns: tuple[Column, ...]) -> Table | None:
    entries = found.part(part)
    if not entries:
        return None
    rows = tuple({"name": entry.name, **entry.numbers} for entry in entries)
    return Table(title, (Column("name", "", right=False), *columns), rows)


def _number(key: str, heading: str, form: str = "{:,.4f}") -> Column:
    return Column(key, heading, form.format)


def _percent(key: str, heading: str) -> Column:
    return Column(key, heading, lambda value: f"{100.0 * value:.3g} %")


def _numbers(found: Beyond, part: str, name: str) -> list[dict[str, Any]]:
    return [entry.numbers for entry in found.part(part) if entry.name == name]


def _over(found: Beyond, part: str, name: str, key: str) -> Estimate | None:
    """Return the mean of a number over samples, with its errors and its spread."""
    numbers = _numbers(found, part, name)
    if not numbers:
        return None
    width = "half_width" if key == "cost" else f"{key}_half_width"
    return estimate([n[key] for n in numbers], [n[width] for n in numbers])


def _place(entry: Entry) -> str:
    return entry.part if entry.sample is None else f"{entry.part} {entry.sample}"


def _pair_text(mean: float, half_width: float, sign: str = "") -> str:
    """Return an estimate with its error, to as many digits as the error makes meaningful."""
    small = 0.0 < half_width < 0.01
    digits = min(15, 1 - math.floor(math.log10(half_width))) if small else 3
    return f"{mean:{sign},.{digits}f} +- {half_width:,.{digits}f}"
