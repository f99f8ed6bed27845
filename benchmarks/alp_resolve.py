"""A solve after a small change of weights should need at most two passes over the rows.

A change is *small* when the weights move by at most 0.02 in the 1-norm and stay in the same region:
the range of states that carries all but 0.1 % of what is mixed in reaches at most 100 states (0.2 %
of the queue) beyond the same range of the old weights. A thousandth of mass that lands far away is
no small change for a cubic basis: its third moment may be a million times the old one.

Three lines. `mixed`: the weights of each initial distribution mixed with 1 % of another one, the
most passes of the warm re-solve against the most of a cold solve. `iterations`: the most passes of
any iteration of PIA and DIA that follows a change of at most 0.02, whatever the region, against the
most of a first iteration. `time`: a warm re-solve against a cold solve, over all the small mixtures
together. Larger changes are reported below the lines; they are no part of the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from measure import Line, seconds

import bellweight as bw
from bellweight.exact.occupancy import exact_occupancy
from bellweight.problems.single_queue import geometric
from bellweight.program import AlpProgram, Solution, TabularRows

TITLE = "Solving again after a change of weights"
FIGURES = {
    "alp_resolve.mixed": "most passes over the rows after a small change, against the first solve",
    "alp_resolve.time": "time after a small change, against the first solve",
    "alp_resolve.iterations": "most passes within PIA and DIA after one, against the first solve",
}

INITIALS = ("geometric", "empty", "reverse")
DECAYS = (0.85, 0.89, 0.91, 0.95, 0.99, 0.999)
SHARE = 0.01
SMALL_CHANGE = 0.02
REACH = 100
MOST_PASSES = 2
REPEATS = 5


@dataclass(frozen=True)
class Mixture:
    """Passes and seconds, cold and warm, before and after mixing in another distribution."""

    name: str
    small: bool
    cold_passes: int
    warm_passes: int
    cold_seconds: float
    warm_seconds: float
    status: bw.Status


def run() -> list[Line]:
    """Return the lines of both experiments."""
    models = {initial: bw.problems.single_queue(initial=initial) for initial in INITIALS}
    mixtures = [mixture for name, model in models.items() for mixture in mixed(name, model)]
    return [*mixture_lines(mixtures), iteration_line(models)]


def mixture_lines(mixtures: list[Mixture]) -> list[Line]:
    """Judge the small changes and report the others."""
    small = [mixture for mixture in mixtures if mixture.small]
    large = [mixture for mixture in mixtures if not mixture.small]
    warm = max(mixture.warm_passes for mixture in small)
    cold = max(mixture.cold_passes for mixture in small)
    bad = [mixture.name for mixture in small if mixture.status is not bw.Status.OPTIMAL]
    warm_seconds = sum(mixture.warm_seconds for mixture in small)
    cold_seconds = sum(mixture.cold_seconds for mixture in small)
    return [
        Line(
            "alp_resolve.mixed",
            warm,
            "passes",
            peer=cold,
            ratio=cold / warm,
            target=MOST_PASSES,
            limit=True,
            notes=(f"{len(small)} small changes; {summary(large)}",),
            wrong=f"not optimal: {', '.join(bad)}" if bad else "",
        ),
        Line(
            "alp_resolve.time",
            1e3 * warm_seconds / len(small),
            "ms",
            peer=1e3 * cold_seconds / len(small),
            ratio=cold_seconds / warm_seconds,
            target=1.0,
        ),
    ]


def summary(large: list[Mixture]) -> str:
    """Say how the changes that are not small went."""
    worst = max(large, key=lambda mixture: mixture.warm_passes)
    bad = [
        f"{mixture.name} is {mixture.status.name}"
        for mixture in large
        if mixture.status is not bw.Status.OPTIMAL
    ]
    fewest = min(mixture.warm_passes for mixture in large)
    text = f"{len(large)} larger ones took {fewest} to {worst.warm_passes} passes ({worst.name})"
    return "; ".join([text, *bad])


def mixed(initial: str, model: bw.TabularModel) -> list[Mixture]:
    """Mix each of the other distributions into the initial one."""
    rows = bw.program.AllRows().on(model, bw.Polynomial(3))
    before = model.initial
    found = []
    for name, other in others(model).items():
        after = (1.0 - SHARE) * before + SHARE * other
        small = float(np.abs(after - before).sum()) <= SMALL_CHANGE and same_region(before, other)
        trials = [cold_then_warm(rows, before, after) for _ in range(REPEATS)]
        cold_times, colds, warm_times, warms = zip(*trials, strict=True)
        found.append(
            Mixture(
                f"{initial} + {name}",
                small,
                colds[-1].passes,
                warms[-1].passes,
                min(cold_times),
                min(warm_times),
                warms[-1].status,
            )
        )
    return found


def cold_then_warm(
    rows: TabularRows, before: np.ndarray, after: np.ndarray
) -> tuple[float, Solution, float, Solution]:
    """Solve from nothing for some weights, then again for others; seconds and answers."""

    def cold_solve() -> tuple[AlpProgram, Solution]:
        program = AlpProgram(rows, before)
        return program, program.solve(rows.moments(before), before)

    cold_time, (program, cold) = seconds(cold_solve)
    warm_time, warm = seconds(partial(program.solve, rows.moments(after), after))
    return cold_time, cold, warm_time, warm


def others(model: bw.TabularModel) -> dict[str, np.ndarray]:
    """Return distributions to mix in: near ones, far ones, occupancies."""
    n_states = model.n_states
    found = {f"decay {decay}": geometric(n_states, decay) for decay in DECAYS}
    found |= {f"reverse {decay}": geometric(n_states, decay)[::-1] for decay in DECAYS}
    found["uniform"] = np.full(n_states, 1.0 / n_states)
    found["random policy"] = exact_occupancy(model, bw.Uniform()).weights
    found["optimal policy"] = exact_occupancy(model, bw.exact.optimal(model).policy).weights
    return found


def same_region(before: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the other distribution reaches at most REACH states beyond the first."""
    (low, high), (other_low, other_high) = span(before), span(other)
    return other_low >= low - REACH and other_high <= high + REACH


