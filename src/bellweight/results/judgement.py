"""What a policy costs, beside acting at random and beside the method's target.

A status speaks of the weights and the program; a judgement speaks of the policy. On tabular models
costs are exact. Elsewhere all policies are simulated on the same random numbers, from streams that
the weight loop did not use. The budget is a number of steps, not of seconds, so that a seed gives
the same numbers on every machine: `COMPILED_STEPS` for each policy, about a second for all of them,
and far fewer where the general solver has to find every action of a linear model.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bellweight.backends.backend import Bench, SimulatedBench
from bellweight.common import files
from bellweight.common.checks import FloatArray
from bellweight.common.status import PolicyError
from bellweight.common.streams import Keys, derived_seed, stream_keys
from bellweight.display import interval_text
from bellweight.evaluation import exact
from bellweight.evaluation.evaluate import Difference, tail_of
from bellweight.evaluation.occupancy import exact_occupancy
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.policies.linear_actions import GreedyChooser
from bellweight.policies.policy import Greedy, Model, Policy, Uniform
from bellweight.program.priced_rows import LinearRows
from bellweight.simulation.episodes import (
    Task,
    episode_costs,
    mean_and_half_width,
    rollout_of,
    run_blocks,
)
from bellweight.simulation.linear_episodes import LinearRollout

COMPILED_STEPS = 500_000
"""Simulated steps for each policy where actions are found by compiled code."""

PLAIN_STEPS = 5_000
"""The same for event models that run as plain Python."""

SOLVED_STEPS = 25_000
"""Where the general solver finds them: this many over the squared number of action variables."""

_FEWEST_SOLVED, _MOST_SOLVED = 200, 4_000
_FEWEST_EPISODES, _MOST_EPISODES = 8, 10_000
_STREAM = 71  # the branch of a seed that judging draws from
_SAME_COST = 1e-9  # relative difference of costs that is rounding
_NEARLY_OPTIMAL = 1e-3  # share of the cost; a policy proven this good needs no comparison
_OFTEN_OUTSIDE = 0.01  # share of visited states outside the box that is worth a warning


@files.storable
@dataclass(frozen=True)
class Estimate:
    """An expected cost with its 95 % half-width, which is 0 where the cost is exact."""

    mean: float
    half_width: float = 0.0

    def __str__(self) -> str:
        return interval_text(self.mean, self.half_width)


@files.storable
@dataclass(frozen=True)
class Outside:
    """The share of visited states outside the box of a linear model's rows.

    `variable` is the one farthest outside, `reached` its farthest value, `lower` to `upper` its
    box.
    """

    share: float
    variable: str
    reached: float
    lower: float
    upper: float


@files.storable
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
    def is_exact(self) -> bool:
        """Whether costs were computed, not simulated."""
        return self.episodes == 0


def judge(
    bench: Bench,
    policy: Greedy,
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
    model = bench.model
    rivals = _Rivals(model, target)
    if isinstance(model, TabularModel):
        own = _exact_cost(model, policy) if cost is None else cost
        found = _exactly(model, own, rivals)
    else:
        assert isinstance(bench, SimulatedBench)
        found = _simulated(bench, policy, rivals)
    judgement = replace(found, seconds=time.perf_counter() - began)
    notes = [_outside_note(judgement.outside)]
    if not _is_nearly_optimal(judgement, lower_bound):
        notes.append(_random_note(model, judgement) or _target_note(judgement))
    return judgement, tuple(note for note in notes if note)


class _Rivals:
    """The policies to compare with: acting at random and the target, each where there is one."""

    def __init__(self, model: Model, target: Policy | None) -> None:
        self.target_is_random = isinstance(target, Uniform)
        self.policies: dict[str, Policy] = {}
        self.reason = _no_random(model)
        if not self.reason:
            self.policies["random"] = Uniform()
        if target is not None and not self.target_is_random:
            self.policies["target"] = target


def _no_random(model: Model) -> str:
    """Return why nobody can act at random in a model; nothing where it is possible."""
    if not isinstance(model, LinearModel):
        return ""
    try:
        Uniform().chooser(model).worker()
    except PolicyError as problem:
        return str(problem)
    return ""


def _exact_cost(model: TabularModel, policy: Policy) -> float:
    return float(model.initial @ exact.policy_value(model, policy))


def _exactly(model: TabularModel, own: float, rivals: _Rivals) -> Judgement:
    costs = {name: _exact_cost(model, policy) for name, policy in rivals.policies.items()}
    return Judgement(
        cost=Estimate(own),
        **_sides(
            {name: Estimate(cost) for name, cost in costs.items()},
            {name: Difference(own - cost, 0.0) for name, cost in costs.items()},
        ),
        target_is_random=rivals.target_is_random,
        random_reason=rivals.reason,
    )


def _simulated(bench: SimulatedBench, policy: Greedy, rivals: _Rivals) -> Judgement:
    model, jobs = bench.model, bench.jobs
    episodes, horizon = _budget(model, policy, bench.simulation.steps(model.discount))
    seed = derived_seed(bench.seed, _STREAM)

    def simulated(one: Policy) -> FloatArray:
        return episode_costs(rollout_of(model, one), 0, episodes, horizon, seed, jobs)

    outside = None
    if isinstance(bench.rows, LinearRows):
        own, outside = _watched(bench.rows, policy, episodes, horizon, seed, jobs)
    else:
        own = simulated(policy)
    costs = {name: simulated(rival) for name, rival in rivals.policies.items()}
    return Judgement(
        cost=Estimate(*mean_and_half_width(own)),
        **_sides(
            {name: Estimate(*mean_and_half_width(cost)) for name, cost in costs.items()},
            {name: Difference(*mean_and_half_width(own - cost)) for name, cost in costs.items()},
        ),
        target_is_random=rivals.target_is_random,
        random_reason=rivals.reason,
        horizon=horizon,
        episodes=episodes,
        seed=seed,
        tail_bound=tail_of(model, policy, horizon)[0],
        outside=outside,
    )


def _sides(costs: dict[str, Estimate], gaps: dict[str, Difference]) -> dict[str, Any]:
    """Return the fields of a judgement about the policies compared with, None where missing."""
    found: dict[str, Any] = {name: costs.get(name) for name in ("random", "target")}
    return found | {f"minus_{name}": gaps.get(name) for name in ("random", "target")}


def _budget(model: EventModel | LinearModel, policy: Greedy, longest: int) -> tuple[int, int]:
    """Return episodes and steps of each; episodes are shortened where too few would fit."""
    steps = COMPILED_STEPS
    if isinstance(model, EventModel) and not model.compiled:
        steps = PLAIN_STEPS
    if isinstance(model, LinearModel) and _needs_solver(model, policy):
        wanted = SOLVED_STEPS // model.n_action_variables**2
        steps = min(max(wanted, _FEWEST_SOLVED), _MOST_SOLVED)
    horizon = min(longest, steps // _FEWEST_EPISODES)
    return min(steps // horizon, _MOST_EPISODES), horizon


def _needs_solver(model: LinearModel, policy: Greedy) -> bool:
    chooser = policy.chooser(model)
    return isinstance(chooser, GreedyChooser) and chooser.kernel() is None


class _Watch:
    """Counts the visited states that lie outside a box, and how far out they are."""

    def __init__(self, box: tuple[FloatArray, FloatArray]) -> None:
        self.low, self.high = box
        self.visits = self.outside = 0
        self.least, self.most = np.array(self.low), np.array(self.high)

    def see(self, states: FloatArray) -> None:
        """Look at the states (n, d) of one step."""
        beyond = (states < self.low) | (states > self.high)
        self.visits += len(states)
        self.outside += int(beyond.any(axis=1).sum())
        self.least = np.minimum(self.least, states.min(axis=0))
        self.most = np.maximum(self.most, states.max(axis=0))


@dataclass(frozen=True, eq=False)
class _WatchedRollout:
    """A linear model's rollout that also tells which visited states are outside the box."""

    rollout: LinearRollout
    box: tuple[FloatArray, FloatArray]

    def block(self, first: int, last: int, horizon: int, keys: Keys) -> tuple[FloatArray, _Watch]:
        watch = _Watch(self.box)
        return self.rollout.watched(first, last, horizon, keys, watch.see), watch


