"""Pages about several policies: a comparison on common random numbers, or results side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bellweight.display import Column, Table
from bellweight.display.charts import Chart, Line, Picture
from bellweight.display.gaps import gap_chart
from bellweight.evaluate import Comparison
from bellweight.report.result_page import Subject
from bellweight.report.sections import (
    Section,
    assemble,
    facts_table,
    number,
    origin,
    settings_facts,
)
from bellweight.selection import Iteration


def comparison_page(found: Comparison, title: str | None, about: Sequence[str]) -> str:
    """Return the page of a comparison."""
    best = min(found.evaluations, key=lambda name: found.evaluations[name].mean)
    one = found.evaluations[found.baseline]
    sentence = (
        f"{len(found.evaluations)} policies met the same {one.episodes:,} episodes of "
        f"{one.horizon} steps. The lowest mean cost is that of {best}, {_interval(found, best)}."
    )
    sections = [
        Section(
            "cost",
            "Costs",
            "Mean discounted cost with its 95 % interval. Intervals that overlap do not mean that "
            "policies are alike: see the paired differences.",
            found.charts("cost"),
        ),
        Section(
            "difference",
            f"Differences to {found.baseline}",
            "All policies met the same luck, so their differences are known far better than their "
            "costs. An interval that excludes zero is a clear difference.",
            (*found.charts("difference"), found.table()),
        ),
        Section("settings", "Settings and seed", "", (facts_table("", _run(found)),)),
    ]
    return assemble(title or "Comparison of policies", about or [sentence], sections)


def _interval(found: Comparison, name: str) -> str:
    evaluation = found.evaluations[name]
    return f"{evaluation.mean:,.3f} ± {evaluation.half_width:,.3f}"


def league_page(
    subjects: Mapping[str, Subject],
    paired: Comparison | None,
    optimum: float | None,
    title: str | None,
    about: Sequence[str],
) -> str:
    """Return the page of several results on one model."""
    first = next(iter(subjects.values())).result
    sentence = f"{len(subjects)} runs on {first.model_name} ({first.model_size})."
    warnings = [
        f"{name}: {text}"
        for name, subject in subjects.items()
        for text in (*_endings(subject), *subject.result.warnings, *subject.doubts)
    ]
    sections = [s for s in _sections(subjects, paired, optimum) if s.parts]
    return assemble(
        title or f"Results on {first.model_name}", about or [sentence], sections, warnings=warnings
    )


def _sections(
    subjects: Mapping[str, Subject], paired: Comparison | None, optimum: float | None
) -> Iterator[Section]:
    gaps = [gap for name, subject in subjects.items() if (gap := subject.between(name))]
    charts: tuple[Picture, ...] = (gap_chart(gaps, optimum),) if gaps else ()
    yield Section(
        "cost",
        "Cost and bound of each run",
        "Each band reaches from what the run proves (no policy costs less) to what its policy "
        "costs. The best policy's cost lies in every one of these bands.",
        (*charts, _league(subjects, optimum)),
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
        "The 1-norm between the weights and the occupancy of the policy they lead to, by "
        "iteration. A run with one iteration has fixed weights.",
        _overlay(
            Chart("convergence", "Convergence", "iteration", "1-norm of the difference", (), "",
                  log_y=True),
            {name: _norms(result.history) for name, result in results.items()},
        ),
    )  # fmt: skip
    for key, heading, lead in _CURVES:
        drawn = {
            name: [c for c in result.charts(key) if isinstance(c, Chart)]
            for name, result in results.items()
            if result.policy.model is not None
        }
        same = [found[0] for found in drawn.values() if len(found) == 1]
        if len(same) == len(results):
            yield Section(key, heading, lead, _shared(same, list(results)))
    facts = [(name, _method(result.method)) for name, result in results.items()]
    facts += [("seed", str(next(iter(results.values())).seed)), *origin()]
    yield Section("settings", "What each run does, and its settings", "", (facts_table("", facts),))


_CURVES = (
    ("value", "Value functions", "What each run takes the cost from a state on to be."),
    ("policy", "Policies", "Which action is taken where."),
    ("weights", "Weights", "In which states each run made its value function good."),
)


def _method(method: object) -> str:
    """Return in a sentence what a method does, and its settings."""
    does = (type(method).__doc__ or type(method).__name__).splitlines()[0]
    return f"{does} {', '.join(f'{name} = {text}' for name, text in settings_facts(method))}"


def _shared(charts: Sequence[Chart], names: Sequence[str]) -> tuple[Chart, ...]:
    """Put the first line of each chart into one."""
    lines = {
        name: Line(name, chart.lines[0].x, chart.lines[0].y, chart.lines[0].style)
        for name, chart in zip(names, charts, strict=True)
    }
    alike = _alike(list(lines.values()))
    return _overlay(charts[0], lines, alike)


def _overlay(frame: Chart, lines: Mapping[str, Line], alike: str = "") -> tuple[Chart, ...]:
    drawn = tuple(
        Line(name, line.x, line.y, line.style) for name, line in lines.items() if len(line.x)
    )
    if not drawn:
        return ()
    ends = " ".join(f"{line.label}: {line.y[-1]:.4g} at the end." for line in drawn)
    heights = _heights(frame, drawn)
    return (replace(frame, lines=drawn, alt=alike or ends, y_range=heights),)


def _heights(frame: Chart, lines: Sequence[Line]) -> tuple[float, float] | None:
    """Return the range of what is seen at first; what lies outside the view may be far off."""
    if frame.x_range is None or frame.y_names is not None:
        return None
    low, high = frame.x_range
    seen = np.concatenate([line.y[(line.x >= low) & (line.x <= high)] for line in lines])
    margin = 0.05 * float(np.ptp(seen)) or 1.0
    return float(seen.min()) - margin, float(seen.max()) + margin


def _alike(lines: Sequence[Line]) -> str:
    """Say which lines are the same."""
    groups: dict[bytes, list[str]] = {}
    for line in lines:
        groups.setdefault(np.round(line.y, 6).tobytes(), []).append(line.label)
    shared = [" and ".join(names) for names in groups.values() if len(names) > 1]
    return f"The same for {'; for '.join(shared)}." if shared else "All lines differ."


def _norms(history: Sequence[Iteration]) -> Line:
    kept = [(record.iteration + 1.0, record.one_norm) for record in history if record.one_norm]
    sizes = np.array(kept, dtype=np.float64).reshape(-1, 2)
    return Line("", sizes[:, 0], sizes[:, 1])


def _league(subjects: Mapping[str, Subject], optimum: float | None) -> Table:
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
        Column("low", "lower bound", number),
        Column("most", "loss at most, %", lambda value: f"{value:.3g}"),
        Column("loss", "true loss, %", lambda value: f"{value:.2f}"),
    )
    used = tuple(c for c in columns if any(row[c.key] is not None for row in rows))
    return Table("All runs", used, rows)


def _loss(subject: Subject, optimum: float | None) -> float | None:
    if optimum is None or subject.cost is None or optimum == 0.0:
        return None
    return 100.0 * abs(subject.cost - optimum) / abs(optimum)


def _most(subject: Subject) -> float | None:
    if subject.cost is None or subject.low is None or subject.cost == 0.0:
        return None
    return 100.0 * max(0.0, subject.cost - subject.low) / abs(subject.cost)


def _endings(subject: Subject) -> Iterator[str]:
    status = subject.result.status
    if not status.is_success:
        yield f"{status.name}: {status.message}. {status.remedy}"


def _run(found: Comparison) -> list[tuple[str, str]]:
    one = found.evaluations[found.baseline]
    return [
        ("episodes", f"{one.episodes:,}"),
        ("steps per episode", f"{one.horizon:,}"),
        ("baseline", found.baseline),
        ("seed", str(one.seed)),
        *origin(),
    ]
