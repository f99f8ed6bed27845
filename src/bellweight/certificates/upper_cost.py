"""An upper confidence limit of what a policy costs over all time, by simulation."""

from __future__ import annotations

from bellweight.backends import backend_of
from bellweight.common import checks
from bellweight.evaluation.evaluate import evaluate, long_enough
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.simulation import default_horizon, one_sided

HORIZON = "the cost after the horizon is not known"
_TAIL_SHARE = 1e-3  # of the cost: the simulated horizon leaves out no more, about
_EPISODES = 10_000
_FEWEST = 8
_PROBED = 0.02  # share of the episodes whose mean says what is a small share of the cost
_STEPS = 10_000_000  # of all episodes by default, until discount^t is below 0.001
_LONGER = 50  # times what the judgement of `solve` takes, where steps take long


def chosen_episodes(episodes: int | None, model: Model, policy: Policy) -> int:
    """Return the number that was chosen, or by default fewer where episodes take long.

    The costs of long episodes differ less from each other, and the limit counts what they do.
    """
    if episodes is not None:
        return checks.count(episodes, "episodes", least=2)
    steps = min(_STEPS, _LONGER * backend_of(model).judging_steps(policy))
    return max(_FEWEST, min(_EPISODES, steps // default_horizon(model.discount)))


def upper_cost(
    model: Model,
    policy: Policy,
    episodes: int,
    confidence: float,
    *,
    seed: int,
    jobs: int | None = None,
) -> tuple[float, int | None, str]:
    """Return an upper confidence limit of the cost over all time, the horizon, or why not.

    Without a bound on the cost after the horizon the mean is returned, no horizon, and the reason.
    """
    n_probed = max(2, int(_PROBED * episodes))
    few = evaluate(model, policy, n_probed, seed=seed, jobs=jobs)
    small = _TAIL_SHARE * max(abs(few.mean), 1e-300)
    horizon = long_enough(model, policy, small, few.horizon)
    found = evaluate(model, policy, episodes, horizon=horizon, seed=seed, jobs=jobs)
    if found.tail_bound is None:
        return found.mean, None, f"{HORIZON}: {found.tail_reason}"
    margin = one_sided(found.half_width, episodes, confidence)
    return found.mean + margin + found.tail_bound, horizon, ""
