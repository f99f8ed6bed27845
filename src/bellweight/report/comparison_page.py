"""Pages about several policies: a comparison on common random numbers, or results side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median_low

import numpy as np

from bellweight.display import Column, Table, facts_table, interval_text, number_text
from bellweight.display.charts import Chart, Line, Picture, off_scale, visible_heights
from bellweight.display.cost_charts import gap_chart
from bellweight.display.presentable import Presentable
from bellweight.evaluation.evaluate import Comparison
from bellweight.report.sections import (
    Section,
    assemble,
    method_text,
    origin,
    settings_facts,
)
from bellweight.report.subject import Subject
from bellweight.results.charts import PROGRAM, Along, line_sentence, policy_sentence
from bellweight.weights.loop import HistoryEntry


def comparison_page(found: Comparison, title: str | None, about: Sequence[str]) -> str:
    """Return the page of a comparison."""
    best = min(found.evaluations, key=lambda name: found.evaluations[name].mean)
    one = found.evaluations[found.baseline]
    sentence = (
        f"{_counted(len(found.evaluations), 'policy', 'policies')} met the same "
        f"{one.episodes:,} episodes of {one.horizon} steps. The lowest mean cost is that of "
        f"{best}, {_interval(found, best)}."
    )
    others = len(found.evaluations) > 1
    sections = [
        Section(
            "cost",
            "Costs",
            "Mean discounted cost with its 95 % interval. Intervals that overlap do not mean that "
            "policies are alike: see the paired differences.",
            (*found.charts("cost"), *(() if others else (found.table(),))),
        ),
        Section(
            "difference",
            f"Differences to {found.baseline}",
            "All policies met the same random numbers, so their differences are known far better "
            "than their costs. An interval that excludes zero is a clear difference.",
            (*found.charts("difference"), found.table()),
        ),
        Section("settings", "Settings and seed", "", (facts_table("", _run(found)),)),
    ]
    shown = [s for s in sections if others or s.key != "difference"]
    return assemble(title or "Comparison of policies", about or [sentence], shown)


def plan_page(found: Presentable, title: str | None, about: Sequence[str]) -> str:
    """Return the page of what a plan found: its first note on top, then pictures, table, notes."""
    told = found.table()
    first, rest = told.notes[:1], told.notes[1:]
    parts = (*found.charts(), replace(told, title="", notes=rest))
    sections = [
        Section("found", "What was found", "", parts),
        Section("origin", "Made by", "", (facts_table("", origin()),)),
    ]
    return assemble(title or told.title, about or first, sections)


def _counted(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"


def _interval(found: Comparison, name: str) -> str:
    evaluation = found.evaluations[name]
    return interval_text(evaluation.mean, evaluation.half_width, between="±")


def results_page(
    subjects: Mapping[str, Subject],
    paired: Comparison | None,
    optimum: float | None,
    title: str | None,
    about: Sequence[str],
) -> str:
    """Return the page of several results on one model."""
    first = next(iter(subjects.values())).result
    sentence = f"{len(subjects)} runs on {first.model_name}: {first.model_size}.{_best(subjects)}"
    warnings = [f"{name}: {text}" for name, s in subjects.items() for text in s.warnings()]
    sections = [s for s in _sections(subjects, paired, optimum) if s.parts]
    return assemble(
        title or f"Results on {first.model_name}", about or [sentence], sections, warnings=warnings
    )


def _best(subjects: Mapping[str, Subject]) -> str:
    """Say which policy costs least, and what is proven about all."""
    costs = {name: subject.cost for name, subject in subjects.items() if subject.cost is not None}
    if not costs:
        return ""
    name = min(costs, key=costs.__getitem__)
    lows = [subject.low for subject in subjects.values() if subject.low is not None]
    least = f"; no policy costs less than {number_text(max(lows))}" if lows else ""
    return f" The policy of {name} costs least, {subjects[name].interval()}{least}."


def _sections(
    subjects: Mapping[str, Subject], paired: Comparison | None, optimum: float | None
) -> Iterator[Section]:
    gaps = [gap for name, subject in subjects.items() if (gap := subject.between(name))]
    charts: tuple[Picture, ...] = (gap_chart(gaps, optimum),) if gaps else ()
    yield Section(
        "cost",
        "Cost and bound of each run",
        "Each band reaches from what the run proves (no policy costs less) to what its policy "
        "costs. The best policy's cost lies in every one of these bands."
        if any(gap.low is not None for gap in gaps)
        else "What the policy of each run costs; no lower bound is proven here.",
        (*charts, _all_runs(subjects, optimum)),
    )
    if paired is not None:
        yield Section(
            "difference",
            "Paired differences",
            "All policies met the same random numbers.",
            (*paired.charts("difference"), paired.table()),
        )
    results = {name: subject.result for name, subject in subjects.items()}
    yield Section(
        "convergence",
        "Did the weights settle?",
        "The sum of differences between the weights and the occupancy of the policy they lead to, "
        "by iteration. Runs with fixed weights are not drawn, nor are differences of exactly zero.",
        _convergence({name: result.history for name, result in results.items()}),
    )
    for key, heading, lead in _CURVES:
        drawn = {
            name: [c for c in result.charts(key) if isinstance(c, Chart)]
            for name, result in results.items()
            if result.policy.model is not None
        }
        same = [found[0] for found in drawn.values() if len(found) == 1]
        if len(same) == len(results) and len({chart.x_names for chart in same}) == 1:
            yield Section(key, heading, lead, _shared(same, list(results)))
    facts = [
        (name, f"{method_text(result.method)} Settings: {_settings(result.method)}.")
        for name, result in results.items()
    ]
    seeds = sorted({result.seed for result in results.values()})
    facts += [("seed", ", ".join(map(str, seeds))), *origin()]
    yield Section("settings", "What each run does, and its settings", "", (facts_table("", facts),))


def _settings(method: object) -> str:
    return ", ".join(f"{name} = {text}" for name, text in settings_facts(method))


_MOST_SAID = 3  # runs whose sentences stand below a chart that they share
_CURVES = (
    ("value", "Value functions", "What each run's value function says."),
    ("policy", "Policies", "Which action is taken where."),
    ("weights", "Weights", "What each run made its value function good for."),
)


def _shared(charts: Sequence[Chart], names: Sequence[str]) -> tuple[Chart, ...]:
    """Put one line of each chart into one: that of the program, or the first."""
    told = [
        next((line for line in chart.lines if line.who == PROGRAM), chart.lines[0])
        for chart in charts
    ]
    lines = {
        name: Line(name, line.x, line.y, line.style) for name, line in zip(names, told, strict=True)
    }
    ranges = [chart.x_range for chart in charts if chart.x_range is not None]
    # A run with a far wider range than most does not set the scale.
    wide = (min(r[0] for r in ranges), median_low(r[1] for r in ranges)) if ranges else None
    frame = replace(charts[0], x_range=wide)
    said = " ".join(f"{name}: {_told(line, frame)}" for name, line in lines.items())
    words = _alike(list(lines.values())) or said * (len(lines) <= _MOST_SAID)
    return _overlay(frame, lines, words)


def _told(line: Line, frame: Chart) -> str:
    """Say in words what a line shows inside the frame."""
    low, high = frame.x_range or (-np.inf, np.inf)
    inside = (line.x >= low) & (line.x <= high)
    shown = Along(line.x[inside], line.y[inside], frame.x_label, frame.x_names)
    return line_sentence(shown) if frame.y_names is None else policy_sentence(shown, frame.y_names)


def _convergence(histories: Mapping[str, Sequence[HistoryEntry]]) -> tuple[Chart, ...]:
    """Draw the sums of differences of all runs, and say how each ended, drawn or not."""
    norms = {
        name: [(record.iteration + 1.0, record.one_norm) for record in history
               if record.one_norm is not None]
        for name, history in histories.items()
    }  # fmt: skip
    ends = [f"{name}: {known[-1][1]:.2g} at last." for name, known in norms.items() if known]
    frame = Chart("convergence", "Convergence", "iteration", "sum of differences", (), "",
                  log_y=True)  # fmt: skip
    lines = {name: _positive(known) for name, known in norms.items()}
    return _overlay(frame, lines, " ".join(ends))


def _positive(points: Sequence[tuple[float, float]]) -> Line:
    """Return a line of the points above zero, the only ones that a log axis has a place for."""
    kept = np.array([point for point in points if point[1] > 0.0], dtype=np.float64).reshape(-1, 2)
    return Line("", kept[:, 0], kept[:, 1])


def _overlay(frame: Chart, lines: Mapping[str, Line], alt: str) -> tuple[Chart, ...]:
    drawn = tuple(
        Line(name, line.x, line.y, line.style) for name, line in lines.items() if len(line.x)
    )
    if not drawn:
        return ()
    y_range = None
    if frame.x_range is not None and frame.y_names is None:
        y_range = visible_heights(drawn, frame.x_range)  # what lies outside may be far off
    chart = replace(frame, lines=drawn, alt=alt, y_range=y_range)
    return (replace(chart, alt=f"{alt}{off_scale(drawn, chart)}".strip()),)


def _alike(lines: Sequence[Line]) -> str:
    """Say which lines are the same."""
    groups: dict[bytes, list[str]] = {}
    for line in lines:
        unit = 1e-9 * float(np.abs(line.y).max(initial=0.0)) or 1.0
        groups.setdefault(np.round(line.y / unit).tobytes(), []).append(line.label)
    shared = [" and ".join(names) for names in groups.values() if len(names) > 1]
    return f"The same for {'; for '.join(shared)}." if shared else ""


def _all_runs(subjects: Mapping[str, Subject], optimum: float | None) -> Table:
    rows = tuple(
        {
            "name": name,
            "status": subject.result.status.name,
            "iterations": len(subject.result.history),
            "seconds": subject.result.seconds,
            "cost": None if subject.cost is None else subject.interval(),
            "low": subject.low,
            "loss": _loss(subject, optimum),
            "most": _most(subject),
        }
        for name, subject in subjects.items()
    )
    columns = (
        Column("name", "run", right=False),
        Column("status", "status", right=False),
        Column("iterations", "iterations"),
        Column("seconds", "seconds", lambda value: f"{value:.2f}"),
        Column("cost", "cost"),
        Column("low", "lower bound", number_text),
        Column("most", "loss at most, %", lambda value: f"{value:.3g}"),
        Column("loss", "true loss, %", lambda value: f"{value:.2f}"),
    )
    used = tuple(c for c in columns if any(row[c.key] is not None for row in rows))
    return Table("All runs", used, rows)


def _loss(subject: Subject, optimum: float | None) -> float | None:
    if optimum is None or subject.cost is None or optimum == 0.0:
        return None
    loss = 100.0 * (subject.cost - optimum) / abs(optimum)
    return 0.0 if abs(loss) < 1e-6 else loss


def _most(subject: Subject) -> float | None:
    """Return the proven loss in per cent of the cost at the end of its interval."""
    if not subject.gap or subject.low is None:
        return subject.gap
    whole = subject.low + subject.gap
    return 100.0 * subject.gap / abs(whole) if whole else None  # no share of a cost of zero


def _run(found: Comparison) -> list[tuple[str, str]]:
    one = found.evaluations[found.baseline]
    return [
        ("episodes", f"{one.episodes:,}"),
        ("steps per episode", f"{one.horizon:,}"),
        ("baseline", found.baseline),
        ("seed", str(one.seed)),
        *origin(),
    ]
