"""How good is a policy? What it costs at most, what no policy can save, and how that is known.

With an upper limit U on the policy's cost and a lower bound L on the cost of every policy, at most
U - L is lost. The numbers come from `certify`, whose certificates print the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bellweight.common import lazy
from bellweight.display import Table, facts_table, facts_text, number_text
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.presentable import Pictures, Presentable


@dataclass(frozen=True)
class Gap(Presentable):
    """What is known about the loss of a policy.

    `cost` is the most that the policy costs, `lower_bound` what no policy costs less than, None
    where no bound is known; `lower_bound_kind` is that of the bound alone. `kind` is `exact`,
    `estimated` (the cost or the bound is simulated, and both hold together with the one-sided
    `confidence`) or `unproven` (`cost` is then the mean of simulated episodes). `proof` says how
    the numbers are known, or why they prove nothing; `advice` what would narrow the gap.
    """

    cost: float
    lower_bound: float | None
    kind: str
    proof: str
    advice: str
    confidence: float | None = None
    lower_bound_kind: str = "exact"

    @property
    def is_proven(self) -> bool:
        """Whether `lost` holds: for certain, or with the confidence."""
        return self.kind != "unproven"

    @property
    def lost(self) -> float | None:
        """The most that is lost against the best policy; None where nothing is proven."""
        if not self.is_proven or self.lower_bound is None:
            return None
        return max(0.0, self.cost - self.lower_bound)

    @property
    def relative(self) -> float | None:
        """The most that is lost as a share of the policy's cost."""
        return None if self.lost is None or self.cost == 0.0 else self.lost / abs(self.cost)

    @property
    def sentence(self) -> str:
        """The gap in one sentence."""
        low = self.lower_bound
        least = "" if low is None else f"no policy costs less than {number_text(low)}"
        if self.lost is None:
            about = f"this policy costs about {number_text(self.cost)}"
            return f"{about}{least and ', '}{least}: nothing is proven about the loss"
        lost = number_text(self.lost)
        if self.relative is not None:
            lost = f"{100.0 * self.relative:.3g} % ({lost})"
        most = number_text(self.cost)
        return f"this policy costs at most {most}, {least}, so at most {lost} is lost"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Tell the gap, how it is proven and what would narrow it: names and texts."""
        yield "gap", self.sentence
        sure = "" if self.confidence is None else f" with {100.0 * self.confidence:g} % confidence"
        yield "proof", f"{self.kind}{sure}: {self.proof}"
        yield "tighter by", self.advice

    def table(self) -> Table:
        """Return the gap, its proof and what would narrow it, one to a row."""
        return facts_table("How good is the policy?", self.facts())

    def pictures(self) -> Pictures:
        """Return between which numbers the optimal cost lies."""
        return {"gap": lambda: (gap_chart([Between("policy", self.cost, low=self.lower_bound)]),)}

    def __str__(self) -> str:
        return facts_text("", self.facts())


Prover = Callable[..., Gap]
_PROVERS: list[Prover] = []


def proves(prover: Prover) -> Prover:
    """Register the function that finds gaps; proofs are made in a room that imports this one."""
    _PROVERS[:] = [prover]
    return prover


def gap_of(model: Any, result: Any, policy: Any, **settings: Any) -> Gap:
    """Return the gap of a policy, found by the registered function."""
    if not _PROVERS:
        lazy.load_all()  # `certificates`, which registers it, may not be imported yet
    return _PROVERS[0](model, result, policy, **settings)
