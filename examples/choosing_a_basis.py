"""Which basis, and how many functions? The proven and the true loss of four families.

A larger basis tightens what is proven. The policy itself is often good long before the proof is.
Where the functions are matters more than how many there are: kinks spread evenly over 200 states
miss the short queues, which is where the policy spends its time.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MARKERS = "osD^"
FLOOR = 1e-4  # per cent: zero has no place on a log axis

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a shorter queue, small bases")
quick = parser.parse_args().quick

queue = bw.problems.single_queue(capacity=50 if quick else 200)
optimum = float(queue.initial @ bw.exact.optimal(queue).values)
sizes = (2, 4) if quick else (2, 3, 4, 5, 6, 7, 8)
families = {
    "polynomial": bw.Polynomial,
    "kinks, evenly spaced": bw.PiecewiseLinear,
    "kinks at 1, 2, 4, ...": lambda n: bw.PiecewiseLinear([2.0**k for k in range(n)]),
    "Fourier": lambda n: bw.Fourier(n, seed=1),
}

figure = Figure(figsize=(9.0, 4.0), layout="constrained")
panels = figure.subplots(1, 2, sharex=True)
print(f"{queue.name}: {queue.n_states} states, optimal cost {optimum:.2f}")
for (name, basis), colour, marker in zip(families.items(), COLOURS, MARKERS, strict=True):
    results = [bw.solve(queue, basis(n), bw.DIA()) for n in sizes]
    count = [len(result.names) for result in results]
    proven = [100.0 * (result.cost.mean - result.lower_bound) / optimum for result in results]
    true = [100.0 * (result.cost.mean / optimum - 1.0) for result in results]
    for axes, loss in zip(panels, (proven, true), strict=True):
        axes.plot(count, np.maximum(loss, FLOOR), marker, ls="-", c=colour, ms=5, label=name)
    for n, bound, loss in zip(count, proven, true, strict=True):
        print(f"{name:22} {n:3d} functions  proven {bound:9.3f} %  true {loss:8.4f} %")

for axes, title in zip(panels, ("proven loss", f"true loss (at least {FLOOR:g})"), strict=True):
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_xlabel("number of basis functions")
    axes.set_ylabel("% of the optimal cost")
    axes.set_title(title, fontsize="medium", loc="left")
panels[0].legend(frameon=False, fontsize="small")
figure.savefig("choosing_a_basis.png", dpi=150)
