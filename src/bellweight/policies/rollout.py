"""A policy improved by one step: in every decision its future is simulated after each choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellweight.common import checks, files
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, PolicyError
from bellweight.common.streams import stream_keys
from bellweight.models import TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.models.kernels.layouts import Lookahead
from bellweight.policies.compiled import CompiledPolicy, compiled_lookahead
from bellweight.policies.policy import Policy

_FIRST = 16  # paths before a decision looks for the first time
_PROMISING = 1.0  # standard errors below zero that a choice must show to be worth all paths
_STREAM = 7  # the branch of the seed that decisions are simulated with
_LEFT = 0.01  # of the discounted weight: what comes after the horizon


@files.storable("Rollout")
@dataclass(frozen=True, eq=False)
class Rollout(Policy):
    """One step of policy improvement of `base` by paired simulation, in every decision.

    With J the cost of the base policy, it takes an action with a lower cost + discount E[J(next)]
    than the base's own. The difference is simulated: after each choice the base policy runs on the
    same random numbers, and a pair of runs ends when it meets in the same state. Fewer paths are
    used where nothing promises a gain.

    On event models with a table of chances the first step is averaged and not drawn, and choices
    that do not depend on each other, such as those of several servers, are made one by one. The
    same state always leads to the same decision. In simulations a random number means the same
    event whatever the action, which narrows paired differences: compare a rollout with
    `Rollout(base, paths=0)`, the base itself drawn in this way. For event and step models whose
    random numbers compiled code can draw.

    Args:
        base: the policy to improve.
        paths: pairs of runs for each choice of a decision, at most.
        horizon: steps of the longest run; by default until discount^horizon < 0.01.
        clear: standard errors by which a gain must differ from zero before the base is left.
            Without that test decisions would change by noise, and nothing would be gained.
        seed: decides the random numbers.
        model: the model in which it acts; `on(model)` fills it in.

    Examples:
        >>> bw.Rollout(bw.Uniform(), paths=64).paths
        64
    """

    base: Policy
    paths: int = 256
    horizon: int | None = None
    clear: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.base, Policy):
            raise ArgumentError(
                f"base is {self.base!r}, expected a bellweight policy: wrap a function in Rule"
            )
        if isinstance(self.base, Rollout):
            raise ArgumentError("base is a Rollout itself, expected a policy that is not simulated")
        if checks.count(self.paths, "paths", least=0) == 1:
            raise ArgumentError("paths is 1, expected at least 2: one path has no standard error")
        checks.at_least_zero(self.clear, "clear")
        checks.count(self.seed, "seed", least=0)
        if self.horizon is not None:
            checks.count(self.horizon, "horizon")

    def probabilities(self, model: TabularModel) -> FloatArray:
        raise PolicyError(
            "Rollout is for event and step models, whose values have to be simulated: on a tabular "
            "model use PIA(), or exact.optimal"
        )

    def compiled(self, model: FunctionModel) -> CompiledPolicy:
        steps = self.horizon or int(np.ceil(np.log(_LEFT) / np.log(model.discount)))
        key = stream_keys(self.seed, _STREAM)[:1]
        places = np.zeros(0) if model.event_places is None else model.event_places
        settings = Lookahead(self.paths, _FIRST, steps, float(self.clear), _PROMISING, key, places)
        return compiled_lookahead(self.base.compiled(model), settings)
