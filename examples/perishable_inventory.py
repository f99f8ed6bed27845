"""Goods that perish and arrive late: quadratics lose a quarter of a per cent.

The perishable inventory of Pakiman, Nadarajah, Soheili and Lin with lead time 2 and life 2. The
state is the stock of two ages and the order under way. Rows come from states all over the box; five
samples of them give five policies. Since orders are whole numbers, the optimum is known exactly.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw
from bellweight.problems.order_rules import base_stock
from bellweight.problems.pipeline import pipeline_optimum, pipeline_value

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="fewer samples on a coarser grid")
quick = parser.parse_args().quick

model = bw.problems.perishable_inventory()
levels = np.linspace(-10.0, 10.0, 81 if quick else 201)
best = pipeline_optimum(model, levels, tol=1e-3)
optimum = best.at(model.start)
rule = pipeline_value(model, base_stock(15.0, most=10.0), levels, tol=1e-3).at(model.start)
print(f"optimal cost            {optimum:8.2f}")
print(f"ordering up to 15       {rule:8.2f}  ({100 * (rule / optimum - 1):+.3f} %)")
for seed in range(2 if quick else 5):
    result = bw.solve(
        model, bw.Polynomial(2), bw.DIA(), rows=bw.SampledRows(model.spread_states(1_000, seed)),
        simulation=bw.Simulation(episodes=100), judge=False,
    )  # fmt: skip
    ours = pipeline_value(model, result.policy, levels, tol=1e-3)
    cost = ours.at(model.start)
    print(f"quadratics, sample {seed}    {cost:8.2f}  ({100 * (cost / optimum - 1):+.3f} %)")

figure = Figure(figsize=(9.0, 4.0), layout="constrained")
axes = figure.subplots(1, 3, sharey=True)
for under_way, panel in zip((0, 5, 10), axes, strict=True):
    panel.step(levels, best.actions[:, 5, under_way], color="0.4", ls=":", lw=2.5, label="optimal")
    panel.step(levels, ours.actions[:, 5, under_way], color="#0072B2", label="quadratics")
    panel.set_title(f"{under_way} under way, 5 of the young", fontsize="medium", loc="left")
    panel.set_xlabel("oldest stock (negative: owed)")
axes[0].set_ylabel("order")
axes[0].legend(frameon=False)
figure.savefig("perishable_inventory.png", dpi=150)
