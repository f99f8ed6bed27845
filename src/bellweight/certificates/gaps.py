"""The gap of a policy, from its certificate and, if asked for, from information relaxation."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from bellweight.backends import backend_of
from bellweight.certificates.certificate import certify
from bellweight.certificates.path_program import is_network, path_bound
from bellweight.certificates.relaxation import RelaxedBound, TooManyStatesError, relaxed_bound
from bellweight.certificates.upper_cost import upper_cost
from bellweight.common import checks
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.results.gap import Gap, proves
from bellweight.solve import Result

_RELAXED = (
    "the lower bound is what somebody would pay on average who knows the future, by information "
    "relaxation on {} simulated paths, if no step costs less than 0; the policy's cost is simulated"
)
_OF_THE_RUN = "of the lower bound: {}; the policy's cost is simulated"
_OTHER_MODEL = "of the lower bound: {}, which is not the model that the policy is simulated on"
_MORE_PATHS = "more paths, a basis with more functions, a better policy, more episodes"
_FINER = "a basis with more functions, rows at more states, a better policy, more episodes"


@proves
def found_gap(
    model: Model,
    result: Result,
    policy: Policy | None = None,
    *,
    episodes: int = 10_000,
    confidence: float = 0.95,
    paths: int = 0,
    horizon: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    kept_in: str | os.PathLike[str] | None = None,
) -> Gap:
    """Return what is known about the loss of a policy; see `Result.gap`."""
    relaxed = checks.count(paths, "paths", least=0) > 0 and not backend_of(model).lists_states
    # Two simulated limits hold together with the confidence if each may fail half as often.
    each = 0.5 * (1.0 + checks.positive(confidence, "confidence", below=1.0))
    seed = result.fresh_seed if seed is None else checks.count(seed, "seed", least=0)

    def simulated(bound: float, kind: str, proof: str, advice: str, sure: float) -> Gap:
        """Return the gap below a simulated cost, which holds with a confidence of its own."""
        judged = policy or result.policy
        cost, _, unknown = upper_cost(model, judged, episodes, sure, seed=seed, jobs=jobs)
        if unknown:
            return Gap(cost, bound, "unproven", unknown, advice, None, kind)
        return Gap(cost, bound, "estimated", proof, advice, confidence, kind)

    found = certify(
        model, result, policy, episodes=episodes, confidence=confidence, seed=seed, jobs=jobs
    ).gap
    own, kind, reason = result.lower_bound, result.lower_bound_kind, result.lower_bound_reason
    if found.lower_bound is None and own is not None and kind == "exact":
        found = simulated(own, kind, _OF_THE_RUN.format(reason), _FINER, confidence)
    elif found.lower_bound is None and own is not None:
        told = _OTHER_MODEL.format(reason)
        found = replace(found, lower_bound=own, lower_bound_kind=kind, proof=told, advice=_FINER)
    if not relaxed:
        return found
    bound = _relaxed(
        model, result, paths=paths, horizon=horizon, confidence=each, seed=seed, jobs=jobs,
        kept_in=kept_in,
    ).bound  # fmt: skip
    if found.lower_bound is not None and found.lower_bound >= bound:
        return found
    return simulated(bound, "estimated", _RELAXED.format(f"{paths:,}"), _MORE_PATHS, each)


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
