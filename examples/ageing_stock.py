"""Stock that ages on the shelf: what customers take first changes what to order.

The perishable goods of De Moor, Gijsbrechts and Boute: they live for two periods, arrive two
periods after they are ordered, and sales beyond the stock are lost. Customers take the youngest
goods first (lifo) or the oldest (fifo). Polynomials of degree four, on states that random orders
and the best level to order up to visit, are compared with the optimum of all 1,331 states.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw
from bellweight.problems.order_rules import base_stock
from bellweight.simulation import distinct_states

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="one order of issue")
issues = ("lifo",) if parser.parse_args().quick else ("lifo", "fifo")

figure = Figure(figsize=(4.5 * len(issues), 4.0), layout="constrained")
panels = np.atleast_1d(figure.subplots(1, len(issues), sharey=True))
for issue, axes in zip(issues, panels, strict=True):
    model = bw.problems.ageing_stock(life=2, lead=2, issue=issue)
    table = model.to_tabular()
    exact = bw.exact.optimal(table)
    optimum = float(table.initial @ exact.values)
    costs = {
        level: float(table.initial @ bw.exact.policy_value(table, base_stock(level, 10)))
        for level in range(4, 14)
    }
    level = min(costs, key=lambda one: costs[one])
    rule = base_stock(level, 10)
    visited = [distinct_states(model, 600, policy)[0] for policy in (bw.Uniform(), rule)]
    result = bw.solve(
        model, bw.Polynomial(4), bw.DIA(target=rule),
        rows=bw.SampledRows(np.unique(np.concatenate(visited), axis=0)),
        simulation=bw.Simulation(episodes=100), judge=False,
    )  # fmt: skip
    orders = np.asarray(result.policy.actions(table.states.astype(np.int64)))
    ours = float(table.initial @ bw.exact.policy_value(table, bw.TablePolicy(orders)))
    # Rounded first: a millionth below zero is rounding, and would be shown as minus nothing.
    above, rule_above = (round(100 * (c / optimum - 1), 3) + 0.0 for c in (ours, costs[level]))
    print(f"{issue}: optimal cost {optimum:.2f}, ours {above:+.3f} %, ", end="")
    print(f"ordering up to {level} {rule_above:+.3f} %")
    best = np.asarray(exact.policy.actions(np.arange(table.n_states)))
    shown = (table.states[:, 0] == 2) & (table.states[:, 2] == 4)
    young = table.states[shown, 1]
    axes.step(young, best[shown], where="mid", color="0.4", ls=":", lw=2.5, label="optimal")
    axes.step(young, orders[shown], where="mid", color="#0072B2", label="ours")
    axes.set_title(f"{issue}: 2 old, 4 under way", fontsize="medium", loc="left")
    axes.set_xlabel("young stock")
panels[0].set_ylabel("order")
panels[0].legend(frameon=False)
figure.savefig("ageing_stock.png", dpi=150)
