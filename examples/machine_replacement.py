"""When should a worn machine be serviced, and when replaced? Pictures by the result itself.

A machine wears out step by step and costs more to run the more it is worn. Servicing takes away
half of the wear, replacing takes away all of it. DIA gets a rule of thumb as its target: replace at
wear 30. This is the shortest way from arrays to a policy: one solve, and one figure in which the
result shows its bound, its values, its policy and its weights.
"""

import argparse

import numpy as np
from scipy import sparse

import bellweight as bw

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="fewer levels of wear")
levels = 60 if parser.parse_args().quick else 200

wear = np.arange(levels)
worse = sparse.diags_array([[0.7] * (levels - 1) + [1.0], [0.3] * (levels - 1)], offsets=[0, 1])


def goes_to(level: np.ndarray) -> sparse.coo_array:
    """Return the transitions of an action that sets the wear."""
    return sparse.coo_array((np.ones(levels), (wear, level)), shape=(levels, levels))


machine = bw.TabularModel.from_arrays(
    cost=np.column_stack([0.2 * wear, np.full(levels, 40.0), np.full(levels, 60.0)]),
    transition=[worse, goes_to(wear // 2), goes_to(np.zeros(levels, dtype=int))],
    discount=0.99,
    initial=np.eye(levels)[0],
    action_labels=["run", "service", "replace"],
    name="machine",
)
rule = bw.TablePolicy(np.where(wear < 30, 0, 2))
result = bw.solve(machine, bw.PiecewiseLinear([4, 8, 12, 16, 24, 48]), bw.DIA(target=rule))
print(result)
by_rule = float(machine.initial @ bw.exact.policy_value(machine, rule))
optimum = float(machine.initial @ bw.exact.optimal(machine).values)
print(f"rule of thumb {by_rule:.2f}, ours {result.cost:.2f}, optimum {optimum:.2f}")
for action, label in enumerate(machine.action_labels):
    first = next((x for x in wear if result.policy.action(x) == action), None)
    print(f"{label}: " + ("never" if first is None else f"from wear {first}"))

figure = result.figure("gap", "value", "policy", "weights")
figure.savefig("machine_replacement.png", dpi=150)
