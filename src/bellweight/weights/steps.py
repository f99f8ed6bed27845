"""Step rules that depend on the run so far: adaptive damping, Anderson acceleration.

Let x be the weights (or their moments), F(x) the occupancy of the policy that they generate, and
g(x) = F(x) - x the residual. A plain step goes to (1 - s) x + s F(x) with a constant s. The rules
here are immutable settings that take the place of that number:

    Adaptive   shrinks s when residuals turn round or grow, lets it grow when they agree and fall
    Anderson   goes to the affine combination sum_j a_j [(1 - s) x_j + s F(x_j)] of the last points
               whose residual sum_j a_j g(x_j) is smallest (type II), as long as that pays

Affine combinations keep the sum of weights, and the moment of the constant, at one. Each run gets
a fresh `Stepper` from its rule, which holds what the run has seen.

Reference: Walker and Ni (2011), Anderson acceleration for fixed-point iterations, SIAM J. Numer.
Anal. 49(4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bellweight.backends import Point
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError

_HELPED = 0.9  # what is left of a residual, at most, when a smaller step has helped


@dataclass(frozen=True, eq=False)
class Step:
    """Where to go from an iterate: the next weights or moments, and how they were found."""

    vector: FloatArray
    standard_error: FloatArray | None
    step_size: float
    accelerated: bool = False


class Stepper(ABC):
    """The steps of one run. `smoothing_mass` is None where it is not adapted."""

    smoothing_mass: float | None = None

    @abstractmethod
    def leave(self, point: Point, occupied: Point) -> Step:
        """Return the step from some weights whose policy has this occupancy."""

    def retreat(self) -> Step | None:
        """Return the step to take in place of the last one, or None if that was a plain one."""
        return None


class Steps(ABC):
    """A rule for the steps of a run: immutable settings, no data."""

    @property
    @abstractmethod
    def plain(self) -> float:
        """The step size at the start of a run."""

    @abstractmethod
    def stepper(self, smoothing_mass: float | None) -> Stepper:
        """Return a fresh stepper; `smoothing_mass` is that of the method, None if it has none."""


class Constant(Stepper):
    """Always the same convex step."""

    def __init__(self, step_size: float) -> None:
        self._step_size = step_size

    def leave(self, point: Point, occupied: Point) -> Step:
        return _convex(point, occupied, self._step_size)


@files.storable("Adaptive")
@dataclass(frozen=True)
class Adaptive(Steps):
    """A step size that shrinks when the weights oscillate and grows when their steps agree.

    Two residuals in a row that point in opposite directions, or of which the second is the larger,
    are an oscillation: the step size, `first` at the beginning, is multiplied by `shrink`, down to
    `least`. Where the second residual is already small (less than a third of the first, with
    `shrink` one half) the step stays as it is, as a smaller one would be slower. Two residuals that
    point the same way and fall are an agreement: the step size is multiplied by `grow`, up to 1.

    With `smoothing`, DIA's policy is adapted too. The iteration contracts when the policy depends
    less on the dual, hence with *more* smoothing: when an oscillation finds the residual hardly
    smaller than the oscillation before it did, a smaller step has not helped, and smoothing mass
    and temperature are divided by `shrink`, to at most 1 / `least` times what they were. Agreement
    brings them back by the factor `grow`, but never to values that failed, so that they settle. The
    weights found belong to the smoothing of the reported iteration, which its `smoothing_mass`
    records.

    A resumed run begins with `first` and the method's own smoothing again.
    """

    first: float = 1.0
    shrink: float = 0.5
    grow: float = 1.2
    least: float = 0.01
    smoothing: bool = False

    def __post_init__(self) -> None:
        checks.positive(self.first, "first", below=1.0, closed=True)
        checks.positive(self.shrink, "shrink", below=1.0)
        if checks.positive(self.grow, "grow") < 1.0:
            raise ArgumentError(f"grow is {self.grow}, expected a number of at least 1")
        checks.positive(self.least, "least", below=self.first, closed=True)

    @property
    def plain(self) -> float:
        return self.first

    def stepper(self, smoothing_mass: float | None) -> Stepper:
        if self.smoothing and smoothing_mass is None:
            raise ArgumentError(
                "smoothing=True is for a method with a smoothing mass, such as DIA: leave it out"
            )
        return _AdaptiveStepper(self, smoothing_mass if self.smoothing else None)


class _AdaptiveStepper(Stepper):
    def __init__(self, rule: Adaptive, smoothing_mass: float | None) -> None:
        self.smoothing_mass = smoothing_mass
        self._rule = rule
        self._step_size = rule.first
        self._scale: FloatArray | None = None
        self._before: FloatArray | None = None
        self._size_at_oscillation = np.inf
        self._least_mass = smoothing_mass
        self._most_mass = None if smoothing_mass is None else smoothing_mass / rule.least
        # On a line, where a step turns the residual into -r times itself, the shrunk step leaves
        # 1 - shrink (1 + r) of it. Below this r that is more than r: shrinking would be slower.
        self._turns_well = (1.0 - rule.shrink) / (1.0 + rule.shrink)

    def leave(self, point: Point, occupied: Point) -> Step:
        if self._scale is None:
            self._scale = _scale(point, occupied)
        residual = (occupied.vector - point.vector) / self._scale
        if self._before is not None:
            self._look(self._before, residual)
        self._before = residual
        return _convex(point, occupied, self._step_size)

    def _look(self, before: FloatArray, residual: FloatArray) -> None:
        rule, turn = self._rule, float(before @ residual)
        size, size_before = float(np.linalg.norm(residual)), float(np.linalg.norm(before))
        if size > size_before or (turn < 0.0 and size > self._turns_well * size_before):
            self._step_size = max(rule.least, rule.shrink * self._step_size)
            if size > _HELPED * self._size_at_oscillation:
                self._smooth_more()
            self._size_at_oscillation = size
        elif turn > 0.0 and size < size_before:
            self._step_size = min(1.0, rule.grow * self._step_size)
            if self.smoothing_mass is not None and self._least_mass is not None:
                self.smoothing_mass = max(self._least_mass, self.smoothing_mass / rule.grow)

    def _smooth_more(self) -> None:
        if self.smoothing_mass is None or self._most_mass is None:
            return
        failed = self.smoothing_mass
        self.smoothing_mass = min(self._most_mass, failed / self._rule.shrink)
        # Half way back on a log scale, so that a mass that failed is not tried again.
        self._least_mass = float(np.sqrt(failed * self.smoothing_mass))


@files.storable("Anderson")
@dataclass(frozen=True)
class Anderson(Steps):
    """Anderson acceleration (type II) of the convex step, with safeguards.

    The next weights combine the last `memory` + 1 points and their occupancies, each by a convex
    step of `step_size`, so that the combined residual is smallest. The combination is used as far
    as it is safe: where it has a weight below zero, the plain step is taken instead; when it leads
    to a residual larger than `growth` times the smallest one that the memory has seen, or to a
    program that cannot be solved, the run takes the plain step from the last good point and clears
    its memory. Where weights are known by their moments, the combination is one of moments, and
    standard errors add up with the absolute coefficients.

    A resumed run begins without memory.
    """

    memory: int = 5
    step_size: float = 1.0
    growth: float = 2.0

    def __post_init__(self) -> None:
        checks.count(self.memory, "memory")
        checks.positive(self.step_size, "step_size", below=1.0, closed=True)
        if checks.positive(self.growth, "growth") < 1.0:
            raise ArgumentError(f"growth is {self.growth}, expected a number of at least 1")

    @property
    def plain(self) -> float:
        return self.step_size

    def stepper(self, smoothing_mass: float | None) -> Stepper:
        return _AndersonStepper(self)


class _AndersonStepper(Stepper):
    def __init__(self, rule: Anderson) -> None:
        self._rule = rule
        self._scale: FloatArray | None = None
        self._residuals: list[FloatArray] = []
        self._plain: list[Step] = []
        self._smallest = np.inf
        self._accelerated = False

    def leave(self, point: Point, occupied: Point) -> Step:
        if self._scale is None:
            self._scale = _scale(point, occupied)
        residual = (occupied.vector - point.vector) / self._scale
        size = float(np.linalg.norm(residual))
        instead = self.retreat() if size > self._rule.growth * self._smallest else None
        if instead is not None:
            return instead
        self._smallest = min(self._smallest, size)
        most = self._rule.memory + 1
        plain = _convex(point, occupied, self._rule.step_size)
        self._residuals = [*self._residuals, residual][-most:]
        self._plain = [*self._plain, plain][-most:]
        step = self._combined() if len(self._plain) > 1 else plain
        if point.weights is not None and step.vector.min() < 0.0:
            step = plain
        self._accelerated = step.accelerated
        return step

    def retreat(self) -> Step | None:
        if not self._accelerated:
            return None
        plain = self._plain[-1]
        self._residuals, self._plain, self._smallest = [], [], np.inf
        self._accelerated = False
        return plain

    def _combined(self) -> Step:
        """Return the combination of plain steps whose residuals combine to the smallest one."""
        coefficients = _smallest_combination(np.array(self._residuals))
        errors = [step.standard_error for step in self._plain if step.standard_error is not None]
        error = None
        if len(errors) == len(self._plain):
            error = np.abs(coefficients) @ np.array(errors)
        vector = coefficients @ np.array([step.vector for step in self._plain])
        return Step(vector, error, self._rule.step_size, accelerated=True)


def _smallest_combination(residuals: FloatArray) -> FloatArray:
    """Return coefficients of sum one that make the combination of the rows smallest.

    Written in differences of successive rows, the constraint disappears. The columns are scaled to
    length one, so that old, large differences do not dominate the recent ones.
    """
    differences = np.diff(residuals, axis=0).T
    lengths = np.linalg.norm(differences, axis=0)
    lengths[lengths == 0.0] = 1.0
    weights = (
        np.linalg.lstsq(differences / lengths, residuals[-1], rcond=tolerances.SAME_DIRECTION)[0]
        / lengths
    )
    coefficients = np.zeros(len(residuals))
    coefficients[-1] = 1.0
    coefficients[1:] -= weights
    coefficients[:-1] += weights
    return coefficients


def _convex(point: Point, occupied: Point, step_size: float) -> Step:
    # A convex step keeps the weights on the simplex (eq. dia_weight_update).
    vector = (1.0 - step_size) * point.vector + step_size * occupied.vector
    error = occupied.standard_error
    if error is not None and point.standard_error is not None:
        # The streams are the same, so errors of a mixture add up at most.
        error = (1.0 - step_size) * point.standard_error + step_size * error
    return Step(vector, error, step_size)


def _scale(point: Point, occupied: Point) -> FloatArray:
    """Return the units in which residuals are compared: moments differ in size, weights do not."""
    if point.weights is not None:
        return np.ones_like(point.weights)
    size = np.maximum(np.abs(point.moments), np.abs(occupied.moments))
    return np.maximum(size, tolerances.ROUNDING * size.max())
