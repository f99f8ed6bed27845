"""The gap of a policy, from its certificate and, if asked for, from information relaxation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bellweight.backends import backend_of
from bellweight.certificates.certifying import certify
from bellweight.certificates.path_program import is_network, path_bound
from bellweight.certificates.relaxation import (
    RelaxedBound,
    TooManyStatesError,
    checked_steps,
    relaxed_bound,
)
from bellweight.certificates.upper_cost import chosen_episodes, upper_cost
from bellweight.common import checks
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.results.gap import Gap, proves
from bellweight.solve import Result

_RELAXED = (
    "the lower bound is what somebody would pay on average who knows the future, by information "
    "relaxation on {} simulated paths, if no step costs less than 0; the policy's cost is simulated"
)
_MORE_PATHS = "more paths, a basis with more functions, a better policy, more episodes"


@proves
def found_gap(
    model: Model,
    result: Result,
    policy: Policy | None,
    *,
    episodes: int | None,
    confidence: float,
    paths: int,
    horizon: int | None,
    seed: int | None,
    jobs: int | None,
    kept_in: str | os.PathLike[str] | None,
) -> Gap:
    """Return what is known about the loss of a policy: see `Result.gap`, which has the defaults."""
    relaxed = checks.count(paths, "paths", least=0) > 0 and not backend_of(model).lists_states
    # Two simulated limits hold together with the confidence if each may fail half as often.
    each = 0.5 * (1.0 + checks.positive(confidence, "confidence", below=1.0))
    seed = result.fresh_seed if seed is None else checks.count(seed, "seed", least=0)
    if relaxed:
        checked_steps(model, paths, horizon, each)  # before the certificate takes its time

    settings: dict[str, Any] = {"seed": seed, "jobs": jobs}
    found = certify(model, result, policy, episodes=episodes, confidence=confidence, **settings).gap
    if not relaxed:
        return found
    bound = _relaxed(
        model, result, paths=paths, horizon=horizon, confidence=each, kept_in=kept_in, **settings
    ).bound
    certain = found.lower_bound_kind == "exact"  # of the model itself, not of one with nodes
    if found.lower_bound is not None and certain and found.lower_bound >= bound:
        return found
    simulated = policy or result.policy
    n = chosen_episodes(episodes, model, simulated)
    cost, _, unknown = upper_cost(model, simulated, n, each, **settings)
    if unknown:
        return Gap(cost, bound, "unproven", unknown, _MORE_PATHS, None, "estimated")
    proof = _RELAXED.format(f"{paths:,}")
    return Gap(cost, bound, "estimated", proof, _MORE_PATHS, confidence, "estimated")


def _relaxed(
    model: Model, result: Result, *, kept_in: str | os.PathLike[str] | None, **settings: Any
) -> RelaxedBound:
    """Return the bound over reachable states, or by programs where a network has too many."""
    try:
        return relaxed_bound(model, result, kept_in=kept_in, **settings)
    except TooManyStatesError:
        if not is_network(model):
            raise
    other = None if kept_in is None else Path(kept_in).with_suffix(".programs")
    return path_bound(model, kept_in=other, **settings)
