"""The convergence figure of the paper: how far the moments still move, iteration by iteration.

On one sample of constraint states of the eight-dimensional network, the 1-norm of the difference
between successive moments, for PIA and DIA. The usual stopping rule would end DIA after two
iterations, so the runs go on for a fixed number, or until the moments stand still to the last bit:
every iteration uses the same random numbers, hence the next difference is then zero exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.common.status import Status
from bellweight.display import Column, Table
from bellweight.report.document import plain
from bellweight.reproduce import verdicts
from bellweight.reproduce.artefact import Artefact, Reproduction, Settings, Tell
from bellweight.reproduce.network.runs import Runner, Table2Settings, methods
from bellweight.reproduce.paper import TABLE2_HORIZON, TABLE2_STATES
from bellweight.reproduce.tables import STATED, long_table, statement_table
from bellweight.reproduce.times import COMPILING, Time
from bellweight.reproduce.verdicts import Compared
from bellweight.weights.loop import HistoryEntry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = ("PIA", "DIA (Random)", "DIA (0.9)")


@dataclass(frozen=True)
class FigureSettings(Settings):
    """`episodes` are those of an occupancy estimate; the rest as it says."""

    episodes: int = 4_000
    states: int = TABLE2_STATES
    iterations: int = 15


@dataclass(frozen=True)
class Curve:
    """One run: `differences[m - 1]` is the 1-norm between moments m and m - 1.

    `noise` is the 1-norm of the standard errors of the last moments.
    """

    method: str
    differences: tuple[float, ...]
    noise: float
    status: Status
    seconds: float

    @property
    def stands_still(self) -> int | None:
        """The first iteration whose difference is exactly zero."""
        return self.differences.index(0.0) + 1 if 0.0 in self.differences else None


@dataclass(frozen=True)
class ConvergenceFigure(Reproduction):
    """The curves that are finished."""

    curves: tuple[Curve, ...]
    settings: FigureSettings = field(kw_only=True)

    @property
    def complete(self) -> bool:
        """Whether every curve is there."""
        return len(self.curves) == len(CURVES)

    @property
    def caption(self) -> str:
        return (
            "The eight-dimensional network: 1-norm of successive differences of the moments on one "
            f"sample of {self.settings.states:,} constraint states, occupancies from "
            f"{self.settings.episodes:,} episodes of {TABLE2_HORIZON:,} steps, the same random "
            "numbers in every iteration. The dotted line is the 1-norm of the standard errors of "
            "the moments. A difference of exactly zero, which a log axis cannot hold, is an open "
            "marker on the line at the bottom."
        )

    def document(self) -> dict[str, Any]:
        return {
            "horizon": TABLE2_HORIZON,
            "notes": [_sentence(curve) for curve in self.curves],
            "curves": plain(self.curves),
        }

    def tables(self) -> tuple[Table, ...]:
        """Return the differences by iteration, one column for each method."""
        longest = max((len(curve.differences) for curve in self.curves), default=0)
        rows = [
            {"iteration": m, **{c.method: _entry(c, m) for c in self.curves}}
            for m in range(1, longest + 1)
        ]
        columns = [Column(c.method, c.method, lambda value: f"{value:.4g}") for c in self.curves]
        notes = (*map(_sentence, self.curves), self.caption)
        title = "Successive differences of the moments (1-norm)"
        shown = Table(title, (Column("iteration", "iteration"), *columns), tuple(rows), notes)
        return statement_table(self.compared()), shown

    def rows(self) -> Table:
        rows = [
            {"method": c.method, "iteration": m, "difference": d, "noise": c.noise}
            for c in self.curves
            for m, d in enumerate(c.differences, 1)
        ]
        return long_table("Convergence", rows)

    def compared(self) -> tuple[Compared, ...]:
        return tuple(_compared(curve) for curve in self.curves)

    def times(self) -> tuple[Time, ...]:
        """Return the time of each curve."""
        return tuple(
            Time(f"{c.method}, {len(c.differences)} iterations", c.seconds) for c in self.curves
        )

    def figure(self) -> Figure:
        from bellweight.display.figures import convergence_figure

        noise = float(np.mean([c.noise for c in self.curves])) if self.curves else None
        return convergence_figure({c.method: c.differences for c in self.curves}, noise=noise)


def steps(settings: FigureSettings, tell: Tell) -> Iterator[ConvergenceFigure]:
    """Compute the curves one by one."""
    tell(COMPILING, 0.0)
    runner = Runner(
        Table2Settings(
            states=(settings.states,),
            samples=1,
            occupancy_episodes=settings.episodes,
            max_iterations=settings.iterations,
            seed=settings.seed,
            jobs=settings.jobs,
        )
    )
    found = ConvergenceFigure((), settings=settings)
    for place, name in enumerate(CURVES):
        found = replace(found, curves=(*found.curves, _curve(runner, name, tell, place)))
        yield found


ARTEFACTS = (
    Artefact(
        "figure-convergence",
        steps,
        full=FigureSettings(),
        quick=FigureSettings(episodes=500, iterations=8),
        takes=("episodes", "states", "quick"),
    ),
)


def _curve(runner: Runner, name: str, tell: Tell, place: int) -> Curve:
    most = runner.settings.max_iterations

    def watch(record: HistoryEntry) -> None:
        done = min(record.iteration + 1, most) / most
        tell(f"{name}: iteration {record.iteration + 1}", (place + done) / len(CURVES))

    result = runner.solve(1, runner.settings.states[0], methods()[name], watch, to_the_end=True)
    steps = [entry.moment_step for entry in result.history[1:]]
    # With step size 1 the gap of the last iterate is the difference that would come next.
    steps.append(result.history[-1].one_norm)
    error = result.moments_error
    return Curve(
        method=name,
        differences=tuple(float(step) for step in steps if step is not None),
        noise=0.0 if error is None else float(np.abs(error).sum()),
        status=result.status,
        seconds=result.seconds,
    )


def _compared(curve: Curve) -> Compared:
    """Judge the paper's words: PIA oscillates, DIA moves steadily to a fixed point."""
    steps = curve.differences
    rises = sum(later > earlier for earlier, later in pairwise(steps))
    ends = "stands still" if steps[-1] == 0.0 else f"still moves by {steps[-1]:.3g}"
    ours = f"{rises} rises in {len(steps)} differences, at the end it {ends}"
    if curve.method == "PIA":
        holds = rises > 0 and steps[-1] > curve.noise
        reason = f"the differences fall steadily, to {steps[-1]:.3g}"
        return Compared("PIA oscillates", ours, STATED, verdicts.statement(holds, reason))
    holds = rises == 0 and steps[-1] <= curve.noise
    reason = f"its differences rise {rises} times and end at {steps[-1]:.3g}"
    what = f"{curve.method} moves steadily to a fixed point"
    return Compared(what, ours, STATED, verdicts.statement(holds, reason))


def _entry(curve: Curve, iteration: int) -> float | None:
    known = iteration <= len(curve.differences)
    return curve.differences[iteration - 1] if known else None


def _sentence(curve: Curve) -> str:
    still = curve.stands_still
    if still is not None:
        return f"{curve.method} stands still to the last bit from iteration {still} on."
    last = curve.differences[-1]
    times = f"{last / curve.noise:.2g} times" if curve.noise > 0.0 else "without"
    return (
        f"{curve.method} still moves by {last:.3g} after {len(curve.differences)} iterations, "
        f"{times} the noise of simulation ({curve.status.name})."
    )