def span(weights: np.ndarray) -> tuple[int, int]:
    """Return the first and last state after cutting 0.05 % of the mass at either end."""
    low, high = np.searchsorted(np.cumsum(weights), [0.0005, 0.9995])
    return int(low), int(high)


def iteration_line(models: dict[str, bw.TabularModel]) -> Line:
    """Run PIA and DIA from every initial distribution and look at each later iteration."""
    first, small, large = [], [], []
    for initial, model in models.items():
        methods = {"PIA": bw.PIA(), "DIA(random)": bw.DIA(target=bw.Uniform())}
        for decay in (0.9, 0.999):
            target = bw.Fixed(geometric(model.n_states, decay))
            methods[f"DIA({decay})"] = bw.DIA(target=target)
        for name, method in methods.items():
            history = bw.solve(model, bw.Polynomial(3), method).history
            first.append(history[0].passes)
            for before, after in pairwise(history):
                # With step size one the next weights are the occupancy, so this is the change.
                if before.one_norm <= SMALL_CHANGE:
                    small.append(after.passes)
                else:
                    large.append((after.passes, f"{initial} {name}", before.one_norm))
    passes, run_name, change = max(large)
    return Line(
        "alp_resolve.iterations",
        max(small),
        "passes",
        peer=max(first),
        ratio=max(first) / max(small),
        target=MOST_PASSES,
        limit=True,
        notes=(
            f"{len(small)} small changes, {np.mean(small):.2f} passes on average; of {len(large)} "
            f"larger ones the worst took {passes} ({run_name}, change {change:.2g})",
        ),
    )
