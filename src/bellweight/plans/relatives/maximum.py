"""The pointwise maximum of several value functions, one for each way to choose the weights.

Every feasible value function lies below the optimal one, so does the largest of them,

    V(x) = max_j Phi(x) r_j,

and it is feasible itself: V_j <= T V_j <= T V for every j. The policy is the greedy one of V.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from bellweight.backends import Estimate, Point, Setup, backend_of
from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError
from bellweight.display import Column, Table, number_text
from bellweight.display.charts import Picture
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.presentable import Pictures
from bellweight.models import Model
from bellweight.policies import Greedy
from bellweight.results.base import PlanResult
from bellweight.results.judgement import notes_of
from bellweight.results.result import Result
from bellweight.solve import looped
from bellweight.weights.loop import Method, check_method
from bellweight.weights.plan import Plan, SolveSettings


@files.storable("PointwiseMaximumResult")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PointwiseMaximumResult(PlanResult):
    """The largest of several value functions, its greedy policy, and the members it is made of.

    `coef` (J, K) has a row for each member. `lower_bound` is the value of the initial distribution
    under the largest function, each member repaired so that every row is proven to hold, so
    it is at least that of every member. `cost` is the greedy policy's, and `member_costs` are those
    of the members' policies: exact on tabular models; on event models, which have no bound,
    simulated on the same random numbers.
    """

    members: tuple[Result, ...]
    member_costs: tuple[Estimate, ...]
    coef: FloatArray
    policy: Greedy
    lower_bound: float | None
    cost: Estimate
    seconds: float

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self.members[0].model_name

    @property
    def model_digest(self) -> str:
        """The fingerprint of the model."""
        return self.members[0].model_digest

    def on(self, model: Model) -> Self:
        members = tuple(member.on(model) for member in self.members)
        return replace(self, members=members, policy=replace(self.policy, model=model))

    def stored_fault(self) -> str:
        rows = len(self.members) == len(self.member_costs) == len(self.coef) > 0
        return "" if rows else "members, their costs and coefficients do not match"

    def values(self, states: FloatArray) -> FloatArray:
        """Return the largest value (n,) of each state (n, d)."""
        features = self.policy.basis(states)
        return np.asarray(np.max([features @ row for row in self.coef], axis=0))

    def table(self) -> Table:
        """Return one row for each member, and one for the maximum."""
        rows = [
            {
                "name": _name(j, member),
                "lower_bound": member.lower_bound,
                "cost": cost.mean,
                "half_width": cost.half_width,
                "status": member.status.name,
            }
            for j, (member, cost) in enumerate(zip(self.members, self.member_costs, strict=True))
        ]
        whole = {"name": "maximum", "lower_bound": self.lower_bound, "cost": self.cost.mean}
        known = self.members[0].lower_bound is not None
        hidden = "half_width" if known else "lower_bound"
        return Table(
            title=f"Pointwise maximum on {self.members[0].model_name}",
            columns=tuple(column for column in _COLUMNS if column.key != hidden),
            rows=(*rows, {**whole, "half_width": self.cost.half_width}),
            notes=notes_of(self.judgement),
        )

    def pictures(self) -> Pictures:
        """Return the pictures by name."""
        return {"gap": self._gap}

    def _gap(self) -> tuple[Picture, ...]:
        return (
            gap_chart(
                [
                    Between(row["name"], row["cost"], row["half_width"], row["lower_bound"])
                    for row in self.table().rows
                ]
            ),
        )


@files.storable("PointwiseMaximum")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PointwiseMaximum(Plan[PointwiseMaximumResult]):
    """Solve once for each method, on the same rows, and take the largest value in every state."""

    methods: Sequence[Method]

    def __post_init__(self) -> None:
        if not isinstance(self.methods, Sequence) or len(self.methods) == 0:
            raise ArgumentError(
                f"methods is {self.methods!r}, expected a list such as [DIA(), Fixed('uniform')]"
            )
        for j, method in enumerate(self.methods):
            check_method(method, f"methods[{j}]")
        object.__setattr__(self, "methods", tuple(self.methods))

    def run(self, settings: SolveSettings) -> PointwiseMaximumResult:
        """Solve for every method; return the maximum with its members."""
        began = time.perf_counter()
        setup = _setup(settings)
        members = tuple(looped(setup, method, settings).result() for method in self.methods)
        coef = np.array([member.coef for member in members])
        coef.setflags(write=False)
        # The members' duals belong to other programs, so ties go to the lowest action.
        policy = setup.greedy(coef)
        return PointwiseMaximumResult(
            members=members,
            member_costs=tuple(setup.cost(member.policy) for member in members),
            coef=coef,
            policy=policy,
            lower_bound=setup.lower_bound(
                [(one.coef, Point(one.moments, one.weights)) for one in members]
            ),
            cost=setup.cost(policy),
            seconds=time.perf_counter() - began,
            warnings=tuple(dict.fromkeys(note for one in members for note in one.warnings)),
        )


def _setup(settings: SolveSettings) -> Setup:
    if not backend_of(settings.model).lists_rows:
        raise ArgumentError(
            "PointwiseMaximum got a linear model, expected a tabular or an event model: the greedy "
            "action of a maximum is no integer program there; to_tabular() lists small models"
        )
    return settings.setup()


def _name(number: int, member: Result) -> str:
    return f"{number + 1} {member.method_name}"


_COLUMNS = (
    Column("name", "value function", right=False),
    Column("lower_bound", "lower bound", number_text),
    Column("cost", "cost", number_text),
    Column("half_width", "±", number_text),
    Column("status", "status", right=False),
)
