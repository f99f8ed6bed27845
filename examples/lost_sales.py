"""Lost sales with a lead time: a program around the best rule of thumb improves on it.

Zipkin's lost-sales system: Poisson demand with mean 5, a penalty of 4 for each lost sale, and
orders that arrive four periods later. Ordering up to a level is a poor rule here; with a cap on
orders it is good. Polynomials of degree 4 on states that the capped rule and random orders visit
are better still. Orders only move up, so all costs are exact.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw
from bellweight.problems.lost_sales import myopic
from bellweight.problems.order_rules import base_stock
from bellweight.problems.pipeline import pipeline_optimum, pipeline_value
from bellweight.simulation import distinct_states

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a lead time of 2")
quick = parser.parse_args().quick

lead, degree, states = (2, 3, 500) if quick else (4, 4, 1_500)
model = bw.problems.lost_sales(lead=lead, penalty=4.0)
optimum = pipeline_optimum(model, tol=1e-3).at(model.start)


def cost_of(policy):
    """Return the exact cost from the start."""
    return pipeline_value(model, policy, tol=1e-3).at(model.start)


level, cap = (17, 6) if quick else (26, 5)
rule = base_stock(level, cap)
visited = [distinct_states(model, states, policy)[0] for policy in (bw.Uniform(), rule)]
result = bw.solve(
    model, bw.Polynomial(degree), bw.DIA(target=rule),
    rows=bw.SampledRows(np.unique(np.concatenate(visited), axis=0)),
    simulation=bw.Simulation(episodes=100), judge=False,
)  # fmt: skip

policies = {
    "ours": result.policy,
    f"up to {level}, at most {cap}": rule,
    "myopic": myopic(model),
    f"up to {level - 1}": base_stock(level - 1, 10),
}
losses = {name: 100 * (cost_of(policy) / optimum - 1) for name, policy in policies.items()}
print(f"optimal cost {optimum:.2f}, {(1 - model.discount) * optimum:.2f} in a period")
for name, loss in losses.items():
    print(f"{name:20} {loss:+6.2f} %")

figure = Figure(figsize=(7.0, 3.5), layout="constrained")
axes = figure.subplots()
colours = ["#0072B2", *(["0.6"] * (len(losses) - 1))]
axes.barh(list(losses), list(losses.values()), color=colours)
axes.invert_yaxis()
axes.set_xlabel("cost above the optimum (%)")
figure.savefig("lost_sales.png", dpi=150)
