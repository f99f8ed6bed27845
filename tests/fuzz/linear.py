"""Random linear models with few pairs, priced, against all their rows written out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bellweight as bw

from .program import Findings, Listed, check_dual, check_objective, solved, typical
from .rational import Rows, UndecidedError, UnreachableError, integers, solve
from .tabular import Rng, discount, pick
from .values import Exactly, Numbers, optimal_values

Floats = NDArray[np.float64]

_SHORT = 0.95  # discount up to which episodes are short


@dataclass(frozen=True, eq=False)
class LinearCase:
    """A linear model with a method."""

    number: int
    family: str
    text: str
    model: bw.LinearModel
    method: Any
    closed: bool

    def run(self) -> Findings:
        """Solve by pricing and check against the rows of the whole box."""
        found, model = Findings(), self.model
        result = solved(
            found, model, bw.Affine(), self.method, simulation=bw.Simulation(episodes=100),
            stop=bw.Stop(max_iterations=4), judge=False,
        )  # fmt: skip
        states, actions = _pairs(model)
        rows, cost = _rows(model, states, actions)
        if result is None:
            moments = [Fraction(1), *(Fraction(float(m)) for m in model.initial_mean)]
            return found if self.closed else _excused(found, rows, moments)
        moments = [Fraction(float(moment)) for moment in result.moments]
        try:
            truth = solve(rows, moments)
        except UndecidedError as problem:
            found.undecided.append(str(problem))
            return found
        ends = {"CONVERGED", "CYCLING", "ITERATION_LIMIT"}
        found.check(result.status.name in ends, f"status {result.status.name}", str(result.audit))
        zero = 1e-14 * typical(cost.floats()) / (1.0 - model.discount)
        check_objective(found, result, truth, zero)
        number = {
            (*s, *a): k
            for k, (s, a) in enumerate(zip(states.tolist(), actions.tolist(), strict=True))
        }
        dual = np.zeros(len(states))
        support = result.support
        for state, action, value in zip(
            support.states, support.actions, support.values, strict=True
        ):
            dual[number[*np.round(state).tolist(), *np.round(action).tolist()]] += value
        # The shortest dual is the one over the columns that pricing found: not over all rows.
        before = len(found.wrong)
        check_dual(found, result, Listed(rows, cost, moments, model.discount, zero), dual, truth)
        found.wrong[before:] = [w for w in found.wrong[before:] if "norm" not in w[0]]
        _greedy(found, result, model, states, actions)
        if self.closed and model.discount <= _SHORT:
            _certificate(found, result, model)
        return found


def _excused(found: Findings, rows: Rows, moments: list[Fraction]) -> Findings:
    """A program whose moments no dual has is unbounded, and to say so is right."""
    if [kind for kind, _ in found.wrong] == ["error UNBOUNDED"]:
        try:
            solve(rows, moments)
        except UnreachableError:
            found.wrong.clear()
            found.notes.append("unbounded, rightly")
    return found


def _certificate(found: Findings, result: Any, model: bw.LinearModel) -> None:
    """What is certified as a lower bound is one: against the exact optimum of the listed model."""
    certificate = bw.certify(model, result, episodes=100)
    if certificate.bound is None:
        found.notes.append(f"no certificate: {certificate.reason}")
        return
    exactly = Exactly.of(model.to_tabular())
    best, off = optimal_values(exactly)
    above = float(Fraction(certificate.value) - exactly.initial @ best - off)
    allowed = 1e-12 * float(exactly.initial @ best.sizes())
    found.check(above <= allowed, "certificate value", f"above the optimum by {above:.3g}")


def _greedy(
    found: Findings, result: Any, model: bw.LinearModel, states: Floats, actions: Floats
) -> None:
    """In states of the box the action is the cheapest of all that are admissible."""
    price = model.action_cost + model.discount * (model.next_action.T @ result.coef[1:])
    sizes = np.abs(model.action_cost) + model.discount * (
        abs(model.next_action).T @ np.abs(result.coef[1:])
    )
    boxes = np.unique(states, axis=0)
    for state in boxes[:: max(1, len(boxes) // 5)]:
        mine = actions[(states == state).all(axis=1)]
        taken = np.asarray(result.policy.action(state), dtype=float)
        if not (mine == taken).all(axis=1).any():
            found.check(False, "greedy", f"{taken} is not admissible in {state}")
            return
        gap = float(taken @ price - (mine @ price).min())
        noise = 1e-30 * typical(model.action_cost)  # coefficients that are rounding of a zero
        allowed = 1e-9 * float((np.abs(mine) @ sizes).max()) + noise
        found.check(gap <= allowed, "greedy", f"state {state}: worse by {gap:.3g}")


def _pairs(model: bw.LinearModel) -> tuple[Floats, Floats]:
    """Return all states of the box with all their admissible actions."""
    spans = [
        range(int(low), int(high) + 1)
        for low, high in zip(
            [*model.state_lower, *model.action_lower], [*model.state_upper, *model.action_upper],
            strict=True,
        )
    ]  # fmt: skip
    both = np.array(list(product(*spans)), dtype=float)
    states, actions = both[:, : model.dimension], both[:, model.dimension :]
    values = states @ model.state_rows.toarray().T + actions @ model.action_rows.toarray().T
    kept = ((values <= model.row_upper) & (values >= model.row_lower)).all(axis=1)
    return states[kept], actions[kept]


def _rows(model: bw.LinearModel, states: Floats, actions: Floats) -> tuple[Rows, Numbers]:
    """Return the rows and costs of pairs without rounding."""
    factor = Fraction(model.discount)
    first, second = model.next_state.toarray(), model.next_action.toarray()
    matrix, scale = integers(np.hstack([first, second, model.drift[:, None]]))
    ones = np.ones((len(states), 1))
    pairs = np.hstack([states, actions, ones]).astype(int).astype(object)
    following = pairs @ matrix.T  # times scale
    below = factor.denominator * scale
    here = np.hstack([ones, states]).astype(int).astype(object) * below
    ahead = np.hstack([np.full((len(states), 1), scale, dtype=object), following])
    columns = here - factor.numerator * ahead
    priced = np.hstack([model.state_cost, model.action_cost, [model.constant_cost]])
    prices, shared = integers(priced)
    cost = Numbers(pairs @ prices, shared)
    scales = (Fraction(below),) * (model.dimension + 1)
    return Rows(columns, scales, cost.parts, shared), cost


def linear_case(number: int, rng: Rng) -> LinearCase:
    """Return a model whose constraints are knapsacks, closed or leading out of its box."""
    kind = pick(rng, ("fixed",) * 4 + ("policy", "pia"))
    closed = kind != "fixed" or rng.random() < 0.5
    n, m = int(rng.integers(1, 3 if closed else 4)), int(rng.integers(1, 3))
    most, noise = 3, rng.integers(0, 3, n)
    next_state = rng.integers(0, 2, (n, n)).astype(float)
    next_action = rng.integers(-1, 2, (n, m)).astype(float)
    upper = rng.integers(1, 4, n)
    if closed:
        # What was decided and what comes in is the next state: it never leaves its box.
        most, next_state, next_action = 2, np.zeros((n, n)), np.abs(next_action)
        upper = np.maximum((most * next_action.sum(axis=1)).astype(int) + noise, 1)
    c = int(rng.integers(1, 3))
    scale = 10.0 ** int(pick(rng, (0, 0, 0, -8, -3, 4, 9, 12)))
    spread = 10.0 ** rng.uniform(-3.0, 3.0, size=n) if rng.random() < 0.3 else np.ones(n)
    state_rows = rng.integers(0, 3, (c, n)).astype(float)
    factor = discount(rng)
    factor = factor if kind == "fixed" else min(factor, 0.95)  # episodes are simulated
    state_cost, action_cost = rng.integers(0, 6, n) * spread * scale, rng.integers(-6, 7, m) * scale
    most_cost = float(state_cost @ upper + most * np.abs(action_cost).sum() + 2.0 * scale)
    start = [bw.Law.uniform(0, int(k)) for k in upper]
    if rng.random() < 0.4:
        start = [bw.Law.certain(int(rng.integers(k + 1))) for k in upper]
    model = bw.LinearModel(
        state_cost=state_cost,
        action_cost=action_cost,
        first_cost=most_cost if closed else None,
        cost_growth=0.0 if closed else None,
        constant_cost=float(pick(rng, (0.0, 1.0, -2.0))) * scale,
        next_state=next_state,
        next_action=next_action,
        noise=bw.models.Independent([bw.Law.uniform(0, int(k)) for k in noise]),
        initial=bw.models.Independent(start),
        discount=factor,
        state_upper=upper,
        action_upper=most,
        state_rows=state_rows,
        action_rows=rng.integers(1, 5, (c, m)).astype(float),
        row_upper=state_rows @ upper + rng.integers(0, 8, c),
    )
    method = {
        "fixed": bw.Fixed(), "policy": bw.FromPolicy(bw.Uniform()), "pia": bw.PIA(),
    }[kind]  # fmt: skip
    text = f"{n} state, {m} action variables, discount {factor:.6g}, costs of {scale:g}, {kind}" + (
        ", closed" if closed else ""
    )
    return LinearCase(number, "linear", text, model, method, closed)
