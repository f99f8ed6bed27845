"""The paper's queue: weights by hand against weights that DIA finds.

The program needs to know which states matter. By hand one often takes weights that fall by a factor
from state to state. The factor is a guess, and the cost of the policy hangs on it. DIA needs no
guess: it looks for weights that agree with where its policy spends its time.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "0.4"

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a shorter queue and fewer weights")
quick = parser.parse_args().quick

queue = bw.problems.single_queue(capacity=500 if quick else 49_999, initial="empty")
basis = bw.Polynomial(3)
optimum = float(queue.initial @ bw.exact.optimal(queue).values)
dia = bw.solve(queue, basis, bw.DIA())

decays = 1.0 - np.geomspace(0.2, 1e-4, 5 if quick else 25)
costs = []
for decay in decays:
    weights = decay ** np.arange(queue.n_states)
    result = bw.solve(queue, basis, bw.Fixed(weights / weights.sum()))
    costs.append(result.cost.mean)

figure = Figure(figsize=(7.0, 4.2), layout="constrained")
axes = figure.subplots()
axes.plot(1.0 - decays, costs, "o-", color=BLUE, markersize=4, label="weights by hand")
axes.axhline(dia.cost.mean, color=VERMILION, label=f"DIA, {len(dia.history)} iterations")
axes.axhline(optimum, color=GREY, linestyle=":", label="optimum")
axes.set_xscale("log")
axes.invert_xaxis()
axes.set_xlabel("1 - decay of the weights by hand (to the right: longer queues count)")
axes.set_ylabel("discounted cost from the empty queue")
axes.legend(frameon=False)
figure.savefig("weights_by_hand.png", dpi=150)

best, worst = min(costs), max(costs)
print(f"{queue.n_states:,} states, {len(decays)} guesses of the decay")
print(f"optimum          {optimum:8.2f}")
print(f"by hand, best    {best:8.2f}  at decay {decays[np.argmin(costs)]:.4f}")
print(f"by hand, worst   {worst:8.2f}  at decay {decays[np.argmax(costs)]:.4f}")
print(f"DIA              {dia.cost:8.2f}  without a guess, {dia.status.name}")
