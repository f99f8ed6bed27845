"""Do DIA's settings matter? Costs over a grid of temperatures and smoothing masses.

Every cell is one run of DIA, all on one program that stays warm. A large smoothing mass makes the
policy follow its target; a high temperature spreads it over the actions. Here the loss takes two
values only: the greedy policy is one of two, and smoothing decides which.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a shorter queue and a small grid")
quick = parser.parse_args().quick

queue = bw.problems.single_queue(capacity=100 if quick else 2_000, initial="empty")
axis = np.geomspace(1e-2, 1e2, 2 if quick else 7)
found = bw.analysis.sensitivity(queue, bw.Polynomial(2), temperatures=axis, smoothing_masses=axis)
optimum = float(queue.initial @ bw.exact.optimal(queue).values)
loss = 100.0 * (found.grid("cost") / optimum - 1.0)

figure = Figure(figsize=(6.4, 4.8), layout="constrained")
axes = figure.subplots()
image = axes.imshow(loss, origin="lower", cmap="cividis", aspect="auto")
for (row, column), value in np.ndenumerate(loss):
    dark = value < (loss.min() + loss.max()) / 2.0
    axes.text(column, row, f"{value:.2f}", ha="center", va="center", c="w" if dark else "k")
ticks = [f"{float(f'{value:.2g}'):g}" for value in axis]
axes.set_xticks(range(len(axis)), ticks)
axes.set_yticks(range(len(axis)), ticks)
axes.set_xlabel("temperature (dual mass)")
axes.set_ylabel("smoothing mass (dual mass)")
figure.colorbar(image, label="loss of the greedy policy (% of the optimal cost)")
figure.savefig("settings_map.png", dpi=150)

print(f"{queue.name}, {queue.n_states:,} states: optimal cost {optimum:.3f}")
print(f"lowest loss {loss.min():.3f} %, highest {loss.max():.3f} %")
best = found.best
print(f"best: temperature {best.temperature:g}, smoothing mass {best.smoothing_mass:g}")
print(f"{sum(s.status.is_success for s in found.settings)} of {loss.size} runs converged")
