"""An upper confidence limit of what a policy costs over all time, by simulation."""

from __future__ import annotations

import numpy as np

from bellweight.evaluation.evaluate import evaluate
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.simulation import one_sided

HORIZON = "the cost after the horizon is not known"
_TAIL_SHARE = 1e-3  # of the cost: the simulated horizon leaves out no more


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
    found = evaluate(model, policy, episodes, seed=seed, jobs=jobs)
    if found.tail_bound is None:
        return found.mean, None, f"{HORIZON}: {found.tail_reason}"
    horizon = found.horizon
    wanted = _TAIL_SHARE * max(abs(found.mean), 1e-300)
    while found.tail_bound is not None and found.tail_bound > wanted:
        longer = np.log(wanted / found.tail_bound) / np.log(model.discount)
        horizon += int(np.ceil(longer)) + 1
        found = evaluate(model, policy, episodes, horizon=horizon, seed=seed, jobs=jobs)
    margin = one_sided(found.half_width, episodes, confidence)
    return found.mean + margin + (found.tail_bound or 0.0), horizon, ""
