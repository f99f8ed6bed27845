"""Does our number agree with the paper's, and if not, why?

A reason is given only when the numbers at hand bear it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bellweight.reproduce.paper import TABLE2, Printed

_OFFSET = (5.0, 7.0)
_SLIGHTLY = 2e-5
_BARELY = 2e-6
_ADAPTIVE = ("PIA", "DIA (Random)", "DIA (0.9)", "Random")


@dataclass(frozen=True)
class Verdict:
    """Whether a number matches the paper's, the difference (paper minus ours), and the reason."""

    matches: bool
    difference: float
    relative: float
    reason: str = ""

    @property
    def word(self) -> str:
        """`matches` or `differs`."""
        return "matches" if self.matches else "differs"


def table1(initial: str, policy: str, cost: float, printed: Printed, constant: float) -> Verdict:
    """Return the verdict on a number of Table 1; `constant` is the cost of the constant rate."""
    difference = printed.mean - cost
    inside = abs(difference) <= printed.half_width
    reason = "" if inside else _table1_reason(initial, policy, cost, printed, constant)
    return Verdict(inside, difference, abs(difference) / abs(cost), reason)


def _table1_reason(
    initial: str, policy: str, cost: float, printed: Printed, constant: float
) -> str:
    if initial == "geometric" and _OFFSET[0] < printed.mean - cost < _OFFSET[1]:
        return (
            "the paper's whole column lies about 6 above the exact costs, outside its own "
            "intervals; the offset is common to all rows and its cause is not known"
        )
    is_constant = abs(printed.mean - constant) <= printed.half_width
    is_near = constant < cost < constant * (1.0 + _SLIGHTLY)
    if initial == "reverse" and policy in _ADAPTIVE and is_constant and is_near:
        return (
            "the paper's number is the cost of serving at rate 0.6 in every state; the program's "
            f"true optimum is another policy, dearer by less than {_SLIGHTLY:g} of the cost"
        )
    if abs(printed.mean - cost) <= _BARELY * abs(cost):
        return (
            f"outside the paper's interval, though by less than {_BARELY:g} of the cost; no reason "
            "is known"
        )
    return "outside the paper's interval; no reason is known"


@dataclass(frozen=True)
class Judgement:
    """A verdict in a word, the difference (paper minus ours), and the reason where one is known."""

    word: str
    difference: float
    reason: str = ""


TABLE2_EPISODES = 400_000
"""Blocks of 40,000 episodes differ by about 50 in cost; fewer than this compare nothing."""

TOO_FEW = "too few episodes"


def table2(
    cost: float,
    half_width: float,
    printed: Printed,
    episodes: int,
    *,
    samples: int,
    lowest: float,
    highest: float,
    between_samples: float,
    between_methods: float,
) -> Judgement:
    """Return the verdict on a cost of Table 2, a mean over samples of constraint states.

    `half_width` is the error of simulation, `episodes` counts those of all samples. The paper has
    one sample: `lowest` and `highest` are our single samples' costs, and the last two numbers say
    how far samples, and the means of methods, lie apart when paired.
    """
    difference = printed.mean - cost
    if episodes < TABLE2_EPISODES:
        return Judgement(TOO_FEW, difference)
    if abs(difference) <= math.hypot(half_width, printed.half_width):
        return Judgement("matches", difference)
    word = "better" if difference > 0.0 else "differs"
    if samples < 2 or between_samples <= between_methods:
        return Judgement(word, difference, "outside both intervals; no reason is known")
    margin = math.hypot(half_width * math.sqrt(samples), printed.half_width)
    inside = lowest - margin <= printed.mean <= highest + margin
    place = "within it" if inside else "outside it, for no known reason"
    reason = (
        "the constraint sample moves this cost (see the range) more than the choice of weights "
        f"does (the methods' means lie {between_methods:,.0f} apart); the paper's one sample is "
        f"{place}"
    )
    return Judgement(word, difference, reason)


def table2_baseline(cost: float, half_width: float, episodes: int) -> Judgement:
    """Return how a baseline, which the paper lacks, stands to the paper's best row."""
    best = min(TABLE2.values(), key=lambda printed: printed.mean)
    difference = best.mean - cost
    if episodes < TABLE2_EPISODES:
        return Judgement(TOO_FEW, difference)
    if abs(difference) <= math.hypot(half_width, best.half_width):
        return Judgement("near the paper's best", difference)
    where = "below" if difference > 0.0 else "above"
    return Judgement(f"{where} the paper's best", difference)


def clinic(
    cost: float,
    half_width: float,
    printed: Printed,
    is_constant: bool,
    constant_phases: Sequence[tuple[float, float]],
) -> Judgement:
    """Return the verdict on a cost of Table 3 or 4.

    `is_constant` says that ties decide the policy; `constant_phases` are costs, with half-widths,
    of those phases of a cycle that ties decide.
    """
    difference = printed.mean - cost
    if abs(difference) <= half_width + printed.half_width:
        return Judgement("matches", difference)
    if is_constant:
        return Judgement(
            "ties decide",
            difference,
            "the value function is the same in every state, so the policy and its cost are those "
            "of the tie rule; the paper's rule is not known (see the range over tie rules)",
        )
    near = [phase for phase, _ in constant_phases if 0.5 < phase / printed.mean < 2.0]
    if near:
        return Judgement(
            "other phase",
            difference,
            "the weights cycle; the paper's cost is of the size of the phase with a constant value "
            f"function, which ties decide and which costs {near[0]:,.0f} here",
        )
    return Judgement("differs", difference, "outside both intervals; no reason is known")


def table5(cost: float, optimum: float, printed: Printed) -> Judgement:
    """Return the verdict on a cost of Table 5; `cost` and `optimum` are exact."""
    difference = printed.mean - cost
    if abs(difference) <= printed.half_width:
        return Judgement("matches", difference)
    return Judgement(
        "not reproduced",
        difference,
        "the paper's costs were not obtained under some forty readings of its text; what it does "
        f"not say about the model is not known (the optimum here is {optimum:,.2f})",
    )
