"""Ten machines and a crew for two: which to renew, and when not to.

All machines wear in the same step, so there are ten million states and as many joint events. Each
machine has a law of its own, and nothing lists joint events. A sum of tables, one for each machine,
is fitted on the rows of all states; the bound is proven. Renewing the most worn machines ignores
that machines differ.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import bellweight as bw
from bellweight.problems.maintenance import replace_the_worst

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--quick", action="store_true", help="fewer episodes")
episodes = 200 if parser.parse_args().quick else 4_000

model = bw.problems.machine_maintenance()
# Kinks at all inner levels make a table of five values for each machine.
result = bw.solve(
    model, bw.PiecewiseLinear([1, 2, 3]), bw.DIA(), rows=bw.LocalRows(),
    simulation=bw.Simulation(episodes=200), judge=False,
)  # fmt: skip
rules = {
    "the worst": replace_the_worst(),
    "the worst, from level 2": replace_the_worst(least=2),
    "the dearest": replace_the_worst(burden=np.geomspace(4.0, 0.25, 10)),
}
found = bw.compare(model, {"ours": result.policy, **rules}, episodes=episodes, seed=1)
print(found)
print(f"no policy costs less than {result.lower_bound:.2f}")

levels = np.arange(5)
states = np.zeros((50, 10), dtype=np.int64)
states[np.arange(50), np.repeat(np.arange(10), 5)] = np.tile(levels, 10)
renewed = np.asarray(result.policy.actions(states)).reshape(10, 5) > 0
figure = Figure(figsize=(9.0, 4.0), layout="constrained")
left, right = figure.subplots(1, 2)
gaps = [found.differences[name] for name in rules]
left.barh(
    list(rules), [gap.mean for gap in gaps], xerr=[gap.half_width for gap in gaps], color="0.6"
)
left.set_xlabel("cost above ours (paired)")
right.imshow(renewed, cmap="Blues", aspect="auto", vmin=0, vmax=1.5)
right.set_xlabel("its level, all others new")
right.set_ylabel("machine (dear and slow first)")
right.set_title("renewed by our policy", fontsize="medium", loc="left")
figure.savefig("machine_crew.png", dpi=150)
