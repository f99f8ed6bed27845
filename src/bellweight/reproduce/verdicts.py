"""Does our number agree with the paper's, and if not, why?

A reason is given only when the numbers at hand bear it out.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellweight.reproduce.paper import Printed

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
