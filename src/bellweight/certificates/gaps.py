"""The gap of a policy, from its certificate and, if asked for, from information relaxation."""

from __future__ import annotations

from dataclasses import replace

from bellweight.backends import backend_of
from bellweight.certificates.certificate import certify
from bellweight.certificates.relaxation import relaxed_bound
from bellweight.certificates.upper_cost import upper_cost
from bellweight.common import checks
from bellweight.models import Model
from bellweight.policies import Policy
from bellweight.results.gap import Gap, proves
from bellweight.solve import Result

_RELAXED = (
    "the lower bound is what somebody would pay on average who knows the future, by information "
    "relaxation on {} simulated paths; the policy's cost is simulated"
)
_MORE_PATHS = "more paths, a basis with more functions, a better policy, more episodes"


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
) -> Gap:
    """Return what is known about the loss of a policy; see `Result.gap`."""
    relaxed = checks.count(paths, "paths", least=0) > 0 and not backend_of(model).lists_states
    # Two simulated limits hold together with the confidence if each may fail half as often.
    each = 0.5 * (1.0 + checks.positive(confidence, "confidence", below=1.0))
    seed = result.fresh_seed if seed is None else checks.count(seed, "seed", least=0)
    found = certify(
        model, result, policy, episodes=episodes, confidence=confidence, seed=seed, jobs=jobs
    ).gap
    if found.lower_bound is None and result.lower_bound is not None:
        found = replace(found, lower_bound=result.lower_bound)
    if not relaxed:
        return found
    bound = relaxed_bound(
        model, result, paths=paths, horizon=horizon, confidence=each, seed=seed, jobs=jobs
    )
    if found.lower_bound is not None and found.lower_bound >= bound.bound:
        return found
    judged = policy or result.policy
    cost, _, unknown = upper_cost(model, judged, episodes, each, seed=seed, jobs=jobs)
    found = replace(found, cost=cost, lower_bound=bound.bound, lower_bound_kind="estimated")
    if unknown:
        return replace(found, kind="unproven", proof=unknown, confidence=None)
    proof = _RELAXED.format(f"{paths:,}")
    return replace(found, kind="estimated", proof=proof, advice=_MORE_PATHS, confidence=confidence)
