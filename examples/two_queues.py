"""Two queues in a row and one server: which queue should it work on?

Long queues cost more than their share, so the server should switch between them, but where? The
state space is unbounded, so the rows are those of sampled states. A sampled program proves nothing
about the policy; a simulation compares it with two simple rules on the same random numbers.
"""

import argparse

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

import bellweight as bw

ARRIVAL, SERVICE = 0.25, (0.6, 0.55)


def cost(state):
    return 0.1 * (state[0] ** 2 + state[1] ** 2)


def probability(action, event):
    if event == 0:
        return ARRIVAL
    return SERVICE[action] if event == action + 1 else 0.0


def move(state, event):
    if event == 0:
        state[0] += 1
    elif event == 1 and state[0] > 0:
        state[0] -= 1
        state[1] += 1
    elif event == 2 and state[1] > 0:
        state[1] -= 1


model = bw.EventModel(
    dimension=2, actions=["first", "second"], events=["arrival", "first done", "second done"],
    cost=cost, probability=probability, move=move, discount=0.98, initial=bw.models.Geometric(0.8),
)  # fmt: skip


def second_first(state):
    return 1 if state[1] > 0 else 0


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="fewer episodes")
episodes = 1_000 if parser.parse_args().quick else 20_000

rows = bw.SampledRows(bw.sample_states(model, 500, seed=1))
result = bw.solve(model, bw.Polynomial(2), bw.DIA(), rows=rows, seed=2)
print(result)
print("with 5 and 2 waiting, serve:", model.label(result.policy.action((5, 2))))
rules = {"random": bw.Uniform(), "second queue first": bw.Rule(second_first)}
print(bw.compare(model, {**rules, "bellweight": result.policy}, episodes, seed=3))

size = 15
served = np.array([[result.policy.action((i, j)) for i in range(size)] for j in range(size)])
colours = ["#0072B2", "#E69F00"]
figure = Figure(figsize=(5.6, 4.2), layout="constrained")
axes = figure.subplots()
axes.imshow(served, origin="lower", cmap=ListedColormap(colours), vmin=0, vmax=1)
for action, label in enumerate(model.actions):
    axes.plot([], [], "s", color=colours[action], label=f"serve the {label} queue")
axes.set_xlabel("jobs in the first queue")
axes.set_ylabel("jobs in the second queue")
figure.legend(loc="outside upper center", ncols=2, frameon=False)
figure.savefig("two_queues.png", dpi=150)
