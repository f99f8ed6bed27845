"""Inventories and machines from the literature: what our policies cost, beside optima and rules.

    python -m studies.stock                      all parts
    python -m studies.stock perishable --quick   one part, small

Each part solves its problem by the calls that a user would make and prints a table. Costs of whole
or nearly whole states are exact (see `problems/pipeline.py`); the others are simulated on common
random numbers, with 95 % intervals of paired differences.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bellweight as bw
from bellweight.display import Column, Table, to_text
from bellweight.problems.lost_sales import myopic
from bellweight.problems.maintenance import replace_the_worst
from bellweight.problems.order_rules import base_stock
from bellweight.problems.pipeline import pipeline_optimum, pipeline_value
from bellweight.simulation import distinct_states


@dataclass(frozen=True)
class Settings:
    """How much is computed."""

    samples: int = 5
    states: int = 1_500
    degree: int = 4
    penalties: tuple[float, ...] = (4.0, 9.0, 19.0)
    lead: int = 4
    episodes: int = 200
    horizon: int = 500
    kinks: int = 64
    grid: int = 801


QUICK = Settings(
    samples=2, states=300, degree=2, penalties=(4.0,), lead=2, episodes=20, horizon=300, kinks=16,
    grid=161,
)  # fmt: skip


def perishable(settings: Settings) -> Table:
    """Perishable goods, lead time 2 and life 2: quadratics, over samples of constraint states."""
    model = bw.problems.perishable_inventory()
    optimum = pipeline_optimum(model, tol=1e-3).at(model.start)
    rows = [_row("optimum", optimum, optimum)]
    for seed in range(settings.samples):
        sample = bw.SampledRows(model.spread_states(settings.states, seed))
        result, seconds = _timed(model, bw.Polynomial(2), bw.DIA(), sample)
        cost = _pipeline_cost(model, result.policy)
        rows.append(_row(f"sample {seed}", cost, optimum, seconds=seconds))
    levels = range(14, 17)
    rule, level = min((_pipeline_cost(model, base_stock(s, 10.0)), s) for s in levels)
    rows.append(_row(f"order up to {level}", rule, optimum))
    return _table("perishable", rows)


def lost_sales(settings: Settings) -> Table:
    """Lost sales: polynomials around what the best capped base-stock rule visits."""
    rows = []
    for penalty in settings.penalties:
        model = bw.problems.lost_sales(penalty=penalty, lead=settings.lead)
        optimum = pipeline_optimum(model, tol=1e-3).at(model.start)
        rules = best_rules(model)
        target = rules["capped base stock"]
        sample = _visited(model, settings.states, target)
        basis = bw.Polynomial(settings.degree)
        result, seconds = _timed(model, basis, bw.DIA(target=target), sample)
        policies = {"ours": result.policy, **rules, "myopic": myopic(model)}
        paired = bw.compare(
            model, policies, episodes=settings.episodes, horizon=settings.horizon, seed=1
        ).differences
        for name, policy in policies.items():
            cost = _pipeline_cost(model, policy)
            spent = seconds if name == "ours" else None
            difference = None if name == "ours" else paired[name]
            rows.append(
                _row(f"penalty {penalty:g}: {name}", cost, optimum, difference, seconds=spent)
            )
            print(rows[-1], file=sys.stderr, flush=True)
    return _table("lost sales", rows)


def best_rules(model: bw.StepModel) -> dict[str, bw.Rule]:
    """Return the best base-stock rule and the best capped one, by their exact costs."""
    most = model.n_actions - 1
    level, _ = _descended(model, (6 * model.dimension, most), ((1, 0), (-1, 0)))
    steps = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
    capped = _descended(model, (level + 1, 6), steps)
    return {"base stock": base_stock(level, most), "capped base stock": base_stock(*capped)}


def _descended(
    model: bw.StepModel, start: tuple[int, int], steps: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Return level and cap from which no step leads to a rule of lower cost."""
    found: dict[tuple[int, int], float] = {}

    def cost(place: tuple[int, int]) -> float:
        if place not in found:
            found[place] = pipeline_value(model, base_stock(*place), tol=0.01).at(model.start)
        return found[place]

    place = start
    while True:
        near = [place, *((place[0] + up, place[1] + wider) for up, wider in steps)]
        best = min(near, key=cost)
        if best == place:
            return place
        place = best


def ageing(settings: Settings) -> Table:
    """Stock that ages: polynomials on states that random orders and the best level visit."""
    rows = []
    for issue in ("lifo", "fifo"):
        model = bw.problems.ageing_stock(issue=issue, life=2, lead=2)
        table = model.to_tabular()
        optimum = float(table.initial @ bw.exact.optimal(table).values)
        levels = range(6, 14)

        def cost(policy: Any, table: bw.TabularModel = table) -> float:
            return float(table.initial @ bw.exact.policy_value(table, policy))

        rule, level = min((cost(base_stock(s, 10.0)), s) for s in levels)
        target = base_stock(level, 10.0)
        basis, sample = bw.Polynomial(settings.degree), _visited(model, 600, target)
        result, seconds = _timed(model, basis, bw.DIA(target=target), sample)
        chosen = np.asarray(result.policy.actions(table.states.astype(np.int64)))
        ours = cost(bw.TablePolicy(chosen))
        rows.append(_row(f"{issue}: ours", ours, optimum, seconds=seconds))
        rows.append(_row(f"{issue}: order up to {level}", rule, optimum))
    return _table("ageing", rows)


