"""A warehouse with real-valued stock: the example on which tutorials show approximate programs.

Stock s may be negative (orders owed to customers). An order a arrives before demand D, which is
normal(6, 3.5) cut to [0, 10]. With y = s + a - D the next stock is y clipped to [-4, 12], and

    cost = price a + holding max(s', 0) + backlog max(-s', 0) + disposal max(y - 12, 0)
           + lost max(-4 - y, 0).

The numbers are those of public tutorials on approximate linear programs; the model is a relative of
the inventories in Pakiman, Nadarajah, Soheili and Lin, "Self-guided approximate linear programs"
(Management Science). A small box and one dimension: the optimum is known on a fine grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import FloatArray
from bellweight.models import Normal, StepModel
from bellweight.models.noise import ContinuousLaw
from bellweight.policies import Rule

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
        quadrature=quadrature,
        name="continuous inventory",
    )


def base_stock(level: float, unit: float = 0.1, most: float = 6.0) -> Rule:
    """Return the rule that orders up to a level, as far as orders reach."""
    return Rule(_up_to, [level, unit, most])


def grid_optimum(model: StepModel, spacing: float = 0.02, tol: float = 1e-7) -> Any:
    """Return the optimum on a grid of stocks: levels (n,), values (n,) and actions (n,).

    Value iteration on the stock u = s + a after ordering: the expectation over the model's nodes is
    computed once for each u, with values between levels interpolated linearly. The unit of orders
    and the width of the box must be multiples of the spacing.
    """
    return _iterated(model, spacing, tol, None)


def grid_value(model: StepModel, policy: Any, spacing: float = 0.02, tol: float = 1e-7) -> Any:
    """Return levels (n,) and the values (n,) of a policy there, by the same iteration."""
    levels = _levels(model, spacing)
    chosen = np.asarray(policy.actions(levels[:, None]), dtype=np.int64)
    return _iterated(model, spacing, tol, chosen)[:2]


def proven_bound(model: StepModel, kinks: Sequence[float], result: Any) -> float:
    """Return a lower bound on the optimal cost of the model with its nodes, proven on all stocks.

    With a basis of kinks k, the slack of an action, cost + discount E[V(s')] - V(s), is continuous
    and piecewise linear in s. It bends only at kinks and where a node d of demand leads to a kink,
    to 0 or to an end of the box: at k, and at k + d - a. So its least value over the box is found
    among these stocks and the ends, and V(start) less the largest violation / (1 - discount) is at
    most the optimal cost, up to rounding.
    """
    low, high = float(model.lower[0]), float(model.upper[0])
    turns = np.unique([*kinks, 0.0, low, high])
    least = np.inf
    for action in range(model.n_actions):
        reached = turns[:, None] + model.nodes[:, 0] - model.numbers.given["unit"] * action
        stocks = np.unique(np.concatenate([turns, reached.ravel()]))
        stocks = stocks[(stocks >= low) & (stocks <= high)]
        cost, _, after = model.expand(stocks[:, None], np.full(len(stocks), action))
        ahead = (result.basis(after.reshape(-1, 1)) @ result.coef).reshape(len(stocks), -1)
        value = result.basis(stocks[:, None]) @ result.coef
        least = min(least, float((cost + model.discount * ahead @ model.weights - value).min()))
    assert model.start is not None
    start = float((result.basis(model.start[None, :]) @ result.coef)[0])
    return start - max(-least, 0.0) / (1.0 - model.discount)


def _levels(model: StepModel, spacing: float) -> FloatArray:
    low, high = float(model.lower[0]), float(model.upper[0])
    return np.linspace(low, high, round((high - low) / spacing) + 1)


def _iterated(model: StepModel, spacing: float, tol: float, chosen: Any) -> Any:
    """Iterate the Bellman operator, or that of the chosen actions, until values change by tol."""
    number = model.numbers.given
    levels = _levels(model, spacing)
    ordered = number["unit"] * np.arange(model.n_actions)
    reach = levels[-1] + ordered[-1] - levels[0]
    stocks = levels[0] + spacing * np.arange(round(reach / spacing) + 1)
    after = stocks[:, None] - model.nodes[:, 0]
    kept = np.clip(after, levels[0], levels[-1])
    paid = (
        number["holding"] * np.maximum(kept, 0.0)
        + number["backlog"] * np.maximum(-kept, 0.0)
        + number["disposal"] * np.maximum(after - levels[-1], 0.0)
        + number["lost"] * np.maximum(levels[0] - after, 0.0)
    ) @ model.weights
    place = np.rint((levels[:, None] + ordered - levels[0]) / spacing).astype(np.int64)
    values = np.zeros(len(levels))
    every = np.arange(len(levels))
    while True:
        ahead = np.interp(kept.ravel(), levels, values).reshape(kept.shape) @ model.weights
        quality = number["price"] * ordered + (paid + model.discount * ahead)[place]
        actions = quality.argmin(axis=1) if chosen is None else chosen
        new = quality[every, actions]
        change = np.abs(new - values).max()
        values = new
        if change < tol:
            return levels, values, actions


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


def _up_to(state: Any, parameters: Any) -> int:
    wanted = min(max(parameters[0] - state[0], 0.0), parameters[2])
    return int(np.floor(wanted / parameters[1] + 0.5))
