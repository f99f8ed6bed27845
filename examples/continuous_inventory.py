"""How much to order when stock is a real number, not a count: a bound for all stocks, proven.

The warehouse of tutorials on approximate linear programs: stock between -4 and 12, normal demand
cut to [0, 10], and a large cost for demand beyond the backlog. Kinks describe the value; the
program's rows are those of a grid of stocks. Since all functions are piecewise linear, the bound is
proven between the grid's points too. One dimension is few enough for the optimum on a fine grid.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw
from bellweight.problems.order_rules import base_stock

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="fewer kinks and fewer stocks")
fineness = 1 if parser.parse_args().quick else 2

model = bw.problems.continuous_inventory()
kinks = np.linspace(-4.0, 12.0, 32 * fineness + 1)[1:-1]
stocks = np.linspace(-4.0, 12.0, 320 * fineness + 1)[:, None]
result = bw.solve(
    model, bw.PiecewiseLinear(kinks), bw.Fixed("initial"), rows=bw.SampledRows(stocks),
    simulation=bw.Simulation(episodes=50), judge=False,
)  # fmt: skip

grid = model.to_tabular(grid=160 * fineness + 1)
best = bw.exact.optimal(grid)
levels, values = grid.states[:, 0], best.values
orders = best.policy.actions(np.arange(grid.n_states))


def cost_of(policy):
    """Return the cost from stock 6 on the grid."""
    table = bw.TablePolicy(policy.actions(grid.states))
    return float(grid.initial @ bw.exact.policy_value(grid, table))


optimum = float(grid.initial @ values)
ours = cost_of(result.policy)
rules = {level: base_stock(level, 6.0, 0.1).on(model) for level in np.arange(10.0, 21.0, 2.0)}
costs = {level: cost_of(rules[level]) for level in rules}
level = min(costs, key=lambda one: costs[one])
bound = result.lower_bound
print(f"optimal cost from stock 6      {optimum:9.2f}")
print(f"our policy                     {ours:9.2f}  ({100 * (ours / optimum - 1):+.3f} %)")
print(f"ordering up to {level:<4g}            {costs[level]:9.2f}  ", end="")
print(f"({100 * (costs[level] / optimum - 1):+.3f} %, the best of {len(costs)} levels)")
print(f"proven lower bound             {bound:9.2f}  ({100 * (bound / optimum - 1):+.3f} %)")
print(f"({result.lower_bound_reason})")

figure = Figure(figsize=(9.0, 4.0), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(levels, values, color="0.4", ls=":", lw=2.5, label="optimal")
left.plot(levels, result.basis(levels[:, None]) @ result.coef, color="#0072B2", label="kinks")
left.set_ylabel("discounted cost")
left.legend(frameon=False)
right.step(levels, 0.1 * orders, where="mid", color="0.4", ls=":", lw=2.5)
right.step(levels, 0.1 * result.policy.actions(levels[:, None]), where="mid", color="#0072B2")
right.set_ylabel("order")
for axes in (left, right):
    axes.set_xlabel("stock")
figure.savefig("continuous_inventory.png", dpi=150)
