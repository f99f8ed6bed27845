"""What a portfolio of candidates led to: who won the race, and what the winner costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from bellweight.backends import Estimate
from bellweight.common import files
from bellweight.display import Column, Table, interval_text, to_text
from bellweight.display.charts import Picture
from bellweight.display.cost_charts import difference_chart
from bellweight.display.presentable import Pictures
from bellweight.evaluation.evaluate import Evaluation
from bellweight.evaluation.race import Race, RankedPolicy
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.results.base import BaseResult
from bellweight.results.result import Result


@files.storable("League")
@dataclass(frozen=True, eq=False, repr=False)
class RaceResult(BaseResult, files.Changed):
    """The policy that won, its cost without selection bias, and how all candidates did.

    `cost` is that of `evaluation`, on random numbers that had no part in the choice, or exact
    (`evaluation` None) on tabular models. A policy that the user brought wins unless another is
    clearly better. `races` holds one race for each round of constraint states, the last one
    decides. `result` is the solve behind the winner, None where a policy was brought, a plan or an
    iterate on the way won. `failed` tells why candidates have no policy, `notes` what else was left
    out.
    """

    winner: str
    policy: Policy
    cost: Estimate
    evaluation: Evaluation | None
    races: tuple[Race, ...]
    result: Result | None
    failed: Mapping[str, str]
    notes: tuple[str, ...]
    seconds: float
    model_name: str
    model_digest: str

    def stored_fault(self) -> str:
        held = len(self.races) > 0 and all(race.standings for race in self.races)
        return "" if held else "a race has no standings"

    @property
    def standings(self) -> tuple[RankedPolicy, ...]:
        """Every policy with its last standing: those of the deciding race first."""
        known: dict[str, RankedPolicy] = {}
        for race in reversed(self.races):
            for standing in race.standings:
                known.setdefault(standing.name, standing)
        return tuple(known.values())

    @classmethod
    def from_format_1(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """Put cost and half-width together."""
        width = stored.pop("half_width")
        return {**stored, "cost": Estimate(stored["cost"], width)}

    def on(self, model: Model) -> Self:
        result = None if self.result is None else self.result.on(model)
        return replace(self, policy=self.policy.on(model), result=result)

    def table(self) -> Table:
        """Return one row for each policy: what it cost in its last race, and how it ended."""
        rows = tuple(
            self._row(standing, number, race)
            for number, race in reversed(list(enumerate(self.races)))
            for standing in race.standings
            if self._last_race(standing.name) == number
        )
        useless = {"race"} if len(self.races) == 1 else set()
        if not any(row["episodes"] for row in rows):
            useless.add("episodes")
        columns = tuple(replace(c, show=None) if c.key in useless else c for c in _COLUMNS)
        return Table(f"Race of policies for {self.model_name}", columns, rows, self._remarks())

    def pictures(self) -> Pictures:
        """Return how far behind the winner the policies of the deciding race are."""
        return {"race": self._chart}

    def short_table(self) -> Table:
        """Return the head of the table."""
        told = self.table()
        more = len(told.rows) - _SHOWN
        if more <= 0:
            return told
        rest = f"Policies further down, in the whole table: {more}."
        return replace(told, rows=told.rows[:_SHOWN], notes=(*told.notes, rest))

    def __str__(self) -> str:
        return to_text(self.short_table()).rstrip()

    def _last_race(self, name: str) -> int:
        return max(n for n, race in enumerate(self.races) if name in _names(race))

    def _row(self, standing: RankedPolicy, number: int, race: Race) -> dict[str, Any]:
        won = number == len(self.races) - 1 and standing.name == self.winner
        leads = standing.name == race.winner
        exact = standing.episodes == 0
        ended = "dropped" if standing.dropped else "not told apart"
        pair = standing.mean, standing.half_width
        behind = standing.behind
        return {
            "policy": standing.name,
            "race": number + 1,
            "mean": standing.mean,
            "half_width": standing.half_width,
            "cost": interval_text(*pair),
            "difference": behind.mean,
            "difference_half_width": behind.half_width,
            "behind": "" if leads else _more(behind.mean, standing.mean) if exact else str(behind),
            "episodes": standing.episodes,
            "ended": "won" if won else "behind" if exact else ended,
            "alike": ", ".join(standing.alike),
        }

    def _remarks(self) -> tuple[str, ...]:
        deciding = self.races[-1]
        if self.evaluation is None:
            judged = f"{self.winner} costs {self.cost}, exactly."
        else:
            judged = f"{self.winner} costs {self.evaluation} on fresh random numbers."
        sure = (
            f"The race of {deciding.episodes:,} episodes drops the best policy with a chance of "
            f"about {100.0 * (1.0 - deciding.confidence):.2g} % at most; its own costs favour the "
            "winner."
        )
        n_alike = sum(len(standing.alike) for standing in self.standings)
        alike = [f"Policies that act like others, counted once: {n_alike}."] if n_alike else []
        names = " ".join(standing.name for standing in self.standings)
        legend = [text for word, text in _MEANINGS.items() if word in names]
        failed = [f"{name} has no policy: {why}" for name, why in self.failed.items()]
        return (
            f"Winner: {judged}",
            *((sure,) if self.evaluation is not None else ()),
            *alike,
            *failed,
            *self.notes,
            *legend,
        )

    def _chart(self) -> tuple[Picture, ...]:
        race = self.races[-1]
        gaps = {s.name: (s.behind.mean, s.behind.half_width) for s in race.standings}
        title = f"Cost minus that of {race.winner}, in the deciding race"
        least = _LITTLE * abs(self.cost.mean)
        return (difference_chart("race", title, race.winner, gaps, "behind the cheapest", least),)


def _more(behind: float, cost: float) -> str:
    """Return by how much of the winner's cost an exact cost is higher."""
    winner = cost - behind
    share = 100.0 * behind / abs(winner) if winner else 0.0
    if 0.0 < share < _UNSEEN:
        return f"less than {_UNSEEN:g} %"
    return f"{share:+.2g} %" if winner else f"{behind:+.3g}"


def _names(race: Race) -> set[str]:
    return {standing.name for standing in race.standings}


_MEANINGS = {
    "Fixed": "Fixed: the weights are the initial distribution.",
    "FromPolicy": "FromPolicy: the weights are where acting at random (or the leader) leads.",
    "PIA": "PIA (primal iterative algorithm): the weights are where its own greedy policy leads.",
    "DIA": "DIA (dual iterative algorithm): the weights are where the dual's policy leads; where "
    "the dual has no mass that policy is its target, acting at random unless another is named.",
    "smoothed": "smoothed by: the regularisation of the program, which spreads the dual.",
}
_SHOWN = 12  # rows of the printed table
_UNSEEN = 0.001  # per cent of a cost: a difference that nobody needs in digits
_LITTLE = 0.01  # of the cost: smaller differences do not set the scale of a chart

_COLUMNS = (
    Column("policy", "policy", right=False),
    Column("race", "race"),
    Column("mean", "", None),
    Column("half_width", "", None),
    Column("cost", "cost"),
    Column("difference", "", None),
    Column("difference_half_width", "", None),
    Column("behind", "more than the winner"),
    Column("episodes", "episodes", "{:,}".format),
    Column("ended", "ended", right=False),
    Column("alike", "", None),
)
