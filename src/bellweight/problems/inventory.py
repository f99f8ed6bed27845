"""A warehouse with real-valued stock: the example on which tutorials show approximate programs.

Stock s may be negative (orders owed to customers). An order a arrives before demand D, which is
normal(6, 3.5) cut to [0, 10]. With y = s + a - D the next stock is y clipped to [-4, 12], and

    cost = price a + holding max(s', 0) + backlog max(-s', 0) + disposal max(y - 12, 0)
           + lost max(-4 - y, 0).

The numbers are those of public tutorials on approximate linear programs; the model is a relative of
the inventories in Pakiman, Nadarajah, Soheili and Lin, "Self-guided approximate linear programs"
(Management Science). A small box and one dimension: `model.to_tabular(grid=...)` and
`exact.optimal` give the optimum on a fine grid.
"""

from __future__ import annotations

from typing import Any

from bellweight.common import checks
from bellweight.models import Normal, StepModel
from bellweight.models.noise import ContinuousLaw

_DEMAND = Normal(6.0, 3.5, 0.0, 10.0)


def continuous_inventory(
    demand: ContinuousLaw = _DEMAND,
    *,
    least: float = -4.0,
    most: float = 12.0,
    unit: float = 0.1,
    orders: int = 61,
    price: float = 20.0,
    holding: float = 1.0,
    backlog: float = 25.0,
    disposal: float = 5.0,
    lost: float = 3_000.0,
    discount: float = 0.95,
    start: float = 6.0,
    quadrature: int = 32,
) -> StepModel:
    """Return the model with orders of 0, unit, ..., (orders - 1) unit."""
    checks.positive(unit, "unit")
    checks.count(orders, "orders", least=2)
    numbers = {
        "least": least, "most": most, "unit": unit, "price": price, "holding": holding,
        "backlog": backlog, "disposal": disposal, "lost": lost,
    }  # fmt: skip
    return StepModel(
        dimension=1,
        actions=[f"order {unit * a:g}" for a in range(orders)],
        step=_step,
        cost=_cost,
        discount=discount,
        noise=demand,
        initial=[start],
        lower=least,
        upper=most,
        parameters=numbers,
        bends=_bends,
        quadrature=quadrature,
        name="continuous inventory",
    )


def _bends(action: int, noise: Any, parameters: Any) -> list[float]:
    """Return the stocks at which the next one is 0, or meets an end of the box."""
    ends = (parameters["least"], 0.0, parameters["most"])
    return [end - parameters["unit"] * action + noise[0] for end in ends]


def _step(state: Any, action: int, noise: Any, parameters: Any) -> float:
    after = state[0] + parameters["unit"] * action - noise[0]
    return min(max(after, parameters["least"]), parameters["most"])


def _cost(state: Any, action: int, noise: Any, parameters: Any) -> float:
    after = state[0] + parameters["unit"] * action - noise[0]
    kept = min(max(after, parameters["least"]), parameters["most"])
    paid = parameters["holding"] * max(kept, 0.0) + parameters["backlog"] * max(-kept, 0.0)
    paid += parameters["disposal"] * max(after - parameters["most"], 0.0)
    paid += parameters["lost"] * max(parameters["least"] - after, 0.0)
    return parameters["price"] * parameters["unit"] * action + paid
