"""Models whose answers must not depend on the CPU, in one place, and a script that solves them all.

`python numerics_models.py` prints one line of JSON with the kernels that are in use, and then one
when a model is begun and one when it is solved. `test_kernels.py` runs it under different kernels.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl

import bellweight as bw

DEGREES = range(1, 11)
LAWS = ("empty", "geometric", "reverse")
QUICK = ((3, "empty"), (3, "geometric"), (3, "reverse"), (6, "empty"), (6, "geometric"),
         (6, "reverse"), (8, "empty"), (10, "empty"))  # fmt: skip
"""Degrees and laws that every run of the tests looks at."""


@dataclass(frozen=True)
class Problem:
    """What is solved, under a name."""

    name: str
    model: Callable[[], Any]
    basis: bw.bases.Basis
    method: bw.weights.Method
    options: Callable[[], dict[str, Any]] = dict


@functools.cache
def queue(law: str, capacity: int = 49_999) -> bw.TabularModel:
    """The paper's queue."""
    return bw.problems.single_queue(capacity=capacity, initial=law)


@functools.cache
def clinic() -> bw.TabularModel:
    """The paper's tiny clinic, all states listed."""
    return bw.problems.scheduling("tiny").to_tabular(clip=True)


@functools.cache
def network() -> bw.EventModel:
    """Two queues in a row and one server for both."""
    return bw.problems.queue_network(
        arrivals=[0.2, 0.0], services=[0.3, 0.4], routes=[1, None], groups=[[0, 1]],
        discount=0.95,
    )  # fmt: skip


def sampled() -> dict[str, Any]:
    """Constraint states of the network, and how it is simulated."""
    states = bw.sample_states(network(), 300, seed=1)
    return {"rows": bw.SampledRows(states), "simulation": bw.Simulation(200, 60), "jobs": 1}


def random_model(seed: int, scale: float = 1.0, discount: float = 0.95) -> bw.TabularModel:
    """Forty states, each of which may follow each, and costs of one size."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = 40, 3
    return bw.TabularModel.from_arrays(
        cost=scale * rng.uniform(0.0, 1.0, size=(n_states, n_actions)),
        transition=rng.dirichlet(np.ones(n_states), size=(n_actions, n_states)),
        discount=discount,
        initial=rng.dirichlet(np.ones(n_states)),
    )


def mixed_scales(seed: int) -> bw.TabularModel:
    """Costs from 1e-8 to 1e12 in one model, and some rows that go to one state only."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = 12, 2
    size = 10.0 ** rng.uniform(-8.0, 12.0, size=(n_states, n_actions))
    moves = rng.dirichlet(np.full(n_states, 0.3), size=(n_actions, n_states))
    moves[0, ::3] = np.eye(n_states)[rng.integers(n_states, size=4)]
    initial = np.full(n_states, 1.0 / n_states)
    return bw.TabularModel.from_arrays(size, moves, 0.9, initial)


def plain_moves(following: list[int], cost: list[float], discount: float) -> bw.TabularModel:
    """One action in each state, which leads to one state for sure; the start is state 0."""
    n = len(following)
    moves = np.eye(n)[following][None]
    return bw.TabularModel.from_arrays(np.array(cost)[:, None], moves, discount, np.eye(n)[0])


def nearly_dependent(states: Any) -> Any:
    """A constant, the state, and the state with a trifle that no double forgets."""
    x = np.asarray(states, dtype=float)[:, 0]
    return np.column_stack([np.ones(len(x)), x, x * (1.0 + 1e-9 * np.cos(x))])


def problems(*, every: bool) -> Iterator[Problem]:
    """The problems of the list: quick ones first, so that a slow one keeps few waiting.

    Without `every` only those that take a fraction of a second, and a few of the paper's.
    """
    yield from small_problems()
    if every:
        yield from queues()
        return
    for degree, law in QUICK:
        paper = functools.partial(queue, law, 49_999 if degree < 7 else 999)
        name = f"queue, {law}, degree {degree}"
        yield Problem(name, paper, bw.Polynomial(degree), bw.Fixed("initial"))
    far = functools.partial(queue, "reverse", 4_999)
    yield Problem("queue, reverse, degree 7, DIA", far, bw.Polynomial(7), bw.DIA())
    for law in LAWS:
        kinks = bw.PiecewiseLinear(np.array([2.0, 5.0, 10.0, 30.0, 100.0]))
        few = functools.partial(queue, law, 999)
        yield Problem(f"queue of 1,000 states, {law}, kinks", few, kinks, bw.Fixed("initial"))
        short = functools.partial(queue, law, 300)
        yield Problem(f"queue of 301 states, {law}, PIA", short, bw.Polynomial(4), bw.PIA())


