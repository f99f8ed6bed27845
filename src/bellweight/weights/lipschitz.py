"""How fast the weight iteration contracts, as a function of its Lipschitz constants.

With L_d the Lipschitz constant of the minimum-norm dual in the weights and L_U that of a policy
rule in the dual (1-norms throughout), the map from weights to the occupancy of the generated
policy has the constant

    L_F = discount L_U L_d / (1 - discount)

and an update with constants L_c (in the weights) and L_mu (in the occupancy) gives an iteration of
modulus L_c + L_mu L_F (the paper's remark on generalisations). The convex step has L_c = 1 - step
and L_mu = step; the target-guided softmax has L_U = 2 / smoothing_mass + 1 / (2 temperature). Below
one the iteration converges geometrically to the same weights from every start (Theorem
convergence_v2). This module only combines constants; `analysis/contraction.py` computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellweight.common import checks
from bellweight.common.status import ArgumentError

_UNSMOOTHED = 0.1  # temperature and smoothing mass where the dual does not depend on the weights


def softmax_lipschitz(temperature: float, smoothing_mass: float) -> float:
    """Return L_p = 2 / smoothing_mass + 1 / (2 temperature) of Lemma L_Lipschitz_policy."""
    epsilon = checks.positive(smoothing_mass, "smoothing_mass")
    return 2.0 / epsilon + 0.5 / checks.positive(temperature, "temperature")


def contracts(
    generator_lipschitz: float,
    dual_lipschitz: float,
    discount: float,
    update: tuple[float, float] = (0.0, 1.0),
) -> float:
    """Return the modulus L_c + L_mu L_F; the iteration contracts when it is below one.

    `generator_lipschitz` is L_U, `dual_lipschitz` L_d, and `update` (L_c, L_mu): the default takes
    the occupancy as the next weights, and `(1 - step_size, step_size)` is the convex step. The
    modulus is proven when the constants are upper bounds.
    """
    generator = checked_lipschitz(generator_lipschitz, "generator_lipschitz")
    dual = checked_lipschitz(dual_lipschitz, "dual_lipschitz")
    share = checks.discount_factor(discount)
    if not isinstance(update, tuple) or len(update) != 2:
        raise ArgumentError(f"update is {update!r}, expected the pair (L_c, L_mu)")
    in_weights = checked_lipschitz(update[0], "update[0]")
    in_occupancy = checked_lipschitz(update[1], "update[1]")
    factors = (in_occupancy, generator, dual)
    # A constant map contracts even if the other constant is infinite.
    through = 0.0 if 0.0 in factors else share * math.prod(factors) / (1.0 - share)
    return in_weights + through


@dataclass(frozen=True)
class CertifiedSettings:
    """Settings of DIA for which convergence is proven, and what the proof costs.

    `modulus` is the proven factor per iteration, in the 1-norm of the weights. `dual_share` is the
    price: the largest share that the dual can have in the policy of any state, m / (m +
    smoothing_mass), where m = 1 / (1 - discount) is the total mass of the dual. The target policy
    has the rest.
    """

    temperature: float
    smoothing_mass: float
    lipschitz: float
    discount: float
    step_size: float
    modulus: float

    @property
    def dual_share(self) -> float:
        """The largest share of the dual in the policy of a state."""
        return 1.0 / (1.0 + (1.0 - self.discount) * self.smoothing_mass)

    def iterations_to(self, tol: float, distance: float = 2.0) -> int:
        """Return how many iterations bring the weights within `tol` of their limit, in the 1-norm.

        `distance` bounds the distance at the start; two weight vectors are never more than 2 apart.
        """
        wanted = checks.positive(tol, "tol")
        start = checks.positive(distance, "distance")
        if start <= wanted:
            return 0
        if self.modulus == 0.0:
            return 1
        return math.ceil(math.log(wanted / start) / math.log(self.modulus))


def certified_settings(
    lipschitz: float,
    discount: float,
    *,
    step_size: float = 1.0,
    modulus: float = 0.9,
    split: float = 0.5,
) -> CertifiedSettings:
    """Return temperature and smoothing mass that satisfy eq. epsilon_tau_conditions.

    `lipschitz` is an upper bound on L_d. `modulus`, below one, is the one wanted for a full step:
    the nearer to one, the more the dual decides in the policy. `split` is the part of the allowed
    policy constant that goes to the smoothing mass, the rest goes to the temperature: with a larger
    one the dual decides in more states, with a smaller one it decides more sharply.
    """
    dual = checked_lipschitz(lipschitz, "lipschitz")
    if not math.isfinite(dual):
        raise ArgumentError("lipschitz is infinite, expected a finite bound: nothing is certified")
    factor = checks.discount_factor(discount)
    step = checks.positive(step_size, "step_size", below=1.0, closed=True)
    goal = checks.positive(modulus, "modulus", below=1.0)
    part = checks.positive(split, "split", below=1.0)
    if dual == 0.0:
        temperature = smoothing_mass = _UNSMOOTHED
    else:
        allowed = goal * (1.0 - factor) / (factor * dual)
        smoothing_mass = 2.0 / (part * allowed)
        temperature = 0.5 / ((1.0 - part) * allowed)
    policy = softmax_lipschitz(temperature, smoothing_mass)
    proven = contracts(policy, dual, factor, (1.0 - step, step))
    return CertifiedSettings(temperature, smoothing_mass, dual, factor, step, proven)


def checked_lipschitz(value: float, name: str) -> float:
    """Return a Lipschitz constant: a number that is not negative, possibly infinite."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    if isinstance(value, float) and value == math.inf:
        return value
    return checks.positive(value, name)
