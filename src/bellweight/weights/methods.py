"""Ways to choose the weights: methods for the loop of `loop.py`.

A method supplies three things:

    start      the first weights
    generate   the generator: from an iterate to a policy, or None when the weights are final
    update     the update: from weights and occupancy to the next weights

Where `update` is the convex step of `IterativeMethod`, a rule of `steps.py` may choose its size. To
try another generator or update, subclass `IterativeMethod` and override `generate` or `update`;
with the convex step of `IterativeMethod.update` the iteration contracts whenever the generator's
Lipschitz constant is small enough (the paper's remark on generalisations).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

from bellweight.backends import Iterate, Point, Setup
from bellweight.common import checks, files
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, BellweightWarning, Status
from bellweight.policies import DualSoftmax, Policy, Uniform, policy_of
from bellweight.weights.lipschitz import (
    certified_settings,
    checked_lipschitz,
    contracts,
    softmax_lipschitz,
)
from bellweight.weights.loop import Method, Stop, select_weights
from bellweight.weights.steps import Constant, Stepper, Steps


@files.storable("Fixed")
@dataclass(frozen=True, eq=False, repr=False)
class Fixed(Method):
    """Weights that are given.

    Args:
        weights: an array (S,), `"initial"` (the initial distribution) or `"uniform"`.
        moments: the averages (K,) of the basis functions under the weights, in place of an array
            where states cannot be listed.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Polynomial(3), bw.Fixed("uniform"))
        >>> len(result.history)
        1
    """

    weights: Any = "initial"
    moments: Any = None

    def first(self, setup: Setup) -> Point:
        if self.moments is not None:
            if not isinstance(self.weights, str) or self.weights != "initial":
                raise ArgumentError("give Fixed weights or moments, not both")
            return Point(setup.checked_moments(self.moments))
        return setup.named_point(self.weights, "weights")


@files.storable("FromPolicy")
@dataclass(frozen=True, eq=False, repr=False)
class FromPolicy(Method):
    """Weights where a given policy spends its time.

    Args:
        policy: whose discounted time the weights follow; acting at random by default, which is the
            paper's Random.

    Examples:
        >>> bw.FromPolicy(bw.Uniform())
        FromPolicy()
    """

    policy: Policy = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, files.Unstored):
            object.__setattr__(self, "policy", policy_of(self.policy))

    def first(self, setup: Setup) -> Point:
        if isinstance(self.policy, files.Unstored):
            raise ArgumentError(
                f"the policy {self.policy.text} was not stored: build FromPolicy(...) again"
            )
        return setup.occupied(setup.occupancy(self.policy))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class IterativeMethod(Method):
    """A method that iterates: convex steps from `start` towards the occupancy of its policy.

    `step_size` is a number in (0, 1], or a rule that looks at how the run goes: `Adaptive()` where
    the weights oscillate, `Anderson()` where they converge slowly. `start` is `"initial"`,
    `"uniform"`, an array (S,), or another method whose weights are taken. `cycles` says what is
    reported when the weights cycle: `"best"`, the phase of lowest cost, or `"average"`, the program
    at the average of the phases' weights, with the residual that is left there.
    """

    step_size: float | Steps = 1.0
    start: Any = "initial"
    cycles: str = "best"

    def __post_init__(self) -> None:
        checks.one_of(self.cycles, "cycles", ("best", "average"))
        if not isinstance(self.step_size, Steps):
            checks.positive(self.step_size, "step_size", below=1.0, closed=True)
        elif self._updates_itself:
            raise ArgumentError(
                f"step_size is {self.step_size!r}, expected a number: {type(self).__name__} has an "
                "update of its own"
            )
        else:
            self.stepper()  # refuses a rule that is not for this method

    @property
    def _updates_itself(self) -> bool:
        return type(self).update is not IterativeMethod.update

    @property
    def averages_cycles(self) -> bool:
        return self.cycles == "average"

    def first(self, setup: Setup) -> Point:
        if isinstance(self.start, Method):
            point = _finished(setup, self.start, "start").point
            if point.weights is None and setup.is_exact:
                raise ArgumentError(
                    "start gives moments only, expected weights on a tabular model: use "
                    "Fixed(weights)"
                )
            return point
        return setup.named_point(self.start, "start")

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        # A convex step keeps the weights on the simplex (eq. dia_weight_update).
        step = self.step_size.plain if isinstance(self.step_size, Steps) else self.step_size
        return (1.0 - step) * weights + step * occupancy

    def stepper(self) -> Stepper | None:
        return self._stepper(None)

    def _stepper(self, smoothing_mass: float | None) -> Stepper | None:
        if self._updates_itself:
            return None
        if isinstance(self.step_size, Steps):
            return self.step_size.stepper(smoothing_mass)
        return Constant(self.step_size)


@files.storable("PIA")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PIA(IterativeMethod):
    """The primal iterative algorithm, whose weights are where the greedy policy spends its time.

    It may cycle.

    Args:
        step_size: how far a step goes towards the new occupancy: a number in (0, 1], or a rule such
            as `weights.Adaptive()`.
        start: the first weights: `"initial"`, `"uniform"` or an array (S,).
        cycles: what is reported of weights that cycle: the `"best"` phase or the `"average"`.

    Examples:
        >>> bw.PIA(step_size=0.5)
        PIA(step_size=0.5)
    """

    def generate(self, iterate: Iterate) -> Policy:
        return iterate.greedy


@files.storable("DIA")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DIA(IterativeMethod):
    """The dual iterative algorithm, whose weights are where a policy of the dual spends its time.

    In every state that policy is a softmax of the dual, pulled towards the target (the paper's
    target-guided softmax).

    With `lipschitz` and `discount` it knows the model that its settings were chosen for. When they
    satisfy eq. epsilon_tau_conditions, convergence is proven and the mode is `certified`.

    Args:
        step_size: how far a step goes towards the new occupancy: a number in (0, 1], or a rule such
            as `weights.Adaptive()`.
        start: the first weights: `"initial"`, `"uniform"` or an array (S,).
        cycles: what is reported of weights that cycle: the `"best"` phase or the `"average"`.
        target: the policy to follow where the dual has no mass; or a method, whose greedy policy is
            taken.
        temperature: the softmax's, the paper's tau.
        smoothing_mass: how strongly the target pulls, the paper's epsilon.
        lipschitz: an upper bound on the Lipschitz constant of the dual.
        discount: that of the model.
        extend: a radius: every state lends the share 1 - distance / radius of its dual to states
            nearer than that. What is proven of convergence stays proven, because the shares do not
            depend on the dual and are at most one. Actions that nearby states lend need not be
            greedy: `certify` tells by how much.

    Examples:
        >>> bw.solve(bw.problems.single_queue(capacity=30), bw.Polynomial(3), bw.DIA()).status.name
        'CONVERGED'
    """

    target: Policy | Method | files.Unstored = field(default_factory=Uniform)
    temperature: float = 0.1
    smoothing_mass: float = 0.1
    lipschitz: float | None = None
    discount: float | None = None
    extend: float | None = None

    @classmethod
    def certified(
        cls,
        *,
        lipschitz: float,
        discount: float,
        target: Policy | Method | None = None,
        step_size: float = 1.0,
        start: Any = "initial",
        modulus: float = 0.9,
        split: float = 0.5,
    ) -> Self:
        """Return settings for which convergence is proven: nearly the target policy, as a rule.

        `lipschitz` comes from `contraction.dual_lipschitz`; `modulus` and `split` are those of
        `contraction.certified_settings`, which also tells the price.
        """
        found = certified_settings(
            lipschitz, discount, step_size=step_size, modulus=modulus, split=split
        )
        return cls(
            target=Uniform() if target is None else target,
            temperature=found.temperature,
            smoothing_mass=found.smoothing_mass,
            step_size=step_size,
            start=start,
            lipschitz=found.lipschitz,
            discount=found.discount,
        )

    def __post_init__(self) -> None:
        checks.positive(self.temperature, "temperature")
        checks.positive(self.smoothing_mass, "smoothing_mass")
        if self.extend is not None:
            checks.positive(self.extend, "extend")
        super().__post_init__()
        if (self.lipschitz is None) != (self.discount is None):
            raise ArgumentError("give DIA both lipschitz and discount, or neither")
        if self.lipschitz is not None:
            checked_lipschitz(self.lipschitz, "lipschitz")
            checks.discount_factor(self.discount)
        if not isinstance(self.target, Policy | Method | files.Unstored):
            raise ArgumentError(
                f"target is {self.target!r}, expected a policy such as Uniform(), or a method such "
                "as Fixed(weights) whose greedy policy is the target"
            )

    @property
    def modulus(self) -> float | None:
        """The proven factor per iteration, below one; None where there is none."""
        # The proof is that of this class's own generator and update, with a constant step.
        changed = type(self).generate is not DIA.generate or self._updates_itself
        if self.lipschitz is None or self.discount is None or changed:
            return None
        if isinstance(self.step_size, Steps):
            return None
        policy = softmax_lipschitz(self.temperature, self.smoothing_mass)
        update = (1.0 - self.step_size, self.step_size)
        modulus = contracts(policy, self.lipschitz, self.discount, update)
        return modulus if modulus < 1.0 else None

    @property
    def mode(self) -> str:
        return "practical" if self.modulus is None else "certified"

    def prepare(self, setup: Setup) -> DIA:
        if self.mode == "certified":
            self._check_certified(setup)
        if isinstance(self.target, files.Unstored):
            raise ArgumentError(
                f"the target {self.target.text} was not stored: build DIA(target=...) again"
            )
        if isinstance(self.target, Policy):
            return self
        return replace(self, target=_finished(setup, self.target, "target").greedy)

    @property
    def target_policy(self) -> Policy | None:
        return self.target if isinstance(self.target, Policy) else None

    def generate(self, iterate: Iterate) -> Policy:
        assert isinstance(self.target, Policy)
        settings = self.temperature, self.smoothing_mass, self.extend
        return DualSoftmax(iterate.dual, self.target, *settings)

    def stepper(self) -> Stepper | None:
        return self._stepper(self.smoothing_mass)

    def smoothed(self, smoothing_mass: float) -> DIA:
        """Return this method with another smoothing mass, and its temperature in proportion."""
        # The policy's Lipschitz constant, 2 / mass + 1 / (2 temperature), then scales as a whole.
        factor = smoothing_mass / self.smoothing_mass
        return replace(self, smoothing_mass=smoothing_mass, temperature=factor * self.temperature)

    def _check_certified(self, setup: Setup) -> None:
        """Refuse a model that the certified settings do not belong to."""
        if not setup.is_exact:
            raise ArgumentError(
                "certified settings are proven for exact occupancies, which only a TabularModel "
                "has: use DIA(...) with the same temperature and smoothing_mass"
            )
        if setup.model.discount != self.discount:
            raise ArgumentError(
                f"the settings are certified for discount {self.discount}, the model has "
                f"{setup.model.discount}: use DIA.certified(lipschitz=..., "
                f"discount={setup.model.discount})"
            )


def _finished(setup: Setup, method: Method, role: str) -> Iterate:
    """Run a method that another one needs as its start or target."""
    outcome = select_weights(setup, method, Stop())
    if outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if not outcome.status.is_success:
        warnings.warn(
            f"the {role}, {type(method).__name__}, ended as {outcome.status.name} and is used as "
            f"it is: {outcome.status.message}",
            BellweightWarning,
            stacklevel=2,
        )
    return outcome.iterate