def queues() -> Iterator[Problem]:
    """The paper's queue: kinks, all degrees, all laws."""
    for law in LAWS:
        short = functools.partial(queue, law, 300)
        yield Problem(f"queue of 301 states, {law}, PIA", short, bw.Polynomial(4), bw.PIA())
        kinks = bw.PiecewiseLinear(np.array([2.0, 5.0, 10.0, 30.0, 100.0, 1000.0]))
        # Weights on the empty queue alone leave most kinks open: the optimum is not unique.
        weights = bw.Fixed("initial")
        yield Problem(f"queue, {law}, kinks", functools.partial(queue, law), kinks, weights)
    for degree in DEGREES:
        for law in LAWS:
            name = f"queue, {law}, degree {degree}"
            paper = functools.partial(queue, law)
            yield Problem(name, paper, bw.Polynomial(degree), bw.Fixed("initial"))
            if degree == 3 or degree >= 6:
                yield Problem(f"{name}, DIA", paper, bw.Polynomial(degree), bw.DIA())


def small_problems() -> Iterator[Problem]:
    """The clinic, a network, random models, bad scales and extreme discounts."""
    for degree in (1, 2):
        yield Problem(f"clinic, degree {degree}", clinic, bw.Polynomial(degree), bw.DIA())
    for method in (bw.Fixed("initial"), bw.DIA()):
        name = f"network, sampled, {type(method).__name__}"
        yield Problem(name, network, bw.Polynomial(2), method, sampled)
    for seed in range(10):
        model = functools.partial(random_model, seed)
        yield Problem(f"random {seed}, cubic", model, bw.Polynomial(3), bw.DIA())
        yield Problem(f"random {seed}, exact", model, bw.Indicator(), bw.Fixed("uniform"))
    for power in (-8, -4, 4, 8, 12):
        model = functools.partial(random_model, 7, 10.0**power, 0.99)
        yield Problem(f"random, costs of 1e{power}", model, bw.Polynomial(3), bw.PIA())
    for seed in range(8):
        model = functools.partial(mixed_scales, seed)
        yield Problem(f"mixed scales {seed}", model, bw.Polynomial(3), bw.Fixed("uniform"))
    for following, cost, discount in (
        ([3, 3, 1, 0], [5.0, 5.0, 2.0, 4.0], 0.999),
        ([1, 1, 2], [4.0, 9.0, 8.0], 0.9999),
        ([1, 2, 0, 3], [1.0, 0.0, 7.0, 1e6], 0.99),
    ):
        model = functools.partial(plain_moves, following, cost, discount)
        yield Problem(f"plain moves {following}", model, bw.Polynomial(2), bw.DIA())
    for degree in (5, 7):
        model = functools.partial(random_model, 9)
        yield Problem(f"random, degree {degree}", model, bw.Polynomial(degree), bw.PIA())
    for seed in range(4):
        model, basis = functools.partial(random_model, seed), bw.Custom(nearly_dependent)
        yield Problem(f"nearly dependent {seed}", model, basis, bw.Fixed("initial"))
        model = functools.partial(random_model, seed)
        yield Problem(f"radial {seed}", model, bw.Radial(5), bw.DIA())
    for discount in (0.01, 0.9999):
        model = functools.partial(random_model, 8, 1.0, discount)
        yield Problem(f"random, discount {discount}", model, bw.Polynomial(3), bw.DIA())


def switches(actions: Any) -> list[list[int]]:
    """The places where the action changes, each with the action from there on."""
    actions = np.asarray(actions)
    first = np.flatnonzero(np.diff(actions, prepend=-1))
    return [[int(place), int(actions[place])] for place in first]


def solved(problem: Problem) -> dict[str, Any]:
    """What is compared between kernels: status, policy, bound and cost."""
    model, options = problem.model(), problem.options()
    try:
        judge = not isinstance(model, bw.TabularModel)  # there the cost is exact in any case
        result = bw.solve(model, problem.basis, problem.method, judge=judge, **options)
    except bw.BellweightError as failure:
        return {"status": type(failure).__name__, "message": str(failure)}
    if isinstance(model, bw.TabularModel):
        chosen = result.policy.probabilities(model).nonzero()[0]
        actions = switches(model.pair_action[chosen])
    else:
        actions = switches([result.policy.action(state) for state in options["rows"].states])
    return {
        "status": result.status.name,
        "policy": actions,
        "lower_bound": result.lower_bound,
        "objective": result.objective,
        "cost": None if result.cost is None else result.cost.mean,
    }


def kernels() -> dict[str, Any]:
    """The code that computes here: that of each BLAS, and what Numba compiles for."""
    from numba.core.registry import cpu_target

    np.linalg.solve(np.eye(2), np.eye(2))
    blas = [pool["architecture"] for pool in threadpoolctl.threadpool_info()
            if pool["internal_api"] == "openblas"]  # fmt: skip
    return {
        "blas": sorted(set(blas)),
        "numba": cpu_target.target_context.codegen().magic_tuple()[1],
    }


def main() -> None:
    """Solve every problem and say so, line by line."""
    print(json.dumps(kernels()), flush=True)
    for problem in problems(every="--all" in sys.argv):
        print(json.dumps({"begun": problem.name}), flush=True)
        began = time.process_time()
        found = solved(problem)
        seconds = time.process_time() - began
        print(json.dumps({"name": problem.name, **found, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
