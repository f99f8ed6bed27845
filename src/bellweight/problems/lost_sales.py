"""Lost sales with a lead time: demand that finds no stock is lost, and orders arrive late.

A state has `lead` coordinates: the stock on the shelf, and the orders under way, the next one
first. Demand D takes what is on the shelf; then the next order arrives and a new one leaves:

    (x_1, x_2, ..., x_L), order a    ->    (max(x_1 - D, 0) + x_2, x_3, ..., x_L, a)
    cost = holding max(x_1 - D, 0) + penalty max(D - x_1, 0).

Zipkin, "Old and new methods for lost-sales inventory systems" (Operations Research 2008), computes
optimal average costs for Poisson demand with mean 5, holding 1, lead times up to 4 and penalties of
4, 9, 14 and 19, and compares rules of thumb. Costs here are discounted: (1 - discount) times the
value tends to the average as the discount tends to one. The capacity, beyond which nothing is
ordered, and the start are set here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.models import Law, StepModel
from bellweight.policies import Rule


def lost_sales(
    demand: Any = None,
    *,
    lead: int = 4,
    penalty: float = 4.0,
    holding: float = 1.0,
    most: int = 10,
    capacity: int = 36,
    discount: float = 0.99,
    start: Any = 5,
) -> StepModel:
    """Return the model with orders of 0, 1, ..., `most`.

    `demand` is a law of whole numbers, by default Poisson(5) conditioned on being at most 24, which
    it exceeds once in 10^11 periods. Stock and orders together never exceed `capacity`.
    """
    size = checks.count(lead, "lead", least=2)
    top = checks.count(capacity, "capacity")
    law = Law.poisson(5.0, 24) if demand is None else demand

    def admissible(state: Any, action: int, parameters: Any) -> bool:
        return action == 0 or state.sum() + action <= parameters["capacity"]

    def step(state: Any, action: int, noise: Any, parameters: Any, successor: Any) -> None:
        left = max(state[0] - noise[0], 0.0)
        # States with more under way than there is room for are never reached by orders.
        successor[0] = min(left + state[1], parameters["capacity"])
        for i in range(1, size - 1):
            successor[i] = state[i + 1]
        successor[size - 1] = action

    def cost(state: Any, noise: Any, parameters: Any) -> float:
        short = noise[0] - state[0]
        return max(-parameters["holding"] * short, parameters["penalty"] * short)

    return StepModel(
        dimension=size,
        actions=[f"order {a}" for a in range(checks.count(most, "most") + 1)],
        step=step,
        cost=cost,
        admissible=admissible,
        discount=discount,
        noise=law,
        initial=np.broadcast_to(np.asarray(start, dtype=np.float64), (size,)).copy(),
        lower=0,
        upper=[top, *([most] * (size - 1))],
        integer=True,
        parameters={"holding": holding, "penalty": penalty, "capacity": float(top)},
        name="lost sales",
    )


def myopic(model: StepModel) -> Rule:
    """Return the rule that orders only for the period in which the order arrives.

    It orders the least number of units with which demand in that period is met with a probability
    of at least penalty / (penalty + holding), given the stock and the orders under way (Morton
    1971; Zipkin's "myopic" policy).
    """
    given = model.numbers.given
    wanted = given["penalty"] / (given["penalty"] + given["holding"])
    most, top, size = model.n_actions - 1, int(model.upper[0]), model.dimension
    values, chances = model.nodes[:, 0].astype(np.int64), model.weights
    met = np.array([chances[values <= stock].sum() for stock in range(top + most + 1)])

    def rule(state: Any) -> int:
        law = np.zeros(top + 1)
        law[state[0]] = 1.0
        total = state[0]
        for i in range(size):
            after = np.zeros(top + 1)
            arriving = state[i + 1] if i + 1 < size else 0
            for stock in range(top + 1):
                if law[stock] > 0.0:
                    for k in range(len(values)):
                        left = min(max(stock - values[k], 0) + arriving, top)
                        after[left] += law[stock] * chances[k]
            law = after
            total += arriving
        order, room = 0, min(most, top - total)
        while order < room and np.dot(law, met[order : order + top + 1]) < wanted:
            order += 1
        return order

    return Rule(rule)
