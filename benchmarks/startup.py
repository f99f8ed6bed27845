"""CPU seconds of a first solve, when nothing is compiled yet, and of a later one.

Each start is a process of its own; a cold one has an empty folder for compiled code. Importing is
not counted. `rows` is a solve without simulation, `judged` the judgement that follows it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from measure import Line

TITLE = "The first seconds"
FIGURES = {
    "startup.rows": "a solve without simulation, nothing compiled before",
    "startup.judged": "simulating its policy beside others, nothing compiled before",
    "startup.changed": "what a changed parameter adds to a solve",
}
MOST = {"rows": 8.0, "judged": 16.0, "changed": 0.5}
QUICK_KINDS = ("event",)
KINDS = ("event", "step")
_SCRIPT = """
import json, sys, time
import numpy as np
import bellweight as bw

def arrivals(state, parameters):
    return parameters["holding"] * state[0] + state[1]

def event(holding):
    return bw.EventModel(
        dimension=2, actions=2, events=3, cost=arrivals, parameters={"holding": holding},
        probability=[[0.3, 0.4, 0.0], [0.3, 0.0, 0.5]], move=[[1, 0], [-1, 1], [0, -1]],
        discount=0.95, initial=bw.models.Geometric(0.7),
    )

def ahead(state, action, noise):
    return min(max(state[0] + action - noise[0], -5.0), 20.0)

def paid(state, action, parameters):
    return parameters["holding"] * abs(state[0]) + action

def step(holding):
    return bw.StepModel(
        dimension=1, actions=3, step=ahead, cost=paid, noise=bw.models.Normal(1.0, 0.5),
        discount=0.95, initial=0.0, lower=-5, upper=20, parameters={"holding": holding},
    )

def timed(work):
    began = time.process_time()
    answer = work()
    return time.process_time() - began, answer

make = {"event": event, "step": step}[sys.argv[1]]
basis, figures = bw.Polynomial(2), {}
states = np.stack(np.divmod(np.arange(64), 8), axis=1)
if sys.argv[1] == "step":
    states = np.linspace(-5.0, 20.0, 64)[:, None]
rows = bw.SampledRows(states)
def solve(model, judge):
    return bw.solve(model, basis, bw.Fixed("initial"), rows=rows, judge=judge)
taken, model = timed(lambda: make(1.0))
figures["rows"] = taken + timed(lambda: solve(model, False))[0]
figures["judged"] = timed(lambda: solve(model, True))[0]
first = timed(lambda: solve(model, False))[0]
figures["changed"] = timed(lambda: solve(model.with_parameters(holding=2.0), False))[0] - first
print(json.dumps(figures))
"""


def run(*, quick: bool = False) -> list[Line]:
    """Return cold figures with warm ones beside them."""
    lines = []
    for kind in QUICK_KINDS if quick else KINDS:
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "start.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write(_SCRIPT)
            cold, warm = _started(script, kind, folder), _started(script, kind, folder)
        lines += [
            Line(f"startup.{name} {kind} model", max(cold[name], 0.0), target=most, limit=True,
                 notes=(f"compiled before: {max(warm[name], 0.0):.2g} s",))
            for name, most in MOST.items()
        ]  # fmt: skip
    return lines


def _started(script: str, kind: str, folder: str) -> dict[str, float]:
    found = subprocess.run(
        [sys.executable, script, kind], env={**os.environ, "BELLWEIGHT_CACHE": folder},
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
    )  # fmt: skip
    figures: dict[str, float] = json.loads(found.stdout)
    return figures
