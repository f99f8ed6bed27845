"""A certificate as a picture: where the optimum can lie, and why the corollary is loose.

The optimal cost lies between the value that the program proves and the cost of the policy. The
corollary bounds the same loss by three terms, one of which is the largest Bellman residual over all
states. That residual sits in long queues that the policy never sees.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw

BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a shorter queue")
queue = bw.problems.single_queue(capacity=100 if parser.parse_args().quick else 1_000)
optimum = float(queue.initial @ bw.exact.optimal(queue).values)

figure = Figure(figsize=(9.4, 4.0), layout="constrained")
left, right = figure.subplots(1, 2)
for row, degree in enumerate((1, 2, 3, 4, 6)):
    result = bw.solve(queue, bw.Polynomial(degree), bw.DIA())
    certificate = bw.certify(queue, result)
    low, high = certificate.value, certificate.cost
    left.plot([low, high], [row, row], color=BLUE, lw=5, solid_capstyle="butt")
    left.text(high, row, f"  loss at most {certificate.relative:.1%}", va="center")
    print(f"degree {degree}: optimum between {low:9.2f} and {high:7.2f}", end=", ")
    print(f"corollary {certificate.greedy_bound:12,.0f}")
    left.plot(optimum, row, "|", color="k", ms=16, mew=2)
left.set_yticks(range(5), [f"degree {degree}" for degree in (1, 2, 3, 4, 6)])
left.set_xlabel("discounted cost (black: the optimum)")
left.set_xlim(right=left.get_xlim()[1] + 0.55 * np.ptp(left.get_xlim()))

values = result.basis(queue.states) @ result.coef
residual = queue.cost + queue.discount * (queue.transition @ values)
residual -= values[queue.pair_state]
greedy = result.policy.probabilities(queue) > 0.5
right.plot(np.maximum(residual[greedy], 1e-3), color=VERMILION, label="residual (cost units)")
right.plot(np.maximum(result.weights, 1e-12), color=GREEN, label="weights (probability)")
right.set_yscale("log")
right.set_xlabel("jobs in the queue")
right.set_title("degree 6, by state", fontsize="medium", loc="left")
right.legend(frameon=False)
figure.savefig("certificate_picture.png", dpi=150)
