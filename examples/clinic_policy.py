"""The paper's clinic: what a place is worth, and who is booked on which day.

The clinic books three classes of patients over thirty days. It has far too many states to list, so
its rows are found by column generation. An affine value function gives every place a price. The
price falls from day to day where waiting is still in time, and that is what the policy acts on.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw

COLOURS = ("#D55E00", "#0072B2", "#009E73")
TARGETS = (7, 14, 21)  # days within which the classes should be seen

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a shorter simulation")
quick = parser.parse_args().quick

clinic = bw.problems.scheduling("small", targets=TARGETS)
basis = bw.Affine(lower=[-np.inf] + [0.0] * clinic.dimension)  # one more patient never helps
simulation = bw.Simulation(episodes=100 if quick else 1_000)
result = bw.solve(clinic, basis, bw.DIA(), simulation=simulation, seed=1)
print(result)

# One long run of the policy, with the model's own matrices.
rng = np.random.default_rng(2)
state, days = np.round(clinic.initial_mean), 50 if quick else 2_000
booked = np.zeros(clinic.n_action_variables)
for _ in range(days):
    action = result.policy.action(state)
    booked += action
    arrivals = [rng.choice(law.values, p=law.chances) for law in clinic.noise.laws]
    state = clinic.next_state @ state + clinic.next_action @ action
    state += clinic.noise_matrix @ arrivals
by_class = booked[: 3 * 30].reshape(3, 30) / days
print(f"booked a day, by class: {by_class.sum(axis=1).round(2)}")
print(f"diverted a day: {booked[90:].sum() / days:.2f}")

figure = Figure(figsize=(9.0, 4.0), layout="constrained")
left, right = figure.subplots(1, 2)
day = np.arange(1, 31)
prices = result.coef[1:]
left.plot(day, prices[:30], "o-", color="0.3", ms=3, label="a place taken on this day")
below = np.zeros(30)
for k, (colour, target) in enumerate(zip(COLOURS, TARGETS, strict=True)):
    name = f"class {k + 1}, target day {target}"
    left.axhline(prices[30 + k], color=colour, ls="--", label=f"a patient of class {k + 1} waiting")
    right.bar(day, by_class[k], bottom=below, color=colour, label=name)
    below += by_class[k]
left.set_ylabel("price (cost units)")
right.set_ylabel("patients booked a day")
for axes in (left, right):
    axes.set_xlabel("day of the horizon")
    axes.legend(frameon=False, fontsize="small")
figure.savefig("clinic_policy.png", dpi=150)
