"""The discounted occupancy of a policy: where it spends its time.

    occupancy = (1 - discount) initial' (I - discount P)^-1       (eq. discounted_occupancy)

On a tabular model it is computed. An occupancy that sums to one proves nothing; what counts is the
flow balance (1 - discount) initial + discount P' occupancy = occupancy, whose 1-norm residual comes
with it. On other models only the moments Phi' occupancy are needed; they are estimated by
simulation and come with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bellweight.basis import Basis
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, SolverError, Status
from bellweight.common.streams import stream_keys
from bellweight.evaluation.chain import Chain
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.policies.policy import Policy, checked_probabilities
from bellweight.simulation.episodes import BLOCK, EventRollout, Task, run_blocks
from bellweight.simulation.linear_episodes import LinearRollout

_TAIL_SHARE = 1e-3


@files.storable
@dataclass(frozen=True)
class Simulation:
    """How an occupancy is estimated: episodes, and steps each (until discount^t < 0.001)."""

    episodes: int = 4_000
    horizon: int | None = None

    def __post_init__(self) -> None:
        checks.count(self.episodes, "episodes", least=2)
        if self.horizon is not None:
            checks.count(self.horizon, "horizon")

    def steps(self, discount: float) -> int:
        """Return the horizon, or say that it is too short to mean anything."""
        steps = default_horizon(discount) if self.horizon is None else self.horizon
        if discount**steps > 0.5:
            raise ArgumentError(
                f"horizon {steps} leaves out {100 * discount**steps:.0f} % of the discounted mass: "
                f"use at least {default_horizon(discount)}"
            )
        return steps


@dataclass(frozen=True, eq=False)
class Occupancy:
    """An occupancy, exact or estimated.

    Exact: `weights` (S,) with the 1-norm `residual` of the flow balance. Estimated: `moments` (K,)
    with `standard_error` (K,), the `tail_mass` that the horizon left out and that was made up for
    by rescaling, and `dual_share`, the share of discounted visits to states with dual mass (None
    for a policy that does not look at the dual).
    """

    weights: FloatArray | None = None
    residual: float | None = None
    moments: FloatArray | None = None
    standard_error: FloatArray | None = None
    tail_mass: float = 0.0
    dual_share: float | None = None


def default_horizon(discount: float) -> int:
    """Return the first horizon at which discount^horizon is below 0.001."""
    steps = max(1, int(np.ceil(np.log(_TAIL_SHARE) / np.log(discount))))
    return steps if discount**steps < _TAIL_SHARE else steps + 1


def policy_chain(model: TabularModel, policy: Policy) -> tuple[Chain, FloatArray]:
    """Return the chain of a policy and its expected cost per step (S,)."""
    chances = checked_probabilities(model, policy)
    used = np.flatnonzero(chances)
    shape = (model.n_states, len(used))
    mixer = sparse.csr_array(
        (chances[used], (model.pair_state[used], np.arange(len(used)))), shape=shape
    )
    transition = sparse.csr_array(mixer @ model.transition[used])
    return Chain(transition, model.discount), np.asarray(mixer @ model.cost[used])


def exact_occupancy(
    model: TabularModel, policy: Policy, initial: FloatArray | None = None
) -> Occupancy:
    """Return the occupancy of a policy from the model's initial distribution, or another one."""
    if initial is None:
        start = model.initial
    else:
        start = checks.distribution(initial, "initial", model.n_states, model.state_name)
    chain, _ = policy_chain(model, policy)
    # Elimination may leave entries like -1e-18; the residual below is that of the clipped vector.
    weights = np.maximum(chain.occupancy(start), 0.0)
    inflow = (1.0 - model.discount) * start
    residual = float(np.abs(chain.residual(weights, inflow, transposed=True)).sum())
    if residual > tolerances.FLOW_BALANCE:
        raise SolverError(
            Status.FAILED,
            f"the occupancy's flow balance is off by {residual:.2g}, expected at most "
            f"{tolerances.FLOW_BALANCE:g}",
        )
    weights.setflags(write=False)
    return Occupancy(weights=weights, residual=residual)


def simulated_occupancy(
    model: EventModel | LinearModel,
    policy: Policy,
    basis: Basis,
    simulation: Simulation | None = None,
    *,
    seed: int = 0,
    jobs: int | None = None,
) -> Occupancy:
    """Return the estimated moments of a policy's occupancy, with standard errors.

    The mass discount^horizon that the horizon leaves out is made up for by rescaling, so that the
    moment of the constant is one.
    """
    settings = simulation or Simulation()
    horizon = settings.steps(model.discount)
    rollout, knows_dual = _moment_rollout(model, policy, basis)
    task = Task(rollout.moment_block, horizon, stream_keys(seed))
    blocks = run_blocks(task, 0, settings.episodes, jobs)
    tail = model.discount**horizon
    scale = (1.0 - model.discount) / (1.0 - tail)
    n = settings.episodes
    sizes = np.diff([*range(0, n, BLOCK), n])[:, None]
    means = np.array([block[0] for block in blocks])
    mean = (sizes * means).sum(axis=0) / n
    # Deviations within the blocks and between them: no difference of large numbers.
    spread = sum(block[1] for block in blocks) + (sizes * (means - mean) ** 2).sum(axis=0)
    return Occupancy(
        moments=scale * mean,
        standard_error=scale * np.sqrt(spread / (n - 1) / n),
        tail_mass=tail,
        dual_share=sum(block[2] for block in blocks) * scale / n if knows_dual else None,
    )


def _moment_rollout(
    model: EventModel | LinearModel, policy: Policy, basis: Basis
) -> tuple[EventRollout | LinearRollout, bool]:
    """Return what adds up discounted features, and whether it counts visits with dual mass."""
    if isinstance(model, LinearModel):
        chooser = policy.chooser(model)
        return LinearRollout(model, chooser), chooser.knows_dual
    program = policy.program(model)
    return EventRollout.of(model, program, basis), program.knows_dual
