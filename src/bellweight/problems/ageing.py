"""Perishable goods that age on the shelf, lost sales, and a lead time.

Goods live for `life` periods; an order arrives `lead` periods after it is placed, at the end of the
period before it can be sold. A state has life + lead - 1 whole numbers: the stock on the shelf,
oldest first, and then the orders under way, the next one first. In a period a new order leaves,
demand takes the oldest goods first ("fifo") or the youngest first ("lifo"), what remains of the
oldest is thrown away, the rest grows older by one period and the next order arrives:

    cost = price order + shortage unmet + waste thrown away + holding kept.

De Moor, Gijsbrechts and Boute, "Reward shaping to improve the performance of deep reinforcement
learning in perishable inventory management" (European Journal of Operational Research 2022), study
life 2 to 5, lead times 1 and 2, waste at 7 and 10, and both orders of issue. The defaults are their
first case (life 2, lead time 1, last in first out, waste 7): price 3, shortage 5, holding 1,
discount 0.99, at most 10 units ordered, gamma demand with mean 4 and coefficient of variation 0.5,
rounded to whole numbers. An empty shelf at the start is set here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammainc

from bellweight.common import checks
from bellweight.common.status import ModelError
from bellweight.models import Law, StepModel


def ageing_stock(
    demand: Any = None,
    *,
    life: int = 2,
    lead: int = 1,
    issue: str = "lifo",
    most: int = 10,
    price: float = 3.0,
    shortage: float = 5.0,
    waste: float = 7.0,
    holding: float = 1.0,
    discount: float = 0.99,
    start: Any = 0,
) -> StepModel:
    """Return the model with orders of 0, 1, ..., `most`.

    `demand` is a law of whole numbers, such as `Law.poisson(4, 20)`; `rounded_gamma` gives others.
    """
    ages = checks.count(life, "life")
    size = ages + checks.count(lead, "lead") - 1
    if issue not in ("fifo", "lifo"):
        raise ModelError(f'issue is {issue!r}, expected "fifo" (oldest first) or "lifo"')
    law = rounded_gamma(4.0, 0.5) if demand is None else demand
    numbers = {
        "price": price, "shortage": shortage, "waste": waste, "holding": holding,
        "oldest_first": float(issue == "fifo"),
    }  # fmt: skip

    def step(state: Any, action: int, noise: Any, parameters: Any, successor: Any) -> None:
        wanted = noise[0]
        for k in range(ages):
            age = k if parameters["oldest_first"] > 0.0 else ages - 1 - k
            sold = min(wanted, state[age] * 1.0)
            wanted -= sold
            # The oldest goods are thrown away; all others move one place towards the oldest.
            if age > 0:
                successor[age - 1] = state[age] - sold
        for i in range(ages, size):
            successor[i - 1] = state[i]
        successor[size - 1] = action

    def cost(state: Any, action: int, noise: Any, parameters: Any) -> float:
        wanted, kept, left = noise[0], 0.0, 0.0
        for k in range(ages):
            age = k if parameters["oldest_first"] > 0.0 else ages - 1 - k
            sold = min(wanted, state[age] * 1.0)
            wanted -= sold
            if age > 0:
                kept += state[age] - sold
            else:
                left = state[age] - sold
        total = parameters["price"] * action + parameters["shortage"] * wanted
        return total + parameters["waste"] * left + parameters["holding"] * kept

    return StepModel(
        dimension=size,
        actions=[f"order {a}" for a in range(checks.count(most, "most") + 1)],
        step=step,
        cost=cost,
        discount=discount,
        noise=law,
        initial=np.broadcast_to(np.asarray(start, dtype=np.float64), (size,)).copy(),
        lower=0,
        upper=most,
        integer=True,
        parameters=numbers,
        name="ageing stock",
    )


def rounded_gamma(mean: float, variation: float, limit: int = 40) -> Law:
    """Return a gamma law rounded to whole numbers; what exceeds `limit` counts as `limit`.

    `variation` is the coefficient of variation, deviation / mean.
    """
    shape = 1.0 / checks.positive(variation, "variation") ** 2
    scale = checks.positive(mean, "mean") / shape
    below = gammainc(shape, (np.arange(checks.count(limit, "limit")) + 0.5) / scale)
    return Law(np.arange(limit + 1), np.diff(np.concatenate([[0.0], below, [1.0]])))
