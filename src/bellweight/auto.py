"""A portfolio of methods, raced: the policy that wins, and a cost free of selection bias.

Candidates are solved on shared rows; every distinct policy they lead to takes part, PIA's iterates
and phases included. Policies are raced on common random numbers (`racing.py`), and
the winner is judged once more on fresh ones. On event models constraint states are then re-drawn
from the winner's occupancy (`resampling.py`), the methods that use it are run on them, and whoever
was left races against what they find.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bellweight import checks
from bellweight.alp import cost_unit
from bellweight.bench import Bench, Iterate
from bellweight.evaluate import Evaluation, evaluate
from bellweight.league import League
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.plan import Order, Plan
from bellweight.policy import Greedy, Policy, Uniform
from bellweight.racing import FIRST_LOOK, Race, race
from bellweight.resampling import redrawn, sampled_rows
from bellweight.result import Result
from bellweight.rows import BellmanRows, SampledRows
from bellweight.selection import Method, Outcome, Stop, select_weights
from bellweight.solve import bench_of, result_of, solve
from bellweight.status import ArgumentError, BellweightError, Status
from bellweight.streams import derived_seed
from bellweight.weights import DIA, PIA, Fixed, FromPolicy

_STOP = Stop(max_iterations=20)
_SHARES = (1e-4, 1e-3, 5e-3)  # of the scale of regularisations, see `default_regularisations`
_FINAL = 0.2  # share of the budget that judges the winner
_SOLVING = 0.6  # share of the time limit after which no candidate is begun
_RACING = 0.85  # and after which the race ends
_RACE, _FRESH, _STATES = 0, 1, 2  # purposes of random numbers


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method or plan to try, with a regularisation of its own."""

    method: Method | Plan[Any]
    regularisation: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method | Plan):
            raise ArgumentError(f"method is {self.method!r}, expected a method such as DIA()")
        checks.at_least_zero(self.regularisation, "regularisation")


