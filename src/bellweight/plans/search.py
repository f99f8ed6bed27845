"""One run of `Auto`: candidates become policies, policies race, the winner is judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.backends import Estimate, Iterate, Setup, backend_of
from bellweight.common import tolerances
from bellweight.common.status import ArgumentError, BellweightError
from bellweight.common.streams import derived_seed
from bellweight.evaluation.evaluate import Evaluation, evaluate
from bellweight.evaluation.race import Race, RankedPolicy, race
from bellweight.plans.portfolio import (
    SMOOTHED,
    Candidate,
    checked_policies,
    default_regularisations,
    followers,
    is_ready,
    named,
    portfolio,
)
from bellweight.plans.race_result import RaceResult
from bellweight.plans.resampling import redrawn
from bellweight.policies import Greedy, Policy
from bellweight.program import SampledRows
from bellweight.results.base import BaseResult
from bellweight.solve import Looped, looped
from bellweight.weights.loop import Stop
from bellweight.weights.methods import PIA
from bellweight.weights.plan import Plan, SolveSettings

if TYPE_CHECKING:
    from bellweight.plans.auto import Auto

_BUDGET, _SLOW_BUDGET = 200_000, 2_000
_STOP = Stop(max_iterations=20)
_CLEARLY_WORSE = 1e-4  # share of the cost
_FINAL = 0.2  # share of the budget that judges the winner
_SOLVING = 0.6  # share of the time limit after which no candidate is begun
_RACING = 0.85  # and after which the race ends
_RACE, _FRESH, _STATES = 0, 1, 2  # purposes of random numbers


class Search:
    """One run of the plan: candidates become policies, policies race, the winner is judged."""

    def __init__(self, auto: Auto, settings: SolveSettings) -> None:
        self.auto, self.settings = auto, settings
        self._backend = backend_of(settings.model)
        self._began = time.perf_counter()
        self._policies: dict[str, Policy] = {}
        self._runs: dict[str, Looped] = {}
        self._costs: dict[str, float] = {}  # of the runs' policies, where costs are exact
        self._lower_bound = -np.inf
        self._failed: dict[str, str] = {}
        self._notes: list[str] = []
        self._races: list[Race] = []
        self._ready: set[str] = set()
        self._seconds_per_episode = 0.0
        self._setup: Setup | None = None
        self._passed_over: list[str] = []

    def run(self) -> RaceResult:
        auto = self.auto
        chosen: Mapping[str, Any] | None = named(auto.candidates)
        if chosen is None or any(not is_ready(thing) for thing in chosen.values()):
            self._setup = _plain(self.settings).setup()  # says what is wrong with the arguments
        if chosen is None:
            chosen = portfolio(self._deltas())
        brought = checked_policies(auto.brought)
        twice = sorted(set(brought) & set(chosen))
        if twice:
            raise ArgumentError(f"{twice[0]!r} is a candidate and brought: use another name")
        candidates = {**brought, **chosen}
        self._ready = {name for name, thing in candidates.items() if is_ready(thing)}
        self._check_budget(len(candidates))
        try:
            self._find(candidates)
            self._race(0)
            self._later_rounds()
        except KeyboardInterrupt:
            # What a race has decided is worth keeping.
            if not self._races:
                raise
            self._notes.append("Interrupted: the winner is that of the last finished race.")
        return self._race_result()

    def _later_rounds(self) -> None:
        """Draw constraint states from the leader's occupancy, solve there, and race who is left."""
        settings = self.settings
        if self._setup is None or self._setup.sampled_states is None:
            return
        first = self._setup.sampled_states
        for number in range(1, self._rounds + 1):
            room = self._race_budget // self._backend.first_look - len(self._left())
            if self._is_late(_SOLVING) or room < 1:
                lacks = "time" if self._is_late(_SOLVING) else "budget"
                self._notes.append(f"No {lacks} was left to re-draw constraint states.")
                return
            leader = self._policies[self._races[-1].winner]
            dual = leader.dual if isinstance(leader, Greedy) else None
            seed = derived_seed(settings.seed, _STATES, number)
            states, _, _ = redrawn(settings.model, first, leader, dual, seed, settings.jobs)
            self._setup = _plain(replace(settings, rows=SampledRows(states))).setup()
            self._notes.append(
                f"Round {number}: constraint states of {self._races[-1].winner} were added."
            )
            fresh = list(followers(leader, self._deltas()).items())
            if len(fresh) > room:
                self._notes.append(
                    f"Round {number}: the budget has room for {room} of {len(fresh)} candidates."
                )
            self._policies = self._left()
            self._find({f"{name}, round {number}": found for name, found in fresh[:room]})
            self._race(number)

    def _left(self) -> dict[str, Policy]:
        """Return the policies that the last race did not drop."""
        names = [s.name for s in self._races[-1].standings if not s.dropped]
        return {name: self._policies[name] for name in names}

    def _deltas(self) -> tuple[float, ...]:
        if self.auto.regularisations is not None:
            return tuple(delta for delta in self.auto.regularisations if delta > 0.0)
        if not self._backend.lists_rows:
            return ()
        if self.settings.regularisation > 0.0:
            return (self.settings.regularisation,)
        assert self._setup is not None
        return default_regularisations(self._setup)

    def _check_budget(self, n_candidates: int) -> None:
        if self._backend.lists_states:
            return
        least = self._backend.first_look * n_candidates
        if self._race_budget < least:
            needed = int(np.ceil(least * (self._budget / self._race_budget)))
            many = "one candidate" if n_candidates == 1 else f"{n_candidates} candidates"
            raise ArgumentError(
                f"budget is {self._budget:,} episodes, too few for {many}: expected at least "
                f"{needed:,}, or fewer candidates or rounds"
            )

    @property
    def _budget(self) -> int:
        """Episodes of everything."""
        usual = _SLOW_BUDGET if self._backend.is_slow else _BUDGET
        return usual if self.auto.budget is None else self.auto.budget

    @property
    def _rounds(self) -> int:
        """Rounds of re-drawn constraint states."""
        is_sample = self._setup is not None and self._setup.sampled_states is not None
        return self.auto.rounds if is_sample else 0

    @property
    def _race_budget(self) -> int:
        """Episodes of one race."""
        return max(1, int((1.0 - _FINAL) * self._budget) // (self._rounds + 1))

    def _find(self, candidates: Mapping[str, Any]) -> None:
        """Turn candidates into policies, those reported first."""
        on_the_way: dict[str, Policy] = {}
        for number, (name, thing) in enumerate(candidates.items(), start=1):
            if self._is_late(_SOLVING) and self._policies and not is_ready(thing):
                self._failed[name] = "not tried, the time was up"
                continue
            if self._cannot_win(name, thing):
                self._passed_over.append(name)
                continue
            self._say(f"candidate {number} of {len(candidates)}: {name}")
            try:
                on_the_way |= self._found(name, thing)
            except (BellweightError, np.linalg.LinAlgError) as problem:
                self._failed[name] = str(problem)
        self._tell_passed_over()
        if not self._policies:
            why = "; ".join(f"{name}: {reason}" for name, reason in self._failed.items())
            raise ArgumentError(f"no candidate led to a policy: {why}")
        room = max(0, self._race_budget // self._backend.first_look - len(self._policies))
        if not self._backend.lists_states and len(on_the_way) > room:
            self._notes.append(
                f"The budget has room for {room} of {len(on_the_way)} iterates on the way."
            )
            on_the_way = dict(list(on_the_way.items())[:room])
        self._policies |= on_the_way

    def _cannot_win(self, name: str, thing: Any) -> bool:
        """Return whether a candidate need not be tried.

        Where costs are exact, nothing is tried once a policy is proven optimal, and no more
        regularisation of a method that a smaller one made clearly worse.
        """
        if not self._backend.lists_states or not isinstance(thing, Candidate):
            return False
        if self._optimal() is not None:
            return True
        kind = name.split(SMOOTHED, maxsplit=1)[0]
        costs = [c for known, c in self._costs.items() if known.split(SMOOTHED)[0] == kind]
        if thing.regularisation == 0.0 or len(costs) < 2:
            return False
        return costs[-1] > min(costs) + _CLEARLY_WORSE * abs(min(costs))

    def _optimal(self) -> str | None:
        """Return the candidate whose policy is proven to be as good as any, if there is one."""
        for name, cost in self._costs.items():
            if cost - self._lower_bound <= tolerances.PROVEN_OPTIMAL * abs(cost):
                return name
        return None

    def _tell_passed_over(self) -> None:
        if not self._passed_over:
            return
        best = self._optimal()
        why = "less smoothing was better" if best is None else f"{best} is proven optimal"
        self._notes.append(f"Candidates not tried, because {why}: {len(self._passed_over)}.")
        self._passed_over.clear()

    def _found(self, name: str, thing: Any) -> dict[str, Policy]:
        """Add what a candidate reports; return the policies it met on the way."""
        if isinstance(thing, BaseResult):
            if thing.model_digest != self.settings.model.digest:
                raise ArgumentError(f"it is the result of another model, {thing.model_name}")
            self._policies[name] = thing.policy.on(self.settings.model)
            return {}
        if isinstance(thing, Policy):
            self._policies[name] = thing.on(self.settings.model)
            return {}
        delta = self.settings.regularisation
        if isinstance(thing, Candidate):
            thing, delta = thing.method, thing.regularisation
        if isinstance(thing, Plan):
            self._policies[name] = thing.run(
                replace(self.settings, regularisation=delta, progress=False, judge=False)
            ).policy
            return {}
        assert self._setup is not None
        iterates: list[Iterate] = []
        setup = self._setup if delta == 0.0 else self._setup.regularised(delta)
        quiet = replace(self.settings, progress=self._watch())
        run = looped(setup, thing, quiet, stop=_STOP, visit=iterates.append)
        self._policies[name] = run.policy
        self._runs[name] = run
        self._note_cost(name, run)
        # Only PIA takes its weights from the policies of its own iterates.
        return dict(_others(name, iterates, run.policy)) if isinstance(thing, PIA) else {}

    def _note_cost(self, name: str, run: Looped) -> None:
        """Note what a policy costs and what no policy can cost less than, where both are exact.

        A bound holds for every candidate. Programs that are not regularised have the tighter ones.
        Proving a bound takes as long as solving, so only theirs are proven here.
        """
        if not run.setup.is_exact:
            return
        self._costs[name] = run.setup.cost(run.policy).mean
        if run.setup.regularisation == 0.0:
            iterate = run.outcome.iterate
            bound = run.setup.proven(iterate.solution.coef, iterate.point)
            if bound is not None:
                self._lower_bound = max(self._lower_bound, bound.value)

    def _race(self, number: int) -> None:
        """Race the policies at hand; all races together keep the stated confidence."""
        settings, began = self.settings, time.perf_counter()
        deadline = None
        if self.auto.max_seconds is not None:
            deadline = self._began + _RACING * self.auto.max_seconds
        found = race(
            settings.model, self._policies, self._race_budget,
            confidence=1.0 - (1.0 - self.auto.confidence) / (self._rounds + 1),
            horizon=settings.horizon, seed=derived_seed(settings.seed, _RACE, number),
            jobs=settings.jobs, deadline=deadline, tell=self._say,
        )  # fmt: skip
        if found.episodes:
            self._seconds_per_episode = (time.perf_counter() - began) / found.episodes
        self._races.append(found)

    def _race_result(self) -> RaceResult:
        model = self.settings.model
        won = self._winner()
        policy = self._policies[won.name]
        judged = self._judged(policy)
        if self._backend.maximises:
            self._notes.append("Costs are minus rewards.")
        return RaceResult(
            winner=won.name,
            policy=policy,
            cost=Estimate(won.mean) if judged is None else judged.estimate,
            evaluation=judged,
            races=tuple(self._races),
            result=self._runs[won.name].result() if won.name in self._runs else None,
            failed=dict(self._failed),
            notes=tuple(self._notes),
            seconds=time.perf_counter() - self._began,
            model_name=model.name,
            model_digest=model.digest,
        )

    def _winner(self) -> RankedPolicy:
        """Return the winner; a policy that the user brought loses only to a clearly better one."""
        first, *others = self._races[-1].standings
        own = [s for s in others if s.name in self._ready and not s.dropped]
        if first.name in self._ready or not own:
            return first
        self._notes.append(
            f"{first.name} was cheaper in the race, but not clearly ({own[0].behind} for "
            f"{own[0].name}, which keeps its place)."
        )
        return own[0]

    def _judged(self, policy: Policy) -> Evaluation | None:
        """Return the winner's cost on random numbers that had no part in choosing it."""
        settings = self.settings
        if self._backend.lists_states:
            return None
        planned = episodes = max(2, int(_FINAL * self._budget))
        if self.auto.max_seconds is not None:
            left = self._began + self.auto.max_seconds - time.perf_counter()
            affordable = int(left / max(self._seconds_per_episode, 1e-9))
            episodes = min(planned, max(self._backend.first_look, affordable))
        if episodes < planned:
            self._notes.append(f"The time left was enough for {episodes:,} episodes of judgement.")
        self._say(f"judging the winner: {episodes:,} fresh episodes")
        return evaluate(
            settings.model, policy, episodes, horizon=settings.horizon,
            seed=derived_seed(settings.seed, _FRESH), jobs=settings.jobs,
        )  # fmt: skip

    def _is_late(self, share: float) -> bool:
        limit = self.auto.max_seconds
        return limit is not None and time.perf_counter() - self._began > share * limit

    def _watch(self) -> Any:
        return self.settings.progress if callable(self.settings.progress) else False

    def _say(self, text: str) -> None:
        self.settings.say(text)
        if self.auto.watch is not None:
            self.auto.watch(text)


def _others(name: str, iterates: list[Iterate], reported: Policy) -> Iterator[tuple[str, Policy]]:
    """Return the policies of the iterates that a method did not report."""
    for number, iterate in enumerate(iterates):
        if iterate.greedy is not reported:
            yield f"{name}, iterate {number}", iterate.greedy


def _plain(settings: SolveSettings) -> SolveSettings:
    """Return settings without regularisation: regularised programs share the rows."""
    return replace(settings, regularisation=0.0)
