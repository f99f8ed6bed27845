"""Two kinds of calls share the lines of an exchange: which calls should it take?

A lost business call costs ten times as much as a lost private one. So some lines are kept free for
business calls when the exchange is nearly full. The model is tabular: sparse rows, one for each
state and admissible action. A quadratic value function cannot bend sharply enough near the last
free lines, and its policy is poor. Two functions of the free lines put that right.
"""

import argparse

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from scipy import sparse

import bellweight as bw

ARRIVAL = np.array([0.3, 0.5])  # business and private calls, relative to each other
LEAVING = 0.03  # of each call in progress
PRICE = np.array([10.0, 1.0])  # of a lost call
ACTIONS = ["business only", "all calls"]


def exchange(lines: int) -> bw.TabularModel:
    """Return the model: calls in progress by kind, never more than there are lines."""
    states = [(b, p) for b in range(lines + 1) for p in range(lines + 1 - b)]
    number = {state: i for i, state in enumerate(states)}
    unit = ARRIVAL.sum() + LEAVING * lines  # the rates sum to at most one
    cost, entries, pairs = [], [], []
    for b, p in states:
        for action in (0, 1) if b + p < lines else (0,):
            lost = PRICE * ARRIVAL * [b + p == lines, action == 0]
            moves = {(b - 1, p): LEAVING * b, (b, p - 1): LEAVING * p}
            moves |= {(b + 1, p): ARRIVAL[0], (b, p + 1): ARRIVAL[1] * action}
            moves = {state: rate / unit for state, rate in moves.items() if state in number}
            moves[b, p] = 1.0 - sum(moves.values())
            entries += [(len(pairs), number[state], chance) for state, chance in moves.items()]
            pairs.append((number[b, p], action))
            cost.append(lost.sum() / unit)
    row, column, chance = zip(*entries, strict=True)
    shape = (len(pairs), len(states))
    return bw.TabularModel.from_pairs(
        cost, sparse.coo_array((chance, (row, column)), shape), *zip(*pairs, strict=True),
        discount=0.995, initial=np.eye(len(states))[0], state_vectors=states,
        action_labels=ACTIONS, name="exchange",
    )  # fmt: skip


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="fewer lines")
lines = 10 if parser.parse_args().quick else 20


def nearly_full(states: np.ndarray) -> np.ndarray:
    """Return two functions that are small until few lines are free."""
    free = lines - states.sum(axis=1, keepdims=True)
    return np.hstack([0.5**free, 0.7**free])


model = exchange(lines)
optimal = bw.exact.optimal(model)
quadratic = bw.Polynomial(2)
sharper = bw.Stacked(quadratic, bw.Custom(nearly_full, ["0.5^free", "0.7^free"]))
policies, proven = {"optimal": optimal.policy}, {}
for name, basis in {"quadratic": quadratic, "and of the free lines": sharper}.items():
    result = bw.solve(model, basis, bw.DIA())
    policies[name], proven[name] = result.policy, result.lower_bound

figure = Figure(figsize=(10.0, 3.9), layout="constrained")
panels = figure.subplots(1, 3, sharey=True)
colours = ["#E69F00", "#56B4E9"]
for axes, (name, policy) in zip(panels, policies.items(), strict=True):
    cost = float(model.initial @ bw.exact.policy_value(model, policy))
    bound = f", proven lower bound {proven[name]:.2f}" if name in proven else ""
    print(f"{name:22} cost {cost:7.2f}{bound}")
    taken = np.full((lines + 1, lines + 1), np.nan)
    for state, (business, private) in enumerate(model.states.astype(int)):
        taken[private, business] = policy.action(state)
    axes.imshow(taken, origin="lower", cmap=ListedColormap(colours), vmin=0, vmax=1)
    axes.set_title(f"{name}: cost {cost:.1f}", fontsize="medium", loc="left")
    axes.set_xlabel("business calls in progress")
    axes.set_yticks(range(0, lines + 1, 5))
panels[0].set_ylabel("private calls in progress")
for action, label in enumerate(ACTIONS):
    panels[2].plot([], [], "s", color=colours[action], label=label)
panels[2].legend(frameon=False, title="let in")
figure.savefig("admission_control.png", dpi=150)