def _watched(
    rows: LinearRows, policy: Policy, episodes: int, horizon: int, seed: int, jobs: int | None
) -> tuple[FloatArray, Outside | None]:
    """Return the costs of episodes, and how far they leave the box of the rows."""
    model = rows.model
    rollout = _WatchedRollout(LinearRollout(model, policy.chooser(model)), rows.box)
    blocks = run_blocks(Task(rollout.block, horizon, stream_keys(seed)), 0, episodes, jobs)
    costs = np.concatenate([block[0] for block in blocks])
    watches = [block[1] for block in blocks]
    outside = sum(watch.outside for watch in watches)
    if outside == 0:
        return costs, None
    low, high = rows.box
    least = np.min([watch.least for watch in watches], axis=0)
    most = np.max([watch.most for watch in watches], axis=0)
    k = int(np.argmax(np.maximum(low - least, most - high)))
    reached = most[k] if most[k] - high[k] >= low[k] - least[k] else least[k]
    share = outside / sum(watch.visits for watch in watches)
    numbers = (float(reached), float(low[k]), float(high[k]))
    return costs, Outside(share, model.state_names[k], *numbers)


def _is_nearly_optimal(found: Judgement, lower_bound: float | None) -> bool:
    cost = found.cost.mean
    proven = found.is_exact and lower_bound is not None
    return proven and cost - lower_bound <= _NEARLY_OPTIMAL * abs(cost)  # type: ignore[operator]


