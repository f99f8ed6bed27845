"""Does our number agree with the paper's, and if not, why?

Every number of the paper gets one of four words. Wherever the word is not `matches` there is a
reason, given only if the numbers support it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bellweight.reproduce.paper import ADAPTIVE, CENT, TABLE2, Printed

_OFFSET = (5.0, 7.0)
_SLIGHTLY = 2e-5
_BARELY = 2e-6
_UNKNOWN = "outside both intervals; no reason is known"


class Word(StrEnum):
    """What can be said of a number; the last one is for quick runs only."""

    MATCHES = "matches"
    BETTER = "better"
    DIFFERS = "differs"
    NOT_REPRODUCED = "not reproduced"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Verdict:
    """A word on a number, the difference (paper minus ours) where there is one, and the reason."""

    word: Word
    difference: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        assert bool(self.reason) == (self.word is not Word.MATCHES), "a reason, unless it matches"


@dataclass(frozen=True)
class Compared:
    """A number or a statement of the paper, ours beside it, and the verdict."""

    what: str
    ours: str
    paper: str
    verdict: Verdict


class Estimate(Protocol):
    """A mean with its 95 % half-width."""

    @property
    def mean(self) -> float:
        """The mean."""

    @property
    def half_width(self) -> float:
        """Half the width of its interval."""


def interval(value: Estimate) -> str:
    """Return a mean with its half-width, as the paper prints them."""
    return f"{value.mean:,.2f} ± {value.half_width:,.2f}"


def count(words: Iterable[str]) -> dict[Word, int]:
    """Return how often each word was given."""
    found = Counter(words)
    return {word: found[word] for word in Word}


def reasons(verdicts: Iterable[Verdict | None]) -> list[str]:
    """Return every reason once, in order."""
    given = [verdict for verdict in verdicts if verdict is not None]
    return list(dict.fromkeys(verdict.reason for verdict in given if verdict.reason))


def marked(verdict: Verdict | None, reasons: Sequence[str]) -> str | None:
    """Return the word with the number of its reason, as in `differs [1]`."""
    if verdict is None:
        return None
    return (
        f"{verdict.word} [{reasons.index(verdict.reason) + 1}]" if verdict.reason else verdict.word
    )


def numbered(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons as notes below a table."""
    return tuple(f"[{place}] {text}." for place, text in enumerate(reasons, 1))


def statement(holds: bool, reason: str) -> Verdict:
    """Return the verdict on a statement of the paper's text; `reason` says why if it fails."""
    return Verdict(Word.MATCHES) if holds else Verdict(Word.DIFFERS, None, reason)


def table1(initial: str, policy: str, cost: float, printed: Printed, constant: float) -> Verdict:
    """Return the verdict on a number of Table 1; `constant` is the cost of the constant rate."""
    difference = printed.mean - cost
    if abs(difference) <= printed.half_width:
        return Verdict(Word.MATCHES, difference)
    reason = _table1_reason(initial, policy, cost, printed, constant)
    return Verdict(Word.DIFFERS, difference, reason)


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
    if initial == "reverse" and policy in (*ADAPTIVE, "Random") and is_constant and is_near:
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


TABLE2_EPISODES = 400_000
"""Blocks of 40,000 episodes differ by about 50 in cost; fewer than this compare nothing."""

TOO_FEW = f"too few episodes: {TABLE2_EPISODES:,} are needed to compare with the paper"


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
) -> Verdict:
    """Return the verdict on a cost of Table 2, a mean over samples of constraint states.

    `half_width` is the error of simulation, `episodes` counts those of all samples. The paper has
    one sample: `lowest` and `highest` are our single samples' costs, and the last two numbers say
    how far samples, and the means of methods, lie apart when paired.
    """
    difference = printed.mean - cost
    if episodes < TABLE2_EPISODES:
        return Verdict(Word.NOT_JUDGED, difference, TOO_FEW)
    if abs(difference) <= math.hypot(half_width, printed.half_width):
        return Verdict(Word.MATCHES, difference)
    word = Word.BETTER if difference > 0.0 else Word.DIFFERS
    if samples < 2 or between_samples <= between_methods:
        return Verdict(word, difference, _UNKNOWN)
    margin = math.hypot(half_width * math.sqrt(samples), printed.half_width)
    inside = lowest - margin <= printed.mean <= highest + margin
    place = "within it" if inside else "outside it, for no known reason"
    reason = (
        "the constraint sample moves this cost (see the range) more than the choice of weights "
        f"does (the methods' means lie {between_methods:,.0f} apart); the paper's one sample is "
        f"{place}"
    )
    return Verdict(word, difference, reason)


def table2_largest(printed: int, ours: Sequence[int]) -> Verdict:
    """Return the verdict on the largest queue or total of the paper's one sample of states."""
    difference = float(printed - sum(ours) / len(ours))
    if min(ours) <= printed <= max(ours):
        return Verdict(Word.MATCHES, difference)
    reason = "the largest of a random sample; the paper's sample is another one, outside our range"
    return Verdict(Word.DIFFERS, difference, reason)


def table2_baseline(cost: float, half_width: float, episodes: int) -> str:
    """Return how a baseline, which the paper lacks, stands to the paper's best row."""
    if episodes < TABLE2_EPISODES:
        return Word.NOT_JUDGED
    best = min(TABLE2.values(), key=lambda printed: printed.mean)
    difference = best.mean - cost
    if abs(difference) <= math.hypot(half_width, best.half_width):
        return "near the paper's best"
    return f"{'below' if difference > 0.0 else 'above'} the paper's best"


def clinic(
    cost: float,
    half_width: float,
    printed: Printed,
    is_constant: bool,
    constant_phases: Sequence[float],
) -> Verdict:
    """Return the verdict on a cost of Table 3 or 4.

    `is_constant` says that ties decide the policy; `constant_phases` are the costs of those
    phases of a cycle that ties decide.
    """
    difference = printed.mean - cost
    if abs(difference) <= half_width + printed.half_width:
        return Verdict(Word.MATCHES, difference)
    return Verdict(Word.DIFFERS, difference, _clinic_reason(printed, is_constant, constant_phases))


def _clinic_reason(printed: Printed, is_constant: bool, constant_phases: Sequence[float]) -> str:
    if is_constant:
        return (
            "ties decide: the value function is the same in every state, so the policy and its "
            "cost are those of the tie rule; the paper's rule is not known (see the range over tie "
            "rules)"
        )
    near = [cost for cost in constant_phases if 0.5 < cost / printed.mean < 2.0]
    if near:
        return (
            "other phase: the weights cycle; the paper's cost is of the size of the phase with a "
            f"constant value function, which ties decide and which costs {near[0]:,.0f} here"
        )
    return _UNKNOWN


def table5(cost: float, optimum: float, printed: Printed) -> Verdict:
    """Return the verdict on a cost of Table 5; `cost` and `optimum` are exact."""
    difference = printed.mean - cost
    if abs(difference) <= printed.half_width:
        return Verdict(Word.MATCHES, difference)
    reason = (
        "the paper's costs were not obtained under some forty readings of its text; what it does "
        f"not say about the model is not known (the optimum here is {optimum:,.2f})"
    )
    return Verdict(Word.NOT_REPRODUCED, difference, reason)


def table5_difference(ours: float, printed: float) -> Verdict:
    """Return the verdict on a difference of two costs of Table 5, exact here."""
    if abs(printed - ours) <= CENT:
        return Verdict(Word.MATCHES, printed - ours)
    reason = "the two costs behind it are not reproduced: the reason is theirs"
    return Verdict(Word.NOT_REPRODUCED, printed - ours, reason)
