"""What the runs behind all tables and figures share: solving, exact costs, simulated costs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bellweight import exact
from bellweight.basis import Basis
from bellweight.common.status import BellweightWarning, Status
from bellweight.evaluation.evaluate import Evaluation, evaluate
from bellweight.models import TabularModel
from bellweight.policies import Policy
from bellweight.reproduce.artefact import Settings
from bellweight.solve import Result, solve
from bellweight.weights.loop import Method


@contextmanager
def without_warnings() -> Iterator[None]:
    """Leave out warnings of Bellweight: the tables say themselves what these would say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BellweightWarning)
        yield


def solved(model: Any, basis: Basis, method: Method, **options: Any) -> Result:
    """Return what `solve` finds, not judged; `options` are its arguments.

    A run that Ctrl-C cut short is Ctrl-C for everything.
    """
    with without_warnings():
        result = solve(model, basis, method, judge=False, **options)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def exact_cost(model: TabularModel, policy: Policy, horizon: int | None = None) -> float:
    """Return the exact cost of a policy from the initial distribution."""
    return float(model.initial @ exact.policy_value(model, policy, horizon))


def simulated_cost(model: Any, policy: Policy, settings: Settings, horizon: int) -> Evaluation:
    """Return the cost of a policy over as many episodes as the settings say."""
    return evaluate(
        model,
        policy,
        settings.episodes,
        horizon=horizon,
        seed=settings.seed,
        jobs=settings.jobs,
    )
