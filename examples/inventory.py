"""A shop orders stock: a setup cost makes small orders bad, and demand is random.

States are stock levels, actions are order quantities that fit on the shelf, so the actions differ
from state to state. The transitions are one sparse matrix per order quantity. The optimal policy
orders up to a level whenever the stock falls below another one. Does the approximate policy, too?
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse
from scipy.stats import poisson

import bellweight as bw

HOLDING, LOST, SETUP, PRICE = 1.0, 25.0, 40.0, 2.0
DEMAND = 8.0


def shop(shelf: int) -> bw.TabularModel:
    """Return the model: stock 0, ..., shelf, and orders that arrive before the day's demand."""
    stock = np.arange(shelf + 1)
    demand = poisson.pmf(np.arange(shelf + 1), DEMAND)
    demand[-1] += poisson.sf(shelf, DEMAND)
    cost = np.zeros((shelf + 1, shelf + 1))
    transition = []
    for order in stock:
        filled = np.minimum(stock + order, shelf)
        left = np.maximum(filled[:, None] - stock[None, :], 0)  # by demand
        rows = np.repeat(stock, shelf + 1)
        chances = np.tile(demand, shelf + 1)
        transition.append(
            sparse.coo_array((chances, (rows, left.ravel())), shape=(shelf + 1, shelf + 1))
        )
        unmet = np.maximum(stock[None, :] - filled[:, None], 0) @ demand
        cost[:, order] = HOLDING * (left @ demand) + LOST * unmet
        cost[:, order] += (SETUP if order else 0.0) + PRICE * order
    return bw.TabularModel.from_arrays(
        cost, transition, discount=0.97, initial=np.eye(shelf + 1)[0],
        admissible=stock[:, None] + stock[None, :] <= shelf, name="shop",
        action_labels=[f"order {order}" for order in stock],
    )  # fmt: skip


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="a smaller shelf")
model = shop(shelf=40 if parser.parse_args().quick else 80)

optimal = bw.exact.optimal(model)
bases = {"cubic": bw.Polynomial(3), "kinks": bw.PiecewiseLinear([4, 8, 12, 16, 24, 32])}
results = {name: bw.solve(model, basis, bw.DIA()) for name, basis in bases.items()}

figure = Figure(figsize=(9.0, 4.0), layout="constrained")
left, right = figure.subplots(1, 2)
stock = np.arange(model.n_states)
left.plot(stock, optimal.values, color="0.4", ls=":", lw=2.5, label="optimal")
right.step(stock, optimal.policy.entries, where="mid", color="0.4", ls=":", lw=2.5)
print(f"optimal      cost {model.initial @ optimal.values:9.2f}")
for (name, result), colour in zip(results.items(), ("#0072B2", "#D55E00"), strict=True):
    values = result.basis(model.states) @ result.coef
    left.plot(stock, values, color=colour, label=f"{name} ({len(result.names)} functions)")
    right.step(stock, [result.policy.action(x) for x in stock], where="mid", color=colour)
    print(f"{name:12} cost {result.cost:9.2f}, optimum proven above {result.lower_bound:9.2f}")
for axes, title in ((left, "value (never above the optimal one)"), (right, "order")):
    axes.set_xlabel("stock (units)")
    axes.set_title(title, fontsize="medium", loc="left")
left.set_ylabel("discounted cost")
right.set_ylabel("order (units)")
left.legend(frameon=False)
figure.savefig("inventory.png", dpi=150)