def _random_note(model: Model, found: Judgement) -> str:
    """Say that the policy is no better than acting at random, where that is so."""
    gap, random = found.minus_random, found.random
    if gap is None or random is None or _is_better(gap, found.cost):
        return ""
    costs = f"it costs {found.cost}, Uniform() {random}{_paired(found, gap)}"
    if _is_same(gap, found.cost):
        if not isinstance(model, TabularModel) or _random_is_best(model):
            return ""  # the actions make no difference
        return (
            f"the policy costs as much as acting at random, {found.cost}, though better policies "
            f"exist: the value function does not tell good actions from bad; {_remedy(model)}"
        )
    if gap.is_clear:
        return (
            f"the policy is worse than acting at random: {costs}; the value function misleads it: "
            f"{_remedy(model)}"
        )
    return (
        f"the policy is not clearly better than acting at random: {costs}; compare them on more "
        f"episodes with bellweight.compare, or {_remedy(model)}"
    )


def _target_note(found: Judgement) -> str:
    """Say that the policy is no better than the target of its method, where that is so."""
    gap, target = found.minus_target, found.target
    if gap is None or target is None or _is_better(gap, found.cost):
        return ""
    if _is_same(gap, found.cost):
        return ""  # as a rule it is the target's policy: the printed costs say so
    costs = f"it costs {found.cost}, the target {target}{_paired(found, gap)}"
    instead = "act by the target itself, or try a richer basis or another method"
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
        f"{outside.upper:g}, and no row of the program speaks of what lies beyond: solve over a "
        "larger box, PricedRows(lower=..., upper=...)"
    )


def _paired(found: Judgement, gap: Difference) -> str:
    if found.is_exact:
        return ""
    apart = interval_text(gap.mean, gap.half_width, sign="+")
    return f" over {found.horizon:,} steps (paired difference {apart})"


def _is_better(gap: Difference, cost: Estimate) -> bool:
    return gap.is_clear and gap.mean < -_SAME_COST * abs(cost.mean)


def _is_same(gap: Difference, cost: Estimate) -> bool:
    return abs(gap.mean) + gap.half_width <= _SAME_COST * abs(cost.mean)


def _random_is_best(model: TabularModel) -> bool:
    """Return whether no action is better than a random one in any state that is reached."""
    values = exact.policy_value(model, Uniform())
    ahead = model.cost + model.discount * (model.transition @ values)
    better = ahead < values[model.pair_state] - _SAME_COST * np.abs(values).max()
    reached = exact_occupancy(model, Uniform()).weights
    assert reached is not None
    return not (better & (reached[model.pair_state] > 0.0)).any()


def _remedy(model: Model) -> str:
    weights = "other weights (another method, or another target of DIA)"
    if isinstance(model, LinearModel):
        return (
            f"try {weights}, bounds on the coefficients such as Affine(lower=0.0), or Auto(); "
            "bellweight.compare_ties(model, result.policy) tells whether ties decide it"
        )
    states = ", more constraint states" if isinstance(model, EventModel) else ""
    return f"try another basis, {weights}{states}, or let Auto() choose"
