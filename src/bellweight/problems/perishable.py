"""Perishable goods that arrive late, with a backlog: real-valued stock of several ages.

Goods live for `life` periods once they are on the shelf, and an order arrives `lead` periods after
it is placed. A state has life + lead - 1 coordinates: the stock on the shelf, oldest first, and
then the orders under way, the next one first. The oldest stock is negative where customers wait or
younger goods are sold already. In a period demand D takes the oldest goods first. What is left of
the oldest stock is thrown away, demand that cannot be met waits, and beyond `most_backlog` it is
lost. With the shelf's total S,

    cost = price order + holding max(S - s_1 - max(D - s_1, 0), 0) + disposal max(s_1 - D, 0)
           + backlog max(D - S, 0) + lost max(D - S - most_backlog, 0).

The model is that of Pakiman, Nadarajah, Soheili and Lin, "Self-guided approximate linear programs"
(Management Science), and the defaults are the first instance of the code that its authors publish:
lead time 2, life 2, demand normal(5, 2) cut to [0, 10], discount 0.95, a start with five units of
each age. Orders are whole multiples of `unit` here; the authors let orders be any number and
discretise them in steps of 2 in their policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.status import ModelError
from bellweight.models import Normal, StepModel
from bellweight.models.noise import AnyLaw

_DEMAND = Normal(5.0, 2.0, 0.0, 10.0)


def perishable_inventory(
    demand: AnyLaw = _DEMAND,
    *,
    life: int = 2,
    lead: int = 2,
    most: float = 10.0,
    unit: float = 1.0,
    most_backlog: float = 10.0,
    price: float = 18.05,
    holding: float = 5.0,
    disposal: float = 10.0,
    backlog: float = 8.0,
    lost: float = 100.0,
    discount: float = 0.95,
    start: Any = 5.0,
    quadrature: int = 32,
) -> StepModel:
    """Return the model with orders of 0, unit, 2 unit, ..., up to `most`.

    The price of 18.05 is 20 discounted over the lead time: it is paid when goods arrive.
    """
    ages = checks.count(life, "life", least=2)
    size = ages + checks.count(lead, "lead") - 1
    checks.positive(unit, "unit")
    orders = int(np.floor(most / unit + tolerances.CONSTRAINT)) + 1
    if orders < 2:
        raise ModelError(f"most is {most} and unit {unit}: expected room for at least one unit")
    # The oldest stock also carries, as a negative number, what was sold of younger goods.
    deepest = -most_backlog - (ages - 2) * most
    numbers = {
        "unit": unit, "most_backlog": most_backlog, "price": price, "holding": holding,
        "disposal": disposal, "backlog": backlog, "lost": lost,
    }  # fmt: skip

    def step(state: Any, action: int, noise: Any, parameters: Any, successor: Any) -> None:
        younger = 0.0
        for i in range(2, ages):
            younger += state[i]
        unmet = max(noise[0] - state[0], 0.0)
        successor[0] = max(state[1] - unmet, -parameters["most_backlog"] - younger)
        for i in range(1, size - 1):
            successor[i] = state[i + 1]
        successor[size - 1] = parameters["unit"] * action

    def cost(state: Any, action: int, noise: Any, parameters: Any) -> float:
        younger = 0.0
        for i in range(1, ages):
            younger += state[i]
        unmet = noise[0] - state[0] - younger
        total = parameters["price"] * parameters["unit"] * action
        total += parameters["holding"] * max(younger - max(noise[0] - state[0], 0.0), 0.0)
        total += parameters["disposal"] * max(state[0] - noise[0], 0.0)
        total += parameters["backlog"] * max(unmet, 0.0)
        return total + parameters["lost"] * max(unmet - parameters["most_backlog"], 0.0)

    return StepModel(
        dimension=size,
        actions=[f"order {unit * a:g}" for a in range(orders)],
        step=step,
        cost=cost,
        discount=discount,
        noise=demand,
        initial=np.broadcast_to(np.asarray(start, dtype=np.float64), (size,)).copy(),
        lower=[deepest, *([0.0] * (size - 1))],
        upper=most,
        parameters=numbers,
        quadrature=quadrature,
        name="perishable inventory",
    )
