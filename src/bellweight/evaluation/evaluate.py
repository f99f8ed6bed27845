"""What a policy costs, by simulation: every estimate carries its error.

A cost over `horizon` steps leaves out a tail. On a tabular model the tail is computed, not guessed:
discount^horizon times the expected value of the state reached then. On other models it is bounded
if the model declares by how much the expected cost can grow in a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bellweight.backends import Estimate, backend_of
from bellweight.common import checks, files
from bellweight.common.checks import FloatArray
from bellweight.common.short import value_text
from bellweight.common.status import ArgumentError
from bellweight.display import Column, Table, interval_text, short_text
from bellweight.display.charts import Picture
from bellweight.display.cost_charts import Between, difference_chart, gap_chart
from bellweight.display.presentable import Pictures, Presentable
from bellweight.models import LinearModel, Model
from bellweight.policies import Greedy, HasPolicy, Policy, policy_of
from bellweight.simulation import (
    Episodes,
    Finished,
    default_horizon,
    episode_costs,
    mean_and_half_width,
)

_FIRST_EPISODES = 4_096
_MOST_EPISODES = 100_000_000
_MOST_LONGER = 20  # corrections of the horizon; two are the rule


@files.storable("Evaluation")
@dataclass(frozen=True)
class Evaluation(Presentable):
    """The mean discounted cost of episodes, with its error.

    Attributes:
        mean: over the episodes.
        half_width: of the 95 % confidence interval.
        episodes: how many were simulated.
        horizon: steps of each.
        tail_bound: bounds the expected discounted cost after the horizon; None when none is known.
        seed: that decided the random numbers.
        tail_reason: why no bound on the tail is known.

    Examples:
        >>> found = bw.evaluate(bw.problems.single_queue(capacity=30), bw.Uniform(), 100, seed=1)
        >>> found.half_width > 0.0
        True
    """

    mean: float
    half_width: float
    episodes: int
    horizon: int
    tail_bound: float | None
    seed: int
    tail_reason: str = ""

    @property
    def estimate(self) -> Estimate:
        """The mean and its half-width alone."""
        return Estimate(self.mean, self.half_width)

    def table(self) -> Table:
        """Return the estimate and its errors as a table of one row."""
        return _table("Simulated cost", [self._row()], _COST_COLUMNS)

    def pictures(self) -> Pictures:
        """Return the estimate with its interval."""
        found = Between("simulated", self.mean, self.half_width)
        return {"cost": lambda: (gap_chart([found]),)}

    def _row(self) -> dict[str, Any]:
        interval = interval_text(self.mean, self.half_width)
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**numbers, "interval": interval}

    def records(self) -> Table:
        """Return the numbers of `table` without its texts."""
        return _numbers(self.table())

    def __str__(self) -> str:
        tail, joined = "tail unknown", ": "
        if self.tail_bound is not None:
            tail, joined = f"tail at most {short_text(self.tail_bound, 2)}", " "
        tail += f"{joined}{self.tail_reason}" if self.tail_reason else ""
        return (
            f"{interval_text(self.mean, self.half_width)} "
            f"({self.episodes:,} episodes of {self.horizon} steps, seed {self.seed}; {tail})"
        )


@files.storable("Difference")
@dataclass(frozen=True)
class Difference:
    """A mean paired difference in cost with its 95 % half-width; negative is better."""

    mean: float
    half_width: float

    @property
    def is_clear(self) -> bool:
        """Return whether the interval excludes zero."""
        return abs(self.mean) > self.half_width

    def __str__(self) -> str:
        return interval_text(self.mean, self.half_width, sign="+")


@files.storable("Comparison")
@dataclass(frozen=True, repr=False)
class Comparison(Presentable, files.Saved, files.Checked):
    """Evaluations on the same random numbers, and paired differences to the baseline."""

    evaluations: Mapping[str, Evaluation]
    differences: Mapping[str, Difference]
    baseline: str

    def stored_fault(self) -> str:
        known = self.evaluations.keys() == self.differences.keys()
        return "" if known and self.baseline in self.evaluations else "policies are missing"

    def table(self) -> Table:
        """Return one row for each policy: its cost, and its difference to the baseline."""
        rows = [
            {
                "policy": name,
                **found._row(),
                "difference": self.differences[name].mean,
                "difference_half_width": self.differences[name].half_width,
                "paired": None if name == self.baseline else self.differences[name],
            }
            for name, found in self.evaluations.items()
        ]
        columns = (
            Column("policy", "policy", right=False),
            *(replace(c, show=None) if c.key in _COMMON else c for c in _COST_COLUMNS),
            Column("difference", "", None),
            Column("difference_half_width", "", None),
            Column("paired", f"minus {self.baseline}"),
        )
        one = next(iter(self.evaluations.values()))
        title = (
            f"Policies on the same random numbers: {one.episodes:,} episodes of {one.horizon} "
            f"steps, seed {one.seed}"
        )
        return _table(title, rows, columns)

    def records(self) -> Table:
        """Return the numbers of `table` without its texts."""
        return _numbers(self.table())

    def pictures(self) -> Pictures:
        """Return the costs, and the paired differences to the baseline."""
        return {"cost": self._costs, "difference": self._paired}

    def _costs(self) -> tuple[Picture, ...]:
        found = [Between(name, e.mean, e.half_width) for name, e in self.evaluations.items()]
        return (gap_chart(found),)

    def _paired(self) -> tuple[Picture, ...]:
        gaps = {n: (d.mean, d.half_width) for n, d in self.differences.items()}
        del gaps[self.baseline]
        title = f"Cost minus that of {self.baseline}, on the same random numbers"
        if not gaps:
            return ()
        return (difference_chart("difference", title, self.baseline, gaps, "paired difference"),)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.evaluations)}>"

    def __str__(self) -> str:
        width = max(len(name) for name in self.evaluations)
        lines = [f"{'policy':{width}}  {'cost':>24}  {'minus ' + self.baseline:>24}"]
        for name, found in self.evaluations.items():
            gap = self.differences[name]
            cost = interval_text(found.mean, found.half_width)
            paired = "" if name == self.baseline else str(gap)
            lines.append(f"{name:{width}}  {cost:>24}  {paired:>24}".rstrip())
        return "\n".join(lines)


_COST_COLUMNS = (
    Column("mean", "", None),
    Column("half_width", "", None),
    Column("interval", "cost, 95 % interval"),
    Column("tail_bound", "tail at most", lambda value: short_text(value, 2)),
    Column("tail_reason", "", None),
    Column("episodes", "episodes", lambda value: f"{value:,}"),
    Column("horizon", "steps", lambda value: f"{value:,}"),
    Column("seed", "seed"),
)


_TAIL = "The tail is the cost after the last step, which is not simulated."
_COMMON = ("episodes", "horizon", "seed")  # the same for all policies of a comparison
_TEXTS = ("interval", "paired")


def _numbers(told: Table) -> Table:
    return replace(told, columns=tuple(c for c in told.columns if c.key not in _TEXTS))


def _table(title: str, rows: Sequence[dict[str, Any]], columns: tuple[Column, ...]) -> Table:
    reasons = dict.fromkeys(f"Tail: {row['tail_reason']}." for row in rows if row["tail_reason"])
    known = any(row["tail_bound"] is not None for row in rows)
    return Table(title, columns, tuple(rows), (*(_TAIL,) * known, *reasons))


def evaluate(
    model: Model,
    policy: Policy | HasPolicy,
    episodes: int | None = None,
    *,
    half_width: float | None = None,
    horizon: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    resume: Finished | None = None,
) -> Evaluation:
    """Return the simulated discounted cost of a policy from the model's initial distribution.

    Args:
        model: the model in which the policy acts.
        policy: a policy, or a result that has one.
        episodes: how many are simulated; 10,000 by default.
        half_width: instead of `episodes`, the half-width of the 95 % interval to reach.
        horizon: steps per episode. By default the first at which discount^horizon falls below
            0.001 and, with `half_width`, the tail below it.
        seed: decides the random numbers.
        jobs: how many workers simulate; all cores by default. The numbers do not depend on it.
        resume: the `finished` blocks of a `WorkerError`.

    Returns:
        The mean cost with its half-width, and a bound on what comes after the horizon.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> found = bw.evaluate(queue, bw.Uniform(), episodes=200, horizon=50, seed=1)
        >>> found.episodes, found.horizon
        (200, 50)
    """
    steps = steps_of(model, horizon)
    policy = policy_of(policy)
    rollout = rollout_of(model, policy)
    if half_width is None:
        n = checks.count(10_000 if episodes is None else episodes, "episodes", least=2)
        costs = episode_costs(rollout, 0, n, steps, seed, jobs, resume)
    elif episodes is not None:
        raise ArgumentError("give episodes or half_width, not both")
    else:
        target = checks.positive(half_width, "half_width")
        longer = long_enough(model, policy, target, steps)
        if horizon is not None and longer > steps:
            raise ArgumentError(
                f"horizon {steps} leaves out more than half_width {target:g}: use a horizon of "
                f"about {longer}, or leave it out"
            )
        steps = longer
        costs = _until(rollout, target, steps, seed, jobs, resume)
    return _evaluation(costs, steps, seed, backend_of(model).tail(policy, steps))


def compare(
    model: Model,
    policies: Mapping[str, Policy | HasPolicy],
    episodes: int = 10_000,
    *,
    baseline: str | None = None,
    horizon: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> Comparison:
    """Evaluate policies on the same random numbers, so that small differences become visible.

    Args:
        model: the model in which they act.
        policies: names with their policies or results.
        episodes: how many are simulated for each.
        baseline: the name of the policy that others are compared with; the first by default.
        horizon: steps per episode, as in `evaluate`.
        seed: decides the random numbers.
        jobs: how many workers simulate; all cores by default.

    Returns:
        The evaluations by name, and the paired differences to the baseline with their intervals.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Polynomial(3), bw.DIA())
        >>> found = bw.compare(queue, {"ours": result, "any": bw.Uniform()}, episodes=200, seed=1)
        >>> found.differences["any"].is_clear
        True
    """
    acting = by_name(policies)
    reference = next(iter(policies)) if baseline is None else baseline
    if reference not in policies:
        raise ArgumentError(f"baseline is {reference!r}, expected one of {list(policies)}")
    steps = steps_of(model, horizon)
    n = checks.count(episodes, "episodes", least=2)
    costs = {
        name: episode_costs(rollout_of(model, policy), 0, n, steps, seed, jobs)
        for name, policy in acting.items()
    }
    return Comparison(
        evaluations={
            name: _evaluation(costs[name], steps, seed, backend_of(model).tail(policy, steps))
            for name, policy in acting.items()
        },
        differences={
            name: Difference(*mean_and_half_width(costs[name] - costs[reference]))
            for name in policies
        },
        baseline=reference,
    )


def compare_ties(
    model: LinearModel,
    policy: Greedy,
    episodes: int = 1_000,
    *,
    rules: int = 3,
    horizon: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> Comparison:
    """Evaluate a greedy policy of a linear model under several ways to break its ties.

    The ways: the model's own preference and its opposite, as little and as much action as possible,
    and random preferences. All are optimal for the value function; a wide range of costs says that
    the value function does not decide the policy.
    """
    if not backend_of(model).acts_by_vectors or not isinstance(policy, Greedy):
        raise ArgumentError("compare_ties takes a LinearModel and a Greedy policy, as in a result")
    m = model.n_action_variables
    rng = np.random.default_rng(seed)
    own = np.zeros(m) if model.preference is None else model.preference
    ways = {"model's own": own, "its opposite": -own, "least action": np.ones(m),
            "most action": -np.ones(m)}  # fmt: skip
    ways |= {
        f"random {k + 1}": rng.standard_normal(m) for k in range(checks.count(rules, "rules", 0))
    }
    policies = {name: replace(policy, preference=way, model=model) for name, way in ways.items()}
    return compare(model, policies, episodes, horizon=horizon, seed=seed, jobs=jobs)


def by_name(policies: Mapping[str, Policy | HasPolicy]) -> dict[str, Policy]:
    """Return policies, those of results too, by name; raise an error where there is none."""
    if not isinstance(policies, Mapping) or not policies:
        raise ArgumentError(
            f"policies is {value_text(policies)}, expected at least one name with its policy: "
            'pass {"name": policy}'
        )
    return {name: policy_of(policy) for name, policy in policies.items()}


def steps_of(model: Model, horizon: int | None) -> int:
    """Return the steps of an episode: those asked for, by default enough to leave out little."""
    discount = backend_of(model).model.discount
    return default_horizon(discount) if horizon is None else checks.count(horizon, "horizon")


def rollout_of(model: Model, policy: Policy) -> Episodes:
    """Lay out a model and a policy for simulation."""
    policy_of(policy)
    return backend_of(model).episodes(policy)


def _until(
    rollout: Episodes, target: float, horizon: int, seed: int, jobs: int | None,
    finished: Finished | None,
) -> FloatArray:  # fmt: skip
    """Simulate until the half-width is at most the target, adding the episodes that it needs."""
    costs = episode_costs(rollout, 0, _FIRST_EPISODES, horizon, seed, jobs, finished)
    while (width := mean_and_half_width(costs)[1]) > target:
        wanted = int(1.05 * len(costs) * (width / target) ** 2) + 1
        if wanted > _MOST_EPISODES:
            raise ArgumentError(
                f"half_width {target:g} needs about {wanted:.2g} episodes, more than "
                f"{_MOST_EPISODES:.0e}: ask for a wider interval"
            )
        more = episode_costs(rollout, len(costs), wanted, horizon, seed, jobs, finished)
        costs = np.concatenate([costs, more])
    return costs


def long_enough(model: Model, policy: Policy, target: float, steps: int) -> int:
    """Return a horizon, of some steps at least, whose tail is within the target where known."""
    for _ in range(_MOST_LONGER):
        tail = backend_of(model).tail(policy, steps)[0]
        if tail is None or tail <= target:
            break
        steps += max(1, int(np.ceil(np.log(target / tail) / np.log(model.discount))))
    return steps


def _evaluation(
    costs: FloatArray, horizon: int, seed: int, tail: tuple[float | None, str]
) -> Evaluation:
    mean, width = mean_and_half_width(costs)
    return Evaluation(mean, width, len(costs), horizon, tail[0], seed, tail[1])
