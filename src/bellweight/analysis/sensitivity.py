"""How much DIA's settings matter: costs and mismatches over a grid of them.

Every point of the grid is one run of DIA from its own start; all share the rows and one program,
which stays warm. Two mismatches are kept, both 1-norms, of weights on tabular models and of moments
on others: the paper's R(c), between the weights and the occupancy of the policy that DIA generates,
which is near zero where the run converged; and the distance between the weights and the occupancy
of the greedy policy, which is the policy one would use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from bellweight.backends import Estimate, Setup
from bellweight.basis import Basis
from bellweight.common import checks
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, Status
from bellweight.display import Column, Table, to_text
from bellweight.evaluation.evaluate import Evaluation, evaluate
from bellweight.models import Model
from bellweight.policies import Policy, Uniform
from bellweight.simulation import Simulation
from bellweight.solve import Rows, looped
from bellweight.weights.loop import Method, Outcome, Stop
from bellweight.weights.methods import DIA
from bellweight.weights.plan import SolveSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class GridPoint:
    """One point of the grid: the settings, how the run ended, and what its greedy policy costs."""

    temperature: float
    smoothing_mass: float
    step_size: float
    status: Status
    iterations: int
    cost: Estimate
    mismatch: float
    greedy_mismatch: float


@dataclass(frozen=True)
class Sensitivity:
    """The grid, and one `GridPoint` for each of its points, the temperature varying fastest."""

    temperatures: tuple[float, ...]
    smoothing_masses: tuple[float, ...]
    step_sizes: tuple[float, ...]
    settings: tuple[GridPoint, ...]
    model_name: str

    def grid(self, name: str, step_size: float | None = None) -> FloatArray:
        """Return a number of every setting, by smoothing mass (row) and temperature (column).

        `name` is that of a field, such as `"cost"`; `step_size` is the first one by default.
        """
        wanted = self.step_sizes[0] if step_size is None else step_size
        if wanted not in self.step_sizes:
            raise ArgumentError(f"step_size is {wanted}, expected one of {self.step_sizes}")
        numbers = tuple(field.name for field in fields(GridPoint) if field.name != "status")
        checks.one_of(name, "name", numbers)
        values = [float(getattr(s, name)) for s in self.settings if s.step_size == wanted]
        shape = (len(self.smoothing_masses), len(self.temperatures))
        return np.array(values, dtype=np.float64).reshape(shape)

    def __str__(self) -> str:
        return to_text(self.table()).rstrip()

    @property
    def is_exact(self) -> bool:
        """Whether no cost has an error of simulation."""
        return all(s.cost.half_width == 0.0 for s in self.settings)

    @property
    def best(self) -> GridPoint:
        """The setting of lowest cost, the first of several."""
        return min(self.settings, key=lambda setting: setting.cost.mean)

    def figure(self, title: str = "") -> Figure:
        """Return costs and mismatches as heat maps, a Matplotlib figure."""
        from bellweight.display.figures import sensitivity_figure

        return sensitivity_figure(self, title=title or f"DIA on {self.model_name}")

    def table(self) -> Table:
        """Return one row for each setting."""
        return Table(
            title=f"DIA on {self.model_name}: cost and mismatch by setting",
            columns=tuple(
                column for column in _COLUMNS if column.key != "half_width" or not self.is_exact
            ),
            rows=tuple(
                {
                    **vars(s),
                    "cost": s.cost.mean,
                    "half_width": s.cost.half_width,
                    "status": s.status.name,
                }
                for s in self.settings
            ),
            notes=(_range_note(self),),
        )


def sensitivity(
    model: Model,
    basis: Basis,
    temperatures: Sequence[float],
    smoothing_masses: Sequence[float],
    step_sizes: Sequence[float] = (1.0,),
    *,
    target: Policy | Method | None = None,
    rows: Rows | None = None,
    simulation: Simulation | None = None,
    stop: Stop | None = None,
    episodes: int = 1_000,
    horizon: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> Sensitivity:
    """Run DIA with every combination of settings on one warm program.

    `target` is the uniform policy by default. Costs are exact on tabular models; on others they
    come from `episodes` of `horizon` steps, on the same random numbers for every setting. The rest
    is as in `solve`.
    """
    axes = (
        _axis(step_sizes, "step_sizes"),
        _axis(smoothing_masses, "smoothing_masses"),
        _axis(temperatures, "temperatures"),
    )
    asked = SolveSettings(
        model=model, basis=basis, rows=rows, simulation=simulation, stop=stop, seed=seed, jobs=jobs
    )
    setup = asked.setup()
    # A target that is a method is run once, not once for each setting.
    aim = DIA(target=Uniform() if target is None else target).prepare(setup).target
    settings = []
    for step_size, mass, temperature in product(*axes):
        method = DIA(target=aim, temperature=temperature, smoothing_mass=mass, step_size=step_size)
        outcome = looped(setup, method, asked).outcome
        policy = outcome.iterate.greedy
        found = None
        if not setup.is_exact:
            found = evaluate(model, policy, episodes, horizon=horizon, seed=seed, jobs=jobs)
        settings.append(_setting(setup, method, outcome, found))
    return Sensitivity(axes[2], axes[1], axes[0], tuple(settings), model.name)


def _setting(setup: Setup, method: DIA, outcome: Outcome, found: Evaluation | None) -> GridPoint:
    iterate = outcome.iterate
    mismatch = outcome.history[outcome.reported].one_norm
    assert mismatch is not None
    assert isinstance(method.step_size, float)
    occupied = setup.occupied(setup.occupancy(iterate.greedy))
    return GridPoint(
        temperature=method.temperature,
        smoothing_mass=method.smoothing_mass,
        step_size=method.step_size,
        status=outcome.status,
        iterations=len(outcome.history),
        cost=setup.cost(iterate.greedy) if found is None else found.estimate,
        mismatch=mismatch,
        greedy_mismatch=float(np.abs(occupied.vector - iterate.point.vector).sum()),
    )


def _axis(values: Any, name: str) -> tuple[float, ...]:
    given = checks.float_array(values, name, (-1,), ArgumentError)
    if len(given) == 0:
        raise ArgumentError(f"{name} is empty, expected at least one number")
    if len(np.unique(given)) < len(given):
        raise ArgumentError(f"{name} has repetitions, expected distinct numbers: {values}")
    return tuple(given.tolist())


_COLUMNS = (
    Column("temperature", "temperature", "{:g}".format),
    Column("smoothing_mass", "smoothing mass", "{:g}".format),
    Column("step_size", "step", "{:g}".format),
    Column("cost", "cost", "{:,.2f}".format),
    Column("half_width", "±", "{:,.2f}".format),
    Column("mismatch", "mismatch", "{:.2g}".format),
    Column("greedy_mismatch", "to greedy", "{:.3g}".format),
    Column("iterations", "iterations"),
    Column("status", "status", right=False),
)


def _range_note(found: Sensitivity) -> str:
    costs = [setting.cost.mean for setting in found.settings]
    stuck = sum(not setting.status.is_success for setting in found.settings)
    ended = f"{stuck} of {len(costs)} runs did not converge" if stuck else "every run converged"
    kind = "exact" if found.is_exact else "simulated"
    return (
        f"Costs, {kind}, range from {min(costs):,.2f} to {max(costs):,.2f}; {ended}. Mismatch: "
        "between the weights and the occupancy of DIA's policy; to greedy: of the greedy policy."
    )
