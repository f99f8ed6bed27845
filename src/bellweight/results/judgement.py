"""What a policy costs, beside acting at random and beside the method's target.

A status is about the weights and the program; a judgement is about the policy. On tabular models
costs are exact. Elsewhere all policies are simulated on the same random numbers, from streams that
the weight loop did not use. The budget is a number of steps, not of seconds, so that a seed gives
the same numbers on every machine: the backend's `judging_steps` for each policy.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bellweight.backends import Backend, Estimate, Outside, Setup, backend_of
from bellweight.common import files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import BellweightError
from bellweight.common.streams import derived_seed
from bellweight.display import interval_text
from bellweight.display.table import capital
from bellweight.evaluation.evaluate import Difference
from bellweight.policies import Policy, Uniform
from bellweight.simulation import mean_and_half_width

_FEWEST_EPISODES, _MOST_EPISODES = 8, 10_000
_STREAM = 71  # the branch of a seed that judging draws from
_OFTEN_OUTSIDE = 0.01  # share of visited states outside the box that is worth a warning


@files.storable("Judgement")
@dataclass(frozen=True)
class Judgement:
    """What a result's policy costs, what acting at random costs, and what its target costs.

    `minus_random` and `minus_target` are the paired differences, policy minus the other: negative
    is better. `target` is None where the method has none, and where its target is to act at random
    (`target_is_random`). `random` is None where no random action is known; `random_reason` says
    why. Costs are over `horizon` steps, None for all time; `tail_bound` bounds what comes after
    it, None where it is not known. `episodes` is 0 where costs are exact. The same numbers come
    from `compare(model, policies, episodes, horizon=horizon, seed=seed)`. `outside` is for linear
    models, None where all visited states are inside the box. `seconds` is what judging took; the
    result's own seconds do not contain it.
    """

    cost: Estimate
    random: Estimate | None
    target: Estimate | None
    minus_random: Difference | None
    minus_target: Difference | None
    target_is_random: bool = False
    random_reason: str = ""
    horizon: int | None = None
    episodes: int = 0
    seed: int | None = None
    tail_bound: float | None = None
    outside: Outside | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def fault(self) -> str:
        """What does not go together, or no text."""
        pairs = ((self.random, self.minus_random), (self.target, self.minus_target))
        if any((rival is None) != (minus is None) for rival, minus in pairs):
            return "a judgement has a rival without a difference, or the other way round"
        known = [self.cost, *(part for pair in pairs for part in pair if part is not None)]
        if not all(np.isfinite(part.half_width) for part in known):
            return "a judgement has half-widths that are not finite"
        return ""

    @property
    def is_no_better(self) -> bool:
        """Whether the policy is not clearly better than acting at random, or than its target."""
        gaps = (self.minus_random, self.minus_target)
        return any(gap is not None and not _is_better(gap, self.cost) for gap in gaps)

    @property
    def is_exact(self) -> bool:
        """Whether costs were computed, not simulated."""
        return self.episodes == 0


def judge(
    setup: Setup,
    policy: Policy,
    target: Policy | None = None,
    *,
    cost: float | None = None,
    lower_bound: float | None = None,
) -> tuple[Judgement, tuple[str, ...]]:
    """Return what a policy costs beside others, and what the user must know about that.

    `cost` is the policy's where it is known exactly. A policy that `lower_bound` proves to be
    nearly optimal is not warned of.
    """
    began = time.perf_counter()
    backend = backend_of(setup.model)
    rivals = _Rivals(backend, target)
    if setup.is_exact:
        found = _exactly(backend, policy, cost, rivals)
    else:
        found = _simulated(setup, backend, policy, rivals)
    judgement = replace(found, seconds=time.perf_counter() - began)
    notes = [_outside_note(judgement.outside)]
    if not _is_nearly_optimal(judgement, lower_bound):
        notes.append(_random_note(backend, judgement) or _target_note(judgement))
    return judgement, tuple(note for note in notes if note)


def judged(
    setup: Setup,
    policy: Policy,
    target: Policy | None,
    cost: Estimate | None,
    lower_bound: float | None,
) -> tuple[Judgement | None, tuple[str, ...]]:
    """Return what `judge` does; where judging fails or is interrupted, None and why."""
    try:
        known = None if cost is None else cost.mean
        return judge(setup, policy, target, cost=known, lower_bound=lower_bound)
    except KeyboardInterrupt:
        unknown = (
            "the policy was not judged, because that was interrupted: bellweight.compare(model, "
            '{"result": result.policy, "random": Uniform()}) does it'
        )
    except BellweightError as problem:
        unknown = f"the policy was not judged, because that failed: {problem}"
    return None, (unknown,)


def notes_of(found: Judgement | None) -> tuple[str, ...]:
    """Return lines on what acting at random and the target cost, for the foot of a table."""
    told = () if found is None else rival_facts(found)
    return tuple(f"{capital(name)}: {text}." for name, text in told)


class _Rivals:
    """The policies to compare with: acting at random and the target, each where there is one."""

    def __init__(self, backend: Backend[Any], target: Policy | None) -> None:
        self.target_is_random = isinstance(target, Uniform)
        self.policies: dict[str, Policy] = {}
        self.reason = backend.why_not_random()
        if not self.reason:
            self.policies["random"] = Uniform()
        if target is not None and not self.target_is_random:
            self.policies["target"] = target

    def fields(self, found: dict[str, tuple[Estimate, Difference]]) -> dict[str, Any]:
        """Return the fields of a judgement about these policies, None where one is missing."""
        told: dict[str, Any] = {"target_is_random": self.target_is_random}
        for name in ("random", "target"):
            told[name], told[f"minus_{name}"] = found.get(name, (None, None))
        return told | {"random_reason": self.reason}


def _exactly(
    backend: Backend[Any], policy: Policy, cost: float | None, rivals: _Rivals
) -> Judgement:
    def exact(one: Policy) -> float:
        found = backend.exact_cost(one)
        assert found is not None
        return found

    own = exact(policy) if cost is None else cost
    costs = {name: exact(rival) for name, rival in rivals.policies.items()}
    found = {name: (Estimate(cost), Difference(own - cost, 0.0)) for name, cost in costs.items()}
    return Judgement(cost=Estimate(own), **rivals.fields(found))


def _simulated(setup: Setup, backend: Backend[Any], policy: Policy, rivals: _Rivals) -> Judgement:
    episodes, horizon = _budget(
        backend.judging_steps(policy), setup.simulation.steps(setup.model.discount)
    )
    seed = derived_seed(setup.seed, _STREAM)

    def simulated(one: Policy) -> tuple[FloatArray, Outside | None]:
        return setup.episode_costs(one, episodes, horizon, seed)

    own, outside = simulated(policy)
    costs = {name: simulated(rival)[0] for name, rival in rivals.policies.items()}
    found = {
        name: (
            Estimate(*mean_and_half_width(cost)), Difference(*mean_and_half_width(own - cost))
        )
        for name, cost in costs.items()
    }  # fmt: skip
    return Judgement(
        cost=Estimate(*mean_and_half_width(own)),
        **rivals.fields(found),
        horizon=horizon,
        episodes=episodes,
        seed=seed,
        tail_bound=backend.tail(policy, horizon)[0],
        outside=outside,
    )


def _budget(steps: int, longest: int) -> tuple[int, int]:
    """Return episodes and steps of each; episodes are shortened where too few would fit."""
    horizon = min(longest, steps // _FEWEST_EPISODES)
    return min(steps // horizon, _MOST_EPISODES), horizon


def _is_nearly_optimal(found: Judgement, lower_bound: float | None) -> bool:
    cost = found.cost.mean
    proven = found.is_exact and lower_bound is not None
    return proven and cost - lower_bound <= tolerances.NEARLY_OPTIMAL * abs(cost)  # type: ignore[operator]


def _random_note(backend: Backend[Any], found: Judgement) -> str:
    """Say that the policy is no better than acting at random, where that is so."""
    gap, random = found.minus_random, found.random
    if gap is None or random is None or _is_better(gap, found.cost):
        return ""
    costs = f"it costs {found.cost}, acting at random {random}{_paired(found, gap)}"
    if _is_same(gap, found.cost):
        if not backend.actions_matter():
            return ""
        return (
            f"the policy costs as much as acting at random, {found.cost}, though better policies "
            f"exist: the value function does not tell good actions from bad; {backend.remedy()}"
        )
    if gap.is_clear:
        return (
            f"the policy is worse than acting at random: {costs}; the value function misleads it: "
            f"{backend.remedy()}"
        )
    return (
        f"the policy is not clearly better than acting at random: {costs}; compare them on more "
        f"episodes with bellweight.compare, or {backend.remedy()}"
    )


def _target_note(found: Judgement) -> str:
    """Say that the policy is no better than the target of its method, where that is so."""
    gap, target = found.minus_target, found.target
    if gap is None or target is None or _is_better(gap, found.cost):
        return ""
    instead = "act by the target itself, or try a richer basis or another method"
    if _is_same(gap, found.cost):
        return (
            f"the policy costs as much as the target of its method, {target}: nothing was gained; "
            f"{instead}"
        )
    costs = f"it costs {found.cost}, the target {target}{_paired(found, gap)}"
    if gap.is_clear:
        return f"the policy is worse than the target of its method: {costs}; {instead}"
    return (
        f"the policy is not clearly better than the target of its method: {costs}; compare them "
        f"on more episodes with bellweight.compare, or {instead}"
    )


def _outside_note(outside: Outside | None) -> str:
    if outside is None or outside.share <= _OFTEN_OUTSIDE:
        return ""
    return (
        f"{100.0 * outside.share:.3g} % of the visited states lie outside the box of the rows: "
        f"{outside.variable} reaches {outside.reached:g}, its box is {outside.lower:g} to "
        f"{outside.upper:g}, and the program has no row beyond it: solve over a "
        "larger box, PricedRows(lower=..., upper=...)"
    )


def _paired(found: Judgement, gap: Difference) -> str:
    if found.is_exact:
        return ""
    apart = interval_text(gap.mean, gap.half_width, sign="+")
    return f" over {found.horizon:,} steps (paired difference {apart})"


def rival_facts(found: Judgement) -> Iterator[tuple[str, str]]:
    """Tell what acting at random and the target cost, and how the policy compares."""
    if found.random is None:
        yield "at random", f"not known: {found.random_reason}"
    else:
        also = ", also the target" if found.target_is_random else ""
        yield "at random", f"{found.random}{also}; {_compared(found.minus_random)}"
    if found.target is not None:
        yield "target", f"{found.target}; {_compared(found.minus_target)}"


def _compared(gap: Difference | None) -> str:
    assert gap is not None
    if gap.is_clear:
        apart = interval_text(abs(gap.mean), gap.half_width)
        return f"the policy costs {apart} {'less' if gap.mean < 0.0 else 'more'}"
    if gap.mean == gap.half_width == 0.0:
        return "the policy costs the same"
    apart = interval_text(gap.mean, gap.half_width, sign="+")
    return f"the difference, {apart}, is within noise"


def _is_better(gap: Difference, cost: Estimate) -> bool:
    return gap.is_clear and gap.mean < -tolerances.SAME_COST * abs(cost.mean)


def _is_same(gap: Difference, cost: Estimate) -> bool:
    return abs(gap.mean) + gap.half_width <= tolerances.SAME_COST * abs(cost.mean)
