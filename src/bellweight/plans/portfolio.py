"""What `Auto` tries: candidates of a user, the default portfolio, and what follows a leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.backends import Setup
from bellweight.common import checks
from bellweight.common.short import Short
from bellweight.common.status import ArgumentError
from bellweight.policies import Policy, Uniform
from bellweight.program import cost_unit
from bellweight.results.base import BaseResult
from bellweight.weights.loop import Method
from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy
from bellweight.weights.plan import Plan

_SHARES = (1e-4, 1e-3, 5e-3)  # of the scale of regularisations, see `default_regularisations`
_VISITED_SHARES = (3e-3, 3e-2, 3e-1)  # the same where the states that matter are known
SMOOTHED = ", smoothed by "
"""Stands in a candidate's name between its method and its regularisation."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidate(Short):
    """A method or plan to try, with a regularisation of its own."""

    method: Method | Plan[Any]
    regularisation: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method | Plan):
            raise ArgumentError(f"method is {self.method!r}, expected a method such as DIA()")
        checks.at_least_zero(self.regularisation, "regularisation")


def named(candidates: Any) -> dict[str, Any] | None:
    """Return candidates by name, checked; None stands for the default portfolio."""
    if candidates is None:
        return None
    if not isinstance(candidates, Mapping | Sequence) or isinstance(candidates, str):
        raise ArgumentError(
            f"candidates is {candidates!r}, expected a list, or names with their methods or "
            'policies: {"DIA": DIA(), "mine": my_policy}'
        )
    if not candidates:
        raise ArgumentError(
            "candidates is empty, expected at least one: leave it out for the default portfolio"
        )
    found: dict[str, Any] = {}
    if isinstance(candidates, Mapping):
        found = {str(name): thing for name, thing in candidates.items()}
    else:
        for thing in candidates:
            kind = _described(thing)
            number = sum(name.split(" #")[0] == kind for name in found)
            found[kind if number == 0 else f"{kind} #{number + 1}"] = thing
    for name, thing in found.items():
        if not isinstance(thing, Method | Plan | Candidate | Policy | BaseResult):
            raise ArgumentError(
                f"candidate {name!r} is {thing!r}, expected a method, plan, Candidate, policy or "
                "result"
            )
    return found


def checked_policies(policies: Any) -> dict[str, Policy | BaseResult]:
    """Return what the user brings, checked."""
    if policies is None:
        return {}
    if not isinstance(policies, Mapping):
        raise ArgumentError(f"brought is {policies!r}, expected names with their policies")
    for name, thing in policies.items():
        if not isinstance(thing, Policy | BaseResult):
            raise ArgumentError(f"brought {name!r} is {thing!r}, expected a policy or a result")
    return {str(name): thing for name, thing in policies.items()}


def default_regularisations(setup: Setup) -> tuple[float, ...]:
    """Return regularisations that suit the rows, from hardly any to plenty.

    A dual spread evenly over n states has 1 / ((1 - discount) n) in each; delta times that is the
    violation it allows, which is to be a small share of a typical cost. Where occupancies are exact
    n counts the states that acting at random visits (1 / sum of squared weights), and costs are
    those met there: a queue of 50,000 places of which five are used is a small problem.
    """
    rows = setup.listed_rows
    if rows is None:
        return ()
    n_states, cost = float(len(rows.pair_start) - 1), cost_unit(rows.pair_cost)
    visits = setup.occupancy(Uniform()).weights if setup.is_exact else None
    if visits is not None:
        sums = np.add.reduceat(np.abs(rows.pair_cost), rows.pair_start[:-1])
        cost = float(visits @ (sums / np.diff(rows.pair_start))) or cost
        n_states = 1.0 / float(visits @ visits)
    scale = cost * (1.0 - rows.discount) * n_states
    shares = _SHARES if visits is None else _VISITED_SHARES
    return tuple(float(f"{share * scale:.2g}") for share in shares)


def portfolio(deltas: Sequence[float]) -> dict[str, Candidate]:
    """Return the default candidates; only PIA, which takes longest, is not regularised.

    `FromPolicy` takes the occupancy of acting at random as weights: the paper's *Random*.
    """
    methods: dict[str, Method] = {
        "Fixed": Fixed("initial"),
        "FromPolicy": FromPolicy(Uniform()),
        "DIA": DIA(target=Uniform()),
        "DIA towards Fixed": DIA(target=Fixed("initial")),
    }
    return {**_regularised(methods, (0.0, *deltas)), "PIA": Candidate(PIA())}


def followers(leader: Policy, deltas: Sequence[float]) -> dict[str, Candidate]:
    """Return the methods that make use of a good policy's occupancy."""
    methods: dict[str, Method] = {
        "Fixed": Fixed("initial"),
        "FromPolicy of the leader": FromPolicy(leader),
        "DIA towards the leader": DIA(target=leader),
    }
    return _regularised(methods, (0.0, *deltas))


def _regularised(methods: Mapping[str, Method], deltas: Sequence[float]) -> dict[str, Candidate]:
    return {
        name if delta == 0.0 else f"{name}{SMOOTHED}{delta:g}": Candidate(method, delta)
        for delta in deltas
        for name, method in methods.items()
    }


def is_ready(thing: Any) -> bool:
    """Return whether a candidate is a policy already, so that nothing has to be solved."""
    return isinstance(thing, Policy | BaseResult)


def _described(thing: Any) -> str:
    """Return a name for a candidate that has none."""
    if not isinstance(thing, Candidate):
        return type(thing).__name__
    delta = f"{SMOOTHED}{thing.regularisation:g}" if thing.regularisation else ""
    return f"{type(thing.method).__name__}{delta}"
