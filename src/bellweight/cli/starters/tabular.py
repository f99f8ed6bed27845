"""A machine that wears out: run it, service it or replace it?

A tabular model lists its states and has one cost and one row of probabilities for each state and
action. Use it when the states fit into memory. Change the numbers, then:

    bellweight solve THIS_FILE
"""

import numpy as np

import bellweight as bw

LEVELS = 50  # wear 0 (new), ..., 49
ACTIONS = ["run", "service", "replace"]


def model() -> bw.TabularModel:
    """Return the model; `bellweight solve` calls this function."""
    wear = np.arange(LEVELS)

    # Cost of each state (rows) and action (columns) in one step. Costs are minimised; for rewards
    # pass them with sense="max" below.
    cost = np.column_stack([0.5 * wear, np.full(LEVELS, 12.0), np.full(LEVELS, 20.0)])

    # Where each action leads: one matrix (states x states) for each action, rows sum to one.
    run = np.zeros((LEVELS, LEVELS))
    run[wear, wear] += 0.6  # wear stays
    run[wear, np.minimum(wear + 1, LEVELS - 1)] += 0.4  # or grows by one level
    service = np.zeros((LEVELS, LEVELS))
    service[wear, wear // 2] = 1.0  # half of the wear is taken away
    replace = np.zeros((LEVELS, LEVELS))
    replace[:, 0] = 1.0

    # Where we begin: a distribution over states. Here: a new machine.
    initial = np.zeros(LEVELS)
    initial[0] = 1.0

    return bw.TabularModel.from_arrays(
        cost=cost,
        transition=[run, service, replace],
        discount=0.97,  # a cost tomorrow counts 97 % of a cost today
        initial=initial,
        action_labels=ACTIONS,
        name="machine",
    )


if __name__ == "__main__":
    print(bw.solve(model(), bw.PiecewiseLinear(5), bw.DIA()))