@dataclass(frozen=True, eq=False)
class Auto(Plan[League]):
    """Try a portfolio and return the policy that wins, with the whole league.

    `candidates` maps names to methods, plans, `Candidate`s, policies (baselines, or whatever one
    has) or results; a list gets names by itself. By default: Fixed, Random, PIA with all its
    iterates, and DIA towards two targets, each with several regularisations where the model allows
    them; `regularisations` replaces those. `brought` are policies or results by name that take part
    besides. `budget` counts the episodes of all races and of the
    judgement, a fifth of it; on tabular models costs are exact and it is not used. `rounds` are
    those of re-drawn constraint states on event models. `max_seconds` ends the search early.
    `watch` is told what is being done.
    """

    candidates: Any = None
    brought: Mapping[str, Policy | Result] | None = None
    budget: int = 200_000
    confidence: float = 0.95
    rounds: int = 1
    regularisations: Sequence[float] | None = None
    max_seconds: float | None = None
    watch: Callable[[str], object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        named(self.candidates)
        _brought(self.brought)
        checks.count(self.budget, "budget")
        checks.positive(self.confidence, "confidence", below=1.0)
        checks.count(self.rounds, "rounds", least=0)
        for delta in self.regularisations or ():
            checks.at_least_zero(delta, "regularisations")
        if self.max_seconds is not None:
            checks.positive(self.max_seconds, "max_seconds")

    def run(self, order: Order) -> League:
        """Carry out the plan."""
        return _Season(self, order).run()


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
            kind = _kind(thing)
            number = sum(name.split(" #")[0] == kind for name in found)
            found[kind if number == 0 else f"{kind} #{number + 1}"] = thing
    for name, thing in found.items():
        if not isinstance(thing, Method | Plan | Candidate | Policy | Result):
            raise ArgumentError(
                f"candidate {name!r} is {thing!r}, expected a method, plan, Candidate, policy or "
                "result"
            )
        if isinstance(thing, Auto):
            raise ArgumentError(f"candidate {name!r} is an Auto itself: list its candidates")
    return found


def _brought(policies: Any) -> dict[str, Policy | Result]:
    """Return what the user brings, checked."""
    if policies is None:
        return {}
    if not isinstance(policies, Mapping):
        raise ArgumentError(f"brought is {policies!r}, expected names with their policies")
    for name, thing in policies.items():
        if not isinstance(thing, Policy | Result):
            raise ArgumentError(f"brought {name!r} is {thing!r}, expected a policy or a result")
    return {str(name): thing for name, thing in policies.items()}


def default_regularisations(bench: Bench) -> tuple[float, ...]:
    """Return regularisations that suit the rows, from hardly any to plenty.

    A dual spread evenly over n states has 1 / ((1 - discount) n) in each; delta times that is the
    violation it allows, which is to be a small share of a typical cost.
    """
    rows = bench.rows
    if not isinstance(rows, BellmanRows):
        return ()
    n_states = len(rows.pair_start) - 1
    scale = cost_unit(rows.pair_cost) * (1.0 - rows.discount) * n_states
    return tuple(float(f"{share * scale:.2g}") for share in _SHARES)


def portfolio(deltas: Sequence[float]) -> dict[str, Candidate]:
    """Return the default candidates; only PIA, which takes longest, is not regularised."""
    methods: dict[str, Method] = {
        "Fixed": Fixed("initial"),
        "Random": FromPolicy(Uniform()),
        "DIA (Random)": DIA(target=Uniform()),
        "DIA (Fixed)": DIA(target=Fixed("initial")),
    }
    return {**_regularised(methods, (0.0, *deltas)), "PIA": Candidate(PIA())}


def followers(leader: Policy, deltas: Sequence[float]) -> dict[str, Candidate]:
    """Return the methods that make use of a good policy's occupancy."""
    methods: dict[str, Method] = {
        "Fixed": Fixed("initial"),
        "From the leader": FromPolicy(leader),
        "DIA (the leader)": DIA(target=leader),
    }
    return _regularised(methods, (0.0, *deltas))


def _regularised(methods: Mapping[str, Method], deltas: Sequence[float]) -> dict[str, Candidate]:
    return {
        name if delta == 0.0 else f"{name}, delta {delta:g}": Candidate(method, delta)
        for delta in deltas
        for name, method in methods.items()
    }


class _Season:
    """One run of the plan: candidates become policies, policies race, the winner is judged."""

    def __init__(self, auto: Auto, order: Order) -> None:
        self.auto, self.order = auto, order
        self._began = time.perf_counter()
        self._policies: dict[str, Policy] = {}
        self._results: dict[str, Result] = {}
        self._failed: dict[str, str] = {}
        self._notes: list[str] = []
        self._races: list[Race] = []
        self._benches: dict[tuple[float, int], Bench] = {}
        self._round = 0

    def run(self) -> League:
        order, auto = self.order, self.auto
        given = named(auto.candidates)
        chosen: Mapping[str, Any] = portfolio(self._deltas()) if given is None else given
        brought = _brought(auto.brought)
        twice = sorted(set(brought) & set(chosen))
        if twice:
            raise ArgumentError(f"{twice[0]!r} is a candidate and brought: use another name")
        candidates = {**brought, **chosen}
        self._check_budget(len(candidates))
        self._find(candidates)
        self._race()
        solves = any(not isinstance(thing, Policy | Result) for thing in candidates.values())
        if isinstance(order.model, EventModel) and solves:
            self._first_states = sampled_rows(order)
            for self._round in range(1, auto.rounds + 1):
                if self._is_late(_SOLVING):
                    self._notes.append("The time limit left no time to re-draw constraint states.")
                    break
                self._redraw()
        return self._league()

    def _deltas(self) -> tuple[float, ...]:
        if self.auto.regularisations is not None:
            return tuple(delta for delta in self.auto.regularisations if delta > 0.0)
        if isinstance(self.order.model, LinearModel):
            return ()
        return default_regularisations(self._bench(0.0))

    def _check_budget(self, n_candidates: int) -> None:
        if isinstance(self.order.model, TabularModel):
            return
        least = FIRST_LOOK * n_candidates
        if self._race_budget < least:
            needed = int(np.ceil(least * (self.auto.budget / self._race_budget)))
            raise ArgumentError(
                f"budget is {self.auto.budget:,} episodes, too few for {n_candidates} candidates: "
                f"expected at least {needed:,}, or fewer candidates or rounds"
            )

    @property
    def _race_budget(self) -> int:
        """Episodes of one race."""
        rounds = self.auto.rounds if isinstance(self.order.model, EventModel) else 0
        return max(1, int((1.0 - _FINAL) * self.auto.budget) // (rounds + 1))

    def _find(self, candidates: Mapping[str, Any]) -> None:
        """Turn candidates into policies, those reported first."""
        on_the_way: dict[str, Policy] = {}
        for number, (name, thing) in enumerate(candidates.items(), start=1):
            if self._is_late(_SOLVING):
                self._failed[name] = "not tried, the time was up"
                continue
            self._say(f"candidate {number} of {len(candidates)}: {name}")
            try:
                on_the_way |= self._found(name, thing)
            except BellweightError as problem:
                self._failed[name] = str(problem)
        room = self._race_budget // FIRST_LOOK - len(self._policies)
        if isinstance(self.order.model, TabularModel) or len(on_the_way) <= room:
            self._policies |= on_the_way
        else:
            self._notes.append(
                f"{len(on_the_way) - room} iterates on the way were left out: the budget has no "
                "room for them."
            )
            self._policies |= dict(list(on_the_way.items())[:room])
        if not self._policies:
            why = "; ".join(f"{name}: {reason}" for name, reason in self._failed.items())
            raise ArgumentError(f"no candidate led to a policy: {why}")

    def _found(self, name: str, thing: Any) -> dict[str, Policy]:
        """Add what a candidate reports; return the policies it met on the way."""
        if isinstance(thing, Policy | Result):
            policy = thing if isinstance(thing, Policy) else thing.policy
            self._policies[name] = policy.on(self.order.model)
            return {}
        candidate = thing if isinstance(thing, Candidate) else None
        method = thing if candidate is None else candidate.method
        delta = self.order.regularisation if candidate is None else candidate.regularisation
        if isinstance(method, Plan):
            self._policies[name] = self._carried_out(method, delta).policy
            return {}
        iterates: list[Iterate] = []
        began = time.perf_counter()
        bench, stop = self._bench(delta), self.order.stop or _STOP
        outcome = select_weights(bench, method, stop, visit=iterates.append, watch=self._watch())
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        self._policies[name] = outcome.iterate.greedy
        seconds = time.perf_counter() - began
        self._results[name] = result_of(bench, method, outcome, stop, self.order.seed, seconds)
        # Iterates of other methods act on weights that their own policies do not come from.
        return dict(_others(name, iterates, outcome)) if isinstance(method, PIA) else {}

    def _carried_out(self, plan: Plan[Any], delta: float) -> Any:
        order = self.order
        return solve(
            order.model, order.basis, plan, rows=order.rows, simulation=order.simulation,
            stop=order.stop, regularisation=delta, seed=order.seed, jobs=order.jobs,
        )  # fmt: skip

    def _bench(self, delta: float) -> Bench:
        """Return rows and program for a regularisation; the rows are shared by all of them."""
        known = self._benches.get((delta, self._round))
        if known is not None:
            return known
        order = self.order
        made = bench_of(
            order.model, order.basis, order.rows, order.simulation, order.seed, order.jobs, delta
        )
        self._benches[delta, self._round] = made
        return made

    def _race(self) -> None:
        order = self.order
        deadline = None
        if self.auto.max_seconds is not None:
            deadline = self._began + _RACING * self.auto.max_seconds
        budget = max(self._race_budget, FIRST_LOOK * len(self._policies))
        self._races.append(
            race(
                order.model, self._policies, budget, confidence=self.auto.confidence,
                horizon=self._horizon, seed=derived_seed(order.seed, _RACE, self._round),
                jobs=order.jobs, deadline=deadline, tell=self._say,
            )
        )  # fmt: skip

    def _redraw(self) -> None:
        """Draw states from the leader's occupancy, solve there, and race who is left."""
        last = self._races[-1]
        leader = self._policies[last.winner]
        self._policies = {
            standing.name: self._policies[standing.name]
            for standing in last.standings
            if not standing.dropped
        }
        dual = leader.dual if isinstance(leader, Greedy) else None
        seed = derived_seed(self.order.seed, _STATES, self._round)
        states, _, _ = redrawn(
            self.order.model, self._first_states, leader, dual, seed, self.order.jobs
        )
        self._benches.clear()
        self.order = replace(self.order, rows=SampledRows(states))
        fresh = followers(leader, self._deltas())
        self._notes.append(f"Round {self._round}: constraint states of {last.winner} were added.")
        self._find({f"{name}, round {self._round}": found for name, found in fresh.items()})
        self._race()

    def _league(self) -> League:
        last = self._races[-1]
        policy = self._policies[last.winner]
        judged = self._judged(policy)
        exactly = last.standings[0].mean
        return League(
            winner=last.winner,
            policy=policy,
            cost=exactly if judged is None else judged.mean,
            half_width=0.0 if judged is None else judged.half_width,
            evaluation=judged,
            races=tuple(self._races),
            result=self._results.get(last.winner),
            failed=dict(self._failed),
            notes=tuple(self._notes),
            seconds=time.perf_counter() - self._began,
            model_name=self.order.model.name,
        )

    def _judged(self, policy: Policy) -> Evaluation | None:
        """Return the winner's cost on random numbers that had no part in choosing it."""
        order = self.order
        if isinstance(order.model, TabularModel):
            return None
        episodes = max(2, int(_FINAL * self.auto.budget))
        return evaluate(
            order.model, policy, episodes, horizon=self._horizon,
            seed=derived_seed(order.seed, _FRESH), jobs=order.jobs,
        )  # fmt: skip

    @property
    def _horizon(self) -> int | None:
        return None if self.order.simulation is None else self.order.simulation.horizon

    def _is_late(self, share: float) -> bool:
        limit = self.auto.max_seconds
        return limit is not None and time.perf_counter() - self._began > share * limit

    def _watch(self) -> Any:
        return self.order.progress if callable(self.order.progress) else None

    def _say(self, text: str) -> None:
        if self.order.progress is True:
            print(text, flush=True)
        if self.auto.watch is not None:
            self.auto.watch(text)


def _others(name: str, iterates: list[Iterate], outcome: Outcome) -> Iterator[tuple[str, Policy]]:
    """Return the policies of the iterates that a method did not report."""
    for number, iterate in enumerate(iterates):
        if iterate is not outcome.iterate:
            yield f"{name}, iterate {number}", iterate.greedy


def _kind(thing: Any) -> str:
    made = thing.method if isinstance(thing, Candidate) else thing
    return type(made).__name__