def tutorial(settings: Settings) -> Table:
    """The continuous inventory of tutorials: kinks, a grid of stocks, a proven bound."""
    model = bw.problems.continuous_inventory()
    kinks = np.linspace(-4.0, 12.0, settings.kinks + 1)[1:-1]
    sample = bw.SampledRows(np.linspace(-4.0, 12.0, 10 * settings.kinks + 1)[:, None])
    result, seconds = _timed(model, bw.PiecewiseLinear(kinks), bw.Fixed("initial"), sample)
    grid = model.to_tabular(grid=settings.grid)
    optimum = float(grid.initial @ bw.exact.optimal(grid).values)
    chosen = bw.TablePolicy(result.policy.actions(grid.states))
    ours = float(grid.initial @ bw.exact.policy_value(grid, chosen))
    rows = [
        _row("optimum on the grid", optimum, optimum),
        _row("ours", ours, optimum, seconds=seconds),
        _row("proven bound", _bound(result), optimum),
    ]
    return _table("tutorial", rows)


def machines(settings: Settings) -> Table:
    """Ten machines and a crew for two: a table for each machine, rows of all states."""
    model = bw.problems.machine_maintenance()
    result, seconds = _timed(model, bw.PiecewiseLinear([1, 2, 3]), bw.DIA(), bw.LocalRows())
    burden = np.geomspace(4.0, 0.25, 10)
    policies: dict[str, bw.policies.Policy] = {"ours": result.policy}
    for least in (1, 2, 3):
        policies[f"worst first, from level {least}"] = replace_the_worst(10, least)
        policies[f"dearest first, from level {least}"] = replace_the_worst(10, least, burden)
    found = bw.compare(model, policies, episodes=10 * settings.episodes, seed=1)
    bound = _bound(result)
    rows = [_row("no policy costs less than", bound, bound, seconds=seconds)]
    for name in policies:
        paired = None if name == "ours" else found.differences[name]
        rows.append(_row(name, found.evaluations[name].mean, bound, paired))
    return _table("machines", rows)


PARTS: dict[str, Callable[[Settings], Table]] = {
    "perishable": perishable,
    "lost_sales": lost_sales,
    "ageing": ageing,
    "tutorial": tutorial,
    "machines": machines,
}


def main(words: Sequence[str] | None = None) -> int:
    """Run some parts, or all of them, and print their tables."""
    parser = argparse.ArgumentParser("python -m studies.stock", description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="small versions")
    given = parser.parse_args(words)
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: expected some of {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        print(to_text(PARTS[part](QUICK if given.quick else Settings())), flush=True)
    return 0


def _timed(model: Any, basis: Any, method: Any, rows: Any) -> tuple[bw.Result, float]:
    start = time.process_time()
    result = bw.solve(
        model, basis, method, rows=rows, simulation=bw.Simulation(episodes=100),
        stop=bw.Stop(max_iterations=10), judge=False,
    )  # fmt: skip
    return result, time.process_time() - start


def _visited(model: bw.StepModel, states: int, rule: bw.Rule) -> bw.SampledRows:
    """Return rows at states that random orders and a rule visit, as many of each."""
    visited = [distinct_states(model, states, policy, seed=0)[0] for policy in (bw.Uniform(), rule)]
    return bw.SampledRows(np.unique(np.concatenate(visited), axis=0))


def _pipeline_cost(model: bw.StepModel, policy: Any) -> float:
    return pipeline_value(model, policy, tol=1e-3).at(model.start)


def _bound(result: bw.Result) -> float:
    assert result.lower_bound is not None, "these programs prove a bound"
    return result.lower_bound


def _row(
    name: str, cost: float, reference: float, paired: Any = None, seconds: float | None = None
) -> dict[str, Any]:
    return {
        "policy": name,
        "cost": cost,
        "above": round(100.0 * (cost / reference - 1.0), 6) + 0.0,  # no minus for rounding
        "paired": "" if paired is None else f"{paired.mean:+.2f} +- {paired.half_width:.2f}",
        "seconds": "" if seconds is None else f"{seconds:.1f}",
    }


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    columns = (
        Column("policy", "policy", right=False),
        Column("cost", "cost", show=lambda x: f"{x:.2f}"),
        Column("above", "above the first or the optimum, %", show=lambda x: f"{x:+.3f}"),
        Column("paired", "minus ours"),
        Column("seconds", "CPU seconds"),
    )
    return Table(title, columns, tuple(rows))


if __name__ == "__main__":
    sys.exit(main())
